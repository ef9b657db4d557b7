use super::*;

const HALF: u128 = 1 << 127;

#[test]
fn a_split_ends_the_parent_and_its_children_go_on() {
    let (mut kinesis, _) = with_stream(1);
    let before = put(&mut kinesis, T0, 0);
    let reader = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    kinesis.split_shard(T0 + 10, "s", ShardIndex(0), HALF).unwrap();
    let (low, high) = (put(&mut kinesis, T0 + 20, HALF - 1), put(&mut kinesis, T0 + 20, HALF));
    assert_eq!((low.shard, high.shard), (ShardIndex(1), ShardIndex(2)));

    let page = kinesis.get_records(T0 + 30, &reader, None).unwrap();
    assert_eq!(numbers(&page), [before.sequence_number]);
    assert!(page.child_shards.is_empty(), "the end has an answer of its own");
    let end = kinesis.get_records(T0 + 30, &page.next.unwrap(), None).unwrap();
    assert_eq!((end.records.len(), end.next, end.millis_behind_latest), (0, None, 20));
    let children: Vec<_> =
        end.child_shards.iter().map(|child| (child.shard.0, child.parents.clone())).collect();
    assert_eq!(children, [(1, vec![ShardIndex(0)]), (2, vec![ShardIndex(0)])]);
    assert_eq!(end.child_shards[1].hash_range, HashRange { start: HALF, end: u128::MAX });

    let parent_end =
        kinesis.stream("s").unwrap().shard(ShardIndex(0)).unwrap().info().ending_sequence.unwrap();
    assert!(before.sequence_number < parent_end && parent_end < low.sequence_number);
    assert_eq!(numbers(&read(&mut kinesis, T0 + 30, 1, IteratorStart::TrimHorizon)), [low.sequence_number]);
}

#[test]
fn the_end_may_come_with_the_last_records() {
    let config = KinesisConfig { end_of_shard: EndOfShard::WithLastRecords, ..KinesisConfig::instant() };
    let mut kinesis = with_settings(config, 1);
    put(&mut kinesis, T0, 0);
    put(&mut kinesis, T0, 0);
    kinesis.split_shard(T0, "s", ShardIndex(0), HALF).unwrap();
    let start = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    let page = kinesis.get_records(T0, &start, Some(1)).unwrap();
    assert!(page.child_shards.is_empty());
    let page = kinesis.get_records(T0, &page.next.unwrap(), Some(1)).unwrap();
    assert_eq!((page.records.len(), page.next, page.child_shards.len()), (1, None, 2));
}

#[test]
fn the_end_of_a_merged_shard_names_both_parents() {
    let (mut kinesis, _) = with_stream(2);
    kinesis.merge_shards(T0 + 10, "s", ShardIndex(0), ShardIndex(1)).unwrap();
    for parent in [0, 1] {
        for start in [IteratorStart::TrimHorizon, IteratorStart::Latest] {
            let end = read(&mut kinesis, T0 + 20, parent, start);
            assert_eq!(end.next, None);
            assert_eq!(end.child_shards.len(), 1);
            assert_eq!(end.child_shards[0].parents, [ShardIndex(0), ShardIndex(1)]);
            assert_eq!(end.child_shards[0].hash_range, HashRange { start: 0, end: u128::MAX });
        }
    }
    let child = kinesis.stream("s").unwrap().shard(ShardIndex(2)).unwrap().info();
    assert_eq!((child.parent, child.adjacent_parent), (Some(ShardIndex(0)), Some(ShardIndex(1))));
}

#[test]
fn a_shard_beyond_splitting_or_merging_is_refused() {
    let (mut kinesis, _) = with_stream(4);
    let width = u128::MAX / 4 + 1;
    for at in [0, 1, width - 1, width, u128::MAX] {
        assert_eq!(code(kinesis.split_shard(T0, "s", ShardIndex(0), at)), "InvalidArgumentException", "{at}");
    }
    assert_eq!(code(kinesis.split_shard(T0, "s", ShardIndex(9), 5)), "ResourceNotFoundException");
    for (left, right) in [(0, 2), (1, 0), (0, 0), (3, 0)] {
        let merge = kinesis.merge_shards(T0, "s", ShardIndex(left), ShardIndex(right));
        assert_eq!(code(merge), "InvalidArgumentException", "{left} {right}");
    }
    let absent = kinesis.merge_shards(T0, "s", ShardIndex(0), ShardIndex(9));
    assert_eq!(code(absent), "ResourceNotFoundException");
    kinesis.split_shard(T0, "s", ShardIndex(0), 2).unwrap();
    assert_eq!(code(kinesis.split_shard(T0, "s", ShardIndex(0), 5)), "InvalidArgumentException");
    assert_eq!(code(kinesis.merge_shards(T0, "s", ShardIndex(0), ShardIndex(1))), "InvalidArgumentException");
}

