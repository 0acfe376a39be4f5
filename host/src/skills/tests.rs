//! Hot reload, what it costs, and what a session sees.

use super::*;
use crate::prompt::{Language, Texts};
use crate::store::{NewSession, Store};
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A home with its store, a workspace, and a clock that is moved by hand.
struct Place {
    folder: TempDir,
    registry: Arc<Registry>,
    store: Arc<Store>,
    now: Arc<Mutex<Timestamp>>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        let root = |path, owner, within| Root { path, owner, within };
        let workspace = at("workspace");
        fs::create_dir_all(&workspace).unwrap();
        let roots = vec![
            root(at("shipped"), Owner::Shipped, None),
            root(at("user"), Owner::User, None),
            root(workspace.join(".astrarium/skills"), Owner::Workspace, Some(workspace.clone())),
        ];
        let store = Arc::new(Store::open(&at("astrarium.db")).unwrap());
        let now = Arc::new(Mutex::new("2026-01-01T00:00:00Z".parse().unwrap()));
        Self { registry: Arc::new(Registry::new(roots)), store, now, folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn skill(&self, name: &str, more: &str) -> PathBuf {
        self.put(&format!("user/{name}/SKILL.md"), &skill(name, more))
    }

    fn changed(&self, paths: &[&Path]) -> Vec<String> {
        let paths = paths.iter().map(|path| path.to_path_buf()).collect();
        self.registry.apply(&Changes { paths, all: false })
    }

    fn session(&self) -> String {
        self.store.create_session(&NewSession { model: "m", workspace: "w", title: "t" }).unwrap()
    }

    fn view(&self, session: &str) -> SkillSession {
        let now = self.now.clone();
        SkillSession::open(Parts {
            registry: self.registry.clone(),
            store: self.store.clone(),
            session: session.into(),
            workspace: self.at("workspace"),
            clock: Arc::new(move || *now.lock().unwrap()),
            texts: en(),
        })
        .unwrap()
    }

    fn hours_pass(&self, hours: i64) {
        let mut now = self.now.lock().unwrap();
        *now = now.checked_add(SignedDuration::from_hours(hours)).unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.registry.snapshot().skills().map(|live| live.skill.name.clone()).collect()
    }
}

fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\n{more}---\nDo {name}.\n")
}

fn load(view: &SkillSession, name: &str) -> Option<String> {
    match view.load(name, None, None, Asker::Model("c")).unwrap() {
        Loading::Inline { text, .. } => text,
        Loading::Fork(_) => panic!("{name} forks"),
    }
}

fn en() -> Texts {
    Texts::built_in(Language::En)
}

#[test]
fn one_edited_skill_among_two_thousand_costs_one_file() {
    let place = Place::new();
    for n in 0..2_000 {
        place.put(&format!("user/group-{}/skill-{n}/SKILL.md", n % 20), &skill(&format!("skill-{n}"), ""));
    }
    assert_eq!(place.registry.refresh(), Vec::<String>::new());
    let before = place.registry.work();
    assert_eq!((before.files, place.names().len()), (2_000, 2_000));
    let file = place.put("user/group-7/skill-1007/SKILL.md", &skill("skill-1007", "version: 1.10\n"));
    // What an editor leaves beside the file costs nothing, and the skill's resources neither.
    let beside = place.put("user/group-7/skill-1007/SKILL.md~", "x");
    let resource = place.put("user/group-7/skill-1007/scripts/plot.py", "x");
    assert_eq!(place.changed(&[&file, &beside, &resource]), ["skill skill-1007 has changed to version 1.10"]);
    let after = place.registry.work();
    assert_eq!((after.files - before.files, after.folders - before.folders), (1, 1));
    // Looking at all of them reads none that is the same.
    assert_eq!(place.registry.refresh(), Vec::<String>::new());
    assert_eq!(place.registry.work().files, after.files);
}

