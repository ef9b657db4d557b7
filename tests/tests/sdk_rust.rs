//! The AWS SDK for Rust drives the in-memory AWS: typed answers and typed errors.

use leasehold::aws::dynamodb::error::SdkError;
use leasehold::aws::dynamodb::operation::put_item::PutItemError;
use leasehold::aws::dynamodb::operation::transact_write_items::TransactWriteItemsError;
use leasehold::aws::dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ReturnValue,
    ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TableStatus, TransactWriteItem,
};
use leasehold::aws::kinesis::operation::describe_stream_summary::DescribeStreamSummaryError;
use leasehold::aws::kinesis::operation::get_shard_iterator::GetShardIteratorError;
use leasehold::aws::kinesis::operation::split_shard::SplitShardError;
use leasehold::aws::kinesis::operation::subscribe_to_shard::SubscribeToShardError;
use leasehold::aws::kinesis::types::{
    PutRecordsRequestEntry, ShardFilter, ShardFilterType, ShardIteratorType, StartingPosition, StreamStatus,
    SubscribeToShardEvent, SubscribeToShardEventStream,
};
use leasehold::aws::{dynamodb, kinesis};
use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::wait::until;
use std::collections::HashMap;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

async fn stream_active(client: &kinesis::Client) {
    until("the stream to be ACTIVE", SOON, || async {
        let answer = client.describe_stream_summary().stream_name("orders").send().await;
        let summary = answer.expect("a summary").stream_description_summary.expect("a summary");
        summary.stream_status == StreamStatus::Active
    })
    .await;
}

