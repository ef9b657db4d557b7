//! Any bytes as a trace: it is read and replayed, or refused with a line number, and always the same way.
//!
//! The corpus holds traces of small fleets, whole and damaged.
#![no_main]

use leasehold::internals::{TraceReader, TraceRecord, replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    let reader = TraceReader::new(bytes);
    let mut next = 0;
    let mut ended = false;
    for record in reader {
        assert!(!ended, "a record after the end or after an error");
        match record {
            Ok(TraceRecord::Input { n, .. }) => {
                assert_eq!(n, next, "an input out of order");
                next += 1;
            }
            Ok(TraceRecord::Gap { from, count }) => {
                assert_eq!(from, next, "a gap out of order");
                next = next.saturating_add(count);
            }
            Ok(TraceRecord::End { inputs }) => assert_eq!(inputs, next, "an end that counts wrong"),
            Ok(
                TraceRecord::Header { .. }
                | TraceRecord::Digest { .. }
                | TraceRecord::Segment { .. }
                | TraceRecord::Limit { .. },
            ) => {}
            Err(error) => {
                assert!((1..=lines).contains(&error.line), "line {} of {lines}", error.line);
                assert!(!error.expected.is_empty() && !error.found.is_empty());
                ended = true;
            }
        }
    }
    assert_eq!(
        replay(TraceReader::new(bytes)),
        replay(TraceReader::new(bytes)),
        "a replay that differs from itself"
    );
});
