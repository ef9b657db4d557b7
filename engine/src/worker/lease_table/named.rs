//! Which streams the rows are of: by their names, and by the places in them.

use crate::ids::LeaseKey;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::stream_identity::StreamIdentity;
use crate::worker::stream_set::StreamIx;
use std::collections::{BTreeMap, BTreeSet};

/// The most streams told apart among the names in rows of one stream. A table is of one stream, and by mistake of two.
const MOST: usize = 8;

/// What the rows tell of their streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Named {
    /// The names in rows, by the stream of their shards. Each name has a row and a scan: the last scan that showed the
    /// name, or that had begun before the answer with the name came.
    by_stream: BTreeMap<StreamIx, BTreeMap<StreamIdentity, (LeaseKey, u64)>>,
    /// The streams in whose shards this worker went on after a place from some row: numbers of these rows are the
    /// stream's.
    progressed: BTreeSet<StreamIx>,
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

impl Named {
    /// A place that this worker has processed replaces the checkpoint of a row.
    pub(super) fn note_progress(&mut self, stream: StreamIx, before: Checkpoint, after: Checkpoint) {
        let on = matches!((before, after), (Checkpoint::At(before), Checkpoint::At(after)) if after > before);
        if on && !self.progressed.contains(&stream) {
            self.progressed.insert(stream);
        }
    }

    /// Whether this worker has processed records of a stream after a place that a row of the table said.
    pub(in crate::worker) fn has_progressed(&self, stream: StreamIx) -> bool {
        self.progressed.contains(&stream)
    }

    /// A row was shown, by the scan of this number or beside it.
    pub(super) fn note(&mut self, number: u64, stream: StreamIx, row: &LeaseRow) {
        // Other programs, and older versions, name no stream.
        let Some(identity) = &row.stream else { return };
        let named = self.by_stream.entry(stream).or_default();
        if let Some((_, seen)) = named.get_mut(identity) {
            *seen = number;
        } else if named.len() < MOST {
            named.insert(identity.clone(), (row.key.clone(), number));
        }
    }

    /// A whole scan has ended: names not shown by the scan are gone from the table.
    pub(super) fn scanned(&mut self, number: u64) {
        for named in self.by_stream.values_mut() {
            named.retain(|_, (_, seen)| *seen == number);
        }
    }

    /// The identities in the rows of a stream: this identity, another identity, or both.
    pub(in crate::worker) fn said_of(&self, stream: StreamIx, identity: &StreamIdentity) -> Said<'_> {
        let mut said = Said::default();
        for (named, (lease, _)) in self.by_stream.get(&stream).into_iter().flatten() {
            match named.is_another(identity) {
                true => said.another = said.another.or(Some((lease, named))),
                false => said.same = true,
            }
        }
        said
    }
}
