//! Rules for native programs: which, with which arguments, on which files, and whether they reach a network.

use super::{FsRule, Root};
use serde::{Deserialize, Serialize};

/// A native program and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct ProcessRule {
    /// A name, looked for in the system's own folders, or an absolute path.
    pub program: String,
    /// Patterns of its arguments, one for each, in order: `*` stands for any text, `?` for one character, and `...` as the
    /// last for any more arguments. None at all allows any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Folders that it may touch beside the system's own, which it reads; the first is where it runs.
    pub fs: Vec<FsRule>,
    /// Whether it may open network connections.
    #[serde(skip_serializing_if = "super::is_false")]
    pub network: bool,
    /// Variables of the host's environment that it sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Wall time in milliseconds; at most `limits: process_ms`, its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A rule as it is written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    program: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    fs: Vec<FsRule>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    env: Vec<String>,
    timeout_ms: Option<u64>,
}

/// Stands for any more arguments.
const MORE: &str = "...";

impl TryFrom<Written> for ProcessRule {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { program, arguments, fs, network, env, timeout_ms } = written;
        let is_name = !program.is_empty() && !program.contains(['/', '\0']) && program != "." && program != "..";
        if !is_name && !super::is_plain(program.as_ref()) {
            return Err(format!("program: {program:?} is neither a name nor an absolute path without . and .."));
        }
        if arguments.iter().rev().skip(1).any(|pattern| pattern == MORE) {
            return Err(format!("arguments: {MORE} stands for all that follow, so it comes last"));
        }
        if fs.is_empty() {
            return Err(
                "fs: names no folder; name the one where the program runs, as in fs: [{ path: workspace, mode: rw }]"
                    .into(),
            );
        }
        if let Some(path) = fs.iter().find_map(|rule| match &rule.path {
            Root::Folder(path) if !super::is_plain(path) => Some(path),
            _ => None,
        }) {
            return Err(format!("fs: {} is not absolute, or has . or .. in it; write the whole path", path.display()));
        }
        if let Some(name) = env.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("env: {name:?} is no name of a variable"));
        }
        if timeout_ms == Some(0) {
            return Err("timeout_ms: must be at least 1; leave it out for the limit's own value".into());
        }
        Ok(Self { program, arguments, fs, network, env, timeout_ms })
    }
}

impl ProcessRule {
    /// Whether it allows these arguments.
    pub fn allows(&self, arguments: &[String]) -> bool {
        if self.arguments.is_empty() {
            return true;
        }
        let (patterns, more) = self.patterns();
        let count = if more { patterns.len() <= arguments.len() } else { patterns.len() == arguments.len() };
        count && patterns.iter().zip(arguments).all(|(pattern, argument)| matches(pattern, argument))
    }

    /// The patterns, and whether more arguments may follow.
    fn patterns(&self) -> (&[String], bool) {
        match self.arguments.split_last() {
            Some((last, patterns)) if last == MORE => (patterns, true),
            _ => (&self.arguments, false),
        }
    }

    /// Whether every list of arguments that `other` allows is allowed. It may say no where the answer is yes, never the
    /// other way round.
    fn allows_all_of(&self, other: &ProcessRule) -> bool {
        if self.arguments.is_empty() || other.arguments.is_empty() {
            return self.arguments.is_empty();
        }
        let ((wide, more), (narrow, open)) = (self.patterns(), other.patterns());
        let count = if more { wide.len() <= narrow.len() } else { !open && wide.len() == narrow.len() };
        count && wide.iter().zip(narrow).all(|(wide, narrow)| includes(wide, narrow))
    }

    /// What is left of `self`, asked for, under `granted`; none when they share no program.
    pub fn meet(&self, granted: &ProcessRule) -> Option<ProcessRule> {
        let arguments = match (granted.allows_all_of(self), self.allows_all_of(granted)) {
            (true, _) => &self.arguments,
            (false, true) => &granted.arguments,
            // Two patterns that overlap in part: nothing, rather than too much.
            (false, false) => return None,
        };
        let fs = super::meet_fs(&self.fs, &granted.fs);
        (self.program == granted.program && !fs.is_empty()).then(|| ProcessRule {
            program: self.program.clone(),
            arguments: arguments.clone(),
            fs,
            network: self.network && granted.network,
            env: super::both(&self.env, &granted.env),
            timeout_ms: self.timeout_ms.into_iter().chain(granted.timeout_ms).min(),
        })
    }

    /// Whether one of `rules` allows all that `self` asks for, its time aside.
    pub fn is_covered(&self, rules: &[ProcessRule]) -> bool {
        rules.iter().any(|rule| {
            rule.program == self.program
                && rule.allows_all_of(self)
                && super::meet_fs(&self.fs, &rule.fs) == self.fs
                && (rule.network || !self.network)
                && self.env.iter().all(|name| rule.env.contains(name))
        })
    }
}

/// Whether a pattern names a text. Linear but for the way back to the last star, as shells do it.
fn matches(pattern: &str, text: &str) -> bool {
    compare(pattern, text, |pattern, c| pattern == '?' || pattern == c)
}

/// Whether a pattern names every text that another one names: a star is only matched by a star.
fn includes(wide: &str, narrow: &str) -> bool {
    compare(wide, narrow, |wide, narrow| narrow != '*' && (wide == '?' || wide == narrow))
}

