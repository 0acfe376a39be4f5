//! Strict checking of skills against the public validator `skills-ref`, over a generated corpus of good and bad files.
//!
//! What we refuse beyond it is named case by case, so that a new difference is a failure and not a surprise.

use astrarium::skill::{Level, strict};
use astrarium_tests::place::python;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// How the two judges relate on a variation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// They agree.
    Same,
    /// The rules refuse it and the validator does not look.
    Stricter,
    /// A field of this host: the validator refuses it, we note it.
    Ours,
    /// The validator's known fault: ` --- ` inside of a value ends its frontmatter, whatever follows.
    Fault,
}
use Relation::{Fault, Ours, Same, Stricter};

type Variation = (&'static str, Relation);

const OPENING: &[Variation] =
    &[("---\n", Same), ("", Same), ("\n---\n", Same), ("\u{feff}---\n", Same), ("--- \n", Same), ("---\r\n", Same)];

const NAME: &[Variation] = &[
    ("name: a-b\n", Same),
    ("name: 'a-b'\n", Same),
    ("name: \" a-b \"\n", Same),
    ("name: a-b # comment\n", Same),
    ("name:   a-b  \n", Same),
    ("name: A-b\n", Same),
    ("name: a_b\n", Same),
    ("name: -a-b\n", Same),
    ("name: a-b-\n", Same),
    ("name: a--b\n", Same),
    ("name: a b\n", Same),
    ("name: other\n", Same),
    ("name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", Same),
    ("name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", Same),
    ("name: 123\n", Same),
    ("name: null\n", Same),
    ("name: ~\n", Same),
    ("name:\n", Same),
    ("name: ''\n", Same),
    ("name: [a-b]\n", Same),
    ("name:\n  - a-b\n", Same),
    ("name:\n  a: b\n", Same),
    ("name: &x a-b\n", Same),
    ("name: !x a-b\n", Same),
    ("name: a-b\nname: a-b\n", Same),
    ("Name: a-b\n", Same),
    ("\"name\": a-b\n", Same),
    ("", Same),
    ("name: 星系\n", Stricter),
    ("name: été\n", Stricter),
];

const DESCRIPTION: &[Variation] = &[
    ("description: What it does and when to use it.\n", Same),
    ("description: 系统性文献综述\n", Same),
    ("description: \"Use when: asked\"\n", Same),
    ("description: Use when: asked\n", Same),
    ("description: >\n  folded\n  text\n", Same),
    ("description: |\n  literal\n  text\n", Same),
    ("description: one\n  two\n", Same),
    ("description: one # comment\n", Same),
    ("description: a:b c\n", Same),
    ("description: it's \"so\"\n", Same),
    ("description: \"unclosed\n", Same),
    ("description: \"closed\" too early\n", Same),
    ("description: *alias\n", Same),
    ("description: @at\n", Same),
    ("description: `tick`\n", Same),
    ("description: 100%\n", Same),
    ("description: %x\n", Same),
    ("description: [a, b]\n", Same),
    ("description: {a: b}\n", Same),
    ("description:\n  - a\n  - b\n", Same),
    ("description:\n  a: b\n", Same),
    ("description:\n", Same),
    ("description: ''\n", Same),
    ("description: ' '\n", Same),
    ("description: null\n", Same),
    ("description: 12\n", Same),
    ("description:\tx\n", Same),
    ("\tdescription: x\n", Same),
    ("  description: x\n", Same),
    ("description: x\n  y: z\n", Same),
    ("description : x\n", Same),
    ("description:x\n", Same),
    ("", Same),
    ("description: x --- y\n", Fault),
    ("description: x ---\n", Fault),
];

const MORE: &[Variation] = &[
    ("", Same),
    ("license: MIT\n", Same),
    ("compatibility: Needs Python\n", Same),
    ("compatibility: [a]\n", Same),
    ("metadata:\n  author: x\n  version: \"1.0\"\n", Same),
    ("metadata:\n  version: 1.0\n  on: true\n", Same),
    ("metadata:\n  a: x\n  a: y\n", Same),
    ("metadata: { a: b }\n", Same),
    ("metadata:\n\ta: b\n", Same),
    ("allowed-tools: Read Bash(git add:*)\n", Same),
    ("allowed-tools: \"Bash(git:*) Read\"\n", Same),
    ("allowed-tools: [a, b]\n", Same),
    ("author: x\n", Same),
    ("# comment\n", Same),
    ("\n\n", Same),
    ("words\n", Same),
    ("- item\n", Same),
    ("? license\n: MIT\n", Same),
    ("1: x\n", Same),
    ("%YAML 1.2\n", Same),
    ("license: MIT\nlicense: MIT\n", Same),
    ("license: &x MIT\ncompatibility: *x\n", Same),
    ("license:\n  - MIT\n", Stricter),
    ("license: ''\n", Stricter),
    ("compatibility: ''\n", Stricter),
    ("compatibility:\n", Stricter),
    ("metadata:\n", Stricter),
    ("metadata: x\n", Stricter),
    ("metadata:\n  - a\n", Stricter),
    ("metadata:\n  a:\n    b: c\n", Stricter),
    ("metadata:\n  a:\n    - b\n", Stricter),
    ("allowed-tools: Read, Bash\n", Stricter),
    ("allowed-tools:\n  - Read\n", Stricter),
    ("allowed-tools:\n", Stricter),
    ("when_to_use: later\n", Ours),
    ("context: fork\n", Ours),
    ("user-invocable: false\n", Ours),
];

const CLOSING: &[Variation] = &[
    ("---\n\n# Body\n\n---\n\nText.\n", Same),
    ("---\n", Same),
    ("---", Same),
    ("---   \nText.\n", Same),
    ("---\r\nText.\r\n", Same),
    ("Text.\n", Same),
    ("...\nText.\n", Same),
];

/// A file of one choice of each part.
#[derive(Debug)]
struct Case {
    parts: [Variation; 6],
    text: String,
}

impl Case {
    fn new(choice: [usize; 6]) -> Self {
        let tables = tables();
        let parts: [Variation; 6] = std::array::from_fn(|part| tables[part][choice[part] % tables[part].len()]);
        Self { text: parts.iter().map(|(text, _)| *text).collect(), parts }
    }

    fn has(&self, relation: Relation) -> bool {
        self.parts.iter().any(|(_, other)| *other == relation)
    }

    /// What the validator is to judge: the same without the fields that are ours alone.
    fn for_validator(&self) -> String {
        self.parts.iter().filter(|(_, relation)| *relation != Ours).map(|(text, _)| *text).collect()
    }

    /// A folder of the skill's name, so that only the cases meant to differ do.
    fn folder(&self) -> &str {
        let name = self.parts[1].0.strip_prefix("name: ").unwrap_or_default().trim();
        let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) && name != "other";
        if plain && !name.is_empty() { name } else { "a-b" }
    }
}

