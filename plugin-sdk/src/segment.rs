//! Pieces of the prompt, written as a type with a text, and the macro that registers them.

use crate::bindings::prompt_segment::{SegmentDefinition, SegmentStability};
use crate::{Context, Error};

/// How long a segment's text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// The same in every session.
    Static,
    /// Rendered once, when the prompt is.
    Session,
    /// Rendered at each question, for this reason; a new text arrives at the tail of the conversation.
    Turn(&'static str),
}

/// A piece of the prompt, registered with [`segments!`](crate::segments!).
pub trait Segment {
    /// `[a-z][a-z0-9-]{0,63}`, unique in the plugin.
    const NAME: &'static str;

    /// Place from 1 to 79: identity stands at 0, tools at 10, skills at 20, memory at 30, principles at 40.
    const ORDER: i32 = 15;

    /// How long its text holds.
    const STABILITY: Stability = Stability::Session;

    /// The text, or none when there is nothing to say.
    fn render(ctx: &Context) -> Result<Option<String>, Error>;
}

/// How the segment presents itself.
#[doc(hidden)]
pub fn define<T: Segment>() -> SegmentDefinition {
    let stability = match T::STABILITY {
        Stability::Static => SegmentStability::Static,
        Stability::Session => SegmentStability::Session,
        Stability::Turn(reason) => SegmentStability::Turn(reason.into()),
    };
    SegmentDefinition { name: T::NAME.into(), order: T::ORDER, stability, extra: "{}".into() }
}

/// Registers the segments of a plugin, once in a crate.
///
/// ```
/// use astrarium_sdk::{Context, Error, Segment, segments};
///
/// struct Units;
///
/// impl Segment for Units {
///     const NAME: &'static str = "units";
///     fn render(_: &Context) -> Result<Option<String>, Error> {
///         Ok(Some("Give distances in parsec.".into()))
///     }
/// }
///
/// segments!(Units);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! segments {
    ($($segment:ty),+ $(,)?) => {
        const _: () = {
            use $crate::bindings::prompt_segment::{Guest, SegmentDefinition};

            struct Export;

            impl Guest for Export {
                fn list_segments() -> Vec<SegmentDefinition> {
                    vec![$($crate::segment::define::<$segment>()),+]
                }

                fn render_segment(ctx: $crate::Context, name: String) -> Result<Option<String>, String> {
                    match name.as_str() {
                        $(<$segment as $crate::Segment>::NAME => {
                            <$segment as $crate::Segment>::render(&ctx).map_err(|error| error.to_string())
                        })+
                        _ => Err(format!("there is no segment {name}")),
                    }
                }
            }

            // Unit tests of a guest run natively, where nothing is exported and yet nothing is dead.
            const _: fn() -> Vec<SegmentDefinition> = Export::list_segments;
            const _: fn($crate::Context, String) -> Result<Option<String>, String> = Export::render_segment;

            #[cfg(target_family = "wasm")]
            $crate::bindings::prompt_segment::export!(Export with_types_in $crate::bindings::prompt_segment);
        };
    };
}
