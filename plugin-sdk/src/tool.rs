//! Tools: functions that the model may call, written as a struct of arguments with a `call`.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::tools::{ToolDefinition, ToolError, ToolOutput};
use crate::{Context, Error, Part, schema};

/// A tool, implemented on the struct of its arguments and registered with [`tools!`](crate::tools!).
///
/// Derive `serde::Deserialize` and `schemars::JsonSchema`, and set `#[serde(deny_unknown_fields)]` so that the schema
/// refuses arguments that do not exist. `#[serde(default)]` and `Option` make an argument optional.
pub trait Tool: DeserializeOwned + JsonSchema {
    /// `[a-z][a-z0-9_]{0,63}`, unique among all enabled plugins.
    const NAME: &'static str;

    /// One line for the tools section of the prompt; without it the first sentence of the doc comment is used.
    const SUMMARY: Option<&'static str> = None;

    /// True when a call changes nothing. Such calls run side by side, also in `plan` mode.
    const READ_ONLY: bool = false;

    /// Runs the tool, once, in a fresh instance.
    fn call(self, ctx: &Context) -> Result<Output, Error>;
}

/// What a call answers with: parts in the order the model reads them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The parts.
    pub parts: Vec<Part>,
    /// True when the tool ran but what it was asked for did not work out: the model reads the parts as an error.
    pub is_error: bool,
    /// Measurements and counts, for the host; the model does not see them.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Output {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and(Part::Text(text.into()))
    }

    /// One JSON value.
    ///
    /// # Errors
    ///
    /// When the value cannot be written as JSON, such as a map whose keys are not strings.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        Ok(Self::default().and(Part::Json(serde_json::to_string(value)?)))
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn and(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Marks the output as an error for the model.
    #[must_use]
    pub fn as_error(mut self) -> Self {
        self.is_error = true;
        self
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Output> for ToolOutput {
    fn from(output: Output) -> Self {
        let extra = serde_json::Value::Object(output.extra).to_string();
        Self { parts: output.parts, is_error: output.is_error, extra }
    }
}

/// How the tool presents itself.
#[doc(hidden)]
pub fn define<T: Tool>() -> ToolDefinition {
    let (description, input_schema) = schema::describe::<T>();
    ToolDefinition {
        name: T::NAME.into(),
        summary: T::SUMMARY.map(Into::into),
        description,
        input_schema,
        read_only: T::READ_ONLY,
        extra: "{}".into(),
    }
}

/// Reads the arguments and runs the tool.
#[doc(hidden)]
pub fn call<T: Tool>(ctx: &Context, input: &str) -> Result<ToolOutput, ToolError> {
    let tool: T = serde_json::from_str(input)
        .map_err(|error| ToolError::InvalidInput(format!("the arguments of {} do not fit: {error}", T::NAME)))?;
    Ok(tool.call(ctx)?.into())
}

/// Registers the tools of a plugin: `tools!(ReadFile, GrepFiles);`, once in a crate.
#[macro_export]
macro_rules! tools {
    ($($tool:ty),+ $(,)?) => {
        const _: () = {
            use $crate::bindings::tools::{Guest, ToolDefinition, ToolError, ToolOutput};

            struct Export;

            impl Guest for Export {
                fn list_tools() -> Vec<ToolDefinition> {
                    vec![$($crate::tool::define::<$tool>()),+]
                }

                fn call_tool(ctx: $crate::Context, name: String, input: String) -> Result<ToolOutput, ToolError> {
                    match name.as_str() {
                        $(<$tool as $crate::Tool>::NAME => $crate::tool::call::<$tool>(&ctx, &input),)+
                        _ => Err(ToolError::UnknownTool(name)),
                    }
                }
            }

            // Unit tests of a guest run natively, where nothing is exported and yet nothing is dead.
            const _: fn() -> Vec<ToolDefinition> = Export::list_tools;
            const _: fn($crate::Context, String, String) -> Result<ToolOutput, ToolError> = Export::call_tool;

            #[cfg(target_family = "wasm")]
            $crate::bindings::tools::export!(Export with_types_in $crate::bindings::tools);
        };
    };
}
