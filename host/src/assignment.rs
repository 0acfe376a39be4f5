//! Work for another agent: what is asked, what came of it, and the way from the guest that asks to the turn that runs it.
//!
//! The way is open while a turn runs and shut at any other time, so nobody waits for an answer that cannot come.

use crate::context::{AgentKind, CallContext};
use crate::event::EndReason;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Steps of an assignment that names none.
pub const STEPS: u32 = 5;

/// Steps that one may have.
pub const MOST_STEPS: u32 = 10;

/// Work for another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// What kind of agent it is for.
    pub kind: AgentKind,
    /// The task, in words.
    pub task: String,
    /// What it is called in lists; none means the beginning of the task.
    pub title: Option<String>,
    /// Name of an agent definition; none for the default one.
    pub agent: Option<String>,
    /// Model that is wished for over the definition's, in the words of one.
    pub model: Option<String>,
    /// Whether that wish is of a file of the workspace, which may be a stranger's.
    pub stranger: bool,
    /// Steps it may take.
    pub max_steps: Option<u32>,
    /// The only tools that it may use; none means those of the caller.
    pub tools: Option<Vec<String>>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The answer; empty where there is none.
    pub answer: String,
    /// Why it ended.
    pub reason: EndReason,
    /// A line for each thing it did.
    pub activity: Vec<String>,
    /// Calls by tool, steps, tokens, cost; what went wrong under `error`.
    pub statistics: Value,
}

/// Why an assignment was not taken. The text is for the model that asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// There is no such agent, or nobody who runs one.
    #[error("{0}")]
    NotFound(String),
    /// This agent may not start others.
    #[error("{0}")]
    Denied(String),
    /// Too many at once.
    #[error("{0}")]
    Limit(String),
    /// Something failed before it began.
    #[error("{0}")]
    Failed(String),
}

/// An assignment under way.
pub struct Asked {
    /// What is asked.
    pub assignment: Assignment,
    /// The call that asks.
    pub context: CallContext,
    /// Where the answer goes; closed when nobody waits for it any more.
    pub answer: oneshot::Sender<Result<Report, Refusal>>,
}

/// The way to whoever runs agents for a session. Shut until a turn opens it.
#[derive(Default)]
pub struct Way {
    open: Mutex<Option<mpsc::UnboundedSender<Asked>>>,
    /// How many wait for an answer.
    waiting: AtomicUsize,
}

/// Guests of one session that may wait for an answer at once: each keeps its instance, of which there are not many.
const WAITING: usize = 32;

/// One of those who wait.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The end of the way at which assignments arrive.
pub type Inbox = mpsc::UnboundedReceiver<Asked>;

impl Way {
    /// Opens it, for one turn.
    pub fn open(&self) -> Inbox {
        let (sender, inbox) = mpsc::unbounded_channel();
        *self.lock() = Some(sender);
        inbox
    }

    /// Shuts it. Who still waits for an answer learns that none comes.
    pub fn shut(&self) {
        *self.lock() = None;
    }

    /// Asks, and waits for what came of it. Dropping the future cancels the agent.
    pub async fn ask(&self, assignment: Assignment, context: CallContext) -> Result<Report, Refusal> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        if before >= WAITING {
            return Err(Refusal::Limit(format!(
                "{WAITING} agents are wanted already; ask again when one has answered"
            )));
        }
        let (answer, comes) = oneshot::channel();
        let sent = self.lock().as_ref().is_some_and(|way| way.send(Asked { assignment, context, answer }).is_ok());
        if !sent {
            return Err(Refusal::NotFound(
                "no turn is under way where this guest runs, so no agent can be started".into(),
            ));
        }
        comes.await.unwrap_or_else(|_| Err(Refusal::Failed("the turn ended before the agent answered".into())))
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Asked>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn assignment() -> (Assignment, CallContext) {
        let kind = AgentKind::Subagent;
        let context = CallContext {
            session: "s".into(),
            call: "c".into(),
            step: 1,
            agent: AgentKind::Main,
            language: "en".into(),
            workspace: PathBuf::new(),
        };
        (
            Assignment {
                kind,
                task: "look".into(),
                title: None,
                agent: None,
                model: None,
                stranger: false,
                max_steps: None,
                tools: None,
            },
            context,
        )
    }

    #[tokio::test]
    async fn nobody_waits_where_no_turn_runs() {
        let way = Way::default();
        let (asked, context) = assignment();
        assert!(matches!(way.ask(asked.clone(), context.clone()).await, Err(Refusal::NotFound(_))));
        let inbox = way.open();
        let (waiting, ()) = tokio::join!(way.ask(asked.clone(), context.clone()), async {
            way.shut();
            drop(inbox);
        });
        assert!(matches!(waiting, Err(Refusal::Failed(_))), "{waiting:?}");
        assert!(matches!(way.ask(asked, context).await, Err(Refusal::NotFound(_))));
    }

    #[tokio::test]
    async fn who_stops_waiting_is_seen() {
        let way = Way::default();
        let mut inbox = way.open();
        let (asked, context) = assignment();
        {
            let mut waiting = std::pin::pin!(way.ask(asked, context));
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("nobody has answered"),
                () = std::future::ready(()) => {}
            }
        }
        let mut asked = inbox.recv().await.unwrap();
        asked.answer.closed().await;
    }
}
