//! Named secrets: where each is kept, and how a header is made of one. No value is ever held here.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the value of a secret is, under `secrets:` in the operator's config.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SecretSource {
    /// In an environment variable of the host.
    Env(String),
    /// In a file, of which line ends at the end do not count.
    File(PathBuf),
    /// On the standard output of a program, with its arguments: how to ask the system's keyring.
    Command(Vec<String>),
}

impl SecretSource {
    /// What is wrong with it.
    pub fn mistake(&self) -> Option<String> {
        match self {
            SecretSource::Env(name) if name.is_empty() || name.contains(['=', '\0']) => {
                Some(format!("env: {name:?} is no name of a variable"))
            }
            SecretSource::File(path) if !path.is_absolute() => {
                Some(format!("file: {} is not absolute; write the whole path", path.display()))
            }
            SecretSource::Command(words) if words.is_empty() => {
                Some("command: is empty; write the program and its arguments".into())
            }
            _ => None,
        }
    }
}

/// A header's value with the place of one secret in it: `Bearer ${token}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    before: String,
    /// Name of the secret.
    pub secret: String,
    after: String,
}

impl Template {
    /// The value with the secret in its place.
    pub fn fill(&self, secret: &str) -> String {
        format!("{}{secret}{}", self.before, self.after)
    }
}

/// Whether a text may name a secret.
pub fn is_secret_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("inject: {text:?} must hold one ${{name}}, the name of a secret, as in \"Bearer ${{token}}\"");
        let (before, rest) = text.split_once("${").ok_or_else(wrong)?;
        let (secret, after) = rest.split_once('}').ok_or_else(wrong)?;
        let is_plain = |part: &str| part.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !is_secret_name(secret) || after.contains("${") || !is_plain(before) || !is_plain(after) {
            return Err(wrong());
        }
        Ok(Self { before: before.into(), secret: secret.into(), after: after.into() })
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        format!("{}${{{}}}{}", template.before, template.secret, template.after)
    }
}