#[test]
fn a_bad_edit_keeps_the_last_good_version_and_says_so() {
    let place = Place::new();
    let file = place.skill("fits", "");
    place.skill("other", "");
    place.registry.refresh();
    for bad in ["", "---\nname: fits\n---\nbody\n", "---\nname: fits\ndescription: d\n---\n"] {
        fs::write(&file, bad).unwrap();
        let said = place.changed(&[&file]);
        assert!(said.len() == 1 && said[0].contains("the version before goes on"), "{bad:?}: {said:?}");
        let snapshot = place.registry.snapshot();
        assert_eq!(snapshot.get("fits").unwrap().skill.body, "Do fits.");
        assert!(snapshot.get("fits").unwrap().error.is_some());
        // Each bad text is another one, and is said; the same one again is not.
        assert_eq!(place.changed(&[&file]), Vec::<String>::new());
        fs::write(&file, skill("fits", "")).unwrap();
        place.changed(&[&file]);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(place.changed(&[&file])[0].contains("regular file"), "and hides no other");
    assert_eq!(place.names(), ["fits", "other"]);
}

#[test]
fn folders_come_move_and_go() {
    let place = Place::new();
    place.registry.refresh();
    let file = place.skill("a", "");
    // The root itself is new.
    assert_eq!(place.changed(&[&place.at("user")]), Vec::<String>::new());
    assert_eq!(place.names(), ["a"]);
    fs::create_dir(place.at("user/group")).unwrap();
    fs::rename(place.at("user/a"), place.at("user/group/a")).unwrap();
    let said = place.changed(&[&place.at("user/a"), &place.at("user/group/a")]);
    assert_eq!(said, ["skill a has changed"], "it lies elsewhere");
    assert!(!file.exists());
    place.put("user/group/b/SKILL.md", &skill("b", ""));
    assert_eq!(place.changed(&[&place.at("user/group/b")]), ["skill b is new"]);
    place.put("user/group/.git/c/SKILL.md", &skill("c", ""));
    place.put("user/group/b/examples/d/SKILL.md", &skill("d", ""));
    assert_eq!(
        place.changed(&[&place.at("user/group/.git/c"), &place.at("user/group/b/examples/d")]),
        Vec::<String>::new()
    );
    // A skill around others takes them for its own.
    place.put("user/group/SKILL.md", &skill("group", ""));
    let said = place.changed(&[&place.at("user/group/SKILL.md")]);
    assert_eq!(said, ["skill group is new", "skill a is gone", "skill b is gone"]);
    fs::remove_file(place.at("user/group/SKILL.md")).unwrap();
    place.changed(&[&place.at("user/group/SKILL.md")]);
    assert_eq!(place.names(), ["a", "b"]);
    fs::remove_dir_all(place.at("user/group")).unwrap();
    assert_eq!(place.changed(&[&place.at("user/group")]), ["skill a is gone", "skill b is gone"]);
}

#[test]
fn nearer_skills_win_and_give_way_again() {
    let place = Place::new();
    place.put("shipped/fits/SKILL.md", &skill("fits", ""));
    place.skill("FITS", "version: 2\n");
    let near = place.put("workspace/.astrarium/skills/x/SKILL.md", &skill("fits", "version: 3\n"));
    let said = place.registry.refresh();
    assert_eq!(said.iter().filter(|line| line.contains("takes the place of")).count(), 2, "{said:?}");
    let version = || place.registry.snapshot().get("Fits").unwrap().skill.version.clone();
    assert_eq!(version().as_deref(), Some("3"));
    fs::remove_file(&near).unwrap();
    place.changed(&[&near]);
    assert_eq!(version().as_deref(), Some("2"));
    place.skill("twin", "version: 9\n");
    fs::write(place.at("user/twin/SKILL.md"), skill("fits", "version: 9\n")).unwrap();
    let said = place.changed(&[&place.at("user/twin/SKILL.md")]);
    assert!(said.iter().any(|line| line.contains("has the name of")), "{said:?}");
    assert_eq!(version().as_deref(), Some("2"), "the first path counts");
}

#[test]
fn the_order_is_that_of_use_and_fixed_for_the_epoch() {
    let place = Place::new();
    for name in ["a", "b", "c", "d"] {
        place.skill(name, "");
    }
    place.registry.refresh();
    let view = place.view(&place.session());
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.names(), ["a", "b", "c", "d"]);
    // ln 4 × 1/4 = 0.35 for b after two weeks, ln 2 = 0.69 for d now.
    for _ in 0..3 {
        load(&view, "b");
    }
    place.hours_pass(336);
    load(&view, "d");
    assert_eq!(view.names(), ["a", "b", "c", "d"], "within the epoch");
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.names(), ["d", "b", "a", "c"]);
    place.hours_pass(-1_000);
    load(&view, "b");
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.names(), ["b", "d", "a", "c"], "a clock that went back makes no use older");
    assert!(view.layer_one(&en(), 200_000).contains("- b: about b\n- d: about d\n- a: about a"));
}

