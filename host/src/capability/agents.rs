//! `agents`: a subagent that runs to its end while the guest waits. Background work and teammates come later and say so.

use crate::assignment::{Assignment, Refusal, Report};
use crate::context::AgentKind;
use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::agents;
use crate::runtime::contract::astrarium::host::types::Error;

/// Bytes of a task: what is longer lies in a file that the task names.
const TASK: usize = 64 << 10;

/// Tools that one assignment may name.
const TOOLS: usize = 200;

fn later<T>(what: &str) -> Result<T, Error> {
    let version = env!("CARGO_PKG_VERSION");
    Err(Error::Denied(format!("this host (astrarium {version}) does not offer {what} yet; do not retry")))
}

impl agents::Host for GuestState {
    async fn run(&mut self, assignment: agents::Assignment) -> Result<agents::Report, Error> {
        self.may("agents", self.env.effective.agents)?;
        let assignment = checked(assignment)?;
        let (desk, clock, context) = (self.services.desk.clone(), self.clock.clone(), self.context.clone());
        let report = clock.outside(desk.agents.ask(assignment, context)).await?;
        Ok(report.into())
    }

    async fn start(&mut self, _: String, _: String, _: Option<String>) -> Result<String, Error> {
        later("work in the background")
    }

    async fn status(&mut self, _: String) -> Result<String, Error> {
        later("work in the background")
    }

    async fn cancel(&mut self, _: String) -> Result<bool, Error> {
        later("work in the background")
    }

    async fn create_teammate(&mut self, _: String, _: String) -> Result<(), Error> {
        later("teammates")
    }

    async fn send(&mut self, _: String, _: String) -> Result<(), Error> {
        later("teammates")
    }

    async fn receive(&mut self) -> Result<String, Error> {
        later("teammates")
    }

    async fn teammates(&mut self) -> Result<String, Error> {
        later("teammates")
    }
}

fn checked(assignment: agents::Assignment) -> Result<Assignment, Error> {
    let agents::Assignment { task, agent, max_steps, tools, extra: _ } = assignment;
    let task = task.trim();
    if task.is_empty() {
        return Err(Error::Invalid("the task is empty; say what the agent is to find out or to do".into()));
    }
    if task.len() > TASK {
        return Err(Error::LimitExceeded(format!(
            "the task has {} bytes, and may have {TASK}; put what is long into a file and name it",
            task.len()
        )));
    }
    if tools.as_ref().is_some_and(|tools| tools.len() > TOOLS) {
        return Err(Error::LimitExceeded(format!(
            "more than {TOOLS} tools are named; leave tools out for all of them"
        )));
    }
    let agent = agent.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Ok(Assignment {
        kind: AgentKind::Subagent,
        task: task.to_owned(),
        title: None,
        agent,
        model: None,
        stranger: false,
        max_steps,
        tools,
    })
}

impl From<Report> for agents::Report {
    fn from(report: Report) -> Self {
        let Report { answer, reason, activity, statistics } = report;
        Self { answer, reason: reason.as_str().to_owned(), activity, statistics: statistics.to_string() }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(reason) => Error::Invalid(reason),
            Refusal::NotFound(reason) => Error::NotFound(reason),
            Refusal::Denied(reason) => Error::Denied(reason),
            Refusal::Limit(reason) => Error::LimitExceeded(reason),
            Refusal::Failed(reason) => Error::Failed(reason),
        }
    }
}