#[test]
fn a_change_takes_its_time_and_takes_effect_at_its_own_moment() {
    let mut kinesis = with_settings(KinesisConfig { limits: false, ..KinesisConfig::default() }, 1);
    let status = |kinesis: &mut Kinesis, now| kinesis.describe_stream_summary(now, "s").unwrap().status;
    assert_eq!(status(&mut kinesis, T0 + 499), StreamStatus::Creating);
    assert_eq!(code(kinesis.put_record(T0 + 499, "s", at_hash(0), None)), "ResourceNotFoundException");
    assert_eq!(code(kinesis.list_shards(T0 + 499, &of_s())), "ResourceInUseException");
    let start = kinesis.get_shard_iterator(T0 + 499, "s", ShardIndex(0), IteratorStart::Latest);
    assert_eq!(code(start), "ResourceNotFoundException");
    assert_eq!(status(&mut kinesis, T0 + 500), StreamStatus::Active);

    kinesis.split_shard(T0 + 1000, "s", ShardIndex(0), HALF).unwrap();
    assert_eq!(kinesis.next_change_ms(), Some(T0 + 1500));
    assert_eq!(status(&mut kinesis, T0 + 1499), StreamStatus::Updating);
    assert_eq!(code(kinesis.split_shard(T0 + 1499, "s", ShardIndex(0), HALF)), "ResourceInUseException");
    assert_eq!(put(&mut kinesis, T0 + 1499, 0).shard, ShardIndex(0));
    assert_eq!(put(&mut kinesis, T0 + 9000, 0).shard, ShardIndex(1));
    let parent = kinesis.stream("s").unwrap().shard(ShardIndex(0)).unwrap();
    assert_eq!(parent.closed_ms(), Some(T0 + 1500));

    kinesis.delete_stream(T0 + 10_000, "s", false).unwrap();
    assert_eq!(status(&mut kinesis, T0 + 10_499), StreamStatus::Deleting);
    let taken = kinesis.create_stream(T0 + 10_499, &CreateStream::provisioned("s", 1));
    assert_eq!(code(taken), "ResourceInUseException");
    assert_eq!(code(kinesis.describe_stream_summary(T0 + 10_500, "s")), "ResourceNotFoundException");
    assert!(kinesis.create_stream(T0 + 10_500, &CreateStream::provisioned("s", 1)).is_ok());
}

#[test]
fn scaling_keeps_the_lineage_and_ends_with_equal_shards() {
    for (from, to) in [(1, 2), (2, 3), (3, 6), (4, 7), (6, 3), (7, 4), (10, 9), (5, 10), (100, 51)] {
        let (mut kinesis, _) = with_stream(from);
        let update = kinesis.update_shard_count(T0, "s", to).unwrap();
        assert_eq!((update.current, update.target), (from, to));
        kinesis.advance(T0 + 1000);
        let stream = kinesis.stream("s").unwrap();
        assert_eq!(stream.status(), StreamStatus::Active);
        let open: Vec<HashRange> = stream.shards().filter(|s| s.is_open()).map(|s| s.hash_range()).collect();
        assert_eq!(open.len(), to as usize, "{from} to {to}");
        let ideal = u128::MAX / u128::from(to);
        for range in open {
            assert!((range.end - range.start).abs_diff(ideal) < 1000, "{from} to {to}: {range:?}");
        }
        for shard in stream.shards().filter(|shard| shard.index().0 >= from) {
            assert!(shard.parents().count() > 0);
        }
    }
}

#[test]
fn scaling_has_its_bounds() {
    let (mut kinesis, _) = with_stream(4);
    for (target, expected) in [
        (0, "InvalidArgumentException"),
        (4, "InvalidArgumentException"),
        (9, "LimitExceededException"),
        (1, "LimitExceededException"),
    ] {
        assert_eq!(code(kinesis.update_shard_count(T0, "s", target)), expected, "{target}");
    }
    let mut kinesis = with_settings(KinesisConfig::default(), 4);
    for i in 0..10 {
        kinesis.update_shard_count(T0 + HOUR * (i + 1), "s", if i % 2 == 0 { 5 } else { 4 }).unwrap();
    }
    assert_eq!(code(kinesis.update_shard_count(T0 + HOUR * 12, "s", 5)), "LimitExceededException");
    assert!(kinesis.update_shard_count(T0 + HOUR * 25, "s", 5).is_ok());
}

#[test]
fn on_demand_streams_are_not_resharded_by_hand() {
    let mut kinesis = instant();
    let create =
        CreateStream { shards: None, mode: StreamMode::OnDemand, ..CreateStream::provisioned("s", 1) };
    kinesis.create_stream(T0, &create).unwrap();
    assert_eq!(kinesis.describe_stream_summary(T0, "s").unwrap().open_shards, 4);
    assert_eq!(code(kinesis.split_shard(T0, "s", ShardIndex(0), 9)), "ValidationException");
    assert_eq!(code(kinesis.merge_shards(T0, "s", ShardIndex(0), ShardIndex(1))), "ValidationException");
    assert_eq!(code(kinesis.update_shard_count(T0, "s", 8)), "ValidationException");
    kinesis.update_stream_mode(T0, "s", StreamMode::Provisioned).unwrap();
    assert!(kinesis.update_shard_count(T0, "s", 8).is_ok());
}

#[test]
fn closed_shards_vanish_when_their_records_have() {
    let (mut kinesis, _) = with_stream(1);
    put(&mut kinesis, T0, 0);
    kinesis.split_shard(T0 + HOUR, "s", ShardIndex(0), HALF).unwrap();
    let list = |kinesis: &mut Kinesis, now| indices(&kinesis.list_shards(now, &of_s()).unwrap().shards);
    let last = T0 + 25 * HOUR - 1;
    assert_eq!(list(&mut kinesis, last), [0, 1, 2]);
    let end = read(&mut kinesis, last, 0, IteratorStart::TrimHorizon);
    assert!(end.records.is_empty() && end.child_shards.len() == 2, "its record is too old by now");
    let late = iterator(&mut kinesis, last, 0, IteratorStart::TrimHorizon);
    assert_eq!(list(&mut kinesis, last + 1), [1, 2]);
    assert_eq!(code(kinesis.get_records(last + 1, &late, None)), "ResourceNotFoundException");
    let again = kinesis.get_shard_iterator(last + 1, "s", ShardIndex(0), IteratorStart::TrimHorizon);
    assert_eq!(code(again), "ResourceNotFoundException");
}
