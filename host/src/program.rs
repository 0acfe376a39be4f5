//! The judgement of every native program that a guest wants to run: pure functions from rules and a command to allowed, or
//! to a refusal that names the rule and the cure. What is allowed still runs confined, see the capability `process`.

use crate::grant::{FsRule, ProcessRule, Root};
use std::path::{Component, Path, PathBuf};

/// Bytes of all arguments together: what Linux takes for a single one.
const ARGUMENTS: usize = 128 << 10;

/// Why a program is not run. Each is plain enough for the model to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule allows it: which, and the cure.
    #[error("{0}")]
    Denied(String),
    /// The command makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// The rule under which `plugin` may run this.
pub fn judge<'a>(
    plugin: &str,
    rules: &'a [ProcessRule],
    program: &str,
    arguments: &[String],
) -> Result<&'a ProcessRule, Refusal> {
    let bytes: usize = arguments.iter().map(String::len).sum();
    if bytes > ARGUMENTS {
        return Err(Refusal::Invalid(format!("process: {bytes} bytes of arguments; at most {ARGUMENTS}")));
    }
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(Refusal::Invalid("process: an argument holds a NUL, which no program can be given".into()));
    }
    let named: Vec<&ProcessRule> = rules.iter().filter(|rule| rule.program == program).collect();
    if let Some(rule) = named.iter().find(|rule| rule.allows(arguments)) {
        return Ok(rule);
    }
    let shown = crate::plain::one_line(program, 80);
    Err(Refusal::Denied(match named.first() {
        Some(rule) => format!(
            "process: the rule of {plugin} for {shown} allows the arguments {:?} and not these; do not retry with the same",
            rule.arguments
        ),
        None => format!(
            "process: no rule of {plugin} names the program {shown:?}; do not retry; an operator grants it under grants: in \
             astrarium.yaml with `- {{ plugin: {plugin}, process: [{{ program: {shown:?}, fs: [{{ path: workspace, mode: rw \
             }}] }}] }}`, if the plugin asks for it"
        ),
    }))
}

/// The granted folder and the way from it to where a program runs. Guests name folders as they see them: `/workspace/data`,
/// or relative to the rule's first folder.
pub fn working_dir<'a>(rule: &'a ProcessRule, asked: Option<&str>) -> Result<(&'a FsRule, PathBuf), Refusal> {
    let asked = Path::new(asked.unwrap_or_default());
    if asked.components().any(|part| part == Component::ParentDir) || asked.as_os_str().as_encoded_bytes().contains(&0)
    {
        return Err(Refusal::Invalid("process: the working folder may have no `..` in it; write it without".into()));
    }
    let found = match asked.is_absolute() {
        false => rule.fs.first().map(|folder| (folder, asked.to_owned())),
        true => {
            let inside =
                rule.fs.iter().filter_map(|folder| Some((folder, asked.strip_prefix(guest_name(folder)).ok()?)));
            // The nearest of folders that lie in each other.
            let nearest = inside.min_by_key(|(_, rest)| rest.components().count());
            nearest.map(|(folder, rest)| (folder, rest.to_owned()))
        }
    };
    found.ok_or_else(|| {
        let names: Vec<String> = rule.fs.iter().map(|folder| guest_name(folder).display().to_string()).collect();
        let asked = crate::plain::one_line(&asked.to_string_lossy(), 200);
        Refusal::Denied(format!("process: {asked} lies in none of the granted folders ({})", names.join(", ")))
    })
}

/// What a guest calls a folder.
pub fn guest_name(folder: &FsRule) -> PathBuf {
    match &folder.path {
        Root::Workspace => "/workspace".into(),
        Root::Library => "/library".into(),
        Root::Session => "/session".into(),
        Root::Skills => "skills".into(),
        Root::Folder(path) => path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules() -> Vec<ProcessRule> {
        crate::yaml::from_str(
            "[{ program: bash, arguments: ['-c', '*'], fs: [{ path: workspace, mode: rw }, { path: /data, mode: ro }, \
             { path: /data/own, mode: rw }] }]",
        )
        .unwrap()
    }

    fn judged(program: &str, arguments: &[&str]) -> Result<(), String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        judge("sh", &rules(), program, &arguments).map(|_| ()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_refusal_names_the_rule_or_the_line_that_grants() {
        assert_eq!(judged("bash", &["-c", "ls"]), Ok(()));
        assert_eq!(
            judged("bash", &["-i"]).unwrap_err(),
            "process: the rule of sh for bash allows the arguments [\"-c\", \"*\"] and not these; do not retry with the same"
        );
        assert!(judged("/bin/bash", &["-c", "ls"]).unwrap_err().contains(
            "`- { plugin: sh, process: [{ program: \"/bin/bash\", fs: [{ path: workspace, mode: rw }] }] }`"
        ));
        assert!(judged("bash", &["-c", "a\0b"]).unwrap_err().contains("NUL"));
        assert!(judged("bash", &["-c", &"x".repeat(200_000)]).unwrap_err().contains("at most"));
    }

    #[test]
    fn a_working_folder_lies_in_a_granted_one() {
        let rules = rules();
        let place = |asked| working_dir(&rules[0], asked).map(|(folder, rest)| (guest_name(folder), rest));
        let at = |folder: &str, rest: &str| Ok((PathBuf::from(folder), PathBuf::from(rest)));
        assert_eq!(place(None), at("/workspace", ""));
        assert_eq!(place(Some("a/b")), at("/workspace", "a/b"));
        assert_eq!(place(Some("/workspace")), at("/workspace", ""));
        assert_eq!(place(Some("/data/own/x")), at("/data/own", "x"));
        assert_eq!(place(Some("/data/owner")), at("/data", "owner"));
        for asked in ["..", "a/../../b", "/workspace/..", "/", "/etc", "/workspaces", "/dat"] {
            assert!(place(Some(asked)).is_err(), "{asked}");
        }
    }

    proptest! {
        #[test]
        fn no_working_folder_leads_out(asked in "[a/.~]{0,12}|/(workspace|data|etc)(/[a.]{1,3}){0,4}") {
            if let Ok((_, rest)) = working_dir(&rules()[0], Some(&asked)) {
                prop_assert!(rest.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)));
            }
        }
    }
}
