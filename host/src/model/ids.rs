//! Ids of tool calls, unique within a conversation whatever a server sends. Pure.
//!
//! Some servers send none, or begin to count anew with each answer. Vendors refuse a conversation in which two calls share
//! one, and our own record knows a call by it.

use crate::transcript::{Block, Message};
use std::collections::HashSet;
use std::sync::Arc;

/// Gives each call in `content` that has no id, or one that stands in `earlier` or twice in itself, a new one.
pub(super) fn make_unique(content: &mut [Block], earlier: &[Arc<Message>]) {
    let mut taken: HashSet<String> = earlier.iter().flat_map(|message| &message.content).filter_map(id_of).collect();
    for block in content {
        if let Block::ToolUse { id, .. } = block
            && (id.is_empty() || !taken.insert(id.clone()))
        {
            *id = format!("call_{}", uuid::Uuid::now_v7().simple());
        }
    }
}

/// The id of a call.
pub(super) fn id_of(block: &Block) -> Option<String> {
    match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Origin, Role};
    use serde_json::json;

    #[test]
    fn an_id_is_taken_once() {
        let call = |id: &str| Block::ToolUse { id: id.into(), name: "t".into(), input: json!({}), malformed: None };
        let earlier = [Arc::new(Message { role: Role::Assistant, origin: Origin::Model, content: vec![call("a")] })];
        let mut content = vec![call("a"), call("b"), call("b"), call("")];
        make_unique(&mut content, &earlier);
        let ids: HashSet<String> = content.iter().filter_map(id_of).collect();
        assert_eq!(ids.len(), 4);
        assert!(!ids.contains("a") && ids.contains("b") && !ids.contains(""), "{ids:?}");
    }
}
