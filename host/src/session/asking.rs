//! How a session asks: its epoch, its requests and the ledger that says what each one shared with the one before.

use super::Session;
use crate::epoch::{self, Epoch, Listed, Prefix};
use crate::hooks::Contributed;
use crate::memory::{Listing, Seen};
use crate::prompt::marks::{self, marks};
use crate::prompt::render::{self, Place};
use crate::prompt::{Segment, reminder};
use crate::request::{Request, ToolChoice};
use crate::store::{RequestRecord, StoreError};
use crate::transcript::{Message, Origin, Reply};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request that was answered, as far as the next one is compared with it.
pub(super) struct Sent {
    epoch: u64,
    front: Arc<Vec<(Place, String)>>,
    /// Each message with the bytes of its rendering.
    messages: Vec<(Arc<Message>, u64)>,
}

/// What a request is, beside what the model reads.
pub struct Account {
    shared: u64,
    bytes: u64,
    messages: Vec<(Arc<Message>, u64)>,
}

impl Session {
    /// The epoch under way; without one it is begun, warm where the provider still has the old one's bytes.
    pub(super) fn epoch(&mut self) -> Result<&mut Epoch, StoreError> {
        if self.epoch.is_none() {
            let context = self.context(0);
            let inputs = epoch::inputs(&self.setup, self.model.name(), &context);
            let warm = match self.next_epoch {
                "resume" => Epoch::warm(&self.store, &self.id, &inputs, &self.setup)?,
                _ => None,
            };
            let listing = self.listing();
            let epoch = match warm {
                Some(epoch) => {
                    let last = self.recall_last_request(&epoch)?;
                    if let (Some(listing), Some(last)) = (&listing, last) {
                        *self.calls.services.desk.memory() = Seen::as_of(listing, last);
                    }
                    epoch
                }
                None => {
                    let snapshot = self.calls.registry.snapshot();
                    let uses = self.store.tool_uses()?;
                    let mut contributed = self.contributed.clone();
                    if let Some(listing) = &listing {
                        *self.calls.services.desk.memory() = Seen::all(listing);
                        contributed.segments.push(self.memory_segment(listing));
                    }
                    self.setup.agents = crate::agent::list(self.staff.roster().all().map(|found| &*found.definition));
                    self.skills.begin_epoch(self.language())?;
                    let list = self.skills.segment(self.texts(), self.setup.window);
                    let skills = Listed { list, names: self.skills.names() };
                    let rendered = Prefix::render(&self.setup, &snapshot, &uses, &context, contributed, skills);
                    Epoch::begin(&self.store, &self.id, self.next_epoch, &inputs, rendered, self.setup.tokenizer)?
                }
            };
            self.epoch = Some(epoch);
        }
        match &mut self.epoch {
            Some(epoch) => Ok(epoch),
            None => unreachable!("it was set above"),
        }
    }

    /// The memory files; none for an agent that works for another one and is told what it needs. A shelf that does not read is
    /// said and leaves the session without memories, never silently.
    fn listing(&self) -> Option<Arc<Listing>> {
        if self.post.works_for.is_some() {
            return None;
        }
        match self.calls.services.shelf.list() {
            Ok(listing) => Some(listing),
            Err(error) => {
                tracing::error!("the session goes on without memories: {error}");
                None
            }
        }
    }

    /// Memories that bear on the user's latest question.
    fn memory_segment(&self, listing: &Listing) -> Segment {
        let asked = self.messages.iter().rev().find(|message| message.origin == Origin::User);
        let question = asked.map(|message| message.text()).unwrap_or_default();
        epoch::memory_segment(&self.setup, listing, self.calls.services.shelf.folder(), &question)
    }

    /// Has plugins render their segments, where an epoch is about to begin.
    pub async fn contribute(&mut self, step: u32, cancel: &CancellationToken) {
        if self.epoch.is_none() {
            self.contributed = self.hooks.segments(&self.context(step), cancel, false).await;
        }
    }

    /// Segments of this turn that say something else than the model saw last, as messages for the tail.
    pub async fn turn_segments(&self, cancel: &CancellationToken) -> Vec<Message> {
        let Contributed { segments, .. } = self.hooks.segments(&self.context(0), cancel, true).await;
        let mut segments: Vec<_> = segments.into_iter().filter(|segment| !segment.text.trim().is_empty()).collect();
        segments.sort_by_key(|segment| segment.order);
        let message = |segment: &Segment| {
            let opening = format!("<prompt-segment name=\"{}\">", segment.name);
            let text = reminder(&format!("{opening}\n{}\n</prompt-segment>", segment.text.trim()));
            let mut last = self.conversation().iter().rev().map(|message| message.text());
            let last = last.find(|said| said.contains(&opening));
            (last.as_deref() != Some(&text)).then(|| Message::host(text))
        };
        segments.iter().filter_map(message).collect()
    }

    /// Ends the epoch: the cache is lost anyway, so the next request is rendered from what there is then.
    pub fn end_epoch(&mut self, reason: &'static str) {
        self.epoch = None;
        self.next_epoch = reason;
    }

