//! A document as a tree that keeps how each value was spelled and where it stands, for files whose authors must be told.
//!
//! Reading into Rust types loses that `1.10` is not 1.1 and on which line it was written. The tree is bounded in depth and
//! in bytes, aliases included, so that a few lines cannot become gigabytes.

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, options};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::Range;

/// Collections inside collections. Frontmatter needs three.
const DEPTH: usize = 32;

/// Bytes of all nodes, each counted with its text and [`FRAME`] beside it; copies made for aliases count again.
const BYTES: usize = 1 << 20;

/// What a node without text counts for.
const FRAME: usize = 16;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Line of its first character, from 1.
    pub line: usize,
    /// Bytes of the source that it covers; an alias covers its own place and not what it stands for.
    pub span: Range<usize>,
    /// What it and all below it count for.
    bytes: usize,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A scalar, with its escapes and folds resolved and nothing else.
    Scalar {
        /// The text.
        text: String,
        /// Written without quotes, so that `true` is no word and a missing value is nothing.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the text; a key may occur twice.
    Map(Vec<(Node, Node)>),
}

/// A document and what in it goes beyond plain block YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Its one value; none where there is nothing but comments.
    pub root: Option<Node>,
    /// Lines with flow collections, anchors, aliases, tags or a second document, each with the word for it.
    pub beyond: Vec<(usize, &'static str)>,
}

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Reads a document.
pub fn read(text: &str) -> Result<Tree, Mistake> {
    let options = options! { emit_comments: false, block_nesting_limit: DEPTH, flow_nesting_limit: DEPTH };
    let mut building = Building { bytes_left: BYTES, ..Building::default() };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| mistake(&error))?;
        building.take(event, span)?;
    }
    Ok(Tree { root: building.root, beyond: building.beyond })
}

fn mistake(error: &ScanError) -> Mistake {
    Mistake { line: error.marker().line(), reason: error.info() }
}

/// Collections that are open, and what has been finished.
#[derive(Default)]
struct Building {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    beyond: Vec<(usize, &'static str)>,
    bytes_left: usize,
}

struct Open {
    is_map: bool,
    items: Vec<Node>,
    anchor: usize,
    line: usize,
    start: usize,
}

impl Building {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let line = span.start.line();
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.note(line, anchor, tag.is_some(), false);
                let plain = style == ScalarStyle::Plain && tag.is_none();
                // The parser writes a value that is not there as `~`.
                let text = if plain && range.is_empty() { String::new() } else { text.into_owned() };
                let bytes = FRAME + text.len();
                let node = Node { kind: Kind::Scalar { text, plain }, line, span: range, bytes };
                self.finish(node, anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.note(line, anchor, tag.is_some(), style == StructureStyle::Flow);
                self.begin(false, anchor, line, range.start)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.note(line, anchor, tag.is_some(), style == StructureStyle::Flow);
                self.begin(true, anchor, line, range.start)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open, range.end),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                self.beyond.push((line, "an alias"));
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(Mistake { line, reason: "an alias stands inside of what it names".into() });
                };
                // Judged before it is copied: the copies are the bomb.
                if target.bytes > self.bytes_left {
                    return Err(too_much(line));
                }
                let node = Node { line, span: range, ..target.clone() };
                self.finish(node, 0)
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                self.beyond.push((line, "a second document"));
                Err(Mistake { line, reason: "a second document begins".into() })
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, line: usize, anchor: usize, tag: bool, flow: bool) {
        let found = [(anchor != 0, "an anchor"), (tag, "a tag"), (flow, "a collection in brackets")];
        self.beyond.extend(found.into_iter().filter(|(found, _)| *found).map(|(_, word)| (line, word)));
    }

    fn begin(&mut self, is_map: bool, anchor: usize, line: usize, start: usize) -> Result<(), Mistake> {
        if self.open.len() >= DEPTH {
            return Err(Mistake { line, reason: format!("collections lie more than {DEPTH} deep") });
        }
        self.open.push(Open { is_map, items: Vec::new(), anchor, line, start });
        Ok(())
    }

    fn close(&mut self, open: Open, end: usize) -> Result<(), Mistake> {
        let Open { is_map, items, anchor, line, start } = open;
        let bytes = FRAME + items.iter().map(|item| item.bytes).sum::<usize>();
        // A block collection is said to end where the next thing begins.
        let last = items.last().map_or(start, |item| item.span.end);
        let kind = match is_map {
            false => Kind::List(items),
            true => {
                let mut items = items.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Kind::Map(pairs)
            }
        };
        let node = Node { kind, line, span: start..end.max(last), bytes };
        self.finish_counted(node, anchor, FRAME)
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Mistake> {
        let bytes = node.bytes;
        self.finish_counted(node, anchor, bytes)
    }

    fn finish_counted(&mut self, node: Node, anchor: usize, bytes: usize) -> Result<(), Mistake> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| too_much(node.line))?;
        if anchor != 0 {
            // The kept copy counts as well.
            self.bytes_left = self.bytes_left.checked_sub(node.bytes).ok_or_else(|| too_much(node.line))?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}

