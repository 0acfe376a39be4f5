//! Capability rules: what a plugin asks for, what an operator grants, and what is left of both.
//!
//! Pure words and pure checks. Nothing here opens a file or a socket; the capability rooms do, with the effective rules
//! that [`Capabilities::meet`] leaves. Deny by default: an empty set allows nothing.

mod http;
#[cfg(test)]
mod laws;
mod less;
mod origin;
mod pick;
mod process;
mod secret;

pub use self::http::{HOST_HEADERS, HttpRule};
pub use origin::{HostPattern, Origin, Scheme, without_dot};
pub use process::ProcessRule;
pub use secret::{SecretSource, Template, is_secret_name};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// A set of capabilities: a request in a manifest, a grant in the operator's config, or what is left of both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// Folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fs: Vec<FsRule>,
    /// HTTP origins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// Native programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<ProcessRule>,
    /// Names of environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The plugin's own key-value store.
    #[serde(skip_serializing_if = "is_false")]
    pub kv: bool,
    /// The session's task list.
    #[serde(skip_serializing_if = "is_false")]
    pub tasks: bool,
    /// The library's memory.
    #[serde(skip_serializing_if = "is_false")]
    pub memory: bool,
    /// Skills.
    #[serde(skip_serializing_if = "is_false")]
    pub skills: bool,
    /// The conversation.
    #[serde(skip_serializing_if = "is_false")]
    pub context: bool,
    /// Other agents.
    #[serde(skip_serializing_if = "is_false")]
    pub agents: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A folder and what may be done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsRule {
    /// Which folder.
    pub path: Root,
    /// What may be done.
    pub mode: FsMode,
}

/// A folder by its role, or by its absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PathBuf", into = "PathBuf")]
pub enum Root {
    /// The folder the agent works in; guests see it as `/workspace`.
    Workspace,
    /// The library of papers, notes and memories; guests see it as `/library`.
    Library,
    /// The files of the session that the call belongs to, where large results are kept; guests see them as `/session`, and
    /// never may change them.
    Session,
    /// The folders of skills that lie outside of the workspace, always read only; guests see them by their own paths.
    Skills,
    /// Any other folder; guests see it by its own path.
    Folder(PathBuf),
}

/// What may be done in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FsMode {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
}

impl TryFrom<PathBuf> for Root {
    type Error = String;

    fn try_from(path: PathBuf) -> Result<Self, String> {
        match path.to_str() {
            Some("workspace") => Ok(Root::Workspace),
            Some("library") => Ok(Root::Library),
            Some("session") => Ok(Root::Session),
            Some("skills") => Ok(Root::Skills),
            _ if path.is_absolute() => Ok(Root::Folder(path)),
            _ => Err(format!(
                "{} is none of workspace, library, session, skills, nor an absolute folder",
                path.display()
            )),
        }
    }
}

impl From<Root> for PathBuf {
    fn from(root: Root) -> Self {
        match root {
            Root::Workspace => "workspace".into(),
            Root::Library => "library".into(),
            Root::Session => "session".into(),
            Root::Skills => "skills".into(),
            Root::Folder(path) => path,
        }
    }
}

impl Root {
    /// Whether a grant of `self` reaches `asked`.
    fn covers(&self, asked: &Root) -> bool {
        match (self, asked) {
            (Root::Folder(granted), Root::Folder(asked)) => is_plain(asked) && asked.starts_with(granted),
            _ => self == asked,
        }
    }
}

/// Whether a path is absolute and free of `.` and `..`, so that a prefix test means what it says.
fn is_plain(path: &Path) -> bool {
    use std::path::Component::{Normal, RootDir};
    path.is_absolute() && path.components().all(|part| matches!(part, RootDir | Normal(_)))
}

impl Capabilities {
    /// What is left when `self` is asked for and `granted` is granted.
    pub fn meet(&self, granted: &Capabilities) -> Capabilities {
        Capabilities {
            fs: meet_fs(&self.fs, &granted.fs),
            http: meet_all(&self.http, &granted.http, HttpRule::meet),
            process: meet_all(&self.process, &granted.process, ProcessRule::meet),
            env: both(&self.env, &granted.env),
            kv: self.kv && granted.kv,
            tasks: self.tasks && granted.tasks,
            memory: self.memory && granted.memory,
            skills: self.skills && granted.skills,
            context: self.context && granted.context,
            agents: self.agents && granted.agents,
        }
    }

    /// What of `self` is not in `effective`.
    pub fn missing(&self, effective: &Capabilities) -> Capabilities {
        Capabilities {
            fs: without(&self.fs, &effective.fs),
            http: self.http.iter().filter(|rule| !rule.is_covered(&effective.http)).cloned().collect(),
            process: self.process.iter().filter(|rule| !rule.is_covered(&effective.process)).cloned().collect(),
            env: without(&self.env, &effective.env),
            kv: self.kv && !effective.kv,
            tasks: self.tasks && !effective.tasks,
            memory: self.memory && !effective.memory,
            skills: self.skills && !effective.skills,
            context: self.context && !effective.context,
            agents: self.agents && !effective.agents,
        }
    }

    /// Both sets together; of two rules for one folder the wider one counts.
    pub fn join(mut self, other: &Capabilities) -> Capabilities {
        self.fs.extend(without(&other.fs, &self.fs));
        self.http.extend(without(&other.http, &self.http));
        self.process.extend(without(&other.process, &self.process));
        self.env.extend(without(&other.env, &self.env));
        self.kv |= other.kv;
        self.tasks |= other.tasks;
        self.memory |= other.memory;
        self.skills |= other.skills;
        self.context |= other.context;
        self.agents |= other.agents;
        self
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        *self == Capabilities::default()
    }

