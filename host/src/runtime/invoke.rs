//! The contract's functions as plain calls: words of the host in, words of the host out.

use super::call::Body;
use super::contract::astrarium::plugin::types as wit;
use super::contract::exports::astrarium::plugin as exports;
use super::convert::{context_to_wit, part_from_wit, part_to_wit, without_secrets};
use super::{CallError, CallStats, Exports, Guest, GuestState, Runtime};
use crate::event::EndReason;
use crate::fold::Judgement;
use crate::transcript::{Json, Part, Usage};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::Instance;

/// A guest's answer: its value or its own error, and what the call took.
pub type Answer<T> = Result<(Result<T, String>, CallStats), CallError>;

/// What a tool answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// Parts in order.
    pub parts: Vec<Part>,
    /// Whether the model should read them as an error.
    pub is_error: bool,
}

/// Figures of a step, for `step-complete`.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepFigures {
    /// What the answer cost.
    pub usage: Usage,
    /// Tool calls of the step.
    pub tool_calls: u32,
    /// How many of them were refused or failed.
    pub failed_calls: u32,
    /// Messages in the conversation.
    pub messages: u32,
}

/// Figures of a compaction, for `post-compact`: before and after.
#[derive(Debug, Clone, Copy)]
pub struct CompactFigures {
    /// Messages in the conversation.
    pub messages: (u32, u32),
    /// Tokens of the next request.
    pub tokens: (u64, u64),
    /// The layer, in the contract's word.
    pub method: &'static str,
}

/// Another agent that begins, for `subagent-start`.
#[derive(Debug, Clone, Copy)]
pub struct AgentBegins<'a> {
    /// Name of its definition; empty for the default one.
    pub agent: &'a str,
    /// The task, word for word.
    pub task: &'a str,
    /// Steps it may take.
    pub max_steps: u32,
    /// Whose it is.
    pub extra: &'a Value,
}

/// Another agent that has ended, for `subagent-stop`.
#[derive(Debug, Clone, Copy)]
pub struct AgentEnded<'a> {
    /// Name of its definition; empty for the default one.
    pub agent: &'a str,
    /// Why it ended.
    pub reason: EndReason,
    /// Steps it took.
    pub steps: u32,
    /// Tool calls it made.
    pub tool_calls: u32,
    /// Its answer.
    pub answer: &'a str,
    /// Whose it is.
    pub extra: &'a Value,
}

/// Characters of an answer that `subagent-stop` hooks see, as the contract has it.
const SUMMARY: usize = 2_000;

/// What a `session-start` hook wants changed.
#[derive(Debug, Clone, PartialEq)]
pub struct StartAnswer {
    /// Text to put before the question.
    pub context: Option<String>,
    /// Whether unfinished tasks are recalled.
    pub task_recovery: bool,
}

impl Runtime {
    /// Runs a tool. `input` has been checked against its schema.
    pub async fn call_tool(self: &Arc<Self>, guest: Guest<'_>, name: &str, input: &Value) -> Answer<ToolAnswer> {
        let (name, input) = (name.to_owned(), input.to_string());
        let time = Duration::from_millis(self.limits().tool_ms);
        let desk = guest.services.desk.clone();
        let answer = self.invoke(guest, time, move |store, instance, exports, context| {
            Box::pin(async move {
                let tools = present(&exports.tools)?.load(&mut *store, instance)?;
                let answer = tools.call_call_tool(&mut *store, &context, &name, &input).await?;
                Ok(without_secrets(answer, store.data().web()))
            })
        });
        let (answer, stats) = answer.await?;
        let answer = answer
            .map_err(|error| match error {
                exports::tools::ToolError::UnknownTool(name) => format!("the plugin does not know its tool {name}"),
                exports::tools::ToolError::InvalidInput(reason)
                | exports::tools::ToolError::Denied(reason)
                | exports::tools::ToolError::Failed(reason) => reason,
            })
            .and_then(|output| {
                if !output.is_error {
                    desk.touched(&output.extra);
                }
                let parts = output.parts.into_iter().map(part_from_wit).collect::<Result<Vec<_>, _>>()?;
                Ok(ToolAnswer { parts, is_error: output.is_error })
            });
        Ok((answer, stats))
    }

    /// Asks a `pre-tool-use` hook.
    pub async fn pre_tool_use(
        self: &Arc<Self>,
        guest: Guest<'_>,
        tool: &str,
        input: &Value,
        read_only: bool,
        target: (&str, &str),
    ) -> Answer<Judgement> {
        let event = exports::pre_tool_use::PreToolUseEvent {
            tool: tool.to_owned(),
            input: input.to_string(),
            read_only,
            plugin: target.0.to_owned(),
            digest: target.1.to_owned(),
            extra: "{}".into(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.pre_tool_use)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        use exports::pre_tool_use::PreToolUseDecision as Decision;
        let (answer, stats) = answer.await?;
        let answer = answer.and_then(|decision| match decision {
            Decision::Proceed => Ok(Judgement::Proceed),
            Decision::Ask(reason) => Ok(Judgement::Ask(reason)),
            Decision::Block(reason) => Ok(Judgement::Block(reason)),
            Decision::MutateInput(mutation) => match Json::parse(mutation.input).and_then(|json| json.to_value()) {
                Ok(input) => Ok(Judgement::Mutate { input, context: mutation.additional_context }),
                Err(error) => Err(format!("its new arguments are not JSON: {error}")),
            },
        });
        Ok((answer, stats))
    }

    /// Shows a result to a `post-tool-use` hook; answers with other parts and whether they are an error, or none.
    pub async fn post_tool_use(
        self: &Arc<Self>,
        guest: Guest<'_>,
        tool: &str,
        input: &Value,
        result: &ToolAnswer,
        duration: Duration,
    ) -> Answer<Option<ToolAnswer>> {
        let event = exports::post_tool_use::PostToolUseEvent {
            tool: tool.to_owned(),
            input: input.to_string(),
            parts: result.parts.iter().map(part_to_wit).collect(),
            is_error: result.is_error,
            duration_us: duration.as_micros() as u64,
            extra: "{}".into(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.post_tool_use)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        use exports::post_tool_use::PostToolUseDecision as Decision;
        let (answer, stats) = answer.await?;
        let answer = answer.and_then(|decision| match decision {
            Decision::Keep => Ok(None),
            Decision::MutateOutput(mutation) => {
                let parts = mutation.parts.into_iter().map(part_from_wit).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(ToolAnswer { parts, is_error: mutation.is_error }))
            }
        });
        Ok((answer, stats))
    }

    /// Tells a `session-start` hook.
    pub async fn session_start(
        self: &Arc<Self>,
        guest: Guest<'_>,
        resumed: bool,
        model: &str,
        open_tasks: u32,
    ) -> Answer<StartAnswer> {
        let model = model.to_owned();
        let event = exports::session_start::SessionStartEvent { resumed, model, open_tasks, extra: "{}".into() };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.session_start)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        let (answer, stats) = answer.await?;
        let answer = answer
            .map(|answer| StartAnswer { context: answer.additional_context, task_recovery: answer.task_recovery });
        Ok((answer, stats))
    }

