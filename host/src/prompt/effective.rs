//! Which prompt is in force (SPEC 1.8, 1.9): override, else coordinator, else agent, else custom, else the default; what is
//! appended goes last, before the system context at the tail. Override replaces all of it.

use super::segments::{order, own};
use super::{Segment, Stability, Texts};
use serde::{Deserialize, Serialize};

/// How the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It answers a person.
    #[default]
    Default,
    /// It divides the work and checks what comes back.
    Coordinator,
    /// It goes on by itself, under a prompt of its own that is shorter.
    Proactive,
}

/// What the command line and the config want of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wishes {
    /// Takes the place of everything.
    pub override_prompt: Option<String>,
    /// How the agent works.
    pub mode: Mode,
    /// The body of an agent definition, and where it is from.
    pub agent: Option<(String, String)>,
    /// Takes the place of the default prompt.
    pub custom: Option<String>,
    /// Goes last.
    pub append: Option<String>,
    /// No person follows the run: a custom prompt then stands alone, without the system context.
    pub headless: bool,
}

/// What the effective prompt is made of, when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// The default segments: persona, tools, skills, memory, plugins, the operator's notes.
    pub default: Vec<Segment>,
    /// The system context.
    pub context: Vec<Segment>,
    /// How memory works, for a headless custom prompt that wants it; blank otherwise.
    pub memory_mechanics: Vec<Segment>,
}

/// Default segments that the proactive mode keeps.
const PROACTIVE: [&str; 3] = ["tools", "skills", "memory"];

fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.trim().is_empty())
}

