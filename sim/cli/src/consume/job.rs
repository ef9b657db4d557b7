//! Batches on their way to stdout, and the unwritten rest of each at the worker's end.

use crate::text::counted;
use leasehold::{Batch, Notice, Record};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A batch in print.
#[derive(Debug)]
pub(super) struct Job {
    pub batch: Batch,
    /// The number of written records.
    written: AtomicUsize,
}

impl Job {
    /// The unwritten records.
    pub(super) fn rest(&self) -> &[Record] {
        let written = self.written.load(Ordering::Acquire);
        self.batch.records().get(written..).unwrap_or_default()
    }

    /// Counts further written records.
    pub(super) fn wrote(&self, records: usize) {
        self.written.fetch_add(records, Ordering::Release);
    }

    /// The last written record.
    pub(super) fn last_written(&self) -> Option<&Record> {
        let written = self.written.load(Ordering::Acquire);
        self.batch.records().get(..written)?.last()
    }

    /// Acknowledges the written records.
    pub(super) fn acknowledge(&self) {
        if let Some(last) = self.last_written() {
            self.batch.ack(last);
        }
    }
}

/// All batches in print.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    open: Mutex<Vec<Arc<Job>>>,
    stopping: AtomicBool,
}

impl Jobs {
    fn open(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with a batch.
    pub(super) fn begin(&self, batch: Batch) -> OpenJob<'_> {
        let job = Arc::new(Job { batch, written: AtomicUsize::new(0) });
        self.open().push(job.clone());
        OpenJob { jobs: self, job, settled: false }
    }

    pub(super) fn observe(&self, notice: &Notice) {
        if let Notice::ShuttingDown { .. } = notice {
            self.stopping.store(true, Ordering::Release);
        }
    }

    /// The records still unwritten at the worker's end, if any.
    pub(super) fn unwritten(&self) -> Option<Unwritten> {
        let open = self.open();
        let stuck = || open.iter().filter(|job| !job.rest().is_empty());
        let shards: BTreeSet<_> = stuck().map(|job| &job.batch.shard().shard).collect();
        (!shards.is_empty())
            .then(|| Unwritten { records: stuck().map(|job| job.rest().len()).sum(), shards: shards.len() })
    }
}

/// The handler's side of a job. A drop before `settle` means a stopped handler: either its lease is in doubt, and
/// another call will begin anew; or the worker ends, and no other call follows.
pub(super) struct OpenJob<'a> {
    jobs: &'a Jobs,
    pub job: Arc<Job>,
    settled: bool,
}

impl OpenJob<'_> {
    /// The handler knows the job's result.
    pub(super) fn settle(mut self) {
        self.settled = true;
    }
}

impl Drop for OpenJob<'_> {
    fn drop(&mut self) {
        if self.settled || !self.jobs.stopping.load(Ordering::Acquire) {
            self.jobs.open().retain(|job| !Arc::ptr_eq(job, &self.job));
        }
    }
}

/// The records unwritten at the worker's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unwritten {
    records: usize,
    shards: usize,
}

/// A sentence.
impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (were, them) = if self.records == 1 { ("was", "it") } else { ("were", "them") };
        let (records, shards) =
            (counted(self.records as u64, "record"), counted(self.shards as u64, "shard"));
        write!(
            f,
            "stdout took no more lines until the worker had to end: {records} of {shards} {were} not written \
             and so not acknowledged; the next worker of the application reads {them} again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritten_line_is_a_sentence() {
        let say = |records, shards| Unwritten { records, shards }.to_string();
        assert!(say(1, 1).contains("1 record of 1 shard was not written"), "{}", say(1, 1));
        assert!(say(7, 2).contains("7 records of 2 shards were not written"), "{}", say(7, 2));
    }
}
