//! The in-memory AWS under a real worker and the real SDK.
#![cfg(feature = "local")]
#![expect(clippy::disallowed_methods, reason = "these tests run by the clock of the machine")]

use leasehold::Batch;
use leasehold_testing::LocalAws;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

#[tokio::test]
async fn a_worker_follows_a_split_and_a_merge() {
    let aws = LocalAws::start().await;
    aws.create_stream("orders", 2);
    assert!(aws.endpoint_url().starts_with("http://127.0.0.1:"));
    let (seen, mut sink) = mpsc::unbounded_channel();
    let worker = aws.consumer("orders", "billing").build().expect("all is there");
    let control = worker.control();
    let run = tokio::spawn(worker.run_fn(move |batch: Batch| {
        for record in &batch {
            let text = String::from_utf8_lossy(&record.data).into_owned();
            seen.send((record.shard.clone(), text)).expect("the test listens");
        }
        std::future::ready(Ok::<(), std::io::Error>(()))
    }));
    let mut put = BTreeMap::new();
    for n in 0..8 {
        put.insert(n.to_string(), aws.put("orders", &format!("key-{n}"), n.to_string()));
    }
    let open = aws.open_shards("orders");
    let [_, right] = aws.split("orders", open[0].clone());
    let child = aws.merge("orders", right, open[1].clone());
    assert!(aws.open_shards("orders").contains(&child));
    for n in 8..16 {
        put.insert(n.to_string(), aws.put("orders", &format!("key-{n}"), n.to_string()));
    }
    let mut seen = BTreeMap::new();
    while seen.len() < put.len() {
        let next = timeout(Duration::from_secs(60), sink.recv()).await;
        let (shard, text) = next.expect("records come in a minute").expect("the worker runs");
        seen.insert(text, shard);
    }
    assert_eq!(seen, put);
    control.shutdown();
    run.await.expect("it does not panic").expect("it stops cleanly");
}

#[tokio::test]
#[should_panic(expected = "expected to be able to write to stream \"orders\"")]
async fn a_stream_that_is_not_there_is_told() {
    LocalAws::start().await.put("orders", "key", "data");
}
