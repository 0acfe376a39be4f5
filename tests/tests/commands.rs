//! Slash commands, in `run` and in `chat`: files that expand into messages, and the program's own.

use astrarium_tests::place::{Place, Ran};
use astrarium_tests::strict::{KEY, Piece, Said, Strict};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// A command file of the workspace, or below another folder of the place's own.
fn put(place: &Place, path: &str, text: &str) {
    place.file(&format!(".astrarium/commands/{path}"), text);
}

fn texts(place: &Place, session: &str) -> Vec<String> {
    let shown = place.run(&["session", "show", session, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter().filter(|message| message["origin"] == "user");
    let text = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join(" | ")
    };
    messages.map(text).collect()
}

fn sessions(place: &Place) -> Vec<Value> {
    place.run(&["session", "list", "--json"]).json().as_array().unwrap().clone()
}

fn chat(place: &Place, model: &str, lines: &str) -> Ran {
    let mut command = place.command(&["chat", "--model", model]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn a_command_file_becomes_a_message_that_says_what_was_called() {
    let place = Place::new();
    put(&place, "greet.md", "---\ndescription: Greets\n---\nGreet $1 and $2. All: $ARGUMENTS\n");
    let model = place.script("name: c\nsteps:\n- say: hello\n  expect: 'Greet M31'\n");
    let ran = place.run(&["run", "/greet M31 'two words'", "--model", &model, "--output", "json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let session = ran.json()["session"].as_str().unwrap().to_owned();
    assert_eq!(
        texts(&place, &session),
        ["<command-name>/greet</command-name>\n<command-args>M31 'two words'</command-args> | \
          Greet M31 and two words. All: M31 'two words'"]
    );
    assert_eq!(sessions(&place)[0]["title"], "/greet M31 'two words'");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_command_is_taken_on_both_wires() {
    for (name, key, base, path) in [
        ("anthropic:strict", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
        ("openai:strict", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    ] {
        let server = Strict::start().await;
        let place = Place::new();
        put(&place, "greet.md", "Greet $1.");
        server.plan(Said::new([Piece::Text("hello")]));
        let mut command = place.command(&["run", "/greet M31", "--model", name]);
        command.env(key, KEY).env(base, format!("{}{path}", server.address()));
        let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap();
        assert_eq!(ran.status, 0, "{ran:?}");
        assert_eq!(server.violations(), Vec::<String>::new());
        let request = server.requests()[0].to_string();
        assert!(request.contains("<command-name>/greet</command-name>") && request.contains("Greet M31."), "{request}");
    }
}

#[test]
fn nearer_files_win_what_ships_is_there_and_a_broken_one_hides_no_other() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("commands")).unwrap();
    fs::write(place.home().join("commands/a.md"), "from home").unwrap();
    place.file(".claude/commands/a.md", "from claude").file(".claude/commands/b.md", "from claude");
    put(&place, "a.md", "from astrarium");
    put(&place, "empty.md", "---\ndescription: nothing\n---\n");
    put(&place, "exit.md", "never");
    let model = place.script("name: c\nsteps:\n- say: ok\n");
    for (prompt, expected) in [("/a", "from astrarium"), ("/b", "from claude")] {
        let ran = place.run(&["run", prompt, "--model", &model, "--output", "json"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        for word in ["empty.md is left out: it has no prompt", "/exit is built in"] {
            assert!(ran.stderr.contains(word), "{word}: {ran:?}");
        }
        let session = ran.json()["session"].as_str().unwrap().to_owned();
        assert!(texts(&place, &session)[0].ends_with(expected), "{:?}", texts(&place, &session));
    }
    let help = chat(&place, &model, "/help\n");
    for word in
        ["/explain-paper PAPER [QUESTION]", "(shipped)", "/b", "(workspace)", "/clear", "/compact [INSTRUCTIONS]"]
    {
        assert!(help.stdout.contains(word), "{word}: {help:?}");
    }
}

#[test]
fn what_is_no_command_suggests_the_nearest_and_begins_no_session() {
    let place = Place::new();
    put(&place, "lit-review.md", "x");
    let model = place.script("name: c\nsteps:\n- say: ok\n");
    for (prompt, word) in [
        ("/lit-reveiw M31", "did you mean /lit-review?"),
        ("/hlep", "did you mean /help?"),
        ("/zzzz", "no command /zzzz ("),
        ("/cost", "astrarium session show"),
    ] {
        let ran = place.run(&["run", prompt, "--model", &model]);
        assert!(ran.status == 2 && ran.stderr.contains(word), "{word}: {ran:?}");
    }
    assert!(sessions(&place).is_empty());
    for prompt in ["/data/a.fits is what?", " /zzzz"] {
        assert_eq!(place.run(&["run", prompt, "--model", &model]).status, 0, "{prompt}");
    }
}

#[test]
fn the_programs_own_commands_do_what_they_say() {
    let place = Place::new();
    let other = place.workspace().join("other.yaml");
    fs::write(&other, "name: other\nsteps:\n- say: never\n- say: I am the other\n- say: once more\n").unwrap();
    let model = place.script("name: c\nsteps:\n- say: first\n  usage: { input: 10, output: 5 }\n- say: second\n");
    place.config(&format!("language: en\nprices: {{ '{model}': {{ input: 1000, output: 2000 }} }}\n"));
    let lines = format!(
        "/model\n/cost\n/clear\n/plugins\n/plugins guard\n/skills\n/memory\n/prompt\nhello\n/cost\n/model nope\n/model scripted:{}\n\
         and now\n/prompt\n/clear\nanew\n/exit\nnever reached\n",
        other.display()
    );
    let ran = chat(&place, &model, &lines);
    assert_eq!(ran.status, 0, "{ran:?}");
    for word in [
        "script.yaml\n",
        "planner",
        "pre-tool-use",
        "tokens: 10 fresh, 0 read from cache, 0 written to it, 5 answered",
        "cost: 0.0200, at the prices of scripted:",
        "first\n",
        "I am the other\n",
        "identity",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {ran:?}");
    }
    for word in [
        "there is no conversation yet",
        "no memories yet",
        "nope",
        "other.yaml answers from now on",
        "the old one: astrarium chat --session",
    ] {
        assert!(ran.stderr.contains(word), "{word}: {ran:?}");
    }
    assert!(!ran.stdout.contains("never reached") && !ran.stdout.contains("second"), "{ran:?}");
    let sessions = sessions(&place);
    assert_eq!(
        sessions.iter().map(|session| session["title"].as_str().unwrap()).collect::<Vec<_>>(),
        ["anew", "hello"]
    );
    assert_eq!(sessions[1]["model"], format!("scripted:{}", other.display()));
    assert_eq!(chat(&place, &model, "/nope\n").status, 2, "a script sees the mistake of its last line");
}

#[test]
fn a_command_is_confined_to_its_tools_and_answered_by_its_model_for_one_turn() {
    let place = Place::new();
    place.config("language: en\n").file("a.txt", "x\n");
    let call = "calls: [{ tool: glob_files, input: { pattern: '*.txt' } }]";
    let other = place.workspace().join("other.yaml");
    let by_address = "calls: [{ tool: call_tool, input: { name: glob_files, input: { pattern: '*.txt' } } }]";
    fs::write(&other, format!("name: other\nsteps:\n- {call}\n- {by_address}\n- say: other answers\n")).unwrap();
    let look = format!("---\nallowed-tools: Reed, read_file\nmodel: scripted:{}\n---\nLook.", other.display());
    fs::create_dir_all(place.home().join("commands")).unwrap();
    fs::write(place.home().join("commands/look.md"), &look).unwrap();
    let model = place.script(&format!("name: c\nsteps:\n- say: no\n- say: no\n- {call}\n- say: own answers\n"));
    let ran = chat(&place, &model, "/look\nlook\n");
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("allowed-tools of /look: Reed is left out: there is no such tool here"), "{ran:?}");
    assert!(ran.stderr.contains("other.yaml answers /look"), "{ran:?}");
    assert!(ran.stderr.contains("glob_files is not among the allowed-tools of /look: read_file"), "{ran:?}");
    assert!(ran.stdout.contains("other answers") && ran.stdout.contains("own answers"), "{ran:?}");
    assert_eq!(ran.stderr.matches("  refused\n").count(), 2, "the next turn may call it: {ran:?}");
    put(&place, "ask.md", "---\nmodel: haiku\n---\nAsk.");
    let ran = place.run(&["run", "/ask", "--model", &model]);
    assert!(ran.status == 0 && ran.stderr.contains("haiku, which does not open"), "{ran:?}");
}

#[test]
fn a_skill_is_called_by_its_name_and_its_body_is_said_once() {
    let place = Place::new();
    place.config("language: en\n");
    let skill = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\ndescription: Does {name}\n{more}---\nDo it to $ARGUMENTS.\n");
        place.file(&format!(".astrarium/skills/{name}/SKILL.md"), &text);
    };
    skill("Fit_Lines", "argument-hint: <spectrum>\ndisable-model-invocation: true\n");
    skill("inner", "user-invocable: false\n");
    skill("greet", "");
    put(&place, "greet.md", "from a command file");
    let model = place.script("name: c\nsteps:\n- say: ok\n- say: ok\n- say: ok\n");
    let ran = chat(&place, &model, "/help\n/fit-lines M31\n/fit_lines M33\n/inner\n/greet\n");
    assert!(
        ran.stdout.contains("/fit-lines <spectrum>") && ran.stdout.contains("Does Fit_Lines (skill, workspace)"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("/inner") && ran.stderr.contains("inner is for the model only"), "{ran:?}");
    let session = sessions(&place)[0]["id"].as_str().unwrap().to_owned();
    let said = texts(&place, &session);
    let folder = place.workspace().canonicalize().unwrap().join(".astrarium/skills/Fit_Lines");
    assert_eq!(
        said[0],
        format!(
            "<command-name>/fit-lines</command-name>\n<command-args>M31</command-args> | \
             # Skill: Fit_Lines (Does Fit_Lines)\n\nBase directory: {}\n\nDo it to M31.",
            folder.display()
        )
    );
    assert!(
        said[1].contains("<command-args>M33<") && said[1].contains("is loaded in this conversation already"),
        "{said:?}"
    );
    assert!(said[2].ends_with("from a command file"), "a command file comes first: {said:?}");
    let list = place.run(&["skill", "list", "--json"]).json();
    assert_eq!((&list[0]["name"], &list[0]["uses"]), (&"Fit_Lines".into(), &2.into()), "{list}");
    let near = place.run(&["run", "/fit-line", "--model", &model]);
    assert!(near.status == 2 && near.stderr.contains("did you mean /fit-lines?"), "{near:?}");
}

#[test]
fn a_command_of_the_workspace_chooses_no_other_provider_and_plays_no_script() {
    let place = Place::new();
    place.config("language: en\n");
    let evil =
        "name: evil\nsteps:\n- calls: [{ tool: file_write, input: { path: owned.txt, content: x } }]\n- say: owned\n";
    place.file("evil.yaml", evil);
    let model = place.script("name: c\nsteps:\n- say: own answers\n- say: own answers\n");
    for chosen in ["scripted:evil.yaml", "evil.yaml", "openai:gpt-x"] {
        put(&place, "ev.md", &format!("---\nmodel: {chosen}\n---\nGo."));
        let ran = place.run(&["run", "/ev", "--model", &model]);
        assert!(ran.status == 0 && ran.stdout.contains("own answers"), "{chosen}: {ran:?}");
        assert!(ran.stderr.contains("is chosen by a file of the workspace"), "{chosen}: {ran:?}");
    }
    assert!(!place.workspace().join("owned.txt").exists());
}

#[test]
fn a_limit_that_names_no_tool_allows_none() {
    let place = Place::new();
    place.config("language: en\n").file("a.txt", "x\n");
    let call = "- calls: [{ tool: glob_files, input: { pattern: '*.txt' } }]\n- say: done\n";
    for limit in ["[]", "nosuch", "[Bash(git:*)]", "[glob_files(*.txt)]"] {
        put(&place, "look.md", &format!("---\nallowed-tools: {limit}\n---\nLook."));
        let model = place.script(&format!("name: c\nsteps:\n{call}"));
        let ran = place.run(&["run", "/look", "--model", &model]);
        assert!(ran.stderr.contains("glob_files is not among the allowed-tools of /look"), "{limit}: {ran:?}");
        assert_eq!(ran.stderr.contains("is left out"), limit != "[]", "{limit}: {ran:?}");
    }
    // The names that other hosts give to their tools are those of ours.
    put(&place, "look.md", "---\nallowed-tools: Glob\n---\nLook.");
    let model = place.script(&format!("name: c\nsteps:\n{call}"));
    let ran = place.run(&["run", "/look", "--model", &model]);
    assert!(!ran.stderr.contains("not among the allowed-tools"), "{ran:?}");
}
