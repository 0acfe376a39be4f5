//! `skill`: which skills there are, and what is wrong with a skill file.

use super::builtins::BuiltIn;
use super::show::{note_line, notice, print_line};
use super::{Exit, usage};
use crate::agent;
use crate::host::Options;
use crate::plain::one_line;
use crate::prompt::Language;
use crate::roster::Roster;
use crate::skill::{self, Finding, Level, Skill, listing};
use crate::skills::{self, Live, Registry, Root, Snapshot, folder};
use crate::store::{SkillUse, Store};
use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Subcommand)]
pub(super) enum SkillCommand {
    /// Lists the skills
    List {
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
    /// Shows one skill
    Show {
        /// The skill's name
        name: String,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
    /// Checks skill files; exit status 1 when one has an error
    Check {
        /// Skill folders, SKILL.md files, or folders of skills
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Hold them to the public Agent Skills rules
        #[arg(long)]
        strict: bool,
        /// An array on standard output
        #[arg(long)]
        json: bool,
    },
}

/// No host is needed: what helps with a broken skill must not need the plugins.
pub(super) fn skill(options: &Options, command: &SkillCommand) -> Result<Exit> {
    match command {
        SkillCommand::List { json } => list(options, *json),
        SkillCommand::Show { name, json } => show(options, name, *json),
        SkillCommand::Check { paths, strict, json } => check(options, paths, *strict, *json),
    }
}

/// A skill, and how much it was used on this home.
struct Found {
    live: Arc<Live>,
    used: Option<SkillUse>,
    score: f64,
}

/// All skills in the order in which a session lists them; what was passed over is said on standard error.
fn all(options: &Options, around: &Around) -> Result<Vec<Found>> {
    let snapshot = &around.skills;
    snapshot.problems.iter().chain(&snapshot.shadows).for_each(|line| note_line(&notice(line)));
    // A home without a database has used nothing; looking at skills is no reason to make one.
    let store = options.database().exists().then(|| Store::open(&options.database())).transpose()?;
    let (mut uses, mut scores) = (Vec::new(), HashMap::new());
    if let Some(store) = &store {
        (uses, scores) = (store.skill_uses()?, skills::scores(store, jiff::Timestamp::now())?);
    }
    let found = snapshot.skills().map(|live| Found {
        used: uses.iter().find(|used| used.key == live.key).cloned(),
        score: scores.get(&live.key).copied().unwrap_or_default(),
        live: live.clone(),
    });
    let mut found: Vec<Found> = found.collect();
    skill::score::sort(&mut found, |found| (&found.live.key, found.score));
    Ok(found)
}

fn list(options: &Options, json: bool) -> Result<Exit> {
    let all = all(options, &Around::new(options))?;
    if json {
        let documents: Vec<Value> = all.iter().map(document).collect();
        print_line(&serde_json::to_string_pretty(&documents)?);
        return Ok(Exit::Done);
    }
    for found in &all {
        let Live { skill, owner, .. } = &*found.live;
        let (name, version) = (&skill.name, skill.version.as_deref().unwrap_or("-"));
        let description = skill.description.as_deref().unwrap_or("(no description)");
        let line = format!("{name:<16} {version:<8} {:<9} {description}", owner.word());
        print_line(&one_line(&line, 160));
    }
    Ok(Exit::Done)
}

fn show(options: &Options, name: &str, json: bool) -> Result<Exit> {
    let asked = skill::folded(name);
    let around = Around::new(options);
    let found = all(options, &around)?.into_iter().find(|found| found.live.key == asked);
    let found = found
        .ok_or_else(|| usage(format!("there is no skill {name:?}; `astrarium skill list` shows those there are")))?;
    if json {
        let mut document = document(&found);
        document["body"] = found.live.skill.body.as_str().into();
        print_line(&serde_json::to_string_pretty(&document)?);
        return Ok(Exit::Done);
    }
    let Live { skill, owner, file, error, .. } = &*found.live;
    let print = |line: &str| print_line(&one_line(line, usize::MAX));
    print(&listing::line(skill, Language::En));
    print(&format!("file: {} ({})", file.display(), owner.word()));
    if let Some(error) = error {
        print(&format!("error: {error}"));
    }
    if let Some(version) = &skill.version {
        print(&format!("version: {version}"));
    }
    if let Some(hint) = &skill.argument_hint {
        print(&format!("arguments: {hint}"));
    }
    if let Some(used) = &found.used {
        print(&format!("used: {} times, score {:.3}", used.uses, found.score));
    }
    around.explain(file, skill).iter().for_each(|line| print(line));
    skill.findings.iter().for_each(|finding| print(&finding_line(file, finding)));
    print_line(&format!("\n{}", crate::plain::lines(&skill.body)));
    Ok(Exit::Done)
}

fn document(found: &Found) -> Value {
    let Live { skill, owner, file, hash, error, .. } = &*found.live;
    json!({
        "name": skill.name,
        "description": skill.description,
        "when_to_use": skill.when_to_use,
        "version": skill.version,
        "argument_hint": skill.argument_hint,
        "context": skill.context,
        "allowed_tools": skill.allowed_tools,
        "model": skill.model,
        "effort": skill.effort,
        "agent": skill.agent,
        "paths": skill.paths.globs(),
        "user_invocable": skill.user_invocable,
        "disable_model_invocation": skill.disable_model_invocation,
        "uses": found.used.as_ref().map_or(0, |used| used.uses),
        "last_used": found.used.as_ref().and_then(|used| used.last).map(|last| last.to_string()),
        "score": found.score,
        "owner": owner,
        "file": file,
        "hash": hash,
        "error": error,
        "frontmatter": skill.frontmatter,
        "findings": skill.findings,
    })
}

/// What lies around a skill on this host, and decides what becomes of it.
struct Around {
    skills: Arc<Snapshot>,
    roots: Vec<Root>,
    agents: Roster,
}

impl Around {
    fn new(options: &Options) -> Self {
        let registry = Registry::new(options.skill_roots());
        registry.refresh();
        let agents = Roster::read(&options.agent_roots());
        Self { skills: registry.snapshot(), roots: registry.roots(), agents }
    }

    /// The folder that a root confines its skills to, where `path` lies in such a root.
    fn within(&self, path: &Path) -> Option<PathBuf> {
        self.roots.iter().find(|root| path.starts_with(&root.path)).and_then(|root| root.within.clone())
    }

    /// What the host would do with the skill in `file`, a line each.
    fn explain(&self, file: &Path, skill: &Skill) -> Vec<String> {
        let mut lines = listing::explain(skill);
        let key = skill::folded(&skill.name);
        let is_read = self.roots.iter().any(|root| file.starts_with(&root.path));
        let nearer = self.skills.get(&key).filter(|live| is_read && live.file != file);
        lines.extend(nearer.map(|live| format!("is hidden by {}, which has the same name", live.file.display())));
        if skill.user_invocable && BuiltIn::named(&key).is_some() {
            lines.push(format!("is not loaded as /{key}, which is a command of the program"));
        }
        // Which tools there are, only a host with its plugins knows.
        lines
            .extend(agent::tools(&skill.allowed_tools, |_| true).1.iter().map(|line| format!("allowed-tools: {line}")));
        let agent = skill.agent.as_deref().filter(|name| self.agents.get(name).is_none());
        lines.extend(agent.map(|name| format!("names the agent {name}, which is not here: the default one works")));
        lines
    }
}

fn check(options: &Options, paths: &[PathBuf], strict: bool, json: bool) -> Result<Exit> {
    let around = Around::new(options);
    let mut files = Vec::new();
    for path in paths {
        files.extend(files_at(path, &around)?);
    }
    let checked: Vec<Checked> = files.into_iter().map(|file| Checked::of(file, strict, &around)).collect();
    if json {
        let documents: Vec<Value> = checked.iter().map(Checked::document).collect();
        print_line(&serde_json::to_string_pretty(&documents)?);
    } else {
        checked.iter().for_each(Checked::print);
    }
    Ok(if checked.iter().all(Checked::is_good) { Exit::Done } else { Exit::Failed })
}

/// The skill files that a path names.
fn files_at(path: &Path, around: &Around) -> Result<Vec<PathBuf>> {
    // The name of `.` is that of the real folder.
    let real = path.canonicalize().map_err(|error| usage(format!("{} cannot be opened: {error}", path.display())))?;
    // What a link of the workspace leads out to is there, and no skill.
    let within = std::path::absolute(path).ok().and_then(|path| around.within(&path));
    if within.as_ref().is_some_and(|within| !real.starts_with(within)) {
        note_line(&notice(&format!("{} leads out of the workspace, so the host passes it over", path.display())));
    }
    if !real.is_dir() {
        return Ok(vec![real]);
    }
    if let Some(file) = folder::file_of(&real) {
        return Ok(vec![file]);
    }
    let (files, passed_over) = folder::find(&real, within.as_deref());
    passed_over.iter().for_each(|line| note_line(&notice(line)));
    if files.is_empty() {
        return Err(usage(format!("there is no {} in {}; name a folder of skills", folder::FILE, path.display())));
    }
    Ok(files)
}

/// A file that was looked at.
struct Checked {
    file: PathBuf,
    skill: Option<Skill>,
    findings: Vec<Finding>,
    /// What the host would do with it.
    host: Vec<String>,
}

impl Checked {
    fn of(file: PathBuf, strict: bool, around: &Around) -> Self {
        let bytes = match folder::bytes(&file) {
            Ok(bytes) => bytes,
            Err(text) => {
                let findings = vec![Finding { line: 1, level: Level::Error, text }];
                return Self { file, skill: None, findings, host: Vec::new() };
            }
        };
        let name = folder::folder_name(&file);
        let skill = skill::read(&bytes, &name);
        let mut findings = skill.findings.clone();
        if strict {
            findings.extend(skill::strict::check(&bytes, &name));
            findings.sort_by_key(|finding| (finding.line, std::cmp::Reverse(finding.level)));
        }
        let host = around.explain(&file, &skill);
        Self { file, skill: Some(skill), findings, host }
    }

    fn is_good(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Error)
    }

    fn document(&self) -> Value {
        json!({
            "file": self.file,
            "name": self.skill.as_ref().map(|skill| &skill.name),
            "ok": self.is_good(),
            "findings": self.findings,
            "host": self.host,
        })
    }

    fn print(&self) {
        for finding in &self.findings {
            print_line(&finding_line(&self.file, finding));
        }
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        let name = self.skill.as_ref().map_or("-", |skill| &skill.name);
        print_line(&one_line(&format!("{name}: {errors} errors, {warnings} warnings"), 160));
        for line in &self.host {
            print_line(&one_line(&format!("  {line}"), usize::MAX));
        }
    }
}

fn finding_line(file: &Path, finding: &Finding) -> String {
    let line = format!("{}:{}: {}: {}", file.display(), finding.line, finding.level.word(), finding.text);
    one_line(&line, usize::MAX)
}
