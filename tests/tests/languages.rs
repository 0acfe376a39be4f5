//! The contract from other languages: the same small tool and the same gate in JavaScript, by both of its compilers, and
//! in Python, built by the tests' set-up.

use astrarium_tests::place::{Place, play};

const LANGUAGES: [(&str, &str); 3] =
    [("js-tool-qjs", "js-hook-qjs"), ("js-tool-starling", "js-hook-starling"), ("py-tool", "py-hook")];

const SCRIPT: &str = r#"
name: languages
steps:
- calls:
  - { tool: count_words, input: { text: "The Crab nebula, 蟹状星云" } }
  - { tool: count_words, input: { text: "a forbidden word" } }
  - { tool: count_words, input: { texts: "not of the schema" } }
- say: counted
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_and_a_gate_in_each_language_work_like_those_in_rust() {
    for (tool, hook) in LANGUAGES {
        let place = Place::bare();
        place.plugin(tool).plugin(hook).config("language: en\n");
        let host = place.host().await;
        assert!(host.problems.is_empty(), "{tool}: {:?}", host.problems);
        let plugin = host.registry.snapshot().plugin(hook).map(|plugin| plugin.hooks());
        assert_eq!(plugin, Some(vec!["pre-tool-use"]), "{hook}: its exports are its subscription");
        let (_, turn) = play(&host, SCRIPT, "count", 20).await;
        let outputs = turn.outputs("count_words");
        assert_eq!(outputs.len(), 3, "{tool}");
        let counted: serde_json::Value =
            serde_json::from_str(outputs.iter().find(|output| output.starts_with('{')).unwrap_or(&outputs[0]))
                .unwrap_or_else(|error| panic!("{tool}: {error}: {outputs:?}"));
        assert_eq!(counted["words"], 7, "{tool}");
        assert!(outputs.iter().any(|output| output.contains("forbidden word")), "{hook}: {outputs:?}");
        assert!(outputs.iter().any(|output| output.contains("do not fit the tool's schema")), "{tool}: {outputs:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_throws_refuses_the_call() {
    for (tool, hook) in LANGUAGES {
        let place = Place::bare();
        place
            .plugin(tool)
            .plugin(hook)
            .config(&format!("language: en\nplugins: {{ {hook}: {{ config: {{ forbidden: 7 }} }} }}\n"));
        let host = place.host().await;
        let (_, turn) = play(&host, SCRIPT, "count", 20).await;
        assert_eq!(turn.outcome.refused_calls, 2, "{hook}");
        let outputs = turn.outputs("count_words");
        assert!(outputs.iter().filter(|output| output.contains("it cannot judge calls")).count() == 2, "{outputs:?}");
    }
}
