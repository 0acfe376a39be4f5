//! The assembler's rules, one a test.

use super::*;

fn segment(name: &str, order: i32, text: &str) -> Segment {
    Segment {
        name: name.into(),
        order,
        stability: Stability::Session,
        rank: 1,
        source: "built in".into(),
        text: text.into(),
    }
}

fn names(segments: &[Segment]) -> Vec<&str> {
    segments.iter().map(|segment| segment.name.as_str()).collect()
}

fn all(segments: Vec<Segment>) -> Assembly {
    assemble(segments, u64::MAX, |text| text.len() as u64)
}

#[test]
fn segments_are_sorted_by_order_and_equal_orders_keep_their_place() {
    let out = all(vec![segment("c", 20, "c"), segment("a", 0, "a"), segment("b", 20, "b"), segment("d", -5, "d")]);
    assert_eq!(names(&out.segments), ["d", "a", "c", "b"]);
}

#[test]
fn blank_segments_are_left_out_and_all_blank_is_no_prompt() {
    assert_eq!(all(vec![segment("a", 0, " \n"), segment("b", 1, "")]), Assembly::default());
    assert_eq!(names(&all(vec![segment("a", 0, " \n"), segment("b", 1, "x")]).segments), ["b"]);
}

#[test]
fn a_name_registered_again_replaces_the_earlier_one_even_by_a_blank_one() {
    let out = all(vec![segment("a", 0, "old"), segment("a", 50, "new"), segment("b", 10, "b")]);
    assert_eq!(names(&out.segments), ["b", "a"]);
    assert_eq!(out.segments[1].text, "new");
    assert!(all(vec![segment("a", 0, "old"), segment("a", 0, "")]).segments.is_empty());
}

#[test]
fn a_segment_of_the_turn_never_stands_in_the_system_prompt() {
    let volatile = Segment { stability: Stability::Turn("counts".into()), ..segment("v", 0, "v") };
    let out = all(vec![volatile, segment("a", 10, "a")]);
    assert_eq!((names(&out.segments), names(&out.turn)), (vec!["a"], vec!["v"]));
}

#[test]
fn what_is_over_the_budget_is_dropped_by_rank_later_ones_first_and_named() {
    let ranked = |name: &str, rank: u8| Segment { rank, ..segment(name, 0, "0123456789") };
    let segments = vec![ranked("must", 0), ranked("low", 1), ranked("high", 9), ranked("low2", 1)];
    let kept = |budget| names(&assemble(segments.clone(), budget, |text| text.len() as u64).segments).join(" ");
    assert_eq!(kept(40), "must low high low2");
    assert_eq!(kept(39), "must low low2");
    assert_eq!(kept(20), "must low");
    assert_eq!(kept(0), "must", "rank 0 stays whatever the budget");
    let out = assemble(segments.clone(), 20, |text| text.len() as u64);
    let dropped: Vec<_> = out.dropped.iter().map(|dropped| (dropped.name.as_str(), dropped.tokens)).collect();
    assert_eq!(dropped, [("high", 10), ("low2", 10)]);
}

#[test]
fn ten_megabytes_are_cut_to_a_segment_on_a_character() {
    let out = all(vec![segment("huge", 0, &"星".repeat(4 << 20))]);
    assert!(out.segments[0].text.len() <= SEGMENT_BYTES && out.segments[0].text.ends_with('星'));
    assert_eq!(out.dropped[0].name, "huge");
}
