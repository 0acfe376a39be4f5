//! What ends a program for sure, where the kernel lets it: a process beside the program that kills all of its Landlock domain
//! at one stroke, when it is told to or when the host is gone.
//!
//! Processes can be found and killed one by one (see `leash`), but one that forks without pause is never where it was found.
//! `kill(-1)` meets every process that may be signalled, and no fork slips through. The keeper may signal its own domain and
//! nothing outside (Landlock 6, Linux 6.12); the program lives in a domain inside of that one, so it cannot signal the keeper.

use landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreated, RulesetStatus, Scope};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The version from which Landlock keeps signals in (Linux 6.12).
pub(super) const MINDS_SIGNALS: i64 = 6;

/// How long a keeper may take to end: it makes three system calls.
const PATIENCE: Duration = Duration::from_secs(2);

/// The host's end: dropped, or gone with the host, it ends the program.
pub(super) struct Keeper {
    pid: Pid,
    end: UnixStream,
}

/// What the child makes a keeper of, before it confines itself.
pub(super) struct Making {
    domain: Option<RulesetCreated>,
    theirs: OwnedFd,
    host: libc::pid_t,
}

/// A pair of ends: the host keeps the first and gives the second to the child.
pub(super) fn prepare() -> Result<(UnixStream, Making), Box<dyn std::error::Error>> {
    // Nothing less will do: a keeper that the kernel does not hold back would kill all that this user runs.
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal)?.create()?;
    let (ours, theirs) = UnixStream::pair()?;
    let host = std::process::id() as libc::pid_t;
    Ok((ours, Making { domain: Some(rules), theirs: theirs.into(), host }))
}

impl Making {
    /// Enters the domain and leaves a keeper in it, in the child between fork and exec: system calls and nothing else.
    pub(super) fn make(&mut self) -> io::Result<()> {
        let refused = || io::Error::from(Errno::EPERM);
        let entered = self.domain.take().ok_or_else(refused)?.restrict_self().map_err(|_| refused())?;
        // Proven too: the host lives, is this user's own, and must be out of reach.
        // SAFETY: two numbers; signal 0 is none.
        let reaches = unsafe { libc::kill(self.host, 0) } == 0 || Errno::last() != Errno::EPERM;
        if entered.ruleset != RulesetStatus::FullyEnforced || reaches {
            return Err(refused());
        }
        // The host's child, not the program's: programs wait for all of their children.
        let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as libc::c_ulong;
        // SAFETY: without a stack of its own this is a fork, and the new process does as `keep` says.
        match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            0 => keep(self.theirs.as_raw_fd()),
            _ => Ok(()),
        }
    }
}

/// The keeper's whole life.
fn keep(end: RawFd) -> ! {
    // SAFETY: system calls on numbers and on buffers that outlive them.
    unsafe {
        // No part of the program's session, and no file of the host's but its own end.
        libc::setsid();
        libc::syscall(libc::SYS_close_range, 0_u32, end as u32 - 1, 0_u32);
        libc::syscall(libc::SYS_close_range, end as u32 + 1, u32::MAX, 0_u32);
        libc::prctl(libc::PR_SET_NAME, c"astrarium-keep".as_ptr());
        let pid = libc::getpid().to_ne_bytes();
        libc::write(end, pid.as_ptr().cast(), pid.len());
        let mut byte = 0_u8;
        while libc::read(end, (&raw mut byte).cast(), 1) == -1 && Errno::last() == Errno::EINTR {}
        libc::kill(-1, libc::SIGKILL);
        libc::_exit(0)
    }
}

impl Keeper {
    /// The keeper that the child has made; the program is running.
    pub(super) fn meet(mut end: UnixStream) -> io::Result<Self> {
        let mut pid = [0; size_of::<libc::pid_t>()];
        end.set_read_timeout(Some(PATIENCE))?;
        end.read_exact(&mut pid)?;
        Ok(Self { pid: Pid::from_raw(libc::pid_t::from_ne_bytes(pid)), end })
    }
}

impl Drop for Keeper {
    /// Ends the program and all it started.
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Write);
        let until = Instant::now() + PATIENCE;
        while let Ok(WaitStatus::StillAlive) = waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            if Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
