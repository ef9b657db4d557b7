//! One account on the AWS in memory: a server, its clients, and the contents of its streams and tables.

use crate::clients;
use crate::local::{Local, instant};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold::aws::{dynamodb, kinesis};
use leasehold::parts::{DynamoDb, Kinesis};
use leasehold::{Builder, CompleteBuilder, Worker};
use leasehold_local_aws::http::LocalOptions;
use std::collections::{BTreeMap, HashMap};

/// The shards of a stream of two, in the order of their hash keys.
pub const SHARDS: [&str; 2] = ["shardId-000000000000", "shardId-000000000001"];

/// A row of a table, by the names of its attributes.
pub type Row = HashMap<String, AttributeValue>;

/// A text of a row.
pub fn text<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)?.as_s().ok().map(String::as_str)
}

/// A value that is a text.
pub fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A value that is a number.
pub fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

/// One account. Clones share the server. Each method panics where AWS refuses.
#[derive(Clone, Debug)]
pub struct Account {
    /// The server.
    pub local: Local,
    /// A client of it.
    pub kinesis: kinesis::Client,
    /// A client of it.
    pub dynamodb: dynamodb::Client,
}

impl Account {
    /// Starts a server without streams and tables.
    pub async fn start() -> Self {
        Self::with(instant()).await
    }

    /// The same, with these options.
    pub async fn with(options: LocalOptions) -> Self {
        Self::at(Local::start(options).await)
    }

    /// The account of this server, with clients of its own.
    pub fn at(local: Local) -> Self {
        let (kinesis, dynamodb) = (clients::kinesis(&local.endpoint), clients::dynamodb(&local.endpoint));
        Self { local, kinesis, dynamodb }
    }

    /// Creates a stream.
    ///
    /// # Panics
    /// If that fails.
    pub async fn create(&self, stream: &str, shards: i32) {
        let create = self.kinesis.create_stream().stream_name(stream).shard_count(shards);
        create.send().await.expect("a stream");
    }

    /// Deletes a stream.
    ///
    /// # Panics
    /// If that fails.
    pub async fn delete(&self, stream: &str) {
        self.kinesis.delete_stream().stream_name(stream).send().await.expect("a deletion");
    }

    /// Puts a record at this hash key; gives its sequence number.
    ///
    /// # Panics
    /// If that fails.
    pub async fn put(&self, stream: &str, hash_key: u128, data: impl Into<Vec<u8>>) -> String {
        let put = self.kinesis.put_record().stream_name(stream).partition_key("k");
        let put = put.explicit_hash_key(hash_key.to_string()).data(data.into().into());
        put.send().await.expect("a record").sequence_number
    }

    /// Puts a record into each half of the hash space; gives the sequence number of the first.
    ///
    /// # Panics
    /// If that fails.
    pub async fn put_both(&self, stream: &str, data: &str) -> String {
        let first = self.put(stream, 0, data).await;
        self.put(stream, u128::MAX, data).await;
        first
    }

    /// Splits a shard.
    ///
    /// # Panics
    /// If that fails.
    pub async fn split(&self, stream: &str, shard: &str, at: u128) {
        let split = self.kinesis.split_shard().stream_name(stream).shard_to_split(shard);
        split.new_starting_hash_key(at.to_string()).send().await.expect("a split");
    }

    /// A worker's builder, with the clients.
    pub fn builder(&self) -> Builder<Kinesis, DynamoDb> {
        Worker::builder().kinesis(self.kinesis.clone()).dynamodb(self.dynamodb.clone())
    }

    /// A builder for the only stream of an application.
    pub fn worker_of(&self, stream: &str, application: &str) -> CompleteBuilder {
        self.builder().stream(stream).application(application)
    }

    /// The rows of a lease table, by key; none without a table.
    pub async fn rows(&self, table: &str) -> BTreeMap<String, Row> {
        let answer = self.dynamodb.scan().table_name(table).consistent_read(true).send().await;
        let rows = answer.ok().and_then(|answer| answer.items).unwrap_or_default().into_iter();
        rows.map(|row| (text(&row, "leaseKey").unwrap_or_default().to_owned(), row)).collect()
    }

    /// A row of a lease table; absent: the table or the row is missing.
    pub async fn row(&self, table: &str, key: &str) -> Option<Row> {
        self.rows(table).await.remove(key)
    }

    /// Edits a row of a lease table by an expression.
    ///
    /// # Panics
    /// If that fails.
    pub async fn edit(&self, table: &str, key: &str, expression: &str, values: &[(&str, AttributeValue)]) {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let edit = self.dynamodb.update_item().table_name(table).key("leaseKey", s(key));
        let edit = edit.update_expression(expression);
        let values = Some(values.collect::<HashMap<_, _>>()).filter(|values| !values.is_empty());
        edit.set_expression_attribute_values(values).send().await.expect("an edit");
    }

    /// Removes a row of a lease table.
    ///
    /// # Panics
    /// If that fails.
    pub async fn remove(&self, table: &str, key: &str) {
        let delete = self.dynamodb.delete_item().table_name(table).key("leaseKey", s(key));
        delete.send().await.expect("a deletion");
    }
}
