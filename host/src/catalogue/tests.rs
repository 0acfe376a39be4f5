//! What is frozen, deferred, announced and found.

use super::*;

fn schema(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn entry<'a>(name: &'a str, built_in: bool, uses: u64, schema: &'a Json) -> Entry<'a> {
    Entry {
        name,
        plugin: "p",
        built_in,
        summary: None,
        description: "Does things. Many.",
        schema,
        deferred: false,
        uses,
        starts_agents: false,
    }
}

fn names(frozen: &Frozen) -> (String, String) {
    let tools: Vec<&str> = frozen.tools.iter().map(|tool| tool.name.as_str()).collect();
    (tools.join(" "), frozen.deferred.join(" "))
}

#[test]
fn built_in_tools_come_first_and_each_part_is_sorted_by_name() {
    let any = schema("{}");
    let entries = [
        entry("zeta", true, 0, &any),
        entry("beta", false, 0, &any),
        entry("alpha", true, 0, &any),
        entry("a", false, 0, &any),
    ];
    let (frozen, _) = freeze(&entries, u64::MAX, |_| 1);
    assert_eq!(names(&frozen), ("alpha zeta a beta".into(), "".into()));
}

#[test]
fn a_catalogue_over_its_budget_defers_external_tools_first_then_the_least_used() {
    let any = schema("{}");
    let entries = [
        entry("call_tool", true, 0, &any),
        entry("tool_search", true, 0, &any),
        entry("often", true, 9, &any),
        entry("seldom", true, 1, &any),
        entry("foreign", false, 99, &any),
        Entry { deferred: true, ..entry("wished", true, 50, &any) },
    ];
    let at = |budget| names(&freeze(&entries, budget, |_| 10).0);
    assert_eq!(at(50), ("call_tool often seldom tool_search foreign".into(), "wished".into()));
    assert_eq!(at(49), ("call_tool often seldom tool_search".into(), "wished foreign".into()));
    assert_eq!(at(30), ("call_tool often tool_search".into(), "seldom wished foreign".into()));
    assert_eq!(at(0), ("call_tool tool_search".into(), "often seldom wished foreign".into()));
}

#[test]
fn only_what_is_new_or_changed_is_news_and_only_once() {
    let (old, new) = (schema("{}"), schema(r#"{"type":"object"}"#));
    let (_, mut told) = freeze(&[entry("a", true, 0, &old), entry("b", true, 0, &old)], 0, |_| 1);
    let now = [entry("a", true, 7, &old), entry("b", true, 0, &new), entry("c", false, 0, &old)];
    let said: Vec<&str> = news(&mut told, &now).iter().map(|entry| entry.name).collect();
    assert_eq!(said, ["b", "c"]);
    assert!(news(&mut told, &now).is_empty());
    // Gone and back again with the same face: no news.
    assert!(news(&mut told, &now[..1]).is_empty() && news(&mut told, &now).is_empty());
    assert_eq!(news(&mut told, &[entry("b", true, 0, &old)]).len(), 1, "changed back is a change");
}

#[test]
fn a_search_finds_by_name_first_and_in_chinese_by_pairs() {
    let any = schema("{}");
    let tool = |name, description| Entry { description, ..entry(name, true, 0, &any) };
    let entries = [
        tool("read_file", "Reads a file of the workspace."),
        tool("file_write", "Writes a file."),
        tool("search_papers", "检索天文文献，返回论文列表。"),
    ];
    let found = |query| search(&entries, query, 5).iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(found("read_file"), ["read_file", "file_write"]);
    assert_eq!(found("write"), ["file_write"]);
    assert_eq!(found("查一下天文文献"), ["search_papers"]);
    assert!(found("telescope").is_empty() && found(" ").is_empty());
    assert_eq!(search(&entries, "file", 1).len(), 1);
}
