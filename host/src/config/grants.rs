//! Grants: how each file writes them, and the file that `plugin grant` and `plugin revoke` write.
//!
//! `grants.yaml` in the home folder is the program's own, so that what a person wrote in `astrarium.yaml` stays as it is,
//! comments and all. It grants beside that file, and takes back whatever is granted anywhere.

use super::{GRANTS, alone, read, replace};
use crate::grant::Capabilities;
use crate::plugin::GrantRule;
use crate::yaml::{self, Spanned};
use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// `grants.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Granted {
    /// What is granted.
    #[serde(deserialize_with = "rules")]
    pub grants: Vec<GrantRule>,
    /// What is taken back, whoever granted it.
    #[serde(deserialize_with = "rules")]
    pub revokes: Vec<GrantRule>,
}

const HEAD: &str = "# Written by `astrarium plugin grant` and `astrarium plugin revoke`, and written anew by each of them.\n\
    # It grants beside astrarium.yaml; what stands under revokes: is taken back, whoever granted it.\n";

/// What the command line granted and took back.
pub fn granted(home: &Path) -> Result<Granted> {
    let path = home.join(GRANTS);
    let Some(text) = read(&path, false)? else { return Ok(Granted::default()) };
    let mut granted: Granted = yaml::from_str(&text)
        .map_err(|reason| anyhow!("{}: {reason}; mend it, or remove it and grant anew", path.display()))?;
    say_where(&mut granted.grants, &path);
    say_where(&mut granted.revokes, &path);
    Ok(granted)
}

/// Digests of the component and the manifest that make up one build.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// SHA-256 of the component.
    pub component: &'a str,
    /// SHA-256 of the manifest, whose defaults and order are part of what the plugin does.
    pub manifest: &'a str,
}

/// Grants `capabilities` to a plugin, to one build of it alone where that is named, and takes back what was revoked of them.
pub fn grant(home: &Path, plugin: &str, build: Option<Build<'_>>, capabilities: &Capabilities) -> Result<()> {
    let _alone = alone(home)?;
    let mut granted = granted(home)?;
    granted.revokes = changed(&granted.revokes, plugin, |revoked| revoked.still_revoked(capabilities));
    let new = rule(plugin, build, capabilities);
    let same = |rule: &&mut GrantRule| {
        (&rule.plugin, &rule.digest, &rule.manifest) == (&new.plugin, &new.digest, &new.manifest)
    };
    match granted.grants.iter_mut().find(same) {
        Some(rule) => rule.capabilities = rule.capabilities.clone().join(capabilities),
        None => granted.grants.push(new),
    }
    save(home, &granted)
}

/// Takes `capabilities` back from every build of a plugin, whoever granted them.
pub fn revoke(home: &Path, plugin: &str, capabilities: &Capabilities) -> Result<()> {
    let _alone = alone(home)?;
    let mut granted = granted(home)?;
    granted.grants = changed(&granted.grants, plugin, |granted| granted.less(capabilities));
    match granted.revokes.iter_mut().find(|rule| rule.plugin == plugin) {
        Some(rule) => rule.capabilities = rule.capabilities.clone().join(capabilities),
        None => granted.revokes.push(rule(plugin, None, capabilities)),
    }
    save(home, &granted)
}

fn rule(plugin: &str, build: Option<Build<'_>>, capabilities: &Capabilities) -> GrantRule {
    GrantRule {
        plugin: plugin.to_owned(),
        digest: build.map(|build| build.component.to_owned()),
        manifest: build.map(|build| build.manifest.to_owned()),
        gate: false,
        capabilities: capabilities.clone(),
        source: String::new(),
    }
}

/// The rules with those of a plugin changed; one that is left with nothing goes.
fn changed(rules: &[GrantRule], plugin: &str, change: impl Fn(&Capabilities) -> Capabilities) -> Vec<GrantRule> {
    let rules = rules.iter().filter_map(|rule| {
        if rule.plugin != plugin {
            return Some(rule.clone());
        }
        let left = change(&rule.capabilities);
        (!left.is_empty() || rule.gate).then(|| GrantRule { capabilities: left, ..rule.clone() })
    });
    rules.collect()
}

fn save(home: &Path, granted: &Granted) -> Result<()> {
    let mut text = HEAD.to_owned();
    for (key, rules) in [("grants", &granted.grants), ("revokes", &granted.revokes)] {
        if !rules.is_empty() {
            text.push_str(&format!("{key}:\n"));
        }
        for rule in rules {
            let mut parts = vec![format!("plugin: {}", rule.plugin)];
            parts.extend(rule.digest.as_ref().map(|digest| format!("digest: sha256:{digest}")));
            parts.extend(rule.manifest.as_ref().map(|digest| format!("manifest: sha256:{digest}")));
            parts.extend(rule.gate.then(|| "gate: true".to_owned()));
            parts.extend((!rule.capabilities.is_empty()).then(|| rule.capabilities.to_string()));
            text.push_str(&format!("- {{ {} }}\n", parts.join(", ")));
        }
    }
    // What is written must mean what was meant, whatever stands in a plugin's requests.
    let again: Granted = yaml::from_str(&text).map_err(|reason| anyhow!("{GRANTS} would not read: {reason}"))?;
    let same = |a: &[GrantRule], b: &[GrantRule]| {
        let plain = |rule: &GrantRule| GrantRule { source: String::new(), ..rule.clone() };
        a.iter().map(plain).eq(b.iter().map(plain))
    };
    ensure!(
        same(&again.grants, &granted.grants) && same(&again.revokes, &granted.revokes),
        "{GRANTS} would not say what was meant; write the grant in astrarium.yaml yourself"
    );
    replace(home, GRANTS, &text).context("the grant is not written")
}