#[test]
fn activation_belongs_to_the_session_and_outlives_reloads() {
    let place = Place::new();
    let file = place.skill("tex", "paths: \"*.tex\"\n");
    place.skill("kept", "paths: \"*.tex\"\ndisable-model-invocation: true\n");
    place.registry.refresh();
    let (one, two) = (place.session(), place.session());
    let (view, other) = (place.view(&one), place.view(&two));
    for view in [&view, &other] {
        view.begin_epoch(Language::En).unwrap();
        assert_eq!(view.names(), Vec::<String>::new());
    }
    let refusal = view.load("tex", None, None, Asker::Model("c")).unwrap_err();
    assert!(refusal.to_string().contains("*.tex"), "{refusal}");
    assert_eq!(view.touched("paper/main.txt").unwrap(), Vec::<String>::new());
    assert_eq!(view.touched("../paper/main.tex").unwrap(), Vec::<String>::new());
    assert_eq!(view.touched("/elsewhere/main.tex").unwrap(), Vec::<String>::new());
    assert_eq!(view.touched("./paper/main.tex").unwrap(), ["tex"]);
    assert_eq!(view.touched("paper/main.tex").unwrap(), Vec::<String>::new());
    let news = view.news(&en()).unwrap();
    assert!(news.len() == 1 && news[0].contains("- [brought out by a file] tex: about tex"), "{news:?}");
    assert_eq!(view.news(&en()).unwrap(), Vec::<String>::new());
    fs::write(&file, skill("tex", "paths: \"*.tex\"\nversion: 2\n")).unwrap();
    place.changed(&[&file]);
    assert_eq!(view.names(), ["tex"], "after a reload");
    assert_eq!(place.view(&one).names(), ["tex"], "after a restart");
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.names(), ["tex"], "after a compaction");
    assert_eq!(other.names(), Vec::<String>::new(), "in no other session");
    assert_eq!(other.news(&en()).unwrap(), Vec::<String>::new());
    assert!(view.load("kept", None, None, Asker::Model("c")).is_err(), "an author's explicit setting wins");
    let absolute = place.at("workspace/a.tex");
    assert_eq!(other.touched(absolute.to_str().unwrap()).unwrap(), ["tex"]);
}

