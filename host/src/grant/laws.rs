//! Laws of capability sets: what is left of a request is never more than was asked for, nor more than was granted.

use super::{Capabilities, FsMode, FsRule, Root};
use proptest::prelude::*;

/// Small sets, so that two of them meet often.
pub(super) fn any_caps() -> impl Strategy<Value = Capabilities> {
    let root = prop_oneof![
        Just(Root::Workspace),
        Just(Root::Library),
        Just(Root::Session),
        "/[ab](/[ab])?".prop_map(|path| Root::Folder(path.into())),
        Just(Root::Folder("/a/../b".into())),
    ];
    let mode = prop_oneof![Just(FsMode::Ro), Just(FsMode::Rw)];
    let rules = proptest::collection::vec((root, mode).prop_map(|(path, mode)| FsRule { path, mode }), 0..4);
    let origin =
        prop_oneof![Just("https://a.org"), Just("https://*.a.org"), Just("https://b.a.org"), Just("https://*")];
    let http = proptest::collection::vec(origin, 0..3).prop_map(|origins| {
        let rules = origins.into_iter().map(|origin| format!("{{ origin: '{origin}' }}"));
        let yaml = format!("[{}]", rules.collect::<Vec<_>>().join(", "));
        serde_saphyr::from_str(&yaml).expect("the rules read")
    });
    let env = proptest::collection::vec("[AB]", 0..3);
    (rules, http, env, any::<bool>(), any::<bool>()).prop_map(|(fs, http, env, kv, tasks)| Capabilities {
        fs,
        http,
        env,
        kv,
        tasks,
        ..Capabilities::default()
    })
}

/// Whether `less` opens nothing that `more` does not.
fn within(less: &Capabilities, more: &Capabilities) -> bool {
    let folder = |rule: &FsRule| more.fs.iter().any(|other| other.path.covers(&rule.path) && other.mode >= rule.mode);
    less.fs.iter().all(folder)
        && less.http.iter().all(|rule| rule.is_covered(&more.http))
        && less.env.iter().all(|name| more.env.contains(name))
        && (!less.kv || more.kv)
        && (!less.tasks || more.tasks)
}

proptest! {
    #[test]
    fn what_is_left_is_within_the_request_and_within_the_grant(asked in any_caps(), granted in any_caps()) {
        let left = asked.meet(&granted);
        prop_assert!(within(&left, &granted), "{left} of {granted}");
        for rule in &left.fs {
            prop_assert!(asked.fs.iter().any(|was| was.path == rule.path && was.mode >= rule.mode));
        }
        prop_assert!(left.http.iter().all(|rule| rule.is_covered(&asked.http)), "{left} of {asked}");
        prop_assert!(left.env.iter().all(|name| asked.env.contains(name)));
        prop_assert!((!left.kv || asked.kv) && (!left.tasks || asked.tasks));
    }

    #[test]
    fn nothing_granted_leaves_nothing_and_more_granted_leaves_no_less(asked in any_caps(), a in any_caps(), b in any_caps()) {
        prop_assert!(asked.meet(&Capabilities::default()).is_empty());
        let (one, both) = (asked.meet(&a), asked.meet(&a.clone().join(&b)));
        for rule in &one.fs {
            prop_assert!(both.fs.iter().any(|other| other.path == rule.path && other.mode >= rule.mode), "{one} {both}");
        }
        prop_assert!(one.env.iter().all(|name| both.env.contains(name)) && (!one.kv || both.kv));
    }

    #[test]
    fn what_was_granted_whole_is_not_missed_and_what_is_missed_was_asked_for(asked in any_caps(), granted in any_caps()) {
        let missing = asked.missing(&asked.meet(&granted));
        prop_assert!(missing.fs.iter().all(|rule| asked.fs.contains(rule)));
        prop_assert!(missing.env.iter().all(|name| asked.env.contains(name)));
        // A path with `..` in it is granted by nobody.
        let plain = Capabilities { fs: asked.fs.iter().filter(|rule| rule.path.covers(&rule.path)).cloned().collect(), ..asked };
        let best = plain.meet(&plain.clone().join(&granted));
        prop_assert!(plain.missing(&best).fs.is_empty() || plain.fs.len() > 1, "{plain} {best}");
        prop_assert!(plain.missing(&best).http.is_empty() && plain.missing(&best).env.is_empty());
    }

    #[test]
    fn the_line_that_would_grant_reads_as_what_it_says(asked in any_caps()) {
        let read: Capabilities = serde_saphyr::from_str(&format!("{{ {asked} }}")).expect("it reads");
        prop_assert_eq!(read, asked);
    }
}
