//! `audit`: what was done, decided and changed, read from the record; and whether the record is whole.
//!
//! Opens the database alone: it must be readable where a plugin or the config keeps the host from opening.

use super::Exit;
use super::show::{note_line, print_line};
use crate::audit::{Entry, Kind, Life};
use crate::host::{Options, make_home};
use crate::store::{AuditFilter, AuditHead, AuditRow, Store, Verified};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Goes on with each row as it is written, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Rows of this plugin
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Rows of this session; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The last so many rows
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// All rows
    #[arg(long, conflicts_with = "last")]
    all: bool,
    /// A JSON document for each row, a line each
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Reads the whole audit anew and names the first row that is not as it was written
    Verify {
        /// A head that an earlier `verify` printed and that you noted elsewhere, as NUMBER:HASH; finds out whoever
        /// rewrites the whole audit
        #[arg(long, value_name = "HEAD", value_parser = head)]
        since: Option<AuditHead>,
        /// A document on standard output
        #[arg(long)]
        json: bool,
    },
}

/// How often `--follow` looks; a row is seen soon, and a database at rest costs nothing to speak of.
const LOOK: Duration = Duration::from_millis(250);

pub(super) async fn audit(options: &Options, args: &AuditArgs) -> Result<Exit> {
    make_home(&options.home)?;
    let store = Store::open(&options.database())?;
    match &args.command {
        Some(AuditCommand::Verify { since, json }) => verify(&store, since.as_ref(), *json),
        None => read(&store, args).await,
    }
}

async fn read(store: &Store, args: &AuditArgs) -> Result<Exit> {
    let (plugin, session) = (args.plugin.clone(), args.session.clone());
    let last = (!args.all).then_some(args.last);
    let mut filter = AuditFilter { after: 0, plugin, session, last };
    // What is not printed is not waited for: the head counts rows that the filter leaves out too.
    let mut end = store.audit_head()?.seq;
    loop {
        for row in store.audit_rows(&filter)? {
            end = end.max(row.seq);
            let line = if args.json { document(&row).to_string() } else { line(&row) };
            // A reader that went away ends it.
            if writeln!(std::io::stdout(), "{line}").is_err() {
                return Ok(Exit::Done);
            }
        }
        if !args.follow {
            return Ok(Exit::Done);
        }
        while store.audit_head()?.seq <= end {
            tokio::time::sleep(LOOK).await;
        }
        filter.after = end;
        filter.last = None;
        end = store.audit_head()?.seq;
    }
}

fn verify(store: &Store, since: Option<&AuditHead>, json: bool) -> Result<Exit> {
    let verified = store.verify_audit(since)?;
    if json {
        let document = match &verified {
            Verified::Whole(head) => json!({ "whole": true, "rows": head.seq, "hash": head.hash }),
            Verified::Broken { row, what } => json!({ "whole": false, "row": row, "error": what }),
        };
        print_line(&document.to_string());
    }
    match verified {
        Verified::Whole(head) => {
            if !json {
                print_line(&format!("the audit is whole: {} rows, head {}:{}", head.seq, head.seq, head.hash));
            }
            Ok(Exit::Done)
        }
        Verified::Broken { what, .. } => {
            note_line(&format!("error: the audit is broken: {what}"));
            Ok(Exit::Failed)
        }
    }
}

/// `NUMBER:HASH`, as `verify` prints it.
fn head(text: &str) -> Result<AuditHead, String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        let hash = hash.to_ascii_lowercase();
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then_some(AuditHead { seq: seq.parse().ok()?, hash })
    });
    parsed.ok_or_else(|| "a head is NUMBER:HASH, as `astrarium audit verify` prints it".into())
}

fn document(row: &AuditRow) -> Value {
    let mut document = json!({ "seq": row.seq });
    if let (Value::Object(document), Value::Object(entry)) = (&mut document, json!(row.entry)) {
        document.extend(entry);
        document.insert("hash".into(), json!(row.hash));
    }
    document
}

/// A row for people: number, time, kind, what, outcome, who, on what, by which rule, why, at what cost, and where.
fn line(row: &AuditRow) -> String {
    let Entry { at, what, outcome, plugin, digest, target, rule, reason, .. } = &row.entry;
    let kind = json!(row.entry.kind).as_str().unwrap_or_default().to_owned();
    let who = match (plugin.is_empty(), digest.get(..12)) {
        (true, _) => String::new(),
        (false, None) => plugin.clone(),
        (false, Some(digest)) => format!("{plugin}@{digest}"),
    };
    let mut line = format!("{:>6} {at} {kind:<10} {what:<16} {outcome:<9} {who}", row.seq);
    let mut add = |text: String| {
        if !text.is_empty() {
            line.push_str("  ");
            line.push_str(&text);
        }
    };
    add(target.clone());
    add(if row.entry.count > 1 { format!("×{}", row.entry.count) } else { String::new() });
    add(if rule.is_empty() { String::new() } else { format!("by {rule}") });
    if let Some(life) = &row.entry.life {
        add(format!("version {}", if life.version.is_empty() { "unknown" } else { &life.version }));
        add(format!("may {}", if life.granted.is_empty() { "nothing" } else { &life.granted }));
    }
    add(row.entry.duration_us.map(|us| format!("{:.2} ms", us as f64 / 1000.0)).unwrap_or_default());
    add(row.entry.memory.map(|bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))).unwrap_or_default());
    add(if reason.is_empty() { String::new() } else { format!("({reason})") });
    let Entry { session, step, call, agent, .. } = &row.entry;
    if let Some(agent) = agent {
        let agent = json!(agent).as_str().unwrap_or_default().to_owned();
        let session = if session.is_empty() { "no session" } else { session };
        add(format!("[{session} {step} {call} {agent}]"));
    }
    line
}

/// Puts a command of the operator on record. The command has been done and must not fail for this, so it is said.
pub(super) fn operator(options: &Options, entry: Entry) {
    let kept = Store::open(&options.database()).and_then(|store| store.audit(vec![entry]));
    if let Err(error) = kept {
        note_line(&format!("note: this is not on the audit: {error}"));
    }
}

/// Puts on record that a plugin is off from now on, also where no host runs that would see it: who enables it again has decided
/// on what it is then.
pub(super) fn switched_off(options: &Options, plugin: &str) {
    let kept = Store::open(&options.database()).and_then(|store| {
        store.audit_lives(|known| {
            let before = known.get(plugin).filter(|(_, life)| !matches!(life.state.as_str(), "disabled" | "gone"));
            let entry = before.map(|(before, life)| {
                let life = Life { state: "disabled".into(), ..life.clone() };
                let entry = Entry { kind: Kind::Plugin, what: "disabled".into(), life: Some(life), ..Entry::default() };
                entry.by(plugin, &before.digest).came_to("disabled", "")
            });
            entry.into_iter().collect()
        })
    });
    if let Err(error) = kept {
        note_line(&format!("note: this is not on the audit: {error}"));
    }
}

/// An entry of an operator's command on a plugin.
pub(super) fn command(what: &str, plugin: &str, target: &str) -> Entry {
    let entry = Entry { kind: Kind::Operator, what: what.into(), target: target.into(), ..Entry::default() };
    entry.by(plugin, "").came_to("ok", "")
}
