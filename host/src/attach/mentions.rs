//! `@path` in a prompt. Which mentions are files is not known here; each is given as the texts it may mean, the longest first.

/// Characters that open what a mention may stand in.
const OPENING: &str = "([{<\"'`（《「『“‘【";
/// Characters that end a sentence or close something, and seldom a name.
const CLOSING: &str = ".,;:!?)]}>\"'`，。；：！？、）》」』”’】";

/// The mentions of a prompt in order. `@"two words.txt"` may have spaces; an address such as `a@b.org` is none.
pub fn mentions(prompt: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (at, _) in prompt.match_indices('@') {
        let before = prompt[..at].chars().next_back();
        if before.is_some_and(|c| c.is_ascii() && !c.is_whitespace() && !OPENING.contains(c)) {
            continue;
        }
        let rest = &prompt[at + 1..];
        if let Some((quoted, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            if !quoted.is_empty() && !quoted.contains('\n') {
                found.push(vec![quoted]);
            }
            continue;
        }
        let whole = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let mut readings = vec![whole];
        let bare = whole.trim_end_matches(|c| CLOSING.contains(c));
        // In Chinese and Japanese the sentence goes on without a space.
        let latin = whole.find(|c: char| !c.is_ascii()).map_or(whole, |end| &whole[..end]);
        let latin = latin.trim_end_matches(|c| CLOSING.contains(c));
        for reading in [bare, latin] {
            if !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        readings.retain(|reading| !reading.is_empty());
        if !readings.is_empty() {
            found.push(readings);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::mentions;
    use proptest::prelude::*;

    #[test]
    fn a_mention_is_a_path_and_an_address_is_none() {
        assert_eq!(mentions("look at @a/b.md, please"), [vec!["a/b.md,", "a/b.md"]]);
        assert_eq!(mentions("(@a.md) \"@b.md\""), [vec!["a.md)", "a.md"], vec!["b.md\"", "b.md"]]);
        assert_eq!(mentions("@\"two words.txt\" @x"), [vec!["two words.txt"], vec!["x"]]);
        assert_eq!(
            mentions("看@图/a.png里的星系和@a.png里的"),
            [vec!["图/a.png里的星系和@a.png里的"], vec!["a.png里的", "a.png"]]
        );
        assert_eq!(mentions("看 @红移.md。"), [vec!["红移.md。", "红移.md"]]);
        for none in ["me@example.org", "a @ b", "@", "x@@", "@\"\" ", "@ a"] {
            assert!(mentions(none).is_empty(), "{none}: {:?}", mentions(none));
        }
    }

    proptest! {
        #[test]
        fn every_reading_is_a_part_of_the_prompt(prompt in "(\\PC|@|\"| |\n|。){0,40}") {
            for reading in mentions(&prompt).iter().flatten() {
                let part = format!("@{reading}");
                let quoted = format!("@\"{reading}\"");
                prop_assert!(!reading.is_empty() && (prompt.contains(&part) || prompt.contains(&quoted)));
            }
        }
    }
}
