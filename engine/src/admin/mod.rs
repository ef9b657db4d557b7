//! Changes of a lease table by an operator: leases are released, put at other checkpoints, created or removed.
//!
//! Functions of rows, pure: a [`View`] of a table leads to a [`Plan`] of [`Step`]s, and the plan can be shown before
//! any write. A step is carried out on the row as read at that moment, by one conditional write ([`Step::change`]).
//!
//! | file | what is in it |
//! |---|---|
//! | `standing` | two views of a table, compared: who lives, and how each lease stands |
//! | `step` | a step, the write that it comes to, and how it ended |
//! | `release` | leases are taken from their owners |
//! | `rewind` | leases are put at other checkpoints |
//! | `naming` | rows that name another stream, and whether the name alone is wrong |

mod naming;
mod release;
mod rewind;
mod standing;
mod step;
#[cfg(test)]
mod tests;

pub use naming::{Misnamed, Naming, misnamed};
pub use release::release;
pub use rewind::{Place, rewind};
pub use standing::{LeaseReport, OwnerReport, Standing, TableReport, report};
pub use step::{Deed, Done, LeftAlone, Plan, Step, Stepped};

use crate::ids::{LeaseKey, WorkerId};
use crate::row::{LeaseRow, RowRead};
use crate::stream_id::{StreamId, split_key};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a table, as shown by one scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The leases.
    pub leases: BTreeMap<LeaseKey, LeaseRow>,
    /// Items of foreign kinds, each with its kind as the item names it.
    pub foreign: BTreeMap<LeaseKey, String>,
    /// Unreadable items that should be leases: the expected and the found value.
    pub unreadable: BTreeMap<LeaseKey, String>,
}

impl FromIterator<RowRead> for View {
    fn from_iter<I: IntoIterator<Item = RowRead>>(rows: I) -> Self {
        let mut view = Self::default();
        for row in rows {
            match row {
                RowRead::Lease(row) => {
                    view.leases.insert(row.key.clone(), row);
                }
                RowRead::Foreign { key, kind, .. } => {
                    view.foreign.insert(key, kind);
                }
                RowRead::Unreadable { key, detail } => {
                    view.unreadable.insert(key, detail);
                }
            }
        }
        view
    }
}

/// The stream identifier in a key.
fn stream_of(key: &LeaseKey) -> Option<&str> {
    split_key(key.as_str()).map(|(stream, _)| stream)
}

impl View {
    /// The stream identifiers in the keys of leases. Absent: for a lease whose key names no stream, as in an
    /// application of one stream.
    pub fn streams(&self) -> BTreeSet<Option<&str>> {
        self.leases.keys().map(stream_of).collect()
    }

    /// Keeps only the leases of this stream of an application with several streams, and the unreadable items of this
    /// stream; without an identifier, the leases whose keys name no stream.
    pub fn keep_stream(&mut self, stream: Option<&StreamId>) {
        let wanted = stream.map(StreamId::as_str);
        self.leases.retain(|key, _| stream_of(key) == wanted);
        self.unreadable.retain(|key, _| stream_of(key) == wanted);
    }
}

/// The leases that an operator means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// All leases.
    All,
    /// The leases of these shards.
    Shards(Vec<LeaseKey>),
    /// The leases of a worker: its name as rows spell it, or without the incarnation (the part behind the last colon).
    Worker(String),
}

impl Which {
    /// Whether a worker's name in a row matches the given name.
    fn is_named(name: &str, found: &WorkerId) -> bool {
        let found = found.as_str();
        found == name || found.rsplit_once(':').is_some_and(|(worker, _)| worker == name)
    }

    /// The chosen leases, ancestors first, and a note for each chosen shard without a lease in the table.
    fn of<'a>(&self, view: &'a View) -> (Vec<&'a LeaseRow>, Vec<LeftAlone>) {
        let mut left = Vec::new();
        let mut rows: Vec<&LeaseRow> = match self {
            Which::All => view.leases.values().collect(),
            Which::Worker(name) => {
                let named = |worker: &Option<WorkerId>| {
                    worker.as_ref().is_some_and(|worker| Self::is_named(name, worker))
                };
                let of = |row: &&LeaseRow| named(&row.owner) || named(&row.handing_over);
                view.leases.values().filter(of).collect()
            }
            Which::Shards(keys) => keys
                .iter()
                .filter_map(|key| {
                    let row = view.leases.get(key);
                    if row.is_none() {
                        left.push(LeftAlone::new(key, absent(view, key)));
                    }
                    row
                })
                .collect(),
        };
        rows.sort_by_key(|row| (generation(view, row), row.key.clone()));
        rows.dedup_by(|one, other| one.key == other.key);
        (rows, left)
    }
}

/// Why the table has no lease with this key.
fn absent(view: &View, key: &LeaseKey) -> String {
    if let Some(detail) = view.unreadable.get(key) {
        return format!("its row cannot be read ({detail}); correct that attribute first");
    }
    if let Some(kind) = view.foreign.get(key) {
        return format!("expected a lease, found an item of another kind ({kind})");
    }
    "expected a lease of this key in the table, found none; `admin status` lists those that there are. The row of a shard that was \
     read to its end is removed some minutes after its children began"
        .to_owned()
}

/// The number of a row's ancestors in the table, one above the other.
fn generation(view: &View, row: &LeaseRow) -> usize {
    let mut generation = 0;
    let mut parents = row.parents.clone();
    // At most the number of leases: rows edited by a person may form a circle.
    while generation < view.leases.len() {
        let above = parents.iter().filter_map(|parent| view.leases.get(parent.as_str()));
        let next: Vec<_> = above.collect();
        if next.is_empty() {
            break;
        }
        generation += 1;
        parents = next.iter().flat_map(|row| row.parents.clone()).collect();
        parents.sort();
        parents.dedup();
    }
    generation
}
