//! What guests may not do to a host, beside exhausting it (`containment.rs`): outlive a cancel, leave the workspace, reach
//! the operator's files, or be troubled by odd ones.

use astrarium::host::Host;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, call, resident};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const CONFIG: &str = "
language: en
grants:
  - { plugin: hostile, fs: [{ path: workspace, mode: rw }] }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_a_guest_that_spins_or_sleeps() {
    let place = Place::bare();
    place.plugin("hostile").config(CONFIG);
    let host = Arc::new(place.host().await);
    for tool in ["spin", "sleep"] {
        let cancel = CancellationToken::new();
        let running = tokio::spawn({
            let (host, cancel) = (host.clone(), cancel.clone());
            async move { call(&host, tool, json!({}), &cancel).await }
        });
        while host.registry.runtime().running_calls() == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        let finished = running.await.expect("the call ends");
        assert!(text_of(&finished.parts).contains("cancel"), "{tool}: {finished:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workspace_has_no_way_out() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    place.file("inside.txt", "inside").config("language: en\n");
    let link = place.workspace().join("link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.txt"), place.workspace().join("file-link")).unwrap();
    let host = place.host().await;
    let never = CancellationToken::new();
    let outside_path = outside.path().join("secret.txt").display().to_string();
    let paths = [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "link/secret.txt",
        "file-link",
        "C:x",
        "inside.txt:stream",
        "",
        outside_path.as_str(),
    ];
    for path in paths {
        for (tool, input) in [
            ("read_file", json!({ "path": path })),
            ("file_edit", json!({ "path": path, "old_text": "secret", "new_text": "open" })),
            ("grep_files", json!({ "path": path, "pattern": "secret" })),
        ] {
            let finished = call(&host, tool, input, &never).await;
            let text = text_of(&finished.parts);
            assert_ne!(finished.status, CallStatus::Ok, "{tool} {path:?}: {text}");
            assert!(!text.contains("secret\n") && text.lines().count() == 1, "{tool} {path:?}: {text}");
        }
        let finished = call(&host, "file_write", json!({ "path": path, "content": "x" }), &never).await;
        assert_ne!(finished.status, CallStatus::Ok, "file_write {path:?}: {}", text_of(&finished.parts));
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret.txt")).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    let real = place.workspace().canonicalize().unwrap().join("inside.txt").display().to_string();
    let finished = call(&host, "read_file", json!({ "path": real }), &never).await;
    assert_eq!(finished.status, CallStatus::Ok, "the workspace's own absolute paths are understood: {finished:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_files_are_answered_with_a_plain_line() {
    let place = Place::new();
    place.file("binary.dat", [0u8, 1, 2, 255, 0]).file("latin1.txt", b"caf\xe9\n").config("language: en\n");
    fs::create_dir(place.workspace().join("folder")).unwrap();
    let huge = fs::File::create(place.workspace().join("huge.txt")).unwrap();
    // Sparse, so that it costs no disk: what matters is that nobody reads two gigabytes.
    huge.set_len(2 << 30).unwrap();
    let host = place.host().await;
    let never = CancellationToken::new();
    let read = async |path: &str| call(&host, "read_file", json!({ "path": path }), &never).await;
    let folder = read("folder").await;
    assert!(folder.status == CallStatus::Failed && text_of(&folder.parts).contains("glob_files"), "{folder:?}");
    let binary = text_of(&read("binary.dat").await.parts);
    assert!(binary.contains("binary"), "{binary}");
    let latin = text_of(&read("latin1.txt").await.parts);
    assert!(latin.contains("caf") && latin.contains("UTF-8"), "{latin}");
    let before = resident();
    let huge = text_of(&read("huge.txt").await.parts);
    assert!(huge.contains("binary") || huge.contains("cut"), "{huge}");
    assert!(resident() - before < 64, "the file was read whole");
    let absent = text_of(&read("absent.txt").await.parts);
    assert!(absent.contains("absent.txt"), "{absent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_covers_home_config_and_plugins_does_not_open_them() {
    let place = Place::new();
    place.plugin("echo").config("language: en\n");
    let mut options = place.options();
    options.workspace = place.home().parent().unwrap().to_owned();
    std::os::unix::fs::symlink(place.home(), options.workspace.join("link")).unwrap();
    fs::write(options.workspace.join("plain.txt"), "plain").unwrap();
    let host = Host::open(options).await.unwrap();
    let never = CancellationToken::new();
    let config = fs::read_to_string(place.home().join("astrarium.yaml")).unwrap();
    let grant = "grants:\n- { plugin: echo, kv: true }\n";
    for path in [
        "home/astrarium.yaml",
        "link/astrarium.yaml",
        "home/new.txt",
        "plugins/echo/plugin.yaml",
        "plugins/new/plugin.yaml",
    ] {
        let finished = call(&host, "file_write", json!({ "path": path, "content": grant }), &never).await;
        assert_ne!(finished.status, CallStatus::Ok, "{path}: {finished:?}");
        let finished = call(&host, "read_file", json!({ "path": path }), &never).await;
        assert_ne!(finished.status, CallStatus::Ok, "{path}: {finished:?}");
    }
    assert_eq!(fs::read_to_string(place.home().join("astrarium.yaml")).unwrap(), config);
    assert!(!place.plugins().join("new").exists());
    let finished = call(&host, "file_write", json!({ "path": "made/here.txt", "content": "x" }), &never).await;
    assert_eq!(finished.status, CallStatus::Ok, "{finished:?}");
    let found = call(&host, "grep_files", json!({ "pattern": "language|plain" }), &never).await;
    let text = text_of(&found.parts);
    assert!(text.contains("plain.txt:1:plain") && !text.contains("language"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_the_workspace_does_not_walk_around_the_guard() {
    let place = Place::new();
    place.file(".git/config", "[core]\n").file("plain/a.txt", "a\n").config("language: en\n");
    std::os::unix::fs::symlink(".git", place.workspace().join("docs")).unwrap();
    std::os::unix::fs::symlink(".env", place.workspace().join("notes.txt")).unwrap();
    let host = place.host().await;
    let never = CancellationToken::new();
    for path in ["docs/hooks/pre-commit", "docs/config", "notes.txt"] {
        let finished = call(&host, "file_write", json!({ "path": path, "content": "x" }), &never).await;
        assert_ne!(finished.status, CallStatus::Ok, "{path}: {finished:?}");
        assert!(text_of(&finished.parts).contains("link"), "{path}: {finished:?}");
    }
    assert!(!place.workspace().join(".env").exists());
    assert_eq!(place.text(".git/config"), "[core]\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_file_keeps_its_permissions_and_a_read_only_one_is_left_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.config("language: en\n");
    for (name, mode) in [("secret", 0o600), ("tool.sh", 0o755), ("fixed", 0o444)] {
        place.file(name, "#!/bin/sh\necho old\n");
        fs::set_permissions(place.workspace().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let host = place.host().await;
    let never = CancellationToken::new();
    for (name, mode) in [("secret", 0o600), ("tool.sh", 0o755)] {
        let edit = json!({ "path": name, "old_text": "old", "new_text": "new" });
        let finished = call(&host, "file_edit", edit, &never).await;
        assert_eq!(finished.status, CallStatus::Ok, "{name}: {finished:?}");
        assert_eq!(place.text(name), "#!/bin/sh\necho new\n");
        let now = fs::metadata(place.workspace().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(now, mode, "{name}");
    }
    let finished = call(&host, "file_write", json!({ "path": "fixed", "content": "x" }), &never).await;
    assert_eq!(finished.status, CallStatus::Failed, "{finished:?}");
    assert!(text_of(&finished.parts).contains("read-only"), "{finished:?}");
    assert_eq!(place.text("fixed"), "#!/bin/sh\necho old\n");
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 3, "no temporary file is left");
}
