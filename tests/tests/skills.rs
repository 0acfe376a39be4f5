//! Skills as users and sessions meet them.

use astrarium::compact::Trigger;
use astrarium::compaction::{self, Work};
use astrarium::host::Which;
use astrarium::model::scripted::Scripted;
use astrarium::session::Session;
use astrarium::skills::{Asker, Loading};
use astrarium::store::KvScope;
use astrarium::transcript::Usage;
use astrarium_tests::place::{Place, ask, play, python, share};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const GOOD: &str = "---\nname: fits\ndescription: Reads FITS headers\n---\nLook at the header first.\n";

fn user_skill(place: &Place, name: &str, text: &str) {
    let folder = place.home().join("skills").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

#[test]
fn a_skill_file_is_checked_with_line_and_cure() {
    let place = Place::bare();
    place.file("good/fits/SKILL.md", GOOD);
    place.file("bad/Fits/SKILL.md", "---\nname: Fits\ndescription: Use when: asked\nauthor: x\n---\nbody\n");
    let good = place.run(&["skill", "check", "--strict", "good"]);
    assert_eq!((good.status, good.stderr.as_str()), (0, ""), "{good:?}");
    assert!(good.stdout.contains("fits: 0 errors, 0 warnings"), "{good:?}");
    assert!(good.stdout.contains("runs in the conversation, with any tool"), "{good:?}");
    // Leniently the bad one is read, with warnings; strictly it is refused.
    let lenient = place.run(&["skill", "check", "bad/Fits"]);
    assert_eq!(lenient.status, 0, "{lenient:?}");
    assert!(lenient.stdout.contains("SKILL.md:3: warning: description is no YAML"), "{lenient:?}");
    let strict = place.run(&["skill", "check", "--strict", "bad/Fits/SKILL.md", "good"]);
    assert_eq!(strict.status, 1, "{strict:?}");
    assert!(strict.stdout.contains("SKILL.md:3: error: the frontmatter is no YAML"), "{strict:?}");
    let checked = place.run(&["skill", "check", "--strict", "--json", "good", "bad"]).json();
    let ok: Vec<_> =
        checked.as_array().unwrap().iter().map(|one| (one["name"].as_str(), one["ok"].as_bool())).collect();
    assert_eq!(ok, [(Some("fits"), Some(true)), (Some("Fits"), Some(false))]);
    for (path, word) in [("absent", "absent"), ("good/fits/none", "none")] {
        let ran = place.run(&["skill", "check", path]);
        assert!(ran.status == 2 && ran.stderr.contains(word), "{ran:?}");
    }
    let empty = place.run(&["skill", "check", "."]);
    assert_eq!(empty.status, 0, "both lie below here: {empty:?}");
}

#[test]
fn nearer_skills_take_the_place_of_farther_ones_and_say_so() {
    let place = Place::bare();
    user_skill(&place, "fits", GOOD);
    user_skill(&place, "other", "---\nname: other\ndescription: o\n---\nbody\n");
    place.file(".claude/skills/Fits/SKILL.md", "---\nname: Fits\ndescription: from claude\n---\nbody\n");
    place.file(
        ".astrarium/skills/group/fits/SKILL.md",
        "---\nname: fits\ndescription: nearest\nversion: 1.10\n---\nbody\n",
    );
    let ran = place.run(&["skill", "list", "--json"]);
    let list = ran.json();
    let shown: Vec<_> =
        list.as_array().unwrap().iter().map(|one| (&one["name"], &one["owner"], &one["version"])).collect();
    let word = |text: &str| Value::from(text);
    assert_eq!(
        shown,
        [(&word("fits"), &word("workspace"), &word("1.10")), (&word("other"), &word("user"), &Value::Null)]
    );
    assert_eq!(ran.stderr.matches("takes the place of").count(), 2, "{ran:?}");
    let shown = place.run(&["skill", "show", "FITS"]);
    assert!(shown.stdout.contains("- fits: nearest") && shown.stdout.ends_with("\nbody\n"), "{shown:?}");
    let missing = place.run(&["skill", "show", "nope"]);
    assert!(missing.status == 2 && missing.stderr.contains("skill list"), "{missing:?}");
    let hidden = place.run(&["skill", "check", ".claude/skills"]);
    let nearest = place.workspace().canonicalize().unwrap().join(".astrarium/skills/group/fits/SKILL.md");
    assert!(hidden.stdout.contains(&format!("is hidden by {}", nearest.display())), "{hidden:?}");
}

#[test]
fn what_the_host_would_do_with_a_skill_is_said() {
    let place = Place::bare();
    place.file(".astrarium/skills/help/SKILL.md", "---\nname: help\ndescription: Helps\nagent: nobody\n---\nbody\n");
    // What a link leads out to is no skill of the workspace, by itself and in a folder.
    let outside = place.home().join("elsewhere/out");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("SKILL.md"), "---\nname: out\ndescription: x\n---\nOut.\n").unwrap();
    std::os::unix::fs::symlink(&outside, place.workspace().join(".astrarium/skills/out")).unwrap();
    for path in [".astrarium/skills/out", ".astrarium/skills"] {
        let ran = place.run(&["skill", "check", path]);
        assert!(ran.stderr.contains("out of the workspace"), "{path}: {ran:?}");
    }
    place.file(
        ".astrarium/skills/odd/SKILL.md",
        "---\nname: odd\ndescription: x\nallowed-tools: Bash(git:*)\n---\nOdd.\n",
    );
    let odd = place.run(&["skill", "check", ".astrarium/skills/odd"]);
    assert!(odd.stdout.contains("allowed-tools: Bash(git:*) is left out"), "{odd:?}");
    let ran = place.run(&["skill", "check", ".astrarium/skills/help"]);
    for line in
        ["is not loaded as /help, which is a command of the program", "names the agent nobody, which is not here"]
    {
        assert!(ran.status == 0 && ran.stdout.contains(line), "{line}: {ran:?}");
    }
}

