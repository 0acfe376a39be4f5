//! `plugin grant`, `revoke`, `enable` and `disable`: what the operator decides, written without a host, so that it helps
//! where a plugin or the config keeps the host from opening.

use super::check_name;
use crate::cli::show::{note_line, print_line};
use crate::cli::{Exit, audit, usage};
use crate::config::{self, Config};
use crate::grant::Capabilities;
use crate::host::{Options, make_home, settings};
use crate::limits::Limits;
use crate::plain::one_line;
use crate::plugin::{Found, effective, find};
use anyhow::Result;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Grants what a plugin asks for, or what of it the words name.
pub(in crate::cli) fn grant(options: &Options, name: &str, words: &[String], this_build: bool) -> Result<Exit> {
    let found = there(options, name)?;
    let asked = &found.manifest.requests;
    if asked.is_empty() {
        note_line(&format!("{name} asks for nothing, so there is nothing to grant"));
        return Ok(Exit::Done);
    }
    let capabilities = picked(asked, words)?;
    make_home(&options.home)?;
    let build = config::Build { component: &found.digest, manifest: &found.manifest.digest };
    config::grant(&options.home, name, this_build.then_some(build), &capabilities)?;
    audit::operator(options, audit::command("grant", name, &capabilities.to_string()));
    note_line(&format!("granted to {name}: {capabilities}"));
    tell_what_is_missing(options, &found);
    Ok(Exit::Done)
}

/// Takes back what a plugin was granted, or what of it the words name.
pub(in crate::cli) fn revoke(options: &Options, name: &str, words: &[String]) -> Result<Exit> {
    check_name(name)?;
    make_home(&options.home)?;
    let granted = config::granted(&options.home)?;
    let by_command = granted.grants.iter().filter(|rule| rule.plugin == name);
    let by_command = by_command.fold(Capabilities::default(), |all, rule| all.join(&rule.capabilities));
    // One that is gone, or does not read, must lose its grants all the same.
    let found = find(&options.roots(), name, limit());
    if matches!(found, Ok(None)) && by_command.is_empty() {
        return Err(usage(format!(
            "there is no plugin {name}, and none of that name was granted anything by command; `astrarium plugin list` names \
             those there are"
        )));
    }
    let asked = found.ok().flatten().map(|found| found.manifest.requests);
    let all = asked.unwrap_or_default().join(&by_command);
    if all.is_empty() {
        note_line(&format!("{name} asks for nothing and was granted nothing here, so there is nothing to take back"));
        return Ok(Exit::Done);
    }
    // Whoever takes a folder back takes back reading it too, unless it is writing alone that is named.
    let capabilities = match words {
        [] => readable(&all),
        words => words.iter().try_fold(Capabilities::default(), |picked, word| {
            let one = all.pick(word).map_err(usage)?;
            Ok::<_, anyhow::Error>(picked.join(&if word.ends_with(":rw") { one } else { readable(&one) }))
        })?,
    };
    config::revoke(&options.home, name, &capabilities)?;
    audit::operator(options, audit::command("revoke", name, &capabilities.to_string()));
    note_line(&format!("taken back from {name}, whoever granted it: {capabilities}"));
    Ok(Exit::Done)
}

/// Switches a plugin on, once the operator has seen what it asks for and said yes.
pub(in crate::cli) fn enable(options: &Options, name: &str, yes: bool) -> Result<Exit> {
    check_name(name)?;
    match find(&options.roots(), name, limit()) {
        Ok(Some(found)) => show(options, &found),
        Ok(None) => note_line(&format!("no plugin {name} is there now; the switch is kept for when it is")),
        Err(reason) => note_line(&format!("the plugin {name} does not read: {reason}")),
    }
    if !yes && !says_yes(&format!("enable {name}?"))? {
        note_line(&format!("{name} stays as it was"));
        return Ok(Exit::Refused);
    }
    switch(options, name, false)
}

