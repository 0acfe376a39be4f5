//! Assembling plugins as a host loads them: a folder with `plugin.yaml` and one component, and what else ships.
//!
//! Files are written one by one and only when they change, since a running host may be watching.

use std::path::{Path, PathBuf};

use crate::tree::Tree;
use crate::{Outcome, files, fingerprint};

/// Assembles `share/astrarium` from the tree and the components of the plugins that ship.
pub fn assemble(tree: &Tree, components: &Path) -> Outcome<()> {
    let share = tree.share();
    let sources = plugin_sources(&tree.plugins())?;
    // The policy comes first: a host that sees a new component must find its digest granted.
    write_policy(tree, &sources, components)?;
    let plugins = share.join("plugins");
    for source in &sources {
        assemble_plugin(source, components, &plugins)?;
    }
    keep_only_sources(&plugins, &sources)?;
    for (from, to) in [
        ("skills", "skills"),
        ("host/personas", "personas"),
        ("host/commands", "commands"),
        ("host/agents", "agents"),
        ("host/demo", "demo"),
    ] {
        files::mirror(&tree.root.join(from), &share.join(to))?;
    }
    Ok(())
}

/// Assembles the test guests in Rust. Others live beside them, so nothing stale is removed but by `keep`.
pub fn assemble_test_plugins(tree: &Tree, components: &Path, keep: &[String]) -> Outcome<()> {
    let folder = tree.test_plugins();
    let sources = plugin_sources(&tree.test_guests())?;
    for source in &sources {
        assemble_plugin(source, components, &folder)?;
    }
    let names = sources.iter().filter_map(|source| source.file_name());
    files::keep_only(&folder, names.chain(keep.iter().map(std::ffi::OsStr::new)))
}

/// Writes one plugin's folder.
pub fn write_plugin(folder: &Path, manifest: &str, component: &[u8]) -> Outcome<()> {
    let file = component_name(manifest)
        .ok_or_else(|| format!("the plugin.yaml of {} names no component", folder.display()))?;
    files::write(&folder.join(&file), component)?;
    files::write(&folder.join("plugin.yaml"), manifest.as_bytes())?;
    files::keep_only(folder, ["plugin.yaml", &file].map(std::ffi::OsStr::new).into_iter())
}

/// A manifest for the same guest, built another way: `js-tool` becomes `js-tool-qjs`, also as its component's name.
pub fn renamed(manifest: &str, from: &str, to: &str) -> String {
    let lines = manifest.lines().map(|line| match line.split_once(": ") {
        Some(("name", _)) => format!("name: {to}"),
        Some(("component", value)) => format!("component: {}", value.replace(from, to)),
        _ => line.to_string(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Folders with a `plugin.yaml` and a `Cargo.toml`.
fn plugin_sources(workspace: &Path) -> Outcome<Vec<PathBuf>> {
    let mut sources = files::entries(workspace)?;
    sources.retain(|folder| folder.join("plugin.yaml").is_file() && folder.join("Cargo.toml").is_file());
    Ok(sources)
}

fn assemble_plugin(source: &Path, components: &Path, into: &Path) -> Outcome<()> {
    let manifest = files::read_text(&source.join("plugin.yaml"))?;
    let component = files::read(&built_component(source, components))?;
    write_plugin(&into.join(source.file_name().unwrap_or_default()), &manifest, &component)
}

/// Cargo names a component after its crate, with `_` for `-`; the crate is named after its folder.
fn built_component(source: &Path, components: &Path) -> PathBuf {
    let name = source.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
    components.join(format!("{name}.wasm"))
}

fn keep_only_sources(folder: &Path, sources: &[PathBuf]) -> Outcome<()> {
    files::keep_only(folder, sources.iter().filter_map(|source| source.file_name()))
}

fn component_name(manifest: &str) -> Option<String> {
    let value = |key: &str| manifest.lines().find_map(|line| line.strip_prefix(key)).map(scalar);
    let named = value("component:").map(str::to_owned);
    named.or_else(|| value("name:").map(|name| format!("{name}.wasm"))).filter(|file| file.len() > ".wasm".len())
}

/// The bare word of a YAML line such as `step-log # counts` or `"step-log"`.
fn scalar(value: &str) -> &str {
    value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\''])
}

/// The shipped policy with the digest of each component as it was built just now.
fn write_policy(tree: &Tree, sources: &[PathBuf], components: &Path) -> Outcome<()> {
    let (from, to) = (tree.plugins().join("policy.yaml"), tree.share().join("policy.yaml"));
    if !from.is_file() {
        return files::remove(&to);
    }
    let digests = |name: &str| {
        let source = sources.iter().find(|source| source.ends_with(name));
        let source =
            source.ok_or_else(|| format!("{} grants to `{name}`, and no such plugin is built", from.display()))?;
        let of = |path: &Path| Ok::<_, String>(fingerprint::sha256(&files::read(path)?));
        Ok((of(&built_component(source, components))?, of(&source.join("plugin.yaml"))?))
    };
    files::write(&to, with_digests(&files::read_text(&from)?, digests)?.as_bytes())
}

/// Adds `digest: sha256:…` of the component and `manifest: sha256:…` after each `- plugin: NAME`, in line with `plugin`.
fn with_digests(policy: &str, digests: impl Fn(&str) -> Outcome<(String, String)>) -> Outcome<String> {
    let mut text = String::new();
    for line in policy.lines() {
        text.push_str(line);
        text.push('\n');
        let Some(name) = line.trim_start().strip_prefix("- plugin:") else { continue };
        let indent = line.len() - line.trim_start().len() + "- ".len();
        let (component, manifest) = digests(scalar(name))?;
        text.push_str(&format!("{:indent$}digest: sha256:{component}\n", ""));
        text.push_str(&format!("{:indent$}manifest: sha256:{manifest}\n", ""));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grant_gets_the_digest_of_its_plugin() {
        let policy = "# ours\ngrants:\n  - plugin: files\n    fs: ro\n  - plugin: step-log # counts\n    kv: true\n";
        let expected = "# ours\ngrants:\n  - plugin: files\n    digest: sha256:aa-files\n    manifest: sha256:bb-files\n    \
                        fs: ro\n  - plugin: step-log # counts\n    digest: sha256:aa-step-log\n    \
                        manifest: sha256:bb-step-log\n    kv: true\n";
        let digests = |name: &str| Ok((format!("aa-{name}"), format!("bb-{name}")));
        assert_eq!(with_digests(policy, digests).unwrap(), expected);
        assert!(with_digests(policy, |name| Err(format!("no {name}"))).is_err());
    }

    #[test]
    fn a_renamed_manifest_keeps_all_but_its_name() {
        let manifest = "name: js-hook\nversion: 0.1.0\ndescription: of js-hook\ncomponent: js-hook.wasm\norder: 50\n";
        let expected =
            "name: js-hook-qjs\nversion: 0.1.0\ndescription: of js-hook\ncomponent: js-hook-qjs.wasm\norder: 50\n";
        assert_eq!(renamed(manifest, "js-hook", "js-hook-qjs"), expected);
    }
}
