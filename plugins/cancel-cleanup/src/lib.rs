//! When a run was cancelled or failed: tasks that were in progress are pending again, and the temporary files that a file tool
//! was writing when it was stopped are removed. Why the run ended goes to the log.
//!
//! It touches nothing else: only names that the file tools give, only plain files, and never through a link.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use astrarium_sdk::hooks::{SessionStop, SessionStopEvent};
use astrarium_sdk::host::tasks::{self, Status, Task};
use astrarium_sdk::{Context, Error, hooks, log};

struct CancelCleanup;

/// Where the workspace is for guests.
const WORKSPACE: &str = "/workspace";

/// Entries that are looked at: a hook has seconds, and a workspace may hold millions.
const ENTRIES: usize = 20_000;

/// How long nothing may have been written to a temporary file before it is removed: what another run writes right now, in the
/// same workspace, is not ours to remove.
const REST: Duration = Duration::from_secs(1);

impl SessionStop for CancelCleanup {
    fn handle(ctx: &Context, event: SessionStopEvent) -> Result<(), Error> {
        if !matches!(event.reason.as_str(), "cancelled" | "failed") {
            return Ok(());
        }
        let put_back = if ctx.session.is_empty() { 0 } else { put_back()? };
        let mut left = temporary_files(Path::new(WORKSPACE));
        if left.iter().any(|path| !is_at_rest(path)) {
            std::thread::sleep(REST);
        }
        left.retain(|path| is_at_rest(path) && fs::remove_file(path).is_ok());
        let removed = left.len();
        log::info(format!(
            "session {} ended ({}) after {} steps: {put_back} tasks put back, {removed} temporary files removed",
            ctx.session, event.reason, event.steps
        ));
        Ok(())
    }
}

hooks! { session_stop: CancelCleanup }

fn put_back() -> Result<usize, Error> {
    let mut list = tasks::get()?;
    let changed = pending_again(&mut list);
    if changed > 0 {
        tasks::replace(&list)?;
    }
    Ok(changed)
}

fn pending_again(tasks: &mut [Task]) -> usize {
    let under_way = tasks.iter_mut().filter(|task| task.status == Status::InProgress);
    under_way.map(|task| task.status = Status::Pending).count()
}

/// What writers left below `root`. A folder that cannot be read is passed over.
fn temporary_files(root: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found, mut looked_at) = (vec![root.to_owned()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES {
                log::warn(format!("the workspace is larger than {ENTRIES} entries, its rest was not looked at"));
                return found;
            }
            // The kind of the entry itself, so that no link is followed.
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() && !matches!(name.as_ref(), ".git" | "node_modules" | "target") {
                folders.push(entry.path());
            } else if kind.is_file() && is_temporary(&name) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// As the file tools name what they are still writing: `.astrarium-<16 hex digits>.tmp`.
fn is_temporary(name: &str) -> bool {
    let middle = name.strip_prefix(".astrarium-").and_then(|rest| rest.strip_suffix(".tmp"));
    middle.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_at_rest(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|when| SystemTime::now().duration_since(when).is_ok_and(|age| age >= REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_file_tools_give_are_temporary() {
        assert!(is_temporary(".astrarium-631268aa0992af64.tmp"));
        for name in
            [".astrarium-.tmp", "astrarium-631268aa0992af64.tmp", ".astrarium-631268aa0992af6g.tmp", "a.tmp", ".env"]
        {
            assert!(!is_temporary(name), "{name}");
        }
    }

    #[test]
    fn tasks_in_progress_are_pending_again() {
        let task =
            |status| Task { id: "a".into(), content: "c".into(), status, depends_on: Vec::new(), assignee: None };
        let mut list = [task(Status::InProgress), task(Status::Completed)];
        assert_eq!(pending_again(&mut list), 1);
        assert!(list[0].status == Status::Pending && list[1].status == Status::Completed);
    }
}
