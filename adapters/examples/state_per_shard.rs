//! Counts the records of each partition key, with a task for each shard. `cargo run -p leasehold --example state_per_shard`
//!
//! `README.md` beside this file tells how to start an AWS in memory.
//!
//! The counts are local variables of the task: no lock, no map of shards. Batches are acknowledged when their counts
//! are written. After a crash the unacknowledged batches come again, to a new task with new variables: no record is
//! left out.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its timers from a port; your program needs no such line"
)]

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{InitialPosition, Receipt, ShardStream, Worker};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The counts of a shard since the last write.
#[derive(Default)]
struct Counts {
    by_key: BTreeMap<Arc<str>, u64>,
    receipts: Vec<Receipt>,
}

impl Counts {
    /// Adds the counts to those of a database. Here, they are printed.
    async fn write(&mut self, shard: &ShardStream) -> io::Result<()> {
        for (key, count) in std::mem::take(&mut self.by_key) {
            println!("{}: {count} of {key}", shard.info().shard);
        }
        // Only now: what is acknowledged never comes again.
        for receipt in self.receipts.drain(..) {
            receipt.acknowledge();
        }
        Ok(())
    }
}

async fn count(shard: ShardStream) -> io::Result<()> {
    let mut counts = Counts::default();
    let mut in_time = tokio::time::interval(Duration::from_secs(10));
    loop {
        tokio::select! {
            batch = shard.next() => {
                let Some(batch) = batch else { break };
                for record in &batch {
                    *counts.by_key.entry(record.partition_key.clone()).or_default() += 1;
                }
                counts.receipts.push(batch.receipt());
            }
            _ = in_time.tick() => counts.write(&shard).await?,
            // The limit of kept batches is reached: the next batch comes after an acknowledgement.
            () = shard.flush_wanted() => counts.write(&shard).await?,
        }
    }
    // The shard was split or merged, another worker gets the shard, or this worker shuts down: `shard.why_ended()`.
    counts.write(&shard).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("state-per-shard")
        .initial_position(InitialPosition::TrimHorizon)
        .build()?;
    leasehold::shutdown_on_signal(worker.control())?;
    worker.run_shards(count).await?;
    Ok(())
}