    /// Each capability that is asked for, and the imports of which a component must have one to use it.
    pub fn needed_imports(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let table: [(bool, _, &[&str]); 10] = [
            (!self.fs.is_empty(), "fs", &["wasi:filesystem/"]),
            (!self.http.is_empty(), "http", &["astrarium:host/http@", "wasi:http/outgoing-handler@"]),
            (!self.process.is_empty(), "process", &["astrarium:host/process@"]),
            (!self.env.is_empty(), "env", &["wasi:cli/environment@"]),
            (self.kv, "kv", &["astrarium:host/kv@"]),
            (self.tasks, "tasks", &["astrarium:host/tasks@"]),
            (self.memory, "memory", &["astrarium:host/memory@"]),
            (self.skills, "skills", &["astrarium:host/skills@"]),
            (self.context, "context", &["astrarium:host/context@"]),
            (self.agents, "agents", &["astrarium:host/agents@"]),
        ];
        table.into_iter().filter(|(asked, ..)| *asked).map(|(_, name, import)| (name, import)).collect()
    }

    /// The lines for `grants:` in the operator's config that would grant this set to `plugin`.
    pub fn grant_lines(&self, plugin: &str) -> String {
        format!("- {{ plugin: {plugin}, {self} }}")
    }
}

/// As YAML in flow style, on one line: `fs: [{ path: workspace, mode: rw }], kv: true`.
impl fmt::Display for Capabilities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        if !self.fs.is_empty() {
            let rules = self.fs.iter().map(|rule| {
                let mode = if rule.mode == FsMode::Rw { "rw" } else { "ro" };
                let path = match &rule.path {
                    Root::Workspace => "workspace".to_owned(),
                    Root::Library => "library".to_owned(),
                    Root::Session => "session".to_owned(),
                    Root::Skills => "skills".to_owned(),
                    Root::Folder(path) => quoted(&path.to_string_lossy()),
                };
                format!("{{ path: {path}, mode: {mode} }}")
            });
            parts.push(format!("fs: {}", list(rules.collect())));
        }
        if !self.http.is_empty() {
            parts.push(format!("http: {}", serde_json::to_string(&self.http).map_err(|_| fmt::Error)?));
        }
        if !self.process.is_empty() {
            parts.push(format!("process: {}", serde_json::to_string(&self.process).map_err(|_| fmt::Error)?));
        }
        if !self.env.is_empty() {
            parts.push(format!("env: {}", list(self.env.iter().map(|name| quoted(name)).collect())));
        }
        let flags = [
            (self.kv, "kv"),
            (self.tasks, "tasks"),
            (self.memory, "memory"),
            (self.skills, "skills"),
            (self.context, "context"),
            (self.agents, "agents"),
        ];
        parts.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| format!("{name}: true")));
        out.write_str(&parts.join(", "))
    }
}

/// The folders asked for, as far as they are granted.
fn meet_fs(asked: &[FsRule], granted: &[FsRule]) -> Vec<FsRule> {
    let met = asked.iter().filter_map(|asked| {
        let best = granted.iter().filter(|rule| rule.path.covers(&asked.path)).map(|rule| rule.mode).max()?;
        Some(FsRule { path: asked.path.clone(), mode: asked.mode.min(best) })
    });
    met.collect()
}

/// What every pair of rules leaves, each once.
fn meet_all<T: PartialEq>(asked: &[T], granted: &[T], meet: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let mut met = Vec::new();
    for rule in asked.iter().flat_map(|asked| granted.iter().filter_map(|granted| meet(asked, granted))) {
        if !met.contains(&rule) {
            met.push(rule);
        }
    }
    met
}

fn both<T: Clone + PartialEq>(asked: &[T], granted: &[T]) -> Vec<T> {
    asked.iter().filter(|item| granted.contains(item)).cloned().collect()
}

fn without<T: Clone + PartialEq>(asked: &[T], have: &[T]) -> Vec<T> {
    asked.iter().filter(|item| !have.contains(item)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn caps(yaml: &str) -> Capabilities {
        serde_saphyr::from_str(yaml).unwrap()
    }

    fn check(asked: &str, granted: &str, expected: Expect) {
        let asked = caps(asked);
        let effective = asked.meet(&caps(granted));
        let missing = asked.missing(&effective);
        expected.assert_eq(&format!("effective: {effective}\nmissing: {missing}"));
    }

    #[test]
    fn a_request_without_a_grant_is_missing() {
        check(
            "{ kv: true, fs: [{ path: workspace, mode: rw }] }",
            "{}",
            expect![[r#"
            effective: 
            missing: fs: [{ path: workspace, mode: rw }], kv: true"#]],
        );
    }

    #[test]
    fn a_narrower_grant_narrows_the_request_and_names_what_is_missing() {
        check(
            "{ fs: [{ path: workspace, mode: rw }] }",
            "{ fs: [{ path: workspace, mode: ro }] }",
            expect![[r#"
            effective: fs: [{ path: workspace, mode: ro }]
            missing: fs: [{ path: workspace, mode: rw }]"#]],
        );
    }

    #[test]
    fn a_wider_grant_does_not_widen_the_request() {
        check(
            "{ fs: [{ path: /data/a, mode: ro }] }",
            "{ fs: [{ path: /data, mode: rw }], kv: true }",
            expect![[r#"
            effective: fs: [{ path: "/data/a", mode: ro }]
            missing: "#]],
        );
    }

    #[test]
    fn dots_do_not_leave_a_granted_folder() {
        check(
            "{ fs: [{ path: /data/../etc, mode: ro }] }",
            "{ fs: [{ path: /data, mode: rw }] }",
            expect![[r#"
            effective: 
            missing: fs: [{ path: "/data/../etc", mode: ro }]"#]],
        );
    }
}
