//! From bytes to a component that can be called: validation, contract check, compilation, linking.

use super::contract::exports::astrarium::plugin as exports;
use super::{GuestState, Runtime, contract};
use crate::digest::sha256;
use std::collections::BTreeSet;
use wasmtime::component::{Component, InstancePre};

/// A component, linked once and ready for a fresh instance at each call.
pub struct Loaded {
    pub(super) pre: InstancePre<GuestState>,
    /// What it exports of the contract.
    pub exports: Exports,
    /// Names of the interfaces it imports.
    pub imports: BTreeSet<String>,
    /// SHA-256 of the bytes, lower-case hex.
    pub digest: String,
    /// Whether it had to be compiled, rather than taken from the cache.
    pub compiled: bool,
}

/// Why a component cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The engine does not start.
    #[error("the wasm engine does not start: {0}")]
    Engine(String),
    /// Not a component at all.
    #[error("{0}")]
    NotAComponent(String),
    /// A component for something else.
    #[error("{0}")]
    Contract(String),
    /// It does not validate or link.
    #[error("{0}")]
    Invalid(String),
}

macro_rules! exports {
    ($($(#[$doc:meta])* $field:ident: $name:literal),* $(,)?) => {
        /// The interfaces of the contract that a component exports. Exports are the subscription: nothing else is wired.
        pub struct Exports {
            $($(#[$doc])* pub $field: Option<exports::$field::GuestIndices>,)*
        }

        impl Exports {
            fn of(pre: &InstancePre<GuestState>, names: &BTreeSet<String>) -> Result<Self, LoadError> {
                let id = |name: &str| format!("astrarium:plugin/{name}@{}", contract::VERSION);
                Ok(Self {
                    $($field: match names.contains(&id($name)) {
                        true => Some(exports::$field::GuestIndices::new(pre).map_err(|error| {
                            LoadError::Contract(format!("the export {} has another shape than the contract: {error:#}", id($name)))
                        })?),
                        false => None,
                    },)*
                })
            }

            /// Names of the exported interfaces, `tools`, `prompt-segment` and the hooks, in the contract's order.
            pub fn names(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($name); })*
                names
            }

            /// Names of the exported hooks, likewise.
            pub fn hooks(&self) -> Vec<&'static str> {
                self.names().into_iter().filter(|name| !["tools", "prompt-segment"].contains(name)).collect()
            }

            /// Whether every exported function has the contract's type; names alone do not tell.
            pub fn check_shapes(&self, store: &mut wasmtime::Store<GuestState>, instance: &wasmtime::component::Instance) -> wasmtime::Result<()> {
                $(if let Some(indices) = &self.$field {
                    indices.load(&mut *store, instance).map_err(|error| {
                        wasmtime::Error::msg(format!("the export {} has another shape than the contract: {error:#}; build it against this host's wit/", $name))
                    })?;
                })*
                Ok(())
            }
        }
    };
}

exports! {
    /// Tools.
    tools: "tools",
    /// Pieces of the prompt.
    prompt_segment: "prompt-segment",
    /// The hook `session-start`.
    session_start: "session-start",
    /// The hook `pre-tool-use`.
    pre_tool_use: "pre-tool-use",
    /// The hook `post-tool-use`.
    post_tool_use: "post-tool-use",
    /// The hook `step-complete`.
    step_complete: "step-complete",
    /// The hook `pre-compact`.
    pre_compact: "pre-compact",
    /// The hook `post-compact`.
    post_compact: "post-compact",
    /// The hook `subagent-start`.
    subagent_start: "subagent-start",
    /// The hook `subagent-stop`.
    subagent_stop: "subagent-stop",
    /// The hook `session-stop`.
    session_stop: "session-stop",
}

impl Runtime {
    /// Compiles and links `bytes`, or takes the artefact from the cache. Call it off the async threads: a Python guest
    /// takes seconds to compile.
    pub fn load(&self, bytes: &[u8]) -> Result<Loaded, LoadError> {
        check_header(bytes)?;
        let digest = sha256(bytes);
        let (component, compiled) = match self.cache.get(&self.engine, &digest) {
            Some(component) => (component, false),
            None => {
                let component = Component::new(&self.engine, bytes).map_err(|error| invalid(&format!("{error:#}")))?;
                self.cache.put(&component, &digest);
                (component, true)
            }
        };
        let kind = component.component_type();
        let imports: BTreeSet<String> = kind.imports(&self.engine).map(|(name, _)| name.to_owned()).collect();
        let names: BTreeSet<String> = kind.exports(&self.engine).map(|(name, _)| name.to_owned()).collect();
        check_contract(&imports, &names)?;
        let pre = self.linker.instantiate_pre(&component).map_err(|error| {
            LoadError::Contract(format!(
                "it needs something this host does not offer: {error:#}; build it against wit/"
            ))
        })?;
        let exports = Exports::of(&pre, &names)?;
        Ok(Loaded { pre, exports, imports, digest, compiled })
    }

    /// [`Runtime::load`] on a thread of its own, one at a time.
    pub async fn load_async(self: &std::sync::Arc<Self>, bytes: Vec<u8>) -> Result<Loaded, LoadError> {
        let _permit = self.compiling.acquire().await;
        let runtime = self.clone();
        let loading = tokio::task::spawn_blocking(move || runtime.load(&bytes));
        loading.await.unwrap_or_else(|error| Err(LoadError::Invalid(format!("the compiler failed: {error}"))))
    }
}

/// A component that the engine refuses: mostly a bad build, sometimes an operator's limit.
fn invalid(error: &str) -> LoadError {
    let limited =
        ["pooling allocator", "exceeds the limit", "instance limit"].iter().any(|words| error.contains(words));
    LoadError::Invalid(match limited {
        true => format!(
            "it needs more than the limits allow ({error}); raise memory_mib, table_elements or instances under limits:"
        ),
        false => format!("not a valid component: {error}; build it again"),
    })
}

/// The first eight bytes tell a component from a core module, and both from anything else.
fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    let what = match bytes.get(..8) {
        None => "it is too short to be a component; build it again".into(),
        Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => return Ok(()),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
            "it is a core module, not a component; build for wasm32-wasip2, or wrap it with `wasm-tools component new`"
                .into()
        }
        Some([0, b'a', b's', b'm', version @ ..]) => format!("its wasm version {version:02x?} is unknown to this host"),
        Some(_) => "it is not WebAssembly".to_owned(),
    };
    Err(LoadError::NotAComponent(what))
}

