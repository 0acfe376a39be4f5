//! The block that recalls a task list which is not finished (SPEC 1.14).

use super::{Texts, reminder};

/// A task, as the block shows it.
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

/// The block, as a reminder.
pub fn recovery(texts: &Texts, tasks: &[TaskLine<'_>]) -> String {
    let (depends, assigned) = match texts.language() {
        super::Language::Zh => ("依赖", "指派"),
        super::Language::En => ("after", "assigned to"),
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
    reminder(&texts.fill("task-recovery", &[("tasks", &lines.collect::<Vec<_>>().join("\n"))]))
}
