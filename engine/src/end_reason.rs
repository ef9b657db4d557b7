//! Why processing of a shard ended: a word of commands and of notices.

use serde::{Deserialize, Serialize};

/// Why processing of a shard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EndReason {
    /// All of it was processed, and its end is durable.
    ShardEnded,
    /// Another worker owns it, or may. Nothing more can be checkpointed.
    LeaseLost,
    /// This worker shuts down; what was processed has been checkpointed as far as possible.
    Shutdown,
    /// It is handed over to another worker; what was processed has been checkpointed as far as possible.
    HandedOver,
    /// The worker cannot go on with it: the stream or its table is gone, or the table is of another stream.
    SourceGone,
    /// The runtime of the handlers runs nothing, so that the lease is let go of for other workers; what was processed has been
    /// checkpointed as far as possible.
    HandlersBlocked,
    /// The application does not want to read this stream any more; what was processed has been checkpointed as far as possible.
    StreamRemoved,
}