    /// What the model has not been told of yet, for the tail of the conversation: changes of the catalogue, of the
    /// memories by others, and of the skills.
    pub fn news(&mut self) -> Result<Vec<String>, StoreError> {
        let snapshot = self.calls.registry.snapshot();
        let (store, id) = (self.store.clone(), self.id.clone());
        let mut news = Vec::new();
        let reach = self.setup.reach.clone();
        let epoch = self.epoch()?;
        if let Some(tools) = epoch.news(&snapshot, &reach) {
            epoch.keep_told(&store, &id)?;
            news.push(reminder(&self.texts().fill("catalogue-news", &[("tools", &tools)])));
        }
        if let Some(listing) = self.listing() {
            let changed = self.calls.services.desk.memory().news(&listing, self.texts());
            news.extend(changed.map(|text| reminder(&text)));
        }
        if epoch::loads_skills(&snapshot, &self.setup.reach) {
            news.extend(self.skills.news(self.texts())?.iter().map(|text| reminder(text)));
        }
        Ok(news)
    }

    /// The next request, and what it shares with the one before.
    pub fn request(&mut self, tool_choice: ToolChoice) -> Result<(Request, Account), StoreError> {
        let epoch = self.epoch()?;
        let (number, tools, system, front) =
            (epoch.number, epoch.tools.clone(), epoch.system.clone(), epoch.front.clone());
        let (sizes, pieces) = (epoch.sizes, epoch.pieces.clone());
        let ahead = usize::from(front.is_some());
        let mut messages = Vec::with_capacity(ahead + self.conversation().len());
        messages.extend(front);
        messages.extend(self.conversation().iter().cloned());
        let before = self.sent.as_ref().filter(|sent| sent.epoch == number);
        let parts = marks::Parts {
            tools: sizes.0,
            system: sizes.1,
            segments: system.len(),
            messages: messages.len(),
            before: before.map_or(0, |sent| ahead + sent.messages.len()),
        };
        let request = Request {
            tools,
            system,
            messages,
            tool_choice,
            max_output_tokens: self.max_output_tokens,
            breakpoints: marks(parts, marks::minimum(self.model.name())),
            cache_life: self.setup.cache_life,
        };
        Ok((request, self.account(number, &pieces)))
    }

    /// Counts what the next request has in common with the last one, in render order.
    fn account(&self, epoch: u64, pieces: &Arc<Vec<(Place, String)>>) -> Account {
        let front: u64 = pieces.iter().map(|(_, text)| text.len() as u64).sum();
        let (mut shared, mut alike) = match &self.sent {
            None => (0, false),
            Some(sent) if sent.epoch == epoch => (front, true),
            Some(sent) => {
                let parting = render::part(&sent.front, pieces);
                (parting.shared_bytes, parting.place.is_none() && sent.front.len() == pieces.len())
            }
        };
        let mut bytes = front;
        let mut messages = Vec::with_capacity(self.conversation().len());
        for (at, message) in self.conversation().iter().enumerate() {
            let earlier = self.sent.as_ref().and_then(|sent| sent.messages.get(at));
            let (same, size) = match earlier {
                Some((old, size)) if Arc::ptr_eq(old, message) || old == message => (true, *size),
                _ => (false, render::message(message).len() as u64),
            };
            alike &= same;
            shared += if alike { size } else { 0 };
            bytes += size;
            messages.push((message.clone(), size));
        }
        Account { shared, bytes, messages }
    }

    /// Puts an answered request on the ledger.
    pub fn record_request(&mut self, account: Account, reply: &Reply, step: u32) -> Result<(), StoreError> {
        let Account { shared, bytes, messages } = account;
        let epoch = self.epoch()?;
        let (number, front) = (epoch.number, epoch.pieces.clone());
        let record = RequestRecord {
            number: 0,
            epoch: number,
            step,
            created: String::new(),
            model: reply.model.clone(),
            first: self.view.first as u64,
            messages: messages.len() as u64,
            shared_bytes: shared,
            bytes,
            usage: reply.usage,
        };
        self.store.record_request(&self.id, &record)?;
        self.sent = Some(Sent { epoch: number, front, messages });
        Ok(())
    }

    /// Puts on the ledger what was asked outside the conversation, for a summary.
    pub fn record_aside(&mut self, bytes: u64, reply: &Reply, step: u32) -> Result<(), StoreError> {
        let record = RequestRecord {
            number: 0,
            epoch: self.epoch()?.number,
            step,
            created: String::new(),
            model: reply.model.clone(),
            first: self.view.first as u64,
            messages: 0,
            shared_bytes: 0,
            bytes,
            usage: reply.usage,
        };
        self.store.record_request(&self.id, &record)?;
        self.sent = None;
        Ok(())
    }

    /// In a second process: the last request was the epoch's prefix and the first messages of the transcript.
    fn recall_last_request(&mut self, epoch: &Epoch) -> Result<Option<jiff::Timestamp>, StoreError> {
        let Some(last) = self.store.last_request(&self.id)? else { return Ok(None) };
        let messages = self.messages.iter().skip(last.first as usize).take(last.messages as usize);
        let messages = messages.map(|message| (message.clone(), render::message(message).len() as u64)).collect();
        self.sent = Some(Sent { epoch: epoch.number, front: epoch.pieces.clone(), messages });
        Ok(last.created.parse().ok())
    }
}
