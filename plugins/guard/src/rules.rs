//! Whether a path may be written: from its text, the workspace and the globs to a refusal or none. Pure.

use globset::{Glob, GlobBuilder, GlobMatcher};

/// The configuration. A key that does not exist is refused: a misspelt rule would protect nothing.
#[derive(Debug, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// A path must match one of these.
    allow_write: Vec<String>,
    /// A path must match none of these: the operator's own.
    deny_write: Vec<String>,
    /// Nor any of these: what nobody should have to think of. An operator's list takes the place of the default one.
    protected: Vec<String>,
}

/// The same as in plugin.yaml, for a host that hands over none of it; a test compares them.
impl Default for Config {
    fn default() -> Self {
        let protected = [
            ".git/**",
            "**/.git/**",
            ".astrarium/**",
            "**/.astrarium/**",
            ".claude/**",
            "**/.claude/**",
            ".ssh/**",
            "**/.ssh/**",
            ".env",
            "**/.env",
            "**/*.pem",
            "**/id_rsa",
            "**/id_ecdsa",
            "**/id_ed25519",
        ];
        Self { allow_write: vec!["**".into()], deny_write: Vec::new(), protected: protected.map(Into::into).into() }
    }
}

/// The globs, ready to match.
pub(crate) struct Rules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    allowed: String,
}

struct Rule {
    /// The key of the configuration that it stands under.
    key: &'static str,
    text: String,
    glob: GlobMatcher,
    /// For `folder/**`: the folder itself.
    folder: Option<GlobMatcher>,
}

impl Rules {
    /// Compiles the globs; the error names the one that is none.
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        let compile = |key: &'static str, globs: &[String]| {
            let rules = globs.iter().map(|glob| {
                Rule::new(key, glob).map_err(|error| {
                    format!(
                        "{key} of the guard's configuration holds {glob:?}, which is no glob: {}; correct it",
                        error.kind()
                    )
                })
            });
            rules.collect::<Result<Vec<_>, _>>()
        };
        let mut deny = compile("deny_write", &config.deny_write)?;
        deny.extend(compile("protected", &config.protected)?);
        Ok(Self { allow: compile("allow_write", &config.allow_write)?, deny, allowed: config.allow_write.join(", ") })
    }

    /// Why a call with this path is refused, or none.
    pub(crate) fn refusal(&self, path: &str, workspace: &str) -> Option<String> {
        const ADVICE: &str = "do not retry this path; use another one or ask the user";
        let Some(inside) = normalise(path, workspace) else {
            return Some(format!("guard blocked {path:?}: it lies outside the workspace {workspace}; {ADVICE}"));
        };
        // The workspace itself is nothing that can be written; as a working folder it is where all work happens.
        if inside.is_empty() {
            return None;
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.matches(&inside)) {
            return Some(format!("guard blocked {path:?}: it matches {} {:?}; {ADVICE}", rule.key, rule.text));
        }
        if !self.allow.iter().any(|rule| rule.matches(&inside)) {
            return Some(format!(
                "guard blocked {path:?}: it matches no glob of allow_write ({}); {ADVICE}",
                self.allowed
            ));
        }
        None
    }
}

impl Rule {
    fn new(key: &'static str, text: &str) -> Result<Self, globset::Error> {
        let compile = |text: &str| -> Result<GlobMatcher, globset::Error> {
            let glob: Glob = GlobBuilder::new(text).literal_separator(true).case_insensitive(true).build()?;
            Ok(glob.compile_matcher())
        };
        let folder = text.strip_suffix("/**").filter(|folder| !folder.is_empty()).map(compile).transpose()?;
        Ok(Self { key, text: text.into(), glob: compile(text)?, folder })
    }

    fn matches(&self, path: &str) -> bool {
        self.glob.is_match(path) || self.folder.as_ref().is_some_and(|folder| folder.is_match(path))
    }
}

/// The path relative to the workspace, or none when it lies elsewhere.
///
/// Names are folded as forgiving file systems fold them, so that `.git.`, `.git ` and names with invisible characters
/// are what they would be there; a backslash separates, as it does on Windows.
fn normalise(path: &str, workspace: &str) -> Option<String> {
    let path = slashes(path);
    let rest = strip_folder(&path, &slashes(workspace)).or_else(|| strip_folder(&path, "/workspace"));
    let rest = match rest {
        Some(inside) => inside,
        None if path.starts_with(['/', '~']) || path.contains('\0') || is_drive(&path) => return None,
        None => &path,
    };
    let mut parts: Vec<String> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(fold(name)),
        }
    }
    Some(parts.join("/"))
}

fn slashes(path: &str) -> String {
    path.replace('\\', "/")
}

