//! `plugin`: what runs, what each may touch, and the operator's decisions on both.

mod grant;
mod install;

use super::show::{NAME, note_line, notice, print_line};
use super::{Exit, usage};
use crate::host::{Host, Options};
use crate::manifest::is_plugin_name;
use crate::plain::one_line;
use crate::plugin::{State, Status};
use anyhow::Result;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub(super) enum PluginCommand {
    /// Lists the plugins
    List {
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows one plugin
    Show {
        /// The plugin's name
        name: String,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows what a plugin asks for, and switches it on when you say yes; running hosts see it at once
    Enable {
        /// The plugin's name
        name: String,
        /// Yes, without asking
        #[arg(long)]
        yes: bool,
    },
    /// Switches a plugin off; running hosts see it at once
    Disable {
        /// The plugin's name
        name: String,
    },
    /// Grants what a plugin asks for, in grants.yaml of the home folder; running hosts see it at once
    Grant {
        /// The plugin's name
        name: String,
        /// What of it: fs, http, process, env, kv, tasks, …, or one of several as in fs:workspace:ro, env:LANG,
        /// http:https://example.org [default: all of it]
        capabilities: Vec<String>,
        /// To this build alone; a later one asks anew
        #[arg(long)]
        this_build: bool,
    },
    /// Takes back what a plugin was granted, by whomever; running hosts see it at once
    Revoke {
        /// The plugin's name
        name: String,
        /// What of it, as with `grant`; fs:workspace:rw takes writing back and leaves reading [default: all of it]
        capabilities: Vec<String>,
    },
    /// Checks a plugin, keeps it by its digest and puts it in force; running hosts see it at once
    Install {
        /// A plugin's folder, a .wasm, or the http(s) address of a plugin.yaml, of its folder with / at the end, or of a .wasm
        #[arg(value_name = "PATH|URL")]
        source: String,
        /// What the component's SHA-256 must be
        #[arg(long, value_name = "sha256:…")]
        digest: Option<String>,
    },
    /// Removes an installed plugin; its versions stay
    Remove {
        /// The plugin's name
        name: String,
    },
    /// Goes back to the version that was installed before, or to the one named
    Rollback {
        /// The plugin's name
        name: String,
        /// Its version, or the beginning of its component's digest
        #[arg(value_name = "VERSION")]
        to: Option<String>,
    },
    /// Looks at everything that would be checked, and publishes nothing
    Check {
        /// A plugin's folder, or a .wasm
        path: PathBuf,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
}

/// Commands that need no host, and must help where none opens; none where a host is needed.
pub(super) fn without_host(options: &Options, command: &PluginCommand) -> Option<Result<Exit>> {
    Some(match command {
        PluginCommand::Enable { name, yes } => grant::enable(options, name, *yes),
        PluginCommand::Disable { name } => grant::disable(options, name),
        PluginCommand::Grant { name, capabilities, this_build } => {
            grant::grant(options, name, capabilities, *this_build)
        }
        PluginCommand::Revoke { name, capabilities } => grant::revoke(options, name, capabilities),
        PluginCommand::Remove { name } => install::remove(options, name),
        PluginCommand::Rollback { name, to } => install::rollback(options, name, to.as_deref()),
        PluginCommand::List { .. }
        | PluginCommand::Show { .. }
        | PluginCommand::Install { .. }
        | PluginCommand::Check { .. } => return None,
    })
}

pub(super) async fn plugin(host: &Host, command: &PluginCommand) -> Result<Exit> {
    match command {
        PluginCommand::Install { source, digest } => install::install(host, source, digest.as_deref()).await,
        PluginCommand::Check { path, json } => install::check(host, path, *json).await,
        other => read(host, other),
    }
}

/// Commands that show what there is.
pub(super) fn read(host: &Host, command: &PluginCommand) -> Result<Exit> {
    match command {
        PluginCommand::List { json: true } => print_line(&serde_json::to_string_pretty(&all(host))?),
        PluginCommand::List { json: false } => all(host).iter().for_each(|status| print_line(&line(status))),
        PluginCommand::Show { name, json } => {
            let status = find(host, name)?;
            if *json {
                print_line(&serde_json::to_string_pretty(&status)?);
            } else {
                show(&status);
            }
        }
        other => return without_host(&host.options, other).unwrap_or(Ok(Exit::Done)),
    }
    Ok(Exit::Done)
}

/// Says on standard error what is wrong with plugins, before work that relies on them.
pub(super) fn warn(host: &Host) {
    for problem in &host.problems {
        note_line(&notice(problem));
    }
    for status in all(host).iter().filter(|status| status.state == State::Waiting) {
        if let Some(line) = &status.grant_line {
            note_line(&notice(&format!(
                "plugin {} waits for a grant; under grants: in astrarium.yaml write: {line}",
                status.name
            )));
        }
    }
}

fn all(host: &Host) -> Vec<Status> {
    host.registry.snapshot().plugins.iter().map(|plugin| plugin.status()).collect()
}

fn find(host: &Host, name: &str) -> Result<Status> {
    all(host)
        .into_iter()
        .find(|status| status.name == name)
        .ok_or_else(|| usage(format!("there is no plugin {name:?}; `astrarium plugin list` shows those there are")))
}

fn line(status: &Status) -> String {
    let digest = status.digest.get(..12).unwrap_or("-");
    let what: Vec<&str> = status.tools.iter().chain(&status.hooks).map(String::as_str).collect();
    // Name and version may be a stranger's: a folder that is no plugin yet has its own name here.
    let (name, version) = (one_line(&status.name, NAME), one_line(&status.version, NAME));
    let mut line = format!("{name:<16} {version:<8} {digest:<12} {:<9} {}", word(status.state), what.join(", "));
    if let Some(error) = &status.error {
        line.push_str(&format!("\n  {}", one_line(error, usize::MAX)));
    }
    if let Some(grant) = &status.grant_line {
        line.push_str(&format!("\n  to grant what it asks for: {}", one_line(grant, usize::MAX)));
    }
    line
}

fn show(status: &Status) {
    let shown = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
    let print = |line: &str| print_line(&one_line(line, usize::MAX));
    print(&format!("{} {}  {}", status.name, status.version, word(status.state)));
    if !status.description.is_empty() {
        print(&status.description);
    }
    print(&format!("folder:   {}", status.folder.display()));
    if !status.digest.is_empty() {
        print(&format!("digest:   sha256:{}", status.digest));
    }
    if status.loaded {
        print(&format!("tools:    {}", shown(status.tools.join(", "))));
        print(&format!("hooks:    {}", shown(status.hooks.join(", "))));
        if status.prompt {
            print("prompt:   contributes pieces of it (`astrarium prompt show`)");
        }
    } else {
        let folder = status.folder.display();
        print(&format!("tools:    not known, as it is not loaded; `astrarium plugin check {folder}` looks"));
    }
    if !status.manifest.is_empty() {
        print(&format!("manifest: sha256:{}", status.manifest));
    }
    print(&format!("asks for: {}", shown(status.requested.to_string())));
    print(&format!("granted:  {}", shown(status.granted.to_string())));
    for source in &status.granted_by {
        print(&format!("          by {source}"));
    }
    print(&format!("missing:  {}", shown(status.missing.to_string())));
    for source in &status.taken_back {
        print(&format!("          taken back by {source}, over any grant in astrarium.yaml"));
    }
    match (&status.grant_line, &status.grant_command) {
        (Some(line), command) => {
            print(&format!("to grant: {line}"));
            print(&format!("      or: {}", command.as_deref().unwrap_or_default()));
        }
        (None, Some(command)) => print(&format!("to grant: {command}")),
        (None, None) => {}
    }
    if let Some(error) = &status.error {
        print(&format!("error:    {error}"));
    }
}

fn check_name(name: &str) -> Result<()> {
    match is_plugin_name(name) {
        true => Ok(()),
        false => Err(usage(format!("{name:?} is no plugin name; use a to z, 0 to 9 and -, beginning with a letter"))),
    }
}

pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Waiting => "waiting",
        State::Disabled => "disabled",
        State::Failed => "failed",
    }
}
