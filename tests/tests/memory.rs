//! Memory as its users meet it: the four tools in WASM, files that people edit, several processes at once.

use astrarium_tests::place::{Place, Ran};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

fn shelf(place: &Place) -> PathBuf {
    place.home().join("library/memory")
}

fn file(place: &Place, name: &str) -> String {
    fs::read_to_string(shelf(place).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn call(place: &Place, tool: &str, input: &Value) -> Ran {
    place.run(&["tool", "call", tool, &input.to_string()])
}

fn text(place: &Place, tool: &str, input: &Value) -> String {
    let ran = call(place, tool, input);
    assert_eq!(ran.status, 0, "{ran:?}");
    ran.stdout
}

fn save(place: &Place, name: &str, content: &str) -> String {
    text(
        place,
        "save_memory",
        &json!({ "name": name, "type": "project", "description": format!("about {name}"), "content": content }),
    )
}

#[test]
fn a_memory_is_saved_found_read_changed_and_replaced_by_the_tools() {
    let place = Place::new();
    place.config("language: zh\n");
    let input =
        json!({ "name": "星等制", "type": "user", "description": "用户一律用 AB 星等", "content": "零点 23.9" });
    let saved = text(&place, "save_memory", &input);
    let slug = saved.trim().strip_prefix("已保存为 ").unwrap().to_owned();
    assert!(slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{slug}");
    assert_eq!(
        file(&place, &format!("{slug}.md")),
        "---\nname: 星等制\ntype: user\ndescription: 用户一律用 AB 星等\n---\n\n零点 23.9\n"
    );
    let found = text(&place, "memory_search", &json!({ "query": "星等怎么取" }));
    assert!(found.starts_with(&format!("[偏好] {slug}: 用户一律用 AB 星等")), "{found}");
    assert!(text(&place, "memory_read", &json!({ "name": "星等制" })).contains("零点 23.9"), "a name finds its slug");
    text(&place, "memory_write", &json!({ "name": slug, "append": "单位 µJy" }));
    assert!(file(&place, &format!("{slug}.md")).ends_with("零点 23.9\n\n单位 µJy\n"));
    assert!(file(&place, &format!("{slug}_v1.md")).ends_with("零点 23.9\n"));
    let input =
        json!({ "name": "vega", "type": "user", "description": "改用 Vega", "content": "x", "supersedes": slug });
    text(&place, "save_memory", &input);
    assert!(text(&place, "memory_read", &json!({ "name": slug })).contains("[已更新→vega]"));
    assert!(file(&place, "MEMORY.md").contains("[vega](vega.md)") && !file(&place, "MEMORY.md").contains(&slug));
}

#[test]
fn mistakes_are_told_to_the_model_in_one_line() {
    let place = Place::new();
    place.config("language: en\n");
    save(&place, "calibration", "x");
    for (tool, input, word) in [
        ("memory_read", json!({ "name": "calibratoin" }), "did you mean calibration"),
        ("memory_write", json!({ "name": "calibration" }), "nothing is to be changed"),
        ("memory_write", json!({ "name": "new", "content": "x" }), "no memory new"),
        ("memory_search", json!({ "query": " " }), "empty"),
        ("save_memory", json!({ "name": "…", "type": "user", "description": "x", "content": "y" }), "names no memory"),
        (
            "save_memory",
            json!({ "name": "a", "type": "user", "description": "x", "content": "y".repeat(70_000) }),
            "65536",
        ),
    ] {
        let ran = call(&place, tool, &input);
        assert!(ran.status == 1 && ran.stderr.contains(word), "{tool}: {ran:?}");
    }
    assert_eq!(call(&place, "save_memory", &json!({ "name": "a", "type": "opinion" })).status, 2);
}

#[test]
fn without_the_grant_the_tools_are_refused() {
    let place = Place::bare();
    astrarium_tests::place::copy(
        &astrarium_tests::place::share().join("plugins/memory"),
        &place.plugins().join("memory"),
    );
    let ran = call(&place, "memory_search", &json!({ "query": "x" }));
    assert!(ran.status == 3 && ran.stderr.contains("- { plugin: memory, memory: true }"), "{ran:?}");
    place.config("grants:\n- { plugin: memory, memory: true }\n");
    assert_eq!(call(&place, "memory_search", &json!({ "query": "x" })).status, 0);
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let place = Place::new();
    save(&place, "log", "begin");
    let children: Vec<_> = (0..6)
        .map(|n| {
            let own = json!({ "name": format!("own {n}"), "type": "project", "description": "x", "content": "y" })
                .to_string();
            let shared = json!({ "name": "log", "append": format!("line {n}") }).to_string();
            let spawn = |tool: &str, input: &str| {
                place.command(&["tool", "call", tool, input]).stdout(Stdio::null()).spawn().unwrap()
            };
            [spawn("save_memory", &own), spawn("memory_write", &shared)]
        })
        .collect();
    for mut child in children.into_iter().flatten() {
        assert!(child.wait().unwrap().success());
    }
    let log = file(&place, "log.md");
    for n in 0..6 {
        assert!(shelf(&place).join(format!("own-{n}.md")).exists(), "{n}");
        assert!(log.contains(&format!("line {n}")), "{log}");
    }
    assert_eq!(file(&place, "MEMORY.md").matches("](").count(), 7);
}

#[test]
fn a_broken_file_is_named_everywhere_and_hides_nothing() {
    let place = Place::new();
    place.config("language: en\n");
    save(&place, "good", "x");
    fs::write(shelf(&place).join("bad.md"), "---\ntype: opinion\n---\nx").unwrap();
    let list = place.run(&["memory", "list", "--json"]).json();
    assert_eq!((list[0]["slug"].clone(), list[0]["error"].clone()), (json!("good"), Value::Null));
    assert_eq!(list[1]["slug"], "bad");
    assert!(list[1]["error"].as_str().unwrap().contains("opinion"), "{list}");
    let shown = place.run(&["memory", "list"]);
    assert!(
        shown.stdout.contains("[project] good: about good") && shown.stderr.contains("bad.md does not read"),
        "{shown:?}"
    );
    let doctor = place.run(&["doctor", "--json"]).json();
    let check = doctor.as_array().unwrap().iter().find(|check| check["what"] == "memory").unwrap().clone();
    assert!(check["ok"] == false && check["said"].as_str().unwrap().contains("bad.md"), "{check}");
    let model = place.script("name: m\nsteps:\n- say: hi\n");
    let ran = place.run(&["run", "x", "--model", &model]);
    assert!(ran.status == 0 && ran.stderr.contains("bad.md is left out"), "{ran:?}");
    let error = call(&place, "memory_read", &json!({ "name": "bad" }));
    assert!(error.stderr.contains("does not read"), "{error:?}");
    // The editor mends it.
    let edit = place.command(&["memory", "edit", "bad"]).env("EDITOR", "sed -i s/opinion/user/").output().unwrap();
    assert!(edit.status.success(), "{edit:?}");
    assert_eq!(place.run(&["memory", "show", "bad", "--json"]).json()["type"], "user");
}

#[test]
fn a_person_lists_shows_edits_and_forgets() {
    let place = Place::new();
    place.config("language: en\n");
    assert!(place.run(&["memory", "list"]).stderr.contains("no memories yet"));
    save(&place, "zero point", "23.9");
    let shown = place.run(&["memory", "show", "zero-point"]);
    assert!(shown.stdout.contains("23.9") && shown.stderr.contains("zero-point.md"), "{shown:?}");
    let edit = |editor: &str| {
        let mut command = place.command(&["memory", "edit", "zero-point"]);
        Ran::of(command.env("EDITOR", editor).output().unwrap())
    };
    assert!(edit("sed -i s/23.9/25.0/").stdout.contains("zero-point is written"));
    assert!(file(&place, "zero-point.md").contains("25.0") && file(&place, "zero-point_v1.md").contains("23.9"));
    assert!(edit("true").stderr.contains("nothing was changed"));
    let broken = edit("sed -i s/project/opinion/");
    assert!(broken.status == 2 && broken.stderr.contains("opinion") && broken.stderr.contains("kept in"), "{broken:?}");
    let kept = broken.stderr.split("kept in ").nth(1).unwrap().split(": ").next().unwrap();
    assert!(fs::read_to_string(kept).unwrap().contains("opinion"));
    assert_eq!(edit("false").status, 1);
    let none = place.run(&["memory", "edit", "zero-point"]);
    assert!(none.status == 2 && none.stderr.contains("EDITOR"), "{none:?}");
    assert!(place.run(&["memory", "forget", "zero-point"]).stdout.contains("zero-point_v2.md"));
    assert_eq!(place.run(&["memory", "list", "--json"]).json(), json!([]));
    let all = place.run(&["memory", "list", "--all", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert!(place.run(&["memory", "show", "zero-point_v1"]).stdout.contains("23.9"));
    for command in ["show", "edit", "forget"] {
        let ran = place.run(&["memory", command, "zero-point"]);
        assert!(ran.status == 2 && ran.stderr.contains("forgotten"), "{ran:?}");
    }
}

#[test]
fn another_library_is_another_memory() {
    let place = Place::new();
    save(&place, "here", "x");
    fs::create_dir(place.workspace().join("lib")).unwrap();
    assert_eq!(place.run(&["memory", "list", "--library", "lib", "--json"]).json(), json!([]));
    let ran = place.run(&["memory", "list", "--library", "absent"]);
    assert!(ran.status == 2 && ran.stderr.contains("absent"), "{ran:?}");
}