/// The segments in force, not yet assembled.
pub fn effective(texts: &Texts, wishes: &Wishes, sources: Sources) -> Vec<Segment> {
    let flag = |name: &str, order: i32, text: &str| Segment {
        source: "command line".into(),
        ..own(name, order, Stability::Static, 0, text.to_owned())
    };
    if let Some(text) = given(&wishes.override_prompt) {
        return vec![flag("override", order::IDENTITY, text)];
    }
    let Sources { default, mut context, memory_mechanics } = sources;
    let agent = wishes.agent.as_ref().filter(|(text, _)| !text.trim().is_empty());
    let proactive = wishes.mode == Mode::Proactive;
    let mut segments = if wishes.mode == Mode::Coordinator {
        let text = texts.get("coordinator").to_owned();
        vec![own("coordinator", order::IDENTITY, Stability::Static, 0, text)]
    } else if let Some((text, source)) = agent.filter(|_| !proactive) {
        vec![Segment { source: source.clone(), ..flag("agent", order::IDENTITY, text) }]
    } else if let Some(text) = given(&wishes.custom).filter(|_| agent.is_none()) {
        if wishes.headless {
            context = memory_mechanics;
        }
        vec![flag("custom", order::IDENTITY, text)]
    } else if proactive {
        let text = texts.get("proactive").to_owned();
        let mut segments = vec![own("proactive", order::IDENTITY, Stability::Static, 0, text)];
        segments.extend(default.into_iter().filter(|segment| PROACTIVE.contains(&segment.name.as_str())));
        if let Some((text, source)) = agent {
            let text = format!("# Custom Agent Instructions\n\n{}", text.trim());
            segments.push(Segment { source: source.clone(), ..flag("agent", order::NOTES, &text) });
        }
        segments
    } else {
        default
    };
    if let Some(text) = given(&wishes.append) {
        segments.push(flag("append", order::APPEND, text));
    }
    segments.extend(context);
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::{Language, assemble};
    use expect_test::expect;

    /// Every combination of the table, a line each: which segments stand, in order.
    #[test]
    fn the_whole_priority_table() {
        let texts = Texts::built_in(Language::En);
        let segment = |name: &str, order| own(name, order, Stability::Session, 1, name.to_owned());
        let mut table = String::new();
        for bits in 0..32_u32 {
            for mode in [Mode::Default, Mode::Coordinator, Mode::Proactive] {
                let text = |bit: u32, text: &str| (bits & bit != 0).then(|| text.to_owned());
                let wishes = Wishes {
                    override_prompt: text(1, "over"),
                    mode,
                    agent: text(2, "agent").map(|text| (text, "a.md".into())),
                    custom: text(4, "custom"),
                    append: text(8, "append"),
                    headless: bits & 16 != 0,
                };
                let sources = Sources {
                    default: vec![
                        segment("identity", order::IDENTITY),
                        segment("tools", order::TOOLS),
                        segment("memory", order::MEMORY),
                        segment("principles", order::PRINCIPLES),
                    ],
                    context: vec![segment("environment", order::ENVIRONMENT)],
                    memory_mechanics: vec![segment("memory-mechanics", order::MEMORY)],
                };
                let assembly = assemble(effective(&texts, &wishes, sources), u64::MAX, |text| text.len() as u64);
                let names: Vec<&str> = assembly.segments.iter().map(|segment| segment.name.as_str()).collect();
                let word = |bit: u32, word: &'static str| if bits & bit != 0 { word } else { "-" };
                table.push_str(&format!(
                    "{:<8} {:<5} {:<6} {:<6} {:<8} {:<11} | {}\n",
                    word(1, "override"),
                    word(2, "agent"),
                    word(4, "custom"),
                    word(8, "append"),
                    word(16, "headless"),
                    format!("{mode:?}").to_lowercase(),
                    names.join(" ")
                ));
            }
        }
        expect![[r#"
            -        -     -      -      -        default     | identity tools memory principles environment
            -        -     -      -      -        coordinator | coordinator environment
            -        -     -      -      -        proactive   | proactive tools memory environment
            override -     -      -      -        default     | override
            override -     -      -      -        coordinator | override
            override -     -      -      -        proactive   | override
            -        agent -      -      -        default     | agent environment
            -        agent -      -      -        coordinator | coordinator environment
            -        agent -      -      -        proactive   | proactive tools memory agent environment
            override agent -      -      -        default     | override
            override agent -      -      -        coordinator | override
            override agent -      -      -        proactive   | override
            -        -     custom -      -        default     | custom environment
            -        -     custom -      -        coordinator | coordinator environment
            -        -     custom -      -        proactive   | custom environment
            override -     custom -      -        default     | override
            override -     custom -      -        coordinator | override
            override -     custom -      -        proactive   | override
            -        agent custom -      -        default     | agent environment
            -        agent custom -      -        coordinator | coordinator environment
            -        agent custom -      -        proactive   | proactive tools memory agent environment
            override agent custom -      -        default     | override
            override agent custom -      -        coordinator | override
            override agent custom -      -        proactive   | override
            -        -     -      append -        default     | identity tools memory principles append environment
            -        -     -      append -        coordinator | coordinator append environment
            -        -     -      append -        proactive   | proactive tools memory append environment
            override -     -      append -        default     | override
            override -     -      append -        coordinator | override
            override -     -      append -        proactive   | override
            -        agent -      append -        default     | agent append environment
            -        agent -      append -        coordinator | coordinator append environment
            -        agent -      append -        proactive   | proactive tools memory agent append environment
            override agent -      append -        default     | override
            override agent -      append -        coordinator | override
            override agent -      append -        proactive   | override
            -        -     custom append -        default     | custom append environment
            -        -     custom append -        coordinator | coordinator append environment
            -        -     custom append -        proactive   | custom append environment
            override -     custom append -        default     | override
            override -     custom append -        coordinator | override
            override -     custom append -        proactive   | override
            -        agent custom append -        default     | agent append environment
            -        agent custom append -        coordinator | coordinator append environment
            -        agent custom append -        proactive   | proactive tools memory agent append environment
            override agent custom append -        default     | override
            override agent custom append -        coordinator | override
            override agent custom append -        proactive   | override
            -        -     -      -      headless default     | identity tools memory principles environment
            -        -     -      -      headless coordinator | coordinator environment
            -        -     -      -      headless proactive   | proactive tools memory environment
            override -     -      -      headless default     | override
            override -     -      -      headless coordinator | override
            override -     -      -      headless proactive   | override
            -        agent -      -      headless default     | agent environment
            -        agent -      -      headless coordinator | coordinator environment
            -        agent -      -      headless proactive   | proactive tools memory agent environment
            override agent -      -      headless default     | override
            override agent -      -      headless coordinator | override
            override agent -      -      headless proactive   | override
            -        -     custom -      headless default     | custom memory-mechanics
            -        -     custom -      headless coordinator | coordinator environment
            -        -     custom -      headless proactive   | custom memory-mechanics
            override -     custom -      headless default     | override
            override -     custom -      headless coordinator | override
            override -     custom -      headless proactive   | override
            -        agent custom -      headless default     | agent environment
            -        agent custom -      headless coordinator | coordinator environment
            -        agent custom -      headless proactive   | proactive tools memory agent environment
            override agent custom -      headless default     | override
            override agent custom -      headless coordinator | override
            override agent custom -      headless proactive   | override
            -        -     -      append headless default     | identity tools memory principles append environment
            -        -     -      append headless coordinator | coordinator append environment
            -        -     -      append headless proactive   | proactive tools memory append environment
            override -     -      append headless default     | override
            override -     -      append headless coordinator | override
            override -     -      append headless proactive   | override
            -        agent -      append headless default     | agent append environment
            -        agent -      append headless coordinator | coordinator append environment
            -        agent -      append headless proactive   | proactive tools memory agent append environment
            override agent -      append headless default     | override
            override agent -      append headless coordinator | override
            override agent -      append headless proactive   | override
            -        -     custom append headless default     | custom memory-mechanics append
            -        -     custom append headless coordinator | coordinator append environment
            -        -     custom append headless proactive   | custom memory-mechanics append
            override -     custom append headless default     | override
            override -     custom append headless coordinator | override
            override -     custom append headless proactive   | override
            -        agent custom append headless default     | agent append environment
            -        agent custom append headless coordinator | coordinator append environment
            -        agent custom append headless proactive   | proactive tools memory agent append environment
            override agent custom append headless default     | override
            override agent custom append headless coordinator | override
            override agent custom append headless proactive   | override
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn blank_wishes_are_no_wishes() {
        let texts = Texts::built_in(Language::En);
        let blank = || Some(" \n".to_owned());
        let wishes = Wishes { override_prompt: blank(), custom: blank(), append: blank(), ..Wishes::default() };
        let default = vec![own("identity", 0, Stability::Static, 0, "me".into())];
        let segments = effective(&texts, &wishes, Sources { default: default.clone(), ..Sources::default() });
        assert_eq!(segments, default);
    }

    #[test]
    fn a_proactive_agent_is_added_under_its_heading() {
        let texts = Texts::built_in(Language::En);
        let agent = Some(("Dig deep.".to_owned(), "digger.md".to_owned()));
        let wishes = Wishes { mode: Mode::Proactive, agent, ..Wishes::default() };
        let segments = effective(&texts, &wishes, Sources::default());
        let last = segments.last().unwrap();
        assert_eq!(last.text, "# Custom Agent Instructions\n\nDig deep.");
        assert_eq!(last.source, "digger.md");
    }
}
