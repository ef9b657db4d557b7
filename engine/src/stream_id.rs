//! The streams of an application that reads several, named as KCL names them.
//!
//! In such an application the key of a lease is `<account>:<stream>:<creation time in seconds>:<shard id>`; what stands before the
//! shard id is the stream's identifier. Within the engine a shard is then named by the key of its lease, so that shards of two
//! streams never have the same name. Kinesis and the attributes of rows name shards by their ids alone: names are completed when an
//! answer comes in ([`StreamId::qualify`]), and cut when a command goes out ([`StreamId::strip`]).

use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::input::{Outcome, Reply};
use crate::output::StreamOp;
use crate::shard::{ChildShard, Shard};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The identifier of a stream: `<account>:<stream>:<creation time in seconds>`, such as `123456789012:orders:1700000000`.
///
/// ```
/// use leasehold_engine::stream_id::StreamId;
///
/// let id: StreamId = "123456789012:orders:1700000000".parse().unwrap();
/// assert_eq!((id.account(), id.name(), id.epoch()), ("123456789012", "orders", 1_700_000_000));
///
/// let error = "orders".parse::<StreamId>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "expected a stream as `<account>:<stream>:<creation time in seconds>`, found \"orders\"",
/// );
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StreamId(Arc<str>);

/// A text that identifies no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadStreamId {
    found: String,
}

impl fmt::Display for BadStreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a stream as `<account>:<stream>:<creation time in seconds>`, found {:?}",
            self.found
        )
    }
}

impl std::error::Error for BadStreamId {}

/// Account, name and creation time of a text that begins with an identifier, and what follows after another `:`, if anything does.
fn split(text: &str) -> Option<([&str; 3], Option<&str>)> {
    let mut parts = text.splitn(4, ':');
    let [account, name, epoch] = [parts.next()?, parts.next()?, parts.next()?];
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let since = number(epoch).then(|| epoch.parse::<u64>().ok()).flatten()?;
    let good = number(account) && !name.is_empty() && since > 0;
    good.then_some(([account, name, epoch], parts.next()))
}

/// The identifier of the stream, and the shard's id, if this is a key of an application of several streams.
pub fn split_key(key: &str) -> Option<(&str, &str)> {
    let (_, shard) = split(key)?;
    let shard = shard.filter(|shard| !shard.is_empty())?;
    Some((&key[..key.len() - shard.len() - 1], shard))
}

impl FromStr for StreamId {
    type Err = BadStreamId;
    fn from_str(text: &str) -> Result<Self, BadStreamId> {
        match split(text) {
            Some((_, None)) => Ok(Self(text.into())),
            _ => Err(BadStreamId { found: text.into() }),
        }
    }
}

impl StreamId {
    /// The identifier of the stream of this name, in this account, created at this time, in seconds since 1970.
    ///
    /// # Errors
    /// If the account is no number, the name is empty or has a `:` in it, or the time is 0.
    pub fn new(account: &str, name: &str, epoch: u64) -> Result<Self, BadStreamId> {
        let text = format!("{account}:{name}:{epoch}");
        match name.contains(':') {
            true => Err(BadStreamId { found: text }),
            false => text.parse(),
        }
    }

    fn part(&self, n: usize) -> &str {
        self.0.split(':').nth(n).unwrap_or_default()
    }

    /// The number of the account.
    pub fn account(&self) -> &str {
        self.part(0)
    }

    /// The stream's name.
    pub fn name(&self) -> &str {
        self.part(1)
    }

    /// When the stream was created, in seconds since 1970, as the fleet was configured.
    pub fn epoch(&self) -> u64 {
        self.part(2).parse().unwrap_or_default()
    }

    /// The identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of the lease of this stream's shard, which is also the name of the shard within the engine.
    pub fn lease(&self, shard: &str) -> LeaseKey {
        LeaseKey::from(format!("{}:{shard}", self.0))
    }

    fn qualified(&self, shard: &ShardId) -> ShardId {
        ShardId::new(self.lease(shard.as_str()))
    }

    fn qualify_shard(&self, shard: Shard) -> Shard {
        Shard {
            id: self.qualified(&shard.id),
            parent: shard.parent.map(|parent| self.qualified(&parent)),
            adjacent_parent: shard.adjacent_parent.map(|parent| self.qualified(&parent)),
            ..shard
        }
    }

