//! The contract in `wit/` as Rust: every host import once, and each export in a world of its own.
//!
//! Exports are the subscription, so a guest must export only what it registers. A world for each export makes that
//! possible: its `export!` macro carries the section that names the export, and a macro that is never used leaves
//! nothing in the guest. Imports need no such care, since the component linker drops those that are not called.

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package astrarium:sdk;
        world base {
            include astrarium:plugin/imports@0.1.0;
            import astrarium:plugin/types@0.1.0;
        }
    ",
    world: "astrarium:sdk/base",
    generate_all,
    generate_unused_types: true,
    additional_derives: [PartialEq],
    runtime_path: "::astrarium_sdk::wit_bindgen::rt",
});

/// Each export in a world of its own; the shared words are those of the imports above.
macro_rules! export_worlds {
    ($($module:ident $world:literal)+) => { $(
        pub mod $module {
            wit_bindgen::generate!({
                path: "../wit",
                inline: $world,
                with: { "astrarium:plugin/types@0.1.0": crate::bindings::astrarium::plugin::types },
                generate_all,
                additional_derives: [PartialEq],
                pub_export_macro: true,
                runtime_path: "::astrarium_sdk::wit_bindgen::rt",
            });
            pub use exports::astrarium::plugin::$module::*;
        }
    )+ };
}

export_worlds! {
    tools "package astrarium:sdk; world tools-only { export astrarium:plugin/tools@0.1.0; }"
    prompt_segment "package astrarium:sdk; world prompt-segment-only { export astrarium:plugin/prompt-segment@0.1.0; }"
    session_start "package astrarium:sdk; world session-start-only { export astrarium:plugin/session-start@0.1.0; }"
    pre_tool_use "package astrarium:sdk; world pre-tool-use-only { export astrarium:plugin/pre-tool-use@0.1.0; }"
    post_tool_use "package astrarium:sdk; world post-tool-use-only { export astrarium:plugin/post-tool-use@0.1.0; }"
    step_complete "package astrarium:sdk; world step-complete-only { export astrarium:plugin/step-complete@0.1.0; }"
    pre_compact "package astrarium:sdk; world pre-compact-only { export astrarium:plugin/pre-compact@0.1.0; }"
    post_compact "package astrarium:sdk; world post-compact-only { export astrarium:plugin/post-compact@0.1.0; }"
    subagent_start "package astrarium:sdk; world subagent-start-only { export astrarium:plugin/subagent-start@0.1.0; }"
    subagent_stop "package astrarium:sdk; world subagent-stop-only { export astrarium:plugin/subagent-stop@0.1.0; }"
    session_stop "package astrarium:sdk; world session-stop-only { export astrarium:plugin/session-stop@0.1.0; }"
}
