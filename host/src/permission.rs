//! Permission rules: whether a call that the hooks let through may run, must be asked for, or is refused. Pure and total.
//!
//! A rule names a tool, perhaps a plugin, and patterns for arguments. `deny` wins over everything; then the operator's rules
//! count before those that ship, and in each of the two `ask` wins over `allow`; what no rule names, the mode decides. Rules
//! see words: what a call may reach in the end is the sandbox's business, and a grant is needed all the same.

mod pattern;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// What happens to calls that no rule names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They run: what the grants allow is allowed.
    #[default]
    Default,
    /// They are asked for, unless they are marked as changing nothing.
    Strict,
    /// Nothing runs but what is marked as changing nothing, whatever a rule allows.
    Plan,
}

/// `permissions:` of a config.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// The mode; `default` when none is named.
    pub mode: Option<Mode>,
    /// Calls that never run.
    pub deny: Vec<Rule>,
    /// Calls that a person is asked about.
    pub ask: Vec<Rule>,
    /// Calls that run without a question.
    pub allow: Vec<Rule>,
}

/// One rule: a tool's name, or a table with more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Rule {
    /// Pattern of the tool's name.
    pub tool: String,
    /// Pattern of the plugin's name; any when none.
    pub plugin: Option<String>,
    /// Patterns of arguments by their names, `a.b` for one inside another; all must match.
    pub arguments: BTreeMap<String, String>,
}

/// The rules in force: the operator's over those that ship.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// The mode.
    pub mode: Mode,
    /// The operator's.
    pub own: Permissions,
    /// Those that ship.
    pub shipped: Permissions,
}

/// The call to judge.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Tool name.
    pub tool: &'a str,
    /// Plugin that answers it.
    pub plugin: &'a str,
    /// Whether the tool says that it changes nothing.
    pub read_only: bool,
    /// Arguments, after the hooks.
    pub input: &'a Value,
    /// The workspace: a path in it is the same with and without it in front.
    pub workspace: &'a str,
}

/// The judgement, with the rule that made it in the operator's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It runs.
    Allow(String),
    /// A person is asked.
    Ask(String),
    /// It does not run.
    Deny(String),
}

/// Rules that hold for no tool there is, a line each: a name that is misspelt protects nothing.
pub fn idle(rules: &Permissions, tools: &[&str]) -> Vec<String> {
    let lists = [("deny", &rules.deny), ("ask", &rules.ask), ("allow", &rules.allow)];
    let rules = lists.into_iter().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)));
    let idle = rules.filter(|(_, rule)| !rule.tool.contains(['*', '?']) && !tools.contains(&rule.tool.as_str()));
    let line = |(list, rule): (&str, &Rule)| {
        let likeness = |name: &&&str| (strsim::jaro_winkler(name, &rule.tool) * 1e6) as u64;
        let nearest = tools.iter().max_by_key(likeness).map(|name| format!("; the nearest is {name}"));
        let nearest = nearest.unwrap_or_default();
        format!("permissions: {list}: no tool is named {}, so this rule holds for nothing{nearest}", rule.tool)
    };
    idle.map(line).collect()
}

/// Judges a call.
pub fn judge(rules: &Rules, call: Call<'_>) -> Ruling {
    let layers = [&rules.own, &rules.shipped];
    let any = |list: &[Rule]| list.iter().find(|rule| rule.matches(call, Reading::Wide)).map(Rule::to_string);
    if let Some(rule) = layers.iter().find_map(|layer| any(&layer.deny)) {
        return Ruling::Deny(format!("deny: {rule}"));
    }
    if rules.mode == Mode::Plan && !call.read_only {
        return Ruling::Deny("mode: plan".into());
    }
    for layer in layers {
        if let Some(rule) = any(&layer.ask) {
            return Ruling::Ask(format!("ask: {rule}"));
        }
        if let Some(rule) = layer.allow.iter().find(|rule| rule.matches(call, Reading::Narrow)) {
            return Ruling::Allow(format!("allow: {rule}"));
        }
    }
    match rules.mode {
        Mode::Strict if !call.read_only => Ruling::Ask("mode: strict".into()),
        Mode::Strict => Ruling::Allow("mode: strict, it changes nothing".into()),
        Mode::Plan => Ruling::Allow("mode: plan, it changes nothing".into()),
        Mode::Default => Ruling::Allow("mode: default".into()),
    }
}

