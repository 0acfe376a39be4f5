//! One program from start to end: the child confines itself before it becomes the program, one thread watches it, and
//! when it ends, or its time, its room or its caller does, all of its session ends with it.

use super::confine::{self, Confinement};
use super::folders::{self, Access};
use super::keeper::{self, Keeper, Making};
use super::leash::Leash;
use super::output::Output;
use super::view::View;
use super::{Bounds, Job};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where programs are looked for, and what they find others by.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How often the watcher looks up when nothing is printed: what an operator's cancel may take.
const TICK: Duration = Duration::from_millis(10);

/// How often the session is counted: a fork bomb makes some hundreds of processes meanwhile.
const COUNT: Duration = Duration::from_millis(50);

/// How it ended.
pub(super) struct Ended {
    /// None when it was killed.
    pub(super) status: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) truncated: bool,
    pub(super) timed_out: bool,
}

/// Runs the program to its end. Blocks its thread; `stop` ends it early.
pub(super) fn run(job: Job, stop: &AtomicBool) -> Result<Ended, String> {
    let until = Instant::now() + job.bounds.time;
    // Its own place for what it leaves lying about, gone when it is.
    let scratch = tempfile::Builder::new().prefix("astrarium-run-").tempdir();
    let scratch = scratch.map_err(|error| format!("no folder for its temporary files: {error}"))?;
    let env = environment(&job, scratch.path());
    let program = find(&job, &env)?;
    let mut granted = job.folders.clone();
    granted.push((scratch.path().to_owned(), true));
    let mut allowed = folders::allowed(&granted, &job.native.kept_out)?;
    allowed.push((program.clone(), Access::Read));
    let confinement = Confinement::new(&allowed, job.network, job.native.without_landlock)?;
    let mut command = Command::new(&program);
    command
        .args(&job.arguments)
        .current_dir(&job.dir)
        .env_clear()
        .envs(env)
        .stdin(if job.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let view = View::new(&job.dir, &granted, &job.native.kept_out, job.network);
    let (end, making) = match confine::landlock() {
        Ok(keeper::MINDS_SIGNALS..) => keeper::prepare()
            .map(|(end, making)| (Some(end), Some(making)))
            .map_err(|error| format!("no keeper: {error}"))?,
        _ => (None, None),
    };
    put_on(&mut command, view, making, confinement, &job.bounds);
    let child = command.spawn();
    // With it goes the child's end, so that the keeper is known by its own.
    drop(command);
    let keeper = end.map(Keeper::meet);
    let child = child.map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES) => {
            format!("{} may not be run here: it lies in no folder that its rule reads", program.display())
        }
        _ => format!("cannot run {}: {error}", program.display()),
    })?;
    let leash = Leash(Pid::from_raw(child.id() as i32));
    let mut watch = Watch { child, leash, keeper: None, stdin: &job.stdin, bounds: job.bounds, until, stop };
    watch.keeper = keeper.transpose().map_err(|error| format!("the keeper of the program does not answer: {error}"))?;
    watch.run()
}

/// The whole environment of a program: none of the host's own but what its rule names.
fn environment(job: &Job, scratch: &Path) -> Vec<(OsString, OsString)> {
    let own = [("PATH", PATH.into()), ("HOME", scratch.into()), ("TMPDIR", scratch.into())];
    let plain = [("LANG", "C.UTF-8".into()), ("TERM", "dumb".into())];
    let mut all: Vec<(OsString, OsString)> =
        own.into_iter().chain(plain).map(|(name, value): (&str, OsString)| (name.into(), value)).collect();
    for name in &job.env {
        if let Some(value) = std::env::var_os(name) {
            all.retain(|(own, _)| own != name.as_str());
            all.push((name.into(), value));
        }
    }
    all
}

/// The file of the program. A folder that its own rule lets it write to is not searched.
fn find(job: &Job, env: &[(OsString, OsString)]) -> Result<PathBuf, String> {
    if job.program.starts_with('/') {
        return Ok(job.program.clone().into());
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap_or_default();
    let writable =
        |folder: &Path| job.folders.iter().any(|(granted, writable)| *writable && folder.starts_with(granted));
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute() && !writable(folder));
    let found = folders.map(|folder| folder.join(&job.program)).find(|file| file.is_file());
    found.ok_or_else(|| format!("there is no program {:?} in {}", job.program, path.to_string_lossy()))
}

