//! From granted folders to the paths that a program may touch: the kept-out places left out, the system's own read.
//!
//! Landlock only adds: a right on a folder holds for all below it. So a folder with a kept-out place in it is granted entry
//! by entry along the way there. Its own list of names, and new entries beside that way, are then not to be had.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What may be done below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Read and run.
    Read,
    /// Read and write, for a device.
    Device,
    /// Everything but devices.
    Write,
}

/// Entries that a folder around a kept-out place may have; each takes a rule of its own.
const ENTRIES: usize = 4_096;

/// What programs are made of.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/proc"];

/// What programs look up in `/etc`. Not all of it: a host that runs as root could read its passwords.
const ETC: [&str; 30] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "matplotlibrc",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "terminfo",
];

/// What else, whatever its version.
const VERSIONED: [&str; 2] = ["java", "python"];

/// What of `/etc/ssl` is not a key.
const CERTIFICATES: [&str; 3] = ["/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf"];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Every path with what may be done below it. `granted` are folders and whether they may be written to.
pub(super) fn allowed(granted: &[(PathBuf, bool)], kept_out: &[PathBuf]) -> Result<Vec<(PathBuf, Access)>, String> {
    let mut found = BTreeSet::new();
    let names = fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let wanted = |name: &str| ETC.contains(&name) || VERSIONED.iter().any(|begin| name.starts_with(begin));
    let etc = names.filter(|name| name.to_str().is_some_and(wanted)).map(|name| Path::new("/etc").join(name));
    let system = SYSTEM.iter().chain(&CERTIFICATES).map(PathBuf::from).chain(etc);
    for path in system.filter_map(|path| path.canonicalize().ok()) {
        spread(&path, Access::Read, kept_out, &mut found)?;
    }
    found.extend(DEVICES.iter().map(|path| (PathBuf::from(path), Access::Device)));
    for (path, writable) in granted {
        let real =
            path.canonicalize().map_err(|error| format!("the granted folder {} is gone: {error}", path.display()))?;
        spread(&real, if *writable { Access::Write } else { Access::Read }, kept_out, &mut found)?;
    }
    Ok(found.into_iter().collect())
}

/// Adds `path`, or its entries, where a kept-out place lies in it.
fn spread(
    path: &Path,
    access: Access,
    kept_out: &[PathBuf],
    found: &mut BTreeSet<(PathBuf, Access)>,
) -> Result<(), String> {
    if kept_out.iter().any(|place| place == path) {
        return Ok(());
    }
    if !kept_out.iter().any(|place| place.starts_with(path)) {
        found.insert((path.to_owned(), access));
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    for (count, entry) in entries.enumerate() {
        let entry = entry.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if count >= ENTRIES {
            return Err(format!(
                "{} holds a place that is kept out, and too many other entries; choose a workspace that does not cover the \
                 home, the config or a plugin folder",
                path.display()
            ));
        }
        // A link would open what it leads to, and that may be kept out.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            spread(&entry.path(), access, kept_out, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_out_place_is_left_out_and_what_lies_beside_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for path in ["a", "b/home/plugins", "b/c", "d"] {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        fs::write(base.join("file"), "").unwrap();
        std::os::unix::fs::symlink(base.join("b/home"), base.join("link")).unwrap();
        let spread = |kept_out: &[PathBuf]| {
            let mut found = BTreeSet::new();
            spread(&base, Access::Write, kept_out, &mut found).unwrap();
            let names = found.into_iter().map(|(path, _)| path.strip_prefix(&base).unwrap().display().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(spread(&[]), [""]);
        assert_eq!(spread(&[base.join("b/home")]), ["a", "b/c", "d", "file"]);
        assert_eq!(
            spread(&[base.join("elsewhere"), PathBuf::from("/nowhere")]).len(),
            4,
            "what is not there yet is kept out"
        );
        assert!(spread(std::slice::from_ref(&base)).is_empty());
    }

    #[test]
    fn the_system_is_read_and_never_written() {
        let all = allowed(&[], &[]).unwrap();
        assert!(all.iter().all(|(_, access)| *access != Access::Write));
        let usr = Path::new("/usr").canonicalize().unwrap();
        assert!(all.contains(&(usr, Access::Read)));
        for secret in [
            "/etc/shadow",
            "/etc/ssh",
            "/etc/ssl/private",
            "/root",
            "/home",
            "/var",
            "/run",
            "/sys",
            "/dev",
            "/etc",
            "/",
        ] {
            assert!(!all.iter().any(|(path, _)| path == Path::new(secret)), "{secret}");
        }
    }
}
