//! Native programs: what a shell can do by grant, and what it cannot do however it tries.
//!
//! Everything here is true for root and for others, and in a container. Where the kernel has no Landlock the tests of
//! what it keeps out say so and are left out; that nothing runs there is then what is tested.
#![cfg(target_os = "linux")]

use astrarium::audit::{Entry, Kind};
use astrarium::capability::process::confinement;
use astrarium::host::Host;
use astrarium::store::AuditFilter;
use astrarium::tool_call::text_of;
use astrarium::transcript::CallStatus;
use astrarium_tests::place::{Place, Ran, call, play, share};
use astrarium_tests::web::{Web, answer};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A host with the guest `runner`, which asks for `rules` and is granted them.
async fn host(place: &Place, rules: &str, more: &str) -> Host {
    grant(place, rules, more);
    let host = place.host().await;
    assert!(host.problems.is_empty(), "{:?}", host.problems);
    host
}

fn grant(place: &Place, rules: &str, more: &str) {
    place.plugin("runner");
    let manifest = format!("name: runner\nversion: 0.1.0\nrequests:\n  process: {rules}\n");
    fs::write(place.plugins().join("runner/plugin.yaml"), manifest).unwrap();
    place.config(&format!("language: en\n{more}\ngrants:\n  - plugin: runner\n    process: {rules}\n"));
}

const BASH: &str = "[{ program: bash, fs: [{ path: workspace, mode: rw }] }]";

