//! The plan itself: which layers to try for a trigger, and what each makes of the conversation.

use super::build::{Draft, Emptied, cut as cut_message, seen};
use super::clip::clip;
use super::cut::{self, TAIL};
use super::restore::{Restore, Scope, compose};
use super::texts::{Texts, fill};
use super::{Layer, Trigger, Window};
use crate::tokens::{Tokenizer, message, text};
use crate::transcript::{Block, Message, Origin};
use std::collections::HashSet;

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The conversation, at a point where no call waits for its result.
    pub messages: &'a [Message],
    /// Estimated tokens of each.
    pub sizes: &'a [u64],
    /// Estimated tokens of tools and system prompt.
    pub front: u64,
    /// Tokens the provider counts for each that is estimated.
    pub scale: f64,
    /// How estimates are made.
    pub tokenizer: Tokenizer,
    /// The model's window.
    pub window: Window,
    /// What started it.
    pub trigger: Trigger,
    /// Whether a model may be asked for a summary.
    pub asks: bool,
    /// What comes back.
    pub restore: &'a Restore,
    /// Our texts.
    pub texts: &'a Texts,
}

/// Why there is nothing to plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// The front alone fills the window.
    #[error(
        "tools and system prompt take about {front} tokens of a window of {window}, which leaves no room for a \
         conversation; use fewer plugins, or name the model's true window (context_window in the config, or \
         ASTRARIUM_CONTEXT_WINDOW)"
    )]
    Front {
        /// Tokens of tools and system prompt.
        front: u64,
        /// Tokens of the window.
        window: u64,
    },
    /// There is too little to compact.
    #[error("the conversation is too short to be compacted")]
    Short,
}

/// Why a layer did not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The summary says nothing.
    #[error("the summary is empty")]
    Empty,
    /// The summary is as large as what it replaces.
    #[error("the summary has {summary} tokens and would replace {replaced}")]
    Inflated {
        /// Tokens of the summary.
        summary: u64,
        /// Tokens of what it replaces.
        replaced: u64,
    },
    /// The new conversation is no smaller, or does not fit.
    #[error("the new conversation would have {after} tokens, with {before} before and room for {room}")]
    NoGain {
        /// Tokens after.
        after: u64,
        /// Tokens before.
        before: u64,
        /// Tokens that would do.
        room: u64,
    },
}

/// A plan: layers to try in this order, and where the conversation is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Layers, the first that does is taken.
    pub layers: Vec<Layer>,
    /// Estimated tokens of the conversation without tools and system prompt.
    pub total: u64,
    /// The middle begins here.
    pub head: usize,
    /// The end that stays begins here, for all layers but `snip` and `aggressive`.
    pub tail: usize,
    /// Estimated tokens that the new conversation may have at most.
    room: u64,
    /// Those it should have, so that the window does not fill up again at once.
    goal: u64,
    /// Those that what is restored may have.
    fifth: u64,
}

/// A new conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// What made it.
    pub layer: Layer,
    /// Its messages.
    pub messages: Vec<Message>,
    /// Its estimated tokens.
    pub tokens: u64,
    /// Those of them that were restored: what [`Restore`] names and the last message of the user.
    pub restored: u64,
}

/// Tokens beside the front without which no conversation is possible: a question, a summary, an answer's beginning.
const LEAST: u64 = 256;

/// Tokens of a message's frame and of the blank lines around its parts.
const FRAME: u64 = 8;
/// A conversation of at most this many messages gets the identity block (SPEC 4.5).
const FEW: usize = 4;

/// How the messages that stay are copied.
enum Shape {
    /// As they are.
    Whole,
    /// Emptied and cut, with their sizes.
    Cut { messages: Vec<Message>, sizes: Vec<u64> },
}

/// Plans a compaction.
pub fn plan(input: &Input<'_>) -> Result<Plan, Stuck> {
    let estimated = |tokens: u64| (tokens as f64 / input.scale) as u64;
    let room = estimated(input.window.due()).saturating_sub(input.front);
    let total: u64 = input.sizes.iter().sum();
    let due = total >= room;
    if room < LEAST {
        let front = (input.front as f64 * input.scale) as u64;
        return Err(Stuck::Front { front, window: input.window.tokens });
    }
    // The server has refused what seemed to fit: whatever our numbers say, it must become clearly less.
    let room = if input.trigger == Trigger::Overflow { room.min(total / 4 * 3) } else { room };
    if room < LEAST {
        return Err(Stuck::Short);
    }
    let goal = room / 2;
    let fifth = estimated(input.window.fifth()).min(room / 3);
    let head = cut::head(input.messages, input.sizes, room / 16);
    let tail = cut::tail(input.messages, input.sizes, head, (room / 4).min(total / 3), TAIL);
    if tail <= head {
        return Err(Stuck::Short);
    }
    let mut plan = Plan { layers: Vec::new(), total, head, tail, room, goal, fifth };
    let saved = Emptied::of(&input.messages[..tail], &input.sizes[..tail], 0, input.tokenizer).saved(input.sizes);
    let pressing = due || input.trigger == Trigger::Overflow;
    let asked = matches!(input.trigger, Trigger::Manual | Trigger::Tool);
    // What micro gives back is counted against it, so that one that is planned does not fail.
    let back = input.restore.of_results(input.tokenizer).min(fifth);
    if !asked && total - saved + back <= goal {
        plan.layers.push(Layer::Micro);
    }
    if input.asks {
        plan.layers.push(Layer::Summary);
    }
    if asked && saved > 0 {
        plan.layers.push(Layer::Micro);
    }
    if pressing {
        if input.messages.len() > cut::HEAD + TAIL {
            plan.layers.push(Layer::Snip);
        }
        plan.layers.push(Layer::Aggressive);
    }
    Ok(plan)
}

