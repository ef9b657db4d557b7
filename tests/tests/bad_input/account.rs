//! One account on the in-memory AWS: a stream, a table, and their contents.

use leasehold::aws::dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use leasehold::aws::{dynamodb, kinesis};
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::probe::Probe;
use std::collections::HashMap;

pub(super) const STREAM: &str = "orders";
pub(super) const TABLE: &str = "billing";
pub(super) const SHARDS: [&str; 2] = ["shardId-000000000000", "shardId-000000000001"];

/// One account, with a stream of two shards if wanted.
pub(super) struct Account {
    pub(super) local: Local,
    pub(super) kinesis: kinesis::Client,
    pub(super) dynamodb: dynamodb::Client,
}

impl Account {
    pub(super) async fn empty() -> Self {
        let local = Local::start(instant()).await;
        let (kinesis, dynamodb) = (clients::kinesis(&local.endpoint), clients::dynamodb(&local.endpoint));
        Self { local, kinesis, dynamodb }
    }

    pub(super) async fn with_stream() -> Self {
        let account = Self::empty().await;
        account.create_stream().await;
        account
    }

    pub(super) async fn create_stream(&self) {
        let created = self.kinesis.create_stream().stream_name(STREAM).shard_count(2);
        created.send().await.expect("a stream");
    }

    /// Puts records of these numbers, by turns into both shards.
    pub(super) async fn put(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let hash_key = if number % 2 == 0 { "0" } else { "340282366920938463463374607431768211455" };
            let put = self.kinesis.put_record().stream_name(STREAM).partition_key("k");
            let put = put.explicit_hash_key(hash_key).data(payload(number).into_bytes().into());
            put.send().await.expect("a record");
        }
    }

    pub(super) async fn create_table(&self, key: &str) {
        let attribute =
            AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash);
        let create = self.dynamodb.create_table().table_name(TABLE);
        let create = create
            .attribute_definitions(attribute.build().expect("an attribute"))
            .key_schema(element.build().expect("a key"))
            .billing_mode(BillingMode::PayPerRequest);
        create.send().await.expect("a table");
    }

    pub(super) async fn put_row(&self, row: &[(&str, AttributeValue)]) {
        let item = row.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let put = self.dynamodb.put_item().table_name(TABLE).set_item(Some(item.collect()));
        put.send().await.expect("a row");
    }

    pub(super) async fn rows(&self) -> HashMap<String, HashMap<String, AttributeValue>> {
        let answer = self.dynamodb.scan().table_name(TABLE).send().await.expect("the rows");
        let rows = answer.items.unwrap_or_default().into_iter();
        rows.map(|row| (row["leaseKey"].as_s().cloned().expect("a string key"), row)).collect()
    }

    pub(super) fn probe(&self) -> Probe {
        Probe::start(self.kinesis.clone(), self.dynamodb.clone(), STREAM, TABLE)
    }

    /// Checks that every shard's checkpoint is exactly at the shard's last processed record, and that no worker owns
    /// the lease any more.
    pub(super) async fn assert_released(&self, probe: &Probe) {
        let rows = self.rows().await;
        let seen = probe.seen();
        for shard in SHARDS {
            let row = &rows[shard];
            let checkpoint = row["checkpoint"].as_s().map(String::as_str);
            assert_eq!(checkpoint.ok(), seen.last(shard), "the checkpoint of {shard}");
            assert!(!row.contains_key("leaseOwner"), "{shard} is still owned: {row:?}");
        }
    }
}

pub(super) fn payload(number: u32) -> String {
    format!("r{number:04}")
}

pub(super) fn payloads(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(payload).collect()
}

pub(super) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(super) fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}
