//! Astrarium: an agent host whose every tool and lifecycle hook is a sandboxed WebAssembly component.
//!
//! The native host owns the prompt assembler, the compactor and the loop, and nothing that acts. The modules stand in
//! five floors, in this order; a file names only its own floor and those above it, and a test in `tests/` checks it.

// Words.
pub mod assignment;
pub mod audit;
pub mod consent;
pub mod context;
pub mod digest;
pub mod event;
pub mod grant;
pub mod limits;
pub mod request;
pub mod transcript;
// Judgement.
pub mod agent;
pub mod arguments;
pub mod attach;
pub mod catalogue;
pub mod command;
pub mod compact;
pub mod egress;
pub mod fold;
pub mod manifest;
pub mod matching;
pub mod memory;
pub mod permission;
pub mod plain;
pub mod price;
pub mod program;
pub mod prompt;
pub mod skill;
pub mod stop;
pub mod tokens;
pub mod yaml;
// Doors.
pub mod archive;
pub mod attachments;
pub mod capability;
pub mod commands;
pub mod files;
pub mod model;
pub mod outputs;
pub mod persona;
pub mod plugin;
pub mod roster;
pub mod runtime;
pub mod shelf;
pub mod skills;
pub mod store;
pub mod surroundings;
pub mod watch;
// Conductor.
pub mod compaction;
pub mod epoch;
pub mod hooks;
pub mod session;
pub mod subagent;
pub mod tool_call;
pub mod turn;
// Street.
pub mod cli;
pub mod config;
pub mod host;
