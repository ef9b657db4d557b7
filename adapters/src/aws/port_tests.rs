//! The ports' requests to AWS, and the ports' reading of the answers.

use super::fake::{FakeHttp, Wire, credentials, stream, table};
use super::values::{item_from_sdk, item_to_sdk};
use crate::ports::Port;
use crate::testing::op;
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::input::{Cause, Outcome, Reply, ShardPage, StreamState, TableState, Why};
use leasehold_engine::output::{IteratorFrom, ShardFilter, StreamOp, TableOp};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::shard::HashKey;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_engine::time::Wall;
use serde_json::{Value, json};

pub(super) fn ok(body: &Value) -> FakeHttp {
    let body = body.to_string();
    FakeHttp::new(move |_, _| Wire::Answer(200, body.clone()))
}

pub(super) async fn on_table(http: FakeHttp, op_: TableOp) -> Outcome {
    table(http, credentials()).execute(op(1), op_).await
}

pub(super) fn last(http: &FakeHttp) -> (String, Value) {
    http.seen.lock().unwrap().last().expect("a request").clone()
}

#[tokio::test(start_paused = true)]
async fn a_table_is_usable_only_with_the_key_of_the_format() {
    let described = |status: &str, name: &str, kind: &str, attribute: &str| {
        json!({"Table": {
            "TableStatus": status,
            "KeySchema": [{"AttributeName": name, "KeyType": kind}],
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": attribute}],
        }})
    };
    let mut sorted = described("ACTIVE", "leaseKey", "HASH", "S");
    sorted["Table"]["KeySchema"]
        .as_array_mut()
        .unwrap()
        .push(json!({"AttributeName": "other", "KeyType": "RANGE"}));
    for (answer, expected) in [
        (described("ACTIVE", "leaseKey", "HASH", "S"), TableState::Usable),
        (described("UPDATING", "leaseKey", "HASH", "S"), TableState::Usable),
        (described("CREATING", "leaseKey", "HASH", "S"), TableState::Creating),
        (described("DELETING", "leaseKey", "HASH", "S"), TableState::Deleting),
        (described("ACTIVE", "id", "HASH", "S"), TableState::Incompatible),
        (described("ACTIVE", "leaseKey", "HASH", "N"), TableState::Incompatible),
        (sorted, TableState::Incompatible),
    ] {
        assert_eq!(
            on_table(ok(&answer), TableOp::Describe).await,
            Outcome::Applied(Reply::Table(expected)),
            "{answer}"
        );
    }
    let missing = FakeHttp::new(|_, _| Wire::Answer(400, r#"{"__type":"ResourceNotFoundException"}"#.into()));
    assert_eq!(
        on_table(missing, TableOp::Describe).await,
        Outcome::Applied(Reply::Table(TableState::Missing))
    );
    let locked = ok(&described("INACCESSIBLE_ENCRYPTION_CREDENTIALS", "leaseKey", "HASH", "S"));
    let Outcome::Refused(refusal) = on_table(locked, TableOp::Describe).await else { panic!("refused") };
    assert_eq!(refusal.why, Why::Denied);
    assert!(refusal.detail.contains("INACCESSIBLE"), "{}", refusal.detail);
}

#[tokio::test(start_paused = true)]
async fn a_table_is_created_as_kcl_does() {
    let http = ok(&json!({}));
    assert_eq!(on_table(http.clone(), TableOp::Create).await, Outcome::Applied(Reply::Done));
    assert_eq!(
        last(&http),
        (
            "CreateTable".to_owned(),
            json!({
                "TableName": "app",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "leaseKey", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "leaseKey", "AttributeType": "S"}],
            })
        )
    );
}

