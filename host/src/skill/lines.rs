//! Frontmatter that YAML refuses, read line by line as its author meant it.

/// What a value looks like without YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loose {
    /// A text.
    Text(String),
    /// A list.
    List(Vec<String>),
}

/// Key and rest of a line that begins an entry. Words of prose with a colon behind them are no keys: those begin with a
/// small letter and hold no space.
pub(super) fn key_line(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let quoted =
        key.len() > 2 && (key.starts_with('"') && key.ends_with('"') || key.starts_with('\'') && key.ends_with('\''));
    let key = if quoted { &key[1..key.len() - 1] } else { key };
    let is_word = key.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let first = key.chars().next()?;
    let known = super::fields::known(key).is_some();
    let is_key =
        is_word && (first.is_lowercase() || known) && (rest.is_empty() || rest.starts_with(char::is_whitespace));
    is_key.then_some((key, rest))
}

/// Entries of a frontmatter: key, number of its line from 0, and its lines. Lines before the first key belong to none.
pub(super) fn entries(front: &str) -> Vec<(&str, usize, &str)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut in_block = false;
    let mut at = 0;
    for (number, line) in front.split_inclusive('\n').enumerate() {
        // Below `description: |` a line such as `example: x` is prose, even where it is not indented.
        if let Some((key, rest)) = key_line(line).filter(|(key, _)| !in_block || super::fields::known(key).is_some()) {
            in_block = is_block_header(rest.trim());
            found.push((key, number, at));
        }
        at += line.len();
    }
    let ends: Vec<usize> = found.iter().skip(1).map(|(_, _, at)| *at).chain([front.len()]).collect();
    found.into_iter().zip(ends).map(|((key, number, at), end)| (key, number, &front[at..end])).collect()
}

/// Whether a value is the head of a literal or folded text.
fn is_block_header(value: &str) -> bool {
    let marks = value.strip_prefix(['|', '>']);
    marks.is_some_and(|marks| marks.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-')))
}

/// The value of an entry's lines.
pub(super) fn value(entry: &str) -> Loose {
    let rest = key_line(entry).map_or(entry, |(_, rest)| rest);
    let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let first = first.trim();
    let below: Vec<&str> = below.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    if is_block_header(first) {
        let joint = if first.starts_with('|') { "\n" } else { " " };
        return Loose::Text(below.iter().map(|line| line.trim()).collect::<Vec<_>>().join(joint).trim().to_owned());
    }
    let words: Vec<&str> = below.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    if first.is_empty() && !words.is_empty() && words.iter().all(|line| line.starts_with('-')) {
        return Loose::List(words.iter().map(|line| unquoted(line[1..].trim()).to_owned()).collect());
    }
    let all = [&[first], words.as_slice()].concat().join(" ");
    let all = all.trim();
    if let Some(inner) = all.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items = split_outside(inner, |c| c == ',').into_iter().map(unquoted).filter(|item| !item.is_empty());
        return Loose::List(items.map(str::to_owned).collect());
    }
    Loose::Text(unquoted(all).to_owned())
}

/// The text without quotes around it; a quote that was never closed goes as well.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return match rest.strip_suffix(quote) {
                Some(inner) => inner,
                None if rest.contains(quote) => text,
                None => rest,
            };
        }
    }
    text
}

/// Pieces between separators that stand in no brackets: `Bash(git add:*), Read` are two, `src/{a,b}.rs` is one.
pub(super) fn split_outside(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            c if depth == 0 && is_separator(c) => {
                pieces.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces.into_iter().map(str::trim).filter(|piece| !piece.is_empty()).collect()
}
