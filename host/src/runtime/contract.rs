//! The host's side of the contract, generated from `wit/`. Nothing is written here by hand, so a host function that the
//! contract names and nobody implements does not compile.

#![allow(missing_docs, reason = "generated code carries the docs of wit/ where the generator keeps them")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "astrarium:plugin/everything",
    imports: { default: async },
    exports: { default: async },
});

/// The contract's version, as packages carry it.
pub const VERSION: &str = "0.1.0";
