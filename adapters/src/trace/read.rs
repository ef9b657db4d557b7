//! Reading a trace, line by line, with errors that name the line.

use super::format::{OutputDigest, RollingDigest, TraceKind, VERSION};
use leasehold_engine::input::{Body, Input};
use leasehold_engine::time::{Mono, Wall};
use serde::Deserialize;
use std::io::{BufRead, Read};

/// The longest line that is read. The largest input is a page of the lease table, which is 1 MB in DynamoDB.
pub const LONGEST_LINE: u64 = 64 << 20;

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceRecord {
    /// The first line.
    Header {
        /// The version of the format.
        version: u32,
        /// The version of the crate that wrote it.
        software: String,
        /// What it covers.
        kind: TraceKind,
    },
    /// One input.
    Input {
        /// Its number, from 0.
        n: u64,
        /// The input.
        input: Box<Input>,
        /// The digest of what the engine answered; absent if it never did.
        out: Option<OutputDigest>,
    },
    /// The digest of all answers so far.
    Digest {
        /// The digest.
        digest: RollingDigest,
        /// After this many inputs.
        inputs: u64,
    },
    /// Inputs that were not recorded.
    Gap {
        /// The number of the first.
        from: u64,
        /// How many.
        count: u64,
    },
    /// The recorder was closed in order.
    End {
        /// After this many inputs.
        inputs: u64,
    },
    /// A further file of the same trace begins.
    Segment {
        /// Its number, from 2.
        number: u64,
    },
    /// The folder of the trace was full. Nothing was recorded from here on.
    Limit {
        /// Its limit.
        bytes: u64,
    },
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace: expected {expected}, found {found}")]
pub struct TraceError {
    /// Its number, from 1.
    pub line: u64,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Reads a trace. After the first error, nothing follows.
#[derive(Debug)]
pub struct TraceReader<R> {
    source: R,
    line: u64,
    /// The number the next input must have.
    next: u64,
    /// The number of the file that is read, if the trace has several.
    segment: u64,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Start,
    Middle,
    Ended,
    Failed,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "leasehold-trace")]
    version: Option<u32>,
    #[serde(default)]
    software: String,
    kind: Option<TraceKind>,
    n: Option<u64>,
    at: Option<Mono>,
    wall: Option<Wall>,
    body: Option<Body>,
    out: Option<String>,
    gap: Option<u64>,
    from: Option<u64>,
    digest: Option<String>,
    inputs: Option<u64>,
    end: Option<u64>,
    segment: Option<u64>,
    limit: Option<u64>,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads from `source`; a file should be buffered.
    pub fn new(source: R) -> Self {
        Self { source, line: 0, next: 0, segment: 1, state: State::Start }
    }

    /// The number of the line read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> TraceError {
        TraceError { line: self.line, expected: expected.into(), found: found.into() }
    }

    fn read(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        let mut bytes = Vec::new();
        let read = (&mut self.source).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        self.line += 1;
        match read {
            Err(error) => return Err(self.error("a readable line", error.to_string())),
            Ok(0) if self.state == State::Start => {
                return Err(self.error("a trace header, {\"leasehold-trace\":1,…}", "an empty input"));
            }
            Ok(0) => return Ok(None),
            Ok(_) => {}
        }
        let complete = bytes.last() == Some(&b'\n');
        if !complete && bytes.len() as u64 == LONGEST_LINE {
            return Err(self.error(format!("a line of at most {LONGEST_LINE} bytes"), "a longer one"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            self.error("UTF-8 text", format!("other bytes after byte {}", error.valid_up_to()))
        })?;
        let line = serde_json::from_str::<Line>(text).map_err(|error| {
            if error.is_eof() && !complete {
                self.error(
                    "a whole record",
                    format!(
                        "a truncated one of {} bytes; the trace was cut off here, or its process was killed while it wrote (`leasehold \
                         replay --partial` replays what is before it)",
                        bytes.len()
                    ),
                )
            } else {
                self.error("one trace record as JSON", error.to_string())
            }
        })?;
        self.record(line).map(Some)
    }

    fn record(&mut self, line: Line) -> Result<TraceRecord, TraceError> {
        match self.state {
            State::Start => return self.header(line),
            State::Ended => return Err(self.error("nothing after the last record", "a further record")),
            State::Middle | State::Failed => {}
        }
        if let Some(n) = line.n {
            return self.input(n, line);
        }
        if let Some(number) = line.segment {
            if number != self.segment + 1 {
                return Err(self.error(
                    format!("segment {}", self.segment + 1),
                    format!("segment {number}; a file is missing"),
                ));
            }
            self.segment = number;
            return Ok(TraceRecord::Segment { number });
        }
        if let Some(bytes) = line.limit {
            self.state = State::Ended;
            return Ok(TraceRecord::Limit { bytes });
        }
        if let Some(count) = line.gap {
            let from = line.from.unwrap_or(self.next);
            if from != self.next {
                return Err(
                    self.error(format!("a gap from input {} on", self.next), format!("one from {from}"))
                );
            }
            self.next = from.saturating_add(count);
            return Ok(TraceRecord::Gap { from, count });
        }
        if let Some(text) = line.digest {
            let digest = RollingDigest::parse(&text)
                .ok_or_else(|| self.error("a digest of 16 hexadecimal digits", format!("{text:?}")))?;
            return Ok(TraceRecord::Digest { digest, inputs: line.inputs.unwrap_or(self.next) });
        }
        if let Some(inputs) = line.end {
            if inputs != self.next {
                return Err(self.error(
                    format!("an end after {} inputs", self.next),
                    format!("one after {inputs}; records are missing"),
                ));
            }
            self.state = State::Ended;
            return Ok(TraceRecord::End { inputs });
        }
        Err(self.error("an input (\"n\"), \"gap\", \"digest\" or \"end\"", "a record of no known kind"))
    }

    fn header(&mut self, line: Line) -> Result<TraceRecord, TraceError> {
        let Some(version) = line.version else {
            return Err(self.error(
                "a trace header, {\"leasehold-trace\":1,…}",
                "another record; is this a trace at all?",
            ));
        };
        if let Some(number) = line.segment {
            return Err(self.error(
                "the first segment of a trace",
                format!("segment {number}; give the folder that all segments are in"),
            ));
        }
        if version == 0 || version > VERSION {
            return Err(self.error(
                format!("a trace of version 1 to {VERSION}"),
                format!("version {version}; use a newer release of leasehold to read it"),
            ));
        }
        self.state = State::Middle;
        Ok(TraceRecord::Header {
            version,
            software: line.software,
            kind: line.kind.unwrap_or(TraceKind::Full),
        })
    }

    fn input(&mut self, n: u64, line: Line) -> Result<TraceRecord, TraceError> {
        if n != self.next {
            return Err(self.error(
                format!("input {}", self.next),
                format!("input {n}; records are missing or out of order"),
            ));
        }
        let (Some(at), Some(wall), Some(body)) = (line.at, line.wall, line.body) else {
            return Err(self.error(format!("`at`, `wall` and `body` of input {n}"), "a record without them"));
        };
        let out = match line.out {
            None => None,
            Some(text) => Some(
                OutputDigest::parse(&text)
                    .ok_or_else(|| self.error("a digest of 16 hexadecimal digits", format!("{text:?}")))?,
            ),
        };
        self.next += 1;
        Ok(TraceRecord::Input { n, input: Box::new(Input { at, wall, body }), out })
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Failed {
            return None;
        }
        let result = self.read();
        if result.is_err() {
            self.state = State::Failed;
        }
        result.transpose()
    }
}
