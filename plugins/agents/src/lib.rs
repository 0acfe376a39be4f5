//! subagent: a part of the work for another agent, with a context of its own, that answers when it is done.
//!
//! The host makes the agent, judges every call of it like those of its caller, and counts what it costs. This plugin is the
//! words around that.

mod render;

use astrarium_sdk::host::agents::{self, Assignment};
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use render::Statistics;

/// Gives one part of the work to another agent, and answers with what it found, what it did and what that took.
///
/// Use it for a search or a piece of work whose steps would only fill this conversation, or call it several times in one step
/// for parts that do not depend on each other. The agent sees nothing of this conversation and cannot ask: write into `task`
/// all that it needs, what is wanted back and where to stop. It cannot do more than you can.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Subagent {
    /// What the agent is to find out or to do, with all that it needs to know.
    task: String,
    /// Name of an agent definition; the default agent when left out.
    agent: Option<String>,
    /// Steps it may take, 5 when left out.
    #[schemars(range(min = 1, max = 10))]
    max_steps: Option<u32>,
    /// The only tools that it may use; all of yours when left out.
    tools: Option<Vec<String>>,
}

impl Tool for Subagent {
    const NAME: &'static str = "subagent";
    const SUMMARY: Option<&'static str> = Some("Gives one part of the work to another agent");
    /// It changes nothing itself: each call of the agent is judged and asked about by its own marks, in every mode. So several
    /// may work side by side.
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let Self { task, agent, max_steps, tools } = self;
        let report = agents::run(&Assignment { task, agent, max_steps, tools, extra: "{}".into() })?;
        let statistics = Statistics::parse(&report.statistics)?;
        let text = render::report(&report, &statistics, ctx.language.starts_with("zh"));
        let mut output = Output::text(text);
        output.is_error = report.answer.trim().is_empty();
        output.extra = statistics.all;
        Ok(output)
    }
}

tools!(Subagent);
