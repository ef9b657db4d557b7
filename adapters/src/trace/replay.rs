//! Feeds a trace to a new engine and compares the answers.

use super::format::{OutputDigest, RollingDigest};
use super::read::{TraceError, TraceReader, TraceRecord};
use crate::machine::Machine;
use leasehold_engine::Engine;
use leasehold_engine::input::Input;
use leasehold_engine::output::Output;
use std::io::BufRead;

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayReport {
    /// How many inputs were fed.
    pub inputs: u64,
    /// The digest of all answers.
    pub digest: RollingDigest,
    /// The first input that was answered differently than when the trace was recorded.
    pub divergence: Option<Divergence>,
    /// The number of the first input missing in the trace. The replay ends before a gap.
    pub gap: Option<u64>,
    /// The limit of the trace's folder in bytes, if the recording ended there.
    pub limit: Option<u64>,
    /// Whether the trace was closed in order; the trace of a killed process was not.
    pub complete: bool,
}

/// An answer that differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of the input.
    pub input: u64,
    /// The recorded digest.
    pub expected: String,
    /// The digest now.
    pub found: String,
    /// What the engine answers now.
    pub outputs: Vec<Output>,
}

/// Replays a trace up to its end, first divergence or first gap.
///
/// # Errors
/// If a line cannot be read.
pub fn replay<R: BufRead>(reader: TraceReader<R>) -> Result<ReplayReport, TraceError> {
    replay_on(&mut Engine::new(), reader, |_, _, _| {})
}

/// As [`replay`], on the caller's fresh engine, open to questions afterwards. Calls `each` with the number of every
/// input, the input and the answer.
///
/// # Errors
/// If a line cannot be read.
pub fn replay_on<R: BufRead>(
    engine: &mut impl Machine, reader: TraceReader<R>, mut each: impl FnMut(u64, &Input, &[Output]),
) -> Result<ReplayReport, TraceError> {
    let mut report = ReplayReport {
        inputs: 0,
        digest: RollingDigest::new(),
        divergence: None,
        gap: None,
        limit: None,
        complete: false,
    };
    for record in reader {
        match record? {
            TraceRecord::Header { .. } | TraceRecord::Segment { .. } => {}
            TraceRecord::Input { n, input, out } => {
                let shown = input.clone();
                let mut outputs = Vec::new();
                let wake_at = engine.feed(*input, &mut |output| outputs.push(output));
                let found = OutputDigest::of(&outputs, wake_at);
                report.inputs += 1;
                report.digest.add(found);
                each(n, &shown, &outputs);
                if let Some(expected) = out.filter(|expected| *expected != found) {
                    report.divergence = Some(Divergence {
                        input: n,
                        expected: expected.to_string(),
                        found: found.to_string(),
                        outputs,
                    });
                    return Ok(report);
                }
            }
            TraceRecord::Digest { digest, inputs } => {
                // The answers agree one by one: the trace itself was changed.
                if inputs != report.inputs || digest != report.digest {
                    report.divergence = Some(Divergence {
                        input: report.inputs.saturating_sub(1),
                        expected: format!("{digest} over {inputs} inputs"),
                        found: format!("{} over {} inputs", report.digest, report.inputs),
                        outputs: Vec::new(),
                    });
                    return Ok(report);
                }
            }
            TraceRecord::Gap { from, .. } => {
                report.gap = Some(from);
                return Ok(report);
            }
            TraceRecord::End { .. } => report.complete = true,
            TraceRecord::Limit { bytes } => report.limit = Some(bytes),
        }
    }
    Ok(report)
}
