//! save_memory, memory_read, memory_write and memory_search: what is worth knowing beyond one session.
//!
//! The host keeps the entries as files, gives them their names, archives what is replaced, and says which entry fits a
//! query. This plugin is the words around that.

mod render;
mod write;

use astrarium_sdk::host::memory::{self, Entry, Kind};
use astrarium_sdk::serde_json::json;
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use write::MemoryWrite;

/// Keeps one thing worth knowing in later sessions: a preference of the user, feedback on the work, a fact of the project,
/// or where something is to be found.
///
/// One thing an entry, with a description that a later question will match. A name that exists is written over, and the
/// version before is kept; when an older entry of another name no longer holds, name it in `supersedes`. Save no keys, no
/// passwords, nothing of passing use, and nothing that the files of the workspace say themselves.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveMemory {
    /// A few words that name it, such as `prefers-ab-magnitudes`.
    name: String,
    /// What it is about.
    r#type: Type,
    /// What it says, in one line.
    description: String,
    /// All of it, in Markdown: the fact, why it matters, where it comes from.
    content: String,
    /// Name of the entry whose place it takes.
    supersedes: Option<String>,
}

/// What a memory is about.
#[derive(Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Type {
    User,
    Feedback,
    Project,
    Reference,
}

/// Reads a memory whole, by its name.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryRead {
    /// Its name, as listed or as found by memory_search.
    name: String,
}

/// Finds memories by what they say, best match first.
///
/// Use it before you ask the user something that they may have said before, and before you save what may be there already.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemorySearch {
    /// What is looked for, in a few words of any language.
    query: String,
    /// Entries at most, 10 when left out.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
}

impl Tool for SaveMemory {
    const NAME: &'static str = "save_memory";
    const SUMMARY: Option<&'static str> = Some("Keeps one thing worth knowing in later sessions");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let supersedes = self.supersedes.filter(|name| !name.trim().is_empty());
        let slug = memory::write(&Entry {
            slug: self.name.clone(),
            kind: self.r#type.into(),
            description: self.description,
            content: self.content,
            supersedes: supersedes.clone(),
            updated: String::new(),
            extra: json!({ "name": self.name }).to_string(),
        })?;
        Ok(render::saved(&slug, supersedes.as_deref(), is_chinese(ctx)).into())
    }
}

impl Tool for MemoryRead {
    const NAME: &'static str = "memory_read";
    const SUMMARY: Option<&'static str> = Some("Reads a memory whole");
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        Ok(render::whole(&memory::read(&self.name)?, is_chinese(ctx)).into())
    }
}

impl Tool for MemorySearch {
    const NAME: &'static str = "memory_search";
    const SUMMARY: Option<&'static str> = Some("Finds memories by what they say");
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        if self.query.trim().is_empty() {
            return Err(Error::invalid("the query is empty; write a few words of what is looked for"));
        }
        let found = memory::search(&self.query, self.limit.unwrap_or(10))?;
        Ok(render::list(&found, &self.query, is_chinese(ctx)).into())
    }
}

tools!(SaveMemory, MemoryRead, MemoryWrite, MemorySearch);

fn is_chinese(ctx: &Context) -> bool {
    ctx.language.starts_with("zh")
}

impl From<Type> for Kind {
    fn from(kind: Type) -> Self {
        match kind {
            Type::User => Self::User,
            Type::Feedback => Self::Feedback,
            Type::Project => Self::Project,
            Type::Reference => Self::Reference,
        }
    }
}
