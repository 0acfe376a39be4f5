//! Recovery over a model that fails as planned, under a clock that is moved by hand.

use super::*;
use crate::transcript::{Block, StopReason, Usage};
use std::collections::VecDeque;

/// Says the planned things: words, then an end or an error.
struct Planned {
    name: &'static str,
    plans: Mutex<VecDeque<(&'static str, Option<ModelError>)>>,
}

impl Planned {
    fn new(name: &'static str, plans: Vec<(&'static str, Option<ModelError>)>) -> Arc<Self> {
        Arc::new(Self { name, plans: Mutex::new(plans.into()) })
    }

    fn left(&self) -> usize {
        self.plans.lock().unwrap().len()
    }
}

#[async_trait]
impl Model for Planned {
    fn name(&self) -> &str {
        self.name
    }

    async fn ask(&self, _: &Request, on_event: &mut (dyn FnMut(ModelEvent) + Send)) -> Result<Reply, ModelError> {
        let (text, error) = self.plans.lock().unwrap().pop_front().expect("asked more often than planned");
        if !text.is_empty() {
            on_event(ModelEvent::Text(text.into()));
        }
        match error {
            Some(error) => Err(error),
            None => Ok(Reply {
                content: vec![Block::Text { text: text.into() }],
                stop: StopReason::EndTurn,
                usage: Usage::default(),
                model: self.name.into(),
            }),
        }
    }

    async fn check(&self) -> Result<String, ModelError> {
        Ok(self.name.into())
    }
}

fn busy() -> Option<ModelError> {
    let (url, message) = ("u".to_owned(), "busy".to_owned());
    Some(ModelError::Status { url, status: 529, kind: None, message, cure: "wait", retry_after: None })
}

fn cut() -> Option<ModelError> {
    Some(ModelError::Broken { url: "u".into(), reason: "cut".into() })
}

fn request() -> Request {
    Request {
        tools: [].into(),
        system: [].into(),
        messages: vec![],
        tool_choice: super::super::ToolChoice::Auto,
        max_output_tokens: 1,
        breakpoints: vec![],
        cache_life: super::super::CacheLife::Short,
    }
}

async fn ask(model: &Recovering) -> (Vec<String>, Result<Reply, ModelError>) {
    let mut seen = Vec::new();
    let reply = model
        .ask(&request(), &mut |event| {
            seen.push(match event {
                ModelEvent::Text(text) => format!("text {text}"),
                ModelEvent::Waiting { attempt, left, .. } => format!("wait {attempt} {}", left.as_secs()),
                other => format!("{other:?}"),
            });
        })
        .await;
    (seen, reply)
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_of_a_broken_answer_is_withdrawn_and_asked_again() {
    let planned = Planned::new("m", vec![("half", cut()), ("", cut()), ("whole", None)]);
    let model = Recovering::new(planned.clone(), None, Policy { first_wait_ms: 8_000, ..Policy::default() });
    let (seen, reply) = ask(&model).await;
    assert_eq!(reply.unwrap().content, [Block::Text { text: "whole".into() }]);
    assert_eq!(seen[..2], ["text half", "Withdrawn"]);
    let counted: Vec<&String> = seen.iter().filter(|line| line.starts_with("wait 2")).collect();
    assert!(counted.len() >= 4, "each second is told: {seen:?}");
    assert_eq!(seen.iter().filter(|line| *line == "Withdrawn").count(), 1, "nothing was shown the second time");
    assert_eq!(seen.last().unwrap(), "text whole");
}

#[tokio::test(start_paused = true)]
async fn three_overloads_bring_the_fallback_which_stays_for_a_while() {
    let first = Planned::new("first", vec![("", busy()), ("", busy()), ("half", busy()), ("back", None)]);
    let second = Planned::new("second", vec![("from the second", None), ("again", None)]);
    let model = Recovering::new(first.clone(), Some(second.clone()), Policy::default());
    let (seen, reply) = ask(&model).await;
    assert_eq!(reply.unwrap().model, "second");
    let at = seen.iter().position(|line| line.starts_with("Fallback")).unwrap();
    assert_eq!(seen[at - 1], "Withdrawn");
    assert!(seen[at].contains("first") && seen[at].contains("second"), "{seen:?}");
    assert_eq!(ask(&model).await.1.unwrap().model, "second", "without asking the first again");
    tokio::time::advance(REST).await;
    assert_eq!(ask(&model).await.1.unwrap().model, "first");
    assert_eq!((first.left(), second.left()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_cannot_answer_is_not_asked_the_next_question() {
    let key = ModelError::Status {
        url: "u".into(),
        status: 401,
        kind: None,
        message: "no key".into(),
        cure: "c",
        retry_after: None,
    };
    let first = Planned::new("first", vec![("", busy()), ("", busy()), ("", busy()), ("back", None)]);
    let second = Planned::new("second", vec![("", Some(key))]);
    let model = Recovering::new(first.clone(), Some(second.clone()), Policy::default());
    let error = ask(&model).await.1.unwrap_err().to_string();
    assert!(error.contains("no key"), "{error}");
    assert_eq!(ask(&model).await.1.unwrap().model, "first", "at once, without waiting for the rest to be over");
    assert_eq!((first.left(), second.left()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_stands_is_told_at_once_and_one_that_stays_after_its_tries() {
    let refused = ModelError::Status {
        url: "u".into(),
        status: 400,
        kind: None,
        message: "prompt is too long".into(),
        cure: "c",
        retry_after: None,
    };
    let planned = Planned::new("m", vec![("", Some(refused))]);
    let (seen, reply) = ask(&Recovering::new(planned, None, Policy::default())).await;
    assert!(matches!(reply, Err(ModelError::Status { status: 400, .. })) && seen.is_empty(), "{seen:?}");

    let planned = Planned::new("m", (0..5).map(|_| ("half", cut())).collect());
    let (seen, reply) = ask(&Recovering::new(planned.clone(), None, Policy::default())).await;
    let error = reply.unwrap_err().to_string();
    assert!(error.contains("broke off") && error.contains("5 tries"), "{error}");
    assert_eq!(planned.left(), 0);
    assert_eq!(seen.last().unwrap(), "text half", "what is left of the last try is not withdrawn");
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_cancelled() {
    let planned = Planned::new("m", vec![("", busy()), ("never", None)]);
    let model = Recovering::new(planned.clone(), None, Policy { first_wait_ms: 20_000, ..Policy::default() });
    let asked = tokio::time::timeout(Duration::from_secs(2), ask(&model)).await;
    assert!(asked.is_err());
    assert_eq!(planned.left(), 1, "it was not asked again");
}
