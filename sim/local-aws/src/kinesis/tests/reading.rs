use super::*;

#[test]
fn every_kind_of_iterator_begins_where_it_says() {
    let (mut kinesis, _) = with_stream(1);
    let written: Vec<SequenceNumber> =
        (0..5).map(|i| put(&mut kinesis, T0 + i * 1000, 0).sequence_number).collect();
    let now = T0 + 10_000;
    let mut from = |start| numbers(&read(&mut kinesis, now, 0, start));
    assert_eq!(from(IteratorStart::TrimHorizon), written);
    assert_eq!(from(IteratorStart::Latest), []);
    assert_eq!(from(IteratorStart::AtSequence(written[2])), written[2..]);
    assert_eq!(from(IteratorStart::AfterSequence(written[2])), written[3..]);
    assert_eq!(from(IteratorStart::AtTimestamp(T0 + 2000)), written[2..]);
    assert_eq!(from(IteratorStart::AtTimestamp(T0 + 2001)), written[3..]);
    assert_eq!(from(IteratorStart::AtTimestamp(0)), written);
    assert_eq!(from(IteratorStart::AtTimestamp(now)), []);
}

#[test]
fn latest_reads_what_comes_later() {
    let (mut kinesis, _) = with_stream(1);
    put(&mut kinesis, T0, 0);
    let latest = iterator(&mut kinesis, T0, 0, IteratorStart::Latest);
    let page = kinesis.get_records(T0 + 1, &latest, None).unwrap();
    assert!(page.records.is_empty());
    let written = put(&mut kinesis, T0 + 2, 0);
    let page = kinesis.get_records(T0 + 3, &page.next.unwrap(), None).unwrap();
    assert_eq!(numbers(&page), [written.sequence_number]);
}

#[test]
fn a_page_ends_at_its_limit_and_tells_how_far_behind_it_is() {
    let (mut kinesis, _) = with_stream(1);
    let written: Vec<SequenceNumber> =
        (0..5).map(|i| put(&mut kinesis, T0 + i * 1000, 0).sequence_number).collect();
    let start = iterator(&mut kinesis, T0 + 5000, 0, IteratorStart::TrimHorizon);
    let first = kinesis.get_records(T0 + 5000, &start, Some(2)).unwrap();
    assert_eq!(numbers(&first), written[..2]);
    assert_eq!(first.millis_behind_latest, 4000);
    let rest = kinesis.get_records(T0 + 5000, &first.next.unwrap(), Some(10_000)).unwrap();
    assert_eq!(numbers(&rest), written[2..]);
    assert_eq!(rest.millis_behind_latest, 0);
    assert!(rest.child_shards.is_empty());
    for limit in [0, 10_001, u32::MAX] {
        assert_eq!(code(kinesis.get_records(T0 + 5000, &start, Some(limit))), "ValidationException");
    }
}

#[test]
fn an_answer_holds_ten_mebibytes_but_always_one_record() {
    let mut kinesis = instant();
    let create = CreateStream { max_record_bytes: 10 << 20, ..CreateStream::provisioned("s", 1) };
    kinesis.create_stream(T0, &create).unwrap();
    let mut write = |size: usize| {
        let record =
            NewRecord { data: vec![0; size].into(), partition_key: "k".into(), explicit_hash_key: None };
        kinesis.put_record(T0, "s", record, None).unwrap();
    };
    write((10 << 20) - 1);
    for _ in 0..11 {
        write((1 << 20) - 1);
    }
    let start = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    let mut sizes = Vec::new();
    let mut next = Some(start);
    while let Some(at) = next {
        let page = kinesis.get_records(T0, &at, None).unwrap();
        if page.records.is_empty() {
            break;
        }
        sizes.push(page.records.len());
        next = page.next;
    }
    assert_eq!(sizes, [1, 10, 1]);
}

#[test]
fn iterators_live_five_minutes() {
    let (mut kinesis, _) = with_stream(1);
    let start = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    assert!(kinesis.get_records(T0 + 300_000, &start, None).is_ok());
    let error = kinesis.get_records(T0 + 300_001, &start, None).unwrap_err();
    assert_eq!(error.code, "ExpiredIteratorException");
    assert!(error.message.contains("tolerated delay of 300000 milliseconds"), "{error}");
}

#[test]
fn numbers_of_other_shards_and_streams_are_refused() {
    let (mut kinesis, _) = with_stream(2);
    let own = put(&mut kinesis, T0, 0).sequence_number;
    let other = put(&mut kinesis, T0, u128::MAX).sequence_number;
    kinesis.create_stream(T0 + 60_000, &CreateStream::provisioned("later", 1)).unwrap();
    let foreign = kinesis.put_record(T0 + 60_000, "later", at_hash(0), None).unwrap().sequence_number;
    let mut ask = |number| {
        kinesis.get_shard_iterator(T0 + 60_000, "s", ShardIndex(0), IteratorStart::AfterSequence(number))
    };
    assert!(ask(own).is_ok());
    assert!(ask(other).unwrap_err().message.contains("encodes shardId-000000000001"));
    assert!(ask(foreign).unwrap_err().message.contains("did not come from this stream"));
    assert_eq!(code(ask("1".parse().unwrap())), "InvalidArgumentException");
}

