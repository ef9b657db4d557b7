//! The application of a world: a handler that takes time, fails now and then, and tells what it has processed.

use leasehold::{Ack, Batch, Handler, Record, ShardInfo};
use leasehold_testing::harness::{Books, Draws, Life, Place, Stage, Time};
use madsim::time::sleep;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The handler of one life of a worker.
#[derive(Debug)]
pub(crate) struct App {
    draws: Draws,
    books: Books,
    stage: Stage,
    worker: usize,
    /// When nothing fails any more.
    healed: Time,
    /// The number of calls, from a number that no other life has.
    calls: AtomicU64,
}

/// A failure of the application itself.
#[derive(Debug)]
pub(crate) struct Willed;

impl fmt::Display for Willed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the application failed, as the simulation wills it")
    }
}

impl std::error::Error for Willed {}

impl App {
    pub(crate) fn new(seed: u64, healed: Time, books: Books, life: Life, place: &Place) -> Self {
        let calls = AtomicU64::new((place.life as u64) << 32);
        let (draws, stage) = (Draws::new(seed), place.stage.clone());
        Self { draws, books, stage, worker: life.worker, healed, calls }
    }

    fn next(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn fails(&self, what: &str, n: u64) -> Result<(), Willed> {
        let fails = self.stage.now() < self.healed && self.draws.percent(what, n, 3);
        if fails { Err(Willed) } else { Ok(()) }
    }

    fn processed(&self, records: &[Record]) {
        self.stage.processed(self.worker, records);
        let wrong = records.iter().find_map(|record| self.books.write(&record.data).err());
        wrong.into_iter().for_each(|what| self.stage.fail("order", what));
    }
}

impl Handler for App {
    type Error = Willed;

    async fn open(&self, _: &ShardInfo) -> Result<(), Willed> {
        self.fails("open-fails", self.next())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Willed> {
        let (draws, n, records) = (self.draws, self.next(), batch.records());
        // The first half is done and acknowledged before the rest; a failure may come in between.
        let (first, rest) = records.split_at(draws.between("first", n, 0, records.len() as u64) as usize);
        let most = draws.magnitude("work", 0, 1, 800);
        let work = Duration::from_millis(draws.magnitude("work-of", n, 1, most) / 2);
        sleep(work).await;
        self.processed(first);
        if let Some(record) = first.last() {
            batch.ack(record);
        }
        if draws.percent("checkpoints", n, 10) {
            batch.checkpoint();
        }
        sleep(work).await;
        self.fails("fails", n)?;
        self.processed(rest);
        if !draws.percent("later", n, 20) {
            return Ok(Ack::All);
        }
        // A lost receipt lets the records come again.
        let (receipt, loses) = (batch.receipt(), draws.percent("loses", n, 5));
        madsim::task::spawn(async move {
            sleep(work).await;
            if !loses {
                receipt.acknowledge();
            }
        });
        Ok(Ack::Later)
    }
}
