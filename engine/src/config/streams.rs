//! The streams of a worker with several streams, as configured.

use super::{InitialPosition, ReadMode};
use crate::stream_id::StreamId;
use serde::{Deserialize, Serialize};

/// A stream of an application with several streams, and how its shards are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamSource {
    /// The stream.
    pub id: StreamId,
    /// Where its shards without a lease are started; absent: where the option `initial_position` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_position: Option<InitialPosition>,
    /// How its shards are read; absent: as the option `reader.mode` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_mode: Option<ReadMode>,
    /// The name or the ARN of its consumer for subscriptions; absent: as the option `reader.consumer` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
}

impl From<StreamId> for StreamSource {
    fn from(id: StreamId) -> Self {
        Self { id, initial_position: None, reader_mode: None, consumer: None }
    }
}

/// The streams that a worker begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Streams(Vec<StreamSource>);

impl Streams {
    /// The streams, in the order of the configuration.
    pub fn as_slice(&self) -> &[StreamSource] {
        &self.0
    }

    /// Whether the list is empty: then the worker reads the single stream of the option `stream`.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first stream listed twice.
    pub(crate) fn repeated(&self) -> Option<&StreamId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut ids = self.0.iter().map(|source| &source.id);
        ids.find(|id| !seen.insert(*id))
    }
}

impl<S: Into<StreamSource>> FromIterator<S> for Streams {
    fn from_iter<I: IntoIterator<Item = S>>(streams: I) -> Self {
        Self(streams.into_iter().map(Into::into).collect())
    }
}

impl<S: Into<StreamSource>> From<Vec<S>> for Streams {
    fn from(streams: Vec<S>) -> Self {
        streams.into_iter().collect()
    }
}
