//! The effect of our own acknowledged writes on a row. By their guards, no write of another worker came between.

use super::{Lease, LeaseTable};
use crate::ids::{LeaseIx, ShardId, WorkerId};
use crate::position::Checkpoint;
use crate::row::{HandsOver, LeaseRow};
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

    /// The moment from which the shard is read.
    pub(in crate::worker) fn began(&self) -> Option<Wall> {
        self.began
    }
}

/// The effect of a take, or of a write on the lane of a held lease.
#[derive(Clone, Debug)]
pub(in crate::worker) enum OnLane<'a> {
    /// We became the owner, and the row says this.
    Took(Says),
    /// The row is ours, and says this.
    Kept(Says),
    /// A write of unknown outcome may have left this counter in the row. If a person's edit sets the counter back, the
    /// counter is not used again: other workers may have seen it, and would take the row for unchanged.
    Perhaps { counter: u64 },
    /// The end of the shard is durable: the row has no owner and names the children.
    Ended { counter: u64, children: &'a [ShardId] },
    /// We gave the lease up, to the next owner if the row names one.
    GivenUp { counter: u64, next_owner: Option<WorkerId> },
    /// Listings deny these parents in the row. The worker ignores the denied parents while the worker has the lease.
    NotParents(&'a BTreeSet<ShardId>),
}

/// The effect of a write beside the lanes.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum BesideLane<'a> {
    /// The row tells this owner to hand the lease over to us. Our write did not show the row's present counter.
    Requested { from: &'a WorkerId },
    /// The row says how much we read of the shard.
    Weighed(u64),
    /// The row has this hash range now: the range was missing or wrong before.
    Range(Option<HashRange>),
    /// The row was removed.
    Removed,
}

impl Lease {
    fn took(&mut self, cx: &Context, says: Says) {
        debug_assert!(self.row.is_some(), "a lease is taken by its row");
        if let Some(row) = &mut self.row {
            row.counter = says.counter;
            row.began = says.began;
            row.owner = Some(cx.me().clone());
            row.handing_over = None;
            row.hands_over = HandsOver::Yes;
            row.throughput = None;
            row.stream = cx.identity_of(&row.key).or(row.stream.take());
        }
        self.note_requested(false, cx.now());
        self.observed_at = cx.now();
        self.highest = self.highest.max(says.counter);
    }

    fn kept(&mut self, says: Says, now: Mono) {
        self.observed_at = now;
        self.highest = self.highest.max(says.counter);
        if let Some(row) = &mut self.row {
            row.counter = says.counter;
            row.checkpoint = says.checkpoint;
            row.began = says.began;
        }
    }

    fn ended(&mut self, counter: u64, children: &[ShardId], now: Mono) {
        self.observed_at = now;
        self.ended_at = now;
        if let Some(row) = &mut self.row {
            row.counter = counter;
            row.checkpoint = Checkpoint::ShardEnd;
            row.owner = None;
            row.handing_over = None;
            row.hands_over = HandsOver::No;
            row.children = children.to_vec();
        }
    }

    fn given_up(&mut self, counter: u64, next_owner: Option<WorkerId>, now: Mono) {
        // While the lease was ours, no answer of a scan counted: our own write shows the row.
        (self.observed_at, self.seen_at, self.moved) = (now, now, false);
        if let Some(row) = &mut self.row {
            row.counter = counter;
            row.hands_over = match next_owner {
                Some(_) => HandsOver::Later,
                None => HandsOver::No,
            };
            row.owner = next_owner;
            row.handing_over = None;
        }
    }

    fn requested(&mut self, from: &WorkerId, me: &WorkerId, now: Mono) {
        let Some(row) = self.row.as_mut().filter(|row| row.owner.as_ref() == Some(from)) else {
            // The last known row names another owner, or no row is known any more.
            return;
        };
        row.owner = Some(me.clone());
        row.handing_over = Some(from.clone());
        self.note_requested(true, now);
    }

    fn row_mut(&mut self) -> Option<&mut LeaseRow> {
        self.row.as_mut()
    }
}

impl LeaseTable {
    /// A write of ours on the row of a lease that we hold, or took just now, had this effect.
    pub(in crate::worker) fn wrote(&mut self, cx: &Context, ix: LeaseIx, effect: OnLane<'_>) {
        let (now, scan) = (cx.now(), self.scans.number());
        let Some(lease) = self.get_mut(ix) else {
            debug_assert!(false, "a lease that we wrote to is known");
            return;
        };
        match effect {
            OnLane::Took(says) => lease.took(cx, says),
            OnLane::Perhaps { counter } => lease.highest = lease.highest.max(counter),
            OnLane::GivenUp { counter, next_owner } => lease.given_up(counter, next_owner, now),
            OnLane::NotParents(denied) => {
                if let Some(row) = lease.row_mut() {
                    row.parents.retain(|parent| !denied.contains(parent));
                }
            }
            OnLane::Kept(says) => {
                let (stream, covered) = (lease.stream, lease.covers());
                let before = lease.row().map(|row| row.checkpoint);
                let first = lease.seen_in(scan);
                lease.kept(says, now);
                let changed = lease.covers() != covered;
                self.cover.0 += u64::from(changed);
                self.scans.count_shown(first);
                if let Some(before) = before {
                    self.named.note_progress(stream, before, says.checkpoint);
                }
            }
            OnLane::Ended { counter, children } => {
                let first = lease.seen_in(scan);
                lease.ended(counter, children, now);
                self.cover.0 += 1;
                self.scans.count_shown(first);
            }
        }
    }

    /// A write of ours beside the lanes had this effect.
    pub(in crate::worker) fn wrote_beside(&mut self, cx: &Context, key: &str, effect: BesideLane<'_>) {
        if matches!(effect, BesideLane::Range(_)) {
            self.cover.0 += 1;
        }
        let Some(ix) = self.find(key) else {
            // The lease was forgotten meanwhile.
            return;
        };
        if matches!(effect, BesideLane::Removed) {
            if self.get(ix).is_some_and(|lease| !lease.busy()) {
                self.forget(ix);
            }
            return;
        }
        let Some(lease) = self.get_mut(ix) else {
            debug_assert!(false, "a lease that was found by its key is there");
            return;
        };
        match effect {
            BesideLane::Requested { from } => lease.requested(from, cx.me(), cx.now()),
            BesideLane::Weighed(throughput) => {
                if let Some(row) = lease.is_ours().then(|| lease.row_mut()).flatten() {
                    row.throughput = Some(throughput);
                }
            }
            BesideLane::Range(range) => {
                if let Some(row) = lease.row_mut() {
                    row.range = range;
                }
            }
            BesideLane::Removed => {}
        }
    }
}
