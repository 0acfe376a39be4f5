//! Where apt gets sid from: the machine's own Debian mirror with another suite. No mirror is named in this repository.

use std::path::Path;

use crate::{Outcome, files};

/// apt sources for sid's main, from what is configured in `/etc/apt`.
pub fn sid_of_this_machine() -> Outcome<String> {
    let configured = Path::new("/etc/apt");
    let mut candidates = vec![configured.join("sources.list")];
    candidates.extend(files::entries(&configured.join("sources.list.d"))?);
    for path in candidates.iter().filter(|path| path.is_file()) {
        let text = files::read_text(path)?;
        let found = match path.extension().and_then(|end| end.to_str()) {
            Some("list") => text.lines().find_map(sid_of_line),
            Some("sources") => text.split("\n\n").find_map(sid_of_stanza),
            _ => None,
        };
        if let Some(sources) = found {
            return Ok(sources);
        }
    }
    Err("no Debian mirror with `main` is configured in /etc/apt/sources.list or /etc/apt/sources.list.d".to_string())
}

/// `deb [signed-by=KEYRING] URI SUITE COMPONENT …`
fn sid_of_line(line: &str) -> Option<String> {
    let line = line.split('#').next()?.trim().strip_prefix("deb ")?.trim();
    let (options, rest) = match line.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => ("", line),
    };
    let mut words = rest.split_whitespace();
    let (uri, _suite) = (words.next()?, words.next()?);
    let key = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    (is_debian(uri) && words.any(|component| component == "main")).then(|| sid(uri, key))
}

/// A paragraph of a `.sources` file: `Types`, `URIs`, `Suites`, `Components`, `Signed-By`.
fn sid_of_stanza(stanza: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = stanza.lines().filter(|line| !line.starts_with('#'));
        lines.find_map(|line| {
            line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        })
    };
    let holds = |name: &str, word: &str| field(name).is_some_and(|value| value.split_whitespace().any(|w| w == word));
    if !holds("Types", "deb") || !holds("Components", "main") || holds("Enabled", "no") {
        return None;
    }
    let uri = field("URIs")?.split_whitespace().find(|uri| is_debian(uri))?;
    // A key written out in the file stands on lines of its own; then apt's trusted keys must do.
    Some(sid(uri, field("Signed-By").filter(|key| key.starts_with('/'))))
}

/// A mirror of the main archive, not of security updates and not of somebody else's packages.
fn is_debian(uri: &str) -> bool {
    uri.contains("://") && uri.split('/').skip(3).any(|part| part == "debian")
}

fn sid(uri: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("Signed-By: {key}\n")).unwrap_or_default();
    format!("Types: deb\nURIs: {uri}\nSuites: sid\nComponents: main\n{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sid_comes_from_the_mirror_of_a_sources_file() {
        let stanza = "Types: deb\n# a comment: with a colon\nURIs: http://mirror.example/debian\nSuites: bookworm \
                      bookworm-updates\nComponents: main contrib\nSigned-By: /usr/share/keyrings/a.gpg";
        let expected = "Types: deb\nURIs: http://mirror.example/debian\nSuites: sid\nComponents: main\nSigned-By: \
                        /usr/share/keyrings/a.gpg\n";
        assert_eq!(sid_of_stanza(stanza).as_deref(), Some(expected));
        assert_eq!(sid_of_stanza(&stanza.replace("/debian\n", "/debian-security\n")), None);
        assert_eq!(sid_of_stanza(&format!("Enabled: no\n{stanza}")), None);
    }

    #[test]
    fn sid_comes_from_the_mirror_of_a_list_file() {
        let line = "deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/pub/debian/ bookworm main # ours";
        let expected =
            "Types: deb\nURIs: https://mirror.example/pub/debian/\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n";
        assert_eq!(sid_of_line(line).as_deref(), Some(expected));
        assert_eq!(sid_of_line("deb https://tools.example/apt stable main"), None);
        assert_eq!(sid_of_line("# deb http://mirror.example/debian bookworm main"), None);
    }
}