/// What follows `folder` in `path`, when `path` is that folder or lies in it.
fn strip_folder<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let folder = folder.trim_end_matches('/');
    let rest = path.strip_prefix(folder)?;
    (!folder.is_empty() && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
}

fn is_drive(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && bytes.next() == Some(b':')
}

fn fold(name: &str) -> String {
    let invisible =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let visible: String = name.chars().filter(|c| !invisible(*c)).collect();
    let folded = visible.trim_end_matches(['.', ' ']);
    if folded.is_empty() { visible } else { folded.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "/home/ada/sky";

    fn check(config: &Config, path: &str, rule: Option<&str>) {
        let refusal = Rules::new(config).unwrap().refusal(path, WORKSPACE);
        match (&refusal, rule) {
            (None, None) => {}
            (Some(reason), Some(rule)) if reason.contains(rule) && reason.contains("do not retry") => {}
            _ => panic!("{path:?}: {refusal:?}, expected {rule:?}"),
        }
    }

    fn config(allow: &[&str], deny: &[&str]) -> Config {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        Config { allow_write: own(allow), deny_write: own(deny), protected: Vec::new() }
    }

    #[test]
    fn ordinary_paths_pass() {
        let rules = Config::default();
        for path in ["a.txt", "./a//b.rs", ".", "/workspace", "/workspace/a", "/home/ada/sky/a", "a/../b", ".gitignore"]
        {
            check(&rules, path, None);
        }
        for path in [".environment", "a.pem.txt", "git/x", "文献/星.md", "...", ".github/workflows/ci.yml"] {
            check(&rules, path, None);
        }
    }

    #[test]
    fn protected_paths_are_blocked_however_they_are_written() {
        let rules = Config::default();
        for path in [".git/config", "./.git/config", "a/../.git/config", ".git//config", "/workspace/.git/x", ".git"] {
            check(&rules, path, Some("\".git/**\""));
        }
        for path in [".GIT/config", ".git\\config", ".git./config", ".git /config", ".g\u{200c}it/config"] {
            check(&rules, path, Some("\".git/**\""));
        }
        check(&rules, "sub/.git/hooks/x", Some("\"**/.git/**\""));
        check(&rules, "/home/ada/sky/.env", Some("\".env\""));
        check(&rules, "a/.Env", Some("\"**/.env\""));
        check(&rules, "keys/a.PEM", Some("\"**/*.pem\""));
        check(&rules, "b.pem", Some("\"**/*.pem\""));
        check(&rules, ".astrarium", Some("\".astrarium/**\""));
        check(&rules, "a/.Claude/skills/x/SKILL.md", Some("\"**/.claude/**\""));
    }

    #[test]
    fn paths_outside_are_blocked() {
        let rules = Config::default();
        let outside =
            ["/etc/passwd", "../x", "a/../../x", "/home/ada/skylight", "/home/ada/sky/../x", "~/x", "C:\\x", "..\\x"];
        for path in outside {
            check(&rules, path, Some("outside the workspace /home/ada/sky"));
        }
    }

    #[test]
    fn only_what_is_allowed_passes() {
        let rules = config(&["notes/**", "*.md"], &["notes/old/**"]);
        check(&rules, "notes/a/b.txt", None);
        check(&rules, "notes", None);
        check(&rules, "README.md", None);
        check(&rules, "src/x.md", Some("allow_write (notes/**, *.md)"));
        check(&rules, "notes/old/x", Some("\"notes/old/**\""));
        check(&config(&[], &[]), "a", Some("allow_write ()"));
    }

    #[test]
    fn an_operators_own_rules_come_beside_the_protected_ones() {
        let rules: Config = serde_json::from_str(r#"{"deny_write":["data/raw/**"]}"#).unwrap();
        check(&rules, "data/raw/x.fits", Some("deny_write \"data/raw/**\""));
        check(&rules, ".git/config", Some("protected \".git/**\""));
    }

    #[test]
    fn a_bad_glob_is_named() {
        let error = Rules::new(&config(&["**"], &["[a"])).err().unwrap();
        assert!(error.contains("deny_write of the guard's configuration holds \"[a\", which is no glob"), "{error}");
    }

    #[test]
    fn the_manifest_holds_the_same_defaults() {
        let manifest = include_str!("../plugin.yaml");
        let default = Config::default();
        let deny: Vec<_> = manifest.lines().filter_map(|line| line.strip_prefix("    - ")).collect();
        let quoted: Vec<_> = default.protected.iter().map(|glob| format!("{glob:?}")).collect();
        assert_eq!(deny, quoted);
        assert!(manifest.contains(&format!("allow_write: {:?}", default.allow_write)));
    }
}