/// Says in plain words when a component was built for another contract, or for none.
fn check_contract(imports: &BTreeSet<String>, exports: &BTreeSet<String>) -> Result<(), LoadError> {
    let ours = |name: &&String| name.starts_with("astrarium:plugin/");
    if !exports.iter().any(|name| ours(&name)) {
        let found: Vec<&str> = exports.iter().map(String::as_str).take(5).collect();
        return Err(LoadError::Contract(format!(
            "it exports nothing of astrarium:plugin@{}, neither tools nor a segment nor a hook (its exports: {})",
            contract::VERSION,
            if found.is_empty() { "none".to_owned() } else { found.join(", ") }
        )));
    }
    // A newer patch of an import may only add functions, and the linker knows whether they are there; an export is
    // frozen with its version.
    let same_line = |version: &str| {
        version.rsplit_once('.').map(|(line, _)| line) == contract::VERSION.rsplit_once('.').map(|(line, _)| line)
    };
    let imports = imports.iter().filter(|name| name.starts_with("astrarium:")).map(|name| (name, false));
    for (name, exported) in exports.iter().filter(ours).map(|name| (name, true)).chain(imports) {
        let version = name.rsplit_once('@').map(|(_, version)| version).unwrap_or("none");
        let fits = if exported { version == contract::VERSION } else { same_line(version) };
        if !fits {
            return Err(LoadError::Contract(format!(
                "it was built for {name}, and this host speaks version {}; build it against this host's wit/",
                contract::VERSION
            )));
        }
    }
    Ok(())
}
