//! Globs over paths of the workspace: `*` within a folder, `**` across folders, `?` one character, `{a,b}` either.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Globs that one skill may have; each costs something at every file that is touched.
const COUNT: usize = 64;

/// Bytes of a glob.
const LENGTH: usize = 512;

/// The globs of a skill.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    globs: Vec<String>,
    of_paths: GlobSet,
    of_names: GlobSet,
}

impl PartialEq for Paths {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl Eq for Paths {}

impl Paths {
    /// Reads globs; `warn` is told of each that is none. A skill keeps the wish to be hidden until a file matches even
    /// where no glob is left, since showing it always is what its author did not want.
    pub(super) fn new(globs: Vec<String>, warn: &mut impl FnMut(String)) -> Self {
        let (mut of_paths, mut of_names) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in globs.iter().take(COUNT) {
            if text.starts_with('!') {
                let text = crate::plain::one_line(text, 80);
                warn(format!("paths: {text:?} excludes nothing here and was left out; name what fits instead"));
                continue;
            }
            let bare = text.trim_start_matches("./").trim_start_matches('/');
            let whole = if bare.ends_with('/') { format!("{bare}**") } else { bare.to_owned() };
            let glob = GlobBuilder::new(&whole).literal_separator(true).build();
            match glob {
                Ok(glob) if whole.len() <= LENGTH && !whole.is_empty() => {
                    // As in .gitignore: a glob without a folder is one of file names.
                    if whole.contains('/') {
                        of_paths.add(glob)
                    } else {
                        of_names.add(glob)
                    };
                }
                Ok(_) => warn(format!("paths: a glob has from 1 to {LENGTH} bytes; this one was left out")),
                Err(error) => {
                    let text = crate::plain::one_line(text, 80);
                    warn(format!("paths: {text:?} is no glob and was left out: {}", error.kind()));
                }
            }
        }
        if globs.len() > COUNT {
            warn(format!("paths: only the first {COUNT} globs count"));
        }
        let mut built = |builder: GlobSetBuilder| {
            builder.build().unwrap_or_else(|error| {
                warn(format!("paths: these globs are too large together and match nothing: {error}"));
                GlobSet::empty()
            })
        };
        Self { of_paths: built(of_paths), of_names: built(of_names), globs }
    }

    /// The globs as spelled.
    pub fn globs(&self) -> &[String] {
        &self.globs
    }

    /// Whether the skill is there without any file being touched.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether a glob fits a path, which is relative to the workspace and has `/` between its folders.
    pub fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.of_paths.is_match(path) || self.of_names.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Paths;

    fn matches(glob: &str, path: &str) -> bool {
        Paths::new(vec![glob.into()], &mut |warning| panic!("{warning}")).matches(path)
    }

    #[test]
    fn stars_end_at_folders_and_double_stars_do_not() {
        assert!(matches("src/*.rs", "src/main.rs"));
        assert!(!matches("src/*.rs", "src/a/main.rs"));
        assert!(matches("src/**/*.rs", "src/a/b/main.rs"));
        assert!(matches("src/**/*.rs", "src/main.rs"));
        assert!(matches("**/test/*", "src/test/foo"));
        assert!(matches("file_?.rs", "file_a.rs"));
        assert!(!matches("file_?.rs", "file_ab.rs"));
        assert!(matches("data/", "data/raw/a.fits"));
        assert!(matches("./notes/{a,b}.md", "notes/b.md"));
    }

    #[test]
    fn a_glob_without_a_folder_is_one_of_names() {
        assert!(matches("*.tex", "paper/main.tex"));
        assert!(!matches("*.tex", "paper.tex/main.md"));
    }

    #[test]
    fn no_text_is_looked_for_inside_of_a_path() {
        assert!(!matches("test", "src/latest.rs"));
    }

    #[test]
    fn a_skill_whose_globs_are_wrong_stays_hidden() {
        let mut warnings = Vec::new();
        let globs = vec!["a[".into(), "x".repeat(600), "!*.tex".into()];
        let paths = Paths::new(globs, &mut |warning| warnings.push(warning));
        assert!(!paths.is_empty() && !paths.matches("a[") && !paths.matches("!a.tex"));
        assert!(warnings.len() == 3 && warnings[2].contains("excludes nothing here"), "{warnings:?}");
    }
}