fn tables() -> [&'static [Variation]; 6] {
    [OPENING, NAME, DESCRIPTION, MORE, MORE, CLOSING]
}

/// Every variation alone, and some thousand mixtures, the same ones in each run.
fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    for (part, table) in tables().iter().enumerate() {
        cases.extend((0..table.len()).map(|n| {
            let mut choice = [0; 6];
            choice[part] = n;
            Case::new(choice)
        }));
    }
    for most in [1024, 1025] {
        let mut case = Case::new([0; 6]);
        case.text = case.text.replace("What it does and when to use it.", &"星".repeat(most));
        cases.push(case);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Half of the parts stay good, or hardly any mixture would be.
        if state >> 40 & 1 == 0 { 0 } else { (state >> 41) as usize % below }
    };
    cases.extend((0..1_500).map(|_| Case::new(tables().map(|table| draw(table.len())))));
    cases
}

/// What the validator says of each folder of a list; what makes it fail is refused.
const VALIDATE: &str = r#"
import json, sys, pathlib, skills_ref
answers = {}
for folder in sys.stdin.read().split("\n"):
    try:
        answers[folder] = skills_ref.validate(pathlib.Path(folder))
    except Exception as error:
        answers[folder] = [repr(error)]
print(json.dumps(answers))
"#;

fn validate(folders: &[String]) -> BTreeMap<String, Vec<String>> {
    use std::io::Write as _;
    let mut child = Command::new(python())
        .args(["-X", "utf8", "-c", VALIDATE])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the Python of the set-up starts");
    child.stdin.take().unwrap().write_all(folders.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the validator ran to its end");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn put(root: &Path, number: usize, name: &str, text: &str) -> String {
    let folder = root.join(number.to_string()).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
    folder.display().to_string()
}

#[test]
fn strict_checking_agrees_with_the_public_validator() {
    let root = tempfile::tempdir().unwrap();
    let cases = corpus();
    let of_case = |case: &Case| match case.has(Ours) {
        true => case.for_validator(),
        false => case.text.clone(),
    };
    let folders: Vec<String> = cases
        .iter()
        .enumerate()
        .map(|(number, case)| put(root.path(), number, case.folder(), &of_case(case)))
        .collect();
    let answers = validate(&folders);
    let (mut good, mut bad, mut wrong) = (0, 0, Vec::new());
    for (case, folder) in cases.iter().zip(&folders) {
        let errors: Vec<_> = strict::check(case.text.as_bytes(), case.folder())
            .into_iter()
            .filter(|f| f.level == Level::Error)
            .collect();
        let (ours, theirs) = (errors.is_empty(), answers[folder].is_empty());
        if ours {
            good += 1
        } else {
            bad += 1
        }
        let agree = match (case.has(Fault), case.has(Stricter)) {
            (true, _) => true,
            (false, true) => !ours,
            (false, false) => ours == theirs,
        };
        // Whatever passes here passes there.
        if !agree || (ours && !theirs && !case.has(Fault)) {
            wrong.push(format!("{:?}\n  ours: {errors:?}\n  theirs: {:?}", case.text, answers[folder]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(good > 100 && bad > 100, "a corpus of both kinds: {good} good, {bad} bad");
}

#[test]
fn the_known_fault_of_the_validator_is_still_there() {
    let root = tempfile::tempdir().unwrap();
    let text = "---\nname: a-b\ndescription: x --- y\nlicense: [MIT]\n---\n";
    let folder = put(root.path(), 0, "a-b", text);
    assert_eq!(
        validate(std::slice::from_ref(&folder))[&folder],
        Vec::<String>::new(),
        "it cuts at --- and never sees the list"
    );
    assert!(!strict::check(text.as_bytes(), "a-b").is_empty());
}
