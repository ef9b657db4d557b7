use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// An event in a stream's life.
#[derive(Clone, Debug)]
enum Event {
    Put(u128),
    Split(usize, u128),
    Merge(usize),
    Scale(u32),
    Wait(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => any::<u128>().prop_map(Event::Put),
        2 => (any::<usize>(), any::<u128>()).prop_map(|(shard, at)| Event::Split(shard, at)),
        2 => any::<usize>().prop_map(Event::Merge),
        1 => (1u32..9).prop_map(Event::Scale),
        2 => (0i64..1500).prop_map(Event::Wait),
    ]
}

struct World {
    kinesis: Kinesis,
    now: i64,
    written: Vec<SequenceNumber>,
}

impl World {
    fn new(delay: i64) -> Self {
        let config = KinesisConfig { update_ms: delay, ..KinesisConfig::instant() };
        let kinesis = with_settings(config, 2);
        World { kinesis, now: T0, written: Vec::new() }
    }

    fn open(&self) -> Vec<(ShardIndex, HashRange)> {
        let stream = self.kinesis.stream("s").unwrap();
        let mut open: Vec<_> =
            stream.shards().filter(|s| s.is_open()).map(|s| (s.index(), s.hash_range())).collect();
        open.sort_by_key(|(_, range)| range.start);
        open
    }

    /// Refusals are part of life: a busy stream, a shard too narrow.
    fn apply(&mut self, event: &Event) {
        let open = self.open();
        match *event {
            Event::Put(hash_key) => {
                self.written.push(put(&mut self.kinesis, self.now, hash_key).sequence_number);
            }
            Event::Split(pick, at) => {
                let (shard, range) = open[pick % open.len()];
                let at = range.start + at % (range.end - range.start).max(1);
                let _ = self.kinesis.split_shard(self.now, "s", shard, at);
            }
            Event::Merge(pick) if open.len() > 1 => {
                let left = pick % (open.len() - 1);
                let _ = self.kinesis.merge_shards(self.now, "s", open[left].0, open[left + 1].0);
            }
            Event::Merge(_) => {}
            Event::Scale(target) => {
                let _ = self.kinesis.update_shard_count(self.now, "s", target);
            }
            Event::Wait(ms) => {
                self.now += ms;
                self.kinesis.advance(self.now);
            }
        }
    }

    fn check_partition(&self) {
        let open = self.open();
        assert_eq!(open[0].1.start, 0);
        assert_eq!(open[open.len() - 1].1.end, u128::MAX);
        assert!(open.windows(2).all(|pair| pair[0].1.end + 1 == pair[1].1.start), "{open:?}");
    }

    fn check_numbers(&self) {
        let stream = self.kinesis.stream("s").unwrap();
        for shard in stream.shards() {
            let info = shard.info();
            let mut all = vec![info.starting_sequence];
            all.extend(shard.records().map(|(number, _)| number));
            all.extend(info.ending_sequence);
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            for parent in shard.parents() {
                let parent = stream.shard(parent).unwrap().info();
                assert!(parent.ending_sequence.unwrap() < info.starting_sequence);
            }
        }
    }

    /// Reads from the first shards on, following ChildShards, each shard when all of its parents ended.
    fn read_all(&mut self, limit: u32) -> Vec<SequenceNumber> {
        let mut ended = BTreeSet::new();
        let mut ready = vec![ShardIndex(0), ShardIndex(1)];
        let mut waiting = Vec::new();
        let mut seen = Vec::new();
        let stream = self.kinesis.stream("s").unwrap().id();
        while let Some(shard) = ready.pop() {
            let start = self.kinesis.get_shard_iterator(self.now, stream, shard, IteratorStart::TrimHorizon);
            let mut next = Some(start.unwrap());
            while let Some(iterator) = next {
                let page = self.kinesis.get_records(self.now, &iterator, Some(limit)).unwrap();
                assert!(page.records.len() <= limit as usize);
                seen.extend(numbers(&page));
                if page.next.is_none() {
                    ended.insert(shard);
                    assert!(!page.child_shards.is_empty());
                    waiting.extend(page.child_shards);
                } else if page.records.is_empty() {
                    break;
                } else {
                    assert!(page.child_shards.is_empty());
                }
                next = page.next;
            }
            waiting.retain(|child: &ChildShard| {
                let complete = child.parents.iter().all(|parent| ended.contains(parent));
                if complete && !ready.contains(&child.shard) {
                    ready.push(child.shard);
                }
                !complete
            });
        }
        seen
    }
}

/// Calls any operation. A subscription also brings its events of some minutes.
fn call(kinesis: &mut Kinesis, now_ms: i64, operation: &str, body: Value) -> ApiResult<()> {
    if operation != "SubscribeToShard" {
        return kinesis.call(now_ms, operation, body).map(drop);
    }
    let mut subscription = kinesis.call_subscribe(now_ms, body)?;
    for later_ms in [0, 1, 5_000, 400_000] {
        if let Push::Event(event) = kinesis.push(now_ms.saturating_add(later_ms), &mut subscription) {
            assert!(event.to_json().is_object());
        }
    }
    Ok(())
}

