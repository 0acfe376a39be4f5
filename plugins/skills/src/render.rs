//! The text of a loaded skill, in Chinese and in English. Pure.

use astrarium_sdk::Error;
use astrarium_sdk::serde_json::{Map, Value, from_str, json};

/// What the host says of a skill in use.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct About {
    name: String,
    description: Option<String>,
    folder: String,
    version: Option<String>,
    allowed_tools: Vec<String>,
    argument_hint: Option<String>,
    context: String,
    execution_mode: String,
    already_loaded: bool,
    reason: Option<String>,
    activity: Vec<String>,
    statistics: Value,
}

impl About {
    /// Reads the host's `extra`.
    pub fn parse(extra: &str) -> Result<Self, Error> {
        from_str(extra)
            .map_err(|error| Error::failed(format!("what the host says of the skill does not read: {error}")))
    }

    /// Whether an agent of its own followed the skill.
    pub fn is_fork(&self) -> bool {
        self.context == "fork"
    }

    /// Measurements for the host; the model does not see them.
    pub fn metadata(&self) -> Map<String, Value> {
        let entries = [
            ("skill", json!(self.name)),
            ("context", json!(self.context)),
            ("execution_mode", json!(self.execution_mode)),
            ("version", json!(self.version)),
            ("statistics", self.statistics.clone()),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).filter(|(_, value)| !value.is_null()).collect()
    }
}

/// What the model reads of a loaded skill.
pub fn loaded(about: &About, text: &str, arguments: Option<&str>, chinese: bool) -> String {
    match (about.context.as_str(), about.already_loaded) {
        ("fork", _) => forked(about, text, chinese),
        (_, true) => again(about, arguments, chinese),
        (_, false) => inline(about, text, arguments, chinese),
    }
}

fn inline(about: &About, text: &str, arguments: Option<&str>, chinese: bool) -> String {
    let About { name, folder, .. } = about;
    let description = about.description.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let title = match (chinese, description) {
        (true, description) => format!("# 技能：{name} ({})", description.as_deref().unwrap_or("无描述")),
        (false, description) => format!("# Skill: {name} ({})", description.as_deref().unwrap_or("no description")),
    };
    let mut lines = vec![title, format!("Base directory: {folder}"), text.trim().to_owned()];
    if !about.allowed_tools.is_empty() {
        let tools = about.allowed_tools.join(", ");
        lines.push(if chinese {
            format!("建议使用的工具：{tools}")
        } else {
            format!("Tools to work with: {tools}")
        });
    }
    if let (None, Some(hint)) = (arguments, &about.argument_hint) {
        lines.push(match chinese {
            true => format!("这个技能需要参数：{hint}；从用户的话里找，找不到再问。"),
            false => format!(
                "It wants arguments: {hint}. Take them from what the user said, and ask where they are missing."
            ),
        });
    }
    lines.join("\n\n")
}

fn again(about: &About, arguments: Option<&str>, chinese: bool) -> String {
    let name = &about.name;
    let mut text = match chinese {
        true => format!("技能 {name} 已在本对话中加载，内容没有变化：请直接按上文的说明执行。"),
        false => format!(
            "The skill {name} is loaded in this conversation already and has not changed: follow it as it stands above."
        ),
    };
    if let Some(arguments) = arguments {
        text.push_str(&if chinese {
            format!("\n本次的参数：{arguments}")
        } else {
            format!("\nArguments this time: {arguments}")
        });
    }
    text
}

fn forked(about: &About, answer: &str, chinese: bool) -> String {
    let name = &about.name;
    let answer = match (answer.trim(), chinese) {
        ("", true) => "子代理没有给出答案。",
        ("", false) => "The agent gave no answer.",
        (answer, _) => answer,
    };
    let mut text = match chinese {
        true => format!("[子代理执行结果 - 技能: {name}]\n{answer}"),
        false => format!("[Subagent result - skill: {name}]\n{answer}"),
    };
    if let Some(reason) = about.reason.as_deref().filter(|reason| *reason != "done") {
        let error = about.statistics.get("error").and_then(Value::as_str);
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        text.push_str(&if chinese {
            format!("\n\n（结束原因：{reason}{error}）")
        } else {
            format!("\n\n(ended by: {reason}{error})")
        });
    }
    let notes = about.statistics.get("notes").and_then(Value::as_array).into_iter().flatten();
    for note in notes.filter_map(Value::as_str) {
        text.push_str(&format!("\n\n({note})"));
    }
    if !about.activity.is_empty() {
        let activity: Vec<String> = about.activity.iter().map(|line| format!("- {line}")).collect();
        let title = if chinese { "过程：" } else { "What it did:" };
        text.push_str(&format!("\n\n{title}\n{}", activity.join("\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(more: Value) -> About {
        let mut all =
            json!({ "name": "plotting", "description": "科研\n绘图", "folder": "/s/plotting", "context": "inline" });
        for (key, value) in more.as_object().unwrap() {
            all[key] = value.clone();
        }
        About::parse(&all.to_string()).unwrap()
    }

    #[test]
    fn a_skill_that_is_read_in_both_languages() {
        let plain = about(json!({}));
        assert_eq!(
            loaded(&plain, "Body.\n", None, true),
            "# 技能：plotting (科研 绘图)\n\nBase directory: /s/plotting\n\nBody."
        );
        let more = about(json!({ "allowed_tools": ["a", "b"], "argument_hint": "<file>", "description": null }));
        assert_eq!(
            loaded(&more, "Body.", None, false),
            "# Skill: plotting (no description)\n\nBase directory: /s/plotting\n\nBody.\n\nTools to work with: a, b\n\n\
             It wants arguments: <file>. Take them from what the user said, and ask where they are missing."
        );
        assert!(!loaded(&more, "Body.", Some("x"), true).contains("需要参数"));
    }

    #[test]
    fn a_skill_that_is_loaded_already_is_not_said_again() {
        let again = about(json!({ "already_loaded": true }));
        assert!(loaded(&again, "Body.", Some("M 31"), true).ends_with("本次的参数：M 31"));
        assert!(!loaded(&again, "Body.", None, false).contains("Body"));
    }

    #[test]
    fn the_answer_of_a_fork_in_both_languages() {
        let fork = about(
            json!({ "context": "fork", "execution_mode": "subagent", "reason": "done", "activity": ["read_file a"] }),
        );
        assert_eq!(
            loaded(&fork, "Done.", None, true),
            "[子代理执行结果 - 技能: plotting]\nDone.\n\n过程：\n- read_file a"
        );
        let statistics = json!({ "error": "no model", "notes": ["Read is no tool here"] });
        let failed = about(json!({ "context": "fork", "reason": "failed", "statistics": statistics }));
        assert_eq!(
            loaded(&failed, " ", None, false),
            "[Subagent result - skill: plotting]\nThe agent gave no answer.\n\n(ended by: failed: no model)\n\n(Read is no tool here)"
        );
        let cut = about(json!({ "context": "fork", "reason": "step-limit" }));
        assert_eq!(
            loaded(&cut, "Half.", None, false),
            "[Subagent result - skill: plotting]\nHalf.\n\n(ended by: step-limit)"
        );
        assert_eq!(fork.metadata()["execution_mode"], "subagent");
    }
}