/// How doubts are settled. A text has several readings (a path with and without the workspace in front, with and without
/// `..`), and a list has several entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// One that matches is enough: for rules that hold a call up.
    Wide,
    /// All must match, and a wildcard takes nothing that a shell gives a meaning to: for rules that let it through.
    Narrow,
}

impl Rule {
    fn matches(&self, call: Call<'_>, reading: Reading) -> bool {
        let name = |pattern: &str, name: &str| pattern::matches(pattern, name, |_| true);
        name(&self.tool, call.tool)
            && self.plugin.as_ref().is_none_or(|plugin| name(plugin, call.plugin))
            && self.arguments.iter().all(|(path, pattern)| {
                let value = path.split('.').try_fold(call.input, |value, key| value.get(key));
                value.is_some_and(|value| argument(pattern, value, call.workspace, reading))
            })
    }
}

fn argument(pattern: &str, value: &Value, workspace: &str, reading: Reading) -> bool {
    // Without its folder in front a program is another one, so what lets through takes a text as it stands.
    let text = |text: &str| match reading {
        Reading::Wide => {
            let mut readings = pattern::readings(text, &[workspace, "/workspace"]).into_iter();
            readings.any(|text| pattern::matches(pattern, &text, |_| true))
        }
        Reading::Narrow => {
            let mut readings = pattern::readings(text, &[]).into_iter();
            readings.all(|text| pattern::matches(pattern, &text, pattern::is_harmless))
        }
    };
    match (value, reading) {
        (Value::Array(items), Reading::Wide) => items.iter().any(|item| argument(pattern, item, workspace, reading)),
        (Value::Array(items), Reading::Narrow) => {
            !items.is_empty() && items.iter().all(|item| argument(pattern, item, workspace, reading))
        }
        (Value::String(value), _) => text(value),
        (value, _) => text(&value.to_string()),
    }
}

/// As an operator writes it: `run_bash`, or `{ tool: run_bash, arguments: { command: "git *" } }`.
impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plugin.is_none() && self.arguments.is_empty() {
            return out.write_str(&self.tool);
        }
        let quoted = |text: &str| Value::from(text).to_string();
        write!(out, "{{ tool: {}", quoted(&self.tool))?;
        if let Some(plugin) = &self.plugin {
            write!(out, ", plugin: {}", quoted(plugin))?;
        }
        if !self.arguments.is_empty() {
            let arguments = self.arguments.iter().map(|(name, pattern)| format!("{name}: {}", quoted(pattern)));
            write!(out, ", arguments: {{ {} }}", arguments.collect::<Vec<_>>().join(", "))?;
        }
        out.write_str(" }")
    }
}

impl TryFrom<Value> for Rule {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let mut table = match value {
            Value::String(tool) => Map::from_iter([("tool".to_owned(), Value::from(tool))]),
            Value::Object(table) => table,
            other => return Err(format!("a rule is a tool's name or {{ tool: NAME, … }}, and this is {other}")),
        };
        let mut text = |key: &str| match table.shift_remove(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(other) => Err(format!("{key}: {other} is no pattern; write a text such as \"read_*\"")),
        };
        let tool =
            text("tool")?.ok_or("a rule names no tool; begin it with tool: NAME, or tool: \"*\" for every one")?;
        let plugin = text("plugin")?;
        let arguments = match table.shift_remove("arguments") {
            None => BTreeMap::new(),
            Some(Value::Object(patterns)) => patterns
                .into_iter()
                .map(|(name, pattern)| match pattern {
                    Value::String(pattern) => Ok((name, pattern)),
                    other => Err(format!("arguments: {name}: {other} is no pattern; write a text such as \"data/*\"")),
                })
                .collect::<Result<_, _>>()?,
            Some(other) => return Err(format!("arguments: {other} is no table; write {{ NAME: PATTERN }}")),
        };
        match table.keys().next() {
            Some(key) => Err(format!("unknown key {key:?} in a rule; it has tool, plugin and arguments")),
            None => Ok(Self { tool, plugin, arguments }),
        }
    }
}

#[cfg(test)]
mod tests;
