//! `doctor`: one line for each thing that a working Astrarium needs, with the cure where it is missing.

use super::Exit;
use super::show::print_line;
use crate::capability::process::confinement;
use crate::config::WithoutLandlock;
use crate::context::{AgentKind, CallContext};
use crate::hooks::Hooks;
use crate::host::Host;
use crate::plain;
use crate::plugin::State;
use crate::prompt::effective::Wishes;
use crate::skills::Owner;
use crate::store::Verified;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::process::Command;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a model's server may take to answer before it counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// An array on standard output
    #[arg(long)]
    json: bool,
}

/// One check.
#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    /// A missing toolchain keeps nobody from running plugins that are built.
    optional: bool,
    said: String,
}

pub(super) async fn doctor(host: &Host, args: &DoctorArgs) -> Result<Exit> {
    let checks = [
        toolchain(),
        config(host),
        plugins(host),
        gates(host).await,
        memory(host),
        skills(host),
        model(host).await,
        window(host),
        texts(host),
        database(host),
        audit(host),
        programs(host),
    ];
    report(&checks, args)
}

/// Where the host does not open, that is what is wrong, and the list is as it always is.
pub(super) fn unopened(error: &anyhow::Error, args: &DoctorArgs) -> Result<Exit> {
    let host = Check { what: "host", ok: false, optional: false, said: format!("{error:#}") };
    report(&[toolchain(), host], args)
}

fn report(checks: &[Check], args: &DoctorArgs) -> Result<Exit> {
    if args.json {
        print_line(&serde_json::to_string_pretty(checks)?);
    } else {
        for check in checks {
            let mark = match (check.ok, check.optional) {
                (true, _) => "✓",
                (false, true) => "-",
                (false, false) => "✗",
            };
            print_line(&format!("{mark} {:<10} {}", check.what, plain::one_line(&check.said, usize::MAX)));
        }
    }
    let healthy = checks.iter().all(|check| check.ok || check.optional);
    Ok(if healthy { Exit::Done } else { Exit::Failed })
}

fn toolchain() -> Check {
    let version = Command::new("rustc").arg("--version").output().ok().filter(|output| output.status.success());
    let target = Command::new("rustc").args(["--print", "sysroot"]).output().ok().is_some_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        std::path::Path::new(&sysroot).join("lib/rustlib/wasm32-wasip2").is_dir()
    });
    let (ok, said) = match (version, target) {
        (None, _) => (false, "no rustc; only needed to build plugins in Rust".to_owned()),
        (Some(output), true) => {
            (true, format!("{} with wasm32-wasip2", String::from_utf8_lossy(&output.stdout).trim()))
        }
        (Some(output), false) => (
            false,
            format!(
                "{} without wasm32-wasip2, needed to build plugins in Rust: rustup target add wasm32-wasip2",
                String::from_utf8_lossy(&output.stdout).trim()
            ),
        ),
    };
    Check { what: "toolchain", ok, optional: true, said }
}

fn config(host: &Host) -> Check {
    // A config that does not read never gets here: the host does not open.
    let path = host.options.config_path();
    let said = match path.exists() {
        true => {
            let config = host.config();
            let unknown = config.named_plugins().filter(|name| host.registry.snapshot().plugin(name).is_none());
            let unknown: Vec<&str> = unknown.collect();
            if !unknown.is_empty() {
                let said = format!("{} names plugins that are not there: {}", path.display(), unknown.join(", "));
                return Check { what: "config", ok: false, optional: true, said };
            }
            format!("{} with {} grants", path.display(), host.config().grants.len())
        }
        false => format!("{} is absent, defaults are in force", path.display()),
    };
    Check { what: "config", ok: true, optional: false, said }
}

fn plugins(host: &Host) -> Check {
    let snapshot = host.registry.snapshot();
    let count = |state| snapshot.plugins.iter().filter(|plugin| plugin.state == state).count();
    let mut said = format!(
        "{} live, {} waiting, {} disabled, {} failed",
        count(State::Live),
        count(State::Waiting),
        count(State::Disabled),
        count(State::Failed)
    );
    let wrong = snapshot.plugins.iter().find_map(|plugin| plugin.error.as_ref().map(|error| (&plugin.name, error)));
    if let Some((name, error)) = wrong {
        said.push_str(&format!("; {name}: {error}"));
    }
    if snapshot.plugins.is_empty() {
        said =
            format!("none found; they ship in {}, run `cargo xtask run` to build them", host.options.share.display());
    }
    let named = |state| -> Vec<&str> {
        snapshot.plugins.iter().filter(|plugin| plugin.state == state).map(|plugin| plugin.name.as_str()).collect()
    };
    for (state, word) in [(State::Waiting, "waiting"), (State::Disabled, "disabled")] {
        if !named(state).is_empty() {
            said.push_str(&format!("; {word}: {}", named(state).join(", ")));
        }
    }
    let ok = wrong.is_none() && count(State::Failed) == 0 && !snapshot.plugins.is_empty();
    Check { what: "plugins", ok, optional: false, said }
}

