//! The lenient corpus, each case with its right value; what must hold for any bytes at all is beside it.

mod laws;

use super::*;
use expect_test::{Expect, expect};

/// Shows what a file reads as: the fields that differ from their defaults, the body, and the findings.
fn shown(skill: &Skill) -> String {
    let mut lines = vec![format!("name: {}", skill.name)];
    let text = |key: &str, value: &Option<String>| value.as_ref().map(|value| format!("{key}: {value:?}"));
    lines.extend(text("description", &skill.description));
    lines.extend(text("when_to_use", &skill.when_to_use));
    lines.extend((skill.context == Mode::Fork).then(|| "context: fork".to_owned()));
    lines.extend((!skill.allowed_tools.is_empty()).then(|| format!("allowed-tools: {:?}", skill.allowed_tools)));
    lines.extend(text("model", &skill.model));
    lines.extend(text("argument-hint", &skill.argument_hint));
    lines.extend(skill.disable_model_invocation.then(|| "disable-model-invocation: true".to_owned()));
    lines.extend((!skill.user_invocable).then(|| "user-invocable: false".to_owned()));
    lines.extend(text("version", &skill.version));
    lines.extend((!skill.paths.is_empty()).then(|| format!("paths: {:?}", skill.paths.globs())));
    lines.extend(text("agent", &skill.agent));
    lines.extend(skill.effort.map(|effort| format!("effort: {effort:?}")));
    lines.push(format!("body: {:?}", skill.body));
    lines.extend(skill.findings.iter().map(|finding| format!("{}: {}", finding.line, finding.text)));
    lines.join("\n")
}

fn check(bytes: impl AsRef<[u8]>, expected: Expect) {
    expected.assert_eq(&shown(&read(bytes.as_ref(), "folder")));
}

#[test]
fn an_empty_list_of_tools_is_a_limit_and_no_list_is_none() {
    let limits = |line: &str| read(format!("---\ndescription: d\n{line}\n---\nb").as_bytes(), "s").limits_tools;
    assert!(limits("allowed-tools: []") && limits("allowed-tools: Read") && limits("allowed_tools: ''"));
    assert!(!limits("allowed-tools:") && !limits("version: 1"));
}

