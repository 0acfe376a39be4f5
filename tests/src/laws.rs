//! What every conversation must be for any server to take it.

use astrarium::transcript::{Block, Message, Role};
use std::borrow::Borrow;
use std::collections::HashSet;

/// What is wrong with a conversation, if something is: an empty message, a call without exactly one result in the message
/// after it, a result without its call, an id that comes twice, or a beginning that is not a user's.
pub fn broken<M: Borrow<Message>>(messages: &[M]) -> Option<String> {
    let mut waiting: HashSet<&str> = HashSet::new();
    let mut ids: HashSet<&str> = HashSet::new();
    if messages.first().is_some_and(|message| message.borrow().role != Role::User) {
        return Some("it does not begin with the user's side".into());
    }
    for (at, message) in messages.iter().enumerate() {
        let message: &Message = message.borrow();
        if message.content.iter().all(|block| matches!(block, Block::Thinking { .. })) {
            return Some(format!("message {at} says nothing"));
        }
        let mut answered = HashSet::new();
        for block in &message.content {
            match block {
                Block::Text { text } if text.trim().is_empty() => {
                    return Some(format!("message {at} has a blank text"));
                }
                Block::ToolResult { id, .. } if !answered.insert(id.as_str()) => {
                    return Some(format!("{id} is answered twice in message {at}"));
                }
                _ => {}
            }
        }
        if answered != waiting {
            return Some(format!("message {at} answers {answered:?}, and {waiting:?} waited"));
        }
        waiting.clear();
        for block in &message.content {
            if let Block::ToolUse { id, .. } = block {
                if message.role != Role::Assistant || !ids.insert(id) {
                    return Some(format!("message {at} calls with the id {id}, which comes twice or from the user"));
                }
                waiting.insert(id);
            }
        }
    }
    (!waiting.is_empty()).then(|| format!("{waiting:?} have no results"))
}

/// Asserts that nothing is.
#[track_caller]
pub fn assert_accepted<M: Borrow<Message>>(messages: &[M]) {
    if let Some(what) = broken(messages) {
        panic!("{what}");
    }
}