fn compare(pattern: &str, text: &str, one: impl Fn(char, char) -> bool) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(c) if one(*c, text[seen]) => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(yaml: &str) -> ProcessRule {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn git(arguments: &str) -> ProcessRule {
        rule(&format!("{{ program: git, arguments: {arguments}, fs: [{{ path: workspace, mode: ro }}] }}"))
    }

    fn allows(patterns: &str, arguments: &[&str]) -> bool {
        git(patterns).allows(&arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_match_one_by_one() {
        assert!(allows("[]", &["anything", "at all"]));
        assert!(allows("[log, '--max-count=*', ...]", &["log", "--max-count=5", "--", "x"]));
        assert!(allows("[log, ...]", &["log"]));
        assert!(!allows("[log, ...]", &["logs"]));
        assert!(!allows("[log]", &["log", "--output=/etc/passwd"]));
        assert!(!allows("[log, '*']", &["log"]));
        assert!(allows("['-c', '*']", &["-c", "a\nb; c"]), "a star is any text, lines too");
        assert!(!allows("['??']", &["星"]) && allows("['??']", &["星系"]));
    }

    #[test]
    fn what_is_wrong_in_a_rule_is_said() {
        let wrong = |yaml: &str, words: &str| {
            let error = serde_saphyr::from_str::<ProcessRule>(yaml).unwrap_err().to_string();
            assert!(error.contains(words), "{yaml}: {error}");
        };
        wrong("{ program: '', fs: [{ path: workspace, mode: ro }] }", "neither a name");
        wrong("{ program: bin/x, fs: [{ path: workspace, mode: ro }] }", "neither a name");
        wrong("{ program: /usr/../x, fs: [{ path: workspace, mode: ro }] }", "neither a name");
        wrong("{ program: git }", "names no folder");
        wrong("{ program: git, fs: [{ path: data, mode: ro }] }", "nor an absolute folder");
        wrong("{ program: git, fs: [{ path: /data/.., mode: ro }] }", "has . or .. in it");
        wrong("{ program: git, arguments: [..., a], fs: [{ path: workspace, mode: ro }] }", "comes last");
        wrong("{ program: git, env: ['A=B'], fs: [{ path: workspace, mode: ro }] }", "no name of a variable");
        wrong("{ program: git, timeout_ms: 0, fs: [{ path: workspace, mode: ro }] }", "at least 1");
        wrong("{ program: git, shell: true, fs: [{ path: workspace, mode: ro }] }", "unknown field");
    }

    #[test]
    fn a_meet_takes_the_narrower_arguments_folders_and_network() {
        let asked = rule(
            "{ program: git, arguments: [log, ...], network: true, env: [A, B], fs: [{ path: workspace, mode: rw }] }",
        );
        let granted = rule(
            "{ program: git, arguments: ['*', ...], env: [B], timeout_ms: 9, fs: [{ path: workspace, mode: ro }] }",
        );
        let met = asked.meet(&granted).unwrap();
        assert_eq!(
            serde_json::to_string(&met).unwrap(),
            r#"{"program":"git","arguments":["log","..."],"fs":[{"path":"workspace","mode":"ro"}],"env":["B"],"timeout_ms":9}"#
        );
        assert!(!asked.is_covered(std::slice::from_ref(&met)));
        assert!(met.is_covered(&[granted]) && met.is_covered(&[asked]));
        assert!(git("[a, '*']").meet(&git("['*', b]")).is_none(), "what overlaps in part is not guessed at");
        assert!(git("[a]").meet(&rule("{ program: hg, fs: [{ path: workspace, mode: ro }] }")).is_none());
    }

    fn any_pattern() -> impl Strategy<Value = String> {
        "[ab*?]{0,5}"
    }

    proptest! {
        #[test]
        fn a_pattern_matches_as_its_regular_expression_does(pattern in any_pattern(), text in "[ab*?]{0,6}") {
            let expression = regex::escape(&pattern).replace("\\*", ".*").replace("\\?", ".");
            let expected = regex::Regex::new(&format!("(?s)^{expression}$")).unwrap().is_match(&text);
            prop_assert_eq!(matches(&pattern, &text), expected);
        }

        #[test]
        fn what_includes_a_pattern_matches_all_that_it_matches(wide in any_pattern(), narrow in any_pattern(), text in "[ab]{0,6}") {
            if includes(&wide, &narrow) && matches(&narrow, &text) {
                prop_assert!(matches(&wide, &text));
            }
            prop_assert!(includes(&wide, &wide) && includes("*", &wide));
        }

        #[test]
        fn a_meet_allows_nothing_that_one_of_both_refuses(
            asked in prop::collection::vec(prop_oneof![any_pattern(), Just("...".to_owned())], 0..3),
            granted in prop::collection::vec(prop_oneof![any_pattern(), Just("...".to_owned())], 0..3),
            arguments in prop::collection::vec("[ab]{0,3}", 0..4),
        ) {
            let list = |patterns: &[String]| serde_json::to_string(patterns).unwrap();
            let read = |patterns: &[String]| serde_saphyr::from_str::<ProcessRule>(&format!(
                "{{ program: git, arguments: {}, fs: [{{ path: workspace, mode: ro }}] }}", list(patterns)));
            if let (Ok(asked), Ok(granted)) = (read(&asked), read(&granted)) {
                if let Some(met) = asked.meet(&granted) {
                    prop_assert!(!met.allows(&arguments) || (asked.allows(&arguments) && granted.allows(&arguments)));
                }
                if asked.is_covered(std::slice::from_ref(&granted)) {
                    prop_assert_eq!(asked.meet(&granted), Some(asked));
                }
            }
        }
    }
}
