//! Two streams under one application name, with real workers against the AWS in memory.

use leasehold::{Error, Fatal};
use leasehold_tests::account::{Account, Row, text};
use leasehold_tests::probe::Probe;
use std::collections::BTreeSet;

const TABLE: &str = "billing";

/// Makes a stream with this number of shards and records.
async fn create(account: &Account, stream: &str, shards: i32, records: u32) {
    account.create(stream, shards).await;
    put(account, stream, 0..records).await;
}

async fn put(account: &Account, stream: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let put = account.kinesis.put_record().stream_name(stream).partition_key(format!("k{number}"));
        let data = format!("{stream} {number:04}").into_bytes();
        put.data(data.into()).send().await.expect("a record");
    }
}

fn worker(account: &Account, stream: &str) -> Probe {
    Probe::of(account.worker_of(stream, TABLE))
}

/// The error of a worker refusing the table of another stream.
async fn refuses(probe: &mut Probe) -> String {
    let error = probe.failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::OtherStream { .. })), "{error:?}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_stream_is_refused_and_the_first_is_read_on() {
    let account = Account::start().await;
    create(&account, "orders", 2, 20).await;
    create(&account, "returns", 4, 40).await;
    let mut orders = worker(&account, "orders");
    orders.processed(20).await;
    let mut returns = worker(&account, "returns");
    let said = refuses(&mut returns).await;
    for part in [":stream/orders", ":stream/returns", "\"billing\"", "shardId-"] {
        assert!(said.contains(part), "expected {part:?} in: {said}");
    }
    assert_eq!(returns.seen().count(), 0, "nothing was read");
    put(&account, "orders", 20..30).await;
    orders.processed(30).await;
    orders.shutdown().await;
    let rows = account.rows(TABLE).await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    let of_orders =
        |row: &Row| text(row, "leaseholdStream").is_some_and(|name| name.contains(":stream/orders@"));
    assert!(rows.values().all(of_orders), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_streams_that_begin_together_none_is_half_read() {
    let account = Account::start().await;
    create(&account, "orders", 20, 100).await;
    create(&account, "returns", 40, 200).await;
    let mut sides =
        [("orders", 100), ("returns", 200)].map(|(stream, all)| (stream, all, worker(&account, stream)));
    let mut refused = 0;
    for (stream, all, probe) in &mut sides {
        // Who goes on reads everything; who does not says why.
        let ended = tokio::select! {
            said = refuses(probe) => Some(said),
            () = tokio::time::sleep(std::time::Duration::from_secs(20)) => None,
        };
        let seen: BTreeSet<String> = probe.seen().payloads().into_iter().collect();
        assert!(seen.iter().all(|data| data.starts_with(*stream)), "{stream}: {seen:?}");
        match ended {
            Some(_) => refused += 1,
            None => {
                assert_eq!(seen.len(), *all, "{stream} goes on, and not with everything");
                probe.shutdown().await;
            }
        }
    }
    assert!(refused > 0, "expected a fleet to refuse the table of both");
}

/// Kinesis would refuse the former stream's checkpoints, but not the initial positions of leases without progress.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_made_anew_does_not_go_on_under_the_former_rows() {
    let account = Account::start().await;
    create(&account, "orders", 2, 0).await;
    let mut probe = worker(&account, "orders");
    leasehold_tests::wait::until("both leases", std::time::Duration::from_secs(30), || async {
        probe.seen().notices.iter().filter(|notice| notice.name() == "took").count() == 2
    })
    .await;
    probe.shutdown().await;
    account.delete("orders").await;
    // Creation times are told apart by the second.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    create(&account, "orders", 2, 10).await;
    let mut anew = worker(&account, "orders");
    refuses(&mut anew).await;
    assert_eq!(anew.seen().count(), 0);
}
