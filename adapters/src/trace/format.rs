//! How the lines of a trace are written, and how answers are digested.

use leasehold_engine::input::{Body, Input};
use leasehold_engine::internals::Digest;
use leasehold_engine::output::Output;
use leasehold_engine::time::{Mono, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the format this crate writes. It reads this one and all before.
pub(crate) const VERSION: u32 = 1;

/// What a trace covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// All inputs from the boot record on, except in named gaps.
    Full,
    /// The boot record and the last inputs, as a flight recorder keeps them.
    Flight,
}

/// The first line of a trace, without its line break.
pub(crate) fn header_line(kind: TraceKind) -> String {
    let kind = match kind {
        TraceKind::Full => "full",
        TraceKind::Flight => "flight",
    };
    format!(r#"{{"leasehold-trace":{VERSION},"software":"{}","kind":"{kind}"}}"#, env!("CARGO_PKG_VERSION"))
}

/// The line that says that inputs are missing.
pub(crate) fn gap_line(from: u64, count: u64) -> String {
    format!(r#"{{"gap":{count},"from":{from}}}"#)
}

/// The line with the digest of all answers so far.
pub(crate) fn digest_line(digest: RollingDigest, inputs: u64) -> String {
    format!(r#"{{"digest":"{digest}","inputs":{inputs}}}"#)
}

/// The last line of a trace that was closed in order.
pub(crate) fn end_line(inputs: u64) -> String {
    format!(r#"{{"end":{inputs}}}"#)
}

/// The first line of a further file of a trace.
pub(crate) fn segment_line(number: u64) -> String {
    format!(
        r#"{{"leasehold-trace":{VERSION},"software":"{}","segment":{number}}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

/// The last line of a trace whose folder is full.
pub(crate) fn limit_line(bytes: u64) -> String {
    format!(r#"{{"limit":{bytes}}}"#)
}

/// An input's line before its digest is known.
#[derive(Debug)]
pub(crate) struct InputLine(String);

impl InputLine {
    pub(crate) fn new(n: u64, input: &Input) -> Self {
        #[derive(Serialize)]
        struct Open<'a> {
            n: u64,
            at: Mono,
            wall: Wall,
            body: &'a Body,
        }
        let open = Open { n, at: input.at, wall: input.wall, body: &input.body };
        // Serialization fails only for maps with keys other than text, and inputs have no map of that kind.
        let mut text = serde_json::to_string(&open).unwrap_or_else(|error| {
            format!(r#"{{"n":{n},"unwritable":{}}}"#, serde_json::Value::from(error.to_string()))
        });
        text.pop();
        Self(text)
    }

    pub(crate) fn with_digest(mut self, digest: OutputDigest) -> String {
        self.0.push_str(&format!(r#","out":"{digest}"}}"#));
        self.0
    }

    pub(crate) fn without_digest(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// The digest of the engine's answer to one input: the outputs in order, then the next wake-up time.
///
/// It is a [`leasehold_engine::internals::Digest`]. It finds accidents, not forgeries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputDigest(u64);

impl OutputDigest {
    /// The digest of a whole answer.
    pub fn of(outputs: &[Output], wake_at: Mono) -> Self {
        let mut digest = Digest::new();
        for output in outputs {
            digest.absorb(output);
        }
        digest.absorb(&wake_at);
        digest.into()
    }
}

impl From<Digest> for OutputDigest {
    /// Of a digest that has absorbed every output, then the wake-up time.
    fn from(digest: Digest) -> Self {
        Self(digest.value())
    }
}

/// The digest of all answers from the first input on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RollingDigest(u64);

impl RollingDigest {
    /// The digest before the first input.
    pub fn new() -> Self {
        Self(Digest::new().value())
    }

    /// Adds the answer to one input.
    pub fn add(&mut self, digest: OutputDigest) {
        let mut both = Digest::new();
        both.absorb(&(self.0, digest.0));
        self.0 = both.value();
    }
}

impl Default for RollingDigest {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! hex {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl $name {
            /// From sixteen hexadecimal digits.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                (text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit()))
                    .then(|| u64::from_str_radix(text, 16).ok().map(Self))
                    .flatten()
            }
        }
    };
}

hex!(OutputDigest);
hex!(RollingDigest);
