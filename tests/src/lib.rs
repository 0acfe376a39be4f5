//! What the tests of the whole host share. No test stands here; they are in `tests/`.

pub mod aimock;
pub mod laws;
pub mod place;
pub mod strict;
pub mod web;
