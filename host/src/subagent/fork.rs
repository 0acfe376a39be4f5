//! Skills that fork: agents like all others, whose task is to follow the skill.

use crate::assignment::{Assignment, Way};
use crate::context::{AgentKind, CallContext};
use crate::skills::{Fork, ForkReport, ForkRunner, Owner};

#[async_trait::async_trait]
impl ForkRunner for Way {
    async fn run(&self, fork: Fork, context: CallContext) -> Result<ForkReport, String> {
        let skill = &fork.live.skill;
        let assignment = Assignment {
            kind: AgentKind::SkillFork,
            title: Some(format!("{}: {}", skill.name, fork.task)),
            agent: skill.agent.clone(),
            model: skill.model.clone(),
            stranger: fork.live.owner == Owner::Workspace,
            max_steps: Some(fork.max_steps),
            tools: skill.limits_tools.then(|| skill.allowed_tools.clone()),
            task: fork.instructions,
        };
        let report = self.ask(assignment, context).await.map_err(|refusal| refusal.to_string())?;
        Ok(ForkReport {
            answer: report.answer,
            reason: report.reason.as_str().to_owned(),
            activity: report.activity,
            statistics: report.statistics,
        })
    }
}