/// Switches a plugin off at once, whatever state it is in.
pub(in crate::cli) fn disable(options: &Options, name: &str) -> Result<Exit> {
    check_name(name)?;
    if !options.roots().iter().any(|root| root.path.join(name).is_dir()) {
        note_line(&format!("note: no plugin {name} is there now; the switch is kept for when it is"));
    }
    switch(options, name, true)
}

fn switch(options: &Options, name: &str, off: bool) -> Result<Exit> {
    make_home(&options.home)?;
    config::set_disabled(&options.home, name, off)?;
    audit::operator(options, audit::command(if off { "disable" } else { "enable" }, name, ""));
    if off {
        audit::switched_off(options, name);
    }
    note_line(&format!("plugin {name} is {}", if off { "disabled" } else { "enabled" }));
    Ok(Exit::Done)
}

/// Asks at the terminal. Where nobody can be asked the answer must be on the command line.
fn says_yes(question: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(usage(format!("{question} nobody can be asked here; say --yes if that is meant")));
    }
    let _ = write!(std::io::stderr(), "{question} yes or no › ").and_then(|()| std::io::stderr().flush());
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What an operator should see before deciding.
fn show(options: &Options, found: &Found) {
    let Found { manifest, digest, folder } = found;
    let print = |line: String| print_line(&one_line(&line, usize::MAX));
    let shown = |capabilities: &Capabilities| match capabilities.is_empty() {
        true => "nothing".to_owned(),
        false => capabilities.to_string(),
    };
    print(format!("{} {}  sha256:{digest}", manifest.name, manifest.version));
    if !manifest.description.is_empty() {
        print(manifest.description.clone());
    }
    print(format!("folder:   {}", folder.display()));
    print(format!("asks for: {}", shown(&manifest.requests)));
    match decided(options, found) {
        Ok((granted, missing)) => {
            print(format!("granted:  {}", shown(&granted)));
            print(format!("missing:  {}", shown(&missing)));
        }
        Err(error) => note_line(&format!("note: what is granted is not known: {error:#}")),
    }
    tell_what_is_missing(options, found);
}

/// How what is missing would be granted.
pub(super) fn tell_what_is_missing(options: &Options, found: &Found) {
    let Ok((_, missing)) = decided(options, found) else { return };
    if !missing.is_empty() {
        let name = &found.manifest.name;
        let line = one_line(&missing.grant_lines(name), usize::MAX);
        note_line(&format!(
            "to grant the rest: astrarium plugin grant {name}, or under grants: in astrarium.yaml {line}"
        ));
    }
}

fn decided(options: &Options, found: &Found) -> Result<(Capabilities, Capabilities)> {
    let config = Config::load(&options.config_path(), options.config.is_some())?;
    Ok(effective(&settings(options, &config)?, &found.manifest, &found.digest))
}

fn there(options: &Options, name: &str) -> Result<Found> {
    check_name(name)?;
    let found = find(&options.roots(), name, limit()).map_err(usage)?;
    found.ok_or_else(|| usage(format!("there is no plugin {name:?}; `astrarium plugin list` shows those there are")))
}

/// What the words pick, together; all of it without one.
fn picked(all: &Capabilities, words: &[String]) -> Result<Capabilities> {
    if words.is_empty() {
        return Ok(all.clone());
    }
    words.iter().try_fold(Capabilities::default(), |picked, word| Ok(picked.join(&all.pick(word).map_err(usage)?)))
}

/// The set with every folder down to reading it.
fn readable(all: &Capabilities) -> Capabilities {
    use crate::grant::{FsMode, FsRule};
    let fs = all.fs.iter().map(|rule| FsRule { mode: FsMode::Ro, ..rule.clone() }).collect();
    Capabilities { fs, ..all.clone() }
}

/// Reading a component for its digest is bounded as everywhere; an operator's own bound is not known before the config is.
fn limit() -> u64 {
    Limits::default().component_bytes
}
