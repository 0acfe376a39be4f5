//! `process`: native programs, by an operator's rule, confined to it.
//!
//! What may run is judged by the program room. What runs sees the folders of its rule and reads the system's own; it has no
//! network unless its rule says so, none of the host's environment or open files, and limits on time, memory, processes
//! and output. It and all it started are gone when the call ends, however it ends. Where the kernel has no Landlock
//! nothing runs, unless the operator's config says otherwise.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod folders;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod leash;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod view;

use crate::grant::{FsMode, ProcessRule, Root};
use crate::program::{self, Refusal};
use crate::runtime::contract::astrarium::host::process;
use crate::runtime::contract::astrarium::host::types::Error;
use crate::runtime::{GuestState, still_itself};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where native programs stand on this machine. Set by the host composition, the same for all plugins.
#[derive(Debug, Clone, Default)]
pub struct Native {
    /// The workspace.
    pub workspace: PathBuf,
    /// The library.
    pub library: PathBuf,
    /// Folders of skills outside of the workspace, as far as they are there.
    pub skills: Vec<PathBuf>,
    /// Where granted folders really are, by the path that names them.
    pub folders: BTreeMap<PathBuf, PathBuf>,
    /// Real paths that no program reaches, whatever folder covers them.
    pub kept_out: Vec<PathBuf>,
    /// Whether programs run where the kernel has no Landlock: an operator's decision.
    pub without_landlock: bool,
}

impl Native {
    /// Where the folders of a rule are.
    fn places(&self, root: &Root) -> Vec<PathBuf> {
        match root {
            Root::Workspace => vec![self.workspace.clone()],
            Root::Library => vec![self.library.clone()],
            Root::Skills => self.skills.clone(),
            // Never in effect for a program (`plugin/effective.rs`): another folder for each call.
            Root::Session => Vec::new(),
            Root::Folder(path) => vec![self.folders.get(path).unwrap_or(path).clone()],
        }
    }
}

/// What keeps programs in on this machine, in a few words, or why nothing does.
pub fn confinement() -> Result<String, String> {
    #[cfg(target_os = "linux")]
    return confine::support().map(|said| {
        let view = if view::is_given() {
            ", a view of their own"
        } else {
            ", but no namespaces: modes, owners and times of files are not confined"
        };
        let ends = match confine::landlock() {
            Ok(keeper::MINDS_SIGNALS..) => "all they start ends with them",
            _ => "one that forks without pause may outlive its call (from Linux 6.12 on it does not)",
        };
        format!("{said}{view}; {ends}")
    });
    #[cfg(not(target_os = "linux"))]
    Err("native programs run on Linux only".into())
}

impl process::Host for GuestState {
    async fn run(&mut self, command: process::Command) -> Result<process::Outcome, Error> {
        let judged =
            program::judge(&self.env.plugin, &self.env.effective.process, &command.program, &command.arguments)
                .and_then(|rule| {
                    for folder in rule.fs.iter().flat_map(|folder| self.env.native.places(&folder.path)) {
                        still_itself(&folder).map_err(|reason| Refusal::Denied(format!("process: {reason}")))?;
                    }
                    Ok((rule, self.working_dir(rule, command.working_dir.as_deref())?))
                });
        let (rule, dir) = judged.map_err(|refusal| {
            let (rule, told) = match &refusal {
                Refusal::Denied(reason) => ("no rule allows it", Error::Denied(reason.clone())),
                Refusal::Invalid(reason) => ("commands make sense", Error::Invalid(reason.clone())),
            };
            self.trail.refused("process", rule, &command.program, &refusal.to_string());
            told
        })?;
        if command.timeout_ms == Some(0) {
            return Err(Error::Invalid("process: a time-out of 0 is none; give at least 1 ms".into()));
        }
        if let Err(reason) = may_run(&self.env.native) {
            self.trail.refused("process", "Landlock confines programs", &command.program, &reason);
            return Err(Error::Denied(reason));
        }
        let rule_shown = [std::slice::from_ref(&rule.program), &rule.arguments[..]].concat().join(" ");
        // Arguments may hold what belongs to nobody else; the call's own entry has their digest.
        let target = format!("{} in {}", command.program, dir.display());
        self.recorder().record_first("process", &target, &rule_shown).map_err(Error::Failed)?;
        let job = self.job(rule, dir, command);
        self.clock.clone().outside(confined(job)).await
    }
}

