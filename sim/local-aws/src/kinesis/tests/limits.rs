use super::*;

const MIB: usize = 1 << 20;

fn limited() -> Kinesis {
    with_settings(KinesisConfig { limits: true, ..KinesisConfig::instant() }, 1)
}

#[test]
fn a_shard_is_read_five_times_a_second() {
    let mut kinesis = limited();
    let start = iterator(&mut kinesis, T0, 0, IteratorStart::TrimHorizon);
    let mut attempt = |now| kinesis.get_records(now, &start, None).map(|_| ());
    for i in 0..5 {
        attempt(T0 + i * 100).unwrap();
    }
    let error = attempt(T0 + 999).unwrap_err();
    assert_eq!(error.code, "ProvisionedThroughputExceededException");
    assert!(error.message.starts_with("Rate exceeded for shard shardId-000000000000 in stream s"), "{error}");
    attempt(T0 + 1000).unwrap();
}

#[test]
fn ten_mebibytes_read_at_once_block_the_shard_for_five_seconds() {
    let mut kinesis = limited();
    for i in 0..10 {
        let data = vec![0; MIB - 1].into();
        let record = NewRecord { data, partition_key: "k".into(), explicit_hash_key: None };
        kinesis.put_record(T0 + i * 1000, "s", record, None).unwrap();
    }
    let now = T0 + 20_000;
    let page = read(&mut kinesis, now, 0, IteratorStart::TrimHorizon);
    assert_eq!(page.records.len(), 10);
    let next = page.next.unwrap();
    assert_eq!(code(kinesis.get_records(now + 4999, &next, None)), "ProvisionedThroughputExceededException");
    assert!(kinesis.get_records(now + 5000, &next, None).is_ok());
}

#[test]
fn a_shard_takes_a_mebibyte_and_a_thousand_records_a_second() {
    let mut kinesis = limited();
    let records = |n: usize| (0..n).map(|_| at_hash(0)).collect::<Vec<_>>();
    for _ in 0..2 {
        let outcomes = kinesis.put_records(T0, "s", records(500)).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.is_ok()));
    }
    let error = kinesis.put_record(T0 + 500, "s", at_hash(0), None).unwrap_err();
    assert_eq!(error.code, "ProvisionedThroughputExceededException");
    let half = || NewRecord { data: vec![0; MIB / 2].into(), ..at_hash(0) };
    let outcomes = kinesis.put_records(T0 + 1000, "s", vec![half(), half(), at_hash(0)]).unwrap();
    let accepted: Vec<bool> = outcomes.iter().map(|outcome| outcome.is_ok()).collect();
    assert_eq!(accepted, [true, false, true], "each record for itself");
}

#[test]
fn requests_have_rates() {
    let mut kinesis = limited();
    let listed = (0..30).filter(|_| kinesis.describe_stream_summary(T0, "s").is_ok()).count();
    assert_eq!(listed, 20);
    assert_eq!(code(kinesis.describe_stream_summary(T0, "s")), "LimitExceededException");
    assert!(kinesis.describe_stream_summary(T0 + 1000, "s").is_ok());
}

#[test]
fn an_account_has_so_many_shards() {
    let mut kinesis = with_settings(KinesisConfig { shard_limit: 4, ..KinesisConfig::instant() }, 3);
    let more = kinesis.create_stream(T0, &CreateStream::provisioned("t", 2));
    assert_eq!(code(more), "LimitExceededException");
    kinesis.split_shard(T0, "s", ShardIndex(0), 9).unwrap();
    assert_eq!(code(kinesis.split_shard(T0, "s", ShardIndex(1), u128::MAX / 2)), "LimitExceededException");
    assert_eq!(code(kinesis.update_shard_count(T0, "s", 5)), "LimitExceededException");
    let limits = kinesis.describe_limits(T0).unwrap();
    assert_eq!((limits.open_shards, limits.shard_limit), (4, 4));
}

#[test]
fn five_streams_are_created_at_once() {
    let mut kinesis = Kinesis::new(KinesisConfig { create_ms: 60_000, ..KinesisConfig::default() });
    for i in 0..5 {
        kinesis.create_stream(T0 + i * 1000, &CreateStream::provisioned(&format!("s{i}"), 1)).unwrap();
    }
    let sixth = CreateStream::provisioned("s5", 1);
    assert_eq!(code(kinesis.create_stream(T0 + 10_000, &sixth)), "LimitExceededException");
    assert!(kinesis.create_stream(T0 + 60_000, &sixth).is_ok());
}
