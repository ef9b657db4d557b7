//! Names and numbers that identify things. Text is shared, so a clone never allocates.
//!
//! Names come from tables, and any program may write to those tables. `Display` is for people: control characters
//! appear as escapes (see [`shown`](crate::shown)). `as_str` is for requests and comparisons.

use crate::shown::Shown;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! shared_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for Arc<str> {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&Shown(&self.0), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

shared_text! {
    /// The primary key of a lease row. In a single-stream application the key is the shard id.
    LeaseKey
}
shared_text! {
    /// A Kinesis shard id, such as `shardId-000000000001`.
    ShardId
}
shared_text! {
    /// The name written by a worker into the rows of its leases. The name includes the incarnation of the process, so a
    /// late write of a former life differs from a write of this life.
    WorkerId
}

impl WorkerId {
    /// The name of one life of a worker: its own name, and the incarnation in hexadecimal.
    pub fn of_life(worker: &str, incarnation: u64) -> Self {
        Self::from(format!("{worker}:{incarnation:x}"))
    }

    /// Whether both are lives of one worker: the names before the incarnations are the same.
    pub(crate) fn is_life_of_same(&self, other: &WorkerId) -> bool {
        let own = self.split_life();
        own.is_some() && own == other.split_life()
    }

    /// The name of the worker, if this text is the name of one life of the worker.
    fn split_life(&self) -> Option<&str> {
        let (worker, incarnation) = self.as_str().rsplit_once(':')?;
        let is_life = !incarnation.is_empty()
            && incarnation.len() <= 16
            && incarnation.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_life.then_some(worker)
    }
}

impl LeaseKey {
    /// The shard this lease is for, in a single-stream application.
    pub fn to_shard(&self) -> ShardId {
        ShardId(self.0.clone())
    }
}

impl ShardId {
    /// The key of this shard's lease, in a single-stream application.
    pub fn to_lease(&self) -> LeaseKey {
        LeaseKey(self.0.clone())
    }
}

/// Stands for one lease within one engine, as long as the engine knows the lease; then perhaps for a different lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseIx(u32);

impl LeaseIx {
    /// The lease in this slot.
    pub(crate) fn from_index(index: usize) -> Self {
        debug_assert!(index <= u32::MAX as usize, "leases are numbered by 32 bits");
        Self(index as u32)
    }

    /// A small number: leases known at the same time have different indices. Every index is below the highest number of
    /// leases ever known at the same time.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The command of an outcome. Unique over all lives of a worker, as the id carries the incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId {
    /// The incarnation of the worker that issued the command.
    pub life: u64,
    /// Counts commands of this life, from 1.
    pub n: u64,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.n)
    }
}

/// Grows with every change of a shard's owner: the lease counter at the take of the present owner.
///
/// A sink may remember the highest token of a shard, and refuse a replaced owner that does not know of its replacement
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(pub u64);
