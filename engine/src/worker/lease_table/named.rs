//! Which streams the rows name.

use super::LeaseTable;
use crate::ids::LeaseKey;
use crate::row::LeaseRow;
use crate::stream_identity::StreamIdentity;
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeMap;

/// The most streams told apart among the names in rows of one stream. A table is of one stream, and by mistake of two.
const MOST: usize = 8;

/// The names in rows, by the stream of their shards. Each name has a row and a scan: the last scan that showed the
/// name, or that had begun before the answer with the name came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Named {
    by_stream: BTreeMap<StreamIx, BTreeMap<StreamIdentity, (LeaseKey, u64)>>,
}

/// The streams named by rows of the last scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::worker) struct Said<'a> {
    /// Some row names this very stream.
    same: bool,
    /// A row that names another stream.
    another: Option<(&'a LeaseKey, &'a StreamIdentity)>,
}

impl<'a> Said<'a> {
    /// Whether some row names this very stream.
    pub(in crate::worker) fn same(&self) -> bool {
        self.same
    }

    /// A row that names another stream.
    pub(in crate::worker) fn another(&self) -> Option<(&'a LeaseKey, &'a StreamIdentity)> {
        self.another
    }
}

impl LeaseTable {
    /// A row was shown.
    pub(super) fn note_name(&mut self, stream: StreamIx, row: &LeaseRow) {
        let Some(identity) = &row.stream else { return };
        let number = self.scans.number();
        let named = self.named.by_stream.entry(stream).or_default();
        if let Some((_, seen)) = named.get_mut(identity) {
            *seen = number;
        } else if named.len() < MOST {
            named.insert(identity.clone(), (row.key.clone(), number));
        }
    }

    /// A whole scan has ended: names not shown by the scan are gone from the table.
    pub(super) fn forget_names(&mut self) {
        let number = self.scans.number();
        for named in self.named.by_stream.values_mut() {
            named.retain(|_, (_, seen)| *seen == number);
        }
    }

    /// The identities in the rows of a stream: this identity, another identity, or both.
    pub(in crate::worker) fn said_of(&self, stream: StreamIx, identity: &StreamIdentity) -> Said<'_> {
        let mut said = Said::default();
        for (named, (lease, _)) in self.named.by_stream.get(&stream).into_iter().flatten() {
            match named.is_another(identity) {
                true => said.another = said.another.or(Some((lease, named))),
                false => said.same = true,
            }
        }
        said
    }
}
