//! The file tools: read_file, grep_files, glob_files, file_write and file_edit, one verb a module.
//!
//! Every path goes through [`paths`]; every walk through [`walk`]; every write through [`links`] and [`replace`]. The
//! verbs work on a [`paths::Workspace`], so that their tests run natively on a folder of their own. Invariants: nothing
//! outside the workspace and the session's kept results is named to the operating system, no special file is opened, no write goes through a symlink,
//! and no answer is longer than [`text::BUDGET`].

pub mod edit;
pub mod glob;
pub mod grep;
pub mod links;
pub mod paths;
pub mod read;
pub mod replace;
pub mod search;
pub mod similarity;
pub mod text;
pub mod walk;
pub mod write;

astrarium_sdk::tools!(read::ReadFile, grep::GrepFiles, glob::GlobFiles, write::FileWrite, edit::FileEdit);