#[test]
fn the_example_of_the_source_document() {
    check(
        "---\nname: methodology\ndescription: 系统性文献综述方法论——如何高效地完成学术文献调研\ncontext: inline\nallowed-tools:\n  - read_file\n  - search_papers\nmodel: sonnet\nargument-hint: \"<research question>\"\nwhen_to_use: 当用户请求文献综述或调研时\ndisable-model-invocation: false\nuser-invocable: true\nversion: \"1.0\"\npaths:\n  - \"*.rs\"\n  - \"*.toml\"\nagent: code-reviewer\neffort: high\n---\n\n# Skill 正文 (Markdown)\n详细指引...\n",
        expect![[r##"
            name: methodology
            description: "系统性文献综述方法论——如何高效地完成学术文献调研"
            when_to_use: "当用户请求文献综述或调研时"
            allowed-tools: ["read_file", "search_papers"]
            model: "sonnet"
            argument-hint: "<research question>"
            version: "1.0"
            paths: ["*.rs", "*.toml"]
            agent: "code-reviewer"
            effort: High
            body: "# Skill 正文 (Markdown)\n详细指引...""##]],
    );
}

#[test]
fn defaults_fill_in_what_is_absent() {
    check(
        "---\ndescription: d\n---\nbody\n",
        expect![[r#"
        name: folder
        description: "d"
        body: "body""#]],
    );
}

#[test]
fn a_byte_order_mark_crlf_and_leading_blank_lines_are_passed_over() {
    check(
        "\u{feff}---\r\nname: a\r\ndescription: d\r\n---\r\nline one\r\nline two\r\n",
        expect![[r#"
        name: a
        description: "d"
        body: "line one\nline two""#]],
    );
    check(
        "\n  \n\n---\nname: a\ndescription: d\n---\nbody",
        expect![[r#"
        name: a
        description: "d"
        body: "body""#]],
    );
    check(
        "---\rname: a\rdescription: d\r---\rbody",
        expect![[r#"
        name: a
        description: "d"
        body: "body""#]],
    );
}

#[test]
fn tabs_indent() {
    check(
        "---\nname: a\ndescription: d\nallowed-tools:\n\t- read_file\n\t- run_bash\n---\nb",
        expect![[r#"
        name: a
        description: "d"
        allowed-tools: ["read_file", "run_bash"]
        body: "b"
        5: a line begins with a tab, which YAML forbids; use spaces"#]],
    );
    check(
        "---\nname: a\ndescription: >\n\tfolded\n\tlines\n---\nb",
        expect![[r#"
        name: a
        description: "folded lines"
        body: "b"
        4: a line begins with a tab, which YAML forbids; use spaces"#]],
    );
}

#[test]
fn tools_come_as_a_list_with_commas_or_with_spaces() {
    let tools = |value: &str| {
        let skill = read(format!("---\nname: a\ndescription: d\nallowed-tools: {value}\n---\nb").as_bytes(), "a");
        assert_eq!(skill.findings, [], "{value}");
        skill.allowed_tools.join("|")
    };
    assert_eq!(tools("read_file run_bash"), "read_file|run_bash");
    assert_eq!(tools("read_file, run_bash"), "read_file|run_bash");
    assert_eq!(tools("[read_file, run_bash]"), "read_file|run_bash");
    assert_eq!(tools("\n  - read_file\n  - run_bash"), "read_file|run_bash");
    assert_eq!(tools("\n- read_file\n- read_file"), "read_file");
    assert_eq!(tools("Bash(git add:*), Bash(git commit:*) Read"), "Bash(git add:*)|Bash(git commit:*)|Read");
    assert_eq!(tools("\"*\""), "*");
    assert_eq!(tools("{ read_file: true, run_bash: true }"), "read_file|run_bash");
    assert_eq!(tools(""), "");
}

#[test]
fn a_hint_in_brackets_is_the_text_that_was_written() {
    check(
        "---\nname: a\ndescription: d\nargument-hint: [optional: date]\n---\nb",
        expect![[r#"
        name: a
        description: "d"
        argument-hint: "[optional: date]"
        body: "b"
        4: argument-hint is a text, and YAML reads this one otherwise; put the value in quotes"#]],
    );
    check(
        "---\nname: a\ndescription: d\nargument-hint: [file] [mode]\n---\nb",
        expect![[r#"
            name: a
            description: "d"
            argument-hint: "[file] [mode]"
            body: "b"
            4: argument-hint is no YAML (while parsing a block mapping, did not find expected key) and was read as plain text; put the value in double quotes"#]],
    );
}

#[test]
fn folded_and_literal_descriptions() {
    check(
        "---\nname: a\ndescription: >-\n  one\n  two\n\n  three\n---\nb",
        expect![[r#"
        name: a
        description: "one two\nthree"
        body: "b""#]],
    );
    check(
        "---\nname: a\ndescription: |\n  one\n  ---\n    two\n---\nb",
        expect![[r#"
        name: a
        description: "one\n---\n  two"
        body: "b""#]],
    );
    check(
        "---\nname: a\ndescription: |\none: two\nthree\n---\nb",
        expect![[r#"
            name: a
            description: "one: two\nthree"
            body: "b"
            3: description is no YAML (simple key expected ':') and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription: one\n  two\n  three\n---\nb",
        expect![[r#"
        name: a
        description: "one two three"
        body: "b""#]],
    );
}

#[test]
fn unquoted_colons_and_other_signs() {
    check(
        "---\nname: a\ndescription: Use when: the user asks, e.g. \"why\"\nversion: 2\n---\nb",
        expect![[r#"
        name: a
        description: "Use when: the user asks, e.g. \"why\""
        version: "2"
        body: "b"
        3: description is no YAML (mapping values are not allowed in this context) and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription:\n  Use when: asked\n---\nb",
        expect![[r#"
        name: a
        description: "Use when: asked"
        body: "b"
        3: description is a text, and YAML reads this one otherwise; put the value in quotes"#]],
    );
    check(
        "---\nname: a\ndescription: [WIP] draws *all* plots\nwhen_to_use: *bold* wishes\n---\nb",
        expect![[r#"
        name: a
        description: "[WIP] draws *all* plots"
        when_to_use: "*bold* wishes"
        body: "b"
        3: description is no YAML (while parsing a block mapping, did not find expected key) and was read as plain text; put the value in double quotes
        4: when_to_use is no YAML (while parsing node, found unknown anchor) and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription: \"quoted\" and then not\nwhen_to_use: 'unclosed\n---\nb",
        expect![[r#"
        name: a
        description: "\"quoted\" and then not"
        when_to_use: "unclosed"
        body: "b"
        3: description is no YAML (invalid trailing content after double-quoted scalar) and was read as plain text; put the value in double quotes
        4: when_to_use is no YAML (unclosed quote) and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription: 'it's here'\n---\nb",
        expect![[r#"
        name: a
        description: "it's here"
        body: "b"
        3: description is no YAML (invalid trailing content after single-quoted scalar) and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription: &c. and !more\nmodel: !x y\n---\nb",
        expect![[r#"
        name: a
        description: "&c. and !more"
        model: "!x y"
        body: "b"
        4: model: "!x y" is none of haiku, sonnet, opus, inherit, and no full name of a model"#]],
    );
    check(
        "---\nname: @a\ndescription: 100% `code`\nwhen_to_use: %x\n---\nb",
        expect![[r#"
        name: @a
        description: "100% `code`"
        when_to_use: "%x"
        body: "b"
        2: name is no YAML (unexpected character: `@') and was read as plain text; put the value in double quotes
        2: name: "@a" is kept, and other hosts refuse it; use at most 64 of a to z, 0 to 9 and single - inside
        4: when_to_use is no YAML (unexpected character: `%') and was read as plain text; put the value in double quotes"#]],
    );
    check(
        "---\nname: a\ndescription: Fixes issue #12 and more\nwhen_to_use: see #12 # really\n---\nb",
        expect![[r#"
        name: a
        description: "Fixes issue"
        when_to_use: "see"
        body: "b"
        3: description: what follows # is a comment and was left out; put the value in quotes if it belongs
        4: when_to_use: what follows # is a comment and was left out; put the value in quotes if it belongs"#]],
    );
}

#[test]
fn rules_in_the_body_and_in_values_stay() {
    check(
        "---\nname: a\ndescription: x --- y\n---\n# T\n\n---\n\nmore\n---\nend",
        expect![[r##"
        name: a
        description: "x --- y"
        body: "# T\n\n---\n\nmore\n---\nend""##]],
    );
    check(
        "# T\n\n---\n\nmore\n",
        expect![[r##"
        name: folder
        body: "# T\n\n---\n\nmore"
        1: there is no frontmatter; begin the file with --- and name: and description:, and close it with ---
        1: description is missing; say in a line what the skill is for"##]],
    );
    check(
        "---\n\nJust a text.\n\n---\nmore\n",
        expect![[r#"
        name: folder
        body: "---\n\nJust a text.\n\n---\nmore"
        1: description is missing; say in a line what the skill is for
        2: between the --- lines is no key: value; all was taken for the body"#]],
    );
}

#[test]
fn frontmatter_that_is_not_closed_ends_where_its_keys_end() {
    check(
        "---\nname: a\ndescription: d\n\n# T\nbody",
        expect![[r##"
        name: a
        description: "d"
        body: "# T\nbody"
        1: the frontmatter is not closed; put a line --- below its last key"##]],
    );
    check(
        "---\nname: a\ndescription: d\n# T\nbody",
        expect![[r##"
        name: a
        description: "d"
        body: "# T\nbody"
        1: the frontmatter is not closed; put a line --- below its last key"##]],
    );
    check(
        "---\nno key\n",
        expect![[r#"
        name: folder
        body: "---\nno key"
        1: there is no frontmatter; begin the file with --- and name: and description:, and close it with ---
        1: description is missing; say in a line what the skill is for"#]],
    );
    check(
        "---\nname: a\n...\nbody",
        expect![[r#"
        name: a
        body: "body"
        2: description is missing; say in a line what the skill is for"#]],
    );
}

#[test]
fn names_of_every_kind() {
    let name = |value: &str| {
        let skill = read(format!("---\nname: {value}\ndescription: d\n---\nb").as_bytes(), "folder");
        assert_eq!(skill.findings.len(), 1, "{value}: {:?}", skill.findings);
        assert_eq!(skill.findings[0].line, 2);
        skill.name
    };
    assert_eq!(name("PDF-Tools"), "PDF-Tools");
    assert_eq!(name("my great  skill"), "my great  skill".replace("  ", " "));
    assert_eq!(name("my_skill"), "my_skill");
    assert_eq!(name("文献综述"), "文献综述");
    assert_eq!(name("a--b"), "a--b");
    assert_eq!(name("\"a\\nb\""), "a b");
    assert_eq!(name(&"x".repeat(65)).len(), 65);
    assert_eq!(folded("My_Great Skill"), "my-great-skill");
    assert_eq!(folded("my-great-skill"), "my-great-skill");
}

#[test]
fn no_frontmatter_empty_files_and_empty_frontmatter() {
    check(
        "# Title\n\nDo this.\n",
        expect![[r##"
        name: folder
        body: "# Title\n\nDo this."
        1: there is no frontmatter; begin the file with --- and name: and description:, and close it with ---
        1: description is missing; say in a line what the skill is for"##]],
    );
    check(
        "",
        expect![[r#"
        name: folder
        body: ""
        1: the file is empty; write a frontmatter and instructions
        1: description is missing; say in a line what the skill is for
        1: the skill has no instructions; write them below the frontmatter"#]],
    );
    check(
        " \n\n",
        expect![[r#"
        name: folder
        body: ""
        1: the file is empty; write a frontmatter and instructions
        1: description is missing; say in a line what the skill is for
        2: the skill has no instructions; write them below the frontmatter"#]],
    );
    check(
        "---\n---\nbody",
        expect![[r#"
        name: folder
        body: "body"
        1: description is missing; say in a line what the skill is for"#]],
    );
    check(
        "---\n# only a comment\n---\nbody",
        expect![[r#"
        name: folder
        body: "body"
        1: description is missing; say in a line what the skill is for"#]],
    );
}

#[test]
fn extra_keys_of_every_kind_are_kept() {
    let skill = read(
        b"---\nname: a\ndescription: d\nlicense: MIT\nmetadata:\n  author: x\n  version: 1.10\nhooks: [{ a: 1 }]\n1: one\n? [k]\n: v\nnothing:\nDescripton: x\nauthor: \xe2\x80\xaey\n---\nb",
        "a",
    );
    expect![[r#"
        name: a
        description: "d"
        body: "b"
        8: hooks is no field of a skill, and does nothing; put what is yours below metadata:
        9: 1 is no field of a skill, and does nothing; put what is yours below metadata:
        10: ["k"] is no field of a skill, and does nothing; put what is yours below metadata:
        12: nothing is no field of a skill, and does nothing; put what is yours below metadata:
        13: Descripton is no field of a skill; did you mean description?
        14: author is no field of a skill, and does nothing; put what is yours below metadata:"#]]
    .assert_eq(&shown(&skill));
    let kept = serde_json::to_string(&skill.frontmatter).unwrap();
    let expected = [
        r#"{"name":"a","description":"d","license":"MIT","metadata":{"author":"x","version":1.1},"hooks":[{"a":1}],"#,
        r#""1":"one","[\"k\"]":"v","nothing":null,"Descripton":"x","author":""#,
        "\u{202e}y\"}",
    ];
    assert_eq!(kept, expected.concat());
}

#[test]
fn keys_in_another_spelling_are_understood() {
    check(
        "---\nName: a\nDESCRIPTION: d\nwhen-to-use: w\nallowed_tools: x\nuserInvocable: no\n---\nb",
        expect![[r#"
        name: a
        description: "d"
        when_to_use: "w"
        allowed-tools: ["x"]
        user-invocable: false
        body: "b"
        2: Name was read as name; write it so
        3: DESCRIPTION was read as description; write it so
        4: when-to-use was read as when_to_use; write it so
        5: allowed_tools was read as allowed-tools; write it so
        6: userInvocable was read as user-invocable; write it so
        6: userInvocable: "no" was read as false; write true or false"#]],
    );
    check(
        "---\nname: a\nname: b\ndescription: d\n---\nb",
        expect![[r#"
        name: b
        description: "d"
        body: "b"
        3: name is written twice, and the last one counts; keep one"#]],
    );
}

#[test]
fn values_that_make_no_sense_fall_back_to_their_defaults() {
    check(
        "---\nname: a\ndescription: d\ncontext: spoon\ndisable-model-invocation: maybe\nuser-invocable: \"no\"\neffort: heroic\nmodel: best\nversion: [1, 2]\npaths: \"a[\"\n---\nb",
        expect![[r#"
            name: a
            description: "d"
            model: "best"
            user-invocable: false
            version: "[1, 2]"
            paths: ["a["]
            body: "b"
            4: context: "spoon" is none of inline, fork, and inline was taken
            5: disable-model-invocation: "maybe" is neither true nor false, and false was taken
            6: user-invocable: "no" was read as false; write true or false
            7: effort: "heroic" is none of low, medium, high, max, and was left out
            8: model: "best" is none of haiku, sonnet, opus, inherit, and no full name of a model
            9: version is a text, and YAML reads this one otherwise; put the value in quotes
            10: paths: "a[" is no glob and was left out: unclosed character class; missing ']'"#]],
    );
    check(
        "---\nname:\ndescription: ~\ncontext: null\nmodel: \"\"\nagent: []\n---\nb",
        expect![[r#"
            name: folder
            body: "b"
            2: description is missing; say in a line what the skill is for"#]],
    );
}

#[test]
fn paths_come_as_a_list_or_with_commas() {
    let paths = |value: &str| {
        let skill = read(format!("---\nname: a\ndescription: d\npaths: {value}\n---\nb").as_bytes(), "a");
        skill.paths.globs().join("|")
    };
    assert_eq!(paths("\"*.rs\""), "*.rs");
    assert_eq!(paths("*.rs, src/**/*.{c,h}"), "*.rs|src/**/*.{c,h}");
    assert_eq!(paths("*.rs *.toml"), "*.rs|*.toml");
    assert_eq!(paths("\n  - *.rs\n  - \"my notes/*.md\""), "*.rs|my notes/*.md");
    assert_eq!(paths("[*.rs, *.toml]"), "*.rs|*.toml");
    assert_eq!(paths("docs/my file.md"), "docs/my file.md");
}

#[test]
fn bytes_that_are_no_utf_8() {
    check(
        b"---\nname: a\ndescription: caf\xe9\n---\nM\xfcller \xe6\x98\x9f",
        expect![[r#"
        name: a
        description: "café"
        body: "Müller 星"
        3: the file is not UTF-8, and was read as Latin-1 from here; save it as UTF-8"#]],
    );
    let wide: Vec<u8> =
        "\u{feff}---\nname: a\ndescription: 星\n---\nb".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(
        wide,
        expect![[r#"
        name: a
        description: "星"
        body: "b"
        1: the file is UTF-16; save it as UTF-8"#]],
    );
    check(
        b"---\nname: a\ndescription: d\0e\n---\nb\0",
        expect![[r#"
        name: a
        description: "d\0e"
        body: "b\0"
        3: description is no YAML (unexpected character: `\u{0}') and was read as plain text; put the value in double quotes"#]],
    );
}

#[test]
fn a_long_body_is_kept_whole() {
    let body = "星系 and galaxies\n\n".repeat(28 << 10 >> 4);
    let skill = read(format!("---\nname: a\ndescription: d\n---\n{body}").as_bytes(), "a");
    assert_eq!(skill.body, body.trim());
    assert_eq!(skill.findings, []);
}

#[test]
fn a_frontmatter_without_end_costs_little() {
    let long = format!("---\nname: a\ndescription: {}\nx: {}\n---\nb", "d ".repeat(200_000), "[".repeat(100_000));
    let skill = read(long.as_bytes(), "a");
    assert_eq!((skill.name.as_str(), skill.body.as_str()), ("a", "b"));
}
