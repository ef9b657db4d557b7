//! How a command ends.

use crate::text;
use leasehold_engine::shown::Shown;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command that ran to its end says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All is well.
    Fine,
    /// What was looked for was found; the results say what.
    Found,
}

/// Why a command did not run to its end, in one sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    sentence: String,
    code: u8,
}

impl Failure {
    /// Wrong usage, or input that cannot be used.
    pub(super) fn unusable(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), code: 2 }
    }

    /// Something went wrong under way.
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

/// Writes results to stdout. Control characters in them are shown as escapes, but for line breaks: names of others belong into a
/// [`Text`](crate::text::Text), which breaks no line for them. A reader who has gone away has seen enough, which is no error.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    print_styled(&text::lines(text))
}

/// Writes results that hold escape codes of their own.
pub(super) fn print_styled(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::under_way(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes results to stdout as one JSON object.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::under_way(format!("the results cannot be written as JSON: {error}")))?;
    print_styled(&text::json(&text))
}