fn lease(key: &str) -> Value {
    json!({
        "leaseKey": {"S": key},
        "leaseCounter": {"N": "3"},
        "checkpoint": {"S": "TRIM_HORIZON"},
        "checkpointSubSequenceNumber": {"N": "0"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
    })
}

#[tokio::test(start_paused = true)]
async fn rows_are_scanned_page_by_page_and_read_consistently() {
    let http = ok(&json!({
        "Items": [lease("a"), {"leaseKey": {"S": "b"}}],
        "LastEvaluatedKey": {"leaseKey": {"S": "b"}},
    }));
    let scan = TableOp::Scan { after: Some("0".into()), limit: Some(7) };
    let Outcome::Applied(Reply::Page(page)) = on_table(http.clone(), scan).await else { panic!("a page") };
    assert_eq!(page.next, Some("b".into()));
    assert_eq!(page.rows.len(), 2);
    assert_eq!(page.rows[0].lease().map(|row| row.counter), Some(3));
    let (_, request) = last(&http);
    assert_eq!(request["ExclusiveStartKey"], json!({"leaseKey": {"S": "0"}}));
    assert_eq!(request["Limit"], json!(7));

    let http = ok(&json!({"Item": lease("a")}));
    let read = TableOp::Read { key: "a".into() };
    let Outcome::Applied(Reply::Row(Some(row))) = on_table(http.clone(), read.clone()).await else {
        panic!("a row")
    };
    assert_eq!(row.key().as_str(), "a");
    assert_eq!(last(&http).1["ConsistentRead"], json!(true));
    assert_eq!(on_table(ok(&json!({})), read).await, Outcome::Applied(Reply::Row(None)));
}

#[tokio::test(start_paused = true)]
async fn a_change_is_one_guarded_write() {
    let guard = Guard { counter: 3, next: 3 + 1, holder: "me".into(), next_owner: None };
    let row = LeaseRow::new("a".into(), Checkpoint::TrimHorizon);
    for (change, operation) in [
        (Change::Create(Box::new(row)), "PutItem"),
        (Change::Renew { key: "a".into(), guard: guard.clone(), began: None }, "UpdateItem"),
        (Change::Delete { key: "a".into(), counter: 3 }, "DeleteItem"),
    ] {
        let http = ok(&json!({}));
        assert_eq!(on_table(http.clone(), TableOp::Write(change)).await, Outcome::Applied(Reply::Done));
        let (name, request) = last(&http);
        assert_eq!(name, operation);
        assert_eq!(request["ReturnValuesOnConditionCheckFailure"], json!("ALL_OLD"));
        let condition = request["ConditionExpression"].as_str().expect("guarded");
        assert!(!condition.is_empty());
        for (placeholder, _) in request["ExpressionAttributeNames"].as_object().expect("names") {
            let used = [&request["ConditionExpression"], &request["UpdateExpression"]]
                .iter()
                .any(|text| text.as_str().is_some_and(|text| text.contains(placeholder.as_str())));
            assert!(used, "{placeholder} is not used in {request}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_guard_brings_the_row_as_it_is() {
    let failed = |item: Value| {
        let mut body = json!({"__type": "ConditionalCheckFailedException", "message": "no"});
        if !item.is_null() {
            body["Item"] = item;
        }
        FakeHttp::new(move |_, _| Wire::Answer(400, body.to_string()))
    };
    let renew = TableOp::Write(Change::Renew {
        key: "a".into(),
        guard: Guard { counter: 2, next: 2 + 1, holder: "me".into(), next_owner: None },
        began: None,
    });
    let current = |outcome| match outcome {
        Outcome::Refused(refusal) => {
            assert_eq!(refusal.why, Why::ConditionFailed);
            refusal.current
        }
        other => panic!("{other:?}"),
    };
    let row = current(on_table(failed(lease("a")), renew.clone()).await).expect("a row");
    assert!(matches!(&*row, RowRead::Lease(row) if row.counter == 3));
    assert_eq!(current(on_table(failed(Value::Null), renew.clone()).await), None);
    assert_eq!(current(on_table(failed(json!({})), renew).await), None);
}

#[test]
fn every_type_of_value_goes_to_the_sdk_and_back() {
    let item: Item = [
        ("s", AttributeValue::s("x")),
        ("n", AttributeValue::n(12)),
        ("b", AttributeValue::B(vec![1, 2])),
        ("ss", AttributeValue::Ss(["a".into(), "b".into()].into())),
        ("ns", AttributeValue::Ns(["1".into()].into())),
        ("bs", AttributeValue::Bs([vec![1]].into())),
        ("bool", AttributeValue::Bool(true)),
        ("null", AttributeValue::Null),
        ("l", AttributeValue::L(vec![AttributeValue::Null, AttributeValue::s("y")])),
        ("m", AttributeValue::M([("k".into(), AttributeValue::n(1))].into())),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value))
    .collect();
    assert_eq!(item_from_sdk(item_to_sdk(item.clone())), item);
    assert!(matches!(Kcl.decode(&item), RowRead::Unreadable { .. } | RowRead::Foreign { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_described() {
    for (status, readable) in [("ACTIVE", true), ("UPDATING", true), ("CREATING", false), ("DELETING", false)]
    {
        let (stream, _) = stream(ok(&json!({"StreamDescriptionSummary": {
            "StreamName": "orders", "StreamARN": "arn", "StreamStatus": status,
            "RetentionPeriodHours": 24, "StreamCreationTimestamp": 1_700_000_000.5,
            "EnhancedMonitoring": [], "OpenShardCount": 1,
        }})));
        assert_eq!(
            stream.execute(op(1), StreamOp::Describe).await,
            Outcome::Applied(Reply::Stream(StreamState {
                readable,
                created: Wall(1_700_000_000_500),
                arn: "arn".into(),
            })),
            "{status}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn shards_are_listed_page_by_page() {
    let page = |id: &str, next: Option<&str>| {
        json!({"Shards": [{
            "ShardId": id, "ParentShardId": "p",
            "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "340282366920938463463374607431768211455"},
            "SequenceNumberRange": {"StartingSequenceNumber": "49590338271490256608559692538361571095921575989136588898"},
        }], "NextToken": next})
        .to_string()
    };
    let http = FakeHttp::new(move |_, request| {
        Wire::Answer(
            200,
            match request["NextToken"].as_str() {
                None => page("s1", Some("more")),
                Some(_) => page("s2", None),
            },
        )
    });
    let (stream, store) = stream(http.clone());
    let list = |after| StreamOp::ListShards { filter: ShardFilter::AtLatest, after };
    let Outcome::Applied(Reply::Shards(ShardPage { shards, more: true })) =
        stream.execute(op(1), list(None)).await
    else {
        panic!("a page with more")
    };
    assert_eq!(shards[0].id.as_str(), "s1");
    assert_eq!(shards[0].range.end, HashKey::MAX);
    assert!(shards[0].is_open());
    store.learn_range(&"s1".into(), shards[0].range, op(9));
    assert_eq!(store.range(&"s1".into()).proven(), Some(shards[0].range));
    assert_eq!(last(&http).1["ShardFilter"], json!({"Type": "AT_LATEST"}));
    let Outcome::Applied(Reply::Shards(ShardPage { shards, more: false })) =
        stream.execute(op(2), list(Some(op(1)))).await
    else {
        panic!("the last page")
    };
    assert_eq!(shards[0].id.as_str(), "s2");
    assert_eq!(last(&http).1, json!({"NextToken": "more"}), "a token stands alone");
    let Outcome::Refused(refusal) = stream.execute(op(3), list(Some(op(2)))).await else {
        panic!("nothing is kept under the last page")
    };
    assert_eq!(refusal.why, Why::Gone);
}

#[tokio::test(start_paused = true)]
async fn records_are_read_from_iterator_to_iterator() {
    let http = FakeHttp::new(|operation, request| {
        let body = match (operation, request["ShardIterator"].as_str()) {
            ("GetShardIterator", _) => json!({"ShardIterator": "i1"}),
            (_, Some("i1")) => json!({
                "Records": [{"SequenceNumber": "7", "Data": "aGVsbG8=", "PartitionKey": "k",
                             "ApproximateArrivalTimestamp": 1_700_000_000.25}],
                "NextShardIterator": "i2", "MillisBehindLatest": 1500,
            }),
            _ => json!({"Records": [], "MillisBehindLatest": 0, "ChildShards": [{
                "ShardId": "c", "ParentShards": ["s"],
                "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
            }]}),
        };
        Wire::Answer(200, body.to_string())
    });
    let (stream, store) = stream(http.clone());
    let shard = leasehold_engine::ids::ShardId::from("s");
    let iterator =
        StreamOp::GetIterator { shard: shard.clone(), from: IteratorFrom::After(Position::of(6.into())) };
    assert_eq!(stream.execute(op(1), iterator).await, Outcome::Applied(Reply::Iterator));
    let (_, request) = last(&http);
    assert_eq!(request["ShardIteratorType"], json!("AFTER_SEQUENCE_NUMBER"));
    assert_eq!(request["StartingSequenceNumber"], json!("6"));
    let get = |via| StreamOp::GetRecords { shard: shard.clone(), via, limit: 100 };
    let Outcome::Applied(Reply::Records(fetched)) = stream.execute(op(2), get(op(1))).await else {
        panic!("records")
    };
    assert_eq!((fetched.count, fetched.bytes, fetched.behind_ms, fetched.end), (1, 5, 1_500, None));
    let batch = store.batch(&shard, op(2)).expect("kept");
    let record = &batch.records[0];
    assert_eq!(&*record.data, b"hello");
    assert_eq!((&*record.partition_key, record.arrival), ("k", Some(Wall(1_700_000_000_250))));
    let Outcome::Applied(Reply::Records(fetched)) = stream.execute(op(3), get(op(2))).await else {
        panic!("the end")
    };
    assert_eq!(fetched.end.expect("ended")[0].id.as_str(), "c");
    let Outcome::Refused(refusal) = stream.execute(op(4), get(op(3))).await else {
        panic!("no iterator follows the end")
    };
    assert_eq!(refusal.why, Why::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_record_without_a_readable_position_spoils_the_answer() {
    let (stream, store) = stream(ok(&json!({
        "Records": [{"SequenceNumber": "seven", "Data": "", "PartitionKey": "k"}],
        "NextShardIterator": "i2",
    })));
    store.keep_cursor(&"s".into(), op(1), "i1".into());
    let get = StreamOp::GetRecords { shard: "s".into(), via: op(1), limit: 1 };
    assert_eq!(stream.execute(op(2), get).await, Outcome::Unknown(Cause::Garbled));
}

/// The sentences of Kinesis.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_of_another_stream_differs_from_another_shards() {
    let place = "49540000000000000000000000000000000000000000000000000002";
    for (message, why) in [
        (
            format!(
                "StartingSequenceNumber {place} used in GetShardIterator on shard shardId-000000000000 in stream orders under \
                 account 123456789012 is invalid because it did not come from this stream."
            ),
            Why::OfAnotherStream,
        ),
        (
            "Invalid StartingSequenceNumber. It encodes shardId-000000000007, while it was used in a call to a shard with \
             shardId-000000000000"
                .to_owned(),
            Why::Invalid,
        ),
    ] {
        let body = json!({"__type": "InvalidArgumentException", "message": message});
        let (stream, _) = stream(FakeHttp::new(move |_, _| Wire::Answer(400, body.to_string())));
        let op_ = StreamOp::GetIterator {
            shard: "shardId-000000000000".into(),
            from: IteratorFrom::After(Position::of(place.parse().unwrap())),
        };
        let Outcome::Refused(refusal) = stream.execute(op(1), op_).await else {
            panic!("expected a refusal of {message}");
        };
        assert_eq!((refusal.why, refusal.detail.contains(&message)), (why, true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_no_arn_knows_the_name() {
    let (stream, _) = stream(ok(&json!({"StreamDescriptionSummary": {
        "StreamName": "orders", "StreamARN": "", "StreamStatus": "ACTIVE", "RetentionPeriodHours": 24,
        "StreamCreationTimestamp": 1_700_000_000.5, "EnhancedMonitoring": [], "OpenShardCount": 1,
    }})));
    let Outcome::Applied(Reply::Stream(state)) = stream.execute(op(1), StreamOp::Describe).await else {
        panic!("expected a description");
    };
    assert_eq!(&*state.arn, "orders");
}
