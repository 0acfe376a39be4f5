//! Between the contract's words and the host's: contexts, parts and pictures, and what a guest's answer must not carry out.

use super::GuestEnv;
use super::contract::astrarium::plugin::types as wit;
use super::contract::exports::astrarium::plugin as exports;
use crate::capability::http::Caller;
use crate::context::{AgentKind, CallContext};
use crate::transcript::{Json, Part, picture_type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

type ToolResult = Result<exports::tools::ToolOutput, exports::tools::ToolError>;

/// An answer without the secrets that were injected into its requests, if it holds one in spite of everything.
pub(super) fn without_secrets(answer: ToolResult, web: &Caller) -> ToolResult {
    if !web.has_injected() {
        return answer;
    }
    use exports::tools::ToolError as Error;
    let clean = |text| web.scrubbed(text);
    match answer {
        Ok(mut output) => {
            let parts = output.parts.into_iter().map(|part| match part {
                wit::Part::Text(text) => wit::Part::Text(clean(text)),
                wit::Part::Json(text) => wit::Part::Json(clean(text)),
                wit::Part::File(file) => {
                    wit::Part::File(wit::FileRef { path: clean(file.path), note: file.note.map(clean) })
                }
                wit::Part::Image(image) => wit::Part::Image(image),
            });
            output.parts = parts.collect();
            Ok(output)
        }
        Err(Error::UnknownTool(text)) => Err(Error::UnknownTool(clean(text))),
        Err(Error::InvalidInput(text)) => Err(Error::InvalidInput(clean(text))),
        Err(Error::Denied(text)) => Err(Error::Denied(clean(text))),
        Err(Error::Failed(text)) => Err(Error::Failed(clean(text))),
    }
}

pub(super) fn context_to_wit(context: &CallContext, env: &GuestEnv) -> wit::CallContext {
    let own = env.preopens.iter().filter(|folder| !matches!(folder.guest.as_str(), "/workspace" | "/library"));
    let mut extra = json!({ "workspace": context.workspace.to_string_lossy() });
    let folders: Vec<&str> = own.map(|folder| folder.guest.as_str()).collect();
    if !folders.is_empty() {
        extra["folders"] = folders.into();
    }
    wit::CallContext {
        session: context.session.clone(),
        call: context.call.clone(),
        step: context.step,
        agent: match context.agent {
            AgentKind::Main => wit::AgentKind::Main,
            AgentKind::Subagent => wit::AgentKind::Subagent,
            AgentKind::Teammate => wit::AgentKind::Teammate,
            AgentKind::Background => wit::AgentKind::Background,
            AgentKind::SkillFork => wit::AgentKind::SkillFork,
        },
        language: context.language.clone(),
        extra: extra.to_string(),
    }
}

/// A part that is not what it says it is makes the whole result an error: the model must not read half of one.
pub(super) fn part_from_wit(part: wit::Part) -> Result<Part, String> {
    Ok(match part {
        wit::Part::Text(text) => Part::Text { text },
        wit::Part::Json(text) => Part::Json {
            value: Json::parse(text)
                .map_err(|error| format!("the plugin answered with a json part that is not JSON: {error}"))?,
        },
        wit::Part::Image(image) => picture(image),
        wit::Part::File(file) => Part::File { path: file.path, note: file.note },
    })
}

/// A picture of a kind that models take, told by its first bytes. Any other would make every later request of the session
/// invalid, so it becomes a line that says so.
fn picture(image: wit::Image) -> Part {
    if picture_type(&image.data) == Some(image.media_type.as_str()) {
        return Part::Image { media_type: image.media_type, data: BASE64.encode(image.data) };
    }
    let kind: String = image.media_type.chars().filter(|c| !c.is_control()).take(60).collect();
    Part::Text {
        text: format!(
            "[a picture of {} bytes, left out: {kind:?} is none of png, jpeg, gif, webp, or its bytes are not]",
            image.data.len()
        ),
    }
}

pub(super) fn part_to_wit(part: &Part) -> wit::Part {
    match part {
        Part::Text { text } => wit::Part::Text(text.clone()),
        Part::Json { value } => wit::Part::Json(value.as_str().to_owned()),
        Part::Image { media_type, data } => wit::Part::Image(wit::Image {
            media_type: media_type.clone(),
            data: BASE64.decode(data).unwrap_or_default(),
        }),
        Part::File { path, note } => wit::Part::File(wit::FileRef { path: path.clone(), note: note.clone() }),
    }
}
