//! What is left of a set when an operator takes some of it back.

use super::{Capabilities, FsMode, FsRule, Root};

impl Capabilities {
    /// The set without what was revoked. Revoking to write in a folder leaves reading there; revoking to read leaves
    /// nothing of it, nor of the folders in it.
    pub fn less(&self, revoked: &Capabilities) -> Capabilities {
        let fs = self.fs.iter().filter_map(|rule| {
            let hit = |revoked: &&FsRule| reaches(&revoked.path, &rule.path);
            match revoked.fs.iter().filter(hit).map(|revoked| revoked.mode).min() {
                None => Some(rule.clone()),
                Some(FsMode::Rw) => Some(FsRule { mode: FsMode::Ro, ..rule.clone() }),
                Some(FsMode::Ro) => None,
            }
        });
        let http = self.http.iter().filter(|rule| !revoked.http.iter().any(|revoked| revoked.origin == rule.origin));
        let process = self.process.iter();
        let process = process.filter(|rule| !revoked.process.iter().any(|revoked| revoked.program == rule.program));
        Capabilities {
            fs: fs.collect(),
            http: http.cloned().collect(),
            process: process.cloned().collect(),
            env: self.env.iter().filter(|name| !revoked.env.contains(name)).cloned().collect(),
            kv: self.kv && !revoked.kv,
            tasks: self.tasks && !revoked.tasks,
            memory: self.memory && !revoked.memory,
            skills: self.skills && !revoked.skills,
            context: self.context && !revoked.context,
            agents: self.agents && !revoked.agents,
        }
    }

    /// What stays revoked of this set once `granted` is granted again: to be granted reading where all was revoked leaves
    /// writing revoked.
    pub fn still_revoked(&self, granted: &Capabilities) -> Capabilities {
        let fs = self.fs.iter().filter_map(|rule| {
            let again =
                granted.fs.iter().filter(|granted| reaches(&granted.path, &rule.path)).map(|granted| granted.mode);
            match again.max() {
                None => Some(rule.clone()),
                Some(FsMode::Ro) => Some(FsRule { mode: FsMode::Rw, ..rule.clone() }),
                Some(FsMode::Rw) => None,
            }
        });
        Capabilities { fs: fs.collect(), ..self.less(granted) }
    }
}

/// Whether what was revoked for one folder reaches another: the same, one inside it, or one around it, since whoever has the
/// folder around has this one too.
fn reaches(revoked: &Root, rule: &Root) -> bool {
    match (revoked, rule) {
        (Root::Folder(revoked), Root::Folder(rule)) => rule.starts_with(revoked) || revoked.starts_with(rule),
        _ => revoked == rule,
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::any_caps;
    use super::*;
    use proptest::prelude::*;

    fn caps(yaml: &str) -> Capabilities {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn revoking_to_write_leaves_reading_and_revoking_to_read_leaves_nothing() {
        let all = caps("{ fs: [{ path: workspace, mode: rw }, { path: /data/a, mode: ro }], kv: true, tasks: true }");
        let less = |yaml: &str| all.less(&caps(yaml)).to_string();
        assert_eq!(
            less("{ fs: [{ path: workspace, mode: rw }], kv: true }"),
            r#"fs: [{ path: workspace, mode: ro }, { path: "/data/a", mode: ro }], tasks: true"#
        );
        assert_eq!(less("{ fs: [{ path: workspace, mode: ro }, { path: /data, mode: ro }] }"), "kv: true, tasks: true");
    }

    #[test]
    fn to_be_granted_reading_again_leaves_writing_revoked() {
        let still = |revoked: &str, granted: &str| caps(revoked).still_revoked(&caps(granted)).to_string();
        let (read, write) = ("{ fs: [{ path: workspace, mode: ro }] }", "{ fs: [{ path: workspace, mode: rw }] }");
        assert_eq!(still(read, read), "fs: [{ path: workspace, mode: rw }]");
        assert_eq!(still(write, read), "fs: [{ path: workspace, mode: rw }]");
        assert_eq!(still(read, write), "");
        assert_eq!(still("{ kv: true, env: [A, B] }", "{ env: [A] }"), r#"env: ["B"], kv: true"#);
    }

    proptest! {
        #[test]
        fn what_is_left_is_in_what_was_and_revoking_all_leaves_nothing(all in any_caps(), revoked in any_caps()) {
            let left = all.less(&revoked);
            // Nothing appears that was not there.
            prop_assert!(left.env.iter().all(|name| all.env.contains(name)));
            prop_assert!(!left.kv || all.kv);
            for rule in &left.fs {
                prop_assert!(all.fs.iter().any(|was| was.path == rule.path && was.mode >= rule.mode));
            }
            // Revoked twice is revoked once, and what was revoked is gone.
            prop_assert_eq!(left.less(&revoked), left.clone());
            prop_assert!(!(revoked.kv && left.kv));
            let read_only = all.fs.iter().map(|rule| FsRule { mode: FsMode::Ro, ..rule.clone() }).collect();
            let everything = Capabilities { fs: read_only, ..all.clone() };
            prop_assert!(all.less(&everything).is_empty());
            // What was granted again in full holds again.
            prop_assert_eq!(all.less(&revoked.still_revoked(&all)).to_string(), all.to_string());
        }
    }
}
