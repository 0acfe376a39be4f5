//! `plugin`: what runs, what each may touch, and switching one on or off.

use super::show::print_line;
use super::{Exit, usage};
use crate::config;
use crate::host::Host;
use crate::plugin::{State, Status};
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
        /// Its name
        name: String,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
    /// Switches a plugin on; running hosts see it at once
    Enable {
        /// Its name
        name: String,
    },
    /// Switches a plugin off; running hosts see it at once
    Disable {
        /// Its name
        name: String,
    },
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
        PluginCommand::Enable { name } => switch(host, name, false)?,
        PluginCommand::Disable { name } => switch(host, name, true)?,
    }
    Ok(Exit::Done)
}

/// Says on standard error what is wrong with plugins, before work that relies on them.
pub(super) fn warn(host: &Host) {
    for problem in &host.problems {
        eprintln!("! {problem}");
    }
    for status in all(host).iter().filter(|status| status.state == State::Waiting) {
        if let Some(line) = &status.grant_line {
            eprintln!("! plugin {} waits for a grant; under grants: in astrarium.yaml write: {line}", status.name);
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

fn switch(host: &Host, name: &str, off: bool) -> Result<()> {
    find(host, name)?;
    config::set_disabled(&host.options.home, name, off)?;
    eprintln!("plugin {name} is {}", if off { "disabled" } else { "enabled" });
    Ok(())
}

fn line(status: &Status) -> String {
    let digest = status.digest.get(..12).unwrap_or("-");
    let what: Vec<&str> = status.tools.iter().chain(&status.hooks).map(String::as_str).collect();
    let mut line =
        format!("{:<16} {:<8} {digest:<12} {:<9} {}", status.name, status.version, word(status.state), what.join(", "));
    if let Some(error) = &status.error {
        line.push_str(&format!("\n  {error}"));
    }
    if let Some(grant) = &status.grant_line {
        line.push_str(&format!("\n  to grant what it asks for: {grant}"));
    }
    line
}

fn show(status: &Status) {
    let shown = |text: String| if text.is_empty() { "nothing".to_owned() } else { text };
    print_line(&format!("{} {}  {}", status.name, status.version, word(status.state)));
    print_line(&status.description);
    print_line(&format!("folder:   {}", status.folder.display()));
    print_line(&format!("digest:   sha256:{}", status.digest));
    print_line(&format!("tools:    {}", shown(status.tools.join(", "))));
    print_line(&format!("hooks:    {}", shown(status.hooks.join(", "))));
    print_line(&format!("granted:  {}", shown(status.granted.to_string())));
    print_line(&format!("missing:  {}", shown(status.missing.to_string())));
    if let Some(line) = &status.grant_line {
        print_line(&format!("to grant: {line}"));
    }
    if let Some(error) = &status.error {
        print_line(&format!("error:    {error}"));
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Waiting => "waiting",
        State::Disabled => "disabled",
        State::Failed => "failed",
    }
}