#[test]
fn a_body_stands_in_a_conversation_once() {
    let place = Place::new();
    let file = place.skill("fits", "");
    place.registry.refresh();
    let session = place.session();
    let view = place.view(&session);
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(load(&view, "fits").as_deref(), Some("Do fits."));
    assert_eq!(load(&view, "FITS"), None);
    assert_eq!(load(&place.view(&session), "fits"), None, "after a restart");
    assert_eq!(load(&place.view(&place.session()), "fits").as_deref(), Some("Do fits."));
    let expected = Restorable { name: "fits".into(), text: "Do fits.".into(), call: Some("c".into()) };
    assert_eq!(view.restorable(), [expected]);
    view.look_again(|loaded| loaded.text == "Do fits.").unwrap();
    assert_eq!(load(&view, "fits"), None, "it was restored");
    view.look_again(|_| false).unwrap();
    assert!(load(&view, "fits").is_some() && view.restorable().len() == 1);
    fs::write(&file, skill("fits", "version: 2\n").replace("Do fits", "Do fits well")).unwrap();
    place.changed(&[&file]);
    let news = view.news(&en()).unwrap();
    assert!(news.len() == 1 && news[0].contains("- fits: its loaded text has changed"), "{news:?}");
    assert_eq!(load(&view, "fits").as_deref(), Some("Do fits well."));
    assert_eq!(view.news(&en()).unwrap(), Vec::<String>::new());
}

#[test]
fn news_are_told_once_and_bounded() {
    let place = Place::new();
    let file = place.skill("a", "");
    place.skill("b", "");
    place.skill("quiet", "user-invocable: false\n");
    place.registry.refresh();
    let view = place.view(&place.session());
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.names(), ["a", "b", "quiet"]);
    assert!(!view.layer_one(&en(), 200_000).contains("quiet"));
    assert_eq!(view.news(&en()).unwrap(), Vec::<String>::new());
    fs::write(&file, skill("a", "when_to_use: Often\n")).unwrap();
    fs::remove_dir_all(place.at("user/b")).unwrap();
    let c = place.skill("c", "");
    place.changed(&[&file, &place.at("user/b"), &c]);
    let news = view.news(&Texts::built_in(Language::Zh)).unwrap().join("");
    for line in ["- [已修改] a: about a - Often", "- [新增] c: about c", "- [不再可用] b"] {
        assert!(news.contains(line), "{line}: {news}");
    }
    for n in 0..30 {
        place.skill(&format!("n{n}"), "");
    }
    place.registry.refresh();
    let news = view.news(&en()).unwrap().join("");
    assert!(news.lines().count() < 25 && news.contains("and 10 more"), "{news}");
    assert_eq!(view.news(&en()).unwrap(), Vec::<String>::new());
}

