//! The door to personas: who the agent is, how it works, and the host's own texts, from files over what is built in.
//!
//! A persona is a folder: `identity.md`, `principles.md`, and `texts/NAME.md` for each text that it replaces; a language
//! goes before the ending, `identity.zh.md`, and wins over the file without one. Folders of the home win over what ships.

use crate::compact;
use crate::files::{self, Unread};
use crate::prompt::{Language, Texts};
use std::path::{Path, PathBuf};

/// A persona that does not read.
#[derive(Debug, thiserror::Error)]
pub enum PersonaError {
    /// No folder of that name, and none built in.
    #[error(
        "there is no persona {name:?}; there are {known}, or name a folder that holds identity.md (persona: in the config)"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The folder lacks the one file that a persona must have.
    #[error(
        "the persona in {folder} has no identity.md or identity.{language}.md; write one, or choose another with persona: in the config"
    )]
    NoIdentity {
        /// The folder.
        folder: String,
        /// The language in force.
        language: &'static str,
    },
    /// A file that does not read.
    #[error("{path} does not read: {reason}; mend it, or choose another persona with persona: in the config")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// A persona in one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    /// Its name, or the folder.
    pub name: String,
    /// Who the agent is, and where that text is from.
    pub identity: (String, String),
    /// How it works; may be blank.
    pub principles: (String, String),
    /// What the host says to the model.
    pub texts: Texts,
    /// What a compaction says.
    pub compact: compact::Texts,
    /// Files in their place that are not used, and why.
    pub warnings: Vec<String>,
}

/// Bytes that a file of a persona may have.
const LIMIT: u64 = 64 << 10;

/// Name, then identity and principles in Chinese and English.
const BUILT_IN: [(&str, [&str; 2], [&str; 2]); 2] = [
    (
        "astro",
        [include_str!("../personas/astro/identity.zh.md"), include_str!("../personas/astro/identity.en.md")],
        [include_str!("../personas/astro/principles.zh.md"), include_str!("../personas/astro/principles.en.md")],
    ),
    (
        "general",
        [include_str!("../personas/general/identity.zh.md"), include_str!("../personas/general/identity.en.md")],
        [include_str!("../personas/general/principles.zh.md"), include_str!("../personas/general/principles.en.md")],
    ),
];

/// The persona where the config names none.
pub const DEFAULT: &str = "astro";

/// Loads the persona `name`: a folder under `roots` (the first that has it), the path of a folder, or a built-in one.
pub fn load(roots: &[PathBuf], name: &str, language: Language) -> Result<Persona, PersonaError> {
    let named = |root: &PathBuf| (!name.contains(['/', '\\'])).then(|| root.join(name));
    let candidates = roots.iter().filter_map(named).chain([PathBuf::from(name)]);
    let folder = candidates.into_iter().find(|folder| folder.is_dir());
    let mut persona = match (&folder, BUILT_IN.iter().find(|(built_in, ..)| *built_in == name)) {
        (Some(folder), built_in) => from_folder(folder, name, language, built_in.is_some())?,
        (None, Some(_)) => built_in(name, language),
        (None, None) => {
            let known: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
            return Err(PersonaError::Unknown { name: name.to_owned(), known: known.join(", ") });
        }
    };
    // Texts that belong to no persona first, so that the persona's own win.
    for folder in roots.iter().rev().map(|root| root.join("texts")).chain(folder.map(|folder| folder.join("texts"))) {
        for text in Texts::names() {
            if let Some((words, _)) = read(&folder, text, language)? {
                persona.texts.replace(text, &words);
            }
        }
    }
    (persona.compact, persona.warnings) = compact_texts(roots, language)?;
    for warning in &persona.warnings {
        tracing::warn!("{warning}");
    }
    Ok(persona)
}

/// What a compaction says, from `compact/` under `roots`; one that is empty or does not read is not used, and said.
fn compact_texts(roots: &[PathBuf], language: Language) -> Result<(compact::Texts, Vec<String>), PersonaError> {
    let mut found = std::collections::BTreeMap::new();
    for (name, ending) in compact::Texts::FILES {
        for root in roots.iter().rev() {
            if let Some((text, path)) = read_as(&root.join("compact"), name, ending, language)? {
                found.insert(name, (text, path));
            }
        }
    }
    let (texts, warnings) = compact::Texts::with(language, &|name| found.get(name).map(|(text, _)| text.clone()));
    let paths: Vec<&str> = found.values().map(|(_, path)| path.as_str()).collect();
    let paths = paths.join(", ");
    Ok((texts, warnings.into_iter().map(|warning| format!("{warning} (looked at {paths})")).collect()))
}

