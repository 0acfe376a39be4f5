//! Files, variables and keys: what a guest has by grant, and every way out of it that is known, tried by a real component.

use astrarium::host::Host;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, copy, guests};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// A host with the guest `burglar`, which asks for `capabilities` and is granted them.
async fn host(place: &Place, capabilities: &str, more: &str) -> Host {
    place.plugin("burglar");
    let manifest = format!("name: burglar\nversion: 0.1.0\nrequests: {{ {capabilities} }}\n");
    fs::write(place.plugins().join("burglar/plugin.yaml"), manifest).unwrap();
    place.config(&format!("language: en\n{more}\ngrants:\n  - {{ plugin: burglar, {capabilities} }}\n"));
    let host = place.host().await;
    assert!(host.problems.is_empty(), "{:?}", host.problems);
    host
}

async fn ask(host: &Host, tool: &str, input: Value) -> Result<String, String> {
    let finished = call(host, tool, input, &CancellationToken::new()).await;
    let text = text_of(&finished.parts);
    match finished.status {
        CallStatus::Ok => Ok(text),
        _ => Err(text),
    }
}

async fn attempt(host: &Host, how: &str, path: &str, to: &str) -> Result<String, String> {
    ask(host, "try", json!({ "how": how, "path": path, "to": to })).await
}

/// What is in a folder and below it, with the contents: to be compared with what was there before.
fn picture(folder: &Path) -> Vec<(String, Vec<u8>, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, meta) = (entry.path(), fs::symlink_metadata(entry.path()).unwrap());
            let modified = meta.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path.display().to_string(), content, modified));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Everything that changes a path.