/// What the child does between fork and exec: nothing but system calls, on what was made before.
fn put_on(
    command: &mut Command,
    view: Option<View>,
    mut keeper: Option<Making>,
    confinement: Confinement,
    bounds: &Bounds,
) {
    let Confinement { mut files, calls } = confinement;
    let seconds = bounds.time.as_secs() + 5;
    let tasks = tasks_now() + 4 * bounds.processes as u64;
    let limits = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_DATA, bounds.memory),
        (Resource::RLIMIT_FSIZE, bounds.file),
        (Resource::RLIMIT_NOFILE, 1_024),
        (Resource::RLIMIT_CPU, seconds * 8),
        // Counted over all of the user's; a fork bomb meets it before the watcher does. Root is exempt.
        (Resource::RLIMIT_NPROC, tasks),
    ];
    let child = move || {
        nix::unistd::setsid()?;
        // For kernels without a keeper: its leader at least does not outlive the thread that watches it.
        // SAFETY: two numbers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if let Some(view) = &view {
            view.enter()?;
        }
        if let Some(keeper) = &mut keeper {
            keeper.make()?;
        }
        for (resource, limit) in limits {
            setrlimit(resource, limit, limit)?;
        }
        drop_capabilities();
        close_on_exec()?;
        let failed = |_| io::Error::from(Errno::EPERM);
        if let Some(files) = files.take() {
            files.restrict_self().map_err(|_| io::Error::from(Errno::EPERM))?;
        }
        for filter in &calls {
            seccompiler::apply_filter(filter).map_err(failed)?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in the forked child. It makes system calls on values that were made before the fork and
    // takes no lock; what it drops is a file descriptor.
    unsafe { command.pre_exec(child) };
}

/// All tasks of the machine, from the fourth field of `/proc/loadavg`; none is more than the user's own.
fn tasks_now() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = text.split_whitespace().nth(3).and_then(|tasks| tasks.split_once('/')?.1.parse().ok());
    tasks.unwrap_or(4_096)
}

