//! What a program is kept from: files by Landlock, system calls by seccomp. Built here, put on by the child.
//!
//! Landlock leaves some doors that seccomp shuts: UDP and Unix sockets, io_uring (whose requests pass no filter),
//! truncation on kernels before 6.2, other processes' memory, the kernel's keyrings, handles that open files without a
//! path. The calls that leave a session are refused too, so that all a program starts can be found and ended.

use super::folders::Access;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Size, SeccompCmpOp as Is, SeccompCondition as When, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The newest rights that are known; a kernel that knows fewer enforces those.
const NEWEST: ABI = ABI::V10;

/// What the child puts on, in this order.
pub(super) struct Confinement {
    /// None where the kernel has no Landlock and the operator lets programs run all the same.
    pub(super) files: Option<RulesetCreated>,
    /// Filters of system calls.
    pub(super) calls: Vec<BpfProgram>,
}

/// What this kernel offers, in words.
pub(super) fn support() -> Result<String, String> {
    landlock().map(|version| format!("Landlock {version} and seccomp"))
}

/// Whether programs may run here at all, or why not.
pub(super) fn may_run(without_landlock: bool) -> Result<(), String> {
    with_landlock(landlock(), without_landlock).map(drop)
}

/// The version of the kernel's Landlock.
pub(super) fn landlock() -> Result<i64, String> {
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: asked for its version, the call reads nothing and makes nothing.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    match (version, std::io::Error::last_os_error().raw_os_error()) {
        (1.., _) => Ok(version),
        (_, Some(libc::EOPNOTSUPP)) => {
            Err("this kernel has Landlock switched off; start it with lsm=landlock,…".into())
        }
        _ => Err("this kernel has no Landlock; use Linux 5.13 or newer, or a container that lets it through".into()),
    }
}

/// The version from which Landlock minds truncation (Linux 6.2).
const MINDS_TRUNCATION: i64 = 3;

impl Confinement {
    /// Confines to these paths.
    pub(super) fn new(allowed: &[(PathBuf, Access)], network: bool, without_landlock: bool) -> Result<Self, String> {
        let files = match with_landlock(landlock(), without_landlock)? {
            true => {
                Some(ruleset(allowed, network).map_err(|error| format!("Landlock does not take the rules: {error}"))?)
            }
            false => None,
        };
        let calls = filters(network, landlock().is_ok_and(|version| version >= MINDS_TRUNCATION))
            .map_err(|error| format!("the filter of system calls cannot be made: {error}"))?;
        Ok(Self { files, calls })
    }
}

/// Whether files are confined; an error where they should be and cannot.
fn with_landlock(support: Result<i64, String>, without_landlock: bool) -> Result<bool, String> {
    match support {
        Ok(_) => Ok(true),
        Err(_) if without_landlock => Ok(false),
        Err(reason) => Err(format!(
            "no program runs without Landlock, and {reason}; do not retry; an operator may allow it with \
             process: {{ without_landlock: allow }} in astrarium.yaml"
        )),
    }
}

