//! Puts records for the other examples: `cargo run -p leasehold --example producer`, or `… --example producer 500` for so many.
//!
//! `README.md` beside this file tells how to start an AWS in memory.
//!
//! An order is a line of JSON. One of fifty is not, as it happens: see the example `dead_letter`.

use leasehold::aws::{self, kinesis};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 100,
    };
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let kinesis = kinesis::Client::new(&config);

    let create = kinesis.create_stream().stream_name("orders").shard_count(2);
    match create.send().await.map_err(kinesis::Error::from) {
        // There are some from before.
        Ok(_) | Err(kinesis::Error::ResourceInUseException(_)) => {}
        Err(error) => return Err(error.into()),
    }
    for number in 0..count {
        let order = match number % 50 {
            13 => "no JSON".to_owned(),
            _ => format!(r#"{{"order":{number},"amount":{}}}"#, number % 7 + 1),
        };
        kinesis
            .put_record()
            .stream_name("orders")
            // Records of one partition key go to the same shard, and stay in order.
            .partition_key(format!("customer-{}", number % 10))
            .data(order.into_bytes().into())
            .send()
            .await?;
    }
    println!("{count} records");
    Ok(())
}