/// A host that runs as root leaves its powers behind but the one over files of other owners, which Landlock bounds.
fn drop_capabilities() {
    const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
    for capability in (0..64).filter(|capability| *capability != CAP_DAC_OVERRIDE) {
        // SAFETY: plain numbers. It fails where the capability is unknown or was never there, and then it is not needed.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// No file that the host has open reaches the program, whoever opened it.
fn close_on_exec() -> io::Result<()> {
    // SAFETY: three numbers; the descriptors stay open until exec, which std still needs one of them for.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return Ok(());
    }
    // Kernels before 5.11.
    for number in 3..4_096 {
        // SAFETY: a number and a flag; on one that is not open it fails and nothing happens.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// The watcher of one child.
struct Watch<'a> {
    child: Child,
    leash: Leash,
    keeper: Option<Keeper>,
    stdin: &'a [u8],
    bounds: Bounds,
    until: Instant,
    stop: &'a AtomicBool,
}

/// Why a program was ended.
enum Why {
    Itself,
    Time,
    Stopped,
    Over(String),
}

impl Watch<'_> {
    fn run(mut self) -> Result<Ended, String> {
        let mut stdout = (self.child.stdout.take(), Output::new(self.bounds.output));
        let mut stderr = (self.child.stderr.take(), Output::new(self.bounds.output));
        let mut stdin = self.child.stdin.take();
        for end in [
            stdin.as_ref().map(|end| end.as_fd()),
            stdout.0.as_ref().map(|end| end.as_fd()),
            stderr.0.as_ref().map(|end| end.as_fd()),
        ]
        .into_iter()
        .flatten()
        {
            not_waiting(end);
        }
        let mut counted = Instant::now();
        let why = loop {
            wait(&stdin, &stdout.0, &stderr.0);
            feed(&mut stdin, &mut self.stdin);
            drain(&mut stdout);
            drain(&mut stderr);
            if self.has_ended() {
                break Why::Itself;
            }
            if self.stop.load(Ordering::Relaxed) {
                break Why::Stopped;
            }
            if Instant::now() >= self.until {
                break Why::Time;
            }
            if stdout.1.is_flood() || stderr.1.is_flood() {
                break Why::Over("it printed without end (limits: process_output_bytes)".into());
            }
            if counted.elapsed() >= COUNT {
                counted = Instant::now();
                let count = self.leash.count();
                if count.processes > self.bounds.processes {
                    break Why::Over(format!(
                        "it had more than {} processes (limits: process_count)",
                        self.bounds.processes
                    ));
                }
                if count.memory > self.bounds.memory {
                    break Why::Over(format!(
                        "it took more than {} MiB (limits: process_memory_mib)",
                        self.bounds.memory >> 20
                    ));
                }
            }
        };
        // What it left running ends now; until the leader is waited for, no other process can get its number.
        let all_ended = self.end_all();
        drain(&mut stdout);
        drain(&mut stderr);
        let status = self.child.wait().map_err(|error| format!("its end cannot be told: {error}"))?;
        let (stdout, cut_out) = stdout.1.finish();
        let (mut stderr, cut_err) = stderr.1.finish();
        let own = matches!(why, Why::Itself);
        if let Why::Over(reason) = &why {
            stderr.extend_from_slice(format!("\n[killed: {reason}]\n").as_bytes());
        } else if let (true, Some(signal)) = (own, status.signal()) {
            stderr.extend_from_slice(format!("\n[ended by signal {signal}]\n").as_bytes());
        }
        if !all_ended {
            tracing::warn!(session = self.leash.0.as_raw(), "a native program left processes behind that do not end");
            stderr.extend_from_slice(b"\n[some of what it started could not be ended]\n");
        }
        Ok(Ended {
            status: status.code().filter(|_| own),
            stdout,
            stderr,
            truncated: cut_out || cut_err,
            timed_out: matches!(why, Why::Time),
        })
    }

    /// Ends the program and all it started; answers whether nothing is left.
    fn end_all(&mut self) -> bool {
        drop(self.keeper.take());
        self.leash.kill()
    }

    /// Whether the program itself has ended. It is not waited for yet: its number must stay its own.
    fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.leash.0), flags), Ok(WaitStatus::StillAlive))
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // Only where something failed on the way; a child that was waited for has no session any more.
        if let Ok(None) = self.child.try_wait() {
            self.end_all();
            let _ = self.child.wait();
        }
    }
}

fn not_waiting(end: BorrowedFd<'_>) {
    let _ = fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
}

/// Until something can be read or written, or a tick is over.
fn wait<A: AsFd, B: AsFd, C: AsFd>(stdin: &Option<A>, stdout: &Option<B>, stderr: &Option<C>) {
    let mut ends = Vec::new();
    ends.extend(stdin.as_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLOUT)));
    ends.extend(stdout.as_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
    ends.extend(stderr.as_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
    if ends.is_empty() {
        // Both streams are closed: most programs end within a moment.
        std::thread::sleep(Duration::from_millis(1));
        return;
    }
    let _ = poll(&mut ends, PollTimeout::from(TICK.as_millis() as u8));
}

fn feed(stdin: &mut Option<impl Write>, left: &mut &[u8]) {
    let Some(end) = stdin else { return };
    match end.write(left) {
        Ok(written) => *left = &left[written..],
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        // It does not want to read any more.
        Err(_) => *left = &[],
    }
    if left.is_empty() {
        *stdin = None;
    }
}

/// Reads what is there, a little at a time, so that one stream does not keep the watcher from the rest.
fn drain((stream, output): &mut (Option<impl Read>, Output)) {
    let mut buffer = [0; 64 << 10];
    for _ in 0..16 {
        let Some(end) = stream else { return };
        match end.read(&mut buffer) {
            Ok(0) => *stream = None,
            Ok(read) => output.push(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => *stream = None,
        }
    }
}
