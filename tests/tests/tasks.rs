//! Tasks over processes: they persist with their dependencies and assignees, and are recalled only while unfinished.

use astrarium_tests::place::{Place, Ran};
use serde_json::{Value, json};

/// A script whose first answer writes `tasks`; the others are said by later runs of the same session.
fn script(tasks: &Value, more: &str) -> String {
    let call = json!({ "tool": "todo_write", "input": { "tasks": tasks } });
    format!("name: t\nsteps:\n- calls: [{call}]\n- say: planned\n{more}")
}

fn task(id: &str, status: &str, depends_on: &[&str], assignee: Option<&str>) -> Value {
    json!({ "id": id, "content": format!("do {id}"), "status": status, "depends_on": depends_on, "assignee": assignee })
}

/// Texts of the host's own messages in the session.
fn host_texts(place: &Place, session: &str) -> Vec<String> {
    let shown = place.run(&["session", "show", session, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter().filter(|message| message["origin"] == "host");
    messages.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

fn run(place: &Place, arguments: &[&str]) -> Ran {
    let ran = place.run(arguments);
    assert_eq!(ran.status, 0, "{ran:?}");
    ran
}

#[test]
fn an_unfinished_plan_is_recalled_in_a_second_process_and_a_finished_one_never() {
    let place = Place::new();
    place.config("language: zh\n");
    let plan = [
        task("a", "completed", &[], None),
        task("b", "in_progress", &["a"], Some("lead")),
        task("c", "pending", &["a", "b"], None),
    ];
    let done = json!({ "tool": "todo_write", "input": { "tasks": plan.iter().map(|task| {
        let mut task = task.clone();
        task["status"] = json!("completed");
        task
    }).collect::<Vec<_>>() } });
    let model = place.script(&script(&json!(plan), &format!("- calls: [{done}]\n- say: finished\n- say: later\n")));
    let first = run(&place, &["run", "plan it", "--model", &model, "--output", "json"]);
    let session = first.json()["session"].as_str().unwrap().to_owned();
    let listed = run(&place, &["task", "list", "--json"]).json();
    assert_eq!(listed[1]["depends_on"], json!(["a"]));
    assert_eq!(
        (&listed[1]["assignee"], &listed[1]["status"], &listed[1]["session"]),
        (&json!("lead"), &json!("in_progress"), &json!(session))
    );
    let shown = run(&place, &["task", "list", "--session", &session[..13]]);
    assert_eq!(shown.stdout, "✅ [a] do a\n🔄 [b] do b (依赖: a) (指派: lead)\n⏳ [c] do c (依赖: a, b)\n");

    run(&place, &["run", "go on", "--continue", "--model", &model]);
    let block = "<system-reminder>\n[当前任务状态]\n以下任务计划尚未完成，请从当前状态继续：\n\n✅ [a] do a\n🔄 [b] do b (依赖: a) (指派: lead)\n\
                 ⏳ [c] do c (依赖: a, b)\n\n进度有变化时用 todo_write 更新。\n</system-reminder>";
    let word = "<system-reminder>\n上次运行结束时仍在进行的任务：b。它们可能只完成了一半，继续之前请先确认实际状态。\n</system-reminder>";
    assert_eq!(host_texts(&place, &session), [word, block], "what the plugin task-recovery says, and the block");
    run(&place, &["run", "and now?", "--continue", "--model", &model]);
    assert_eq!(host_texts(&place, &session), [word, block], "a finished list is not recalled");
}

#[test]
fn a_plan_that_makes_no_sense_is_refused_by_name_and_changes_nothing() {
    let place = Place::new();
    place.config("language: en\n");
    let model = place.script(&script(&json!([task("a", "pending", &[], None)]), ""));
    let ran = run(&place, &["run", "x", "--model", &model, "--output", "json"]).json();
    let session = ran["session"].as_str().unwrap();
    for (tasks, words) in [
        (json!([task("a", "pending", &["b"], None), task("b", "pending", &["a"], None)]), "waits for itself"),
        (json!([task("a", "pending", &["zz"], None)]), "depends on zz"),
        (json!([task("a", "pending", &[], None), task("a", "pending", &[], None)]), "stands twice"),
        (json!([task(" ", "pending", &[], None)]), "empty id"),
    ] {
        let input = json!({ "tasks": tasks }).to_string();
        let refused = place.run(&["tool", "call", "todo_write", &input, "--session", session]);
        assert!(refused.status == 1 && refused.stderr.contains(words), "{refused:?}");
    }
    let left = run(&place, &["task", "list", "--json"]).json();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["id"]), (1, &json!("a")));
}

#[test]
fn where_there_is_nothing_it_says_so() {
    let place = Place::bare();
    let ran = run(&place, &["task", "list"]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no session of this workspace"), "{ran:?}");
    assert_eq!(run(&place, &["task", "list", "--json"]).json(), json!([]));
    assert_eq!(place.run(&["task", "list", "--session", "nope"]).status, 2);
}
