//! Names of memories: any text becomes `[a-z0-9-]+`, and a file's name says whose version it is.

/// Characters of a slug: a file name that still fits beside its version everywhere.
const LONGEST: usize = 64;

/// The slug of a name: lower case, what is neither a letter of ASCII nor a digit becomes `-`. A name in another script, or
/// one that was cut, ends in a few digits of its own. A slug is its own slug. Names that differ in signs alone, or whose few
/// digits are the same by chance, meet in one slug: [`are_one`] tells them apart.
/// None for a name without a letter or digit, and for `memory`, which is the index.
pub fn slug(name: &str) -> Option<String> {
    let name = name.trim();
    let lower = name.to_lowercase();
    let mut slug = String::new();
    for c in lower.chars() {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let mut slug = slug.trim_end_matches('-').to_owned();
    let lost = lower.chars().any(|c| c.is_alphanumeric() && !c.is_ascii());
    if lost || slug.len() > LONGEST {
        slug.truncate(LONGEST - 9);
        let joint = if slug.is_empty() || slug.ends_with('-') { "" } else { "-" };
        slug = format!("{slug}{joint}{:08x}", fingerprint(&lower));
    }
    (!slug.is_empty() && slug != "memory").then_some(slug)
}

/// Whether two names mean the same: equal but for case, blanks and marks that say nothing. `z<3` and `z>3` are two.
pub fn are_one(a: &str, b: &str) -> bool {
    let telling = |c: &char| c.is_alphanumeric() || "<>=+#&%$@*^~|/\\°′″".contains(*c);
    let folded = |name: &str| name.to_lowercase().chars().filter(telling).collect::<String>();
    folded(a) == folded(b)
}

/// Whether a text is a slug as it stands.
pub fn is_slug(text: &str) -> bool {
    text.len() <= LONGEST && slug(text).is_some_and(|slug| slug == text)
}

/// The file of an archived version.
pub fn archive_name(slug: &str, version: u32) -> String {
    format!("{slug}_v{version}.md")
}

/// Whose file this is: the slug, and the version when it is an archived one. None for a file that is no memory's.
pub fn placed(file: &str) -> Option<(&str, Option<u32>)> {
    let stem = file.strip_suffix(".md")?;
    if is_slug(stem) {
        return Some((stem, None));
    }
    let (slug, version) = stem.rsplit_once("_v")?;
    let version: u32 = version.parse().ok()?;
    (is_slug(slug) && version > 0).then_some((slug, Some(version)))
}

/// FNV-1a over the text. It names files, so it must stay the same for ever; it guards nothing.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_become_slugs() {
        let of = |name: &str| slug(name).unwrap_or_default();
        assert_eq!(of("Prefers AB magnitudes!"), "prefers-ab-magnitudes");
        assert_eq!(of("  a__b--c "), "a-b-c");
        assert_eq!(of("M31 距离"), "m31-610dff66");
        assert_ne!(of("M31 距离"), of("M31 速度"));
        assert_eq!(of("用户偏好").len(), 8);
        assert_eq!(of(&"long name ".repeat(20)).len(), 63);
        assert_eq!(slug("MEMORY"), None);
        assert_eq!(slug("…!?"), None);
    }

    #[test]
    fn names_that_meet_in_a_slug_are_told_apart() {
        for (a, b) in [("quasars z<3", "quasars z>3"), ("C++ style", "C style"), ("M31 距离", "M31 速度")] {
            assert!(!are_one(a, b), "{a} {b}");
        }
        for (a, b) in [("Prefers AB magnitudes!", "prefers-ab-magnitudes"), ("zero point", " Zero  Point")] {
            assert!(are_one(a, b), "{a} {b}");
        }
    }

    #[test]
    fn files_are_told_apart() {
        assert_eq!(placed("a-b.md"), Some(("a-b", None)));
        assert_eq!(placed("a-b_v12.md"), Some(("a-b", Some(12))));
        for file in
            ["MEMORY.md", "memory.md", "My Note.md", "a.txt", "a_v0.md", "a_vx.md", "_v1.md", "../a.md", ".a.md"]
        {
            assert_eq!(placed(file), None, "{file}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_is_its_own_slug_and_names_a_file_of_its_own(name in "\\PC{0,80}") {
            if let Some(made) = slug(&name) {
                prop_assert!(is_slug(&made), "{made}");
                let file = format!("{made}.md");
                prop_assert_eq!(placed(&file), Some((made.as_str(), None)));
            }
        }
    }
}
