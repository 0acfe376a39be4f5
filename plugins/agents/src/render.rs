//! A report as the model reads it: the answer first, then what was done for it. Pure.

use std::fmt::Write as _;

use astrarium_sdk::Error;
use astrarium_sdk::host::agents::Report;
use serde_json::{Map, Value};

/// What an agent took.
pub(crate) struct Statistics {
    /// All that the host says.
    pub(crate) all: Map<String, Value>,
}

impl Statistics {
    pub(crate) fn parse(json: &str) -> Result<Self, Error> {
        Ok(Self { all: serde_json::from_str(json)? })
    }

    fn count(&self, key: &str) -> u64 {
        self.all.get(key).and_then(Value::as_u64).unwrap_or(0)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.all.get(key).and_then(Value::as_str)
    }

    /// Fresh and cached tokens that were sent, and tokens that were answered.
    fn tokens(&self) -> (u64, u64) {
        let of =
            |key: &str| self.all.get("tokens").and_then(|tokens| tokens.get(key)).and_then(Value::as_u64).unwrap_or(0);
        (of("input") + of("cache_read") + of("cache_write"), of("output"))
    }

    /// `read_file ×3, grep_files ×1`.
    fn tools(&self) -> String {
        let tools = self.all.get("tools").and_then(Value::as_object).into_iter().flatten();
        tools.map(|(name, count)| format!("{name} ×{count}")).collect::<Vec<_>>().join(", ")
    }

    fn notes(&self) -> impl Iterator<Item = &str> {
        self.all.get("notes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

/// The answer, why it may not be whole, the activity log and the figures.
pub(crate) fn report(report: &Report, statistics: &Statistics, chinese: bool) -> String {
    let word = |zh: &'static str, en: &'static str| if chinese { zh } else { en };
    let mut text = report.answer.trim().to_owned();
    if text.is_empty() {
        text = word("子代理没有给出答案。", "The agent gave no answer.").into();
    }
    let why = match report.reason.as_str() {
        "failed" => Some(word("子代理失败", "it failed")),
        "cancelled" => Some(word("子代理被取消", "it was cancelled")),
        _ => None,
    };
    if let Some(why) = why {
        let error = statistics.text("error").map(|error| format!(": {error}")).unwrap_or_default();
        let _ = write!(text, "\n\n[{why}{error}]");
    }
    if !report.activity.is_empty() {
        let _ = write!(text, "\n\n{}", word("[活动日志]", "[activity]"));
        for line in &report.activity {
            let _ = write!(text, "\n{line}");
        }
    }
    let (steps, calls, refused) =
        (statistics.count("steps"), statistics.count("tool_calls"), statistics.count("refused_calls"));
    let (sent, answered) = statistics.tokens();
    let tools = statistics.tools();
    let tools = if tools.is_empty() { tools } else { format!(" ({tools})") };
    let _ = if chinese {
        write!(
            text,
            "\n\n[统计：{steps} 步，{calls} 次工具调用{tools}，{refused} 次被拒，发送 {sent} 个 token，回答 {answered} 个]"
        )
    } else {
        write!(
            text,
            "\n\n[statistics: {steps} steps, {calls} tool calls{tools}, {refused} refused, {sent} tokens sent, \
             {answered} answered]"
        )
    };
    for note in statistics.notes() {
        let _ = write!(text, "\n[{note}]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: &str, reason: &str, activity: &[&str], statistics: &str, chinese: bool) -> String {
        let report = Report {
            answer: answer.into(),
            reason: reason.into(),
            activity: activity.iter().map(|line| (*line).into()).collect(),
            statistics: statistics.into(),
        };
        super::report(&report, &Statistics::parse(statistics).unwrap(), chinese)
    }

    const FIGURES: &str = r#"{"steps":2,"tool_calls":3,"refused_calls":1,"tools":{"grep_files":1,"read_file":2},
        "tokens":{"input":10,"cache_read":5,"cache_write":1,"output":7}}"#;

    #[test]
    fn the_answer_comes_first_and_the_figures_last() {
        assert_eq!(
            shown("M31 is near.\n", "done", &["✓ read_file {}"], FIGURES, false),
            "M31 is near.\n\n[activity]\n✓ read_file {}\n\n[statistics: 2 steps, 3 tool calls (grep_files ×1, read_file ×2), \
             1 refused, 16 tokens sent, 7 answered]"
        );
        let zh = shown("近。", "done", &[], FIGURES, true);
        assert!(zh.starts_with("近。\n\n[统计：2 步，3 次工具调用"), "{zh}");
    }

    #[test]
    fn no_answer_says_why() {
        let failed = shown("", "failed", &[], r#"{"error":"no network","notes":["m answers instead: no key"]}"#, false);
        assert!(failed.starts_with("The agent gave no answer.\n\n[it failed: no network]"), "{failed}");
        assert!(failed.ends_with("\n[m answers instead: no key]"), "{failed}");
    }
}
