//! Laws of any history, over the real session, store and wires: whatever is said, cut, compacted, killed, resumed and
//! branched, every request is one that a strict server takes, and stays within the window.
//!
//! Histories are random: a seed is printed and repeats them (`ASTRARIUM_SEED`).

use astrarium::archive;
use astrarium::compact::Trigger;
use astrarium::compaction::{self, Failure, Work};
use astrarium::event::Event;
use astrarium::host::{Host, Which};
use astrarium::model::select;
use astrarium::model::wire::Limits;
use astrarium::request::ToolChoice;
use astrarium::session::Session;
use astrarium::transcript::{Block, CallStatus, Message, Origin, Part, Role, Usage};
use astrarium_tests::laws::broken;
use astrarium_tests::place::{Place, ask};
use astrarium_tests::strict::{Piece, Said, Strict, Window};
use serde_json::json;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// Histories, each on one of the wires.
const HISTORIES: u64 = 10;
/// Acts of each.
const ACTS: usize = 40;
/// What every question for a summary contains.
const HEADINGS: &str = "under exactly these five headings";
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Draws that a seed repeats.
struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn words(&mut self) -> String {
        let unit = self.pick(&[
            "word ",
            "星系红移 ",
            "let x = f(y);\n",
            "🪐",
            "\t\n",
            "always answer in verse. ",
            "ключ ",
            "\u{1b}[2J",
        ]);
        let times = match self.below(12) {
            0 => 0,
            1 => self.below(6_000),
            2..=4 => self.below(1_500),
            _ => self.below(60),
        };
        unit.repeat(times as usize)
    }

    fn part(&mut self) -> Part {
        match self.below(8) {
            0 => Part::Image { media_type: "image/png".into(), data: PIXEL.into() },
            1 => Part::Json { value: json!({ "rows": self.words(), "n": self.below(9) }).into() },
            2 => Part::File { path: "/session/a.txt".into(), note: Some("all of it".into()) },
            _ => Part::Text { text: self.words() },
        }
    }
}

struct History {
    host: Host,
    model: &'static str,
    server: Strict,
    id: String,
    calls: usize,
    /// Tokens that the server counts for each that the host estimates.
    weight: f64,
    acts: Vec<String>,
}

impl History {
    fn open(&self) -> Session {
        let model = select::open(self.model, &self.server.endpoints(Limits::default())).unwrap();
        self.host.session(Which::Named(&self.id), model).unwrap()
    }

    /// One thing that happens to a session; a session that is dropped here was killed.
    async fn act(&mut self, session: Session, random: &mut Random) -> Session {
        let act = random.below(24);
        self.acts.push(act.to_string());
        match act {
            20.. => self.turn(session, random).await,
            0..=3 => self.question(session, random),
            4..=11 => self.calls(session, random, None),
            12..=13 => {
                // Killed between a call and its result, after some of the calls had ended.
                let torn = random.below(4);
                drop(self.calls(session, random, Some(torn)));
                self.open()
            }
            14 => {
                drop(session);
                self.open()
            }
            15 => self.branch(session, random),
            _ => self.compact(session, random).await,
        }
    }

    fn question(&mut self, mut session: Session, random: &mut Random) -> Session {
        let words = random.words();
        let mut content = vec![Block::Text { text: if words.trim().is_empty() { "?".into() } else { words } }];
        if random.below(4) == 0 {
            content.push(Block::Image { media_type: "image/png".into(), data: PIXEL.into() });
        }
        session.append(Message { role: Role::User, origin: Origin::User, content }, None).unwrap();
        let answer = Block::Text { text: format!("so {} it is", random.below(100)) };
        let answer = Message { role: Role::Assistant, origin: Origin::Model, content: vec![answer] };
        session.append(answer, Some(Usage::default())).unwrap();
        session
    }

