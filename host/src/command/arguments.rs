//! Places for arguments in the body of a command: `$ARGUMENTS` for all of them, `$1` to `$99` for single ones.

/// The body with its places filled in, in one pass: what is put in is never looked at again. `\$` is a `$`. Arguments that the
/// body has no place for are put below it.
pub fn fill(body: &str, arguments: &str) -> String {
    let single = split(arguments);
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut rest = body;
    let mut has_place = false;
    while let Some(at) = rest.find('$') {
        let escaped = rest[..at].ends_with('\\');
        text.push_str(if escaped { &rest[..at - 1] } else { &rest[..at] });
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        if escaped {
            text.push('$');
        } else if let Some(after) = rest.strip_prefix("ARGUMENTS") {
            text.push_str(arguments);
            (rest, has_place) = (after, true);
        } else if let Ok(number @ 1..) = rest[..digits].parse::<usize>() {
            text.push_str(single.get(number - 1).map_or("", String::as_str));
            (rest, has_place) = (&rest[digits..], true);
        } else {
            text.push('$');
        }
    }
    text.push_str(rest);
    if !has_place && !arguments.is_empty() {
        text.push_str(&format!("\n\nARGUMENTS: {arguments}"));
    }
    text
}

/// Words, as a shell would take them apart: what stands in quotes is one. A quote that does not close is a character.
fn split(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        let mut chars = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            if c.is_whitespace() {
                end = at;
                break;
            }
            let inside = &rest[at + c.len_utf8()..];
            match inside.find(c).filter(|_| matches!(c, '"' | '\'')) {
                Some(length) => {
                    word.push_str(&inside[..length]);
                    let after = at + c.len_utf8() + length + c.len_utf8();
                    while chars.clone().next().is_some_and(|(at, _)| at < after) {
                        chars.next();
                    }
                }
                None => word.push(c),
            }
        }
        debug_assert!(end > 0 || first.is_whitespace());
        words.push(word);
        rest = rest[end..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_are_filled_in_once() {
        assert_eq!(fill("a $1, b $2, c $3.", "x \"y z\""), "a x, b y z, c .");
        assert_eq!(fill("all: $ARGUMENTS", "$1 x"), "all: $1 x");
        assert_eq!(fill("$10 $1", "1 2 3 4 5 6 7 8 9 ten"), "ten 1");
        assert_eq!(
            fill(r"costs \$5 and \$ARGUMENTS, $HOME, $", "x"),
            "costs $5 and $ARGUMENTS, $HOME, $\n\nARGUMENTS: x"
        );
        assert_eq!(fill("body", ""), "body");
        assert_eq!(fill("$0", "x"), "$0\n\nARGUMENTS: x");
    }

    #[test]
    fn words_are_taken_apart_as_a_shell_would() {
        assert_eq!(split(r#"  a 'b c' d"e f"g  "#), ["a", "b c", "de fg"]);
        assert_eq!(split(r#"it's "open"#), ["it's", "\"open"]);
        assert_eq!(split("'' x"), ["", "x"]);
        assert_eq!(split("星系 '红 移'"), ["星系", "红 移"]);
        assert!(split("  ").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_filled(body in "(\\PC|\\$[A1-9]|\n){0,60}", arguments in "(\\PC|\"|'|\n){0,60}") {
            let _ = fill(&body, &arguments);
        }
    }
}