/// Whether the kernel confines files; says so where it does not.
fn has_landlock() -> bool {
    match confinement() {
        Ok(_) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// The number of Landlock's interface: later ones confine more.
fn landlock() -> u32 {
    let said = confinement().unwrap_or_default();
    said.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

async fn run(host: &Host, command: Value) -> (CallStatus, String) {
    let finished = call(host, "run", command, &CancellationToken::new()).await;
    (finished.status, text_of(&finished.parts))
}

/// What came of a shell command.
async fn shell(host: &Host, command: &str) -> Value {
    ran(host, json!({ "arguments": ["-c", command] })).await
}

async fn ran(host: &Host, command: Value) -> Value {
    let (status, text) = run(host, command.clone()).await;
    assert_eq!(status, CallStatus::Ok, "{command}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text<'a>(outcome: &'a Value, stream: &str) -> &'a str {
    outcome[stream].as_str().expect("a stream is a text")
}

/// Processes of this machine that were started with `word` as an argument.
fn started_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_works_in_the_workspace_with_a_clean_environment() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    place.file("data/a.txt", "one\ntwo\n");
    let host = host(&place, BASH, "").await;
    let outcome =
        shell(&host, "wc -l < data/a.txt; echo warn >&2; mkdir new && cp data/a.txt new/b && chmod +x new/b; exit 3")
            .await;
    assert_eq!((&outcome["status"], text(&outcome, "stdout").trim()), (&json!(3), "2"));
    assert_eq!(text(&outcome, "stderr"), "warn\n");
    assert_eq!(place.text("new/b"), "one\ntwo\n");
    let read =
        ran(&host, json!({ "arguments": ["-c", "cat; pwd"], "stdin": "from outside\n", "working_dir": "data" })).await;
    let folder = place.workspace().canonicalize().unwrap().join("data");
    assert_eq!(text(&read, "stdout"), format!("from outside\n{}\n", folder.display()));
    let env = shell(
        &host,
        "env | cut -d= -f1 | sort | tr '\\n' ' '; test \"$HOME\" = \"$TMPDIR\" && touch \"$HOME/x\" && echo own",
    )
    .await;
    assert_eq!(text(&env, "stdout"), "HOME LANG PATH PWD SHLVL TERM TMPDIR _ own\n");
    let gone = shell(&host, "echo $TMPDIR").await;
    assert!(!Path::new(text(&gone, "stdout").trim()).exists(), "its temporary folder goes with it");
    let piped =
        shell(&host, "diff <(seq 3) <(seq 3) && timeout 0.1 sleep 5; echo $?; sh -c 'kill -9 $$'; echo $?").await;
    assert_eq!(text(&piped, "stdout"), "124\n137\n", "{piped}");
    let script = shell(&host, "printf '#!/bin/sh\\necho ran\\n' > s && chmod +x s && ./s").await;
    assert_eq!(text(&script, "stdout"), "ran\n", "{script}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_no_rule_names_does_not_run() {
    let place = Place::bare();
    let rules = "[{ program: bash, arguments: ['-c', 'echo *'], fs: [{ path: workspace, mode: rw }] }]";
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.workspace().join("out")).unwrap();
    place.file("file", "");
    let host = host(&place, rules, "").await;
    for (command, words) in [
        (json!({ "program": "sh", "arguments": ["-c", "echo"] }), "no rule of runner names the program"),
        (json!({ "program": "/bin/bash", "arguments": ["-c", "echo a"] }), "no rule of runner names the program"),
        (json!({ "arguments": ["-c", "rm -rf /"] }), "allows the arguments"),
        (json!({ "arguments": [] }), "allows the arguments"),
        (json!({ "arguments": ["-c", "echo a", "b"] }), "allows the arguments"),
        (json!({ "arguments": ["-c", "echo a\0b"] }), "NUL"),
        (json!({ "arguments": ["-c", "echo a"], "timeout_ms": 0 }), "at least 1 ms"),
        (json!({ "arguments": ["-c", "echo a"], "working_dir": ".." }), "`..`"),
        (json!({ "arguments": ["-c", "echo a"], "working_dir": "/etc" }), "none of the granted folders"),
        (json!({ "arguments": ["-c", "echo a"], "working_dir": "out" }), "leads out of what is granted"),
        (json!({ "arguments": ["-c", "echo a"], "working_dir": "file" }), "is not there"),
        (json!({ "arguments": ["-c", "echo a"], "working_dir": "none" }), "is not there"),
    ] {
        let (status, text) = run(&host, command.clone()).await;
        assert_eq!(status, CallStatus::Failed, "{command}: {text}");
        assert!(text.contains(words) && text.lines().count() == 1, "{command}: {text}");
    }
    let (status, text) = run(&host, json!({ "arguments": ["-c", "echo a"] })).await;
    match confinement() {
        Ok(_) => assert_eq!(status, CallStatus::Ok, "{text}"),
        Err(_) => assert!(status == CallStatus::Failed && text.contains("without_landlock: allow"), "{text}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_reaches_no_file_but_those_of_its_grant() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    fs::write(&secret, "the-secret\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.workspace().join("link")).unwrap();
    place.file("own", "own\n");
    let host = host(&place, BASH, "").await;
    let config = fs::read_to_string(place.home().join("astrarium.yaml")).unwrap();
    let (home, plugins) = (place.home().display().to_string(), place.plugins().display().to_string());
    let cache = host.options.cache.display().to_string();
    let out = outside.path().display().to_string();
    let pid = std::process::id();
    for target in [
        format!("{home}/astrarium.yaml"),
        format!("{home}/new"),
        format!("{home}/plugins/new"),
        format!("{home}/astrarium.db"),
        format!("{plugins}/runner/plugin.yaml"),
        format!("{plugins}/new"),
        format!("{cache}/new"),
        format!("{out}/secret.txt"),
        format!("{out}/new"),
        "link/new".into(),
        "../new".into(),
        "/tmp/astrarium-test-new".into(),
        "/etc/astrarium-test-new".into(),
        "/usr/astrarium-test-new".into(),
        "/dev/astrarium-test-new".into(),
        "/dev/shm/astrarium-test-new".into(),
        format!("/proc/{pid}/cwd/new"),
        format!("/proc/self/root{out}/new"),
        format!("/proc/{pid}/mem"),
    ] {
        for command in [
            format!("echo stolen > '{target}'"),
            format!("echo stolen >> '{target}'"),
            format!("cp own '{target}'"),
            format!("mv own '{target}'"),
            format!("ln own '{target}'"),
            format!("truncate -s 0 '{target}'"),
            format!("mkdir '{target}'"),
            format!("rm -f '{target}' && test ! -e '{target}' && test '{target}' = '{home}/astrarium.yaml'"),
        ] {
            let outcome = shell(&host, &command).await;
            assert_ne!(outcome["status"], 0, "{command}: {outcome}");
        }
    }
    assert_eq!(fs::read_to_string(place.home().join("astrarium.yaml")).unwrap(), config);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the-secret\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(place.text("own"), "own\n");
    for path in [
        secret.display().to_string(),
        "link/secret.txt".into(),
        format!("/proc/self/root{}", secret.display()),
        format!("/proc/{pid}/root{}", secret.display()),
        format!("/proc/{pid}/environ"),
        format!("/proc/{pid}/maps"),
        format!("{home}/astrarium.yaml"),
        format!("{home}/astrarium.db"),
        "/etc/shadow".into(),
        "/proc/kcore".into(),
        "/dev/mem".into(),
    ] {
        let outcome = shell(
            &host,
            &format!(
                "head -c 10 '{path}'; ln '{path}' taken; ln -s '{path}' named; head -c 10 named; rm -f named; cat taken"
            ),
        )
        .await;
        assert_eq!(text(&outcome, "stdout"), "", "{path}: {outcome}");
        assert_ne!(outcome["status"], 0, "{path}");
    }
    for folder in [out.as_str(), home.as_str(), "/root", "/home", "/var", "/"] {
        let outcome = shell(&host, &format!("ls '{folder}'")).await;
        assert_ne!(outcome["status"], 0, "{folder}: {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_covers_the_home_does_not_open_it_to_a_shell() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    grant(&place, BASH, "");
    let mut options = place.options();
    options.workspace = place.home().parent().unwrap().to_owned();
    fs::create_dir(options.workspace.join("beside")).unwrap();
    std::os::unix::fs::symlink(place.home(), options.workspace.join("beside/link")).unwrap();
    let host = Host::open(options).await.unwrap();
    let config = fs::read_to_string(place.home().join("astrarium.yaml")).unwrap();
    for command in [
        "echo stolen > home/astrarium.yaml",
        "echo stolen > home/new",
        "echo stolen > beside/link/astrarium.yaml",
        "echo stolen > plugins/runner/plugin.yaml",
        "mkdir plugins/new",
        "mv home elsewhere",
        "mv plugins beside/plugins",
        "rm -rf home",
        "cat home/astrarium.yaml",
        "ls home",
        "cp -r home beside/copy && test -e beside/copy/astrarium.yaml",
    ] {
        let outcome = shell(&host, command).await;
        assert_ne!(outcome["status"], 0, "{command}: {outcome}");
    }
    assert_eq!(fs::read_to_string(place.home().join("astrarium.yaml")).unwrap(), config);
    assert!(place.plugins().join("runner/plugin.yaml").exists() && !place.home().join("new").exists());
    let outcome = shell(&host, "echo fine > beside/new && cat beside/new").await;
    assert_eq!(text(&outcome, "stdout"), "fine\n", "{outcome}");
    let (status, text) = run(&host, json!({ "arguments": ["-c", "pwd"], "working_dir": "home" })).await;
    assert!(status == CallStatus::Failed && text.contains("leads out"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_to_read_is_not_written_by_a_link_or_a_rename() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let papers = tempfile::tempdir().unwrap();
    let papers = papers.path().canonicalize().unwrap();
    fs::write(papers.join("paper"), "as it was\n").unwrap();
    let rules = format!(
        "[{{ program: bash, fs: [{{ path: workspace, mode: rw }}, {{ path: \"{}\", mode: ro }}] }}]",
        papers.display()
    );
    let host = host(&place, &rules, "").await;
    let read = ran(&host, json!({ "arguments": ["-c", "cat paper"], "working_dir": papers })).await;
    assert_eq!(text(&read, "stdout"), "as it was\n");
    let papers = papers.display();
    for command in [
        format!("echo x > {papers}/paper"),
        format!("echo x > {papers}/new"),
        format!("truncate -s 0 {papers}/paper"),
        format!("python3 -c 'import os; os.truncate(\"{papers}/paper\", 0)'"),
        format!("python3 -c 'import os; os.open(\"{papers}/paper\", os.O_RDONLY | os.O_TRUNC)'"),
        format!("rm -f {papers}/paper && test ! -e {papers}/paper"),
        format!("mv {papers}/paper ."),
        format!("mv {papers}/paper {papers}/other"),
        format!("ln {papers}/paper mine && echo x > mine"),
        format!("ln -s {papers}/paper mine; echo x > mine"),
        format!("exec 5<>{papers}/paper && echo x >&5"),
        format!("exec 5<{papers}/paper; echo x > /dev/fd/5"),
        format!("exec 5<{papers}/paper; echo x > /proc/self/fd/5"),
    ] {
        let outcome = shell(&host, &command).await;
        assert_ne!(outcome["status"], 0, "{command}: {outcome}");
    }
    let left = ran(&host, json!({ "arguments": ["-c", format!("cat {papers}/paper; ls {papers}")] })).await;
    assert_eq!(text(&left, "stdout"), "as it was\npaper\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_granted_folder_that_becomes_a_link_opens_nothing_to_a_program() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let (around, secret) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = around.path().canonicalize().unwrap().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(secret.path().join("key"), "SECRET\n").unwrap();
    let rules = format!(
        "[{{ program: bash, fs: [{{ path: workspace, mode: rw }}, {{ path: \"{}\", mode: rw }}] }}]",
        data.display()
    );
    let host = host(&place, &rules, "").await;
    let look = json!({ "arguments": ["-c", format!("cat {}/key; echo x > {0}/new", data.display())] });
    ran(&host, look.clone()).await;
    fs::remove_dir_all(&data).unwrap();
    std::os::unix::fs::symlink(secret.path(), &data).unwrap();
    let (status, said) = run(&host, look).await;
    assert!(status == CallStatus::Failed && said.contains("has become a link to another place"), "{status:?} {said}");
    assert!(!said.contains("SECRET") && !secret.path().join("new").exists(), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_says_it_changes_nothing_runs_programs_that_cannot() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    place.file("own", "as it was\n");
    let host = host(&place, BASH, "").await;
    let command = "cat own; echo x > own; echo x > new; mv own other; rm -f own; mkdir folder; truncate -s 0 own";
    let finished = call(&host, "run_reading", json!({ "command": command }), &CancellationToken::new()).await;
    let outcome: Value = serde_json::from_str(&text_of(&finished.parts)).unwrap();
    assert_eq!(text(&outcome, "stdout"), "as it was\n", "{outcome}");
    assert_eq!(place.text("own"), "as it was\n");
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 1, "{outcome}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_waits_for_a_program_spends_no_time_and_holds_no_permit() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let host = host(&place, BASH, "limits: { tool_ms: 1000, parallel_calls: 1 }").await;
    // The first one ends only if the second can run beside it, and takes longer than a guest may.
    let first = shell(&host, "while [ ! -e go ]; do sleep 0.05; done; sleep 1.5; echo waited");
    let second = shell(&host, "touch go; echo went");
    let (first, second) = tokio::join!(first, second);
    assert_eq!((text(&first, "stdout"), text(&second, "stdout")), ("waited\n", "went\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_has_no_network_of_any_kind_unless_its_rule_says_so() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let web = Web::start(|_| answer("200 OK", &[], "reached")).await;
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    // Docker's and the desktop's own doors are sockets like this one.
    let unix = std::os::unix::net::UnixListener::bind(place.workspace().join("socket")).unwrap();
    unix.set_nonblocking(true).unwrap();
    let (tcp, udp_port) = (web.address.port(), udp.local_addr().unwrap().port());
    let get =
        format!("exec 5<>/dev/tcp/127.0.0.1/{tcp} && printf 'GET / HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n' >&5 && cat <&5");
    let python = |code: &str| format!("python3 -c 'import socket; {code}'");
    let connect = python("socket.socket(socket.AF_UNIX).connect(\"socket\")");
    let others = [
        format!("echo x > /dev/udp/127.0.0.1/{udp_port}"),
        python(&format!(
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {udp_port}))"
        )),
        python("s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()"),
        python("socket.socket(socket.AF_INET6)"),
        python("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
        python("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
        python("socket.socket(40, socket.SOCK_STREAM)"),
    ];
    let shut = host(&place, BASH, "").await;
    for command in others.iter().chain([&get, &connect]) {
        let outcome = shell(&shut, command).await;
        assert_ne!(outcome["status"], 0, "{command}: {outcome}");
    }
    assert!(web.seen().is_empty() && udp.recv(&mut [0; 8]).is_err() && unix.accept().is_err());
    let pair = shell(&shut, &python("a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))")).await;
    assert_eq!(text(&pair, "stdout"), "b'x'\n", "a pair leads nowhere and is left: {pair}");
    drop(shut);
    let place = Place::bare();
    let unix = std::os::unix::net::UnixListener::bind(place.workspace().join("socket")).unwrap();
    unix.set_nonblocking(true).unwrap();
    let open = host(&place, "[{ program: bash, network: true, fs: [{ path: workspace, mode: rw }] }]", "").await;
    let outcome = shell(&open, &get).await;
    assert!(text(&outcome, "stdout").ends_with("reached"), "{outcome}");
    for command in [&connect, &others[5], &others[6]] {
        let outcome = shell(&open, command).await;
        assert_ne!(outcome["status"], 0, "{command}: {outcome}");
    }
    assert!(unix.accept().is_err(), "the network is not this machine's own sockets");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_has_no_power_over_others() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let host = host(&place, BASH, "").await;
    let effective = shell(&host, "sed -n 's/^CapEff:\\t//p' /proc/self/status").await;
    let effective = u64::from_str_radix(text(&effective, "stdout").trim(), 16).unwrap();
    assert_eq!(effective & !0b10, 0, "nothing but the override over files of other owners: {effective:x}");
    let no_new = shell(&host, "sed -n 's/^NoNewPrivs:\\t//p' /proc/self/status").await;
    assert_eq!(text(&no_new, "stdout"), "1\n");
    let pid = std::process::id();
    let mut commands = vec![
        "unshare -r true".to_owned(),
        "unshare -n true".into(),
        "setsid -w true".into(),
        "mount -t tmpfs none .".into(),
        "chroot . true".into(),
        "mknod null c 1 3".into(),
        format!("gdb -p {pid} -batch || strace -p {pid} || false"),
        format!("python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) != 0)'"),
        "python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(425, 8, 0) < 0)'".into(),
    ];
    if landlock() >= 6 {
        commands.push(format!("kill -0 {pid}"));
        commands.push(format!("kill -STOP {pid}"));
    }
    for command in commands {
        let outcome = shell(&host, &command).await;
        assert_ne!(outcome["status"], 0, "{command}: {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bombs_floods_and_hoarders_are_bounded() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let more =
        "limits: { process_count: 60, process_memory_mib: 200, process_output_bytes: 2000, process_file_mib: 1 }";
    let host = host(&place, BASH, more).await;
    let script = "bomb() { bomb | bomb & }; bomb; wait; sleep 100";
    let bomb = shell(&host, script).await;
    assert!(
        bomb["status"].is_null() && text(&bomb, "stderr").contains("more than 60 processes (limits: process_count)"),
        "{bomb}"
    );
    assert_eq!(started_with(script), 0, "all of it is gone");
    let spread = shell(&host, "set -m; for i in $(seq 200); do sleep 27182818 & done; wait").await;
    assert!(text(&spread, "stderr").contains("process_count"), "{spread}");
    assert_eq!(started_with("27182818"), 0, "groups of their own are found too");
    let flood = shell(&host, "yes").await;
    assert!(flood["status"].is_null() && text(&flood, "stderr").contains("process_output_bytes"), "{flood}");
    assert!(text(&flood, "stdout").len() < 2_100 && flood["truncated"] == true);
    let flood = shell(&host, "cat /dev/zero >&2").await;
    assert!(text(&flood, "stderr").contains("process_output_bytes"));
    let long = shell(&host, "seq 20000").await;
    let shown = text(&long, "stdout");
    assert!(
        shown.starts_with("1\n2\n") && shown.ends_with("\n19999\n20000\n") && shown.contains(" bytes cut …]"),
        "{shown}"
    );
    assert_eq!((&long["status"], &long["truncated"]), (&json!(0), &json!(true)));
    let hoard = shell(&host, "python3 -c 'x = bytearray(400 << 20); print(len(x))'").await;
    assert_ne!(hoard["status"], 0, "{hoard}");
    let together = shell(
        &host,
        "for i in 1 2 3 4; do python3 -c 'import time; x = bytearray(90 << 20); time.sleep(100)' & done; wait",
    )
    .await;
    assert!(text(&together, "stderr").contains("process_memory_mib"), "{together}");
    let big = shell(&host, "head -c 3000000 /dev/zero > big").await;
    assert_ne!(big["status"], 0, "{big}");
    assert!(fs::metadata(place.workspace().join("big")).unwrap().len() <= 1 << 20);
    assert_eq!(text(&shell(&host, "echo fine").await, "stdout"), "fine\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_shell_leaves_behind_ends_with_it() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let host = Arc::new(host(&place, BASH, "").await);
    let word = "31415926";
    let leave = format!(
        "sleep {word} & nohup sleep {word} > /dev/null 2>&1 & (sleep {word} &) ; (setsid sleep {word} &) ; \
         set -m; sleep {word} & disown -a; timeout {word} sleep {word} & (trap '' TERM HUP INT; sleep {word}) &"
    );
    let began = Instant::now();
    let outcome = shell(&host, &format!("{leave} sleep 0.2; echo left")).await;
    assert_eq!((text(&outcome, "stdout"), &outcome["status"]), ("left\n", &json!(0)), "{outcome}");
    assert_eq!(started_with(word), 0, "it ended by itself");
    let outcome =
        ran(&host, json!({ "arguments": ["-c", format!("{leave} wait; sleep {word}")], "timeout_ms": 400 })).await;
    assert_eq!((&outcome["status"], &outcome["timed_out"]), (&Value::Null, &json!(true)));
    assert_eq!(started_with(word), 0, "it ran out of time");
    let cancel = CancellationToken::new();
    let running = tokio::spawn({
        let (host, cancel) = (host.clone(), cancel.clone());
        let command = json!({ "arguments": ["-c", format!("{leave} sleep {word}")] });
        async move { call(&host, "run", command, &cancel).await }
    });
    while started_with(word) < 5 {
        assert!(!running.is_finished(), "it ended before it was cancelled");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    let finished = running.await.unwrap();
    assert!(text_of(&finished.parts).contains("cancel"), "{finished:?}");
    // The call returns at once, and its programs end a tick later.
    while started_with(word) > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "a cancel does not reach the programs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_forks_without_pause_ends_with_its_call() {
    if !has_landlock() || landlock() < 6 {
        eprintln!("skipped: before Linux 6.12 nothing catches it for sure");
        return;
    }
    let place = Place::bare();
    // Each process lives for an instant, in a group of its own: where it is found it is no more. Not for ever, so that one
    // that gets away takes no number that others need.
    place.file(
        "sprint.py",
        "import os\nfor _ in range(4000):\n    if os.fork(): os._exit(0)\n    os.setpgid(0, 0)\n    open('steps', 'a').write('x')\n",
    );
    let host = host(&place, BASH, "").await;
    let run = "for i in 1 2 3; do python3 sprint.py & done; while [ ! -s steps ]; do sleep 0.01; done; echo away";
    let outcome = shell(&host, run).await;
    assert_eq!((text(&outcome, "stdout"), text(&outcome, "stderr")), ("away\n", ""), "{outcome}");
    let steps = || fs::metadata(place.workspace().join("steps")).unwrap().len();
    let before = steps();
    for _ in 0..5 {
        shell(&host, "sleep 0.05").await;
    }
    assert_eq!(steps(), before, "it still runs");
}

/// Processes that have `word` in their command line end soon.
fn assert_ends(word: &str) {
    let began = Instant::now();
    while started_with(word) > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it runs on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_host_that_is_killed_takes_its_programs_with_it() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    grant(&place, BASH, "");
    let word = "27182845";
    // Without a keeper the leader ends, and with it what is in the foreground may run on.
    let more = if landlock() >= 6 { format!("set -m; (sleep {word} &); sleep {word} & ") } else { String::new() };
    let arguments = json!({ "arguments": ["-c", format!("{more}exec sleep {word}")] }).to_string();
    let mut host = place.command(&["tool", "call", "run", &arguments]).spawn().unwrap();
    while started_with(word) < 1 + 2 * usize::from(landlock() >= 6) {
        assert!(host.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    host.kill().unwrap();
    host.wait().unwrap();
    assert_ends(word);
}

/// The program on a kernel that has no Landlock, as far as it can tell: the calls are answered as such a kernel does.
fn without_landlock(place: &Place, arguments: &[&str]) -> Ran {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use std::os::unix::process::CommandExt as _;
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let calls = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, unknown, arch).unwrap();
    let filter = BpfProgram::try_from(filter).unwrap();
    let mut command = place.command(arguments);
    // SAFETY: the closure makes two system calls on what was made before the fork.
    unsafe { command.pre_exec(move || apply_filter(&filter).map_err(|_| std::io::ErrorKind::Other.into())) };
    Ran::of(command.output().unwrap())
}

#[test]
fn without_landlock_nothing_runs_unless_the_operator_says_so() {
    let place = Place::bare();
    grant(&place, BASH, "");
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("new");
    let script =
        format!("echo ran > here; id -u; python3 -c 'import socket; socket.socket()'; echo x > {}", target.display());
    let arguments = json!({ "arguments": ["-c", script] }).to_string();
    let call = ["tool", "call", "run", &arguments];
    let ran = without_landlock(&place, &call);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.status != 0 && said.contains("no program runs without Landlock"), "{said}");
    assert!(said.contains("do not retry") && said.contains("process: { without_landlock: allow }"), "{said}");
    assert!(!place.workspace().join("here").exists());
    let doctor = without_landlock(&place, &["doctor"]);
    assert!(doctor.stdout.contains("no native program runs"), "{doctor:?}");
    let audit = place.run(&["audit", "--json"]).stdout;
    assert!(audit.lines().any(|row| row.contains("refused") && row.contains("Landlock confines programs")), "{audit}");
    grant(&place, BASH, "process: { without_landlock: allow }");
    let ran = without_landlock(&place, &call);
    assert_eq!(place.text("here"), "ran\n", "{ran:?}");
    // What does not need Landlock holds all the same.
    assert!(ran.stdout.contains("Operation not permitted"), "no socket: {ran:?}");
    let doctor = without_landlock(&place, &["doctor"]);
    assert!(doctor.stdout.contains("run unconfined, as the config allows"), "{doctor:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_program_is_on_the_audit_before_it_starts_and_what_cannot_be_recorded_does_not_run() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    let host = host(&place, BASH, "").await;
    let told = || -> Vec<Entry> {
        let rows = host.store.audit_rows(&AuditFilter::default()).unwrap().into_iter().map(|row| row.entry);
        rows.filter(|entry| entry.what == "process" && entry.kind == Kind::Capability).collect()
    };
    shell(&host, "true").await;
    let folder = place.workspace().canonicalize().unwrap();
    let [entry] = &told()[..] else { panic!("{:?}", told()) };
    assert_eq!((entry.plugin.as_str(), entry.outcome.as_str(), entry.rule.as_str()), ("runner", "allowed", "bash"));
    assert_eq!(entry.target, format!("bash in {}", folder.display()));
    let (status, _) = run(&host, json!({ "program": "sh", "arguments": ["-c", "true"] })).await;
    let entry = told().pop().unwrap();
    assert_eq!(
        (status, entry.outcome.as_str(), entry.rule.as_str()),
        (CallStatus::Failed, "refused", "no rule allows it")
    );
    assert_eq!(entry.target, "sh");
    let full = "create trigger full before insert on audit when new.entry ->> 'what' = 'process'
                begin select raise(abort, 'disk is full'); end";
    rusqlite::Connection::open(place.home().join("astrarium.db")).unwrap().execute_batch(full).unwrap();
    let (status, said) = run(&host, json!({ "arguments": ["-c", "echo ran > here"] })).await;
    assert!(status == CallStatus::Failed && said.contains("every use must be recorded"), "{said}");
    assert!(!place.workspace().join("here").exists());
}

#[test]
fn no_open_file_of_the_host_reaches_a_program() {
    if !has_landlock() {
        return;
    }
    let place = Place::bare();
    grant(&place, BASH, "");
    let secret = place.home().join("open");
    fs::write(&secret, "through a descriptor\n").unwrap();
    let arguments = json!({ "arguments": ["-c", "cat <&9"] }).to_string();
    let inner = place.command(&["tool", "call", "run", &arguments]);
    // A shell around the host opens a file that every child inherits.
    let mut outer = std::process::Command::new("sh");
    outer.arg("-c").arg(format!("exec 9<'{}'; exec \"$@\"", secret.display())).arg("sh").arg(inner.get_program());
    outer.args(inner.get_args()).env_clear().current_dir(place.workspace());
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = outer.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("Bad file descriptor"), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!shown.contains("through a descriptor"), "{shown}");
}

const RUN_BASH: &str =
    "name: p\nsteps:\n  - calls: [{ tool: run_bash, input: { command: 'echo ran > here' } }]\n  - say: done\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_bash_ships_and_works_in_the_workspace_alone() {
    if !has_landlock() {
        return;
    }
    let place = Place::new();
    place.config("language: en\n");
    let alone = play(&place.host().await, RUN_BASH, "q", 3).await.1;
    assert!(alone.outputs("run_bash")[0].contains("nobody can be asked here"), "it asks unless a rule allows it");
    let config = "language: en\npermissions: { allow: [run_bash] }\n";
    place.file("a.txt", "one\n").config(config);
    let host = place.host().await;
    let never = CancellationToken::new();
    let bash = async |input: Value| call(&host, "run_bash", input, &never).await;
    let finished = bash(json!({ "command": "cat a.txt; echo two >&2; echo three > b.txt" })).await;
    assert_eq!((finished.status, text_of(&finished.parts).as_str()), (CallStatus::Ok, "one\ntwo\n[exit status 0]"));
    assert_eq!(place.text("b.txt"), "three\n");
    let finished = bash(json!({ "command": "false" })).await;
    assert_eq!((finished.status, text_of(&finished.parts).as_str()), (CallStatus::Failed, "[exit status 1]"));
    let finished = bash(json!({ "command": "sleep 100", "timeout_s": 1 })).await;
    assert!(text_of(&finished.parts).starts_with("[killed after 1 s"), "{finished:?}");
    let workspace = place.workspace().canonicalize().unwrap().display().to_string();
    let finished = bash(json!({ "command": "pwd", "cwd": workspace })).await;
    assert_eq!(text_of(&finished.parts), format!("{workspace}\n[exit status 0]"));
    for command in ["echo x > ../home/astrarium.yaml", "echo x > /dev/tcp/127.0.0.1/9", "ls ~root"] {
        let finished = bash(json!({ "command": command })).await;
        assert_eq!(finished.status, CallStatus::Failed, "{command}: {finished:?}");
    }
    assert_eq!(fs::read_to_string(place.home().join("astrarium.yaml")).unwrap(), config);
    // The scripts of skills are there to be run, those that ship and the user's own, and not to be changed.
    let own = place.home().join("skills/mine/scripts");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("hello.sh"), "echo hello from $1\n").unwrap();
    let shipped = share().canonicalize().unwrap().join("skills/plotting/scripts/check_figure.py");
    let run = format!("sh {}/hello.sh mine && test -r {}", own.display(), shipped.display());
    let finished = bash(json!({ "command": run })).await;
    assert_eq!(text_of(&finished.parts), "hello from mine\n[exit status 0]", "{finished:?}");
    for command in [
        format!("echo x >> {}/hello.sh", own.display()),
        format!("cat {}", place.home().join("astrarium.yaml").display()),
    ] {
        let finished = bash(json!({ "command": command })).await;
        assert_eq!(finished.status, CallStatus::Failed, "{command}: {finished:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_prints_beyond_the_budget_is_in_a_file_of_the_session_whole() {
    if !has_landlock() {
        return;
    }
    let place = Place::new();
    place.config("language: en\npermissions: { allow: [run_bash] }\n");
    let script =
        "name: p\nsteps:\n- calls: [{ tool: run_bash, input: { command: 'seq 1 150000; exit 3' } }]\n- say: done\n";
    let host = place.host().await;
    let (session, turn) = play(&host, script, "q", 3).await;
    let seen = turn.outputs("run_bash").concat();
    assert!(seen.starts_with("1\n2\n") && seen.trim_end().ends_with("150000\n[exit status 3]"), "{}", seen.len());
    assert!(seen.len() < 40_000 && !seen.contains("\n75000\n"), "{}", seen.len());
    let folder = host.options.session_folder(&session.id);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(seen.contains(&format!("/session/{name}")), "{seen}");
    let kept = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = kept.lines().collect();
    assert_eq!((lines.len(), lines[74_999], lines[150_000]), (150_001, "75000", "[exit status 3]"));
}