fn ruleset(allowed: &[(PathBuf, Access)], network: bool) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut ruleset = ruleset.create()?;
    for (path, access) in allowed {
        // What went away since it was found needs no rule.
        let Ok(opened) = PathFd::new(path) else { continue };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, rights(*access)))?;
    }
    Ok(ruleset)
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::ResolveUnix;
    match access {
        Access::Read => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
        Access::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        Access::Write => AccessFs::from_all(NEWEST) & !(devices | AccessFs::IoctlDev),
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Set in the number of a call that is made as x32 does (Linux `asm/unistd.h`, `__X32_SYSCALL_BIT`).
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Filters for `EPERM`, and for the calls of which programs know another way when the kernel has none.
fn filters(network: bool, minds_truncation: bool) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let mut refused = Rules::new();
    let calls = [
        // Leaving the session, and with it the leash.
        libc::SYS_setsid,
        // Other processes, and their files.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        // Files by handle, which no path leads to.
        libc::SYS_open_by_handle_at,
        // Other views of the system, and what changes the one there is.
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        // Keyrings, the kernel itself, and what only its attackers need.
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_syslog,
    ];
    refused.extend(calls.map(|call| (call, Vec::new())));
    refused.insert(libc::SYS_socket, sockets(network)?);
    // A new user namespace gives rights that confinement was not made for.
    refused.insert(libc::SYS_clone, vec![any_of(0, libc::CLONE_NEWUSER as u64)?]);
    // Characters put into a terminal's input are typed by whoever sits there.
    refused.insert(libc::SYS_ioctl, vec![equal(1, libc::TIOCSTI)?]);
    // `clone3` hides its flags behind a pointer, and so does `openat2`; libraries fall back to the older calls. What
    // io_uring is asked for passes no filter at all.
    let mut unknown =
        vec![libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
    // By path, or opened to be read and emptied on the way; `ftruncate` takes a file that was opened to be written.
    if !minds_truncation {
        refused.insert(libc::SYS_truncate, Vec::new());
        refused.insert(libc::SYS_openat, vec![emptying(2)?]);
        #[cfg(target_arch = "x86_64")]
        refused.insert(libc::SYS_open, vec![emptying(1)?]);
        unknown.push(libc::SYS_openat2);
    }
    #[cfg(target_arch = "x86_64")]
    {
        refused.extend([libc::SYS_iopl, libc::SYS_ioperm].map(|call| (call, Vec::new())));
        // The same calls by their other numbers, where the kernel speaks x32.
        let again: Vec<_> = refused.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        refused.extend(again);
        let again: Vec<_> = unknown.iter().map(|call| call | X32).collect();
        unknown.extend(again);
    }
    let unknown: Rules = unknown.into_iter().map(|call| (call, Vec::new())).collect();
    let compile = |rules: Rules, errno: i32| -> Result<BpfProgram, seccompiler::Error> {
        let arch = std::env::consts::ARCH.try_into().map_err(seccompiler::Error::Backend)?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch);
        filter.and_then(BpfProgram::try_from).map_err(seccompiler::Error::Backend)
    };
    Ok(vec![compile(refused, libc::EPERM)?, compile(unknown, libc::ENOSYS)?])
}

/// Which sockets are refused: all, or all but those of the Internet and the one by which addresses are asked for.
/// `socketpair`, which leads nowhere else, is left.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    if !network {
        return Ok(Vec::new());
    }
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others = families.map(|family| When::new(0, Size::Dword, Is::Ne, family as u64));
    let others = others.into_iter().collect::<Result<Vec<_>, _>>().map_err(seccompiler::Error::Backend)?;
    Ok(vec![SeccompRule::new(others).map_err(seccompiler::Error::Backend)?])
}

/// `O_TRUNC` on what is opened to be read alone.
fn emptying(argument: u8) -> Result<SeccompRule, seccompiler::Error> {
    let mask = (libc::O_TRUNC | libc::O_ACCMODE) as u64;
    let condition = When::new(argument, Size::Dword, Is::MaskedEq(mask), libc::O_TRUNC as u64);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(seccompiler::Error::Backend)
}

fn any_of(argument: u8, bits: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = When::new(argument, Size::Qword, Is::MaskedEq(bits), bits);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(seccompiler::Error::Backend)
}

fn equal(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = When::new(argument, Size::Dword, Is::Eq, value);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(seccompiler::Error::Backend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_landlock_nothing_runs_unless_the_operator_says_so() {
        let missing = || Err("this kernel has none".to_owned());
        let refusal = with_landlock(missing(), false).unwrap_err();
        assert!(refusal.contains("this kernel has none") && refusal.contains("without_landlock: allow"), "{refusal}");
        assert_eq!(with_landlock(missing(), true), Ok(false));
        assert_eq!(with_landlock(Ok(1), true), Ok(true), "where there is one it is used");
    }

    #[test]
    fn the_filters_compile_for_both_kinds_of_grant() {
        for (network, minds) in [(false, true), (true, true), (false, false), (true, false)] {
            let filters = filters(network, minds).unwrap();
            assert_eq!(filters.len(), 2);
            assert!(filters.iter().all(|filter| !filter.is_empty() && filter.len() < 4_096));
        }
    }
}
