//! Why processing of a shard ended: a word of commands and of notices.

use serde::{Deserialize, Serialize};

/// Why processing of a shard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndReason {
    /// All records of the shard were processed, and its end is durable.
    ShardEnded,
    /// Another worker owns the lease, or may own it. No further progress can be checkpointed.
    LeaseLost,
    /// This worker shuts down; the processed records have been checkpointed as far as possible.
    Shutdown,
    /// The lease is handed over to another worker; the processed records have been checkpointed as far as possible.
    HandedOver,
    /// The worker cannot go on with the shard: the stream or its table is gone, or the table is of another stream.
    SourceGone,
    /// The runtime of the handlers runs nothing, so the worker releases the lease for other workers; the processed
    /// records have been checkpointed as far as possible.
    HandlersBlocked,
    /// The application does not want to read this stream any more; the processed records have been checkpointed as far
    /// as possible.
    StreamRemoved,
}
