//! Files beside a question: text and pictures on both wires, by `--attach` and by `@path`, over a resume, and what is refused.

use astrarium_tests::place::{Place, Ran};
use astrarium_tests::strict::{KEY, Piece, Said, Strict};
use std::fs;

/// A PNG of 4 × 3 pixels, as far as anyone looks at it.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x04\0\0\0\x03\x08\x02\0\0\0";
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA=";

const WIRES: [(&str, &str, &str, &str, &str); 2] = [
    ("anthropic:strict", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", "\"media_type\":\"image/png\""),
    ("openai:strict", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1", "data:image/png;base64,"),
];

async fn ran(place: &Place, arguments: &[&str], key: &str, base: &str, url: String) -> Ran {
    let mut command = place.command(arguments);
    command.env(key, KEY).env(base, url);
    tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn text_and_pictures_reach_the_model_on_both_wires_and_are_kept_over_a_resume() {
    for (name, key, base, path, picture) in WIRES {
        let server = Strict::start().await;
        let place = Place::new();
        place.file("notes.md", "the redshift is 0.0044\n");
        fs::write(place.workspace().join("m87.png"), PNG).unwrap();
        let outside = tempfile::tempdir().unwrap();
        let table = outside.path().join("table.csv");
        fs::write(&table, "name,z\nM87,0.0044\n").unwrap();
        let url = format!("{}{path}", server.address());

        server.plan(Said::new([Piece::Text("seen")]));
        let prompt = "What do @notes.md and @m87.png say?";
        let arguments = ["run", prompt, "--attach", table.to_str().unwrap(), "--model", name];
        let first = ran(&place, &arguments, key, base, url.clone()).await;
        assert_eq!(first.status, 0, "{first:?}");
        server.plan(Said::new([Piece::Text("still seen")]));
        let second = ran(&place, &["run", "And now?", "--continue", "--model", name], key, base, url).await;
        assert_eq!(second.status, 0, "{second:?}");

        assert_eq!(server.violations(), Vec::<String>::new());
        for request in server.requests() {
            let sent = request.to_string();
            let at = |what: &str| sent.find(what).unwrap_or_else(|| panic!("{name}: no {what} in {sent}"));
            assert!(at("M87,0.0044") < at("the redshift is 0.0044"), "in the order in which they were named");
            assert!(at("the redshift is 0.0044") < at(PNG_BASE64) && at(PNG_BASE64) < at(prompt));
            at(picture);
        }
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn what_cannot_be_attached_is_said_before_anything_is_asked() {
    let place = Place::new();
    place.file("paper.pdf", "%PDF-1.7");
    let model = place.script("name: a\nsteps:\n- say: hello\n");
    for (file, word) in [("paper.pdf", "is a PDF"), ("none.txt", "does not exist"), (".", "no regular file")] {
        let path = place.workspace().join(file);
        let ran = place.run(&["run", "look", "--attach", path.to_str().unwrap(), "--model", &model]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stderr.contains(word) && ran.stderr.lines().count() == 1, "{ran:?}");
    }
    assert_eq!(place.run(&["session", "list", "--json"]).json().as_array().unwrap().len(), 0);
}

#[test]
fn a_mention_that_is_no_file_is_text_and_one_that_leads_out_is_left_out() {
    let place = Place::new();
    place.file("large.txt", "a line of some words\n".repeat(20_000));
    std::os::unix::fs::symlink("/etc/hostname", place.workspace().join("link")).unwrap();
    let model = place.script("name: a\nsteps:\n- say: hello\n  expect: 'ask @nobody'\n");
    let ran = place.run(&["run", "ask @nobody of @link and @large.txt", "--model", &model, "--output", "json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("@link is not attached: it is no file of the workspace"), "{ran:?}");
    assert!(ran.stderr.contains("large.txt is cut:"), "{ran:?}");
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    let shown = place.run(&["session", "show", &id, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap();
    let attached: Vec<_> = messages.iter().filter(|message| message["origin"] == "attached").collect();
    assert_eq!(attached.len(), 1, "{shown}");
    let text = attached[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("of 20000 lines") || text.contains("共 20000 行"), "{}", &text[text.len() - 300..]);
}

#[test]
fn a_command_of_a_strange_repository_attaches_nothing_and_its_arguments_do() {
    let place = Place::new();
    place.file(".claude/commands/look.md", "Look at @own.txt and $ARGUMENTS.");
    place.file("own.txt", "of the repository").file("mine.txt", "of the person");
    let model = place.script("name: a\nsteps:\n- say: hello\n");
    let ran = place.run(&["run", "/look @mine.txt", "--model", &model, "--output", "json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let id = ran.json()["session"].as_str().unwrap().to_owned();
    let shown = place.run(&["session", "show", &id]).stdout;
    assert!(shown.contains("of the person") && !shown.contains("of the repository"), "{shown}");
}
