use super::*;
use crate::testing::op;
use bytes::Bytes;

fn record(sequence: u64) -> Record {
    Record {
        shard: "s".into(),
        position: Position::of(sequence.into()),
        partition_key: "k".into(),
        explicit_hash_key: None,
        data: Bytes::from_static(b"data"),
        arrival: None,
        aggregated: false,
    }
}

fn answer(sequences: &[u64], next: Option<&str>) -> Answer {
    Answer {
        records: sequences.iter().map(|n| record(*n)).collect(),
        behind_ms: 5,
        next: next.map(Cursor::from),
        ..Answer::default()
    }
}

#[test]
fn a_batch_is_described_and_kept_until_it_is_processed() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    let described = store.take_in(&shard, op(2), answer(&[5, 6, 9], Some("next")));
    assert_eq!(
        described,
        input::Fetched {
            count: 3,
            bytes: 12,
            first: Some(Position::of(5.into())),
            last: Some(Position::of(9.into())),
            behind_ms: 5,
            end: None,
            range_unproven: false,
            unordered: false,
        }
    );
    assert_eq!(store.iterator(op(2)).as_deref(), Some("next"));
    let batch = store.batch(&shard, op(2)).expect("kept");
    assert_eq!(batch.first_after(Some(Position::of(5.into()))), 1);
    assert_eq!(batch.first_after(None), 0);
    assert!(store.batch(&shard, op(2)).is_some(), "for another attempt");
    store.processed(&shard, op(2));
    assert!(store.batch(&shard, op(2)).is_none());
    assert_eq!(store.iterator(op(2)).as_deref(), Some("next"), "reading goes on from it");
}

#[test]
fn the_end_of_a_shard_keeps_no_iterator_and_names_the_children() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    let child = ChildShard { id: "c".into(), parents: vec![shard.clone()], range: HashRange::ALL };
    let mut last = answer(&[], None);
    last.children = vec![child.clone()];
    let described = store.take_in(&shard, op(2), last);
    assert_eq!(described.end, Some(vec![child]));
    assert_eq!((described.count, described.first, described.last), (0, None, None));
    assert_eq!(store.len(), (0, 0, 0));
    store.learn_range(&"c".into(), HashRange::ALL, op(2));
    assert_eq!(store.range(&"c".into()).proven(), None, "one answer proves nothing");
    store.learn_range(&"c".into(), HashRange::ALL, op(3));
    assert_eq!(store.range(&"c".into()).proven(), Some(HashRange::ALL));
}

#[test]
fn a_delivery_frees_what_was_fetched_before_it() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    for n in 1..=3 {
        store.take_in(&shard, op(n), answer(&[n], Some("i")));
    }
    assert!(store.batch(&shard, op(3)).is_some());
    assert!(store.batch(&shard, op(1)).is_none());
    assert_eq!(store.len().0, 1);
}

#[test]
fn a_close_frees_everything_and_what_comes_late_is_not_kept() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    store.keep_cursor(&shard, op(1), "i".into());
    store.take_in(&shard, op(2), answer(&[1], Some("i")));
    store.close(&shard, op(5));
    store.take_in(&shard, op(3), answer(&[2], Some("i")));
    store.keep_cursor(&shard, op(4), "i".into());
    assert_eq!(store.len(), (0, 0, 0));
    store.take_in(&shard, op(6), answer(&[2], Some("i")));
    assert_eq!(store.len(), (1, 1, 1), "the next ownership has its own");
    store.forget(op(6));
    assert_eq!(store.len(), (0, 0, 0));
}

#[test]
fn nothing_grows_without_bound() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    for n in 1..1_000 {
        store.take_in(&shard, op(n), answer(&[n], Some("i")));
        store.batch(&shard, op(n));
        store.processed(&shard, op(n));
        store.keep_page(op(n), "page".into());
    }
    assert_eq!(store.len(), (0, CURSORS_PER_SHARD, CURSORS_PER_SHARD));
    assert_eq!(store.page(op(999)).as_deref(), Some("page"));
    assert_eq!(store.page(op(1)), None);
    assert_eq!(store.kept().pages.len(), PAGE_TOKENS);
}

#[test]
fn all_parts_are_handed_over_until_two_answers_agree_on_keys() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    let parts = [(0, Some(0), "ours"), (0, Some(1), "another shard's")];
    let data = crate::kpl::tests::aggregate(&["k"], &["1", &u128::MAX.to_string()], &parts);
    let half = HashRange {
        start: leasehold_engine::shard::HashKey(0),
        end: leasehold_engine::shard::HashKey(u128::MAX / 2),
    };
    let take_in = |n: u64| {
        let mut answer = answer(&[n], Some("next"));
        answer.records[0].data = data.clone();
        let described = store.take_in(&shard, op(n), answer);
        let batch = store.batch(&shard, op(n)).expect("kept");
        (described.range_unproven, batch.records.len())
    };
    assert_eq!(take_in(1), (true, 2));
    store.learn_range(&shard, half, op(2));
    assert_eq!(take_in(3), (true, 2));
    store.learn_range(&shard, half, op(4));
    assert_eq!(take_in(5), (false, 1));
}

#[test]
fn records_out_of_order_are_described_so_and_none_is_left_out() {
    let (store, shard) = (Store::default(), ShardId::from("s"));
    let at = |n: u64| Position::of(n.into());
    for (n, numbers) in [(1, &[5, 6, 9][..]), (2, &[5]), (3, &[])] {
        assert!(!store.take_in(&shard, op(n), answer(numbers, None)).unordered, "{numbers:?}");
    }
    let store = Store::default();
    // The number of a checkpoint, a lower number, a higher number, the number before.
    for (n, numbers) in [(4, [7, 5, 9]), (5, [7, 1, 9]), (6, [7, 99, 9]), (7, [7, 7, 9])] {
        let described = store.take_in(&shard, op(n), answer(&numbers, Some("next")));
        assert!(described.unordered, "{numbers:?}");
        assert_eq!((described.first, described.last), (Some(at(7)), Some(at(9))));
        assert_eq!(store.backlog(&shard, Mono(0)).records, 0, "not known to be of the shard");
        let batch = store.batch(&shard, op(n)).expect("kept");
        for position in numbers {
            assert_eq!(batch.first_after(Some(at(position))), 0);
        }
        assert_eq!((batch.is_last(at(7)), batch.is_last(at(9))), (false, true));
        assert_eq!(batch.ends_highest(), numbers[1] != 99);
    }
    let twice = store.take_in(&shard, op(8), answer(&[9, 7, 9], None));
    let batch = store.batch(&shard, op(8)).expect("kept");
    assert!(twice.unordered);
    assert!(!batch.is_last(at(9)), "which of the two?");
}

#[test]
fn an_answer_of_another_shard_says_nothing_of_the_backlog() {
    let (store, shard) = (Store::default(), ShardId::from("shardId-000000000007"));
    let number = |of: u64| {
        let words = [2 << 56 | (of & 0xf) << 16, 1, of << 4 | 2];
        Position::of(leasehold_engine::position::SequenceNumber::from_words(words))
    };
    let take_in = |n: u64, of: u64| {
        let mut answer = answer(&[1], Some("next"));
        answer.records[0].position = number(of);
        store.take_in(&shard, op(n), answer);
        store.backlog(&shard, Mono(0))
    };
    assert_eq!(take_in(1, 8), Backlog::default());
    assert_eq!(take_in(2, 7).records, 1);
}