fn built_in(name: &str, language: Language) -> Persona {
    let place = match language {
        Language::Zh => 0,
        Language::En => 1,
    };
    let (_, identity, principles) = BUILT_IN.iter().find(|(known, ..)| *known == name).unwrap_or(&BUILT_IN[0]);
    let text = |texts: &[&str; 2]| (texts[place].trim().to_owned(), format!("built in (persona {name})"));
    Persona {
        name: name.to_owned(),
        identity: text(identity),
        principles: text(principles),
        texts: Texts::built_in(language),
        compact: compact::Texts::built_in(language),
        warnings: Vec::new(),
    }
}

fn from_folder(folder: &Path, name: &str, language: Language, over_built_in: bool) -> Result<Persona, PersonaError> {
    let mut persona = built_in(if over_built_in { name } else { DEFAULT }, language);
    if !over_built_in {
        persona.name = name.to_owned();
        persona.principles = (String::new(), String::new());
    }
    match read(folder, "identity", language)? {
        Some(identity) => persona.identity = identity,
        // A folder that goes by the name of a built-in persona may replace only a part of it.
        None if over_built_in => {}
        None => {
            return Err(PersonaError::NoIdentity { folder: folder.display().to_string(), language: language.tag() });
        }
    }
    if let Some(principles) = read(folder, "principles", language)? {
        persona.principles = principles;
    }
    Ok(persona)
}

/// The text of `NAME.<language>.md`, else of `NAME.md`, with its path.
fn read(folder: &Path, name: &str, language: Language) -> Result<Option<(String, String)>, PersonaError> {
    read_as(folder, name, "md", language)
}

fn read_as(
    folder: &Path,
    name: &str,
    ending: &str,
    language: Language,
) -> Result<Option<(String, String)>, PersonaError> {
    for file in [format!("{name}.{}.{ending}", language.tag()), format!("{name}.{ending}")] {
        let path = folder.join(file);
        let failed = |reason: String| PersonaError::Unreadable { path: path.display().to_string(), reason };
        return match files::text(&path, LIMIT) {
            Ok(text) => Ok(Some((text.trim().to_owned(), path.display().to_string()))),
            Err(Unread::Missing) => continue,
            Err(error) => Err(failed(format!("it {error}"))),
        };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_built_in_ones_speak_both_languages() {
        for name in ["astro", "general"] {
            let zh = load(&[], name, Language::Zh).unwrap();
            let en = load(&[], name, Language::En).unwrap();
            assert!(zh.identity.0 != en.identity.0 && zh.principles.0 != en.principles.0);
        }
        assert_eq!(load(&[], "astro", Language::Zh).unwrap().principles.0.matches("\n").count(), 9, "nine principles");
    }

    #[test]
    fn a_folder_wins_over_what_is_built_in_file_by_file() {
        let root = tempfile::tempdir().unwrap();
        let roots = [root.path().to_owned()];
        write(root.path(), "astro/identity.md", "\u{feff}I am other.\n");
        write(root.path(), "texts/tools.md", "Tools at hand:");
        write(root.path(), "astro/texts/tools.en.md", "My tools:");
        let persona = load(&roots, "astro", Language::En).unwrap();
        assert_eq!(persona.identity.0, "I am other.");
        assert!(persona.principles.1.starts_with("built in"));
        assert_eq!(persona.texts.get("tools"), "My tools:");
        assert_eq!(load(&roots, "general", Language::En).unwrap().texts.get("tools"), "Tools at hand:");
    }

    #[test]
    fn a_persona_that_does_not_read_is_named_with_its_cure() {
        let root = tempfile::tempdir().unwrap();
        let roots = [root.path().to_owned()];
        let fails = |name: &str| load(&roots, name, Language::Zh).unwrap_err().to_string();
        assert_eq!(
            fails("nobody"),
            r#"there is no persona "nobody"; there are astro, general, or name a folder that holds identity.md (persona: in the config)"#
        );
        write(root.path(), "empty/principles.md", "x");
        assert!(fails("empty").contains("has no identity.md or identity.zh.md; write one"));
        fs::create_dir_all(root.path().join("bad")).unwrap();
        fs::write(root.path().join("bad/identity.md"), b"\xff\xfe").unwrap();
        assert!(fails("bad").contains("identity.md does not read"), "{}", fails("bad"));
        write(root.path(), "huge/identity.md", &"x".repeat(70_000));
        assert!(fails("huge").contains("is larger than 65536 bytes"), "{}", fails("huge"));
    }

    #[test]
    fn a_persona_may_be_the_path_of_a_folder() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "mine/identity.zh.md", "我");
        let path = root.path().join("mine").display().to_string();
        assert_eq!(load(&[], &path, Language::Zh).unwrap().identity.0, "我");
    }
}
