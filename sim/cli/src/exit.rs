//! How a command ends.

use crate::text;
use leasehold_engine::shown::Shown;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::ops::Deref;
use std::process::ExitCode;

/// The result of a command run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All is well.
    Fine,
    /// The command found the violation, difference or finding of its search; the results name it.
    Found,
}

impl Verdict {
    /// The verdict of a search with or without a find.
    pub(super) fn of(found: bool) -> Self {
        if found { Self::Found } else { Self::Fine }
    }
}

/// The reason why a command did not run to its end, in one sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    sentence: String,
    code: u8,
}

impl Failure {
    /// Wrong usage, or unusable input.
    pub(super) fn unusable(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), code: 2 }
    }

    /// A failure under way, after a good start.
    pub(super) fn under_way(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), code: 1 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The process's exit code. A failure is told on stderr.
pub(super) fn code(outcome: Result<Verdict, Failure>) -> ExitCode {
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Found) => ExitCode::from(1),
        Err(failure) => {
            let sentence = failure.sentence.replace('\n', " ");
            let _ = writeln!(io::stderr(), "error: {}", Shown(&sentence));
            ExitCode::from(failure.code)
        }
    }
}

/// Writes results to stdout, with control characters other than line breaks shown as escapes. Names from outside belong
/// into a [`Text`](crate::text::Text): their line breaks become escapes, too. A reader's early end is no error.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    print_styled(&text::lines(text))
}

/// Writes results with escape codes of the command's own.
pub(super) fn print_styled(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::under_way(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes results to stdout: as one JSON object, or described in lines.
pub(super) fn show<T: Deref<Target = str>>(
    json: bool, results: &impl Serialize, describe: impl FnOnce() -> T,
) -> Result<(), Failure> {
    match json {
        true => print_json(results),
        false => print(&describe()),
    }
}

/// Writes results to stdout as one JSON object.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::under_way(format!("the results cannot be written as JSON: {error}")))?;
    print_styled(&text::json(&text))
}
