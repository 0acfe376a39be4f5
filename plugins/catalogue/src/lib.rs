//! tool_search and call_tool: how a model reaches tools that are not in its schema.
//!
//! The schema of a session is frozen, so that its cached prefix stays. A tool that came later, or was left out for want of
//! room, is found by words and called by name. `call_tool` itself runs nothing: the host takes it for an address and puts
//! the named tool through the same hooks, rules and checks as any call.

use astrarium_sdk::host::tools;
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use serde_json::{Map, Value};

/// Finds tools by words and answers with their descriptions and the JSON Schemas of their arguments.
///
/// Use it when none of your listed tools fits: more tools may be there than are listed. Search in few words, in any
/// language; then call what you found through `call_tool`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolSearch {
    /// What the tool should do, or its name.
    query: String,
    /// How many tools to name; 5 without it, 20 at most.
    limit: Option<u32>,
}

impl Tool for ToolSearch {
    const NAME: &'static str = "tool_search";
    const SUMMARY: Option<&'static str> = Some("Finds tools that are not listed here");
    const READ_ONLY: bool = true;

    fn call(self, _: &Context) -> Result<Output, Error> {
        let found = tools::search(&self.query, self.limit.unwrap_or(5))?;
        if found.is_empty() {
            return Ok(format!("no tool fits {:?}; try other words", self.query).into());
        }
        Ok(found.iter().map(render).collect::<Vec<_>>().join("\n\n").into())
    }
}

fn render(tool: &tools::Entry) -> String {
    format!("{} (plugin {})\n{}\ninput schema: {}", tool.name, tool.plugin, tool.description.trim(), tool.input_schema)
}

/// Calls a tool by its name: one that `tool_search` found, or that a reminder announced.
///
/// Give the arguments that the tool's own schema asks for as `input`. Tools of your list are called directly.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallTool {
    /// Name of the tool.
    name: String,
    /// Its arguments.
    #[serde(default)]
    input: Map<String, Value>,
}

impl Tool for CallTool {
    const NAME: &'static str = "call_tool";
    const SUMMARY: Option<&'static str> = Some("Calls a tool that is not listed here");

    /// Never reached: the host calls the named tool instead.
    fn call(self, _: &Context) -> Result<Output, Error> {
        Err(Error::failed(format!(
            "this host does not know call_tool as an address, so {} was not called with its {} arguments",
            self.name,
            self.input.len()
        )))
    }
}

tools!(ToolSearch, CallTool);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_with_its_plugin_and_its_schema() {
        let tool = tools::Entry {
            name: "dig".into(),
            summary: "Digs".into(),
            description: "Digs deep.\n".into(),
            input_schema: "{}".into(),
            plugin: "spade".into(),
        };
        assert_eq!(render(&tool), "dig (plugin spade)\nDigs deep.\ninput schema: {}");
    }
}
