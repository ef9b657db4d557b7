//! The streams of an application with several streams, named as in KCL.
//!
//! In such an application the key of a lease is `<account>:<stream>:<creation time in seconds>:<shard id>`; the part
//! before the shard id is the stream's identifier. Within the engine a shard then has the key of its lease as its name,
//! so shards of two streams never have the same name. Kinesis and the attributes of rows name shards by their ids
//! alone: names are completed when an answer comes in, and cut when a command goes out.

use crate::ids::{LeaseKey, ShardId};
use crate::shard::Shard;
use crate::shown::Shown;
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

/// Account, name and creation time of a text that begins with an identifier, and the rest after another `:`, if any.
fn split(text: &str) -> Option<([&str; 3], Option<&str>)> {
    // Most keys are names of shards, and every scan splits all keys: the first character decides.
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
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

    /// The key of the lease of this stream's shard; also the name of the shard within the engine.
    pub fn lease(&self, shard: &str) -> LeaseKey {
        LeaseKey::from(format!("{}:{shard}", self.0))
    }

    /// The name of a shard of this id.
    pub fn qualified(&self, shard: &ShardId) -> ShardId {
        ShardId::new(self.lease(shard.as_str()))
    }

    /// The shard with all names as the engine names them.
    #[must_use]
    pub fn qualify_shard(&self, shard: Shard) -> Shard {
        Shard {
            id: self.qualified(&shard.id),
            parent: shard.parent.map(|parent| self.qualified(&parent)),
            adjacent_parent: shard.adjacent_parent.map(|parent| self.qualified(&parent)),
            ..shard
        }
    }
}

impl Borrow<str> for StreamId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Shown(&self.0), f)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_is_no_identifier_is_refused_with_the_expectation() {
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
        assert!(StreamId::new("1", "a:2", 3).is_err(), "the name would be another one");
    }

    #[test]
    fn a_key_is_told_from_a_shard_id_by_its_four_parts() {
        assert_eq!(split_key("1:orders:2:shardId-0"), Some(("1:orders:2", "shardId-0")));
        assert_eq!(split_key("1:orders:2:a:b"), Some(("1:orders:2", "a:b")));
        for key in ["shardId-0", "1:orders:2", "1:orders:2:", "x:orders:2:shardId-0"] {
            assert_eq!(split_key(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_name_come_back(
            account in "[0-9]{1,12}",
            name in "[a-zA-Z0-9_.-]{1,128}",
            epoch in 1u64..,
            shard in "[a-zA-Z0-9-]{1,30}",
        ) {
            let id = StreamId::new(&account, &name, epoch).unwrap();
            prop_assert_eq!((id.account(), id.name(), id.epoch()), (&*account, &*name, epoch));
            let key = id.lease(&shard);
            prop_assert_eq!(split_key(key.as_str()), Some((id.as_str(), &*shard)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = (text.parse::<StreamId>(), split_key(&text));
        }
    }
}