#[test]
fn who_may_load_what() {
    let place = Place::new();
    place.skill("fork", "context: fork\nallowed-tools: run_bash\nmodel: haiku\neffort: low\nagent: plotter\n");
    place.skill("person", "disable-model-invocation: true\n");
    place.skill("model", "user-invocable: false\n");
    place.registry.refresh();
    let view = place.view("");
    let refused = |name, asker| view.load(name, None, None, asker).unwrap_err().to_string();
    assert!(refused("persons", Asker::Model("c")).contains("there is no skill \"persons\""));
    assert!(refused("person", Asker::Model("c")).contains("/person"));
    assert!(refused("model", Asker::Person).contains("user-invocable"));
    assert!(view.load("person", None, None, Asker::Person).is_ok());
    let fork = |steps, arguments| match view.load("fork", arguments, steps, Asker::Model("c")).unwrap() {
        Loading::Fork(fork) => fork,
        Loading::Inline { .. } => panic!("it forks"),
    };
    assert_eq!([fork(None, None).max_steps, fork(Some(0), None).max_steps, fork(Some(99), None).max_steps], [5, 1, 10]);
    assert_eq!(fork(None, None).task, "about fork");
    let fork = fork(None, Some("M 31"));
    assert_eq!(fork.task, "M 31");
    assert!(
        fork.instructions.starts_with("Do fork.\n\nARGUMENTS: M 31\n\nEffort wanted: low"),
        "{}",
        fork.instructions
    );
    assert_eq!(fork.live.skill.allowed_tools, ["run_bash"]);
    assert!(
        view.restorable().iter().all(|loaded| loaded.name == "person"),
        "a fork leaves nothing in the conversation"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editors_save_is_one_refresh_and_nothing_is_missed() {
    let place = Place::new();
    let (one, two) = (place.skill("one", ""), place.skill("two", ""));
    place.registry.refresh();
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let _guard = watch(place.registry.clone(), move |line| sender.send(line).unwrap()).unwrap();
    let before = place.registry.work().files;
    let save = |file: &Path, text: &str| {
        let beside = file.with_file_name(".SKILL.md.swp");
        fs::write(&beside, "half").unwrap();
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, file).unwrap();
        fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        fs::remove_file(file).unwrap();
        fs::write(file, text).unwrap();
    };
    save(&one, &skill("one", "version: 2\n"));
    assert_eq!(lines.recv().await.as_deref(), Some("skill one has changed to version 2"));
    save(&two, &skill("two", "version: 2\n"));
    assert_eq!(lines.recv().await.as_deref(), Some("skill two has changed to version 2"), "and nothing between");
    assert_eq!(place.registry.work().files - before, 2);
    // A workspace gets its first skill, in folders that were not there.
    place.put("workspace/.astrarium/skills/new/SKILL.md", &skill("new", ""));
    assert_eq!(lines.recv().await.as_deref(), Some("skill new is new"));
    // The same folder goes and comes back.
    fs::remove_dir_all(place.at("workspace/.astrarium")).unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("skill new is gone"));
    place.put("workspace/.astrarium/skills/again/SKILL.md", &skill("again", ""));
    assert_eq!(lines.recv().await.as_deref(), Some("skill again is new"));
    let file = place.put("workspace/.astrarium/skills/again/SKILL.md", &skill("again", "version: 2\n"));
    assert_eq!(lines.recv().await.as_deref(), Some("skill again has changed to version 2"));
    fs::remove_file(file).unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("skill again is gone"));
}

#[test]
fn a_skill_that_stands_in_no_list_is_told_when_it_comes() {
    let place = Place::new();
    place.skill("tex", "paths: \"*.tex\"\nuser-invocable: false\n");
    place.registry.refresh();
    let id = place.session();
    let view = place.view(&id);
    view.begin_epoch(Language::En).unwrap();
    assert_eq!(view.touched("paper/main.tex").unwrap(), ["tex"]);
    let news = view.news(&en()).unwrap().concat();
    assert!(news.contains("- [brought out by a file] tex: about tex"), "{news}");
    let late = place.skill("late", "user-invocable: false\n");
    place.changed(&[&late]);
    let news = view.news(&en()).unwrap().concat();
    assert!(news.contains("- [new] late: about late"), "{news}");
    assert!(!view.layer_one(&en(), 200_000).contains("late"), "and stands in no list all the same");
}

#[test]
fn an_edit_that_loses_the_frontmatter_keeps_what_the_author_decided() {
    let place = Place::new();
    let file = place.put("user/nod/SKILL.md", "---\ndisable-model-invocation: true\n---\nDo it.\n");
    place.registry.refresh();
    fs::write(&file, "--\ndisable-model-invocation: true\n---\nDo it.\n").unwrap();
    let told = place.changed(&[&file]).join("\n");
    assert!(told.contains("it lost its frontmatter; the version before goes on"), "{told}");
    assert!(place.registry.snapshot().get("nod").unwrap().skill.disable_model_invocation);
}

#[test]
fn what_is_odd_in_a_file_is_told_with_its_line_when_it_is_saved() {
    let place = Place::new();
    let file = place.skill("odd", "");
    place.registry.refresh();
    fs::write(&file, skill("odd", "context: spoon\n")).unwrap();
    let told = place.changed(&[&file]);
    let line = told.iter().find(|line| line.contains("spoon")).unwrap_or_else(|| panic!("{told:?}"));
    assert!(line.starts_with(&format!("{}:", file.display())), "{line}");
}
