//! `skills`: the skills as the session sees them, and loading one. A fork is run by whoever the session has for that.

use crate::context::CallContext;
use crate::runtime::GuestState;
use crate::runtime::contract::astrarium::host::skills;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::skill::{Finding, Skill};
use crate::skills::{Asker, Fork, ForkRunner, Live, Loading, Refusal, SkillSession};
use serde_json::{Value, json};
use std::sync::Arc;

impl GuestState {
    fn granted_skills(&self) -> Result<Arc<SkillSession>, Error> {
        self.may("skills", self.env.effective.skills)?;
        let skills = self.services.desk.skills.clone();
        skills.ok_or_else(|| Error::NotFound("no skills are known where this guest runs; call it as a tool".into()))
    }
}

impl skills::Host for GuestState {
    async fn all(&mut self) -> Result<Vec<skills::Entry>, Error> {
        let skills = self.granted_skills()?;
        Ok(skills.offered().iter().map(|live| entry(live)).collect())
    }

    async fn load(
        &mut self,
        name: String,
        arguments: Option<String>,
        max_steps: Option<u32>,
    ) -> Result<skills::Loaded, Error> {
        let skills = self.granted_skills()?;
        let asker = Asker::Model(&self.context.call);
        match skills.load(&name, arguments.as_deref(), max_steps, asker)? {
            Loading::Inline { live, text } => {
                let mut extra = about(&live, "inline", "inline");
                extra["already_loaded"] = text.is_none().into();
                let mode = "inline".to_owned();
                Ok(skills::Loaded { execution_mode: mode, text: text.unwrap_or_default(), extra: extra.to_string() })
            }
            Loading::Fork(fork) => {
                let (runner, context, clock) =
                    (self.services.desk.forks.clone(), self.context.clone(), self.clock.clone());
                clock.outside(run_fork(runner, context, fork)).await
            }
        }
    }
}

async fn run_fork(
    runner: Option<Arc<dyn ForkRunner>>,
    context: CallContext,
    fork: Fork,
) -> Result<skills::Loaded, Error> {
    let live = fork.live.clone();
    let Some(runner) = runner else {
        return Err(Error::Denied(format!(
            "the skill {} runs in a conversation of its own (context: fork), and fork skills wait for the subagent runner; do \
             not retry",
            live.skill.name
        )));
    };
    let report = runner.run(fork, context).await.map_err(Error::Failed)?;
    let mut extra = about(&live, "fork", "subagent");
    extra["reason"] = report.reason.into();
    extra["activity"] = report.activity.into();
    extra["statistics"] = report.statistics;
    Ok(skills::Loaded { execution_mode: "fork".into(), text: report.answer, extra: extra.to_string() })
}

fn entry(live: &Live) -> skills::Entry {
    let Skill { name, description, when_to_use, frontmatter, .. } = &*live.skill;
    skills::Entry {
        name: name.clone(),
        description: description.clone().unwrap_or_default(),
        when_to_use: when_to_use.clone().unwrap_or_default(),
        folder: live.folder().display().to_string(),
        frontmatter: Value::Object(frontmatter.clone()).to_string(),
    }
}

/// What a guest may want to know of a skill in use (SPEC 2.8).
fn about(live: &Live, context: &str, execution_mode: &str) -> Value {
    let Skill { name, description, version, allowed_tools, argument_hint, findings, .. } = &*live.skill;
    let warning = |finding: &Finding| format!("line {}: {}", finding.line, finding.text);
    json!({
        "name": name,
        "description": description,
        "folder": live.folder(),
        "version": version,
        "allowed_tools": allowed_tools,
        "argument_hint": argument_hint,
        "context": context,
        "execution_mode": execution_mode,
        "warnings": findings.iter().map(warning).collect::<Vec<_>>(),
    })
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown(_) => Error::NotFound(refusal.to_string()),
            Refusal::Withheld(reason) => Error::Denied(reason),
            Refusal::Store(error) => error.into(),
        }
    }
}
