//! load_skill: a skill's whole instructions, or the answer of an agent that followed them.
//!
//! The host finds the skills, fills in their variables, counts their use and runs those that fork. This plugin is the words
//! around that.

mod render;

use astrarium_sdk::host::skills;
use astrarium_sdk::{Context, Error, Output, Tool, tools};
use render::About;

/// Loads a skill: instructions and resources for one kind of work, such as a literature review, figures or slides.
///
/// Load a skill before you begin the work that it is for, and then follow it. Paths in it are below the base directory that
/// it names. A skill that runs in a conversation of its own answers with what came of it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadSkill {
    /// Its name, as listed.
    skill_name: String,
    /// What it is to be applied to, in the words that the skill asks for.
    arguments: Option<String>,
    /// Steps of a skill that runs in a conversation of its own, 5 when left out.
    #[schemars(range(min = 1, max = 10))]
    max_steps: Option<u32>,
}

impl Tool for LoadSkill {
    const NAME: &'static str = "load_skill";
    const SUMMARY: Option<&'static str> = Some("Loads a skill: instructions for one kind of work");
    /// It only tells; the calls of a skill that forks are judged one by one.
    const READ_ONLY: bool = true;

    fn call(self, ctx: &Context) -> Result<Output, Error> {
        let arguments = self.arguments.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let loaded = skills::load(&self.skill_name, arguments, self.max_steps)?;
        let about = About::parse(&loaded.extra)?;
        let text = render::loaded(&about, &loaded.text, arguments, ctx.language.starts_with("zh"));
        let mut output = Output::text(text);
        output.is_error = about.is_fork() && loaded.text.trim().is_empty();
        output.extra = about.metadata();
        Ok(output)
    }
}

tools!(LoadSkill);
