//! Looks through every result before it is recorded and hides what is a secret by its shape or by its name.
//!
//! It sees outputs alone: what a tool did is done, and a secret in a file stays in the file. A result without secrets is
//! kept as it is. It fails closed, as every hook of its kind: a result that it cannot look through is withheld.

mod names;
mod shapes;
mod spans;

use astrarium_sdk::hooks::{OutputMutation, PostToolUse, PostToolUseDecision, PostToolUseEvent};
use astrarium_sdk::{Context, Error, FileRef, Part, config, hooks};

use spans::hide;

struct Redact;

/// The configuration in `plugin.yaml`, under the operator's.
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    also_names: Vec<String>,
    keep: Vec<String>,
}

impl PostToolUse for Redact {
    fn handle(_: &Context, event: PostToolUseEvent) -> Result<PostToolUseDecision, Error> {
        let config = config::<Config>()?;
        let mut changed = false;
        let parts = event.parts.into_iter().map(|part| look(part, &config, &mut changed)).collect();
        Ok(match changed {
            true => PostToolUseDecision::MutateOutput(OutputMutation { parts, is_error: event.is_error }),
            false => PostToolUseDecision::Keep,
        })
    }
}

hooks! { post_tool_use: Redact }

fn look(part: Part, config: &Config, changed: &mut bool) -> Part {
    let mut hidden = |text: &str| {
        let hidden = hide(text, &config.also_names, &config.keep);
        *changed |= hidden.is_some();
        hidden
    };
    match part {
        Part::Text(text) => Part::Text(hidden(&text).unwrap_or(text)),
        Part::Json(text) => match hidden(&text) {
            None => Part::Json(text),
            // A document whose syntax the secret was part of is shown as text rather than not at all.
            Some(hidden) => match serde_json::from_str::<serde::de::IgnoredAny>(&hidden) {
                Ok(_) => Part::Json(hidden),
                Err(_) => Part::Text(hidden),
            },
        },
        Part::File(file) => {
            let note = file.note.map(|note| hidden(&note).unwrap_or(note));
            Part::File(FileRef { note, ..file })
        }
        Part::Image(image) => Part::Image(image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_at(part: Part) -> (Part, bool) {
        let mut changed = false;
        (look(part, &Config::default(), &mut changed), changed)
    }

    #[test]
    fn json_stays_json() {
        let document = r#"{"user":"a","password":"hunter2hunter2","note":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}"#;
        let (Part::Json(hidden), true) = look_at(Part::Json(document.into())) else { panic!("it was not changed") };
        assert_eq!(hidden, r#"{"user":"a","password":"[redacted: password]","note":"[redacted: private key]\n"}"#);
    }

    #[test]
    fn what_holds_no_secret_is_kept() {
        for text in ["", "plain text", "{\"max_tokens\": 4096}"] {
            assert!(!look_at(Part::Text(text.into())).1, "{text}");
        }
    }
}
