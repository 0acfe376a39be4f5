//! A view of the system of the program's own, where the kernel gives one: everything read-only but its granted folders, no
//! network devices, no shared memory of others.
//!
//! Landlock and seccomp confine without it; this shuts what they leave open: owners, permissions, times and attributes of
//! files that a path leads to, which no Landlock governs. Containers and some distributions refuse namespaces, and then
//! programs run without.

use nix::errno::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What the child does to enter it: system calls on texts that were made before the fork.
pub(super) struct View {
    flags: libc::c_int,
    /// Texts for the maps of a user namespace, where one is needed.
    maps: Option<[(CString, CString); 3]>,
    /// Paths that get a mount of their own, in order.
    mounts: Vec<CString>,
    /// Those of them that may be written to.
    writable: Vec<CString>,
    /// Where the program runs.
    dir: CString,
}

/// How a namespace can be had here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the power of root.
    Own,
    /// In a user namespace, which anyone may make on most systems.
    User,
}

impl View {
    /// A view in which `folders` may be written to where they say so, and `kept_out` in them may not; none where this
    /// system gives none.
    pub(super) fn new(dir: &Path, folders: &[(PathBuf, bool)], kept_out: &[PathBuf], network: bool) -> Option<Self> {
        let way = (*WAY.get_or_init(probe))?;
        Some(Self::by(way, dir, folders, kept_out, network))
    }

    fn by(way: Way, dir: &Path, folders: &[(PathBuf, bool)], kept_out: &[PathBuf], network: bool) -> Self {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let real: Vec<(PathBuf, bool)> =
            folders.iter().filter_map(|(path, writable)| Some((path.canonicalize().ok()?, *writable))).collect();
        let inside = kept_out.iter().filter(|place| {
            place.exists()
                && real.iter().any(|(folder, writable)| *writable && place.starts_with(folder) && place != &folder)
        });
        // Folders that lie in others come after them.
        let mut mounts: Vec<&Path> =
            real.iter().map(|(path, _)| path.as_path()).chain(inside.map(PathBuf::as_path)).collect();
        mounts.sort_unstable();
        mounts.dedup();
        let granted = real.iter().filter(|(_, writable)| *writable).map(|(path, _)| path.clone());
        let others = mounted(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
        // What is mounted in a granted folder, and could be written to before, still can.
        let nested = others.into_iter().filter(|point| {
            let nearest = real
                .iter()
                .filter(|(folder, _)| point.starts_with(folder))
                .max_by_key(|(folder, _)| folder.as_os_str().len());
            nearest.is_some_and(|(folder, writable)| *writable && folder != point)
                && !kept_out.iter().any(|place| point.starts_with(place))
        });
        let writable: Vec<PathBuf> = granted.chain(nested).collect();
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        if !network {
            flags |= libc::CLONE_NEWNET;
        }
        let maps = (way == Way::User).then(|| {
            flags |= libc::CLONE_NEWUSER;
            let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
            let pair = |path: &str, text: String| {
                (CString::new(path).unwrap_or_default(), CString::new(text).unwrap_or_default())
            };
            [
                pair("/proc/self/setgroups", "deny".into()),
                pair("/proc/self/uid_map", format!("{user} {user} 1")),
                pair("/proc/self/gid_map", format!("{group} {group} 1")),
            ]
        });
        Self {
            flags,
            maps,
            mounts: mounts.into_iter().filter_map(text).collect(),
            writable: writable.iter().filter_map(|path| text(path)).collect(),
            dir: text(dir).unwrap_or_default(),
        }
    }

    /// Enters it, in the child. On an error the child must not go on: it may be half inside.
    pub(super) fn enter(&self) -> io::Result<()> {
        // SAFETY: flags alone.
        check(unsafe { libc::unshare(self.flags) })?;
        for (path, text) in self.maps.iter().flatten() {
            write(path, text)?;
        }
        mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        for path in &self.mounts {
            mount(Some(path), path, libc::MS_BIND | libc::MS_REC)?;
        }
        set_read_only(c"/", true)?;
        for path in &self.writable {
            set_read_only(path, false)?;
        }
        // The folder that the child stands in is still the one below the new mounts.
        // SAFETY: a text that ends in NUL.
        check(unsafe { libc::chdir(self.dir.as_ptr()) })
    }
}

/// Mount points that can be written to, from `/proc/self/mountinfo`: the fifth field, with blanks written as `\\040`, and the
/// sixth, which begins with `rw` or `ro`.
fn mounted(info: &str) -> Vec<PathBuf> {
    let lines = info.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(4);
        let (point, options) = (fields.next()?, fields.next()?);
        let is_writable = options.split(',').next() == Some("rw");
        is_writable.then(|| {
            let point = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
                .into_iter()
                .fold(point.to_owned(), |point, (escaped, plain)| point.replace(escaped, plain));
            PathBuf::from(point)
        })
    });
    lines.collect()
}

static WAY: OnceLock<Option<Way>> = OnceLock::new();

/// Whether programs get a view of their own here.
pub(super) fn is_given() -> bool {
    WAY.get_or_init(probe).is_some()
}

/// Tries with a program that does nothing, in a folder that is gone afterwards.
fn probe() -> Option<Way> {
    let folder = tempfile::tempdir().ok()?;
    let works = |way: &Way| {
        let view = View::by(*way, folder.path(), &[(folder.path().to_owned(), true)], &[], false);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo > here && ! echo > ../astrarium-not-here"]).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure makes system calls on texts that were made before the fork.
        unsafe { command.pre_exec(move || view.enter()) };
        command.status().is_ok_and(|status| status.success())
    };
    [Way::Own, Way::User].into_iter().find(works)
}

fn check(result: libc::c_int) -> io::Result<()> {
    Errno::result(result).map(drop).map_err(io::Error::from)
}

fn mount(source: Option<&CStr>, target: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let source = source.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: texts that end in NUL and outlive the call; this kind of mount has no type and no data.
    check(unsafe { libc::mount(source, target.as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
}

/// Sets all mounts from `path` down read-only, or the one at `path` writable.
fn set_read_only(path: &CStr, read_only: bool) -> io::Result<()> {
    let (set, clear) = if read_only { (libc::MOUNT_ATTR_RDONLY, 0) } else { (0, libc::MOUNT_ATTR_RDONLY) };
    let attributes = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let flags = if read_only { libc::AT_RECURSIVE } else { 0 };
    let size = std::mem::size_of::<libc::mount_attr>();
    // SAFETY: a text that ends in NUL, and a record of the size that is given; both outlive the call.
    let done =
        unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &attributes, size) };
    check(done as libc::c_int)
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: a text that ends in NUL, flags, and bytes that outlive the call; the descriptor is closed here.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, text.as_ptr().cast(), text.count_bytes());
        libc::close(file);
        check(written as libc::c_int)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_can_be_written_to_are_found() {
        let info = "36 35 98:0 / / rw,noatime shared:1 - ext4 /dev/root rw\n\
                    37 36 0:5 / /work\\040space/a ro,nosuid - tmpfs none rw\n\
                    38 36 0:6 / /work\\040space/b rw - tmpfs none rw\nodd line\n";
        assert_eq!(mounted(info), [PathBuf::from("/"), PathBuf::from("/work space/b")]);
    }
}
