//! The smallest consumer, as in the README: prints the records of a stream until Ctrl-C. `cargo run -p leasehold --example minimal`
//!
//! `README.md` beside this file tells how to start an AWS in memory.

use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Batch, InitialPosition, Worker};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init(); // what the worker decides is logged as sentences

    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("billing") // also the name of the lease table
        .initial_position(InitialPosition::TrimHorizon)
        .build()?;

    // On Ctrl-C and SIGTERM handlers finish, progress is written, leases are released.
    leasehold::shutdown_on_signal(worker.control())?;

    worker
        .run_fn(|batch: Batch| async move {
            for record in batch.records() {
                println!("{} {} bytes", record.partition_key, record.data.len());
            }
            Ok::<(), std::io::Error>(()) // processed: the checkpoint may move past this batch
        })
        .await?;
    Ok(())
}
