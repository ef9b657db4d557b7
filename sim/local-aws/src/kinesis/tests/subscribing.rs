use super::*;

const ARN: &str = "arn:aws:kinesis:us-east-1:000000000000:stream/s";
const SHARD: ShardIndex = ShardIndex(0);

/// A stream of one shard with an active consumer, and the consumer's ARN.
fn with_consumer(config: KinesisConfig) -> (Kinesis, String) {
    let mut kinesis = with_settings(config, 1);
    let consumer = kinesis.register_consumer(T0, ARN, "c", BTreeMap::new()).unwrap();
    (kinesis, consumer.arn)
}

fn instantly() -> (Kinesis, String) {
    with_consumer(KinesisConfig::instant())
}

fn subscribe(kinesis: &mut Kinesis, now_ms: i64, arn: &str, start: IteratorStart) -> Subscription {
    kinesis.subscribe_to_shard(now_ms, arn, SHARD, start).unwrap()
}

fn event(kinesis: &mut Kinesis, now_ms: i64, subscription: &mut Subscription) -> SubscribedEvent {
    match kinesis.push(now_ms, subscription) {
        Push::Event(event) => event,
        other => panic!("expected an event, found {other:?}"),
    }
}

/// The numbers of all events that are due.
fn drain(kinesis: &mut Kinesis, now_ms: i64, subscription: &mut Subscription) -> Vec<SequenceNumber> {
    let mut numbers = Vec::new();
    while let Push::Event(event) = kinesis.push(now_ms, subscription) {
        numbers.extend(event.records.iter().map(|record| record.sequence_number));
    }
    numbers
}

#[test]
fn records_are_pushed_and_an_idle_shard_says_that_it_lives() {
    let (mut kinesis, arn) = instantly();
    let mut subscription = subscribe(&mut kinesis, T0, &arn, IteratorStart::Latest);
    let first = event(&mut kinesis, T0, &mut subscription);
    assert_eq!((first.records.len(), first.millis_behind_latest), (0, 0));
    assert_eq!(kinesis.push(T0 + 1, &mut subscription), Push::WaitUntil(T0 + 5_000));
    let written = put(&mut kinesis, T0 + 2, 7);
    let second = event(&mut kinesis, T0 + 2, &mut subscription);
    assert_eq!(second.records[0].sequence_number, written.sequence_number);
    assert_eq!(second.continuation, Some(written.sequence_number));
    assert_eq!(kinesis.push(T0 + 3, &mut subscription), Push::WaitUntil(T0 + 5_002));
    let beat = event(&mut kinesis, T0 + 5_002, &mut subscription);
    assert_eq!((beat.records.len(), beat.continuation), (0, Some(written.sequence_number)));
}

#[test]
fn an_event_has_a_mebibyte_and_a_subscription_two_a_second() {
    let config = KinesisConfig { limits: true, ..KinesisConfig::instant() };
    let (mut kinesis, arn) = with_consumer(config);
    let large = vec![b'x'; 700 << 10];
    for n in 0..4 {
        kinesis.put_record(T0 + n * 1_000, "s", record("k", &large), None).unwrap();
    }
    let now = T0 + 10_000;
    let mut subscription = subscribe(&mut kinesis, now, &arn, IteratorStart::TrimHorizon);
    let sizes: Vec<usize> =
        (0..3).map(|_| event(&mut kinesis, now, &mut subscription).records.len()).collect();
    assert_eq!(sizes, [1, 1, 1]);
    let Push::WaitUntil(until) = kinesis.push(now, &mut subscription) else {
        panic!("three records are more than a second's share");
    };
    assert_eq!(until, now + 2_000);
    assert_eq!(event(&mut kinesis, until, &mut subscription).records.len(), 1);
}

#[test]
fn every_continuation_neither_loses_nor_repeats() {
    let (mut kinesis, arn) = instantly();
    let mut written = Vec::new();
    let mut start = IteratorStart::TrimHorizon;
    let mut read = Vec::new();
    for round in 0..6 {
        let now = T0 + round * 10_000;
        let mut subscription = subscribe(&mut kinesis, now, &arn, start);
        // Before the first record, in the midst of records, and after a rest.
        if round % 2 == 1 {
            written.extend((0..3).map(|_| put(&mut kinesis, now, 7).sequence_number));
        }
        let event = event(&mut kinesis, now, &mut subscription);
        read.extend(event.records.iter().map(|record| record.sequence_number));
        start = IteratorStart::AfterSequence(event.continuation.unwrap());
    }
    assert_eq!(read, written);
    kinesis.trim(kinesis.stream("s").unwrap().id(), SHARD, u64::MAX);
    let mut subscription = subscribe(&mut kinesis, T0 + 60_000, &arn, IteratorStart::TrimHorizon);
    let continuation = event(&mut kinesis, T0 + 60_000, &mut subscription).continuation.unwrap();
    let later = put(&mut kinesis, T0 + 60_000, 7).sequence_number;
    let start = IteratorStart::AfterSequence(continuation);
    let mut subscription = subscribe(&mut kinesis, T0 + 70_000, &arn, start);
    assert_eq!(drain(&mut kinesis, T0 + 70_000, &mut subscription), [later], "all earlier ones are trimmed");
}

#[test]
fn a_subscription_ends_after_five_minutes_without_a_word() {
    let (mut kinesis, arn) = instantly();
    let mut subscription = subscribe(&mut kinesis, T0, &arn, IteratorStart::Latest);
    event(&mut kinesis, T0 + 299_999, &mut subscription);
    assert_eq!(kinesis.push(T0 + 299_999, &mut subscription), Push::WaitUntil(T0 + 300_000));
    assert_eq!(kinesis.push(T0 + 300_000, &mut subscription), Push::Over);
    subscribe(&mut kinesis, T0 + 300_000, &arn, IteratorStart::Latest);
}

