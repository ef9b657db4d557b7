//! The application of a world: a handler that takes time, fails now and then, and reports to the ledger.

use crate::stage::Stage;
use leasehold::runtime::Runtime;
use leasehold::{Ack, Batch, EndReason, Handler, Record, ShardInfo};
use leasehold_engine::time::Span;
use leasehold_local_aws::kinesis::ShardIndex;
use leasehold_sim::draws::{Draws, Roll};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The handler of one life of a worker.
#[derive(Debug)]
pub struct App {
    /// What it reports to.
    pub stage: Stage,
    /// The clock of the handler's waits.
    pub runtime: Arc<dyn Runtime>,
    /// The worker's life.
    pub client: String,
    /// The world's seed.
    pub seed: u64,
    /// How long a batch takes at most.
    pub work_ms: u64,
    /// The number of calls.
    pub calls: AtomicU64,
}

/// A failure of the application itself.
#[derive(Debug)]
pub struct Willed;

impl fmt::Display for Willed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the application failed, as the simulation wills it")
    }
}

impl std::error::Error for Willed {}

impl App {
    fn roll(&self) -> Roll {
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        Draws::new(self.seed).roll(&format!("app {}", self.client), n)
    }

    fn may_fail(&self) -> bool {
        !self.stage.scene().healed
    }

    fn processed(&self, records: &[Record]) {
        let mut scene = self.stage.scene();
        for record in records {
            let shard = shard_of(record.shard.as_str());
            scene.ledger.processes(&self.client, shard, record.position, &record.data);
        }
    }

    /// Acknowledges a processed batch later. `loses`: drops the batch instead, to let the records come again.
    fn keep(&self, batch: &Batch, later: Span, loses: bool) {
        let (receipt, runtime) = (batch.receipt(), self.runtime.clone());
        self.runtime.spawn(Box::pin(async move {
            runtime.sleep(later).await;
            if !loses {
                receipt.acknowledge();
            }
        }));
    }
}

fn shard_of(name: &str) -> ShardIndex {
    ShardIndex::parse(name).unwrap_or(ShardIndex(u32::MAX))
}

impl Handler for App {
    type Error = Willed;

    async fn open(&self, info: &ShardInfo) -> Result<(), Willed> {
        let mut roll = self.roll();
        if self.may_fail() && roll.happens(30) {
            return Err(Willed);
        }
        let mut scene = self.stage.scene();
        let scene = &mut *scene;
        let shard = shard_of(info.shard.as_str());
        scene.ledger.opens(scene.cloud.stream(), &self.client, shard, info.from);
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Willed> {
        let mut roll = self.roll();
        let shard = shard_of(batch.shard().shard.as_str());
        let records = batch.records();
        let positions: Vec<_> = records.iter().map(|record| record.position).collect();
        self.stage.scene().ledger.hands_over(&self.client, shard, &positions, batch.fence());
        // The first half is done and acknowledged before the rest; a failure may come in between.
        let (first, rest) = records.split_at(roll.below(records.len() as u64 + 1) as usize);
        let work = Span::from_millis(roll.magnitude(1, self.work_ms) / 2);
        self.runtime.sleep(work).await;
        self.processed(first);
        if let Some(record) = first.last() {
            batch.ack(record);
        }
        if roll.happens(100) {
            batch.checkpoint();
        }
        self.runtime.sleep(work).await;
        if self.may_fail() && roll.happens(30) {
            return Err(Willed);
        }
        self.processed(rest);
        if roll.happens(200) {
            self.keep(&batch, work, roll.happens(50));
            return Ok(Ack::Later);
        }
        Ok(Ack::All)
    }

    async fn close(&self, info: &ShardInfo, reason: EndReason) {
        let mut scene = self.stage.scene();
        let scene = &mut *scene;
        let shard = shard_of(info.shard.as_str());
        let ended = reason == EndReason::ShardEnded;
        scene.ledger.closes(scene.cloud.stream(), &self.client, shard, ended);
    }
}
