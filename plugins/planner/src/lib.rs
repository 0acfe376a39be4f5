//! todo_write: the session's task list, replaced as a whole and answered as stored.
//!
//! The host keeps the list and checks it: a repeated id, an unknown dependency or a cycle is refused there, by name.

use std::fmt::Write;

use astrarium_sdk::host::tasks::{self, Status, Task};
use astrarium_sdk::{Context, Error, Output, Tool, tools};

/// Replaces the task list of this session and answers with it as stored.
///
/// Use it for work of three steps and more: write all tasks at once, keep exactly one `in_progress`, and mark each one
/// `completed` as soon as it is done. Send the whole list every time; a task that is left out is removed.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoWrite {
    /// All tasks, in order.
    tasks: Vec<TodoTask>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoTask {
    /// Unique within the list, such as `task-1`.
    id: String,
    /// What is to be done, in one line.
    content: String,
    /// Where it stands.
    status: TodoStatus,
    /// Ids of tasks that must be completed first.
    #[serde(default)]
    depends_on: Vec<String>,
    /// Who does it: a teammate's name, or `lead`.
    assignee: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl Tool for TodoWrite {
    const NAME: &'static str = "todo_write";
    const SUMMARY: Option<&'static str> = Some("Writes the session's task list");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let list: Vec<Task> = self.tasks.into_iter().map(Task::from).collect();
        let stored = tasks::replace(&list)?;
        Ok(render(&stored, ctx.language.starts_with("zh")).into())
    }
}

tools!(TodoWrite);

impl From<TodoTask> for Task {
    fn from(task: TodoTask) -> Self {
        let status = match task.status {
            TodoStatus::Pending => Status::Pending,
            TodoStatus::InProgress => Status::InProgress,
            TodoStatus::Completed => Status::Completed,
        };
        let TodoTask { id, content, depends_on, assignee, .. } = task;
        Self { id, content, status, depends_on, assignee }
    }
}

/// The list in the form of the task recovery block, so that the model sees one form only. Pure.
fn render(tasks: &[Task], chinese: bool) -> String {
    let mut text = String::new();
    for task in tasks {
        let _ = write!(text, "{} [{}] {}", glyph(task.status), task.id, task.content);
        let (depends_on, assignee) = if chinese { ("依赖", "指派") } else { ("depends on", "assigned to") };
        if !task.depends_on.is_empty() {
            let _ = write!(text, " ({depends_on}: {})", task.depends_on.join(", "));
        }
        if let Some(name) = &task.assignee {
            let _ = write!(text, " ({assignee}: {name})");
        }
        text.push('\n');
    }
    let count = |status| tasks.iter().filter(|task| task.status == status).count();
    let (pending, in_progress, completed) =
        (count(Status::Pending), count(Status::InProgress), count(Status::Completed));
    let _ = if chinese {
        write!(text, "[共 {} 项：待办 {pending}，进行中 {in_progress}，已完成 {completed}]", tasks.len())
    } else {
        let noun = if tasks.len() == 1 { "task" } else { "tasks" };
        let total = tasks.len();
        write!(text, "[{total} {noun}: {pending} pending, {in_progress} in progress, {completed} completed]")
    };
    text
}

fn glyph(status: Status) -> char {
    match status {
        Status::Pending => '⏳',
        Status::InProgress => '🔄',
        Status::Completed => '✅',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: Status, depends_on: &[&str], assignee: Option<&str>) -> Task {
        let depends_on = depends_on.iter().map(|id| (*id).into()).collect();
        Task { id: id.into(), content: "look".into(), status, depends_on, assignee: assignee.map(Into::into) }
    }

    #[test]
    fn the_list_is_rendered_in_both_languages() {
        let list = [
            task("a", Status::Completed, &[], None),
            task("b", Status::InProgress, &["a"], Some("lead")),
            task("c", Status::Pending, &["a", "b"], None),
        ];
        assert_eq!(
            render(&list, false),
            "✅ [a] look\n🔄 [b] look (depends on: a) (assigned to: lead)\n⏳ [c] look (depends on: a, b)\n\
             [3 tasks: 1 pending, 1 in progress, 1 completed]"
        );
        assert_eq!(
            render(&list, true),
            "✅ [a] look\n🔄 [b] look (依赖: a) (指派: lead)\n⏳ [c] look (依赖: a, b)\n\
             [共 3 项：待办 1，进行中 1，已完成 1]"
        );
        assert_eq!(render(&[], false), "[0 tasks: 0 pending, 0 in progress, 0 completed]");
    }

    #[test]
    fn arguments_are_read() {
        let input = r#"{"tasks":[{"id":"a","content":"look","status":"in_progress"}]}"#;
        let parsed: TodoWrite = astrarium_sdk::serde_json::from_str(input).unwrap();
        let tasks: Vec<Task> = parsed.tasks.into_iter().map(Task::from).collect();
        assert_eq!(tasks, [task("a", Status::InProgress, &[], None)]);
    }
}
