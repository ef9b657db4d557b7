//! The thread that writes lines to stdout.
//!
//! While no program reads stdout, this thread stands still. Only handlers wait for this thread, and handlers may wait.
//! During the wait, the worker may lose the lease. So the thread asks the lease's fence after the wait for room, right
//! before it writes lines. The thread finishes a begun line: a line longer than one piece may end after the loss of the
//! lease.

use super::job::Job;
use super::last::Last;
use super::lines::Lines;
use super::output::Output;
use leasehold::Control;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// The next records of a batch as lines, on their way to stdout.
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
    /// Another worker may own the shard by now.
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

/// The thread's tools.
pub(super) struct Writer {
    pub output: Output,
    /// How many records may still be printed.
    pub left: Option<u64>,
    /// Hears of the last record to print.
    pub last: Arc<Last>,
    /// Why stdout cannot be written any more.
    pub broken: Arc<OnceLock<io::Error>>,
    pub control: Control,
}

impl Writer {
    /// Writes until the last handler is gone.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Portion>) {
        while let Some(portion) = queue.blocking_recv() {
            let result = self.write(&portion);
            let Portion { job, done, .. } = portion;
            // After a full write, the handler acknowledges by its own end.
            if done.is_closed() || !job.rest().is_empty() {
                job.acknowledge();
            }
            // A stopped handler does not listen any more.
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

    /// Writes some lines, unless the lease is in doubt by the time there is room.
    fn write_piece(&mut self, portion: &Portion, piece: &[u8]) -> io::Result<bool> {
        if !self.output.has_room()? {
            // The wait may be long, and may be the last act on this batch.
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
