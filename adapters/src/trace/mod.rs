//! Traces: the recorded inputs of an engine. A replay computes the engine's whole life again.
//!
//! A trace is JSON Lines. A trace holds no record payloads, as no input does, but the texts of handlers' errors. Lines are one of:
//!
//! | line | meaning |
//! |---|---|
//! | `{"leasehold-trace":1,"software":"0.1.0","kind":"full"}` | the first line; `kind` is `full` or `flight` |
//! | `{"n":0,"at":…,"wall":…,"body":…,"out":"…"}` | input number `n`, and the digest of what the engine answered |
//! | `{"digest":"…","inputs":64}` | the digest of all answers so far, after that many inputs |
//! | `{"gap":17,"from":120}` | 17 inputs from number 120 on were not recorded |
//! | `{"end":500}` | the recorder was closed in order, after 500 inputs |
//! | `{"leasehold-trace":1,"software":"0.1.0","segment":2}` | a further file of the same trace begins, the second here |
//! | `{"limit":2147483648}` | the folder of the trace has reached its limit of so many bytes, and the recording ends |
//!
//! `out` is absent if the recording process died while the engine worked on that input. Unknown fields are ignored: a
//! trace of a later version of the same format stays readable.

pub(crate) mod folder;
mod format;
mod read;
mod replay;

pub use folder::TraceText;
pub(crate) use format::{InputLine, digest_line, end_line, gap_line, header_line, limit_line, segment_line};
pub use format::{OutputDigest, RollingDigest, TraceKind};
pub use read::{LONGEST_LINE, TraceError, TraceReader, TraceRecord};
pub use replay::{Divergence, ReplayReport, replay, replay_on};