impl Plan {
    /// The new conversation that `layer` makes; `summary` is the model's text, for [`Layer::Summary`] alone.
    pub fn apply(&self, input: &Input<'_>, layer: Layer, summary: &str) -> Result<Compacted, Refused> {
        let made = match layer {
            Layer::Micro => self.micro(input),
            Layer::Summary => self.summary(input, summary)?,
            Layer::Snip => self.snip(input),
            Layer::Aggressive => self.aggressive(input),
        };
        if made.tokens >= self.total || made.tokens > self.room {
            return Err(Refused::NoGain { after: made.tokens, before: self.total, room: self.room });
        }
        Ok(made)
    }

    fn micro(&self, input: &Input<'_>) -> Compacted {
        let (older, recent) = input.messages.split_at(self.tail);
        let emptied = Emptied::of(older, &input.sizes[..self.tail], 0, input.tokenizer);
        let mut seen_calls = seen(older, Some(&emptied));
        seen_calls.extend(seen(recent, None));
        let restored = self.restored(input, Scope::Results, self.fifth - FRAME, &seen_calls, &|_| true);
        let mut draft = Draft::default();
        for (message, size) in older.iter().zip(&emptied.sizes) {
            draft.push_sized(emptied.apply(message), *size);
        }
        let before = draft.tokens;
        draft.push(Message::compaction(restored), input.tokenizer);
        let restored = draft.tokens - before;
        for (message, size) in recent.iter().zip(&input.sizes[self.tail..]) {
            draft.push_sized(message.clone(), *size);
        }
        Compacted { layer: Layer::Micro, messages: draft.messages, tokens: draft.tokens, restored }
    }

    fn summary(&self, input: &Input<'_>, summary: &str) -> Result<Compacted, Refused> {
        let summary = super::clean(summary).ok_or(Refused::Empty)?;
        let size = text(&summary, input.tokenizer);
        let replaced: u64 = input.sizes[self.head..self.tail].iter().sum();
        if size >= replaced {
            return Err(Refused::Inflated { summary: size, replaced });
        }
        let title = format!("{}\n{summary}", input.texts.labels.summary);
        Ok(self.cut_out(input, Layer::Summary, self.head, self.tail, title, &Shape::Whole))
    }

    fn snip(&self, input: &Input<'_>) -> Compacted {
        let budget = self.goal.saturating_sub(self.goal / 8 + self.fifth);
        let tail = cut::tail(input.messages, input.sizes, self.head, budget, TAIL);
        let title = self.left_out(input, tail - self.head);
        self.cut_out(input, Layer::Snip, self.head, tail, title, &Shape::Whole)
    }

    /// The last two results stay, and of all the rest what fits; with less and less of it until it does.
    fn aggressive(&self, input: &Input<'_>) -> Compacted {
        let emptied = Emptied::of(input.messages, input.sizes, 2, input.tokenizer);
        let last = self.last_question(input).filter(|last| input.sizes[*last] <= self.share());
        let mut made = None;
        // Shares of the goal; with the last of them nothing stays but what is restored, which always fits.
        for part in [2, 4, 8, u64::MAX] {
            let budget = self.goal / part;
            let cut = |(at, message): (usize, &Message)| {
                let message = emptied.apply(message);
                if last == Some(at) {
                    return message;
                }
                cut_message(&message, budget / 4, part == 2, &input.texts.labels, input.tokenizer)
            };
            let messages: Vec<Message> = input.messages.iter().enumerate().map(cut).collect();
            let sizes: Vec<u64> = messages.iter().map(|message| self::message(message, input.tokenizer)).collect();
            let head = cut::head(&messages, &sizes, budget / 8);
            let tail = cut::tail(&messages, &sizes, head, budget, usize::MAX);
            let title = self.left_out(input, tail - head);
            let shape = Shape::Cut { messages, sizes };
            let done = self.cut_out(input, Layer::Aggressive, head, tail, title, &shape);
            if done.tokens <= self.goal || part == u64::MAX {
                return done;
            }
            made = Some(done);
        }
        made.expect("the last share returns")
    }

