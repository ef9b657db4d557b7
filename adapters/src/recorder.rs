//! Records a worker's inputs for a replay of its life. See [`crate::trace`] for the format.
//!
//! Recording never blocks the worker: a sink without room misses lines, and the trace records the gap. A sink that is
//! broken, as on a full disk, or has reached its size limit, gets no further line.

use crate::trace::{
    InputLine, OutputDigest, RollingDigest, TraceKind, digest_line, end_line, gap_line, header_line,
};
use leasehold_engine::input::Input;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod file;
mod folder;

pub(crate) use file::FileSink;
pub use folder::TraceFolder;

/// The number of inputs between two digests of the whole trace.
pub(crate) const DIGEST_EVERY: u64 = 64;

/// Where the lines of a full trace go.
pub trait Sink: Send {
    /// Takes a line without its line break, if the sink has room now.
    ///
    /// # Errors
    /// Why the line was not taken.
    fn offer(&mut self, line: String) -> Result<(), NotTaken>;

    /// Takes the last lines, waiting for room if need be, and makes everything durable.
    ///
    /// # Errors
    /// The failed write and the reason, in words, unless [`offer`](Self::offer) has reported the failure.
    fn close(&mut self, lines: Vec<String>) -> Result<(), String>;
}

/// Why a sink did not take a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotTaken {
    /// There is no room now; a later line may find room.
    Full,
    /// The sink takes no line any more: what cannot be written and why, in words.
    Broken(String),
    /// The sink has taken as much as it may, and takes no line any more: what is full, in words. This is no error.
    Enough(String),
}

/// Records inputs to a sink, to a flight recorder, or to both.
pub struct Recorder {
    sink: Option<Box<dyn Sink>>,
    flight: Option<Flight>,
    /// Inputs so far.
    inputs: u64,
    rolling: RollingDigest,
    pending: Option<InputLine>,
    /// The first input the sink did not take since the last gap record.
    lost_from: Option<u64>,
    /// The number of gaps in the sink's lines.
    gaps: u64,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("inputs", &self.inputs)
            .field("lost_from", &self.lost_from)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records nothing.
    pub fn off() -> Self {
        Self::new(None, None)
    }

    /// Records everything to `sink`, the last inputs to `flight`, or both.
    pub fn new(sink: Option<Box<dyn Sink>>, flight: Option<Flight>) -> Self {
        let mut recorder = Self {
            sink,
            flight,
            inputs: 0,
            rolling: RollingDigest::new(),
            pending: None,
            lost_from: None,
            gaps: 0,
        };
        // A trace without a header is unreadable.
        if recorder.offer(header_line(TraceKind::Full)) == Offered::Full {
            tracing::error!("the trace sink has no room for a first line; nothing is recorded to it");
            recorder.sink = None;
        }
        recorder
    }

    /// Whether anything is recorded; if not, no digest need be computed.
    pub fn is_on(&self) -> bool {
        self.sink.is_some() || self.flight.is_some()
    }

