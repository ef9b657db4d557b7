//! The lease table as this worker knows it: rows, the time of each row's last known change, a note of this worker's
//! action on each lease, and the time of the next look at each lease.
//!
//! | file | what |
//! |---|---|
//! | `lease` | a lease |
//! | `note` | this worker's action on a lease, as far as the table knows |
//! | `observe` | the effect of a row shown by an answer |
//! | `scan` | reading the whole table, page by page |
//! | `pace` | how soon the table is read again |
//! | `plain` | owners and their leases; leases plainly of other workers, for cheap counting |
//! | `balance` | counting which worker has how many leases, and which can be taken |
//! | `named` | the streams named by rows |
//! | `lineage` | facts about shards from a listing, missing from rows |
//! | `written` | the effect of our own acknowledged writes on a row |
//! | `unread` | rows of streams that this worker does not read |
//! | `reports` | repeated reports of unreadable and spoiled rows |
//! | `spoiled` | rows whose checkpoints are no places in their shards |
//! | `timers` | deadlines of leases, in order |

mod balance;
mod lease;
mod lineage;
mod named;
mod note;
mod observe;
mod pace;
mod plain;
mod reports;
mod scan;
mod spoiled;
#[cfg(test)]
mod tests;
mod timers;
mod unread;
mod written;

pub(super) use balance::Shares;
pub(super) use lease::Lease;
pub(super) use lineage::learn_lineage;
pub(super) use note::HeldNow;
pub(super) use plain::LeaseOwners;
pub(super) use reports::Reports;
pub(super) use scan::{Scan, Scanned, Scans};
pub(super) use spoiled::mark_spoiled;
pub(super) use written::{BesideLane, OnLane, Says};

use super::kcl3::Kcl3Workers;
use super::stream_set::StreamIx;
use crate::ids::{LeaseIx, LeaseKey};
use crate::position::Checkpoint;
use crate::rank::Turns;
use crate::row::LeaseRow;
pub(super) use crate::self_assignment::Balance;
use crate::time::Mono;
use crate::worker::context::Context;
use lineage::Lineage;
use named::Named;
use plain::PlainLeases;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use timers::Timers;
use unread::Unread;

/// Takes no part in comparisons: answers do not depend on this value.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside<T>(pub(super) T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// All leases, by a small number that never changes while a lease is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeaseTable {
    slots: Vec<Option<Lease>>,
    free: Vec<LeaseIx>,
    by_key: BTreeMap<LeaseKey, LeaseIx>,
    timers: Aside<Timers>,
    touched: Aside<Touched>,
    plain: Aside<PlainLeases>,
    /// Grows when unfinished leases may have come to cover other parts of the hash space.
    cover: Aside<u64>,
    /// How many leases of each stream are known.
    per_stream: Aside<Vec<u32>>,
    /// Acquisitions and held leases that are not over.
    busy: u32,
    /// Grows with every event that may change our share, or our part of the share: a page of a scan, a lease handed
    /// over or assigned to us, and a lease that is ours no more.
    news: u64,
    scans: Scans,
    lineage: Lineage,
    /// Whose turn each shard is, where leases are assigned by rank; absent: not known yet, or assigned otherwise.
    turns: Option<Turns>,
    kcl3: Kcl3Workers,
    unread: Unread,
    named: Named,
}

/// The leases that may have changed since the embedder last read this list. Each lease is in the list at most once,
/// even without a read.
#[derive(Clone, Debug, Default)]
struct Touched {
    list: Vec<LeaseIx>,
    listed: Vec<bool>,
}

impl Touched {
    fn add(&mut self, ix: LeaseIx) {
        let at = ix.index();
        if self.listed.len() <= at {
            self.listed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.listed[at], true) {
            self.list.push(ix);
        }
    }
}

/// The keys follow from the slots, and timers from what each lease is armed for.
impl Hash for LeaseTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.slots, &self.free, self.busy, self.news).hash(state);
        (&self.scans, &self.lineage, &self.turns, &self.kcl3).hash(state);
        (&self.unread, &self.named).hash(state);
    }
}

