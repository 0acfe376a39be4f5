//! A place for one test: a home, a workspace and plugin folders of its own, and the host or the program over them.
//!
//! Guests are built by `cargo xtask test`, which names them in the environment; without it a test fails and says so.

use astrarium::capability::http::Names;
use astrarium::context::{AgentKind, CallContext};
use astrarium::event::{Event, Outcome};
use astrarium::hooks::Hooks;
use astrarium::host::{Host, Options, Which};
use astrarium::model::scripted::Scripted;
use astrarium::runtime::Desk;
use astrarium::session::Session;
use astrarium::store::Audit;
use astrarium::tool_call::{Asked, Calls, Finished};
use astrarium::transcript::Role;
use astrarium::turn::{self, Run};
use serde_json::Value;
use std::borrow::Borrow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A place; its folders go when it is dropped.
pub struct Place {
    folder: TempDir,
    /// Whether the plugins that ship are loaded.
    pub shipped: bool,
}

/// What the set-up has put at `name`.
fn from_setup(name: &str) -> PathBuf {
    match std::env::var_os(name) {
        Some(path) => path.into(),
        None => panic!("{name} is not set: these tests need what `cargo xtask test` builds; run them by it"),
    }
}

/// The folder of test plugins.
pub fn guests() -> PathBuf {
    from_setup("ASTRARIUM_GUESTS")
}

/// What ships.
pub fn share() -> PathBuf {
    from_setup("ASTRARIUM_SHARE")
}

/// The program.
pub fn program() -> PathBuf {
    from_setup("ASTRARIUM_BIN")
}

/// A Python; it has the public validator of skills, and can open a terminal.
pub fn python() -> PathBuf {
    from_setup("ASTRARIUM_PYTHON")
}

