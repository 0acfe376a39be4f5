//! The catalogue of an epoch: which tools stand in the request, frozen; which are found by searching; and what is news since.
//!
//! Pure. Built-in tools come first, then external ones, each sorted by name (SPEC 1.6). A tool is deferred when its plugin
//! says so, or when the catalogue would pass a tenth of the window: external ones first, then the least used. A tool that
//! is new or has changed since is announced once, with its schema, and called through `call_tool`.

use crate::matching;
use crate::prompt::segments::first_sentence;
use crate::request::ToolSpec;
use crate::transcript::Json;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

/// A tool as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Tool name.
    pub name: &'a str,
    /// Plugin that answers it.
    pub plugin: &'a str,
    /// Whether its plugin ships with the host.
    pub built_in: bool,
    /// The plugin's own one-line summary.
    pub summary: Option<&'a str>,
    /// Whole description.
    pub description: &'a str,
    /// JSON Schema of its arguments, canonical.
    pub schema: &'a Json,
    /// Whether its plugin wants it found by searching only.
    pub deferred: bool,
    /// How often it was called on this home, to choose what is deferred for want of room.
    pub uses: u64,
    /// Whether its plugin may start other agents.
    pub starts_agents: bool,
}

/// Tools that an agent may use: all of them, until something is taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// The only ones, where it is not all.
    pub only: Option<BTreeSet<String>>,
    /// Whether those are out of it whose plugins may start other agents.
    pub no_agents: bool,
}

impl Reach {
    /// Whether a tool is within it. `call_tool` always is, since it is an address and no tool.
    pub fn has(&self, tool: &str, starts_agents: bool) -> bool {
        let named = |only: &BTreeSet<String>| only.contains(tool) || tool == CALL_TOOL;
        !(self.no_agents && starts_agents) && self.only.as_ref().is_none_or(named)
    }

    /// The entries within it. Where they were named one by one, none waits to be found.
    pub fn of<'a>(&self, entries: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
        let within = entries.into_iter().filter(|entry| self.has(entry.name, entry.starts_agents));
        within.map(|entry| Entry { deferred: entry.deferred && self.only.is_none(), ..entry }).collect()
    }
}

impl Entry<'_> {
    /// One line: the plugin's own, else the first sentence.
    pub fn line(&self) -> String {
        let own = self.summary.map(str::trim).filter(|summary| !summary.is_empty());
        own.map(str::to_owned).unwrap_or_else(|| first_sentence(self.description))
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema: self.schema.clone(),
        }
    }

    /// Stands for all that a model sees of the tool. Stable over processes: it is kept with the epoch.
    fn mark(&self) -> String {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        (self.description, self.schema.as_str()).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// FNV-1a: the standard library promises no stable hash, and no adversary chooses what is compared here but a plugin that
/// would only hide its own news.
struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// What stands in front of an epoch's requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frozen {
    /// Tools with their schemas, in order.
    pub tools: Vec<ToolSpec>,
    /// Names of tools that are found by searching, in order.
    pub deferred: Vec<String>,
}

/// What the model has been told of, by name: stands for description and schema.
pub type Told = BTreeMap<String, String>;

/// Freezes a catalogue that is to take at most `budget` tokens, and says what the model knows by it.
pub fn freeze(entries: &[Entry<'_>], budget: u64, tokens: impl Fn(&Entry<'_>) -> u64) -> (Frozen, Told) {
    let mut sorted: Vec<&Entry<'_>> = entries.iter().collect();
    sorted.sort_by_key(|entry| (!entry.built_in, entry.name));
    let mut shown: Vec<(&Entry<'_>, u64)> =
        sorted.iter().filter(|entry| !entry.deferred).map(|entry| (*entry, tokens(entry))).collect();
    let mut sum: u64 = shown.iter().map(|(_, size)| size).sum();
    while sum > budget {
        // External ones first, then the least used; of equal ones the last by name. How tools are found and reached stays.
        let candidates = shown.iter().enumerate().filter(|(_, (entry, _))| !ADDRESSES.contains(&entry.name));
        let Some((at, _)) = candidates.min_by_key(|(at, (entry, _))| (entry.built_in, entry.uses, usize::MAX - at))
        else {
            break;
        };
        sum -= shown.remove(at).1;
    }
    let tools: Vec<ToolSpec> = shown.iter().map(|(entry, _)| entry.spec()).collect();
    let hidden = sorted.iter().filter(|entry| shown.iter().all(|(other, _)| other.name != entry.name));
    let deferred = hidden.map(|entry| entry.name.to_owned()).collect();
    let told = entries.iter().map(|entry| (entry.name.to_owned(), entry.mark())).collect();
    (Frozen { tools, deferred }, told)
}

/// The address under which a model reaches a tool that is not in its schema. The host unwraps it.
pub const CALL_TOOL: &str = "call_tool";

/// The tool that finds others by words. A line of its answer that begins with a tool's name is about that tool.
pub const SEARCH_TOOL: &str = "tool_search";

/// Tools by which others are found and reached; they are in the schema from the start.
const ADDRESSES: [&str; 2] = [CALL_TOOL, SEARCH_TOOL];

/// Tools that are new or have changed since the model was told, in order; they count as told from now on.
pub fn news<'e, 'a>(told: &mut Told, entries: &'e [Entry<'a>]) -> Vec<&'e Entry<'a>> {
    let mut news: Vec<&Entry<'_>> =
        entries.iter().filter(|entry| told.get(entry.name) != Some(&entry.mark())).collect();
    news.sort_by_key(|entry| entry.name);
    for entry in &news {
        told.insert(entry.name.to_owned(), entry.mark());
    }
    news
}

/// The news as the model reads them: name, description and schema of each.
pub fn announce(news: &[&Entry<'_>]) -> String {
    let tools = news.iter().map(|entry| {
        format!("- {}: {}\n  input schema: {}", entry.name, entry.description.trim(), entry.schema.as_str())
    });
    tools.collect::<Vec<_>>().join("\n")
}

/// The best matches for a query, best first: the tool of that name, then by name and summary, then by description.
pub fn search<'e, 'a>(entries: &'e [Entry<'a>], query: &str, limit: usize) -> Vec<&'e Entry<'a>> {
    let texts: Vec<(String, &str)> =
        entries.iter().map(|entry| (format!("{} {}", entry.name, entry.line()), entry.description)).collect();
    let named = query.trim().to_lowercase();
    let fits = matching::fits(query, &texts).into_iter().zip(entries);
    let mut found: Vec<(f64, &Entry<'_>)> = fits
        .map(|(fit, entry)| (if entry.name == named { f64::INFINITY } else { fit }, entry))
        .filter(|(fit, _)| *fit > 0.0)
        .collect();
    found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name.cmp(other.name)));
    found.into_iter().take(limit).map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests;
