//! A guest that hears of compactions: it counts them in its store and asks each summary to mind something.

use astrarium_sdk::hooks::{PostCompact, PostCompactEvent, PreCompact, PreCompactEvent};
use astrarium_sdk::kv::{self, Scope};
use astrarium_sdk::{Context, Error, hooks};

struct Watch;

impl PreCompact for Watch {
    fn handle(_: &Context, event: PreCompactEvent) -> Result<Option<String>, Error> {
        kv::increment(Scope::Session, "pre", 1)?;
        kv::increment(Scope::Session, "messages-before", i64::from(event.messages))?;
        Ok(Some(format!("mind the watch ({})", event.trigger)))
    }
}

impl PostCompact for Watch {
    fn handle(_: &Context, event: PostCompactEvent) -> Result<(), Error> {
        kv::increment(Scope::Session, "post", 1)?;
        kv::increment(Scope::Session, "messages-after", i64::from(event.messages_after))?;
        kv::increment(Scope::Session, &event.method, 1)?;
        Ok(())
    }
}

hooks! { pre_compact: Watch, post_compact: Watch }