const CHANGES: [&str; 13] = [
    "write",
    "append",
    "create",
    "truncate",
    "read_write",
    "shrink",
    "touch",
    "age",
    "scribble",
    "mkdir",
    "unlink",
    "rmdir",
    "rmtree",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_leads_out_of_the_granted_folder() {
    let place = Place::bare();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "the-secret").unwrap();
    fs::create_dir(outside.path().join("empty")).unwrap();
    place.file("inside.txt", "inside").file("folder/x.txt", "x");
    let links = [
        ("to-folder", outside.path().to_owned()),
        ("to-file", outside.path().join("secret.txt")),
        ("to-new", outside.path().join("new.txt")),
        ("to-root", "/".into()),
        ("up", "..".into()),
        ("folder/up-up", "../..".into()),
        ("loop", "loop".into()),
    ];
    for (name, target) in &links {
        std::os::unix::fs::symlink(target, place.workspace().join(name)).unwrap();
    }
    let host = host(&place, "fs: [{ path: workspace, mode: rw }]", "").await;
    let (before, own) = (picture(outside.path()), picture(&place.workspace()));
    let out = outside.path().display().to_string();
    let name = place.workspace().file_name().unwrap().to_string_lossy().into_owned();
    let paths = [
        format!("{out}/secret.txt"),
        format!("{out}/new.txt"),
        "/etc/passwd".into(),
        "/".into(),
        "/workspace/..".into(),
        "/workspace/../home/astrarium.yaml".into(),
        "/workspace/folder/../../home/astrarium.yaml".into(),
        format!("/workspace/../{name}/inside.txt"),
        format!("/workspace/./.././{name}/inside.txt"),
        "/workspace/to-folder".into(),
        "/workspace/to-folder/".into(),
        "/workspace/to-folder/.".into(),
        "/workspace/to-folder/secret.txt".into(),
        "/workspace/to-folder/new.txt".into(),
        "/workspace/to-folder/empty".into(),
        "/workspace/to-file".into(),
        "/workspace/to-file/".into(),
        "/workspace/to-new".into(),
        "/workspace/to-new/".into(),
        "/workspace/to-root/etc/passwd".into(),
        "/workspace/up/home/astrarium.yaml".into(),
        "/workspace/folder/up-up/home/astrarium.yaml".into(),
        "/workspace/loop".into(),
        "/workspace/loop/x".into(),
        "/workspace/C:inside.txt".into(),
        "/workspace/C:/inside.txt".into(),
        "C:\\inside.txt".into(),
        "/workspace/inside.txt:stream".into(),
        "/workspace/inside.txt::$DATA".into(),
        "/workspace/\\\\?\\C:\\x".into(),
        "/workspace/x\0y".into(),
        "".into(),
    ];
    for path in &paths {
        for how in ["read", "list", "stat"].iter().chain(&CHANGES) {
            // A link is the guest's own, and may be removed; what it leads to stays.
            if ["unlink", "rmtree"].contains(how) && links.iter().any(|(name, _)| path.ends_with(name)) {
                continue;
            }
            let answer = attempt(&host, how, path, "").await;
            assert!(answer.is_err(), "{how} {path:?}: {answer:?}");
            let text = answer.unwrap_err();
            assert!(!text.contains("the-secret") && text.lines().count() <= 1, "{how} {path:?}: {text}");
        }
        for (how, from, to) in [
            ("rename", "/workspace/inside.txt", path.as_str()),
            ("rename", path, "/workspace/taken"),
            ("link", path, "/workspace/taken"),
            ("link", "/workspace/inside.txt", path),
            ("copy", path, "/workspace/taken"),
            ("copy", "/workspace/inside.txt", path),
            ("symlink", path, "/workspace/named"),
        ] {
            if how == "rename" && links.iter().any(|(name, _)| path.ends_with(name)) {
                continue;
            }
            let answer = attempt(&host, how, from, to).await;
            assert!(answer.is_err(), "{how} {from:?} {to:?}: {answer:?}");
        }
        assert!(!place.workspace().join("named").is_symlink(), "{path:?}");
    }
    assert_eq!(picture(outside.path()), before);
    assert_eq!(picture(&place.workspace()), own);
    assert_eq!(attempt(&host, "read", "/workspace/inside.txt", "").await.as_deref(), Ok("inside"));
    assert!(attempt(&host, "read", "/workspace/inside.txt/", "").await.is_err(), "a file is no folder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_was_moved_while_it_was_held_leads_nowhere_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::bare();
    let outside = place.home().join("secret.txt");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fs::write(&outside, "the operator's").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
    place.file("folder/secret.txt", "its own").file("open.txt", "anyone's");
    fs::set_permissions(place.workspace().join("open.txt"), fs::Permissions::from_mode(0o666)).unwrap();
    let host = host(&place, "fs: [{ path: workspace, mode: rw }]", "").await;
    attempt(&host, "carry", "/workspace/folder", "../home").await.unwrap();
    assert_eq!(fs::read_link(place.workspace().join("folder")).unwrap(), Path::new("../home"), "the trap was set");
    assert_eq!(mode(&outside), 0o600);
    assert_eq!(place.text("open.txt"), "its own");
    assert_eq!(mode(&place.workspace().join("open.txt")), 0o666, "what takes a file's place keeps its mode");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_to_read_stays_as_it_is() {
    let place = Place::bare();
    let data = tempfile::tempdir().unwrap();
    let data = data.path().canonicalize().unwrap();
    fs::write(data.join("paper"), "as it was").unwrap();
    fs::create_dir_all(data.join("sub/empty")).unwrap();
    place.file("own.txt", "own");
    std::os::unix::fs::symlink(data.join("paper"), place.workspace().join("to-paper")).unwrap();
    let capabilities = format!("fs: [{{ path: workspace, mode: rw }}, {{ path: \"{}\", mode: ro }}]", data.display());
    let host = host(&place, &capabilities, "").await;
    let before = picture(&data);
    let at = |name: &str| format!("{}/{name}", data.display());
    assert_eq!(attempt(&host, "read", &at("paper"), "").await.as_deref(), Ok("as it was"));
    assert_eq!(attempt(&host, "list", &at(""), "").await.unwrap().lines().count(), 2);
    for path in ["paper", "paper/", "./paper", "sub/../paper", "sub", "sub/", "sub/empty", "new", "new/", "sub/new", ""]
    {
        for how in CHANGES {
            let answer = attempt(&host, how, &at(path), "").await;
            assert!(answer.is_err(), "{how} {path:?}: {answer:?}");
        }
        for (how, from, to) in [
            ("rename", at(path), at("moved")),
            ("rename", at(path), "/workspace/moved".into()),
            ("rename", "/workspace/own.txt".into(), at(path)),
            ("link", at(path), "/workspace/mine".into()),
            ("link", "/workspace/own.txt".into(), at(path)),
            ("symlink", at(path), "/workspace/named".into()),
            ("symlink", "paper".into(), at(path)),
            ("copy", "/workspace/own.txt".into(), at(path)),
        ] {
            let answer = attempt(&host, how, &from, &to).await;
            assert!(answer.is_err(), "{how} {from:?} {to:?}: {answer:?}");
        }
    }
    for how in CHANGES.into_iter().filter(|how| !["unlink", "rmtree"].contains(how)) {
        let answer = attempt(&host, how, "/workspace/to-paper", "").await;
        assert!(answer.is_err(), "{how} by a link: {answer:?}");
    }
    assert_eq!(picture(&data), before);
    assert_eq!(place.text("own.txt"), "own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_of_all_around_the_home_reaches_nothing_in_it() {
    let place = Place::bare();
    let around = place.home().parent().unwrap().canonicalize().unwrap();
    let host = host(&place, &format!("fs: [{{ path: \"{}\", mode: rw }}]", around.display()), "").await;
    let kept = |place: &Place| {
        let home = picture(&place.home()).into_iter().filter(|(path, ..)| !path.contains("astrarium.db"));
        (home.collect::<Vec<_>>(), picture(&place.plugins()))
    };
    let before = kept(&place);
    for path in
        ["home/astrarium.yaml", "home/new", "home", "home/plugins", "plugins/burglar/plugin.yaml", "plugins/new"]
    {
        let path = format!("{}/{path}", around.display());
        for how in CHANGES.iter().chain(&["read", "list"]) {
            let answer = attempt(&host, how, &path, "").await;
            assert!(answer.is_err(), "{how} {path:?}: {answer:?}");
        }
        let moved = attempt(&host, "rename", &path, &format!("{}/moved", around.display())).await;
        assert!(moved.is_err(), "{path:?}: {moved:?}");
    }
    assert_eq!(kept(&place), before);
    let beside = format!("{}/beside", around.display());
    attempt(&host, "create", &beside, "").await.unwrap();
    attempt(&host, "age", &beside, "").await.unwrap();
    let modified = fs::metadata(around.join("beside")).unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_says_it_changes_nothing_cannot() {
    let place = Place::bare();
    place.file("own.txt", "own").file("folder/x", "x");
    let host = host(&place, "fs: [{ path: workspace, mode: rw }]", "").await;
    let before = picture(&place.workspace());
    for path in ["/workspace/own.txt", "/workspace/new", "/workspace/folder"] {
        for how in CHANGES.iter().chain(&["rename", "link", "symlink", "copy"]) {
            let input = json!({ "how": how, "path": path, "to": "/workspace/other" });
            let answer = ask(&host, "try_reading", input).await;
            assert!(answer.is_err(), "{how} {path:?}: {answer:?}");
        }
    }
    assert_eq!(picture(&place.workspace()), before);
    let read = ask(&host, "try_reading", json!({ "how": "read", "path": "/workspace/own.txt" })).await;
    assert_eq!(read.as_deref(), Ok("own"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_grant_there_is_no_file_at_all() {
    let place = Place::bare();
    place.file("own.txt", "own");
    let host = host(&place, "kv: true", "").await;
    for path in ["/workspace/own.txt", "own.txt", "/", ".", "/etc/passwd"] {
        for how in ["read", "list", "stat", "write", "mkdir"] {
            let answer = attempt(&host, how, path, "").await;
            assert!(answer.is_err(), "{how} {path:?}: {answer:?}");
        }
    }
}

#[test]
fn a_guest_sees_the_variables_it_was_granted_and_no_other() {
    let place = Place::bare();
    place.plugin("burglar").config("grants:\n  - { plugin: burglar, env: [GIVEN, ABSENT, HIDDEN], kv: true }\n");
    let manifest = "name: burglar\nversion: 0.1.0\nrequests: { env: [GIVEN, ABSENT] }\n";
    fs::write(place.plugins().join("burglar/plugin.yaml"), manifest).unwrap();
    let mut command = place.command(&["tool", "call", "environment", "{}"]);
    command.env("GIVEN", "given").env("HIDDEN", "hidden").env("ANTHROPIC_API_KEY", "sk-hidden");
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let start = shown.find('{').unwrap_or_else(|| panic!("{output:?}"));
    let answer: Value = serde_json::Deserializer::from_str(&shown[start..]).into_iter().next().unwrap().unwrap();
    assert_eq!(answer["variables"], json!([["GIVEN", "given"]]));
    assert_eq!(answer["arguments"], json!([]), "not even the program's arguments");
    assert!(!shown.contains("hidden"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_has_a_quota_and_no_other_plugins_keys() {
    let place = Place::bare();
    place.plugin("echo");
    let more = "limits: { kv_bytes: 1000 }";
    let host = host(&place, "kv: true", more).await;
    let keys = async |how: &str, key: &str, bytes: usize| {
        ask(&host, "keys", json!({ "how": how, "key": key, "bytes": bytes })).await
    };
    let filled = keys("fill", "k", 98).await.unwrap();
    assert!(filled.starts_with("10 set, then: ") && filled.contains("over the quota of 1000 bytes"), "{filled}");
    assert_eq!(keys("list", "k", 0).await.unwrap().split(',').count(), 10);
    assert!(keys("set", "k0", 99).await.is_err(), "one byte more than there is room for");
    assert_eq!(keys("get", "k0", 0).await.as_deref(), Ok("98"), "and nothing has changed");
    assert_eq!(keys("set", "k0", 98).await.as_deref(), Ok(""), "the same again fits");
    assert_eq!(keys("delete", "k0", 0).await.as_deref(), Ok("true"));
    assert_eq!(keys("delete", "k0", 0).await.as_deref(), Ok("false"));
    assert_eq!(keys("set", "a", 99).await.as_deref(), Ok(""));
    assert!(keys("set", "b", 0).await.is_err(), "keys count too");
    for (how, key) in [("set", ""), ("set", "x".repeat(2_000).as_str())] {
        assert!(keys(how, key, 1).await.is_err(), "{how} {} bytes", key.len());
    }
    keys("delete", "a", 0).await.unwrap();
    assert_eq!(keys("count", "n", 0).await, Ok(i64::MAX.to_string()));
    assert!(keys("count", "n", 0).await.unwrap_err().contains("64-bit"), "a sum that does not fit is refused");
    assert!(keys("session", "x", 1).await.unwrap_err().contains("no session"));
    // The quota is each plugin's own, and so are the keys.
    let store = &host.store;
    let scope = astrarium::store::KvScope::Plugin;
    assert_eq!(store.kv_keys("echo", &scope, "").unwrap(), Vec::<String>::new());
    let quota = astrarium::store::Quota(1_000);
    store.kv_set("echo", &scope, "k1", b"mine", quota).unwrap();
    assert_eq!(keys("get", "k1", 0).await.as_deref(), Ok("98"));
    assert_eq!(store.kv_get("echo", &scope, "k1").unwrap().as_deref(), Some(&b"mine"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_link_of_the_operator_leads_to_is_kept_out_by_its_real_path_too() {
    let place = Place::new();
    // A plugin that is being written in the workspace, and files of the home that are kept there.
    copy(&guests().join("echo"), &place.workspace().join("dev/echo"));
    std::os::unix::fs::symlink(place.workspace().join("dev/echo"), place.plugins().join("echo")).unwrap();
    place.file("dotfiles/grants.yaml", "").file("papers/a.txt", "a").file("dev/notes.txt", "n");
    std::os::unix::fs::symlink(place.workspace().join("dotfiles/grants.yaml"), place.home().join("grants.yaml"))
        .unwrap();
    fs::create_dir_all(place.home()).unwrap();
    std::os::unix::fs::symlink(place.workspace().join("papers"), place.home().join("library")).unwrap();
    place.config("language: en\n");
    let host = place.host().await;
    let write = |path: &'static str| ask(&host, "file_write", json!({ "path": path, "content": "mine now" }));
    for path in ["dev/echo/plugin.yaml", "dev/echo/new.wasm", "dotfiles/grants.yaml"] {
        let refusal = write(path).await.unwrap_err();
        assert!(refusal.contains("forbid it"), "{path}: {refusal}");
        assert!(!place.workspace().join(path).exists() || !place.text(path).contains("mine now"), "{path}");
    }
    for path in ["dev/notes.txt", "dev/other/plugin.yaml", "papers/a.txt"] {
        write(path).await.unwrap_or_else(|refusal| panic!("{path}: {refusal}"));
    }
}
