//! `plugin`: what runs, what each may touch, and switching one on or off.

use super::show::{NAME, note_line, notice, print_line};
use super::{Exit, audit, usage};
use crate::host::{Host, Options, make_home};
use crate::plain::one_line;
use crate::plugin::{State, Status};
use crate::{config, manifest};
use anyhow::Result;
use clap::Subcommand;

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
    /// Switches a plugin on; running hosts see it at once
    Enable {
        /// The plugin's name
        name: String,
    },
    /// Switches a plugin off; running hosts see it at once
    Disable {
        /// The plugin's name
        name: String,
    },
}

impl PluginCommand {
    /// Which plugin it switches, and whether off; none where it only looks.
    pub(super) fn switch(&self) -> Option<(&str, bool)> {
        match self {
            PluginCommand::List { .. } | PluginCommand::Show { .. } => None,
            PluginCommand::Enable { name } => Some((name, false)),
            PluginCommand::Disable { name } => Some((name, true)),
        }
    }
}

pub(super) fn plugin(host: &Host, command: &PluginCommand) -> Result<Exit> {
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
        PluginCommand::Enable { name } => return switch(&host.options, name, false),
        PluginCommand::Disable { name } => return switch(&host.options, name, true),
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

/// Writes the switch without a host: it is what helps where a plugin or the config keeps the host from opening, so it
/// reads neither, and a plugin that is not there is no mistake.
pub(super) fn switch(options: &Options, name: &str, off: bool) -> Result<Exit> {
    if !manifest::is_plugin_name(name) {
        return Err(usage(format!("{name:?} is no plugin name; use a to z, 0 to 9 and -, beginning with a letter")));
    }
    make_home(&options.home)?;
    config::set_disabled(&options.home, name, off)?;
    audit::operator(options, audit::command(if off { "disable" } else { "enable" }, name, ""));
    note_line(&format!("plugin {name} is {}", if off { "disabled" } else { "enabled" }));
    if !options.roots().iter().any(|root| root.path.join(name).is_dir()) {
        note_line(&format!("note: no plugin {name} is there now; the switch is kept for when it is"));
    }
    Ok(Exit::Done)
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
    print(&format!("tools:    {}", shown(status.tools.join(", "))));
    print(&format!("hooks:    {}", shown(status.hooks.join(", "))));
    print(&format!("granted:  {}", shown(status.granted.to_string())));
    print(&format!("missing:  {}", shown(status.missing.to_string())));
    if let Some(line) = &status.grant_line {
        print(&format!("to grant: {line}"));
    }
    if let Some(error) = &status.error {
        print(&format!("error:    {error}"));
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
