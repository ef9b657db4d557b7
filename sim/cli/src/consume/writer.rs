//! The thread that writes lines to stdout.
//!
//! A stdout that no program reads stands still, and then so does this thread: nothing else waits for it but handlers, which may.
//! The lease may be lost meanwhile. So its fence is asked after the wait for room, right before lines are written. What was
//! begun is finished: a line that is longer than what stdout takes at once may end after the lease was lost.

use super::job::Job;
use super::last::Last;
use super::lines::Lines;
use super::output::Output;
use leasehold::Control;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// Some records of a batch as lines, on their way to stdout: those that come next.
#[derive(Debug)]
pub(super) struct Portion {
    pub job: Arc<Job>,
    pub lines: Lines,
    /// Told when all lines are written. Closed when the handler was stopped.
    pub done: oneshot::Sender<Result<(), NotPrinted>>,
}

impl Portion {
    /// Whether the lines may still be written.
    fn is_wanted(&self) -> bool {
        !self.done.is_closed() && self.job.batch.fence().is_valid()
    }
}

/// Why a batch was not printed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotPrinted {
    /// The worker is about to shut down.
    NoMoreOutput,
    /// The shard may be another worker's by now.
    InDoubt,
}

impl fmt::Display for NotPrinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotPrinted::NoMoreOutput => "no more output is wanted",
            NotPrinted::InDoubt => "the lease was in doubt when stdout was ready for the lines",
        })
    }
}

impl std::error::Error for NotPrinted {}

/// What the thread works with.
pub(super) struct Writer {
    pub output: Output,
    /// How many records may still be printed.
    pub left: Option<u64>,
    /// Is told of the last record that is wanted.
    pub last: Arc<Last>,
    /// Why stdout cannot be written any more.
    pub broken: Arc<OnceLock<io::Error>>,
    pub control: Control,
}

impl Writer {
    /// Writes until there are no handlers any more.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Portion>) {
        while let Some(portion) = queue.blocking_recv() {
            let result = self.write(&portion);
            let Portion { job, done, .. } = portion;
            // When all is written, the handler says so by its own end.
            if done.is_closed() || !job.rest().is_empty() {
                job.acknowledge();
            }
            // A handler that was stopped does not listen any more.
            let _ = done.send(result);
        }
    }

    fn write(&mut self, portion: &Portion) -> Result<(), NotPrinted> {
        let lines = &portion.lines;
        let most = |left: u64| usize::try_from(left).unwrap_or(usize::MAX);
        let wanted = lines.len().min(self.left.map_or(usize::MAX, most));
        let mut next = 0;
        while next < wanted && self.broken.get().is_none() {
            let (piece, end) = lines.piece(next, wanted, self.output.piece());
            match self.write_piece(portion, piece) {
                Ok(true) => self.wrote(&portion.job, end - next),
                Ok(false) => return Err(NotPrinted::InDoubt),
                Err(error) => {
                    self.control.shutdown();
                    let _ = self.broken.set(error);
                }
            }
            next = end;
        }
        if wanted < lines.len() || self.broken.get().is_some() {
            return Err(NotPrinted::NoMoreOutput);
        }
        Ok(())
    }

    /// Writes some lines, unless the lease is in doubt once there is room for them.
    fn write_piece(&mut self, portion: &Portion, piece: &[u8]) -> io::Result<bool> {
        if !self.output.has_room()? {
            // It may take long, and it may be the last that is heard of this batch.
            portion.job.acknowledge();
            self.output.wait_for_room(|| portion.is_wanted())?;
        }
        if !portion.is_wanted() {
            return Ok(false);
        }
        let begun = self.output.write(piece)?;
        self.output.write_all(&piece[begun..])?;
        Ok(true)
    }

    fn wrote(&mut self, job: &Job, records: usize) {
        job.wrote(records);
        let Some(left) = &mut self.left else { return };
        *left -= records as u64;
        if *left == 0
            && let Some(last) = job.last_written()
        {
            job.batch.ack(last);
            job.batch.checkpoint();
            let lease = job.batch.shard().lease.clone();
            self.last.is_printed(lease, last.position);
        }
    }
}
