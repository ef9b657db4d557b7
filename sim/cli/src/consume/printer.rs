//! The printing side of the worker: a handler turns records into lines and waits for their write.

use super::job::{Job, Jobs};
use super::last::Last;
use super::line::{Line, Payload};
use super::lines::Lines;
use super::output::Output;
use super::writer::{NotPrinted, Portion, Writer};
use leasehold::{Batch, Control, Record};
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// A portion is written once it has so many bytes, or all records of its batch.
const PORTION: usize = 256 << 10;
/// The longest queue of portions. Further handlers wait before they make lines.
const QUEUE: usize = 16;

/// The printing side, shared by all shards.
#[derive(Debug)]
pub(super) struct Printer {
    payload: Payload,
    queue: mpsc::Sender<Portion>,
    jobs: Arc<Jobs>,
    broken: Arc<OnceLock<io::Error>>,
    control: Control,
}

impl Printer {
    /// Starts to print, no more than `most` records.
    pub(super) fn start(
        output: Output, payload: Payload, most: Option<u64>, jobs: Arc<Jobs>, last: Arc<Last>,
        control: Control,
    ) -> io::Result<Self> {
        let (queue, portions) = mpsc::channel(QUEUE);
        let broken = Arc::<OnceLock<_>>::default();
        let writer = Writer { output, left: most, last, broken: broken.clone(), control: control.clone() };
        // The process does not join this thread: the thread may stand still at the process's end.
        thread::Builder::new().name("stdout".to_owned()).spawn(move || writer.run(portions))?;
        Ok(Self { payload, queue, jobs, broken, control })
    }

    /// Prints a batch, and returns after the last line is written. Written records are acknowledged, even if the rest
    /// fails.
    pub(super) async fn print(&self, batch: Batch) -> Result<(), NotPrinted> {
        let open = self.jobs.begin(batch);
        let result = self.print_job(&open.job).await;
        open.settle();
        result
    }

    async fn print_job(&self, job: &Arc<Job>) -> Result<(), NotPrinted> {
        while !job.rest().is_empty() {
            let Ok(place) = self.queue.reserve().await else {
                return Err(self.writer_is_gone());
            };
            // A handler waiting for its place has no memory for lines: there may be a thousand such handlers.
            let lines = self.lines(job);
            let (done, written) = oneshot::channel();
            place.send(Portion { job: job.clone(), lines, done });
            match written.await {
                Ok(result) => result?,
                Err(_) => return Err(self.writer_is_gone()),
            }
        }
        Ok(())
    }

    /// The next lines: a portion, or all remaining lines.
    fn lines(&self, job: &Job) -> Lines {
        let mut lines = Lines::default();
        let token = job.batch.shard().token.0;
        for record in job.rest() {
            lines.push(&line(record, token), self.payload);
            if lines.bytes() >= PORTION {
                break;
            }
        }
        lines
    }

    /// The thread ends before its handlers only by a panic.
    fn writer_is_gone(&self) -> NotPrinted {
        let _ = self.broken.set(io::Error::other("the thread that writes it has panicked"));
        self.control.shutdown();
        NotPrinted::NoMoreOutput
    }

    /// The error of a broken stdout, if stdout is broken.
    pub(super) fn broken(&self) -> Option<&io::Error> {
        self.broken.get()
    }
}

fn line(record: &Record, token: u64) -> Line<'_> {
    Line {
        shard: record.shard.as_str(),
        token,
        position: record.position,
        partition_key: &record.partition_key,
        data: &record.data,
        arrival: record.arrival,
    }
}
