//! Variables in a body: its folder, the session, and what it was called with.

/// What they stand for.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// `${SKILL_DIR}`: the folder of the skill's files.
    pub folder: &'a str,
    /// `${SESSION_ID}`; empty outside a session.
    pub session: &'a str,
    /// `$ARGUMENTS`; none when it was called without any.
    pub arguments: Option<&'a str>,
}

/// The body with its variables filled in, in one pass: what is put in is never looked at again. Arguments that the body
/// has no place for are put below it.
pub fn fill(body: &str, variables: Variables<'_>) -> String {
    let arguments = variables.arguments.unwrap_or_default();
    // The longer names are what skills written for other hosts use.
    let table = [
        ("${SKILL_DIR}", variables.folder),
        ("${CLAUDE_SKILL_DIR}", variables.folder),
        ("${SESSION_ID}", variables.session),
        ("${CLAUDE_SESSION_ID}", variables.session),
        ("$ARGUMENTS", arguments),
    ];
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut rest = body;
    let mut has_place = false;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match table.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                has_place |= *name == "$ARGUMENTS";
                text.push_str(value);
                rest = &rest[name.len()..];
            }
            None => {
                text.push('$');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    if !has_place && !arguments.trim().is_empty() {
        text.push_str(&format!("\n\nARGUMENTS: {}", arguments.trim()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(body: &str, arguments: Option<&str>) -> String {
        fill(body, Variables { folder: "/skills/a", session: "s-1", arguments })
    }

    #[test]
    fn variables_are_filled_in_once() {
        assert_eq!(filled("${SKILL_DIR}/x ${SESSION_ID} $ARGUMENTS.", Some("M 31")), "/skills/a/x s-1 M 31.");
        assert_eq!(filled("$ARGUMENTS", Some("${SESSION_ID} $ARGUMENTS")), "${SESSION_ID} $ARGUMENTS");
        assert_eq!(filled("costs $5, ${HOME}, $", None), "costs $5, ${HOME}, $");
        assert_eq!(filled("about $ARGUMENTS", None), "about ");
    }

    #[test]
    fn arguments_without_a_place_stand_below() {
        assert_eq!(filled("body", Some("M 31")), "body\n\nARGUMENTS: M 31");
        assert_eq!(filled("body", Some("  ")), "body");
    }
}