/// One cache of compiled guests for all tests: compiling a Python guest takes seconds.
fn cache() -> PathBuf {
    guests().parent().expect("the guests lie in a folder").join("test-cache")
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder can be made");
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.expect("the folder reads");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the file can be copied");
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// An empty home and workspace, with the plugins that ship.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for name in ["home", "workspace", "plugins"] {
            fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        Self { folder, shipped: true }
    }

    /// The same without the plugins that ship.
    pub fn bare() -> Self {
        Self { shipped: false, ..Self::new() }
    }

    /// The home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// The folder of the test's own plugins.
    pub fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    /// Puts a file of the workspace there.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("its folder can be made");
        fs::write(path, text).expect("the file can be written");
        self
    }

    /// The text of a file of the workspace.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Adds a test plugin.
    pub fn plugin(&self, name: &str) -> &Self {
        copy(&guests().join(name), &self.plugins().join(name));
        self
    }

    /// Writes the operator's config.
    pub fn config(&self, yaml: &str) -> &Self {
        fs::write(self.home().join("astrarium.yaml"), yaml).expect("the config can be written");
        self
    }

    /// Where everything is.
    pub fn options(&self) -> Options {
        Options {
            home: self.home(),
            config: None,
            plugins: vec![self.plugins()],
            workspace: self.workspace(),
            library: None,
            share: if self.shipped { share() } else { self.folder.path().join("nothing-ships") },
            cache: cache(),
            model: None,
            names: Names::default(),
            permission_mode: None,
        }
    }

    /// The host over this place.
    pub async fn host(&self) -> Host {
        Host::open(self.options()).await.expect("the host opens")
    }

    /// The program over this place, ready to run. No variable of the developer's own reaches it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .arg("--plugins")
            .arg(self.plugins())
            .env_clear()
            .env("ASTRARIUM_HOME", self.home())
            .env("ASTRARIUM_CACHE", cache())
            .env("ASTRARIUM_SHARE", self.options().share)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.workspace())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Writes a script beside the workspace and answers with its name for `--model`.
    pub fn script(&self, yaml: &str) -> String {
        let path = self.folder.path().join("script.yaml");
        fs::write(&path, yaml).expect("the script can be written");
        format!("scripted:{}", path.display())
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// What a finished program left.
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The document on standard output.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A turn that has ended, with all that was seen of it.
pub struct Turn {
    /// How it ended.
    pub outcome: Outcome,
    /// Its events, in order.
    pub events: Vec<Event>,
}

impl Turn {
    /// Outputs of the calls of a tool, in the order in which they ended.
    pub fn outputs(&self, tool: &str) -> Vec<String> {
        let finished = self.events.iter().filter_map(|event| match event {
            Event::CallFinished(finished) if finished.tool == tool => Some(finished.output.clone()),
            _ => None,
        });
        finished.collect()
    }
}

/// Plays `script` in a new session.
pub async fn play(host: &Host, script: &str, question: &str, max_steps: u32) -> (Session, Turn) {
    let model = Arc::new(Scripted::from_str("test", script).expect("the script reads"));
    let mut session = host.session(Which::New { title: question }, model).expect("the session opens");
    let turn = ask(&mut session, question, max_steps, &CancellationToken::new(), |_| {}).await;
    (session, turn)
}

/// Goes on in a session with the steps of a script, wherever another script had stopped, for one turn.
pub async fn go_on(host: &Host, id: &str, steps: &str) -> (Session, Turn) {
    let open = |script: &str| {
        let model = Arc::new(Scripted::from_str("test", script).expect("the script reads"));
        host.session(Which::Named(id), model).expect("the session opens")
    };
    let answers = open("name: test\nsteps:\n- say: over\n")
        .conversation()
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .count();
    let mut session = open(&format!("name: test\nsteps:\n{}{steps}", "- say: over\n".repeat(answers)));
    let turn = ask(&mut session, "go on", 50, &CancellationToken::new(), |_| {}).await;
    (session, turn)
}

/// Runs one turn of a session; `seen` is called with each event as it comes.
pub async fn ask(
    session: &mut Session,
    question: &str,
    max_steps: u32,
    cancel: &CancellationToken,
    seen: impl Fn(&Event) + Send + Sync,
) -> Turn {
    let events = Mutex::new(Vec::new());
    let sink = |event: Event| {
        seen(&event);
        events.lock().expect("no test panics while it holds the events").push(event);
    };
    // The turn wants a sink that outlives nothing but itself.
    let outcome = {
        let run = Run { max_steps, sink: &sink, cancel };
        turn::run(session, question, &run).await
    };
    Turn { outcome, events: events.into_inner().expect("the events are whole") }
}

/// Calls a tool as the loop does, without a session.
pub async fn call(host: &Host, tool: &str, input: impl Borrow<Value>, cancel: &CancellationToken) -> Finished {
    call_with(&Calls::new(host.registry.clone(), Desk::default()), host, tool, input.borrow(), cancel).await
}

/// The same without the audit, for benches.
pub async fn call_unrecorded(
    host: &Host,
    tool: &str,
    input: impl Borrow<Value>,
    cancel: &CancellationToken,
) -> Finished {
    let mut calls = Calls::new(host.registry.clone(), Desk::default());
    calls.services.audit = Audit::Off;
    calls.hooks = Arc::new(Hooks::new(host.registry.clone(), calls.services.clone()));
    call_with(&calls, host, tool, input.borrow(), cancel).await
}

/// The same by `calls` that are there already.
pub async fn call_with(calls: &Calls, host: &Host, tool: &str, input: &Value, cancel: &CancellationToken) -> Finished {
    let context = CallContext {
        session: String::new(),
        call: "c".into(),
        step: 1,
        agent: AgentKind::Main,
        language: "en".into(),
        workspace: host.options.workspace.clone(),
    };
    let asked = Asked { id: "c", tool, input, malformed: None };
    match calls.prepare(asked, &context, cancel).await {
        Ok(ready) => calls.run(&ready, &context, cancel).await,
        Err(finished) => finished,
    }
}

/// Resident memory of this process, in MiB.
pub fn resident() -> i64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells a process its memory");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the line is there");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<i64>().ok()).expect("it is a number") / 1024
}

/// Types `typed` into a terminal of the program's own when `cue` is seen there.
const TERMINAL: &str = "
import os, pty, sys, json
cue, typed, arguments = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execv(arguments[0], arguments)
seen, sent = b'', False
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:
        break
    if not more:
        break
    seen += more
    if not sent and cue.encode() in seen:
        sent = True
        os.write(fd, typed.encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(seen)
sys.exit(status if status >= 0 else 99)
";

/// Runs the program at a terminal of its own: the exit status, and all that was shown there.
pub fn at_a_terminal(place: &Place, arguments: &[&str], cue: &str, typed: &str) -> (i32, String) {
    let (path, plugins) = (program().display().to_string(), place.plugins().display().to_string());
    let mut all = vec![path.as_str()];
    all.extend(arguments);
    all.extend(["--plugins", &plugins]);
    let told = serde_json::json!([cue, typed, all]).to_string();
    // The same surroundings as every other run of the program, with a terminal's name added.
    let ready = place.command(&[]);
    let surroundings = ready.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new(python());
    command.args(["-c", TERMINAL, &told]).env_clear().envs(surroundings).env("TERM", "xterm");
    let output = command.current_dir(place.workspace()).output().expect("python starts");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}
