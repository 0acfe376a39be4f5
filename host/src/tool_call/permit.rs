//! Whether a judged call may run: the permission rules, and a person where a rule or a hook asks for one.
//!
//! What a person allowed for a session holds for the tool and for whoever asked: it answers no other rule, and no refusal.

use super::Calls;
use super::record::Note;
use crate::audit::{Entry, Kind};
use crate::consent::{Answer, Asker, Question};
use crate::fold::Verdict;
use crate::hooks::{Judged, Moment, bounded};
use crate::permission::{self, Ruling};
use crate::plugin::State;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who can be asked in a session, and what was allowed for all of it. Shared by the agents of a session.
#[derive(Default)]
pub struct Consent {
    asker: Option<Arc<dyn Asker>>,
    /// By who asked, and the tool.
    always: Mutex<BTreeSet<(String, String)>>,
    /// One question at a time, whichever agent asks.
    asking: tokio::sync::Mutex<()>,
}

impl Consent {
    /// Consent that `asker` gets; without one nobody can be asked.
    pub fn new(asker: Option<Arc<dyn Asker>>) -> Self {
        Self { asker, ..Self::default() }
    }

    fn always(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Judges by the rules what the hooks let through, and asks where it must be asked. The error is for the model.
    pub(super) async fn permit(
        &self,
        at: Moment<'_>,
        call: &Judged<'_>,
        verdict: &Verdict<'_>,
        note: &mut Note,
    ) -> Result<(), String> {
        let workspace = at.context.workspace.to_string_lossy();
        let ruling = permission::judge(
            &at.snapshot.permissions,
            permission::Call {
                tool: call.tool,
                plugin: call.plugin,
                read_only: call.read_only,
                input: &verdict.input,
                workspace: &workspace,
            },
        );
        let mut reasons = verdict.asks.clone();
        match ruling {
            Ruling::Allow(rule) => note.rule = rule,
            Ruling::Deny(rule) => {
                let refusal = denied(&rule);
                note.rule = rule;
                return Err(refusal);
            }
            Ruling::Ask(rule) => {
                note.rule.clone_from(&rule);
                reasons.push((rule, String::new()));
            }
        }
        let allowed =
            |(who, _): &(String, String)| self.consent.always().contains(&(who.clone(), call.tool.to_owned()));
        if reasons.iter().all(allowed) {
            return Ok(());
        }
        let question = Question {
            tool: call.tool.to_owned(),
            plugin: call.plugin.to_owned(),
            input: verdict.input.clone().into_owned(),
            reasons,
        };
        self.put(at, call, question, note).await
    }

    async fn put(&self, at: Moment<'_>, call: &Judged<'_>, question: Question, note: &mut Note) -> Result<(), String> {
        let one = self.consent.asking.lock().await;
        // Another agent of the session may have been allowed it while this one waited for its turn.
        let open = |(who, _): &&(String, String)| !self.consent.always().contains(&(who.clone(), call.tool.to_owned()));
        let reasons: Vec<_> = question.reasons.iter().filter(open).cloned().collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let question = Question { reasons, ..question };
        let answer = match &self.consent.asker {
            Some(asker) if !at.cancel.is_cancelled() => asker.ask(&question, at.cancel).await,
            _ => None,
        };
        drop(one);
        let (outcome, result) = match answer {
            Some(Answer::Once) => ("once", Ok(())),
            Some(Answer::Always) => {
                let keys = question.reasons.iter().map(|(who, _)| (who.clone(), call.tool.to_owned()));
                self.consent.always().extend(keys);
                ("always", Ok(()))
            }
            Some(Answer::No(word)) => ("no", Err(said_no(&word))),
            Some(Answer::Cancel) => {
                at.cancel.cancel();
                ("cancelled", Err("the user cancelled before this call ran; it has not taken effect".into()))
            }
            None if at.cancel.is_cancelled() => {
                ("cancelled", Err("the user cancelled before this call ran; it has not taken effect".into()))
            }
            None => ("nobody", Err(nobody(&question))),
        };
        let who: Vec<&str> = question.reasons.iter().map(|(who, _)| who.as_str()).collect();
        let why: Vec<&str> =
            question.reasons.iter().map(|(_, why)| why.as_str()).filter(|why| !why.is_empty()).collect();
        let entry = Entry::of(at.context, Kind::Permission, "consent").by(call.plugin, call.digest);
        note.entries.push(Entry {
            target: call.tool.to_owned(),
            arguments: note.arguments.clone(),
            rule: who.join("; "),
            ..entry.came_to(outcome, &why.join("; "))
        });
        result.and_then(|()| self.is_still_there(call))
    }

    /// A person takes time, and an operator may have switched the plugin off or replaced it meanwhile: what was allowed is
    /// the call as it was shown.
    fn is_still_there(&self, call: &Judged<'_>) -> Result<(), String> {
        let now = self.registry.snapshot();
        let same = now.plugin(call.plugin).is_some_and(|plugin| {
            plugin.state == State::Live && plugin.digest() == call.digest && now.tool(call.tool).is_some()
        });
        match same {
            true => Ok(()),
            false => Err(format!("the plugin {} changed while the user was asked; call again", call.plugin)),
        }
    }
}

fn denied(rule: &str) -> String {
    match rule {
        "mode: plan" => {
            "refused: in plan mode nothing runs that may change something; do not retry, say what you would \
                         do instead"
                .into()
        }
        rule => format!("refused by the operator's rule ({}); do not retry", bounded(rule)),
    }
}

fn said_no(word: &str) -> String {
    match word.trim() {
        "" => "the user said no to this call; do not retry it, go on without it or ask what they want".into(),
        word => format!("the user said no to this call: {}; do not retry it as it is", bounded(word)),
    }
}

fn nobody(question: &Question) -> String {
    let who = question.reasons.first().map_or("a rule", |(who, _)| who.as_str());
    let why = question.reasons.iter().map(|(_, why)| why.as_str()).find(|why| !why.is_empty());
    let why = why.map(|why| format!(": {}", bounded(why))).unwrap_or_default();
    format!("{} wants a person's consent, and nobody can be asked here{why}; do not retry", bounded(who))
}