#[test]
fn the_end_of_a_shard_names_its_children_once() {
    let (mut kinesis, arn) = instantly();
    put(&mut kinesis, T0, 7);
    let mut subscription = subscribe(&mut kinesis, T0, &arn, IteratorStart::TrimHorizon);
    drain(&mut kinesis, T0, &mut subscription);
    kinesis.split_shard(T0 + 10, "s", SHARD, 1 << 127).unwrap();
    let end = event(&mut kinesis, T0 + 20, &mut subscription);
    assert_eq!((end.continuation, end.child_shards.len()), (None, 2));
    assert_eq!(end.child_shards[0].parents, [SHARD]);
    assert_eq!(kinesis.push(T0 + 21, &mut subscription), Push::Over);
    let mut drained = subscribe(&mut kinesis, T0 + 6_000, &arn, IteratorStart::Latest);
    assert_eq!(event(&mut kinesis, T0 + 6_000, &mut drained).child_shards, end.child_shards);
}

#[test]
fn a_later_call_takes_the_place_of_an_earlier_one() {
    let config = KinesisConfig { limits: true, ..KinesisConfig::instant() };
    let (mut kinesis, arn) = with_consumer(config);
    let mut former = subscribe(&mut kinesis, T0, &arn, IteratorStart::Latest);
    event(&mut kinesis, T0, &mut former);
    let hasty = kinesis.subscribe_to_shard(T0 + 4_999, &arn, SHARD, IteratorStart::Latest);
    assert_eq!(code(hasty), "ResourceInUseException");
    assert_eq!(kinesis.push(T0 + 4_999, &mut former), Push::WaitUntil(T0 + 5_000));
    let mut later = subscribe(&mut kinesis, T0 + 5_000, &arn, IteratorStart::Latest);
    let Push::Failed(error) = kinesis.push(T0 + 5_001, &mut former) else {
        panic!("the former one has lost its place");
    };
    assert_eq!(error.code, "ResourceInUseException");
    assert_eq!(kinesis.push(T0 + 5_002, &mut former), Push::Over);
    event(&mut kinesis, T0 + 5_002, &mut later);
}

#[test]
fn two_consumers_do_not_disturb_each_other() {
    let (mut kinesis, one) = instantly();
    let two = kinesis.register_consumer(T0, ARN, "d", BTreeMap::new()).unwrap().arn;
    let written = put(&mut kinesis, T0, 7).sequence_number;
    for arn in [one, two] {
        let mut subscription = subscribe(&mut kinesis, T0, &arn, IteratorStart::TrimHorizon);
        assert_eq!(drain(&mut kinesis, T0, &mut subscription), [written]);
    }
}

#[test]
fn a_consumer_that_is_not_active_has_no_subscriptions() {
    let mut kinesis = with_settings(KinesisConfig { consumer_ms: 500, ..KinesisConfig::instant() }, 1);
    let arn = kinesis.register_consumer(T0 + 500, ARN, "c", BTreeMap::new()).unwrap().arn;
    let early = kinesis.subscribe_to_shard(T0 + 501, &arn, SHARD, IteratorStart::Latest);
    let error = early.unwrap_err();
    assert_eq!(error.code, "ResourceInUseException");
    assert!(error.message.ends_with("is not in ACTIVE status."), "{error}");
    let mut subscription = subscribe(&mut kinesis, T0 + 1_000, &arn, IteratorStart::Latest);
    kinesis.deregister_consumer(T0 + 1_100, Some(&arn), None).unwrap();
    let failed = |push| matches!(push, Push::Failed(error) if error.code == "ResourceNotFoundException");
    assert!(failed(kinesis.push(T0 + 1_101, &mut subscription)));
    let anew = kinesis.register_consumer(T0 + 2_000, ARN, "c", BTreeMap::new()).unwrap().arn;
    assert_ne!(anew, arn);
    let mut subscription = subscribe(&mut kinesis, T0 + 3_000, &anew, IteratorStart::Latest);
    kinesis.delete_stream(T0 + 3_001, "s", true).unwrap();
    assert!(failed(kinesis.push(T0 + 3_002, &mut subscription)));
}

#[test]
fn requests_are_checked_as_those_for_iterators() {
    let (mut kinesis, arn) = instantly();
    let mut call = |body: Value| kinesis.call_subscribe(T0, body);
    let at = |place: Value| json!({"ConsumerARN": arn, "ShardId": "shardId-000000000000", "StartingPosition": place});
    assert_eq!(code(call(json!({"ConsumerARN": arn}))), "ValidationException");
    assert_eq!(code(call(at(json!({})))), "ValidationException");
    assert_eq!(code(call(at(json!({"Type": "AT_SEQUENCE_NUMBER"})))), "InvalidArgumentException");
    assert_eq!(
        code(call(at(json!({"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "0"})))),
        "InvalidArgumentException"
    );
    let mut dry = at(json!({"Type": "LATEST"}));
    dry["DryRun"] = json!(true);
    assert_eq!(code(call(dry)), "DryRunOperationException");
    let mut subscription = call(at(json!({"Type": "LATEST"}))).unwrap();
    let first = event(&mut kinesis, T0, &mut subscription).to_json();
    assert_eq!(first["Records"], json!([]));
    assert!(first["ContinuationSequenceNumber"].is_string() && first.get("ChildShards").is_none(), "{first}");
}
