//! Everything that a program started: found by its session, which nothing in it can leave, and ended together.
//!
//! A process group is not enough: `timeout` and job control make groups of their own. A program runs in a session of its
//! own, and the system calls that would leave it are refused (see `confine`).

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// How long what does not die is killed again: a process in the kernel's own hands ends when the kernel lets go.
const INSIST: Duration = Duration::from_secs(2);

/// A session that a program leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leash(pub(super) Pid);

/// What a session holds.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) processes: usize,
    /// Bytes in memory, those that are shared counted for each.
    pub(super) memory: u64,
}

/// A process, from `/proc/PID/stat`.
struct Member {
    pid: Pid,
    group: Pid,
    pages: u64,
}

impl Leash {
    /// Processes of the session that live. Those that have ended and wait for their parent do not count.
    fn members(self) -> Vec<Member> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| member(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, self.0)).collect()
    }

    pub(super) fn count(self) -> Count {
        let members = self.members();
        // Pages are 4 KiB where programs of this kind run; where they are larger the limit is only wider.
        Count { processes: members.len(), memory: members.iter().map(|member| member.pages * 4_096).sum() }
    }

    /// Kills all of the session. A group is killed at one stroke, so that nothing in it can fork away meanwhile; what
    /// made groups of its own is found and killed until nothing is left. Answers whether nothing is: one that forks into
    /// group after group without pause may not be found, and only a keeper ends it.
    pub(super) fn kill(self) -> bool {
        let _ = killpg(self.0, Signal::SIGKILL);
        let until = Instant::now() + INSIST;
        loop {
            let members = self.members();
            if members.is_empty() || Instant::now() > until {
                return members.is_empty();
            }
            // A group lies in one session, and one of this session has no process of ours.
            let groups: BTreeSet<Pid> = members.iter().map(|member| member.group).collect();
            for group in groups.into_iter().filter(|group| group.as_raw() > 1) {
                let _ = killpg(group, Signal::SIGKILL);
            }
            for member in members {
                let _ = kill(member.pid, Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The process of a line `PID (name) state parent group session …`, when it belongs to the session and lives. The name may
/// hold anything, brackets too.
fn member(stat: &str, session: Pid) -> Option<Member> {
    let (pid, rest) = stat.split_once(' ')?;
    let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let lives = !matches!(*fields.first()?, "Z" | "X");
    (lives && number(3)? == session.as_raw()).then_some(Member {
        pid: Pid::from_raw(pid.parse().ok()?),
        group: Pid::from_raw(number(2)?),
        pages: fields.get(21)?.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_program_calls_itself() {
        let line = |name: &str, state: &str| {
            format!(
                "77 ({name}) {state} 1 70 66 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 1000000 321 18446744073709551615"
            )
        };
        for name in ["sh", "a b", ") S 1 1 1", "((", ""] {
            let member = member(&line(name, "S"), Pid::from_raw(66)).unwrap();
            assert_eq!((member.pid.as_raw(), member.group.as_raw(), member.pages), (77, 70, 321), "{name}");
        }
        assert!(member(&line("sh", "Z"), Pid::from_raw(66)).is_none());
        assert!(member(&line("sh", "S"), Pid::from_raw(67)).is_none());
        assert!(member("", Pid::from_raw(66)).is_none());
    }
}