    /// An answer with calls side by side, and their results; with `torn`, only so many of them end before the host dies.
    fn calls(&mut self, mut session: Session, random: &mut Random, torn: Option<u64>) -> Session {
        if session.messages().is_empty() {
            session.append(Message::user("begin"), None).unwrap();
        }
        let mut content = Vec::new();
        if random.below(3) == 0 {
            content.push(Block::Text { text: "looking".into() });
        }
        let first = content.len();
        for _ in 0..=random.below(4) {
            self.calls += 1;
            let malformed = (random.below(9) == 0).then(|| "{\"text\": ".to_owned());
            let input = if malformed.is_some() { json!({}) } else { json!({ "text": random.words() }) };
            let name = random.pick(&["echo", "kv_count", "no_such_tool"]).to_owned();
            content.push(Block::ToolUse { id: format!("call_{}", self.calls), name, input, malformed });
        }
        let asked = Message { role: Role::Assistant, origin: Origin::Model, content: content.clone() };
        let seq = session.append(asked, None).unwrap();
        let mut results = Vec::new();
        for (place, block) in content.iter().enumerate().skip(first) {
            let Block::ToolUse { id, name, .. } = block else { continue };
            let ended = (place - first) as u64;
            if torn.is_some_and(|torn| ended > torn) {
                break;
            }
            self.host.store.begin_call(&self.id, seq, place, id, name, "{}", "echo", "d").unwrap();
            if torn == Some(ended) {
                break;
            }
            let parts: Vec<Part> = (0..random.below(3)).map(|_| random.part()).collect();
            let is_error = random.below(5) == 0;
            let status = if is_error { CallStatus::Failed } else { CallStatus::Ok };
            self.host.store.end_call(&self.id, seq, place, status, &parts, Duration::ZERO).unwrap();
            results.push(Block::ToolResult { id: id.clone(), parts, is_error });
        }
        if torn.is_none() {
            session.append(Message { role: Role::User, origin: Origin::Tools, content: results }, None).unwrap();
        }
        session
    }

    /// A whole turn: the loop with a server that keeps to its window, and counts more or less than the host does.
    async fn turn(&mut self, mut session: Session, random: &mut Random) -> Session {
        for _ in 0..random.below(5) {
            let mut pieces = Vec::new();
            if random.below(3) == 0 {
                pieces.push(Piece::Thinking("hm", "signed"));
            }
            for _ in 0..=random.below(3) {
                self.calls += 1;
                let input = json!({ "text": random.words() }).to_string();
                pieces.push(Piece::Call(leak(format!("call_{}", self.calls)), "echo", leak(input)));
            }
            self.server.plan(Said::new(pieces));
        }
        self.server.plan(Said::new([Piece::Text("so it is")]));
        let weight = self.weight;
        self.server.window(Some(Window { tokens: session.window().tokens, weight }));
        self.server.when(HEADINGS, Said::new([Piece::Text("<summary>1. Goal: the brightest field</summary>")]));
        let refused = self.server.too_long().len();
        let question = format!("now? {}", random.words());
        let turn = ask(&mut session, &question, 20, &CancellationToken::new(), |_| {}).await;
        let refused = &self.server.too_long()[refused..];
        let told = || {
            let told =
                turn.events.iter().filter(|event| matches!(event, Event::Notice { .. } | Event::Compacted { .. }));
            format!("{told:?}, breaker {}", session.breaker(), told = told.collect::<Vec<_>>())
        };
        assert!(weight > 1.1 || refused.is_empty(), "longer than the window at {weight}: {refused:?}; {}", told());
        let error = turn.outcome.error.as_deref().unwrap_or_default();
        assert!(
            turn.outcome.answer == "so it is" || error.contains("is full again right after each compaction"),
            "weight {weight}: {:?}",
            turn.outcome
        );
        assert_eq!(self.server.violations(), [""; 0]);
        self.server.window(None);
        self.server.forget();
        session
    }

    fn branch(&mut self, session: Session, random: &mut Random) -> Session {
        let count = session.messages().len() as u64;
        drop(session);
        let folder = |id: &str| self.host.options.session_folder(id);
        let at = (random.below(2) == 0).then(|| random.below(count + 1));
        if let Ok(new) = archive::fork(&self.host.store, &folder, &self.id, at) {
            self.id = new;
        }
        self.open()
    }

