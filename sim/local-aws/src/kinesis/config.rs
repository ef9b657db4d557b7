//! The settings of the fake service.

use std::sync::Arc;

/// The answer of `GetRecords` that announces the end of a closed shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfShard {
    /// An empty answer of its own, after the last records: the observed behaviour of AWS.
    OwnAnswer,
    /// The answer with the last records, allowed by the protocol, too.
    WithLastRecords,
}

/// Settings of a [`Kinesis`](super::Kinesis).
#[derive(Clone, Debug)]
pub struct KinesisConfig {
    /// Twelve digits, part of every ARN.
    pub account_id: Arc<str>,
    /// Such as `us-east-1`, part of every ARN.
    pub region: Arc<str>,
    /// How long a new stream is CREATING.
    pub create_ms: i64,
    /// How long a new consumer is CREATING.
    pub consumer_ms: i64,
    /// How long one round of an update (a split, a merge, a change of retention) takes.
    pub update_ms: i64,
    /// How long a stream (or consumer) is DELETING.
    pub delete_ms: i64,
    /// Whether throughput and request rate limits are enforced.
    pub limits: bool,
    /// Open shards an account may have in provisioned streams.
    pub shard_limit: u32,
    /// Life of a shard iterator.
    pub iterator_expiry_ms: i64,
    /// Life of a `NextToken`.
    pub token_expiry_ms: i64,
    /// Life of a subscription to a shard (enhanced fan-out).
    pub subscription_ms: i64,
    /// The answer with the end of a closed shard.
    pub end_of_shard: EndOfShard,
}

impl Default for KinesisConfig {
    fn default() -> Self {
        KinesisConfig {
            account_id: "000000000000".into(),
            region: "us-east-1".into(),
            create_ms: 500,
            consumer_ms: 500,
            update_ms: 500,
            delete_ms: 500,
            limits: true,
            shard_limit: 20_000,
            iterator_expiry_ms: 300_000,
            token_expiry_ms: 300_000,
            subscription_ms: 300_000,
            end_of_shard: EndOfShard::OwnAnswer,
        }
    }
}

impl KinesisConfig {
    /// Without throughput and rate limits, and with every transition immediate.
    pub fn instant() -> Self {
        KinesisConfig {
            create_ms: 0,
            consumer_ms: 0,
            update_ms: 0,
            delete_ms: 0,
            limits: false,
            ..Self::default()
        }
    }
}