#[test]
fn the_bounds_of_a_shard_are_numbers_to_read_from() {
    let (mut kinesis, _) = with_stream(1);
    let written = put(&mut kinesis, T0, 0).sequence_number;
    kinesis.split_shard(T0 + 10, "s", ShardIndex(0), 1 << 127).unwrap();
    let info = kinesis.stream("s").unwrap().shard(ShardIndex(0)).unwrap().info();
    let ending = info.ending_sequence.unwrap();
    assert!(info.starting_sequence < written && written < ending);
    for start in [
        IteratorStart::AtSequence(info.starting_sequence),
        IteratorStart::AfterSequence(info.starting_sequence),
    ] {
        assert_eq!(numbers(&read(&mut kinesis, T0 + 20, 0, start)), [written]);
    }
    let page = read(&mut kinesis, T0 + 20, 0, IteratorStart::AtSequence(ending));
    assert!(page.records.is_empty() && page.next.is_none() && page.child_shards.len() == 2);
}

#[test]
fn the_future_is_refused() {
    let (mut kinesis, _) = with_stream(1);
    let ask = kinesis.get_shard_iterator(T0, "s", ShardIndex(0), IteratorStart::AtTimestamp(T0 + 1));
    assert_eq!(code(ask), "InvalidArgumentException");
}

#[test]
fn trimmed_records_are_passed_over() {
    let (mut kinesis, id) = with_stream(1);
    let written: Vec<SequenceNumber> =
        (0..4).map(|i| put(&mut kinesis, T0 + i * HOUR, 0).sequence_number).collect();
    let early = T0 + 3 * HOUR;
    let before = iterator(&mut kinesis, early, 0, IteratorStart::TrimHorizon);
    kinesis.trim(id, ShardIndex(0), 2);
    assert_eq!(numbers(&kinesis.get_records(early, &before, None).unwrap()), written[1..]);
    let later = T0 + 25 * HOUR + HOUR / 2;
    assert_eq!(numbers(&read(&mut kinesis, later, 0, IteratorStart::TrimHorizon)), written[2..]);
    assert_eq!(numbers(&read(&mut kinesis, later, 0, IteratorStart::AtSequence(written[0]))), written[2..]);
    assert_eq!(numbers(&read(&mut kinesis, T0 + 99 * HOUR, 0, IteratorStart::TrimHorizon)), []);
}

#[test]
fn a_longer_retention_brings_nothing_back() {
    let (mut kinesis, _) = with_stream(1);
    let written: Vec<SequenceNumber> =
        (0..3).map(|i| put(&mut kinesis, T0 + i * HOUR, 0).sequence_number).collect();
    let now = T0 + 25 * HOUR;
    kinesis.increase_retention(now, "s", 48).unwrap();
    assert_eq!(numbers(&read(&mut kinesis, now, 0, IteratorStart::TrimHorizon)), written[1..]);
    assert_eq!(numbers(&read(&mut kinesis, T0 + 49 * HOUR, 0, IteratorStart::TrimHorizon)), written[1..]);
    kinesis.decrease_retention(T0 + 49 * HOUR, "s", 24).unwrap();
    kinesis.increase_retention(T0 + 49 * HOUR, "s", 48).unwrap();
    assert_eq!(numbers(&read(&mut kinesis, T0 + 49 * HOUR, 0, IteratorStart::TrimHorizon)), []);
    assert_eq!(code(kinesis.increase_retention(now, "s", 24)), "InvalidArgumentException");
    assert_eq!(code(kinesis.decrease_retention(now, "s", 72)), "InvalidArgumentException");
    assert_eq!(code(kinesis.decrease_retention(now, "s", 23)), "InvalidArgumentException");
    assert_eq!(code(kinesis.increase_retention(now, "s", 8761)), "InvalidArgumentException");
}

#[test]
fn a_clone_lives_its_own_life() {
    let (mut kinesis, _) = with_stream(1);
    put(&mut kinesis, T0, 0);
    let mut other = kinesis.clone();
    put(&mut other, T0, 0);
    assert_eq!(read(&mut kinesis, T0, 0, IteratorStart::TrimHorizon).records.len(), 1);
    assert_eq!(read(&mut other, T0, 0, IteratorStart::TrimHorizon).records.len(), 2);
}

#[test]
fn iterators_of_a_deleted_stream_do_not_read_its_successor() {
    let (mut kinesis, first) = with_stream(1);
    put(&mut kinesis, T0, 0);
    let old = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    let token = kinesis.iterator_token(&old);
    kinesis.delete_stream(T0 + 1000, "s", false).unwrap();
    assert_eq!(code(kinesis.get_records(T0 + 1000, &old, None)), "ResourceNotFoundException");
    let second = kinesis.create_stream(T0 + 2000, &CreateStream::provisioned("s", 1)).unwrap();
    assert_ne!(first, second);
    assert_eq!(kinesis.stream("s").unwrap().created_ms(), T0 + 2000);
    assert_eq!(code(kinesis.get_records(T0 + 2000, &old, None)), "ResourceNotFoundException");
    assert_eq!(code(kinesis.iterator_from_token(&token)), "ResourceNotFoundException");
}