/// The name of an operation, known or not.
fn operation() -> impl Strategy<Value = &'static str> {
    let known = super::super::json::OPERATIONS.map(|(name, _)| name);
    prop::sample::select([&known[..], &["Unknown"]].concat())
}

/// The name of a member of some request.
fn member() -> impl Strategy<Value = &'static str> {
    let members = "StreamName StreamARN ShardCount ShardId ShardIteratorType StartingSequenceNumber Timestamp \
        ShardIterator Limit NextToken MaxResults ExclusiveStartShardId ShardFilter Data PartitionKey \
        ExplicitHashKey SequenceNumberForOrdering Records ShardToSplit NewStartingHashKey ShardToMerge \
        AdjacentShardToMerge TargetShardCount ScalingType RetentionPeriodHours Tags TagKeys ResourceARN \
        ConsumerName ConsumerARN StreamModeDetails MaxRecordSizeInKiB ShardLevelMetrics EncryptionType \
        KeyId DryRun StreamCreationTimestamp EnforceConsumerDeletion StartingPosition StreamId";
    prop::sample::select(members.split(' ').collect::<Vec<_>>())
}

/// Values: often right, sometimes nearly right, and sometimes absurd.
fn value() -> impl Strategy<Value = Value> {
    let texts = "s shardId-000000000000 shardId-000000000001 TRIM_HORIZON AT_TIMESTAMP AT_SEQUENCE_NUMBER AT_LATEST \
        UNIFORM_SCALING KMS ON_DEMAND PROVISIONED ALL aGk= 0 \
        arn:aws:kinesis:us-east-1:000000000000:stream/s \
        arn:aws:kinesis:us-east-1:000000000000:stream/s/consumer/c:1770000000 \
        340282366920938463463374607431768211455 170141183460469231731687303715884105728";
    let texts = texts.split(' ').chain([""]).collect::<Vec<_>>();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..50).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(texts).prop_map(Value::from),
        "[0-9]{1,60}".prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        let nested = prop::sample::select(vec![
            "Type",
            "StreamMode",
            "Data",
            "PartitionKey",
            "Timestamp",
            "SequenceNumber",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(nested.prop_map(String::from), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_history_keeps_the_space_the_order_and_every_record(
        events in prop::collection::vec(event(), 1..80),
        delay in prop_oneof![Just(0i64), 1i64..2000],
        limit in prop_oneof![1u32..5, Just(10_000u32)],
    ) {
        let mut world = World::new(delay);
        for event in &events {
            world.apply(event);
            world.check_partition();
        }
        world.check_numbers();
        let mut seen = world.read_all(limit);
        seen.sort();
        let mut written = world.written.clone();
        written.sort();
        prop_assert_eq!(seen, written);
    }

    /// A look in between makes no difference.
    #[test]
    fn looking_changes_nothing(events in prop::collection::vec(event(), 1..40), delay in 1i64..2000) {
        let (mut seen, mut unseen) = (World::new(delay), World::new(delay));
        for event in &events {
            if let Event::Wait(ms) = event {
                for step in 0..*ms / 100 {
                    seen.kinesis.advance(seen.now + step * 100);
                }
                unseen.now += ms;
                seen.now += ms;
            } else {
                // Both runs choose by the same view of the open shards.
                seen.kinesis.advance(seen.now);
                unseen.kinesis.advance(unseen.now);
                seen.apply(event);
                unseen.apply(event);
            }
        }
        seen.kinesis.advance(seen.now);
        unseen.kinesis.advance(unseen.now);
        let view = |world: &World| {
            let stream = world.kinesis.stream("s").unwrap();
            stream.shards().map(|s| (s.info(), s.opened_ms(), s.closed_ms(), s.next_position())).collect::<Vec<_>>()
        };
        prop_assert_eq!(view(&seen), view(&unseen));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_request_panics(
        requests in prop::collection::vec(
            (operation(), prop::collection::btree_map(member(), value(), 0..6),
             any::<bool>(), prop_oneof![4 => 0i64..100_000, 1 => any::<i64>()]),
            1..25,
        ),
        limits: bool,
    ) {
        let mut kinesis = with_settings(KinesisConfig { limits, shard_limit: 200, ..KinesisConfig::default() }, 2);
        kinesis.advance(T0 + 1000);
        for (operation, members, named, offset) in requests {
            let mut body: serde_json::Map<String, Value> =
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            if named {
                body.insert("StreamName".into(), json!("s"));
            }
            if let Err(error) = call(&mut kinesis, T0.saturating_add(offset), operation, Value::Object(body)) {
                prop_assert_eq!(error.http_status, 400);
                prop_assert!(!error.message.is_empty());
            }
        }
    }

    #[test]
    fn no_body_panics(operation in operation(), body in value(), now: i64) {
        let (mut kinesis, _) = with_stream(1);
        let _ = call(&mut kinesis, now, operation, body);
    }
}
