//! Which subscriptions a request wakes: a write wakes subscriptions of its shards, and another change wakes all.

use crate::kinesis::ShardIndex;
use serde_json::Value;
use tokio::sync::Notify;

/// Shards share a bell by their numbers.
const BELLS: usize = 64;

/// Bells for the subscriptions of all streams.
#[derive(Debug)]
pub(super) struct Changes([Notify; BELLS]);

impl Default for Changes {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Notify::new()))
    }
}

impl Changes {
    /// The bell of a shard.
    pub(super) fn of(&self, shard: ShardIndex) -> &Notify {
        &self.0[shard.0 as usize % BELLS]
    }

    /// Rings after an operation of Kinesis with this answer.
    pub(super) fn follow(&self, operation: &str, answer: &Value) {
        let only_looks = ["Get", "List", "Describe"].iter().any(|verb| operation.starts_with(verb));
        match operation {
            "PutRecord" => self.wrote(answer),
            "PutRecords" => {
                answer["Records"].as_array().into_iter().flatten().for_each(|one| self.wrote(one))
            }
            _ if only_looks => {}
            _ => self.0.iter().for_each(Notify::notify_waiters),
        }
    }

    fn wrote(&self, written: &Value) {
        // A refused record names no shard.
        if let Some(shard) = written["ShardId"].as_str().and_then(ShardIndex::parse) {
            self.of(shard).notify_waiters();
        }
    }
}
