//! Chaos for a handler that collects many batches into one file, as the example `batch_files` of the crate `leasehold` does.
//!
//! A map stands for the disk, since a world may not use files. A begun file is lost with its process. One version of
//! the handler has a bug: it acknowledges a batch after collecting it, before the file is on the disk. No test without
//! crashes shows this bug. Chaos finds the bug, and prints how to repeat it:
//!
//! ```text
//! cargo test -p leasehold-testing --test files a_collector_that_acknowledges_too_early -- --ignored
//! ```
#![expect(
    clippy::disallowed_methods,
    reason = "handlers run in simulated processes, whose timers and tasks are those of tokio"
)]

use leasehold::{Ack, Batch, Bytes, Flush, Handler, LeaseKey, Receipt, ShardInfo};
use leasehold_testing::{Summary, World, chaos};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The handler writes a file after this many records, after this time, or on the worker's request.
const FILE_RECORDS: usize = 8;
const FILE_TIME: Duration = Duration::from_secs(2);

/// The finished files of all workers of a world. It outlives their processes.
type Disk = Arc<Mutex<Vec<Vec<Bytes>>>>;

/// When a batch is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// After its file is on the disk.
    FileIsSafe,
    /// The bug.
    BatchIsCollected,
}

/// A shard's records for its next file.
#[derive(Default)]
struct Collected {
    records: Vec<Bytes>,
    receipts: Vec<Receipt>,
}

#[derive(Clone)]
struct Collector {
    when: When,
    disk: Disk,
    shards: Arc<Mutex<BTreeMap<LeaseKey, Collected>>>,
}

impl Collector {
    async fn write_file(&self, lease: &LeaseKey) -> Result<(), io::Error> {
        let taken = self.shards.lock().unwrap().remove(lease);
        let collected = taken.unwrap_or_default();
        // A write to the disk takes time.
        tokio::time::sleep(Duration::from_millis(50)).await;
        if !collected.records.is_empty() {
            self.disk.lock().unwrap().push(collected.records);
        }
        for receipt in collected.receipts {
            receipt.acknowledge();
        }
        Ok(())
    }

    async fn write_in_time(self) {
        loop {
            tokio::time::sleep(FILE_TIME).await;
            let leases: Vec<LeaseKey> = self.shards.lock().unwrap().keys().cloned().collect();
            for lease in leases {
                let written = self.write_file(&lease).await;
                written.expect("this disk does not fail");
            }
        }
    }
}

impl Handler for Collector {
    type Error = io::Error;

    async fn process(&self, batch: Batch) -> Result<Ack, io::Error> {
        let full = {
            let mut shards = self.shards.lock().unwrap();
            let collected = shards.entry(batch.shard().lease.clone()).or_default();
            let records = batch.records().iter().map(|record| record.data.clone());
            collected.records.extend(records);
            collected.receipts.push(batch.receipt());
            collected.records.len() >= FILE_RECORDS
        };
        if self.when == When::BatchIsCollected {
            batch.acknowledge();
        }
        if full {
            self.write_file(&batch.shard().lease).await?;
        }
        Ok(Ack::Later)
    }

    async fn flush(&self, shard: &ShardInfo, _: Flush) -> Result<(), io::Error> {
        self.write_file(&shard.lease).await
    }
}

fn worlds(seeds: std::ops::Range<u64>, when: When) -> Summary {
    chaos(seeds, |world: &mut World| {
        let disk = Disk::default();
        let shared = disk.clone();
        world.handler(move |_life| {
            let collector = Collector { when, disk: shared.clone(), shards: Arc::default() };
            // The task ends with the process.
            tokio::spawn(collector.clone().write_in_time());
            collector
        });
        world.finally(move |end| {
            let files = disk.lock().unwrap();
            let safe: BTreeSet<&Bytes> = files.iter().flatten().collect();
            for put in end.puts() {
                assert!(safe.contains(&put.data), "record {} is in no file", put.number);
            }
        });
    })
}

#[test]
fn a_collector_that_waits_for_its_file_loses_nothing() {
    let summary = worlds(0..100, When::FileIsSafe);
    assert!(summary.repeated > 100, "faults bring records again: {summary:?}");
}

#[test]
#[ignore = "it fails: another test runs it"]
fn a_collector_that_acknowledges_too_early() {
    worlds(0..100, When::BatchIsCollected);
}

#[test]
fn a_collector_that_acknowledges_too_early_is_found() {
    let test = "a_collector_that_acknowledges_too_early";
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "--ignored", test]).env_remove("LEASEHOLD_CHAOS_SEED");
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(!output.status.success(), "the bug is found");
    assert!(text.contains("is in no file"), "by the check of the files");
    assert!(text.contains("to repeat it: LEASEHOLD_CHAOS_SEED="), "and repeated");
}