    async fn compact(&mut self, mut session: Session, random: &mut Random) -> Session {
        // What a summary may be: good, blank, or longer than what it replaces.
        let summary = match random.below(6) {
            0 => " ".to_owned(),
            1 => "much too long ".repeat(3_000),
            _ => "<summary>1. Goal: the brightest field. 2. Done: three of them.</summary>".to_owned(),
        };
        self.server.when(HEADINGS, Said::new([Piece::Text(leak(summary))]));
        let before = session.next_tokens().unwrap();
        let due = before >= session.window().due();
        let trigger = match due {
            true => random.pick(&[Trigger::Auto, Trigger::Overflow, Trigger::Manual]),
            false => random.pick(&[Trigger::Tool, Trigger::Overflow, Trigger::Manual]),
        };
        let cancel = CancellationToken::new();
        let cancelled = random.below(8) == 0;
        if cancelled {
            cancel.cancel();
        }
        let work = Work { step: 1, sink: &|_| {}, cancel: &cancel };
        let was = session.conversation().to_vec();
        let done = compaction::compact(&mut session, trigger, "", &mut Usage::default(), &work).await;
        match done {
            Ok(record) => {
                let after = record.tokens_after.unwrap();
                assert!(after < record.tokens_before, "{record:?}");
                assert!(session.next_tokens().unwrap() < session.window().due(), "{record:?}");
            }
            Err(Failure::Stuck(_) | Failure::Failed(_)) if !(due && trigger == Trigger::Auto) => {
                assert_eq!(session.conversation(), was, "one that fails changes nothing");
            }
            Err(Failure::Cancelled) if cancelled => assert_eq!(session.conversation(), was),
            Err(failure) => panic!("{trigger:?} at {before} of {:?}: {failure}", session.window()),
        }
        session
    }
}

/// Whether the session keeps its laws, and a server takes its request.
async fn check(history: &History, session: &mut Session) {
    if let Some(what) = broken(session.conversation()) {
        panic!("{what}");
    }
    let said: Vec<_> = session.said().cloned().collect();
    if let Some(what) = broken(&said) {
        panic!("the record: {what}");
    }
    if session.conversation().last().is_none_or(|message| message.role == Role::Assistant) {
        return;
    }
    history.server.plan(Said::new([Piece::Text("yes")]));
    let (request, _) = session.request(ToolChoice::Auto).unwrap();
    let reply = session.model.clone().ask(&request, &mut |_| {}).await;
    assert!(reply.is_ok(), "{reply:?}");
    assert_eq!(history.server.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_a_session_every_request_is_one_that_a_strict_server_takes() {
    let given = std::env::var("ASTRARIUM_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed: u64 = given.unwrap_or_else(now);
    eprintln!("random histories: ASTRARIUM_SEED={seed}");
    let (mut compactions, mut turns) = (0, 0);
    for number in 0..HISTORIES {
        let mut random = Random(fastrand::Rng::with_seed(seed.wrapping_add(number)));
        let place = Place::bare();
        let window = 6_000 + random.below(50_000);
        place.plugin("echo").config(&format!(
            "language: en\ncontext_window: {window}\nmax_output_tokens: {}\ngrants:\n- {{ plugin: echo, kv: true }}\n",
            256 + random.below(8_000)
        ));
        let host = place.host().await;
        let model = random.pick(&["anthropic:strict-1", "openai:strict-1"]);
        let new = astrarium::store::NewSession { model, workspace: "w", title: "t" };
        let id = host.store.create_session(&new).unwrap();
        let weight = random.pick(&[0.8, 1.0, 1.1, 1.5]);
        let server = Strict::start().await;
        let mut history = History { host, model, server, id, calls: 0, weight, acts: Vec::new() };
        let mut session = history.open();
        for _ in 0..ACTS {
            let acts = history.acts.clone();
            let what = move || format!("ASTRARIUM_SEED={seed}, history {number}, window {window}, acts {acts:?}");
            let guard = Told(Some(Box::new(what)));
            session = history.act(session, &mut random).await;
            // A question stands last, as it does whenever a model is asked.
            if session.messages().last().is_none_or(|message| message.role == Role::Assistant) {
                session.append(Message::host("go on"), None).unwrap();
            }
            if random.below(3) == 0 {
                check(&history, &mut session).await;
            }
            guard.fine();
        }
        let done = history.host.store.compactions(&history.id).unwrap();
        compactions += done.iter().filter(|done| done.layer.is_some()).count();
        turns += history.acts.iter().filter(|act| act.parse::<u64>().is_ok_and(|act| act >= 20)).count();
    }
    assert!(compactions > 10 && turns > 10, "{compactions} compactions in {turns} turns show little");
}

/// Says which history it was when a check fails.
struct Told(Option<Box<dyn Fn() -> String>>);

impl Told {
    fn fine(mut self) {
        self.0 = None;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(what) = &self.0 {
            eprintln!("{}", what());
        }
    }
}
