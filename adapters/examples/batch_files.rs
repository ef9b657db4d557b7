//! Collects many batches into one file. `cargo run -p leasehold --example batch_files`, or `… batch_files FOLDER`
//!
//! `README.md` beside this file tells how to start an AWS in memory.
//!
//! A batch is acknowledged when its file is safe on the disk, and not before: after a crash, all records outside of
//! finished files come again. Records may be in two files, and no record is missing. A reader of the files tells
//! repeated lines by shard and position.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its timers from a port; your program needs no such line"
)]

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Ack, Batch, Flush, Handler, InitialPosition, LeaseKey, Receipt, ShardInfo, Worker};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A file is written after this number of records, after this time, or when the worker asks for a flush.
const FILE_RECORDS: usize = 50;
const FILE_TIME: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Collector {
    folder: PathBuf,
    shards: Arc<Mutex<BTreeMap<LeaseKey, Collected>>>,
}

/// What a shard has for its next file.
#[derive(Default)]
struct Collected {
    name: String,
    lines: Vec<String>,
    receipts: Vec<Receipt>,
}

impl Collector {
    /// Handlers may block for a moment, as here: leases are kept on another thread.
    fn write_file(&self, lease: &LeaseKey) -> io::Result<()> {
        // The collection is taken first. After an error its receipts are dropped without an acknowledgement, and its
        // batches come again.
        let collected = self.shards.lock().expect("no panic").remove(lease);
        let Some(Collected { name, lines, receipts }) = collected else {
            return Ok(());
        };
        let unfinished = self.folder.join(format!("{name}.unfinished"));
        let mut file = File::create(&unfinished)?;
        file.write_all(lines.concat().as_bytes())?;
        file.sync_all()?;
        // A file of the final name is always whole. The folder is synced, too, since the folder holds the name.
        fs::rename(&unfinished, self.folder.join(format!("{name}.jsonl")))?;
        File::open(&self.folder)?.sync_all()?;
        for receipt in receipts {
            receipt.acknowledge();
        }
        Ok(())
    }

    /// Without this task, a quiet shard would keep its last records until new records come.
    async fn write_in_time(self) {
        loop {
            tokio::time::sleep(FILE_TIME).await;
            let leases: Vec<LeaseKey> = self.shards.lock().expect("no panic").keys().cloned().collect();
            for lease in leases {
                if let Err(error) = self.write_file(&lease) {
                    eprintln!("expected to write a file of {lease}: {error}; its records come again");
                }
            }
        }
    }
}

impl Handler for Collector {
    type Error = io::Error;

    async fn process(&self, batch: Batch) -> Result<Ack, io::Error> {
        let lease = &batch.shard().lease;
        let lines = batch.records().iter().map(|record| {
            let line = serde_json::json!({
                "shard": record.shard.as_str(),
                "position": record.position.to_string(),
                "key": &*record.partition_key,
                "data": String::from_utf8_lossy(&record.data),
            });
            format!("{line}\n")
        });
        let full = {
            let mut shards = self.shards.lock().expect("no panic");
            let collected = shards.entry(lease.clone()).or_default();
            if let (true, Some(first)) = (collected.lines.is_empty(), batch.records().first()) {
                // Each owner of the shard has another token: no two workers write the same file.
                collected.name = format!("{lease}-{}-{}", batch.fence().token(), first.position);
            }
            collected.lines.extend(lines);
            collected.receipts.push(batch.receipt());
            collected.lines.len() >= FILE_RECORDS
        };
        if full {
            self.write_file(lease)?;
        }
        Ok(Ack::Later) // its receipt acknowledges it
    }

    /// The shard has ended, its lease is given up (a shutdown, or a hand-over), or as much is kept as may be.
    async fn flush(&self, shard: &ShardInfo, _: Flush) -> Result<(), io::Error> {
        self.write_file(&shard.lease)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "order-files".into()));
    fs::create_dir_all(&folder)?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("batch-files")
        .initial_position(InitialPosition::TrimHorizon)
        .build()?;
    leasehold::shutdown_on_signal(worker.control())?;
    let collector = Collector { folder, shards: Arc::default() };
    tokio::spawn(collector.clone().write_in_time());
    worker.run(collector).await?;
    Ok(())
}
