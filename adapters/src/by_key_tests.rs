use super::*;
use crate::handler::HandlerFn;
use crate::testing::rig::Rig;
use leasehold_engine::input::Call;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// A batch with these keys, at the positions 10, 11 and up, and the batch's rig.
async fn batch(keys: &[u8]) -> (Rig, Batch) {
    let (given, mut taken) = tokio::sync::mpsc::unbounded_channel();
    let keep = HandlerFn::new(move |batch| {
        let sent = given.send(batch).is_ok();
        async move { sent.then_some(Ack::Later).ok_or(io::Error::other("closed")) }
    });
    let rig = Rig::new(|_, _| Arc::new(keep));
    rig.open().await;
    let names: Vec<String> = keys.iter().map(u8::to_string).collect();
    let records: Vec<(u64, &str)> = (10..).zip(names.iter().map(String::as_str)).collect();
    rig.fetch(2, &records, "data");
    rig.deliver(2, None, 1).await;
    let batch = taken.recv().await.expect("a batch");
    (rig, batch)
}

/// The course of a record's call: the number of pending polls, and then success or failure.
#[derive(Clone, Copy, Debug)]
struct Way {
    pends: u8,
    fails: bool,
}

/// What the calls have noted.
#[derive(Debug, Default)]
struct Noted {
    running: BTreeMap<String, u64>,
    most: usize,
    /// By key, the indices in the order of their ends.
    ended: BTreeMap<String, Vec<u64>>,
    failed: bool,
}

async fn call(noted: &RefCell<Noted>, record: Record, way: Way) -> Result<(), u64> {
    let (key, index) = (record.partition_key.to_string(), index(&record));
    {
        let mut noted = noted.borrow_mut();
        assert!(!noted.failed, "nothing is begun after the first error");
        let before = noted.running.insert(key.clone(), index);
        assert_eq!(before, None, "two records of one key at the same time");
        noted.most = noted.most.max(noted.running.len());
    }
    let mut pends = way.pends;
    poll_fn(|cx| {
        if pends == 0 {
            return Poll::Ready(());
        }
        pends -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    let mut noted = noted.borrow_mut();
    noted.running.remove(&key);
    if way.fails {
        noted.failed = true;
        return Err(index);
    }
    noted.ended.entry(key).or_default().push(index);
    Ok(())
}

fn index(record: &Record) -> u64 {
    record.position.sequence.to_string().parse::<u64>().unwrap() - 10
}

/// The last acknowledged position.
fn acknowledged(rig: &mut Rig) -> Option<u64> {
    let through = rig.said().into_iter().map(|call| match call {
        Call::Processed { through, .. } => through.sequence.to_string().parse::<u64>().unwrap() - 10,
        other => panic!("{other:?}"),
    });
    through.max()
}

fn check(keys: &[u8], ways: &[Way], limit: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (mut rig, batch) = batch(keys).await;
        let noted = RefCell::new(Noted::default());
        let run = batch.for_each_key_concurrent(limit, |record| {
            let way = ways[index(&record) as usize];
            call(&noted, record, way)
        });
        let result = pin!(run).await;
        let noted = noted.into_inner();
        assert!(noted.most <= limit.max(1), "{noted:?}");
        for ended in noted.ended.values() {
            assert!(ended.is_sorted(), "records of one key end in their order: {noted:?}");
        }
        let done: BTreeSet<u64> = noted.ended.values().flatten().copied().collect();
        let gapless = (0..).take_while(|index| done.contains(index)).last();
        assert_eq!(acknowledged(&mut rig), gapless, "{noted:?}");
        match result {
            Ok(ack) => {
                assert_eq!(ack, Ack::All);
                assert_eq!(done.len(), keys.len());
                assert!(!noted.failed);
            }
            Err(index) => assert!(ways[index as usize].fails && noted.failed),
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn keys_keep_their_order_and_no_gap_is_acknowledged(
        records in prop::collection::vec((0..6u8, 0..8u8, prop::bool::weighted(0.03)), 1..60),
        limit in 0..9usize,
    ) {
        let keys: Vec<u8> = records.iter().map(|record| record.0).collect();
        let ways: Vec<Way> = records
            .iter()
            .map(|(_, pends, fails)| Way { pends: *pends, fails: *fails })
            .collect();
        check(&keys, &ways, limit);
    }
}

#[tokio::test(start_paused = true)]
async fn different_keys_are_processed_at_once_up_to_the_limit() {
    let (_rig, batch) = batch(&[0, 0, 1, 2, 3]).await;
    let mut seconds = Vec::new();
    for limit in [1, 2, 9] {
        let started = tokio::time::Instant::now();
        let slow = |_| async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            Ok::<_, io::Error>(())
        };
        batch.for_each_key_concurrent(limit, slow).await.unwrap();
        seconds.push(started.elapsed().as_secs());
    }
    assert_eq!(seconds, [5, 3, 2]);
}
