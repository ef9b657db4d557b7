//! News of a stream of a worker with several streams.

use super::Fatal;
use super::kind::Severity;
use super::stop::Count;
use crate::ids::LeaseKey;
use serde::{Deserialize, Serialize};
use std::fmt;

/// News of a stream of a worker with several streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum StreamNews {
    /// The application wants it to be read, too.
    Added { stream: String },
    /// The stream was found, and its shards are read from now on.
    Found { stream: String },
    /// The application does not want it to be read any more.
    Removed { stream: String },
    /// The worker cannot go on with this stream, and reads its remaining streams.
    Lost { stream: String, why: Box<Fatal> },
    /// A new stream has the name of a lost stream. The worker does not read the new stream.
    MadeAnew { stream: String, id: String },
    /// The table has leases of a stream not read by this worker. Empty: leases of an application of one stream.
    NotRead { stream: String, leases: u32 },
    /// The row of a lease was removed, since no worker had read its stream for `stream_cleanup_delay`.
    Forgot { lease: LeaseKey },
    /// The consumer with this ARN is ACTIVE: the shards of the stream are read by subscription from now on.
    Consumer { stream: String, arn: String },
    /// The consumer of the stream does not exist any more. It is registered anew.
    ConsumerLost { stream: String },
    /// The configured ARN names a consumer of another stream, and is not used.
    ConsumerUnfit { stream: String, arn: String },
}

impl StreamNews {
    /// The name and severity of the news.
    pub(super) fn kind(&self) -> (&'static str, Severity) {
        match self {
            StreamNews::Added { .. } => ("stream-added", Severity::Info),
            StreamNews::Found { .. } => ("stream-found", Severity::Info),
            StreamNews::Removed { .. } => ("stream-removed", Severity::Info),
            StreamNews::Lost { .. } => ("stream-lost", Severity::Error),
            StreamNews::MadeAnew { .. } => ("stream-made-anew", Severity::Warning),
            StreamNews::NotRead { .. } => ("stream-not-read", Severity::Warning),
            StreamNews::Forgot { .. } => ("forgot", Severity::Info),
            StreamNews::Consumer { .. } => ("consumer-active", Severity::Info),
            StreamNews::ConsumerLost { .. } => ("consumer-lost", Severity::Warning),
            StreamNews::ConsumerUnfit { .. } => ("consumer-unfit", Severity::Error),
        }
    }

    /// The lease of the news, if the news concerns one lease.
    pub(super) fn lease(&self) -> Option<&LeaseKey> {
        match self {
            StreamNews::Forgot { lease } => Some(lease),
            _ => None,
        }
    }
}

impl fmt::Display for StreamNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamNews::Added { stream } => write!(f, "reads stream {stream}, too, as the application asked"),
            StreamNews::Consumer { stream, arn } => {
                write!(f, "the consumer {arn} of stream {stream} is ACTIVE: shards are read by subscription")
            }
            StreamNews::ConsumerLost { stream } => {
                write!(f, "the consumer of stream {stream} does not exist any more, and is registered anew")
            }
            StreamNews::ConsumerUnfit { stream, arn } => write!(
                f,
                "expected the ARN of a consumer of stream {stream}, found {arn}: no shard is read by subscription until the worker starts \
                 with another consumer"
            ),
            StreamNews::Found { stream } => write!(f, "found stream {stream}"),
            StreamNews::Removed { stream } => write!(
                f,
                "reads stream {stream} no more, as the application asked: its leases are released, and their rows stay in the table"
            ),
            StreamNews::Lost { stream, why } => {
                write!(f, "reads stream {stream} no more, and goes on with its other streams: {why}")
            }
            StreamNews::MadeAnew { stream, id } => write!(
                f,
                "found that a stream was made anew under the name of {stream}, which is lost: it is not read; start the worker again, or \
                 add the stream {id}"
            ),
            StreamNews::NotRead { stream, leases } if stream.is_empty() => write!(
                f,
                "found {} of an application of one stream in the lease table, and leaves them alone: their keys name no stream",
                Count(*leases, "lease", "leases")
            ),
            StreamNews::NotRead { stream, leases } => write!(
                f,
                "found {} of stream {stream} in the lease table, and leaves them alone: this worker does not read that stream",
                Count(*leases, "lease", "leases")
            ),
            StreamNews::Forgot { lease } => write!(
                f,
                "removed the lease of {lease}: no worker has read its stream for the time of `stream_cleanup_delay`"
            ),
        }
    }
}
