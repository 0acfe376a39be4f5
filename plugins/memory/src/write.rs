//! memory_write: changes an entry that is there. Two sessions that append at once both have their say, since a write names
//! the version it was made from, and is made again from the newer one when that has changed.

use astrarium_sdk::host::memory::{self, Entry};
use astrarium_sdk::serde_json::{Value, from_str};
use astrarium_sdk::{Context, Error, Output, Tool};

use crate::{Type, is_chinese, render};

/// Times a write is made again. Each time somebody else has written, so there is progress.
const ATTEMPTS: usize = 20;

/// Changes a memory that is there: what it says, its description, its type. The version before is kept.
///
/// What is left out stays as it is. For something new use save_memory.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryWrite {
    /// Name of the memory.
    name: String,
    /// Text in place of all that it says.
    content: Option<String>,
    /// Text to add at its end.
    append: Option<String>,
    /// Another description, in one line.
    description: Option<String>,
    /// Another type.
    r#type: Option<Type>,
}

impl Tool for MemoryWrite {
    const NAME: &'static str = "memory_write";
    const SUMMARY: Option<&'static str> = Some("Changes a memory that is there");

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        if self.content.is_none() && self.append.is_none() && self.description.is_none() && self.r#type.is_none() {
            return Err(Error::invalid("nothing is to be changed; give content, append, description or type"));
        }
        let mut entry = memory::read(&self.name)?;
        for _ in 1..ATTEMPTS {
            let changed = self.changed(&entry)?;
            match memory::write(&changed) {
                Ok(slug) => return Ok(render::changed(&slug, is_chinese(ctx)).into()),
                Err(error) => {
                    let now = memory::read(&self.name)?;
                    if value(&now, "version") == value(&entry, "version") {
                        return Err(error.into());
                    }
                    entry = now;
                }
            }
        }
        Err(Error::failed(format!("{} is being changed by others all the time; try again later", self.name)))
    }
}

impl MemoryWrite {
    /// The entry as it should be.
    fn changed(&self, entry: &Entry) -> Result<Entry, Error> {
        if value(entry, "holds") == Value::Bool(false) {
            let by = value(entry, "superseded_by");
            let by = by.as_str().map_or_else(String::new, |by| format!("; change {by}, which took its place"));
            return Err(Error::invalid(format!("{} no longer holds{by}", entry.slug)));
        }
        let mut content = self.content.clone().unwrap_or_else(|| entry.content.clone());
        if let Some(more) = &self.append {
            content = format!("{}\n\n{}", content.trim_end(), more.trim_start());
        }
        Ok(Entry {
            kind: self.r#type.map_or(entry.kind, Into::into),
            description: self.description.clone().unwrap_or_else(|| entry.description.clone()),
            content,
            // What it replaced before is in the archive already.
            supersedes: None,
            ..entry.clone()
        })
    }
}

/// A value of the entry's `extra`.
pub(crate) fn value(entry: &Entry, key: &str) -> Value {
    from_str::<Value>(&entry.extra).ok().and_then(|mut extra| extra.get_mut(key).map(Value::take)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    fn write(input: &str) -> MemoryWrite {
        astrarium_sdk::serde_json::from_str(input).unwrap()
    }

    #[test]
    fn what_is_left_out_stays() {
        let changed = write(r#"{"name":"a","append":"more"}"#).changed(&sample("a", true)).unwrap();
        assert_eq!((changed.content.as_str(), changed.description.as_str()), ("body\n\nmore", "about a"));
        assert_eq!(value(&changed, "version"), "v", "it names the version that it was made from");
        let changed = write(r#"{"name":"a","content":"new","type":"user"}"#).changed(&sample("a", true)).unwrap();
        assert_eq!(changed.content, "new");
    }

    #[test]
    fn what_no_longer_holds_is_not_changed() {
        let error = write(r#"{"name":"a","content":"new"}"#).changed(&sample("a", false)).unwrap_err().to_string();
        assert!(error.contains("change b, which took its place"), "{error}");
    }
}