impl LeaseTable {
    /// An empty table. `completes_rows`: whether rows may lack what only a list of the shards says.
    pub(super) fn new(completes_rows: bool) -> Self {
        Self { lineage: Lineage::new(completes_rows), ..Self::default() }
    }

    /// The number of a lease, new if need be.
    fn intern(&mut self, key: &LeaseKey, stream: StreamIx) -> LeaseIx {
        if let Some(ix) = self.by_key.get(key).copied() {
            debug_assert!(
                self.get(ix).is_some_and(|lease| lease.key() == key),
                "a number stands for the lease of its key"
            );
            return ix;
        }
        let lease = Lease::new(key.clone(), stream);
        let ix = match self.free.pop() {
            Some(ix) => {
                debug_assert!(self.slots[ix.index()].is_none(), "a free slot is empty");
                self.slots[ix.index()] = Some(lease);
                ix
            }
            None => {
                self.slots.push(Some(lease));
                LeaseIx::from_index(self.slots.len() - 1)
            }
        };
        self.by_key.insert(key.clone(), ix);
        let at = stream.index();
        if self.per_stream.0.len() <= at {
            self.per_stream.0.resize(at + 1, 0);
        }
        self.per_stream.0[at] += 1;
        ix
    }

    pub(super) fn find(&self, key: &str) -> Option<LeaseIx> {
        self.by_key.get(key).copied()
    }

    pub(super) fn get(&self, ix: LeaseIx) -> Option<&Lease> {
        self.slots.get(ix.index())?.as_ref()
    }

    fn get_mut(&mut self, ix: LeaseIx) -> Option<&mut Lease> {
        let lease = self.slots.get_mut(ix.index())?.as_mut()?;
        self.touched.0.add(ix);
        self.plain.0.forget(ix);
        Some(lease)
    }

    /// The row of a key, if one is known.
    pub(super) fn row(&self, key: &str) -> Option<&LeaseRow> {
        self.get(self.find(key)?)?.row()
    }

    /// Forgets an idle lease.
    fn forget(&mut self, ix: LeaseIx) {
        let lease = self.slots.get_mut(ix.index()).and_then(Option::take);
        debug_assert!(lease.as_ref().is_some_and(|lease| !lease.busy()), "only an idle lease is forgotten");
        if let Some(lease) = lease {
            let known = self.by_key.remove(lease.key());
            debug_assert_eq!(known, Some(ix), "a key names the lease that has it");
            self.free.push(ix);
            self.touched.0.add(ix);
            self.plain.0.forget(ix);
            self.cover.0 += 1;
            self.per_stream.0[lease.stream.index()] -= 1;
            self.scans.forgot(lease.seen_by);
        }
    }

