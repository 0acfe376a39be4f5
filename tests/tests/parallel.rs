//! Calls of one step: those that change nothing run side by side, others in order, and results keep the calls' order.

use astrarium::event::Event;
use astrarium::transcript::Block;
use astrarium_tests::place::{Place, Turn, play};

fn ended(turn: &Turn) -> Vec<&str> {
    let finished = turn.events.iter().filter_map(|event| match event {
        Event::CallFinished(finished) => Some(finished.id.as_str()),
        _ => None,
    });
    finished.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_calls_run_side_by_side_and_results_keep_the_calls_order() {
    let place = Place::bare();
    place.plugin("versioned-a");
    let host = place.host().await;
    let script = "
name: p
steps:
- calls:
  - { tool: version, input: { wait_ms: 1200 } }
  - { tool: version, input: { wait_ms: 600 } }
  - { tool: version, input: {} }
- say: done
";
    let (session, turn) = play(&host, script, "q", 5).await;
    assert_eq!(ended(&turn), ["call_1_3", "call_1_2", "call_1_1"], "the shorter ones ended while the longest ran");
    let results: Vec<&str> = session.messages()[2]
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["call_1_1", "call_1_2", "call_1_3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_may_change_something_run_in_order() {
    let place = Place::bare();
    place
        .plugin("hostile")
        .plugin("versioned-a")
        .config("grants:\n- { plugin: hostile, fs: [{ path: workspace, mode: rw }] }\n");
    let host = place.host().await;
    let script = "
name: p
steps:
- calls:
  - { tool: version, input: {} }
  - { tool: wait, input: { ms: 600, version: slow } }
  - { tool: wait, input: { ms: 0, version: quick } }
  - { tool: version, input: {} }
- say: done
";
    let (_, turn) = play(&host, script, "q", 5).await;
    assert_eq!(ended(&turn), ["call_1_1", "call_1_2", "call_1_3", "call_1_4"]);
    assert_eq!(turn.outputs("wait"), ["slow", "quick"]);
}
