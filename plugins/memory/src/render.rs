//! The answers in words, in English and in Chinese. Pure.

use astrarium_sdk::host::memory::{Entry, Kind};
use astrarium_sdk::serde_json::Value;

use crate::write::value;

/// Lines of a found entry that are shown.
const PREVIEW: usize = 3;

/// Characters of such a line.
const LINE: usize = 200;

pub(crate) fn saved(slug: &str, supersedes: Option<&str>, chinese: bool) -> String {
    match (chinese, supersedes) {
        (true, None) => format!("已保存为 {slug}"),
        (true, Some(old)) => format!("已保存为 {slug}，取代 {old}（旧条目已归档）"),
        (false, None) => format!("saved as {slug}"),
        (false, Some(old)) => format!("saved as {slug} in place of {old}, which is in the archive"),
    }
}

pub(crate) fn changed(slug: &str, chinese: bool) -> String {
    match chinese {
        true => format!("{slug} 已修改，旧版本已归档"),
        false => format!("{slug} is changed; the version before is in the archive"),
    }
}

pub(crate) fn whole(entry: &Entry, chinese: bool) -> String {
    format!("{}\n\n{}", heading(entry, chinese), entry.content)
}

pub(crate) fn list(found: &[Entry], query: &str, chinese: bool) -> String {
    if found.is_empty() {
        return match chinese {
            true => format!("没有与“{query}”相符的记忆"),
            false => format!("no memory matches {query:?}"),
        };
    }
    let mut text = String::new();
    for entry in found {
        text.push_str(&heading(entry, chinese));
        text.push('\n');
        let mut lines = entry.content.lines().map(str::trim).filter(|line| !line.is_empty());
        for line in lines.by_ref().take(PREVIEW) {
            let cut: String = line.chars().take(LINE).collect();
            let more = if cut.len() < line.len() { "…" } else { "" };
            text.push_str(&format!("  {cut}{more}\n"));
        }
        if lines.next().is_some() {
            text.push_str("  …\n");
        }
    }
    text.push_str(if chinese { "[需要全文时用 memory_read]" } else { "[memory_read reads one whole]" });
    text
}

/// `[type] slug: description`, what took its place, and the day it was written.
fn heading(entry: &Entry, chinese: bool) -> String {
    let mark = match (value(entry, "holds"), value(entry, "superseded_by"), chinese) {
        (Value::Bool(false), Value::String(by), true) => format!(" [已更新→{by}]"),
        (Value::Bool(false), Value::String(by), false) => format!(" [updated→{by}]"),
        (Value::Bool(false), _, true) => " [已更新]".into(),
        (Value::Bool(false), _, false) => " [updated]".into(),
        _ => String::new(),
    };
    let day = entry.updated.get(..10).unwrap_or_default();
    format!("[{}] {}: {}{mark} ({day})", kind(entry.kind, chinese), entry.slug, entry.description)
}

fn kind(kind: Kind, chinese: bool) -> &'static str {
    match (kind, chinese) {
        (Kind::User, true) => "偏好",
        (Kind::Feedback, true) => "反馈",
        (Kind::Project, true) => "项目",
        (Kind::Reference, true) => "参考",
        (Kind::User, false) => "user",
        (Kind::Feedback, false) => "feedback",
        (Kind::Project, false) => "project",
        (Kind::Reference, false) => "reference",
    }
}

#[cfg(test)]
pub(crate) fn sample(slug: &str, holds: bool) -> Entry {
    let by = if holds { "null" } else { "\"b\"" };
    Entry {
        slug: slug.into(),
        kind: Kind::Feedback,
        description: format!("about {slug}"),
        content: "body".into(),
        supersedes: None,
        updated: "2026-01-02T03:04:05.678Z".into(),
        extra: format!(r#"{{"version":"v","holds":{holds},"superseded_by":{by}}}"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_shown_in_both_languages() {
        let long = Entry { content: "1\n\n2\n3\n4".into(), ..sample("a", true) };
        assert_eq!(
            list(&[long, sample("c", false)], "x", false),
            "[feedback] a: about a (2026-01-02)\n  1\n  2\n  3\n  …\n[feedback] c: about c [updated→b] (2026-01-02)\n  body\n\
             [memory_read reads one whole]"
        );
        assert_eq!(whole(&sample("a", false), true), "[反馈] a: about a [已更新→b] (2026-01-02)\n\nbody");
        assert_eq!(list(&[], "红移", true), "没有与“红移”相符的记忆");
        assert_eq!(saved("a", Some("b"), true), "已保存为 a，取代 b（旧条目已归档）");
    }
}
