//! One account on the in-memory AWS: a stream, a table, and their contents.

use leasehold::aws::dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use leasehold_tests::account::{Account, Row, SHARDS};
use leasehold_tests::probe::Probe;
use std::collections::BTreeMap;
use std::ops::Deref;

pub(super) const STREAM: &str = "orders";
pub(super) const TABLE: &str = "billing";

/// An account for the stream `orders`, of two shards.
pub(super) struct Orders(Account);

impl Deref for Orders {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.0
    }
}

impl Orders {
    pub(super) async fn empty() -> Self {
        Self(Account::start().await)
    }

    pub(super) async fn with_stream() -> Self {
        let account = Self::empty().await;
        account.create_stream().await;
        account
    }

    /// With a stream of this many records.
    pub(super) async fn with_records(count: u32) -> Self {
        let account = Self::with_stream().await;
        account.put(0..count).await;
        account
    }

    /// With a worker that has processed this many records.
    pub(super) async fn consumed(count: u32) -> (Self, Probe) {
        let account = Self::with_records(count).await;
        let probe = account.probe();
        probe.processed(count as usize).await;
        (account, probe)
    }

    pub(super) async fn create_stream(&self) {
        self.create(STREAM, 2).await;
    }

    /// Puts records of these numbers, by turns into both shards.
    pub(super) async fn put(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let hash_key = if number % 2 == 0 { 0 } else { u128::MAX };
            self.0.put(STREAM, hash_key, payload(number)).await;
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

    pub(super) async fn rows(&self) -> BTreeMap<String, Row> {
        self.0.rows(TABLE).await
    }

    pub(super) fn probe(&self) -> Probe {
        Probe::of(self.worker_of(STREAM, TABLE))
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
