//! Choosing from what a plugin asks for by an operator's words: `kv`, `fs`, `fs:workspace:ro`, `env:LANG`, `http:https://a.org`.

use super::{Capabilities, FsMode, FsRule, Root};
use std::path::Path;

impl Capabilities {
    /// What of this set a word names, or why it names nothing. A word narrows, and never widens.
    pub fn pick(&self, word: &str) -> Result<Capabilities, String> {
        let (kind, rest) = word.split_once(':').map_or((word, None), |(kind, rest)| (kind, Some(rest)));
        let mut picked = Capabilities::default();
        match (kind, rest) {
            ("fs", rest) => picked.fs = folders(&self.fs, rest),
            ("http", rest) => {
                let named = |origin: &str| rest.is_none_or(|rest| rest == origin);
                picked.http = self.http.iter().filter(|rule| named(&rule.origin.to_string())).cloned().collect();
            }
            ("process", rest) => {
                let named = |program: &str| rest.is_none_or(|rest| rest == program);
                picked.process = self.process.iter().filter(|rule| named(&rule.program)).cloned().collect();
            }
            ("env", rest) => {
                picked.env = self.env.iter().filter(|name| rest.is_none_or(|rest| rest == *name)).cloned().collect();
            }
            ("kv", None) => picked.kv = self.kv,
            ("tasks", None) => picked.tasks = self.tasks,
            ("memory", None) => picked.memory = self.memory,
            ("skills", None) => picked.skills = self.skills,
            ("context", None) => picked.context = self.context,
            ("agents", None) => picked.agents = self.agents,
            _ => {
                return Err(format!(
                    "{word:?} names no capability; write fs, http, process, env, kv, tasks, memory, skills, context or \
                     agents, or one of several as in fs:workspace:ro, env:LANG, http:https://example.org"
                ));
            }
        }
        match picked.is_empty() {
            true => Err(format!("{word:?} is not among {self}")),
            false => Ok(picked),
        }
    }
}

/// Folders by `PATH`, `PATH:ro` or `PATH:rw`; all without one.
fn folders(rules: &[FsRule], rest: Option<&str>) -> Vec<FsRule> {
    let Some(rest) = rest else { return rules.to_vec() };
    let (path, mode) = match (rest.strip_suffix(":ro"), rest.strip_suffix(":rw")) {
        (Some(path), _) => (path, Some(FsMode::Ro)),
        (_, Some(path)) => (path, Some(FsMode::Rw)),
        _ => (rest, None),
    };
    let Ok(root) = Root::try_from(Path::new(path).to_owned()) else { return Vec::new() };
    let named = rules.iter().filter(|rule| rule.path == root);
    let narrowed = named.filter(|rule| mode.is_none_or(|mode| mode <= rule.mode));
    narrowed.map(|rule| FsRule { mode: mode.unwrap_or(rule.mode), ..rule.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(word: &str, expected: Expect) {
        let asked: Capabilities = serde_saphyr::from_str(
            "{ fs: [{ path: workspace, mode: rw }, { path: '/a:b', mode: ro }], env: [LANG, TZ], kv: true,
               http: [{ origin: 'https://a.org' }, { origin: 'https://*.b.org' }] }",
        )
        .unwrap();
        expected.assert_eq(&asked.pick(word).map_or_else(|error| error, |picked| picked.to_string()));
    }

    #[test]
    fn a_word_picks_from_what_is_asked_for_and_never_more() {
        check("kv", expect!["kv: true"]);
        check("fs:workspace:ro", expect!["fs: [{ path: workspace, mode: ro }]"]);
        check("fs:workspace", expect!["fs: [{ path: workspace, mode: rw }]"]);
        check("fs:/a:b", expect![[r#"fs: [{ path: "/a:b", mode: ro }]"#]]);
        check("env:TZ", expect![[r#"env: ["TZ"]"#]]);
        check("http:https://*.b.org", expect![[r#"http: [{"origin":"https://*.b.org"}]"#]]);
    }

    #[test]
    fn a_word_that_names_nothing_says_so() {
        check(
            "fs:/a:b:rw",
            expect![[
                r#""fs:/a:b:rw" is not among fs: [{ path: workspace, mode: rw }, { path: "/a:b", mode: ro }], http: [{"origin":"https://a.org"},{"origin":"https://*.b.org"}], env: ["LANG", "TZ"], kv: true"#
            ]],
        );
        check(
            "tasks",
            expect![[
                r#""tasks" is not among fs: [{ path: workspace, mode: rw }, { path: "/a:b", mode: ro }], http: [{"origin":"https://a.org"},{"origin":"https://*.b.org"}], env: ["LANG", "TZ"], kv: true"#
            ]],
        );
        check(
            "root",
            expect![[
                r#""root" names no capability; write fs, http, process, env, kv, tasks, memory, skills, context or agents, or one of several as in fs:workspace:ro, env:LANG, http:https://example.org"#
            ]],
        );
    }
}