#[test]
fn effort_is_said_with_the_body_and_its_model_answers_whoever_calls_it() {
    let place = Place::new();
    place.config("language: en\n");
    let other = place.script("name: o\nsteps:\n- say: no\n- say: no\n- say: other answers\n");
    let text = format!("---\nname: think\ndescription: Thinks\nmodel: {other}\neffort: high\n---\nThink.\n");
    user_skill(&place, "think", &text);
    let own = place.workspace().join("own.yaml");
    let load = "calls: [{ tool: load_skill, input: { skill_name: think } }]";
    fs::write(&own, format!("name: own\nsteps:\n- {load}\n- say: own answers\n")).unwrap();
    let own = format!("scripted:{}", own.display());
    let ran = place.run(&["run", "think", "--model", &own, "--output", "json"]).json();
    let shown = place.run(&["session", "show", ran["session"].as_str().unwrap()]).stdout;
    assert!(shown.contains("Think.\n") && shown.contains("high"), "{shown}");
    let session = ran["session"].as_str().unwrap();
    let ran = place.run(&["run", "/think", "--model", &own, "--session", session]);
    assert!(ran.stdout.contains("other answers") && ran.stderr.contains("script.yaml answers /think"), "{ran:?}");
}

#[test]
fn a_skill_is_loaded_by_hand_in_both_languages() {
    let place = Place::new();
    place.config("language: zh\n");
    user_skill(&place, "fits", &GOOD.replace("---\nLook", "argument-hint: <file>\n---\nLook"));
    let load = |arguments: &str| place.run(&["tool", "call", "load_skill", arguments]);
    let folder = place.home().canonicalize().unwrap().join("skills/fits").display().to_string();
    let zh = load(r#"{"skill_name":"fits"}"#);
    let text = format!("# 技能：fits (Reads FITS headers)\n\nBase directory: {folder}\n\nLook at the header first.");
    assert!(zh.status == 0 && zh.stdout.starts_with(&text) && zh.stdout.contains("这个技能需要参数：<file>"), "{zh:?}");
    place.config("language: en\n");
    let en = load(r#"{"skill_name":"Fits","arguments":"a.fits"}"#);
    assert!(en.stdout.starts_with("# Skill: fits (Reads FITS headers)"), "{en:?}");
    assert!(en.stdout.ends_with("first.\n\nARGUMENTS: a.fits\n"), "{en:?}");
    let unknown = load(r#"{"skill_name":"fit"}"#);
    assert!(unknown.status == 1 && unknown.stderr.contains("the nearest is fits"), "{unknown:?}");
    assert!(load(r#"{"skill_name":"fits","max_steps":11}"#).status == 2, "10 at most");
    // Both uses count, and the most used comes first.
    let list = place.run(&["skill", "list", "--json"]).json();
    assert_eq!((&list[0]["name"], &list[0]["uses"]), (&json!("fits"), &json!(2)));
}

#[test]
fn resources_of_a_skill_are_read_by_the_file_tools_and_written_by_none() {
    let place = Place::new();
    user_skill(&place, "fits", GOOD);
    let folder = place.home().canonicalize().unwrap().join("skills/fits");
    fs::write(folder.join("keys.md"), "SIMPLE\nBITPIX\n").unwrap();
    fs::write(place.home().join("secret.txt"), "BITPIX\n").unwrap();
    let call = |tool: &str, input: Value| place.run(&["tool", "call", tool, &input.to_string()]);
    let read = call("read_file", json!({ "path": folder.join("keys.md") }));
    assert!(read.status == 0 && read.stdout.contains("BITPIX"), "{read:?}");
    let grep = call("grep_files", json!({ "pattern": "BITPIX", "path": folder }));
    assert!(
        grep.stdout.contains("fits/keys.md:2:BITPIX") && grep.stdout.contains("[paths are relative to "),
        "{grep:?}"
    );
    let glob = call("glob_files", json!({ "pattern": folder.join("**/*.md") }));
    assert!(glob.stdout.contains("fits/keys.md"), "{glob:?}");
    for path in ["../../secret.txt", "../../astrarium.db"] {
        assert_ne!(call("read_file", json!({ "path": folder.join(path) })).status, 0, "{path}");
    }
    // One that is kept elsewhere, as a checkout of somebody's skills, has its files there.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("SKILL.md"), GOOD.replace("fits", "linked")).unwrap();
    fs::write(elsewhere.path().join("keys.md"), "LINKED\n").unwrap();
    let linked = folder.parent().unwrap().join("linked");
    std::os::unix::fs::symlink(elsewhere.path(), &linked).unwrap();
    let read = call("read_file", json!({ "path": linked.join("keys.md") }));
    assert!(read.status == 0 && read.stdout.contains("LINKED"), "{read:?}");
    let write = call("file_write", json!({ "path": linked.join("keys.md"), "content": "x" }));
    assert!(write.status != 0 && fs::read_to_string(linked.join("keys.md")).unwrap() == "LINKED\n", "{write:?}");
    let write = call("file_write", json!({ "path": folder.join("SKILL.md"), "content": "x" }));
    assert!(write.status != 0 && fs::read_to_string(folder.join("SKILL.md")).unwrap() == GOOD, "{write:?}");
}

#[test]
fn the_prompt_lists_the_skills() {
    let place = Place::new();
    place.config("language: en\n");
    user_skill(&place, "fits", GOOD);
    user_skill(&place, "kept", "---\nname: kept\ndescription: k\ndisable-model-invocation: true\n---\nbody\n");
    let shown = place.run(&["prompt", "show", "--json"]);
    let shown = shown.stdout;
    assert!(shown.contains("<system-reminder>\\nThese skills can be loaded with load_skill:"), "{shown}");
    assert!(shown.contains("- fits: Reads FITS headers") && shown.contains("- methodology: "), "{shown}");
    assert!(!shown.contains("- kept: k"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_goes_on_with_its_skills_and_its_prompt() {
    let place = Place::new();
    place.config("language: en\n").file("paper/main.tex", "x\n");
    user_skill(&place, "tex", "---\nname: tex\ndescription: t\npaths: '*.tex'\n---\nbody of tex\n");
    let host = place.host().await;
    let script = "name: r\nsteps:\n- calls: [{ tool: grep_files, input: { pattern: x } }]\n\
                  - calls: [{ tool: load_skill, input: { skill_name: tex } }]\n- say: one\n\
                  - calls: [{ tool: load_skill, input: { skill_name: tex } }]\n- say: two\n";
    let (session, turn) = play(&host, script, "q", 20).await;
    assert!(turn.outputs("load_skill")[0].contains("body of tex"), "{:?}", turn.events);
    let prefix = host.store.epoch(&session.id, None).unwrap().unwrap().prefix;
    assert!(prefix.contains("Skills of this session: methodology, plotting, presentation"), "{prefix}");
    let id = session.id.clone();
    drop((session, host));
    // Meanwhile a skill came, which the new process has seen before the session knows of it.
    user_skill(&place, "late", "---\nname: late\ndescription: l\n---\nbody\n");
    let host = place.host().await;
    let model = Arc::new(Scripted::from_str("test", script).unwrap());
    let mut session = host.session(Which::Named(&id), model).unwrap();
    let before = session.messages().len();
    let turn = ask(&mut session, "again", 20, &CancellationToken::new(), |_| {}).await;
    assert!(turn.outputs("load_skill")[0].contains("is loaded in this conversation already"), "{:?}", turn.events);
    let said: Vec<String> = session.messages()[before..].iter().map(|message| message.text()).collect();
    assert_eq!(said.iter().filter(|text| text.contains("[new] late: l")).count(), 1, "{said:?}");
    assert!(!said.iter().any(|text| text.contains("tex: t")), "it was told in the first run: {said:?}");
    assert_eq!(host.store.epoch(&id, None).unwrap().unwrap().number, 1, "a warm resume begins no epoch");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loaded_skill_outlives_a_compaction_and_stands_there_once() {
    let place = Place::new();
    place.config("language: en\n").file("notes.txt", "word ".repeat(4_000));
    user_skill(&place, "fits", GOOD);
    user_skill(&place, "asked", &GOOD.replace("name: fits", "name: asked").replace("header", "asked header"));
    let host = place.host().await;
    let mut script = String::from("name: c\nsteps:\n- calls: [{ tool: load_skill, input: { skill_name: fits } }]\n");
    for _ in 0..20 {
        script.push_str("- calls: [{ tool: read_file, input: { path: notes.txt } }]\n");
    }
    script.push_str("- say: read\n- say: '<summary>1. Goal: reading. 2. Done: all.</summary>'\n");
    let (mut session, _) = play(&host, &script, "read it all", 30).await;
    // One that a person called for at the end stands in the part that is kept.
    let text = session.skills.called("asked", "", session.texts()).unwrap();
    session.append(astrarium::transcript::Message::user(&text), None).unwrap();
    let cancel = CancellationToken::new();
    let work = Work { step: 0, sink: &|_| {}, cancel: &cancel };
    compaction::compact(&mut session, Trigger::Manual, "", &mut Usage::default(), &work).await.unwrap();
    let conversation =
        |session: &Session| -> String { session.conversation().iter().map(|message| format!("{message:?}")).collect() };
    let kept = conversation(&session);
    assert_eq!(kept.matches("Look at the header first.").count(), 1, "{kept}");
    assert_eq!(kept.matches("Look at the asked header first.").count(), 1, "{kept}");
    let again = session.skills.load("fits", None, None, Asker::Model("again")).unwrap();
    assert!(matches!(again, Loading::Inline { text: None, .. }), "it was restored, so it is not said again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_whose_text_never_arrived_can_be_loaded_again() {
    let place = Place::new();
    user_skill(&place, "fits", GOOD);
    let host = place.host().await;
    let script =
        "name: l\nsteps:\n- say: yes\n- calls: [{ tool: load_skill, input: { skill_name: fits } }]\n- say: done\n";
    let (mut session, _) = play(&host, script, "are you there?", 5).await;
    // A call that was cancelled after the host had loaded it.
    session.skills.load("fits", None, None, Asker::Model("lost")).unwrap();
    let turn = ask(&mut session, "go on", 5, &CancellationToken::new(), |_| {}).await;
    assert!(turn.outputs("load_skill")[0].contains("Look at the header first."), "{:?}", turn.events);
}

fn plot_skill(place: &Place, more: &str) {
    let text =
        format!("---\nname: plot\ndescription: p\ncontext: fork\n{more}---\nPlot $ARGUMENTS from ${{SKILL_DIR}}.\n");
    user_skill(place, "plot", &text);
}

const PLOT: &str = "- calls: [{ tool: load_skill, input: { skill_name: plot, arguments: M 31 } }]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_that_forks_is_followed_by_an_agent_with_its_tools_and_no_others() {
    let place = Place::new();
    place
        .plugin("agent-watch")
        .config("language: en\ngrants:\n- { plugin: agent-watch, kv: true }\n")
        .file("a.fits", "a");
    plot_skill(&place, "allowed-tools: [glob_files, load_skill, 'Ghost(x)']\neffort: max\nagent: plotter\n");
    let host = place.host().await;
    let script = format!(
        "name: f\nsteps:\n{PLOT}\
         - calls: [{{ tool: read_file, input: {{ path: a.fits }} }}]\n\
         - calls: [{{ tool: call_tool, input: {{ name: read_file, input: {{ path: a.fits }} }} }}]\n\
         {PLOT}\
         - calls: [{{ tool: glob_files, input: {{ pattern: '*.fits' }} }}]\n\
         - say: it is drawn\n\
         - say: done\n"
    );
    let (session, done) = play(&host, &script, "SECRET", 20).await;
    assert_eq!(done.outcome.answer, "done");
    let report = done.outputs("load_skill").concat();
    assert!(report.starts_with("[Subagent result - skill: plot]\nit is drawn\n"), "{report}");
    for word in ["Ghost", "no agent plotter", "read_file", "glob_files {\"pattern\":\"*.fits\"}"] {
        assert!(report.contains(word), "{word}: {report}");
    }
    let agents = host.store.agents_of(&session.id).unwrap();
    let [agent] = &agents[..] else { panic!("{agents:?}") };
    assert_eq!(
        (agent.kind.as_str(), agent.title.as_str(), agent.reason.as_deref()),
        ("skill-fork", "plot: M 31", Some("done"))
    );
    let messages = host.store.messages(&agent.session).unwrap();
    let said: Vec<String> =
        messages.iter().flat_map(|message| &message.content).map(|block| format!("{block:?}")).collect();
    let count = |word: &str| said.iter().filter(|text| text.contains(word)).count();
    assert_eq!(
        count("read_file is not among the tools of this agent"),
        2,
        "called by its name and by call_tool: {said:?}"
    );
    assert_eq!(count("starts no further agents"), 1, "a fork in a fork: {said:?}");
    assert_eq!(count("SECRET"), 0, "it sees nothing of the conversation");
    let prefix = host.store.epoch(&agent.session, None).unwrap().unwrap().prefix;
    let folder = place.home().canonicalize().unwrap().join("skills/plot").display().to_string();
    let all = said.concat();
    for word in [&format!("Plot M 31 from {folder}."), "Effort wanted: max"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(prefix.contains("\"glob_files\"") && !prefix.contains("\"read_file\""), "{prefix}");
    let own = session.messages().iter().map(|message| format!("{message:?}")).collect::<String>();
    assert!(!own.contains("Plot M 31 from"), "its body is no part of this conversation");
    for event in ["skill-fork subagent-start", "skill-fork subagent-stop"] {
        let heard = host.store.kv_get("agent-watch", &KvScope::Plugin, event).unwrap();
        assert_eq!(heard.as_deref(), Some(&b"1"[..]), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_has_the_steps_it_was_given_and_never_more_tools_than_it_names() {
    let place = Place::new();
    place.config("language: zh\n").file("a.fits", "a");
    plot_skill(&place, "");
    let host = place.host().await;
    let glob = "- calls: [{ tool: glob_files, input: { pattern: '*.fits' } }]\n";
    let one = PLOT.replace("M 31 }", "M 31, max_steps: 1 }");
    let (_, done) = play(&host, &format!("name: f\nsteps:\n{one}{glob}- say: 完成\n"), "q", 20).await;
    let report = done.outputs("load_skill").concat();
    assert!(report.starts_with("[子代理执行结果 - 技能: plot]\n"), "{report}");
    assert!(report.contains("已达到 1 步的上限") && report.contains("（结束原因：step-limit）"), "{report}");
    // Written for another host: it has the tools that it names and are there, which is none.
    plot_skill(&place, "allowed-tools: Read Ghost(x:*)\n");
    host.skills.refresh();
    let (session, done) = play(&host, &format!("name: f\nsteps:\n{PLOT}{glob}- say: ok\n- say: ok\n"), "q", 20).await;
    let report = done.outputs("load_skill").concat();
    assert!(report.contains("Ghost"), "what is not there is said: {report}");
    let agents = host.store.agents_of(&session.id).unwrap();
    let messages = host.store.messages(&agents[0].session).unwrap();
    let said: String = messages.iter().map(|message| format!("{message:?}")).collect();
    assert!(said.contains("glob_files is not among the tools of this agent"), "{said}");
}

#[test]
fn a_person_has_a_fork_run_once_that_its_author_keeps_from_the_model() {
    let place = Place::new();
    place.config("language: en\n");
    plot_skill(&place, "disable-model-invocation: true\n");
    let script = format!("name: f\nsteps:\n{PLOT}- say: drawn\n{PLOT}- say: done\n");
    let ran = place.run(&["run", "/plot M 31", "--model", &place.script(&script), "--output", "json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let session = ran.json()["session"].as_str().unwrap().to_owned();
    let shown = place.run(&["session", "show", &session]).stdout;
    assert!(
        shown.contains("The user calls the skill plot") && shown.contains("[Subagent result - skill: plot]"),
        "{shown}"
    );
    assert_eq!(shown.matches("is for people only").count(), 1, "the second time: {shown}");
}

#[test]
fn the_skills_that_ship_pass_the_rules_and_are_within_their_size() {
    let place = Place::new();
    let folder = share().join("skills");
    let checked = place.run(&["skill", "check", "--strict", "--json", folder.to_str().unwrap()]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let checked = checked.json();
    let names: Vec<&str> = checked.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["methodology", "plotting", "presentation"]);
    for one in checked.as_array().unwrap() {
        for finding in one["findings"].as_array().unwrap() {
            let text = finding["text"].as_str().unwrap();
            assert!(
                finding["level"] == "note" && text.contains("is a field of this host"),
                "{}: {finding}",
                one["name"]
            );
        }
    }
    let list = place.run(&["skill", "list", "--json"]).json();
    for one in list.as_array().unwrap() {
        assert!(one["when_to_use"].as_str().is_some_and(|when| when.is_ascii() && when.starts_with("When ")), "{one}");
        assert!(one["description"].as_str().is_some_and(|text| !text.is_ascii()), "{one}");
        assert_eq!(one["owner"], "shipped");
    }
}

/// Every path below `${SKILL_DIR}` that a skill names is there.
#[test]
fn the_skills_that_ship_name_only_files_that_they_have() {
    for name in ["methodology", "plotting", "presentation"] {
        let folder = share().join("skills").join(name);
        let text = fs::read_to_string(folder.join("SKILL.md")).unwrap();
        let named: Vec<&str> = text
            .split("${SKILL_DIR}/")
            .skip(1)
            .map(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c))).next().unwrap())
            .collect();
        assert!(named.len() >= 3, "{name}: {named:?}");
        for path in named {
            assert!(folder.join(path.trim_end_matches('.')).exists(), "{name} names {path}");
        }
    }
}

fn run_script(script: &Path, arguments: &[&str]) -> (bool, String) {
    // Byte code beside a script that ships would change what ships.
    let output = Command::new(python()).arg("-B").arg(script).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_scripts_of_the_skills_that_ship_do_what_the_skills_say() {
    let skills = share().join("skills");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let papers = json!([
        { "title": "A long enough title on black holes", "year": 2013, "citations": 900, "bibcode": "2013ARA&A..51..511K" },
        { "title": "A New Paper on Quasars and Their Hosts", "year": 2025, "arxiv": "2501.00001v2" },
        { "title": "A new paper on {Quasars} and their hosts", "year": 2025, "citations": 3, "bibcode": "2025ApJ...1....1X" },
    ]);
    fs::write(at("papers.json"), papers.to_string()).unwrap();
    let (fine, table) =
        run_script(&skills.join("methodology/scripts/screen.py"), &[&at("papers.json"), "--year", "2025"]);
    assert!(fine && table.contains("2 篇候选"), "{table}");
    assert!(table.contains("| 奠基 | 2013 |") && table.contains("| 新近 | 2025 |"), "{table}");
    assert!(!run_script(&skills.join("methodology/scripts/screen.py"), &[&at("absent.json")]).0);

    let deck = skills.join("presentation/scripts/check_deck.py");
    for template in ["talk.md", "talk.tex"] {
        let template = skills.join("presentation/templates").join(template);
        let (fine, said) = run_script(&deck, &[template.to_str().unwrap(), "--minutes", "12"]);
        assert!(!fine && said.matches("错误：").count() == 2, "only its two figures are missing: {said}");
    }
    fs::write(
        at("talk.md"),
        "# One claim that is whole\n\n<!-- said -->\n\n---\n\n## 结果\n\nwords\n\n<!-- said -->\n",
    )
    .unwrap();
    let (fine, said) = run_script(&deck, &[&at("talk.md"), "--minutes", "5"]);
    assert!(!fine && said.contains("第 2 页：标题“结果”"), "{said}");

    // A picture of one point without a resolution, and one that is 3.5 inches wide at 300 dpi.
    let check = skills.join("plotting/scripts/check_figure.py");
    let png = |wide: u32, dots: Option<u32>| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend([wide.to_be_bytes(), 600u32.to_be_bytes()].concat());
        bytes.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
        if let Some(dots) = dots {
            bytes.extend(b"\0\0\0\tpHYs");
            bytes.extend([dots.to_be_bytes(), dots.to_be_bytes()].concat());
            bytes.extend([1, 0, 0, 0, 0]);
        }
        bytes
    };
    for (name, bytes, good) in [("a.png", png(1050, Some(11_811)), true), ("b.png", png(1050, None), false)] {
        fs::write(at(name), bytes).unwrap();
        let (fine, said) = run_script(&check, &[&at(name)]);
        assert_eq!(fine, good, "{said}");
    }
    // What needs a library that is not here must at least be Python.
    for script in ["plotting/scripts/pubfig.py", "presentation/scripts/to_pptx.py"] {
        let code = format!("import ast; ast.parse(open({:?}, encoding='utf-8').read())", skills.join(script));
        assert!(Command::new(python()).args(["-c", &code]).status().unwrap().success(), "{script}");
    }
}
