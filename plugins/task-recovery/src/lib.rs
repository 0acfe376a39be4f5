//! When a session starts with unfinished tasks: whether the host recalls them, and a word on what was cut off midway.
//!
//! The list itself is the host's to show; this adds what the list does not say: a task that was in progress when the last run
//! ended may be half done.

use astrarium_sdk::hooks::{SessionStart, SessionStartAnswer, SessionStartEvent};
use astrarium_sdk::host::tasks::{self, Status, Task};
use astrarium_sdk::{Context, Error, config, hooks};

struct TaskRecovery;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    recall: Recall,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Recall {
    Always,
    Resumed,
    Never,
}

impl SessionStart for TaskRecovery {
    fn handle(ctx: &Context, event: SessionStartEvent) -> Result<SessionStartAnswer, Error> {
        if event.open_tasks == 0 {
            return Ok(SessionStartAnswer::default());
        }
        let recall = config::<Config>()?.recall;
        if recall == Recall::Never || (recall == Recall::Resumed && !event.resumed) {
            return Ok(SessionStartAnswer { task_recovery: false, ..SessionStartAnswer::default() });
        }
        let context = if event.resumed { cut_off(&tasks::get()?, ctx.language.starts_with("zh")) } else { None };
        Ok(SessionStartAnswer { additional_context: context, ..SessionStartAnswer::default() })
    }
}

hooks! { session_start: TaskRecovery }

/// Tasks that were in progress when the last run ended; none when there were none.
fn cut_off(tasks: &[Task], chinese: bool) -> Option<String> {
    let under_way: Vec<&str> =
        tasks.iter().filter(|task| task.status == Status::InProgress).map(|task| task.id.as_str()).collect();
    if under_way.is_empty() {
        return None;
    }
    let ids = under_way.join(", ");
    Some(match chinese {
        true => format!("上次运行结束时仍在进行的任务：{ids}。它们可能只完成了一半，继续之前请先确认实际状态。"),
        false => format!(
            "Still in progress when the last run ended: {ids}. They may be half done; look at what is there before you go on."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: Status) -> Task {
        Task { id: id.into(), content: "c".into(), status, depends_on: Vec::new(), assignee: None }
    }

    #[test]
    fn only_what_was_under_way_is_named() {
        let tasks = [task("a", Status::Completed), task("b", Status::InProgress), task("c", Status::Pending)];
        let text = cut_off(&tasks, false).unwrap();
        assert!(text.contains(": b.") && text.contains("half done"), "{text}");
        assert!(cut_off(&tasks, true).unwrap().contains("：b。"));
        assert_eq!(cut_off(&tasks[2..], false), None);
    }
}
