//! Standing instructions in what a user wrote: the sentences that hold for more than the next answer.
//!
//! A guess by cue words, and on purpose a generous one: a sentence too many costs a line after a compaction, one too few
//! is the complaint that an agent forgets what it was told.

/// Words that make a sentence a standing instruction, in lower case.
const CUES: [&str; 58] = [
    "always",
    "never",
    "from now on",
    "every time",
    "each time",
    "whenever",
    "must",
    "do not",
    "don't",
    "don’t",
    "make sure",
    "please use",
    "remember",
    "prefer",
    "at all times",
    "in future",
    "in the future",
    "only use",
    "as a rule",
    "keep in mind",
    "under no circumstances",
    "without asking",
    "ask me before",
    "answer in",
    "reply in",
    "以后",
    "从现在",
    "从今",
    "今后",
    "总是",
    "始终",
    "永远",
    "一律",
    "每次",
    "务必",
    "必须",
    "不要",
    "不得",
    "不能",
    "请勿",
    "禁止",
    "记住",
    "切勿",
    "只用",
    "只能",
    "一定要",
    "都请",
    "都要",
    "请用",
    "请使用",
    "必ず",
    "今後",
    "常に",
    "しないで",
    "ください。",
    "항상",
    "반드시",
    "하지 마",
];

/// Characters of a sentence past which it is a text that was pasted, not an instruction.
const LONG: usize = 400;

/// The standing instructions in `text`, word for word, in order.
pub fn standing(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            for sentence in sentences(line) {
                let lower = sentence.to_lowercase();
                let cued = CUES.iter().any(|cue| has(&lower, cue));
                if cued && sentence.chars().count() <= LONG && !found.iter().any(|other| other == sentence) {
                    found.push(sentence.to_owned());
                }
            }
        }
    }
    found
}

/// Whether `cue` stands in `text`; one of ASCII letters only as whole words, so that `must` is not in `mustard`.
fn has(text: &str, cue: &str) -> bool {
    text.match_indices(cue).any(|(at, _)| {
        let ascii = cue.is_ascii();
        let before = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let after = text[at + cue.len()..].chars().next().is_some_and(char::is_alphanumeric);
        !ascii || (!before && !after)
    })
}

/// The sentences of a line. A full stop ends one only before a space or the end, as not in `file.rs`.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut starts = vec![0];
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' | ';' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            starts.push(at + c.len_utf8());
        }
    }
    starts.push(line.len());
    let pairs: Vec<_> = starts.windows(2).map(|pair| line[pair[0]..pair[1]].trim()).collect();
    pairs.into_iter().filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&standing(text).join(" | "));
    }

    #[test]
    fn what_holds_for_longer_is_told_from_what_is_asked_now() {
        check(
            "Read src/main.rs. Always answer in French! Is mustard yellow? Never push to main; then stop.",
            expect!["Always answer in French! | Never push to main;"],
        );
        check("读一下论文。以后所有回答都用中文，不要用表格。谢谢", expect!["以后所有回答都用中文，不要用表格。"]);
        check("表を作って。必ずコピーを作ってください。", expect!["必ずコピーを作ってください。"]);
        check("What is the redshift of M87?", expect![""]);
    }

    #[test]
    fn code_pasted_text_and_repetitions_are_none() {
        check("```\n// never do this\n```\nUse tabs.", expect![""]);
        check(&format!("always {}", "long ".repeat(100)), expect![""]);
        check("Never guess.\nNever guess.", expect!["Never guess."]);
    }
}
