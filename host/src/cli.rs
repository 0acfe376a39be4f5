//! The command line: arguments, exit status, and which command does what.
//!
//! Standard output holds answers and documents, standard error everything else. Exit status: 0 done, 1 failed, 2 usage
//! or config, 3 refused by policy, 130 cancelled.

mod agent;
mod audit;
mod builtins;
mod chat;
mod consent;
mod doctor;
mod log;
mod memory;
mod plugin;
mod prompt;
mod run;
mod session;
mod show;
mod signals;
mod skill;
mod slash;
mod task;
mod tool;
mod wishes;

use crate::capability::http::Names;
use crate::host::{Host, Options, make_home};
use crate::model::ModelError;
use crate::permission::Mode;
use crate::persona::PersonaError;
use crate::store::StoreError;
use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use etcetera::BaseStrategy as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Why the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Refused = 3,
    Cancelled = 130,
}

/// An agent host whose every tool and lifecycle hook is a sandboxed WebAssembly component. Without a command it plays
/// the demo.
///
/// Exit status: 0 done, 1 failed, 2 usage or config, 3 refused by policy, 130 cancelled.
#[derive(Parser)]
#[command(name = "astrarium", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args)]
struct Global {
    /// Folder of sessions, plugins and config [default: the XDG data folder]
    #[arg(long, global = true, value_name = "DIR", env = "ASTRARIUM_HOME", hide_env_values = true)]
    home: Option<PathBuf>,
    /// The operator's config [default: astrarium.yaml in the home folder]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A further folder of plugins; may be given several times
    #[arg(long, global = true, value_name = "DIR")]
    plugins: Vec<PathBuf>,
    /// The folder that file tools may touch
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
    /// Papers, notes and memories [default: library in the home folder]
    #[arg(long, global = true, value_name = "DIR", env = "ASTRARIUM_LIBRARY", hide_env_values = true)]
    library: Option<PathBuf>,
    /// Folder of compiled plugins [default: cache in the home folder]
    #[arg(long, global = true, value_name = "DIR", env = "ASTRARIUM_CACHE", hide_env_values = true)]
    cache: Option<PathBuf>,
    /// anthropic:NAME, openai:NAME or scripted:FILE [default: ASTRARIUM_MODEL, the config, or by the key that is set]
    #[arg(long, global = true, value_name = "MODEL")]
    model: Option<String>,
    /// Which calls run unasked: default, strict (those that change nothing) or plan (no others run at all) [default: the
    /// config's]
    #[arg(long, global = true, value_name = "MODE", value_parser = permission_mode)]
    permission_mode: Option<Mode>,
}

#[derive(Subcommand)]
enum Command {
    /// Answers one prompt
    Run(run::RunArgs),
    /// A conversation on the terminal
    Chat(chat::ChatArgs),
    /// Plugins: what runs and what each may touch
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Tools: lists them, calls one
    #[command(subcommand)]
    Tool(tool::ToolCommand),
    /// Skills: lists them, shows one, checks files
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// Agents: lists those that can be given work, shows one
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Sessions of this home
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// The prompt: what stands in it, what was cached, where two requests part
    #[command(subcommand)]
    Prompt(prompt::PromptCommand),
    /// Tasks: the plan of a session
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Memories: what is known beyond one session
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// What was done, decided and changed: every call, hook, capability and turn of a plugin's life
    Audit(audit::AuditArgs),
    /// Checks toolchain, config, plugins, memory, model, database and audit
    Doctor(doctor::DoctorArgs),
    /// Plays the demo: a scripted model, real plugins, real files
    Demo,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage as u8 } else { Exit::Done as u8 });
        }
    };
    // The provider is chosen once for the process; a second choice is refused, and the first stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            show::note_line(&format!("error: the async runtime does not start: {error}"));
            return ExitCode::from(Exit::Failed as u8);
        }
    };
    let exit = runtime.block_on(dispatch(cli));
    // A guest stuck in a system call must not keep the program from ending.
    runtime.shutdown_timeout(Duration::from_millis(50));
    ExitCode::from(exit as u8)
}

