//! Skills as users and sessions meet them.

use astrarium_tests::place::Place;
use serde_json::Value;
use std::fs;

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
}