    fn left_out(&self, input: &Input<'_>, count: usize) -> String {
        fill(&input.texts.labels.left_out, "count", &count.to_string())
    }

    /// The front up to `head`, then `title` with what is restored, then the end from `tail`.
    fn cut_out(
        &self,
        input: &Input<'_>,
        layer: Layer,
        head: usize,
        tail: usize,
        title: String,
        shape: &Shape,
    ) -> Compacted {
        let tokenizer = input.tokenizer;
        let (messages, sizes) = match shape {
            Shape::Whole => (input.messages, input.sizes),
            Shape::Cut { messages, sizes } => (messages.as_slice(), sizes.as_slice()),
        };
        let question = self.question(input, head, tail);
        let spent = question.iter().map(|part| message(part, tokenizer)).sum::<u64>();
        // Results that were emptied or cut are no longer what was read.
        let stay = (0..head).chain(tail..messages.len()).filter(|at| messages[*at] == input.messages[*at]);
        let kept: HashSet<&str> = stay.flat_map(|at| seen(&messages[at..=at], None)).collect();
        let said = |words: &str| {
            let own = |message: &&Message| message.origin == Origin::User;
            let shown = messages[..head].iter().chain(&question).chain(&messages[tail..]);
            shown.filter(own).any(|message| message.text().contains(words))
        };
        let budget = self.fifth.saturating_sub(spent + FRAME);
        let restored = self.restored(input, Scope::All, budget, &kept, &said);
        let restored_tokens = spent + text(&restored, tokenizer);
        let mut blocks = vec![title];
        if !restored.is_empty() {
            blocks.push(restored);
        }
        if head + messages.len() - tail + question.len() < FEW {
            let identity = fill(&input.texts.identity, "identity", input.restore.identity.trim());
            blocks.push(clip(identity.trim(), self.room / 4, &input.texts.labels.clipped, tokenizer));
        }
        let mut draft = Draft::default();
        for at in 0..head {
            draft.push_sized(messages[at].clone(), sizes[at]);
        }
        draft.push(Message::compaction(blocks.join("\n\n")), tokenizer);
        for part in question {
            draft.push(part, tokenizer);
        }
        for at in tail..messages.len() {
            draft.push_sized(messages[at].clone(), sizes[at]);
        }
        Compacted { layer, messages: draft.messages, tokens: draft.tokens, restored: restored_tokens }
    }

    /// Where the user's last message is.
    fn last_question(&self, input: &Input<'_>) -> Option<usize> {
        let says = |block: &Block| !matches!(block, Block::Text { text } if text.trim().is_empty());
        input.messages.iter().rposition(|message| message.origin == Origin::User && message.content.iter().any(says))
    }

    /// Tokens that the user's last message may have and still come back word for word.
    fn share(&self) -> u64 {
        self.fifth / 4 * 3
    }

    /// The user's last message, when the cut would take it away: word for word, unless it alone is over its share. Files
    /// that were attached to it stand in front of it, as far as they fit beside it.
    fn question(&self, input: &Input<'_>, head: usize, tail: usize) -> Vec<Message> {
        let Some(last) = self.last_question(input).filter(|last| (head..tail).contains(last)) else {
            return Vec::new();
        };
        let share = self.share();
        let question = self.words(input, &input.messages[last], input.sizes[last]);
        let room = share.saturating_sub(message(&question, input.tokenizer));
        let beside = last.checked_sub(1).filter(|at| *at >= head && input.messages[*at].origin == Origin::Attached);
        let attached = beside.and_then(|at| {
            let whole = &input.messages[at];
            if input.sizes[at] <= room {
                return Some(whole.clone());
            }
            let each = (room / whole.content.len().max(1) as u64).checked_sub(FRAME)?;
            let cut = cut_message(whole, each, false, &input.texts.labels, input.tokenizer);
            (message(&cut, input.tokenizer) <= room).then_some(cut)
        });
        attached.into_iter().chain([question]).collect()
    }

    /// The user's own words.
    fn words(&self, input: &Input<'_>, whole: &Message, size: u64) -> Message {
        let share = self.share();
        if size <= share {
            return whole.clone();
        }
        let without = cut_message(whole, share - FRAME, false, &input.texts.labels, input.tokenizer);
        if message(&without, input.tokenizer) <= share {
            return without;
        }
        Message::user(clip(&without.text(), share - FRAME, &input.texts.labels.clipped, input.tokenizer))
    }

    fn restored(
        &self,
        input: &Input<'_>,
        scope: Scope,
        budget: u64,
        seen: &HashSet<&str>,
        said: &dyn Fn(&str) -> bool,
    ) -> String {
        compose(input.restore, scope, budget, seen, said, &input.texts.labels, input.tokenizer)
    }
}
