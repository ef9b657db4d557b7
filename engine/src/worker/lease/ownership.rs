//! Which lease is held, and since when its shard may be opened.

use crate::ids::{FencingToken, LeaseIx, LeaseKey};
use crate::time::Mono;
use crate::worker::stream_set::StreamIx;

/// What stays the same from the take of a lease to its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ownership {
    ix: LeaseIx,
    stream: StreamIx,
    key: LeaseKey,
    token: FencingToken,
    /// When a former owner must know of its loss of the lease.
    open_after: Mono,
}

impl Ownership {
    /// The ownership of a lease. `open_after`: when a former owner must know of its loss.
    pub(super) fn new(
        ix: LeaseIx, stream: StreamIx, key: LeaseKey, token: FencingToken, open_after: Mono,
    ) -> Self {
        Self { ix, stream, key, token, open_after }
    }

    pub(super) fn ix(&self) -> LeaseIx {
        self.ix
    }

    pub(super) fn stream(&self) -> StreamIx {
        self.stream
    }

    pub(super) fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// The key of the lease, for commands and notices.
    pub(super) fn lease(&self) -> LeaseKey {
        self.key.clone()
    }

    pub(super) fn token(&self) -> FencingToken {
        self.token
    }

    /// The shard is not opened, and the lease not given up, before this: a former owner may still believe.
    pub(super) fn open_after(&self) -> Mono {
        self.open_after
    }
}
