//! Which tools an agent has: those of whoever gives it work, less what its definition and its assignment leave out.

use super::Office;
use crate::agent::{self, Definition};
use crate::assignment::{Assignment, Refusal};
use crate::catalogue::Reach;
use crate::context::AgentKind;

impl Office<'_> {
    /// The tools of a new agent: of those of its caller the ones that the definition names, and of these the ones that the
    /// assignment names. What a file names and is not there is left out and said; what the caller names and is not there is
    /// refused, since it counts on it.
    pub(super) fn reach(
        &self,
        assignment: &Assignment,
        definition: Option<&Definition>,
        depth: u32,
        notes: &mut Vec<String>,
    ) -> Result<Reach, Refusal> {
        let own = &self.setup.reach;
        let mut reach = Reach { no_agents: own.no_agents || depth == 0, ..own.clone() };
        let snapshot = self.registry.snapshot();
        let there = |reach: &Reach, name: &str| {
            snapshot.tool(name).is_some_and(|(plugin, _)| reach.has(name, plugin.starts_agents()))
        };
        if let Some(definition) = definition {
            if let Some(tools) = &definition.tools {
                let (only, left_out) = agent::tools(tools, |name| there(&reach, name));
                notes.extend(left_out);
                reach.only = Some(only);
            }
            if !definition.without.is_empty() {
                // A rule in brackets takes the whole tool: less than was meant is left, never more.
                let bare = |word: &String| word.split('(').next().unwrap_or_default().trim().to_owned();
                let named: Vec<String> = definition.without.iter().map(bare).collect();
                let (without, unknown) = agent::tools(&named, |name| snapshot.tool(name).is_some());
                notes.extend(unknown.iter().map(|line| format!("disallowed-tools: {line}")));
                let all = snapshot.tools().map(|(_, tool)| tool.name.clone());
                let only = reach.only.unwrap_or_else(|| all.collect());
                reach.only = Some(only.into_iter().filter(|name| !without.contains(name)).collect());
            }
        }
        let Some(named) = &assignment.tools else { return Ok(reach) };
        if assignment.kind == AgentKind::SkillFork {
            let (only, left_out) = agent::tools(named, |name| there(&reach, name));
            notes.extend(left_out);
            reach.only = Some(only);
            return Ok(reach);
        }
        if let Some(name) = named.iter().find(|name| !there(&reach, name)) {
            return Err(Refusal::Invalid(format!(
                "{name} is no tool that the agent could have; name tools that you have yourself, or leave tools out for all of \
                 them"
            )));
        }
        reach.only = Some(named.iter().cloned().collect());
        Ok(reach)
    }
}
