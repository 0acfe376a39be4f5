//! Places that no grant reaches: the home folder, the config, the caches and the plugin folders, where a granted folder
//! covers them. Whoever could write there could grant himself what he likes.
//!
//! Only asked where a granted folder covers such a place; elsewhere it costs nothing. Paths are resolved as the system
//! resolves them, links included; since guests make no links there, what was resolved is what is opened.

use std::path::{Path, PathBuf};

/// Whether `path` below `base` is a kept-out place or lies in one. A folder inside of such a place that has a grant of its
/// own, as the library and the skills have, is where its `base` lies: the place is no bar to it.
pub(super) fn reaches(kept_out: &[PathBuf], base: &Path, path: &str) -> bool {
    let resolved = resolve(&base.join(path));
    kept_out.iter().any(|place| resolved.starts_with(place) && !base.starts_with(place))
}

/// Whether moving or removing `path` below `base` would move or remove a kept-out place.
pub(super) fn carries(kept_out: &[PathBuf], base: &Path, path: &str) -> bool {
    let resolved = resolve(&base.join(path));
    kept_out.iter().any(|place| place.starts_with(&resolved) || resolved.starts_with(place))
}

/// Whether a folder is still the one that was judged, by its real path, when its plugin was loaded. Whoever may write beside it
/// can have put a link in its place since then.
pub(crate) fn still_itself(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    let real = folder.canonicalize().map_err(|error| format!("cannot open the granted folder {shown}: {error}"))?;
    match real == folder {
        true => Ok(()),
        false => Err(format!(
            "the granted folder {shown} has become a link to another place; put the folder back, or grant the other place"
        )),
    }
}

/// The real path; of what does not exist yet, the real path of the nearest folder that does, and the rest.
fn resolve(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut there = path;
    loop {
        if let Ok(real) = there.canonicalize() {
            return rest.iter().rev().fold(real, |path, part| path.join(part));
        }
        match (there.parent(), there.components().next_back()) {
            (Some(parent), Some(last)) => {
                rest.push(last.as_os_str().to_owned());
                there = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reached_by_its_path_by_a_link_and_by_dots() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let home = base.join("home");
        std::fs::create_dir_all(home.join("plugins")).unwrap();
        std::os::unix::fs::symlink(&home, base.join("link")).unwrap();
        let kept = [home];
        for path in ["home", "home/astrarium.yaml", "home/new/file", "link/astrarium.yaml", "./home/../home/x"] {
            assert!(reaches(&kept, &base, path), "{path}");
        }
        for path in [".", "homely", "other/file", "home-2/x"] {
            assert!(!reaches(&kept, &base, path), "{path}");
        }
        let library = base.join("home/library");
        assert!(!reaches(&kept, &library, "paper.md"), "a granted folder inside is open");
        assert!(!reaches(&kept, &library, "."));
        assert!(carries(&kept, &base, "home"));
        assert!(carries(&kept, base.parent().unwrap(), base.file_name().unwrap().to_str().unwrap()));
        assert!(!carries(&kept, &base, "other"));
    }
}