/// Whether every call would be refused, found out before one is.
async fn gates(host: &Host) -> Check {
    let hooks = Hooks::new(host.registry.clone(), host.registry.services().clone());
    let context = CallContext {
        session: String::new(),
        call: "doctor".into(),
        step: 0,
        agent: AgentKind::Main,
        language: "en".into(),
        workspace: host.options.workspace.clone(),
    };
    let probed = hooks.probe(&host.registry.snapshot(), &context, &CancellationToken::new()).await;
    let broken: Vec<String> = probed.broken.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    let said = match broken.is_empty() {
        true => format!("{} can judge", probed.asked),
        false => format!("cannot judge, so calls are refused; mend or disable: {}", broken.join("; ")),
    };
    Check { what: "gates", ok: broken.is_empty(), optional: false, said }
}

fn skills(host: &Host) -> Check {
    let snapshot = host.skills.snapshot();
    let count = |owner| snapshot.skills().filter(|live| live.owner == owner).count();
    let counts =
        [Owner::Shipped, Owner::User, Owner::Workspace].map(|owner| format!("{} {}", count(owner), owner.word()));
    let mut said = counts.join(", ");
    for problem in &snapshot.problems {
        said.push_str(&format!("; {problem}"));
    }
    Check { what: "skills", ok: snapshot.problems.is_empty(), optional: true, said }
}

fn memory(host: &Host) -> Check {
    let shelf = &host.registry.services().shelf;
    let folder = shelf.folder().display();
    // Sessions run without a file that does not read; a shelf that cannot be read at all is another matter.
    let (ok, optional, said) = match shelf.list() {
        Ok(listing) => {
            let mut said = format!("{} in {folder}, {} archived", listing.current.len(), listing.archived.len());
            for broken in &listing.broken {
                said.push_str(&format!("; left out: {}: {}", broken.file, broken.reason));
            }
            (listing.broken.is_empty(), true, said)
        }
        Err(error) => (false, false, error.to_string()),
    };
    Check { what: "memory", ok, optional, said }
}

async fn model(host: &Host) -> Check {
    let (choice, _) = host.choice();
    let (ok, said) = match host.model() {
        Err(error) => (false, format!("{error:#}")),
        Ok(model) => match tokio::time::timeout(PATIENCE, model.check()).await {
            Ok(Ok(said)) => (true, format!("{}: {said} ({})", model.name(), choice.rule)),
            Ok(Err(error)) => (false, format!("{}: {error}", model.name())),
            Err(_) => {
                (false, format!("{} did not answer within {} s; check the base URL", model.name(), PATIENCE.as_secs()))
            }
        },
    };
    Check { what: "model", ok, optional: false, said }
}

/// What keeps native programs in. A host without them is still a host.
fn programs(host: &Host) -> Check {
    let (ok, said) = match confinement() {
        Ok(said) => (true, format!("native programs are confined by {said}")),
        Err(reason) if host.config().process.without_landlock == WithoutLandlock::Allow => {
            (false, format!("native programs run unconfined, as the config allows: {reason}"))
        }
        Err(reason) => (false, format!("no native program runs: {reason}")),
    };
    Check { what: "programs", ok, optional: true, said }
}

/// How much the model takes in at once, and who says so: what is assumed is the first thing to look at when requests are
/// refused as too long.
fn window(host: &Host) -> Check {
    let (choice, _) = host.choice();
    let (ok, said) = match host.window(choice.name.as_deref().unwrap_or_default()) {
        Ok(known) => (true, format!("{} tokens ({})", known.tokens, known.by)),
        Err(error) => (false, format!("{error:#}")),
    };
    Check { what: "window", ok, optional: false, said }
}

/// The texts that an operator has put in the place of ours.
fn texts(host: &Host) -> Check {
    let (ok, said) = match host.setup("", Wishes::default()) {
        Ok(setup) if setup.persona.warnings.is_empty() => (true, format!("persona {}", setup.persona.name)),
        Ok(setup) => (false, setup.persona.warnings.join("; ")),
        Err(error) => (false, format!("{error:#}")),
    };
    Check { what: "texts", ok, optional: true, said }
}

fn database(host: &Host) -> Check {
    let path = host.store.path().display();
    let (ok, said) = match host.store.check() {
        Ok(said) if said == "ok" => (true, format!("{path} is whole")),
        Ok(said) => (false, format!("{path} is damaged: {said}; move it away and start anew")),
        Err(error) => (false, error.to_string()),
    };
    Check { what: "database", ok, optional: false, said }
}

fn audit(host: &Host) -> Check {
    let (ok, said) = match host.store.check_audit() {
        Ok(Verified::Whole(head)) => (true, format!("{} rows; `astrarium audit verify` reads them all", head.seq)),
        Ok(Verified::Broken { what, .. }) => (false, format!("{what}; `astrarium audit verify` tells more")),
        Err(error) => (false, error.to_string()),
    };
    Check { what: "audit", ok, optional: false, said }
}
