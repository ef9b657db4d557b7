//! Rules about the sources of this project beyond the compiler's checks.
//!
//! | file | subject |
//! |---|---|
//! | `source` | the files of the workspace, read once: their text, and their code without comments and texts |
//! | `function` | where functions begin and end |
//! | `imports` | the paths that a file imports |
//! | `shapes` | the types of each crate, and their methods |
//! | `names` | the names that are of more than one type, a list that only shrinks |
//! | `rooms` | the rules of folders that are cut into rooms |
//! | `rules` | the rules; most are a few lines |
//! | `exceptions` | today's exceptions from the rules, each with its reason |
//!
//! `tests/tidy.rs` asks every rule about every file. A finding without an exception fails the test, and an unneeded
//! exception fails the test, too.
//!
//! The scanner knows a small part of Rust: comments, texts, and the indentation of `rustfmt`.

mod exceptions;
mod function;
mod imports;
mod names;
mod rooms;
mod rules;
mod shapes;
mod source;

pub use exceptions::{EXCEPTIONS, Exception, apply};
pub use function::{Function, functions};
pub use imports::spelled;
pub use rules::{Find, Finding, RULES, Rule, clippy_lists};
pub use source::{Source, workspace};
