//! The nine lifecycle hooks: a trait for each, and the macro that registers them.

pub use crate::bindings::post_tool_use::{OutputMutation, PostToolUseDecision, PostToolUseEvent};
pub use crate::bindings::pre_tool_use::{Mutation, PreToolUseDecision, PreToolUseEvent};
pub use crate::bindings::session_start::{SessionStartAnswer, SessionStartEvent};
pub use crate::bindings::session_stop::SessionStopEvent;
pub use crate::bindings::step_complete::StepCompleteEvent;
pub use crate::bindings::subagent_start::SubagentStartEvent;
pub use crate::bindings::subagent_stop::SubagentStopEvent;
pub use crate::bindings::{post_compact::PostCompactEvent, pre_compact::PreCompactEvent};
use crate::{Context, Error};

/// A trait for authors, and its parts under fixed names for [`hooks!`](crate::hooks!).
macro_rules! hook {
    ($(#[$doc:meta])* $module:ident: $hook:ident($event:ty) -> $answer:ty) => {
        $(#[$doc])*
        pub trait $hook {
            /// Handles one event, in a fresh instance.
            fn handle(ctx: &Context, event: $event) -> Result<$answer, Error>;
        }

        #[doc(hidden)]
        pub mod $module {
            pub use super::$hook as Hook;
            pub type Event = $event;
            pub type Answer = $answer;
        }
    };
}

hook! {
    /// Runs once when a session starts or is resumed, before the prompt is assembled. An error is logged.
    session_start: SessionStart(crate::hooks::SessionStartEvent) -> crate::hooks::SessionStartAnswer
}
hook! {
    /// Judges each tool call before it runs. A gate: an error, a panic or a time-out refuses the call.
    pre_tool_use: PreToolUse(crate::hooks::PreToolUseEvent) -> crate::hooks::PreToolUseDecision
}
hook! {
    /// Sees each tool result before it is recorded, and may change it. An error withholds the result.
    post_tool_use: PostToolUse(crate::hooks::PostToolUseEvent) -> crate::hooks::PostToolUseDecision
}
hook! {
    /// Observes the end of each step: one answer of the model with the calls that it made. An error is logged.
    step_complete: StepComplete(crate::hooks::StepCompleteEvent) -> ()
}
hook! {
    /// Runs before a compaction and may answer with instructions for the summary. An error is logged.
    pre_compact: PreCompact(crate::hooks::PreCompactEvent) -> Option<String>
}
hook! {
    /// Observes a compaction that has ended. An error is logged.
    post_compact: PostCompact(crate::hooks::PostCompactEvent) -> ()
}
hook! {
    /// Runs when a subagent starts and may answer with text to put before its task. An error is logged.
    subagent_start: SubagentStart(crate::hooks::SubagentStartEvent) -> Option<String>
}
hook! {
    /// Observes a subagent that has ended. An error is logged.
    subagent_stop: SubagentStop(crate::hooks::SubagentStopEvent) -> ()
}
hook! {
    /// Observes the end of a session's run. An error is logged.
    session_stop: SessionStop(crate::hooks::SessionStopEvent) -> ()
}

/// Adds nothing and leaves task recovery on.
impl Default for SessionStartAnswer {
    fn default() -> Self {
        Self { additional_context: None, task_recovery: true, extra: "{}".into() }
    }
}

/// Registers the hooks of a plugin, one or several, once in a crate.
///
/// ```
/// use astrarium_sdk::hooks::{PreToolUse, PreToolUseDecision, PreToolUseEvent};
/// use astrarium_sdk::{Context, Error, hooks};
///
/// struct Guard;
///
/// impl PreToolUse for Guard {
///     fn handle(_: &Context, event: PreToolUseEvent) -> Result<PreToolUseDecision, Error> {
///         Ok(match event.tool.as_str() {
///             "run_bash" => PreToolUseDecision::Ask("it runs a shell".into()),
///             _ => PreToolUseDecision::Proceed,
///         })
///     }
/// }
///
/// hooks! { pre_tool_use: Guard }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! hooks {
    ($($hook:ident: $type:ty),+ $(,)?) => { $(
        const _: () = {
            use $crate::bindings::$hook::Guest;
            use $crate::hooks::$hook::{Answer, Event, Hook};

            struct Export;

            impl Guest for Export {
                fn handle(ctx: $crate::Context, event: Event) -> Result<Answer, String> {
                    <$type as Hook>::handle(&ctx, event).map_err(|error| error.to_string())
                }
            }

            // Unit tests of a guest run natively, where nothing is exported and yet nothing is dead.
            const _: fn($crate::Context, Event) -> Result<Answer, String> = Export::handle;

            #[cfg(target_family = "wasm")]
            $crate::bindings::$hook::export!(Export with_types_in $crate::bindings::$hook);
        };
    )+ };
}
