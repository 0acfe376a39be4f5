//! `plugin.yaml`: what a plugin says of itself and asks for. A pure reader; the folder is read by the plugin room.

use crate::digest::sha256;
use crate::grant::Capabilities;
use crate::yaml;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Bytes of a manifest: a page of text, far below what would trouble the parser.
pub const LIMIT: u64 = 64 << 10;

/// A manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `[a-z][a-z0-9-]{0,63}`, equal to its folder's name.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// One line.
    #[serde(default)]
    pub description: String,
    /// File name of the component, beside the manifest; `<name>.wasm` when absent.
    #[serde(default)]
    component: Option<String>,
    /// Place of its hooks among those of other plugins, lower first; equal ones by name.
    #[serde(default = "default_order")]
    pub order: i32,
    /// Whether its tools are left out of the request's schemas and found by `tool_search` only.
    #[serde(default)]
    pub deferred: bool,
    /// What it asks the operator for.
    #[serde(default)]
    pub requests: Capabilities,
    /// Defaults behind the `config` import.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// SHA-256 of its text, lower-case hex: a grant for one build is for the build's own manifest too, whose defaults and
    /// order are part of what it does.
    #[serde(skip)]
    pub digest: String,
}

fn default_order() -> i32 {
    100
}

impl Manifest {
    /// Reads a manifest. The error is one line: what is wrong, where in the text, and what to do.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut manifest: Manifest = yaml::from_str(text)?;
        manifest.digest = sha256(text.as_bytes());
        if !is_plugin_name(&manifest.name) {
            return Err(format!(
                "name: {:?} is no plugin name; use a to z, 0 to 9 and -, beginning with a letter",
                manifest.name
            ));
        }
        if manifest.version.trim().is_empty() {
            return Err("version: is empty; give the plugin a version such as 0.1.0".into());
        }
        if let Some(rule) = manifest.requests.http.iter().find(|rule| !rule.inject.is_empty()) {
            return Err(format!("requests: http: {}: inject is for the operator's grants; leave it out", rule.origin));
        }
        let component = manifest.component();
        if !component.ends_with(".wasm") || component.contains(['/', '\\', ':']) || component.starts_with('.') {
            return Err(format!("component: {component:?} must be the name of a .wasm file beside plugin.yaml"));
        }
        Ok(manifest)
    }

    /// File name of the component.
    pub fn component(&self) -> String {
        self.component.clone().unwrap_or_else(|| format!("{}.wasm", self.name))
    }
}

/// Whether a text may name a plugin.
pub fn is_plugin_name(name: &str) -> bool {
    is_name(name, '-')
}

/// Whether a text may name a tool.
pub fn is_tool_name(name: &str) -> bool {
    is_name(name, '_')
}

fn is_name(name: &str, joint: char) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == joint)
}

#[cfg(test)]
mod http_rules;

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&match Manifest::parse(text) {
            Ok(manifest) => {
                format!("{} {} {} [{}]", manifest.name, manifest.version, manifest.component(), manifest.requests)
            }
            Err(reason) => reason,
        });
    }

    #[test]
    fn defaults_fill_in_what_is_absent() {
        check("name: files\nversion: 0.1.0\n", expect!["files 0.1.0 files.wasm []"]);
    }

    #[test]
    fn requests_are_read() {
        check(
            "name: a\nversion: '1'\nrequests: { kv: true, fs: [{ path: workspace, mode: ro }] }\n",
            expect!["a 1 a.wasm [fs: [{ path: workspace, mode: ro }], kv: true]"],
        );
    }

    #[test]
    fn an_unknown_key_is_named() {
        check(
            "name: a\nversion: '1'\nrequest: {}\n",
            expect![
                "line 3, column 1: unknown field `request`, expected one of name, version, description, component, order, deferred, requests, config"
            ],
        );
    }

    #[test]
    fn a_component_outside_the_folder_is_refused() {
        check(
            "name: a\nversion: '1'\ncomponent: ../b.wasm\n",
            expect![[r#"component: "../b.wasm" must be the name of a .wasm file beside plugin.yaml"#]],
        );
    }

    #[test]
    fn a_name_with_capitals_is_refused() {
        check(
            "name: Files\nversion: '1'\n",
            expect![[r#"name: "Files" is no plugin name; use a to z, 0 to 9 and -, beginning with a letter"#]],
        );
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("name: a\nversion: '1'\nconfig:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for n in 1..30 {
            text.push_str(&format!("  a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", ")));
        }
        assert!(Manifest::parse(&text).is_err());
    }
}