    /// All leases in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LeaseIx, &Lease)> {
        self.by_key.values().filter_map(|ix| Some((*ix, self.get(*ix)?)))
    }

    /// How many leases are known.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// All leases by their numbers: several times as fast as in key order.
    pub(super) fn unordered(&self) -> impl Iterator<Item = &Lease> {
        self.slots.iter().flatten()
    }

    /// Moves out the numbers of the leases that may have changed since the last time.
    pub(super) fn take_touched(&mut self, into: &mut Vec<LeaseIx>) {
        let Touched { list, listed } = &mut self.touched.0;
        for ix in list.drain(..) {
            listed[ix.index()] = false;
            into.push(ix);
        }
    }

    /// How many acquisitions and held leases are not over.
    pub(super) fn busy(&self) -> u32 {
        debug_assert_eq!(
            self.busy as usize,
            if self.slots.len() > 64 {
                self.busy as usize
            } else {
                self.unordered().filter(|lease| lease.busy()).count()
            },
            "acquisitions and held leases are counted"
        );
        self.busy
    }

    /// A number that has grown if our share, or how much of it we have, may have changed.
    pub(super) fn news(&self) -> u64 {
        self.news
    }

    /// A number that has grown if unfinished leases may cover other parts of the hash space than before.
    pub(super) fn cover(&self) -> u64 {
        self.cover.0
    }

    /// How many leases of a stream are known.
    pub(super) fn len_of(&self, stream: StreamIx) -> u32 {
        self.per_stream.0.get(stream.index()).copied().unwrap_or(0)
    }

    /// All leases of a stream by their numbers.
    pub(super) fn of(&self, stream: StreamIx) -> impl Iterator<Item = &Lease> {
        self.unordered().filter(move |lease| lease.stream == stream)
    }

    /// Forgets the idle leases for which this holds.
    pub(super) fn forget_idle(&mut self, holds: impl Fn(&Lease) -> bool) {
        let all = self.iter().filter(|(_, lease)| !lease.busy() && holds(lease));
        for ix in all.map(|(ix, _)| ix).collect::<Vec<_>>() {
            self.forget(ix);
        }
    }

    /// Rows of streams that are not read.
    pub(super) fn unread(&self) -> &Unread {
        &self.unread
    }

    pub(super) fn scans(&self) -> &Scans {
        &self.scans
    }

    /// The workers of KCL 3.x, as their rows show them.
    pub(super) fn kcl3(&self) -> &Kcl3Workers {
        &self.kcl3
    }

    pub(super) fn kcl3_mut(&mut self) -> &mut Kcl3Workers {
        &mut self.kcl3
    }

    /// Whose turn each shard is, where leases are assigned by rank. `None`: not known yet, or assigned otherwise.
    pub(super) fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    pub(super) fn set_turns(&mut self, turns: Turns) {
        self.turns = Some(turns);
    }

    /// What a list of the shards says of leases.
    pub(super) fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// The streams that rows name, and the streams in which this worker has gone on after a row's place.
    pub(super) fn named(&self) -> &Named {
        &self.named
    }

    /// The owners that rows name, and their leases.
    pub(super) fn owners(&self) -> LeaseOwners<'_> {
        LeaseOwners::of(self)
    }

    /// Which worker has how many leases, and which can be taken.
    pub(super) fn shares<'a>(&'a self, cx: &'a Context) -> Shares<'a> {
        Shares::of(self, cx)
    }
}

/// Deadlines.
impl LeaseTable {
    /// Makes sure that a lease is looked at again at `at` at the latest.
    pub(super) fn wake(&mut self, ix: LeaseIx, at: Mono) {
        let Some(lease) = self.slots.get_mut(ix.index()).and_then(Option::as_mut) else {
            // The lease was forgotten meanwhile.
            return;
        };
        if at < lease.armed {
            lease.armed = at;
            self.timers.0.push(at, ix);
        }
    }

    /// Wakes all busy leases: each is looked at now.
    pub(super) fn wake_busy(&mut self, now: Mono) {
        let busy = self.iter().filter(|(_, lease)| lease.busy()).map(|(ix, _)| ix);
        for ix in busy.collect::<Vec<_>>() {
            self.wake(ix, now);
        }
    }

    /// The next lease whose deadline has come.
    pub(super) fn pop_due(&mut self, now: Mono) -> Option<LeaseIx> {
        while let Some((at, ix)) = self.timers.0.first() {
            let live = self.get(ix).is_some_and(|lease| lease.armed == at);
            if live && at > now {
                return None;
            }
            self.timers.0.pop();
            if live {
                if let Some(lease) = self.get_mut(ix) {
                    lease.armed = Mono::NEVER;
                }
                return Some(ix);
            }
        }
        None
    }

    /// The earliest deadline. Stale entries only make it earlier, never later.
    pub(super) fn wake_at(&mut self) -> Mono {
        while let Some((at, ix)) = self.timers.0.first() {
            if self.get(ix).is_some_and(|lease| lease.armed == at) {
                return at;
            }
            self.timers.0.pop();
        }
        Mono::NEVER
    }
}

/// The leases of a stream, for planning.
pub(super) fn known(leases: &LeaseTable, stream: StreamIx) -> BTreeMap<LeaseKey, Checkpoint> {
    let of = leases.iter().filter(|(_, lease)| lease.stream == stream);
    let rows = of.filter_map(|(_, lease)| lease.row());
    let mut known: BTreeMap<_, _> = rows.map(|row| (row.key.clone(), row.checkpoint)).collect();
    // An item that cannot be read as a lease holds its key all the same, and may stand for an unfinished lease.
    for key in leases.scans.occupied() {
        known.entry(key.clone()).or_insert(Checkpoint::TrimHorizon);
    }
    known
}