    /// Tells a `step-complete` hook.
    pub async fn step_complete(self: &Arc<Self>, guest: Guest<'_>, figures: StepFigures) -> Answer<()> {
        let event = exports::step_complete::StepCompleteEvent {
            input_tokens: figures.usage.input,
            cache_read_tokens: figures.usage.cache_read,
            cache_write_tokens: figures.usage.cache_write,
            output_tokens: figures.usage.output,
            tool_calls: figures.tool_calls,
            failed_calls: figures.failed_calls,
            messages: figures.messages,
            extra: "{}".into(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.step_complete)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        answer.await
    }

    /// Asks a `pre-compact` hook what the summary is to mind.
    pub async fn pre_compact(
        self: &Arc<Self>,
        guest: Guest<'_>,
        messages: u32,
        tokens: u64,
        trigger: &str,
    ) -> Answer<Option<String>> {
        let trigger = trigger.to_owned();
        let event = exports::pre_compact::PreCompactEvent { messages, tokens, trigger, extra: "{}".into() };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.pre_compact)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        answer.await
    }

    /// Tells a `post-compact` hook.
    pub async fn post_compact(self: &Arc<Self>, guest: Guest<'_>, figures: &CompactFigures) -> Answer<()> {
        let event = exports::post_compact::PostCompactEvent {
            messages_before: figures.messages.0,
            messages_after: figures.messages.1,
            tokens_before: figures.tokens.0,
            tokens_after: figures.tokens.1,
            method: figures.method.to_owned(),
            extra: "{}".into(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.post_compact)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        answer.await
    }

    /// Tells a `subagent-start` hook; it may answer with a text for the agent.
    pub async fn subagent_start(
        self: &Arc<Self>,
        guest: Guest<'_>,
        begins: &AgentBegins<'_>,
    ) -> Answer<Option<String>> {
        let event = exports::subagent_start::SubagentStartEvent {
            agent: begins.agent.to_owned(),
            task: begins.task.to_owned(),
            max_steps: begins.max_steps,
            extra: begins.extra.to_string(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.subagent_start)?
                    .load(&mut *store, instance)?
                    .call_handle(store, &context, &event)
                    .await
            })
        });
        answer.await
    }

    /// Tells a `subagent-stop` hook.
    pub async fn subagent_stop(self: &Arc<Self>, guest: Guest<'_>, ended: &AgentEnded<'_>) -> Answer<()> {
        let event = exports::subagent_stop::SubagentStopEvent {
            agent: ended.agent.to_owned(),
            reason: ended.reason.as_str().to_owned(),
            steps: ended.steps,
            tool_calls: ended.tool_calls,
            summary: ended.answer.chars().take(SUMMARY).collect(),
            extra: ended.extra.to_string(),
        };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.subagent_stop)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        answer.await
    }

    /// Tells a `session-stop` hook.
    pub async fn session_stop(
        self: &Arc<Self>,
        guest: Guest<'_>,
        reason: EndReason,
        steps: u32,
        tool_calls: u32,
    ) -> Answer<()> {
        let reason = reason.as_str().to_owned();
        let event = exports::session_stop::SessionStopEvent { reason, steps, tool_calls, extra: "{}".into() };
        let answer = self.invoke(guest, self.hook_time(), move |store, instance, exports, context| {
            Box::pin(async move {
                present(&exports.session_stop)?.load(&mut *store, instance)?.call_handle(store, &context, &event).await
            })
        });
        answer.await
    }

    pub(super) fn hook_time(&self) -> Duration {
        Duration::from_millis(self.limits().hook_ms)
    }

    pub(super) async fn invoke<R: Send + 'static>(
        self: &Arc<Self>,
        guest: Guest<'_>,
        time: Duration,
        body: impl for<'a> FnOnce(&'a mut Store<GuestState>, &'a Instance, &'a Exports, wit::CallContext) -> Body<'a, R>
        + Send
        + 'static,
    ) -> Result<(R, CallStats), CallError> {
        let context = context_to_wit(guest.context, guest.env);
        self.call(guest, time, move |store, instance, exports| body(store, instance, exports, context)).await
    }
}

pub(super) fn present<T>(indices: &Option<T>) -> wasmtime::Result<&T> {
    indices.as_ref().ok_or_else(|| wasmtime::Error::msg("the component does not export what was called"))
}