/// All records of a shard, and the ids of its children if the shard has ended.
async fn read(client: &kinesis::Client, shard: &str) -> (Vec<Vec<u8>>, Vec<String>) {
    let first = client.get_shard_iterator().stream_name("orders").shard_id(shard);
    let first = first.shard_iterator_type(ShardIteratorType::TrimHorizon);
    let mut iterator = first.send().await.expect("an iterator").shard_iterator;
    let (mut records, mut children) = (Vec::new(), Vec::new());
    while let Some(at) = iterator {
        let answer = client.get_records().shard_iterator(at).send().await.expect("records");
        children.extend(answer.child_shards().iter().map(|child| child.shard_id().to_owned()));
        let tip = answer.records.is_empty() && answer.millis_behind_latest == Some(0);
        records.extend(answer.records.into_iter().map(|record| record.data.into_inner()));
        iterator = answer.next_shard_iterator.filter(|_| !tip);
        // Five calls a second and shard are allowed.
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    (records, children)
}

#[tokio::test(flavor = "multi_thread")]
async fn kinesis_answers_are_typed() {
    let local = Local::start(LocalOptions::default()).await;
    let client = clients::kinesis(&local.endpoint);
    let missing = client.describe_stream_summary().stream_name("orders").send().await;
    let error = missing.expect_err("no stream yet").into_service_error();
    assert!(matches!(error, DescribeStreamSummaryError::ResourceNotFoundException(_)), "{error:?}");

    client.create_stream().stream_name("orders").shard_count(1).send().await.expect("a stream");
    stream_active(&client).await;
    let entries = (0..50u8).map(|number| {
        let entry = PutRecordsRequestEntry::builder().partition_key(format!("k{number}"));
        entry.data(vec![number].into()).build().expect("an entry")
    });
    let put = client.put_records().stream_name("orders").set_records(Some(entries.collect()));
    let put = put.send().await.expect("an answer");
    assert_eq!((put.failed_record_count, put.records.len()), (Some(0), 50));

    let split = client.split_shard().stream_name("orders").shard_to_split("shardId-000000000000");
    let split = split.new_starting_hash_key((1u128 << 127).to_string());
    split.clone().send().await.expect("a split");
    let error = split.send().await.expect_err("a second split").into_service_error();
    assert!(matches!(error, SplitShardError::ResourceInUseException(_)), "{error:?}");
    stream_active(&client).await;
    let (records, children) = read(&client, "shardId-000000000000").await;
    assert_eq!(records, (0..50u8).map(|number| vec![number]).collect::<Vec<_>>());
    assert_eq!(children, ["shardId-000000000001", "shardId-000000000002"]);

    let merge = client.merge_shards().stream_name("orders").shard_to_merge("shardId-000000000001");
    merge.adjacent_shard_to_merge("shardId-000000000002").send().await.expect("a merge");
    stream_active(&client).await;
    let filter = ShardFilter::builder().r#type(ShardFilterType::AtLatest).build().expect("a filter");
    let open = client.list_shards().stream_name("orders").shard_filter(filter).send().await.expect("shards");
    let [merged] = open.shards() else { panic!("expected one open shard, found {open:?}") };
    assert_eq!(merged.shard_id(), "shardId-000000000003");
    assert_eq!(merged.parent_shard_id(), Some("shardId-000000000001"));
    assert_eq!(merged.adjacent_parent_shard_id(), Some("shardId-000000000002"));
    // Another iterator of the same kind reads the last shard to its end.
    let unknown = client.get_shard_iterator().stream_name("orders").shard_id("shardId-000000000009");
    let unknown = unknown.shard_iterator_type(ShardIteratorType::Latest).send().await;
    let error = unknown.expect_err("no such shard").into_service_error();
    assert!(matches!(error, GetShardIteratorError::ResourceNotFoundException(_)), "{error:?}");
    client.delete_stream().stream_name("orders").send().await.expect("a deletion");
    until("the stream to be gone", SOON, || async {
        client.describe_stream_summary().stream_name("orders").send().await.is_err()
    })
    .await;
}

/// Subscribes by fan-out: the payloads until the event in which `is_last` holds, and that event.
async fn pushed(
    client: &kinesis::Client, consumer: &str, start: StartingPosition,
    is_last: impl Fn(&SubscribeToShardEvent) -> bool,
) -> (Vec<Vec<u8>>, SubscribeToShardEvent) {
    let subscribe = client.subscribe_to_shard().consumer_arn(consumer).shard_id("shardId-000000000000");
    let mut answer = subscribe.starting_position(start).send().await.expect("a subscription");
    let mut payloads = Vec::new();
    loop {
        let event = answer.event_stream.recv().await.expect("a sound frame").expect("an event");
        let SubscribeToShardEventStream::SubscribeToShardEvent(event) = event else { continue };
        payloads.extend(event.records.iter().map(|record| record.data.clone().into_inner()));
        if is_last(&event) {
            return (payloads, event);
        }
    }
}

fn start(kind: ShardIteratorType, number: Option<&str>) -> StartingPosition {
    let position = StartingPosition::builder().r#type(kind).set_sequence_number(number.map(str::to_owned));
    position.build().expect("a position")
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_subscription_are_typed() {
    let local = Local::start(instant()).await;
    let client = clients::kinesis(&local.endpoint);
    client.create_stream().stream_name("orders").shard_count(1).send().await.expect("a stream");
    let stream = "arn:aws:kinesis:us-east-1:000000000000:stream/orders";
    let register = client.register_stream_consumer().stream_arn(stream).consumer_name("audit");
    let consumer = register.send().await.expect("an answer").consumer.expect("a consumer").consumer_arn;
    let put = |data: &'static [u8]| {
        client.put_record().stream_name("orders").partition_key("k").data(data.into()).send()
    };
    put(b"first").await.expect("a record");
    let horizon = start(ShardIteratorType::TrimHorizon, None);
    let (payloads, event) = pushed(&client, &consumer, horizon, |event| !event.records.is_empty()).await;
    assert_eq!(payloads, [b"first"]);

    let latest = start(ShardIteratorType::Latest, None);
    let again = client.subscribe_to_shard().consumer_arn(&consumer).shard_id("shardId-000000000000");
    let error = again.starting_position(latest).send().await.expect_err("a hasty call").into_service_error();
    assert!(matches!(error, SubscribeToShardError::ResourceInUseException(_)), "{error:?}");
    put(b"second").await.expect("a record");
    client
        .split_shard()
        .stream_name("orders")
        .shard_to_split("shardId-000000000000")
        .new_starting_hash_key((1u128 << 127).to_string())
        .send()
        .await
        .expect("a split");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = start(ShardIteratorType::AfterSequenceNumber, Some(&event.continuation_sequence_number));
    let is_end = |event: &SubscribeToShardEvent| !event.child_shards().is_empty();
    let (payloads, end) = pushed(&client, &consumer, after, is_end).await;
    assert_eq!((payloads, end.child_shards().len()), (vec![b"second".to_vec()], 2));
}

fn row(key: &str, counter: u64) -> HashMap<String, AttributeValue> {
    HashMap::from([
        ("leaseKey".to_owned(), AttributeValue::S(key.to_owned())),
        ("leaseCounter".to_owned(), AttributeValue::N(counter.to_string())),
    ])
}

async fn create_table(client: &dynamodb::Client) {
    let attribute =
        AttributeDefinition::builder().attribute_name("leaseKey").attribute_type(ScalarAttributeType::S);
    let key = KeySchemaElement::builder().attribute_name("leaseKey").key_type(KeyType::Hash);
    let create = client.create_table().table_name("leases").billing_mode(BillingMode::PayPerRequest);
    let create = create
        .attribute_definitions(attribute.build().expect("an attribute"))
        .key_schema(key.build().expect("a key"));
    create.send().await.expect("a table");
    until("the table to be ACTIVE", SOON, || async {
        let table = client.describe_table().table_name("leases").send().await.expect("a table").table;
        table.and_then(|table| table.table_status) == Some(TableStatus::Active)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dynamodb_answers_are_typed() {
    let local = Local::start(LocalOptions::default()).await;
    let client = clients::dynamodb(&local.endpoint);
    create_table(&client).await;
    let create = client
        .put_item()
        .table_name("leases")
        .condition_expression("attribute_not_exists(leaseKey)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    create.clone().set_item(Some(row("a", 1))).send().await.expect("a new row");
    let error = create.set_item(Some(row("a", 2))).send().await.expect_err("a row that is there");
    let SdkError::ServiceError(error) = error else { panic!("{error:?}") };
    let PutItemError::ConditionalCheckFailedException(failed) = error.err() else { panic!("{error:?}") };
    assert_eq!(failed.item(), Some(&row("a", 1)), "the row as it is");

    let renew = client
        .update_item()
        .table_name("leases")
        .key("leaseKey", AttributeValue::S("a".into()))
        .update_expression("SET leaseCounter = leaseCounter + :one")
        .expression_attribute_values(":one", AttributeValue::N("1".into()))
        .return_values(ReturnValue::AllNew);
    assert_eq!(renew.send().await.expect("a renewal").attributes, Some(row("a", 2)));

    let put = |key: &str| {
        let put = Put::builder().table_name("leases").set_item(Some(row(key, 0)));
        let put = put.condition_expression("attribute_not_exists(leaseKey)").build().expect("a put");
        TransactWriteItem::builder().put(put).build()
    };
    let both = client.transact_write_items().transact_items(put("b")).transact_items(put("a"));
    let error = both.send().await.expect_err("one of both is there").into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
    let reasons: Vec<_> =
        cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    assert_eq!(reasons, ["None", "ConditionalCheckFailed"]);

    let mut pages = client.scan().table_name("leases").limit(1).into_paginator().items().send();
    let mut keys = Vec::new();
    while let Some(item) = pages.next().await {
        keys.push(item.expect("an item")["leaseKey"].clone());
    }
    assert_eq!(keys, [AttributeValue::S("a".into())], "a cancelled transaction wrote nothing");
    client.delete_table().table_name("leases").send().await.expect("a deletion");
    until("the table to be gone", SOON, || async {
        client.describe_table().table_name("leases").send().await.is_err()
    })
    .await;
}
