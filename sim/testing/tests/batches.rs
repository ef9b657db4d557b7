//! Batches in the hands of handlers, without a worker.

use leasehold::{Ack, Batch, Checkpoint, Handler, Position, Wall};
use leasehold_testing::{TestLease, batch, record};
use std::sync::Mutex;
use std::time::Duration;

/// Writes while its lease is valid.
#[derive(Default)]
struct Writer(Mutex<Vec<String>>);

impl Handler for Writer {
    type Error = std::io::Error;

    async fn process(&self, batch: Batch) -> Result<Ack, Self::Error> {
        let fence = batch.fence();
        for record in &batch {
            tokio::task::yield_now().await;
            if !fence.is_valid() {
                return Err(std::io::Error::other("the lease is over"));
            }
            let text = String::from_utf8_lossy(&record.data);
            self.0.lock().expect("no panic").push(format!("{}={text}", record.partition_key));
            batch.ack(record);
        }
        Ok(Ack::All)
    }
}

#[tokio::test]
async fn nothing_is_written_after_the_fence() {
    let (writer, lease) = (Writer::default(), TestLease::new());
    let good = lease.batch([record("a").partition_key("k"), record("b")]).build();
    assert!(writer.process(good).await.is_ok());
    assert_eq!(lease.acknowledged(), Some(Position::of(2.into())));
    let late = lease.batch([record("c")]).build();
    assert_eq!(late.records()[0].position, Position::of(3.into()));
    lease.expire();
    assert!(writer.process(late).await.is_err());
    assert_eq!(*writer.0.lock().expect("no panic"), ["k=a", "key=b"]);
    assert_eq!(lease.acknowledged(), Some(Position::of(2.into())));
    lease.renew(Duration::from_secs(9));
    assert!(!lease.fence().is_valid(), "what is lost is lost for good");
}

#[test]
fn a_lease_runs_out_by_its_own_clock_and_is_renewed() {
    let lease = TestLease::of("shardId-000000000007", 3, Checkpoint::At(Position::of(40.into())));
    let batch = lease
        .batch([record("a").sequence(41).part(0), record("b").sequence(41).part(1), record("c")])
        .attempt(2)
        .behind(Duration::from_millis(1_500))
        .build();
    assert_eq!(batch.shard(), &*lease.info());
    assert_eq!((batch.fence().token(), batch.attempt()), (3, 2));
    assert_eq!(Duration::from(batch.behind()), Duration::from_millis(1_500));
    assert_eq!(batch.records()[2].position, Position::of(42.into()));
    assert!(batch.records()[1].aggregated && !batch.records()[2].aggregated);
    lease.advance(Duration::from_secs(10));
    assert!(!batch.fence().is_valid());
    lease.renew(Duration::from_secs(1));
    assert_eq!(Duration::from(batch.fence().remaining()), Duration::from_secs(1));
    assert!(!lease.checkpoint_asked());
    batch.checkpoint();
    assert!(lease.checkpoint_asked());
}

#[test]
fn a_record_has_what_it_was_given() {
    let record = record("a").arrival(Wall(7)).build();
    assert_eq!((record.arrival, record.position), (Some(Wall(7)), Position::of(1.into())));
    assert_eq!(record.shard.as_str(), "shardId-000000000000");
}

#[test]
#[should_panic(expected = "give the records in the order of their positions")]
fn records_out_of_order_are_no_batch() {
    let _ = batch([record("b").sequence(2), record("a").sequence(1)]).build();
}

#[test]
#[should_panic(expected = "no worker hands over an empty batch")]
fn no_records_are_no_batch() {
    let _ = batch([]).build();
}