/// A grant is `plugin`, perhaps `digest`, `manifest` and `gate`, and capabilities. Taken apart here, since serde's flatten
/// would let unknown keys through, and a misspelt capability must be an error.
pub(super) fn rules<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<GrantRule>, D::Error> {
    let entries = Option::<Vec<Spanned<Map<String, Value>>>>::deserialize(deserializer)?.unwrap_or_default();
    let rules = entries.into_iter().map(|entry| {
        let source = format!("line {}", entry.referenced.line());
        read_rule(entry.value, source).map_err(serde::de::Error::custom)
    });
    rules.collect()
}

/// Puts the file before the line in each rule's source.
pub(super) fn say_where(rules: &mut [GrantRule], path: &Path) {
    for rule in rules {
        rule.source = format!("{}: {}", path.display(), rule.source);
    }
}

fn read_rule(mut entry: Map<String, Value>, source: String) -> Result<GrantRule, String> {
    let Some(Value::String(plugin)) = entry.shift_remove("plugin") else {
        return Err("grants: an entry names no plugin; begin it with plugin: NAME".into());
    };
    let mut digest = |key: &str| match entry.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let hex = text.strip_prefix("sha256:").unwrap_or(&text).to_ascii_lowercase();
            match hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                true => Ok(Some(hex)),
                false => Err(format!("grants: {plugin}: {key}: {text:?} is no sha256:… of 64 hex digits")),
            }
        }
        Some(other) => Err(format!("grants: {plugin}: {key}: {other} is no text")),
    };
    let (digest, manifest) = (digest("digest")?, digest("manifest")?);
    let gate = match entry.shift_remove("gate") {
        None => false,
        Some(Value::Bool(gate)) => gate,
        Some(other) => return Err(format!("grants: {plugin}: gate: {other} is neither true nor false")),
    };
    let capabilities: Capabilities =
        serde_json::from_value(Value::Object(entry)).map_err(|error| format!("grants: {plugin}: {error}"))?;
    Ok(GrantRule { plugin, digest, manifest, gate, capabilities, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn caps(yaml: &str) -> Capabilities {
        yaml::from_str(yaml).unwrap()
    }

    fn check(home: &Path, expected: Expect) {
        let text = std::fs::read_to_string(home.join(GRANTS)).unwrap();
        expected.assert_eq(text.strip_prefix(HEAD).unwrap());
    }

    #[test]
    fn what_is_granted_and_revoked_is_what_is_written() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        grant(home, "a", None, &caps("{ kv: true }")).unwrap();
        grant(home, "a", None, &caps("{ fs: [{ path: '/x y: z', mode: rw }] }")).unwrap();
        let (component, manifest) = ("ab".repeat(32), "cd".repeat(32));
        let build = Build { component: &component, manifest: &manifest };
        grant(home, "b", Some(build), &caps("{ tasks: true }")).unwrap();
        check(
            home,
            expect![[r#"
                grants:
                - { plugin: a, fs: [{ path: "/x y: z", mode: rw }], kv: true }
                - { plugin: b, digest: sha256:abababababababababababababababababababababababababababababababab, manifest: sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd, tasks: true }
            "#]],
        );
        revoke(home, "a", &caps("{ kv: true, fs: [{ path: '/x y: z', mode: rw }] }")).unwrap();
        revoke(home, "files", &caps("{ fs: [{ path: workspace, mode: rw }] }")).unwrap();
        check(
            home,
            expect![[r#"
                grants:
                - { plugin: a, fs: [{ path: "/x y: z", mode: ro }] }
                - { plugin: b, digest: sha256:abababababababababababababababababababababababababababababababab, manifest: sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd, tasks: true }
                revokes:
                - { plugin: a, fs: [{ path: "/x y: z", mode: rw }], kv: true }
                - { plugin: files, fs: [{ path: workspace, mode: rw }] }
            "#]],
        );
        // What is granted again is no longer taken back.
        grant(home, "files", None, &caps("{ fs: [{ path: workspace, mode: rw }] }")).unwrap();
        let now = granted(home).unwrap();
        assert!(now.revokes.iter().all(|rule| rule.plugin == "a"), "{now:?}");
        assert!(now.grants[0].source.ends_with("grants.yaml: line 4"), "{}", now.grants[0].source);
    }

    #[test]
    fn commands_at_once_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let home = home.path();
                scope.spawn(move || {
                    grant(home, &format!("p{n}"), None, &caps("{ kv: true }")).unwrap();
                    super::super::set_disabled(home, &format!("p{n}"), true).unwrap();
                });
            }
        });
        assert_eq!(granted(home.path()).unwrap().grants.len(), 16);
        assert_eq!(super::super::disabled(home.path()).unwrap().len(), 16);
    }

    #[test]
    fn a_file_that_does_not_read_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(GRANTS), "grants: [\n").unwrap();
        let error = grant(home.path(), "a", None, &caps("{ kv: true }")).unwrap_err().to_string();
        assert!(error.contains("grants.yaml") && error.contains("mend it"), "{error}");
        assert_eq!(std::fs::read_to_string(home.path().join(GRANTS)).unwrap(), "grants: [\n");
    }
}