fn too_much(line: usize) -> Mistake {
    Mistake { line, reason: format!("with its aliases filled in it is larger than {BYTES} bytes") }
}

impl Node {
    /// The text of a scalar; none for a collection and for a value that is not there.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// Whether nothing was written, or `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// As JSON, plain scalars by YAML's core schema. Keys that are no scalars are written as JSON texts.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar { .. } if self.is_null() => Value::Null,
            Kind::Scalar { text, plain: false } => Value::from(text.as_str()),
            Kind::Scalar { text, plain: true } => plain_value(text),
            Kind::List(items) => items.iter().map(Node::to_json).collect(),
            Kind::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| (key.key(), value.to_json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// As the key of a mapping: a scalar's text, and JSON for what is none.
    pub fn key(&self) -> String {
        match &self.kind {
            Kind::Scalar { text, .. } => text.clone(),
            _ => self.to_json().to_string(),
        }
    }
}

fn plain_value(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && text.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'-' | b'+' | b'.' | b'e' | b'E'));
    let number = numeric.then(|| text.trim_start_matches('+')).and_then(|digits| {
        digits.parse::<i64>().map(Value::from).ok().or_else(|| {
            let number = digits.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            number.map(Value::Number)
        })
    });
    number.unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&match read(text) {
            Ok(tree) => {
                let root = tree.root.map(|root| root.to_json().to_string()).unwrap_or_default();
                let beyond: Vec<String> = tree.beyond.iter().map(|(line, word)| format!("{line}: {word}")).collect();
                format!("{root} [{}]", beyond.join(", "))
            }
            Err(mistake) => format!("line {}: {}", mistake.line, mistake.reason),
        });
    }

    #[test]
    fn plain_words_have_types_and_quoted_ones_are_texts() {
        check(
            "a: 1\nb: '1'\nc: true\nd:\ne: 1.5\nf: [x, ~]\n",
            expect![[r#"{"a":1,"b":"1","c":true,"d":null,"e":1.5,"f":["x",null]} [6: a collection in brackets]"#]],
        );
    }

    #[test]
    fn the_spelling_of_a_number_is_kept() {
        let tree = read("version: 1.10\n").unwrap();
        let Kind::Map(pairs) = tree.root.unwrap().kind else { panic!("it is a mapping") };
        assert_eq!(pairs[0].1.text(), Some("1.10"));
        assert_eq!(&"version: 1.10\n"[pairs[0].1.span.clone()], "1.10");
    }

    #[test]
    fn an_alias_is_filled_in_and_a_bomb_of_them_is_not() {
        check(
            "a: &x [1]\nb: *x\n",
            expect![[r#"{"a":[1],"b":[1]} [1: an anchor, 1: a collection in brackets, 2: an alias]"#]],
        );
        let mut bomb = String::from("a0: &a0 [xxxxxxxxxxxxxxxx]\n");
        for n in 1..40 {
            bomb.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", ")));
        }
        let mistake = read(&bomb).unwrap_err();
        assert!(mistake.reason.contains("1048576 bytes"), "{mistake:?}");
    }

    #[test]
    fn deep_nesting_is_refused_with_its_line() {
        assert_eq!(read(&format!("a:\n  {}", "[".repeat(100_000))).unwrap_err().line, 2);
        let deep: String = (0..10_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_second_document_is_refused() {
        check("a: 1\n---\nb: 2\n", expect!["line 2: a second document begins"]);
    }

    #[test]
    fn mistakes_have_their_line() {
        check("a: 1\nb: c: d\n", expect!["line 2: mapping values are not allowed in this context"]);
    }
}
