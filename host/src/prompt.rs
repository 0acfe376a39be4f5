//! The prompt assembler: named, ordered segments become the system prompt. Pure and total.
//!
//! Within a session no byte before the newest message changes, so what changes from step to step never stands here: it
//! reaches the model as a reminder message. Segments that are blank are left out; with none left there is no system
//! prompt at all.

/// A named piece of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Unique name; a later segment of the same name replaces an earlier one.
    pub name: &'static str,
    /// Place; gaps of ten leave room for others.
    pub order: i32,
    /// Text.
    pub text: String,
}

/// A tool, as the tools segment lists it.
#[derive(Debug, Clone, Copy)]
pub struct ToolLine<'a> {
    /// Name.
    pub name: &'a str,
    /// The plugin's own summary, which wins.
    pub summary: Option<&'a str>,
    /// Whole description.
    pub description: &'a str,
}

/// Languages with texts of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Chinese.
    Zh,
    /// English.
    En,
}

/// Characters of a summary that is taken from a description (SPEC 1.5).
const SUMMARY: usize = 80;

/// The segments in their order, blank ones left out; of two with one name the later counts.
pub fn assemble(segments: Vec<Segment>) -> Vec<Segment> {
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match kept.iter_mut().find(|other| other.name == segment.name) {
            Some(other) => *other = segment,
            None => kept.push(segment),
        }
    }
    kept.retain(|segment| !segment.text.trim().is_empty());
    kept.sort_by_key(|segment| segment.order);
    kept
}

/// The built-in segments.
pub fn built_in(language: Language, tools: &[ToolLine<'_>]) -> Vec<Segment> {
    let (identity, principles) = match language {
        Language::Zh => {
            (include_str!("../personas/astro/identity.zh.md"), include_str!("../personas/astro/principles.zh.md"))
        }
        Language::En => {
            (include_str!("../personas/astro/identity.en.md"), include_str!("../personas/astro/principles.en.md"))
        }
    };
    vec![
        Segment { name: "identity", order: 0, text: identity.trim().to_owned() },
        Segment { name: "tools", order: 10, text: tools_segment(language, tools) },
        Segment { name: "principles", order: 40, text: principles.trim().to_owned() },
    ]
}

/// The system context, at the tail (SPEC 1.10).
pub fn environment(language: Language, platform: &str, workspace: &str) -> Segment {
    let text = match language {
        Language::Zh => format!("环境：\n- 平台：{platform}\n- 工作区：{workspace}\n- 文件工具的路径相对于工作区"),
        Language::En => format!(
            "Environment:\n- platform: {platform}\n- workspace: {workspace}\n- file tools take paths relative to the workspace"
        ),
    };
    Segment { name: "environment", order: 90, text }
}

fn tools_segment(language: Language, tools: &[ToolLine<'_>]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut text = match language {
        Language::Zh => "你可以使用以下工具：".to_owned(),
        Language::En => "You can use these tools:".to_owned(),
    };
    for tool in tools {
        let summary = tool.summary.map(str::trim).filter(|summary| !summary.is_empty());
        let summary = summary.map(str::to_owned).unwrap_or_else(|| first_sentence(tool.description));
        text.push_str(&format!("\n- {}: {summary}", tool.name));
    }
    text
}

/// The first sentence, at most 80 characters of it. A `.` ends one only before a space or the end: not in `file.rs`.
pub fn first_sentence(description: &str) -> String {
    let text = description.trim();
    let mut end = text.len();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' | '\r' => {
                end = at;
                break;
            }
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            end = at;
            break;
        }
    }
    text[..end].chars().take(SUMMARY).collect()
}

/// A reminder from the host, as the model is used to see one.
pub fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", text.trim())
}

/// What the model is told when its steps are used up (SPEC 1.15).
pub fn step_limit_nudge(language: Language, steps: u32) -> String {
    reminder(&match language {
        Language::Zh => format!(
            "你已经用完了本轮的 {steps} 步。不要再调用工具，请根据已有信息直接给出最终答案，并说明已达到步数上限、还有哪些没有完成。"
        ),
        Language::En => format!(
            "You have used all {steps} steps of this turn. Call no more tools. Answer now from what you have, say that the step \
             limit was reached, and name what is left undone."
        ),
    })
}

/// A task, as the recovery block shows it.
#[derive(Debug, Clone, Copy)]
pub struct TaskLine<'a> {
    /// Its id.
    pub id: &'a str,
    /// What is to be done.
    pub content: &'a str,
    /// ⏳, 🔄 or ✅.
    pub mark: char,
    /// Ids of tasks that come first.
    pub depends_on: &'a [String],
    /// Who does it.
    pub assignee: Option<&'a str>,
}

/// The block that recalls a task list which is not finished (SPEC 1.14).
pub fn task_recovery(language: Language, tasks: &[TaskLine<'_>]) -> String {
    let (title, lead, close, depends, assigned) = match language {
        Language::Zh => (
            "[当前任务状态]",
            "以下任务计划尚未完成，请从当前状态继续：",
            "进度有变化时用 todo_write 更新。",
            "依赖",
            "指派",
        ),
        Language::En => (
            "[Current task state]",
            "This plan is not finished; go on from where it stands:",
            "Keep it up to date with todo_write.",
            "after",
            "assigned to",
        ),
    };
    let lines = tasks.iter().map(|task| {
        let mut line = format!("{} [{}] {}", task.mark, task.id, task.content);
        if !task.depends_on.is_empty() {
            line.push_str(&format!(" ({depends}: {})", task.depends_on.join(", ")));
        }
        if let Some(assignee) = task.assignee {
            line.push_str(&format!(" ({assigned}: {assignee})"));
        }
        line
    });
    reminder(&format!("{title}\n{lead}\n\n{}\n\n{close}", lines.collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(name: &'static str, order: i32, text: &str) -> Segment {
        Segment { name, order, text: text.into() }
    }

    fn names(segments: &[Segment]) -> Vec<&str> {
        segments.iter().map(|segment| segment.name).collect()
    }

    #[test]
    fn segments_are_sorted_by_order_and_equal_orders_keep_their_place() {
        let out = assemble(vec![segment("c", 20, "c"), segment("a", 0, "a"), segment("b", 20, "b")]);
        assert_eq!(names(&out), ["a", "c", "b"]);
    }

    #[test]
    fn blank_segments_are_left_out() {
        assert!(assemble(vec![segment("a", 0, " \n"), segment("b", 1, "")]).is_empty());
    }

    #[test]
    fn a_name_registered_again_replaces_the_earlier_one() {
        let out = assemble(vec![segment("a", 0, "old"), segment("a", 50, "new"), segment("b", 10, "b")]);
        assert_eq!(names(&out), ["b", "a"]);
        assert_eq!(out[1].text, "new");
    }

    #[test]
    fn the_first_sentence_ends_where_a_reader_says_it_does() {
        assert_eq!(first_sentence("Reads src/main.rs and more. Then stops."), "Reads src/main.rs and more");
        assert_eq!(first_sentence("读取文件。然后停止"), "读取文件");
        assert_eq!(first_sentence("One line\nanother"), "One line");
        assert_eq!(first_sentence(&"星".repeat(100)).chars().count(), 80);
    }
}
