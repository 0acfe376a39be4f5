//! The fold of `pre-tool-use` judgements into one decision (DESIGN 5): pure, total, and the same in every agent.
//!
//! Mutations chain, the first block ends the chain, an ask survives a later proceed.

use serde_json::Value;
use std::borrow::Cow;

/// What one hook said of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Go on.
    Proceed,
    /// Go on with other arguments, and tell the model this.
    Mutate {
        /// The new arguments.
        input: Value,
        /// Text for the model.
        context: Option<String>,
    },
    /// Ask a person.
    Ask(String),
    /// Refuse.
    Block(String),
}

/// What all hooks so far made of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict<'a> {
    /// Arguments as they stand: the model's own until a hook changes them.
    pub input: Cow<'a, Value>,
    /// Whether a hook changed the arguments.
    pub mutated: bool,
    /// Text for the model, in hook order.
    pub contexts: Vec<String>,
    /// Who asks for a person's consent, and why.
    pub asks: Vec<(String, String)>,
    /// Who refused, and why.
    pub block: Option<(String, String)>,
}

impl<'a> Verdict<'a> {
    /// Before any hook: proceed.
    pub fn new(input: &'a Value) -> Self {
        Self { input: Cow::Borrowed(input), mutated: false, contexts: Vec::new(), asks: Vec::new(), block: None }
    }

    /// After one more hook. True when the chain goes on.
    pub fn fold(&mut self, plugin: &str, judgement: Judgement) -> bool {
        match judgement {
            _ if self.block.is_some() => {}
            Judgement::Proceed => {}
            Judgement::Mutate { input, context } => {
                self.input = Cow::Owned(input);
                self.mutated = true;
                self.contexts.extend(context.filter(|text| !text.trim().is_empty()));
            }
            Judgement::Ask(reason) => self.asks.push((plugin.to_owned(), reason)),
            Judgement::Block(reason) => self.block = Some((plugin.to_owned(), reason)),
        }
        self.block.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::LazyLock;

    fn fold(judgements: Vec<Judgement>) -> Verdict<'static> {
        static INPUT: LazyLock<Value> = LazyLock::new(|| json!({ "n": 0 }));
        let mut verdict = Verdict::new(&INPUT);
        for (n, judgement) in judgements.into_iter().enumerate() {
            verdict.fold(&format!("h{n}"), judgement);
        }
        verdict
    }

    fn mutate(n: u32) -> Judgement {
        Judgement::Mutate { input: json!({ "n": n }), context: Some(format!("now {n}")) }
    }

    #[test]
    fn mutations_chain_and_keep_their_contexts_in_order() {
        let verdict = fold(vec![mutate(1), Judgement::Proceed, mutate(2)]);
        assert_eq!(*verdict.input, json!({ "n": 2 }));
        assert_eq!(verdict.contexts, ["now 1", "now 2"]);
    }

    #[test]
    fn the_first_block_ends_the_chain() {
        let verdict = fold(vec![mutate(1), Judgement::Block("no".into()), Judgement::Block("later".into()), mutate(2)]);
        assert_eq!(verdict.block, Some(("h1".into(), "no".into())));
        assert_eq!(*verdict.input, json!({ "n": 1 }));
    }

    #[test]
    fn an_ask_survives_a_later_proceed() {
        let verdict = fold(vec![Judgement::Ask("sure?".into()), Judgement::Proceed]);
        assert_eq!(verdict.asks, [("h0".into(), "sure?".into())]);
    }
}