async fn dispatch(cli: Cli) -> Exit {
    signals::listen();
    let command = cli.command.unwrap_or(Command::Demo);
    let options = options(&cli.global);
    if let (Ok(options), Command::Plugin(command)) = (&options, &command)
        && let Some(done) = plugin::without_host(options, command)
    {
        return ended(done);
    }
    if let (Ok(options), Command::Skill(command)) = (&options, &command) {
        return ended(skill::skill(options, command));
    }
    if let (Ok(options), Command::Agent(command)) = (&options, &command) {
        return ended(agent::agent(options, command));
    }
    if let (Ok(options), Command::Audit(args)) = (&options, &command) {
        return ended(audit::audit(options, args).await);
    }
    let opened = async {
        let options = options?;
        // The log lies in the home folder, which Host::open would make too late for the first run.
        make_home(&options.home)?;
        log::start(&options.home);
        // Compiling a plugin for the first time takes seconds; from the cache it is over before a spinner is seen.
        let spinner = show::spinner("loading plugins");
        let host = Host::open(options).await;
        spinner.finish_and_clear();
        host
    };
    let host = match opened.await {
        Ok(host) => {
            consent::ask_at_terminal(&host);
            host
        }
        Err(error) => match command {
            Command::Doctor(args) => return ended(doctor::unopened(&error, &args)),
            _ => return fail(&error, Exit::Usage),
        },
    };
    ended(match command {
        Command::Demo => run::demo(&host).await,
        Command::Run(args) => run::run(&host, &args).await,
        Command::Chat(args) => chat::chat(&host, &args).await,
        Command::Plugin(command) => plugin::plugin(&host, &command).await,
        Command::Tool(command) => tool::tool(&host, &command).await,
        Command::Skill(command) => skill::skill(&host.options, &command),
        Command::Agent(command) => agent::agent(&host.options, &command),
        Command::Session(command) => session::session(&host, &command),
        Command::Prompt(command) => prompt::prompt(&host, &command).await,
        Command::Task(command) => task::task(&host, &command),
        Command::Memory(command) => memory::memory(&host, &command),
        Command::Audit(args) => audit::audit(&host.options, &args).await,
        Command::Doctor(args) => doctor::doctor(&host, &args).await,
    })
}

/// The exit status of a command; an error gets its line.
fn ended(done: Result<Exit>) -> Exit {
    done.unwrap_or_else(|error| {
        let usage = error.chain().any(|cause| {
            cause.is::<Usage>()
                || matches!(cause.downcast_ref(), Some(ModelError::Config(_)))
                || cause.is::<PersonaError>()
                || matches!(cause.downcast_ref(), Some(StoreError::NoSession(_) | StoreError::Invalid(_)))
        });
        fail(&error, if usage { Exit::Usage } else { Exit::Failed })
    })
}

fn fail(error: &anyhow::Error, exit: Exit) -> Exit {
    show::note_line(&format!("error: {error:#}"));
    exit
}

/// A mistake of the command line or the config, rather than a failure of the work.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

fn permission_mode(name: &str) -> Result<Mode, String> {
    match name {
        "default" => Ok(Mode::Default),
        "strict" => Ok(Mode::Strict),
        "plan" => Ok(Mode::Plan),
        other => Err(format!("{other:?} is none of default, strict, plan")),
    }
}

fn options(global: &Global) -> Result<Options> {
    let home = match &global.home {
        Some(home) if !home.as_os_str().is_empty() => home.clone(),
        _ => etcetera::choose_base_strategy()
            .context("there is no home folder for this user; name one with --home or ASTRARIUM_HOME")?
            .data_dir()
            .join("astrarium"),
    };
    let cache = global.cache.clone().unwrap_or_else(|| home.join("cache"));
    Ok(Options {
        home,
        cache,
        config: global.config.clone(),
        plugins: global.plugins.clone(),
        library: global.library.clone().filter(|library| !library.as_os_str().is_empty()),
        workspace: global.workspace.clone(),
        share: share()?,
        model: global.model.clone(),
        names: Names::default(),
        permission_mode: global.permission_mode,
    })
}

/// What ships lies in `../share/astrarium` beside the program's own folder; `ASTRARIUM_SHARE` names another.
fn share() -> Result<PathBuf> {
    if let Some(share) = std::env::var_os("ASTRARIUM_SHARE").filter(|share| !share.is_empty()) {
        return Ok(share.into());
    }
    let program = std::env::current_exe().context("the program does not know where it is; set ASTRARIUM_SHARE")?;
    let folder = program.parent().and_then(|folder| folder.parent()).context("the program lies in no folder")?;
    Ok(folder.join("share/astrarium"))
}