    /// The number of gaps in the full trace.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps
    }

    /// An input is about to be handed to the engine.
    pub fn begin(&mut self, input: &Input) {
        self.flush_pending();
        if self.is_on() {
            self.pending = Some(InputLine::new(self.inputs, input));
        }
    }

    /// The engine has answered it.
    pub fn end(&mut self, digest: OutputDigest) {
        let Some(line) = self.pending.take() else { return };
        self.rolling.add(digest);
        self.put(line.with_digest(digest));
        if self.inputs.is_multiple_of(DIGEST_EVERY) && self.lost_from.is_none() {
            // A digest without room is left out; the next digest covers the same inputs.
            self.offer(digest_line(self.rolling, self.inputs));
        }
    }

    /// Nothing follows.
    pub fn close(&mut self) {
        let died = self.pending.is_some();
        self.flush_pending();
        if let Some(mut sink) = self.sink.take() {
            let mut lines = Vec::new();
            if let Some(from) = self.lost_from {
                debug_assert!(from < self.inputs, "a gap has at least one input");
                lines.push(gap_line(from, self.inputs - from));
            }
            if !died {
                lines.push(end_line(self.inputs));
            }
            if let Err(why) = sink.close(lines) {
                tracing::error!("{why}; the end of the trace is missing");
            }
        }
    }

    /// Hands a line to the sink. The recorder logs a broken sink once, and then writes nothing more.
    fn offer(&mut self, line: String) -> Offered {
        let Some(sink) = &mut self.sink else {
            return Offered::Nowhere;
        };
        match sink.offer(line) {
            Ok(()) => Offered::Taken,
            Err(NotTaken::Full) => Offered::Full,
            Err(NotTaken::Broken(why)) => {
                tracing::error!("{why}; the trace ends here, and the worker goes on without it");
                self.sink = None;
                Offered::Nowhere
            }
            Err(NotTaken::Enough(what)) => {
                tracing::warn!(
                    "{what}; the trace of this worker ends here, and the worker goes on without it"
                );
                self.sink = None;
                Offered::Nowhere
            }
        }
    }

    fn flush_pending(&mut self) {
        if let Some(line) = self.pending.take() {
            self.put(line.without_digest());
        }
    }

    fn put(&mut self, line: String) {
        let n = self.inputs;
        self.inputs += 1;
        if let Some(from) = self.lost_from
            && self.offer(gap_line(from, n - from)) == Offered::Taken
        {
            self.lost_from = None;
        }
        if self.lost_from.is_none() && self.offer(line.clone()) == Offered::Full {
            self.lost_from = Some(n);
            tracing::warn!(input = n, "the trace cannot be written fast enough; recording a gap");
            self.gaps += 1;
        }
        if let Some(flight) = &self.flight {
            flight.push(n, line);
        }
    }
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offered {
    Taken,
    Full,
    Nowhere,
}

impl Drop for Recorder {
    /// Also reached when the engine panics: the last line is then the input of the panic.
    fn drop(&mut self) {
        self.close();
    }
}

/// Keeps the boot record and the last inputs in memory, to be dumped when something went wrong.
#[derive(Clone, Debug)]
pub struct Flight(Arc<Mutex<Ring>>);

#[derive(Debug)]
struct Ring {
    boot: Option<String>,
    lines: VecDeque<String>,
    /// The number of the first of `lines`.
    first: u64,
    bytes: usize,
    most_lines: usize,
    most_bytes: usize,
}

impl Flight {
    /// Keeps at most this number of inputs, with at most this number of bytes as text.
    pub fn new(inputs: usize, bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Ring {
            boot: None,
            lines: VecDeque::new(),
            first: 1,
            bytes: 0,
            most_lines: inputs,
            most_bytes: bytes,
        })))
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, n: u64, line: String) {
        let mut ring = self.ring();
        if n == 0 {
            ring.boot = Some(line);
            return;
        }
        ring.bytes += line.len();
        ring.lines.push_back(line);
        while ring.lines.len() > ring.most_lines || ring.bytes > ring.most_bytes {
            let Some(gone) = ring.lines.pop_front() else { break };
            ring.bytes -= gone.len();
            ring.first += 1;
        }
    }

    /// Writes the kept inputs as a trace. A gap names the dropped inputs.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn dump(&self, mut to: impl Write) -> io::Result<()> {
        // The worker must not wait for the writer.
        let (boot, first, lines) = {
            let ring = self.ring();
            (ring.boot.clone(), ring.first, ring.lines.clone())
        };
        writeln!(to, "{}", header_line(TraceKind::Flight))?;
        let Some(boot) = boot else {
            return to.flush();
        };
        writeln!(to, "{boot}")?;
        if first > 1 {
            writeln!(to, "{}", gap_line(1, first - 1))?;
        }
        for line in lines {
            writeln!(to, "{line}")?;
        }
        to.flush()
    }
}

/// Collects a full trace in memory: for tests and simulations.
#[derive(Clone, Debug, Default)]
pub struct MemorySink(Arc<Mutex<String>>);

impl MemorySink {
    /// The trace so far.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for MemorySink {
    fn offer(&mut self, line: String) -> Result<(), NotTaken> {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
        Ok(())
    }

    fn close(&mut self, lines: Vec<String>) -> Result<(), String> {
        for line in lines {
            let _ = self.offer(line);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