impl GuestState {
    /// The real folder where a program runs. A link in a granted folder does not lead out of it.
    fn working_dir(&self, rule: &ProcessRule, asked: Option<&str>) -> Result<PathBuf, Refusal> {
        let (folder, rest) = program::working_dir(rule, asked)?;
        let native = &self.env.native;
        let shown = || program::guest_name(folder).join(&rest).display().to_string();
        let real = |path: &Path| {
            path.canonicalize()
                .ok()
                .filter(|path| path.is_dir())
                .ok_or_else(|| Refusal::Invalid(format!("process: the working folder {} is not there", shown())))
        };
        let [place] = &native.places(&folder.path)[..] else {
            return Err(Refusal::Denied(format!("process: {} is no folder to run in; name another", shown())));
        };
        let base = real(place)?;
        let dir = real(&base.join(&rest))?;
        // The library lies inside the home, which is kept out; a rule that names it opens it.
        let kept_out = |place: &&PathBuf| dir.starts_with(place) && !base.starts_with(place);
        if !dir.starts_with(&base) || native.kept_out.iter().any(|place| kept_out(&place)) {
            return Err(Refusal::Denied(format!(
                "process: the working folder {} leads out of what is granted",
                shown()
            )));
        }
        Ok(dir)
    }

    /// The whole of what is run.
    fn job(&self, rule: &ProcessRule, dir: PathBuf, command: process::Command) -> Job {
        let limits = &self.limits;
        let most = rule.timeout_ms.unwrap_or(u64::MAX).min(limits.process_ms);
        let folders = rule.fs.iter().flat_map(|folder| {
            // What instructs a model is no program's to write, whatever is granted.
            let writable = folder.mode == FsMode::Rw && !self.read_only && folder.path != Root::Skills;
            self.env.native.places(&folder.path).into_iter().map(move |place| (place, writable))
        });
        Job {
            folders: folders.collect(),
            network: rule.network,
            env: rule.env.clone(),
            native: self.env.native.clone(),
            bounds: Bounds {
                time: Duration::from_millis(command.timeout_ms.map_or(most, u64::from).min(most)),
                output: limits.process_output_bytes as usize,
                memory: limits.process_memory_mib << 20,
                processes: limits.process_count as usize,
                file: limits.process_file_mib << 20,
            },
            program: command.program,
            arguments: command.arguments,
            stdin: command.stdin.unwrap_or_default(),
            dir,
        }
    }
}

/// A program to run, with all that was judged.
struct Job {
    program: String,
    arguments: Vec<String>,
    /// Real path of the working folder.
    dir: PathBuf,
    /// Granted folders, and whether they may be written to.
    folders: Vec<(PathBuf, bool)>,
    network: bool,
    /// Variables that are passed on.
    env: Vec<String>,
    stdin: Vec<u8>,
    native: Native,
    bounds: Bounds,
}

/// What a program may take.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    time: Duration,
    /// Bytes of each stream that are kept.
    output: usize,
    /// Bytes of memory, of one process and of all together.
    memory: u64,
    processes: usize,
    /// Bytes of a file that it writes.
    file: u64,
}

/// Whether programs run on this machine at all.
fn may_run(native: &Native) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    return confine::may_run(native.without_landlock).map_err(|reason| format!("process: {reason}"));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = native;
        Err("process: native programs run on Linux only; do not retry".into())
    }
}

/// Runs a job on a thread that may wait for it. The program ends when the call that waits is dropped: cancelled, or out of
/// its time.
#[cfg(target_os = "linux")]
async fn confined(job: Job) -> Result<process::Outcome, Error> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let stopped = stop.0.clone();
    let ended = tokio::task::spawn_blocking(move || run::run(job, &stopped)).await;
    let ended = ended.unwrap_or_else(|error| Err(format!("the watcher of the program failed: {error}")));
    let ended = ended.map_err(|reason| Error::Failed(format!("process: {reason}")))?;
    Ok(process::Outcome {
        status: ended.status,
        stdout: ended.stdout,
        stderr: ended.stderr,
        truncated: ended.truncated,
        timed_out: ended.timed_out,
    })
}

#[cfg(not(target_os = "linux"))]
async fn confined(_: Job) -> Result<process::Outcome, Error> {
    Err(Error::Denied("process: native programs run on Linux only; do not retry".into()))
}
