//! Sets records aside that cannot be processed. `cargo run -p leasehold --example dead_letter`, or `… dead_letter FILE`
//!
//! `README.md` beside this file tells how to start an AWS in memory.
//!
//! Without a policy, a record that makes the handler fail is tried again for ever, and its shard waits. With the
//! policy below, a batch that failed twice is handed over one record at a time. A record that failed twice alone
//! becomes a line of the file, and its shard goes on.

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Batch, DeadLetterFile, FailurePolicy, InitialPosition, Worker};
use std::path::PathBuf;

/// Records come in order. After an error, the batch comes again from the first record that was not acknowledged.
async fn bill(batch: Batch) -> Result<(), serde_json::Error> {
    for record in &batch {
        let order: serde_json::Value = serde_json::from_slice(&record.data)?;
        println!("{} owes {}", record.partition_key, order["amount"]);
        batch.ack(record);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "dead-letters.jsonl".into()));
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("dead-letter")
        .initial_position(InitialPosition::TrimHorizon)
        .failure_policy(FailurePolicy::set_aside(2))
        // A line has the record, its shard and position, and the error. The record counts as processed when the line is on the disk.
        .dead_letter(DeadLetterFile::open(path)?)
        .build()?;
    leasehold::shutdown_on_signal(worker.control())?;
    worker.run_fn(bill).await?;
    Ok(())
}
