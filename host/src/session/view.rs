//! What the model sees of a transcript: all of it, or what the last compaction put in its place and what came after.
//!
//! Sizes of messages are estimated once, and set right by the provider's own counts. What is learnt of the window from a
//! server's refusal holds for this model and is on record with the compaction that it led to.

use super::Session;
use crate::compact::{Attempt, Breaker, Compacted, Trigger, Window};
use crate::request::ToolSpec;
use crate::runtime::ContextDesk;
use crate::store::{CompactionRecord, Store, StoreError};
use crate::tokens::{self, Gauge, Tokenizer};
use crate::transcript::{Message, Reply, Usage};
use std::sync::Arc;

/// The view of a session, with what is known of its size.
pub(super) struct View {
    /// The message of the transcript that it begins with.
    pub first: usize,
    /// Estimated tokens of each message of the transcript.
    sizes: Vec<u64>,
    gauge: Gauge,
    tokenizer: Tokenizer,
    /// The window that a server named, and of which model.
    learnt: Option<(String, u64)>,
    /// Where compactions put messages, in order.
    copies: Vec<(usize, usize)>,
    breaker: Breaker,
}

impl View {
    /// The view of a session as it is on record, and whether nothing was asked since it was compacted. `believes` what a
    /// server once said of the window, which is so unless the operator has named one since.
    pub fn open(
        store: &Store,
        session: &str,
        model: &str,
        messages: &[Arc<Message>],
        believes: bool,
    ) -> Result<(Self, bool), StoreError> {
        let tokenizer = Tokenizer::of(model);
        let sizes = messages.iter().map(|message| tokens::message(message, tokenizer)).collect();
        let records = store.compactions(session)?;
        let gauge = Gauge::default();
        let mut view =
            Self { first: 0, sizes, gauge, tokenizer, learnt: None, copies: vec![], breaker: Breaker::default() };
        for record in &records {
            if believes && record.model == model && record.trigger == Trigger::Overflow {
                view.learnt = Some((model.to_owned(), record.window));
            }
            view.take(record);
        }
        let asked = store.last_request(session)?.map_or(0, |request| request.first as usize);
        let renewed = view.first > asked;
        Ok((view, renewed))
    }

    /// Takes in what came of a compaction.
    fn take(&mut self, record: &CompactionRecord) {
        // What a person or a tool asked for in vain says nothing of those that are due.
        if record.layer.is_some() || matches!(record.trigger, Trigger::Auto | Trigger::Overflow) {
            self.breaker.record(Attempt { before: record.tokens_before, after: record.tokens_after });
        }
        if record.layer.is_some() {
            self.first = record.first as usize;
            self.copies.push((self.first, self.first + record.messages as usize));
            self.gauge.replaced();
        }
    }

    /// Takes in a message at the end.
    pub fn add(&mut self, message: &Message) {
        self.sizes.push(tokens::message(message, self.tokenizer));
    }

    /// Whether a compaction put the message `at` there.
    pub fn is_copy(&self, at: usize) -> bool {
        let next = self.copies.partition_point(|(from, _)| *from <= at);
        next > 0 && at < self.copies[next - 1].1
    }
}

impl Session {
    /// The conversation as the model sees it.
    pub fn conversation(&self) -> &[Arc<Message>] {
        &self.messages[self.view.first..]
    }

    /// Messages of the transcript that were said, and not put there by a compaction.
    pub fn said(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.iter().enumerate().filter(|(at, _)| !self.view.is_copy(*at)).map(|(_, message)| message)
    }

    /// Estimated tokens of each message of the conversation.
    pub fn sizes(&self) -> &[u64] {
        &self.view.sizes[self.view.first..]
    }

    /// Counts are estimated by this.
    pub fn tokenizer(&self) -> Tokenizer {
        self.view.tokenizer
    }

    /// Tokens the provider counts for each that is estimated.
    pub fn scale(&self) -> f64 {
        self.view.gauge.scale()
    }

    /// The model's window.
    pub fn window(&self) -> Window {
        let learnt = self.view.learnt.as_ref().filter(|(model, _)| model == self.model.name());
        let tokens = learnt.map_or(self.setup.window, |(_, learnt)| *learnt.min(&self.setup.window));
        Window { tokens, output: u64::from(self.max_output_tokens) }
    }

    /// Takes in a window that a server has named.
    pub fn learn_window(&mut self, tokens: u64) {
        self.view.learnt = Some((self.model.name().to_owned(), tokens));
    }

    /// When automatic compactions are left out.
    pub fn breaker(&self) -> &Breaker {
        &self.view.breaker
    }

    /// Estimated tokens of all that stands in front of the conversation.
    pub fn front_tokens(&mut self) -> Result<u64, StoreError> {
        let tokenizer = self.view.tokenizer;
        let epoch = self.epoch()?;
        let front = epoch.front.as_ref().map_or(0, |front| tokens::message(front, tokenizer));
        Ok(epoch.sizes.0 + epoch.sizes.1 + front)
    }

    /// Tokens of the next request, as well as they are known.
    pub fn next_tokens(&mut self) -> Result<u64, StoreError> {
        let front = self.front_tokens()?;
        Ok(self.view.gauge.next(front, self.sizes()))
    }

    /// Takes in the provider's count of the request that was answered just now; the answer is not in the conversation yet.
    pub fn count(&mut self, reply: &Reply) -> Result<(), StoreError> {
        let front = self.front_tokens()?;
        let estimate = front + self.sizes().iter().sum::<u64>();
        let messages = self.conversation().len() + 1;
        self.view.gauge.counted(reply.usage, estimate, messages);
        Ok(())
    }

    /// Puts what a compaction made in the place of the conversation, on record first; the epoch ends.
    /// `usage` is what a summary cost.
    pub fn replace(
        &mut self,
        record: CompactionRecord,
        made: Compacted,
        usage: Option<Usage>,
    ) -> Result<CompactionRecord, StoreError> {
        let record = self.store.record_compaction(&self.id, record, &made.messages, usage)?;
        for message in made.messages {
            self.view.add(&message);
            self.messages.push(Arc::new(message));
        }
        self.view.take(&record);
        self.end_epoch("compaction");
        Ok(record)
    }

    /// Puts a compaction on record that changed nothing.
    pub fn record_failure(&mut self, record: CompactionRecord) -> Result<(), StoreError> {
        let record = self.store.record_compaction(&self.id, record, &[], None)?;
        self.view.take(&record);
        Ok(())
    }

    /// The tools that stand in front, with their schemas.
    pub fn listed_tools(&mut self) -> Result<Arc<[ToolSpec]>, StoreError> {
        Ok(self.epoch()?.tools.clone())
    }

    /// Lays out for the guests how full the window is.
    pub fn lay_out(&mut self) -> Result<(), StoreError> {
        let tokens = self.next_tokens()?;
        let window = self.window();
        let messages = self.conversation().len() as u32;
        let mut desk = self.calls.services.desk.context();
        let wanted = desk.take().and_then(|desk| desk.wanted);
        *desk = Some(ContextDesk { tokens, window: window.tokens, goal: window.due() / 2, messages, wanted });
        Ok(())
    }

    /// The compaction that a tool asked for, with its instructions; asked for no more.
    pub fn wanted(&self) -> Option<String> {
        self.calls.services.desk.context().as_mut().and_then(|desk| desk.wanted.take())
    }
}
