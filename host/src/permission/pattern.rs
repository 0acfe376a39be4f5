//! Patterns of rules: `*` takes any run of characters, `?` one, everything else itself; the whole text must match. And the
//! readings of a text, so that a path is the same however it is written.

use std::collections::BTreeSet;

/// Whether `pattern` takes the whole of `text`, in time that grows with the product of their lengths at most. A wildcard
/// takes only characters that `may` allows.
pub(super) fn matches(pattern: &str, text: &str, may: impl Fn(char) -> bool) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on from when what follows the last `*` does not fit: the `*` takes one more.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some('?') if may(text[t]) => (p, t) = (p + 1, t + 1),
            Some(c) if *c != '?' && *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match &mut star {
                Some((at, taken)) if may(text[*taken]) => {
                    *taken += 1;
                    (p, t) = (*at + 1, *taken);
                }
                _ => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Characters that a shell gives no meaning of its own: a command that a wildcard took must not hold a second one.
pub(super) fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, ';' | '&' | '|' | '`' | '$' | '<' | '>' | '(' | ')' | '{' | '}' | '\u{2028}' | '\u{2029}')
}

/// The text as it stands, and, where it may be a path, the same without `.`, with `..` worked out, and then with and without
/// each of `roots` in front: a rule may name a place in any of these ways.
pub(super) fn readings(text: &str, roots: &[&str]) -> BTreeSet<String> {
    let mut readings = BTreeSet::from([text.to_owned()]);
    let roots = roots.iter().filter(|root| !root.is_empty());
    if text.contains(char::is_whitespace) && !text.contains('/') {
        readings.extend(roots.map(|root| format!("{root}/{text}")));
        return readings;
    }
    let plain = worked_out(text);
    let below = roots.clone().find_map(|root| plain.strip_prefix(root)?.strip_prefix('/'));
    if let Some(relative) = below.or((!plain.starts_with('/')).then_some(plain.as_str())) {
        readings.extend(roots.map(|root| worked_out(&format!("{root}/{relative}"))));
        readings.insert(relative.to_owned());
    }
    readings.insert(plain);
    readings
}

fn worked_out(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let plain = parts.join("/");
    if path.starts_with('/') { format!("/{plain}") } else { plain }
}
