//! The effect of our own acknowledged writes on a row. By their guards, no write of another worker came between.

use super::LeaseTable;
use crate::ids::{LeaseIx, ShardId, WorkerId};
use crate::position::Checkpoint;
use crate::row::HandsOver;
use crate::shard::HashRange;
use crate::time::{Mono, Wall};
use crate::worker::context::Context;
use std::collections::BTreeSet;

/// What our own write left in a row.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct Says {
    counter: u64,
    checkpoint: Checkpoint,
    began: Option<Wall>,
}

impl Says {
    pub(in crate::worker) fn new(counter: u64, checkpoint: Checkpoint, began: Option<Wall>) -> Self {
        Self { counter, checkpoint, began }
    }

    /// How far the shard was processed.
    pub(in crate::worker) fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// The moment from which the shard is read.
    pub(in crate::worker) fn began(&self) -> Option<Wall> {
        self.began
    }
}

impl LeaseTable {
    /// Listings deny these parents in the row of a held lease: nothing follows from them while this worker has the lease.
    pub(in crate::worker) fn deny_parents(&mut self, ix: LeaseIx, denied: &BTreeSet<ShardId>) {
        let row = self.get_mut(ix).and_then(|lease| lease.row.as_mut());
        if let Some(row) = row {
            row.parents.retain(|parent| !denied.contains(parent));
        }
    }

    /// We became the owner, with this counter.
    pub(in crate::worker) fn became_ours(&mut self, cx: &Context, ix: LeaseIx, says: &Says) {
        let now = cx.now();
        let Some(lease) = self.get_mut(ix) else { return };
        debug_assert!(lease.row.is_some(), "a lease is taken by its row");
        if let Some(row) = &mut lease.row {
            row.counter = says.counter;
            row.began = says.began;
            row.owner = Some(cx.me().clone());
            row.handing_over = None;
            row.hands_over = HandsOver::Yes;
            row.throughput = None;
            row.stream = cx.identity_of(&row.key).or(row.stream.take());
        }
        lease.note_promise(false, now);
        lease.observed_at = now;
        lease.highest = lease.highest.max(says.counter);
    }

    /// The row tells its owner to hand the lease over to us. Our write did not show the row's present counter.
    pub(in crate::worker) fn promised_to_us(&mut self, key: &str, from: &WorkerId, me: &WorkerId, now: Mono) {
        let Some(lease) = self.find(key).and_then(|ix| self.get_mut(ix)) else {
            return;
        };
        let Some(row) = lease.row.as_mut().filter(|row| row.owner.as_ref() == Some(from)) else {
            return;
        };
        row.owner = Some(me.clone());
        row.handing_over = Some(from.clone());
        lease.note_promise(true, now);
    }

    /// The row is ours, and says this.
    pub(in crate::worker) fn is_still_ours(&mut self, ix: LeaseIx, says: &Says, now: Mono) {
        let scan = self.scans.number();
        let Some(lease) = self.get_mut(ix) else { return };
        let covered = lease.covers();
        let (stream, before) = (lease.stream, lease.row.as_ref().map(|row| row.checkpoint));
        lease.observed_at = now;
        let first = lease.seen_in(scan);
        lease.highest = lease.highest.max(says.counter);
        if let Some(row) = &mut lease.row {
            row.counter = says.counter;
            row.checkpoint = says.checkpoint;
            row.began = says.began;
        }
        let changed = lease.covers() != covered;
        self.cover.0 += u64::from(changed);
        self.scans.count_shown(first);
        if let Some(before) = before {
            self.note_progress(stream, before, says.checkpoint());
        }
    }

    /// A write of unknown outcome may have left this counter in the row. If a person's edit sets the counter back, the
    /// counter is not used again: other workers may have seen it, and would take the row for unchanged.
    pub(in crate::worker) fn may_have_had(&mut self, ix: LeaseIx, counter: u64) {
        if let Some(lease) = self.get_mut(ix) {
            lease.highest = lease.highest.max(counter);
        }
    }

    /// The end of the shard is durable: the row has no owner and names the children.
    pub(in crate::worker) fn ended(&mut self, ix: LeaseIx, counter: u64, children: &[ShardId], now: Mono) {
        let scan = self.scans.number();
        let Some(lease) = self.get_mut(ix) else { return };
        lease.observed_at = now;
        lease.ended_at = now;
        let first = lease.seen_in(scan);
        if let Some(row) = &mut lease.row {
            row.counter = counter;
            row.checkpoint = Checkpoint::ShardEnd;
            row.owner = None;
            row.handing_over = None;
            row.hands_over = HandsOver::No;
            row.children = children.to_vec();
        }
        self.cover.0 += 1;
        self.scans.count_shown(first);
    }

    /// We gave the lease up, to the next owner if the row names one.
    pub(in crate::worker) fn given_up(
        &mut self, ix: LeaseIx, counter: u64, next_owner: Option<WorkerId>, now: Mono,
    ) {
        let Some(lease) = self.get_mut(ix) else { return };
        (lease.observed_at, lease.moved) = (now, false);
        if let Some(row) = &mut lease.row {
            row.counter = counter;
            row.hands_over = match next_owner {
                Some(_) => HandsOver::Later,
                None => HandsOver::No,
            };
            row.owner = next_owner;
            row.handing_over = None;
        }
    }

    /// The row says how much we read of the shard.
    pub(in crate::worker) fn weighed(&mut self, key: &str, throughput: u64) {
        let lease = self.find(key).and_then(|ix| self.get_mut(ix));
        if let Some(row) = lease.filter(|lease| lease.is_ours()).and_then(|lease| lease.row.as_mut()) {
            row.throughput = Some(throughput);
        }
    }

    /// The row has this hash range now: the range was missing or wrong before, and a write corrected it.
    pub(in crate::worker) fn set_range(&mut self, key: &str, range: Option<HashRange>) {
        let lease = self.find(key).and_then(|ix| self.get_mut(ix));
        if let Some(row) = lease.and_then(|lease| lease.row.as_mut()) {
            row.range = range;
        }
        self.cover.0 += 1;
    }

    /// The row of a lease was removed by us.
    pub(in crate::worker) fn removed(&mut self, key: &str) {
        if let Some(ix) = self.find(key)
            && self.get(ix).is_some_and(|lease| !lease.busy())
        {
            self.forget(ix);
        }
    }
}