    fn qualify_child(&self, child: ChildShard) -> ChildShard {
        ChildShard {
            id: self.qualified(&child.id),
            parents: child
                .parents
                .iter()
                .map(|parent| self.qualified(parent))
                .collect(),
            ..child
        }
    }

    /// The answer of Kinesis about this stream, with its shards named as the engine names them.
    #[must_use]
    pub fn qualify(&self, mut outcome: Outcome) -> Outcome {
        match &mut outcome {
            Outcome::Applied(Reply::Shards(page)) => {
                let shards = std::mem::take(&mut page.shards).into_iter();
                page.shards = shards.map(|shard| self.qualify_shard(shard)).collect();
            }
            Outcome::Applied(Reply::Records(fetched)) => {
                let children = fetched.end.take();
                fetched.end =
                    children.map(|all| all.into_iter().map(|child| self.qualify_child(child)).collect());
            }
            _ => {}
        }
        outcome
    }

    /// The operation with its shard named as Kinesis names it.
    #[must_use]
    pub fn strip(&self, mut op: StreamOp) -> StreamOp {
        match &mut op {
            StreamOp::GetIterator { shard, .. } | StreamOp::GetRecords { shard, .. } => {
                let bare = shard.as_str().strip_prefix(self.as_str());
                let bare = bare.and_then(|rest| rest.strip_prefix(':'));
                debug_assert!(bare.is_some(), "a shard is read of its own stream");
                if let Some(bare) = bare.map(ShardId::from) {
                    *shard = bare;
                }
            }
            StreamOp::Describe | StreamOp::ListShards { .. } => {}
        }
        op
    }
}

impl Borrow<str> for StreamId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A stream of an application that reads several, and where its shards are started.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamSource {
    /// The stream.
    pub id: StreamId,
    /// Where its shards without a lease are started; absent: where the option `initial_position` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_position: Option<InitialPosition>,
}

impl From<StreamId> for StreamSource {
    fn from(id: StreamId) -> Self {
        Self {
            id,
            initial_position: None,
        }
    }
}

/// The streams that a worker begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Streams(Vec<StreamSource>);

impl Streams {
    /// The streams, in the order in which they were given.
    pub fn as_slice(&self) -> &[StreamSource] {
        &self.0
    }

    /// Whether there is none: then the worker reads the one stream that the option `stream` names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first stream that is there twice.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_identifier_is_refused_with_what_was_expected() {
        for text in [
            "",
            "orders",
            "1:orders",
            "1:orders:0",
            "1:orders:-1",
            "1:orders:+1",
            "a:orders:1",
            ":orders:1",
            "1::1",
            "1:orders:1:",
            "1:orders:1:shardId-0",
            "1:orders:99999999999999999999999",
        ] {
            let error = text.parse::<StreamId>().unwrap_err().to_string();
            assert!(error.contains(&format!("found {text:?}")), "{error}");
        }
        assert!(
            StreamId::new("1", "a:2", 3).is_err(),
            "the name would be another one"
        );
    }

    #[test]
    fn a_key_is_told_from_a_shard_id_by_its_four_parts() {
        assert_eq!(
            split_key("1:orders:2:shardId-0"),
            Some(("1:orders:2", "shardId-0"))
        );
        assert_eq!(split_key("1:orders:2:a:b"), Some(("1:orders:2", "a:b")));
        for key in ["shardId-0", "1:orders:2", "1:orders:2:", "x:orders:2:shardId-0"] {
            assert_eq!(split_key(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn what_is_completed_comes_back_when_it_is_cut(
            account in "[0-9]{1,12}",
            name in "[a-zA-Z0-9_.-]{1,128}",
            epoch in 1u64..,
            shard in "[a-zA-Z0-9-]{1,30}",
        ) {
            let id = StreamId::new(&account, &name, epoch).unwrap();
            prop_assert_eq!((id.account(), id.name(), id.epoch()), (&*account, &*name, epoch));
            let key = id.lease(&shard);
            prop_assert_eq!(split_key(key.as_str()), Some((id.as_str(), &*shard)));
            let from = crate::output::IteratorFrom::Latest;
            let op = StreamOp::GetIterator { shard: key.to_shard(), from };
            let bare = StreamOp::GetIterator { shard: ShardId::from(&*shard), from };
            prop_assert_eq!(id.strip(op), bare);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = (text.parse::<StreamId>(), split_key(&text));
        }
    }
}
