//! Rows that are created, filled in or removed beside the lanes of held leases: a queue with a bounded number in flight.

use super::Core;
use super::attempt::MAX_CHASES;
use super::ctx::{Request, Waiter};
use super::view::Lease;
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::TableOp;
use crate::row::{Change, RowRead};
use crate::time::Mono;
use std::collections::VecDeque;

/// One row to be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Chore {
    change: Change,
    why: String,
    /// The held lease whose end waits for this row.
    child_of: Option<u32>,
    /// Not begun or tried again after this: what it was decided on may not be true any more.
    expires: Mono,
    failures: u32,
    /// How often a claim followed the row of an owner that renews it.
    chases: u32,
    /// The row is read first: it has moved on, and nobody said to what; or what we asked for is looked after.
    reads: bool,
    /// The claim is in the row, and its owner has not answered it yet.
    claimed: bool,
    again_at: Mono,
    flight: Option<OpId>,
}

/// The queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Chores {
    slots: Vec<Option<Chore>>,
    free: Vec<u32>,
    waiting: VecDeque<u32>,
    in_flight: u32,
}

impl Chores {
    /// Whether nothing is to be written any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.iter().flatten().all(|chore| chore.claimed)
    }

    /// The leases that are being asked for, or were and are looked at.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &LeaseKey> {
        let chores = self.slots.iter().flatten();
        chores.filter_map(|chore| match &chore.change {
            Change::Claim { key, .. } => Some(key),
            _ => None,
        })
    }

    pub(crate) fn wake_at(&self, max: u32) -> Mono {
        if self.in_flight >= max {
            return Mono::NEVER;
        }
        self.waiting
            .iter()
            .filter_map(|slot| self.slots.get(*slot as usize)?.as_ref())
            .map(|chore| chore.again_at)
            .min()
            .unwrap_or(Mono::NEVER)
    }
}

impl Core {
    /// Queues a row to be written. `expires`: `NEVER` for the children of a held lease, which are given up with it.
    pub(crate) fn add_chore(&mut self, change: Change, why: String, child_of: Option<u32>, expires: Mono) {
        let known = self
            .chores
            .slots
            .iter()
            .flatten()
            .any(|chore| chore.child_of == child_of && chore.change.key() == change.key());
        if known {
            return;
        }
        let chore = Chore {
            change,
            why,
            child_of,
            expires,
            failures: 0,
            chases: 0,
            reads: false,
            claimed: false,
            again_at: self.ctx.now,
            flight: None,
        };
        let slot = match self.chores.free.pop() {
            Some(slot) => slot,
            None => {
                self.chores.slots.push(None);
                (self.chores.slots.len() - 1) as u32
            }
        };
        self.chores.slots[slot as usize] = Some(chore);
        self.chores.waiting.push_back(slot);
    }

    /// Begins what may be begun.
    pub(crate) fn chores_step(&mut self) {
        let now = self.ctx.now;
        let max = self.ctx.config.max_creates;
        let running = self.is_running();
        for _ in 0..self.chores.waiting.len() {
            if self.chores.in_flight >= max {
                return;
            }
            let Some(slot) = self.chores.waiting.pop_front() else {
                return;
            };
            let Some(chore) = self.chores.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
                continue;
            };
            if now < chore.again_at {
                self.chores.waiting.push_back(slot);
                continue;
            }
            let too_late = matches!(chore.change, Change::Claim { .. }) && !running;
            if now >= chore.expires || too_late {
                self.drop_chore(slot);
                continue;
            }
            // Once the belief has run out, others may have ended the shard, processed its children and removed them.
            let parent = chore
                .child_of
                .and_then(|parent| self.view.get(parent)?.tenure.as_ref());
            if parent.is_some_and(|tenure| !tenure.believes(now))
                && !self.ctx.planted.is(Mutant::CreateWhenFenced)
            {
                chore.again_at = now + self.ctx.config.renew_interval;
                self.chores.waiting.push_back(slot);
                continue;
            }
            let op = if chore.reads {
                let key = chore.change.key().clone();
                TableOp::Read { key }
            } else {
                TableOp::Write(chore.change.clone())
            };
            chore.flight = Some(self.ctx.table(Waiter::Chore(slot), op));
            self.chores.in_flight += 1;
        }
    }

    fn drop_chore(&mut self, slot: u32) -> Option<Chore> {
        let chore = self.chores.slots.get_mut(slot as usize)?.take();
        if chore.is_some() {
            self.chores.free.push(slot);
        }
        chore
    }

    /// Forgets the children that a lease was to create: it is not ours any more, and its new owner creates them.
    pub(crate) fn drop_chores_of(&mut self, lease: u32) {
        if self.ctx.planted.is(Mutant::ChildrenOfOthers) {
            return;
        }
        for slot in 0..self.chores.slots.len() {
            let Some(chore) = self.chores.slots[slot]
                .as_mut()
                .filter(|chore| chore.child_of == Some(lease))
            else {
                continue;
            };
            if chore.flight.is_some() {
                chore.child_of = None;
                chore.expires = Mono(0);
            } else {
                self.chores.waiting.retain(|waiting| *waiting != slot as u32);
                self.drop_chore(slot as u32);
            }
        }
    }

    pub(crate) fn chore_done(&mut self, slot: u32, op: OpId, outcome: Outcome) {
        let now = self.ctx.now;
        let Some(chore) = self.chores.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if chore.flight != Some(op) {
            return;
        }
        chore.flight = None;
        self.chores.in_flight -= 1;
        if matches!(chore.change, Change::Claim { .. }) && !self.ctx.planted.is(Mutant::NeverChases) {
            match outcome {
                Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed => {
                    return self.claim_missed(slot, refusal.current);
                }
                Outcome::Applied(Reply::Row(row)) => return self.claim_seen(slot, row.map(|row| *row)),
                Outcome::Applied(_) => return self.claim_written(slot),
                _ => {}
            }
        }
        let settled = match &outcome {
            Outcome::Applied(_) => true,
            // There is such a row already; or the row to be removed or filled in is another by now.
            Outcome::Refused(refusal) => refusal.why == Why::ConditionFailed,
            Outcome::Unknown(_) => self.ctx.planted.is(Mutant::UnknownChildIsCreated),
            _ => false,
        };
        if settled {
            let Some(chore) = self.drop_chore(slot) else {
                return;
            };
            return self.chore_settled(chore, outcome);
        }
        chore.failures += 1;
        let pause = self
            .ctx
            .backoff("chore", chore.change.key().as_str(), chore.failures);
        chore.again_at = now + pause;
        let lease = chore.change.key().clone();
        let what = format!("{} {lease}", chore.change.verb());
        self.chores.waiting.push_back(slot);
        if matches!(&outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            self.ctx.request(Request::DoubtTable);
        }
        self.ctx.tell(Notice::Trouble {
            op,
            lease: Some(lease),
            what,
            how: super::describe(&outcome),
            again_in: pause,
        });
    }

    /// The row has moved on since the scan that a claim relied on: most likely its owner has renewed it, and may do so in the
    /// time of every scan.
    fn claim_missed(&mut self, slot: u32, current: Option<Box<RowRead>>) {
        if let Some(row) = current {
            return self.claim_seen(slot, Some(*row));
        }
        if let Some(chore) = self.chores.slots.get_mut(slot as usize).and_then(Option::as_mut) {
            chore.reads = true;
            self.chores.waiting.push_back(slot);
        }
    }

    /// The row says that we want the lease. Its owner gives it up within about a renewal, and what was given up counts as
    /// expired a lease duration later: a scan may come too late to find it, so the row itself is looked at.
    fn claim_written(&mut self, slot: u32) {
        let now = self.ctx.now;
        let Some(chore) = self.chores.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        let Change::Claim { key, from, .. } = &chore.change else {
            return;
        };
        let (lease, owner) = (key.clone(), from.clone());
        chore.claimed = true;
        chore.reads = true;
        chore.failures = 0;
        chore.again_at = now + self.ctx.config.renew_interval.per(2);
        chore.expires = now + self.ctx.config.lease_duration.times(2);
        self.chores.waiting.push_back(slot);
        self.ctx.tell(Notice::Claimed { lease, owner });
    }

    /// Claims a lease by its row as it is by now, if it is still with the same owner; or takes it, if it was given up to us.
    fn claim_seen(&mut self, slot: u32, row: Option<RowRead>) {
        let now = self.ctx.now;
        let me = &self.ctx.me;
        let Some(chore) = self.chores.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        let Some(RowRead::Lease(row)) = row else {
            self.drop_chore(slot);
            return;
        };
        let Change::Claim {
            counter,
            from,
            checkpoint,
            ..
        } = &mut chore.change
        else {
            return;
        };
        let in_time = now < chore.expires && !row.checkpoint.is_end();
        let kept = row.owner.as_ref() == Some(from) && row.handing_over.is_none();
        let promised = row.owner.as_ref() == Some(me) && row.handing_over.as_ref() == Some(from);
        let ours = row.owner.as_ref() == Some(me) && row.handing_over.is_none();
        if in_time && kept && !chore.claimed && chore.chases < MAX_CHASES {
            (*counter, *checkpoint) = (row.counter, row.checkpoint);
            chore.chases += 1;
            chore.reads = false;
            self.chores.waiting.push_back(slot);
        } else if in_time && promised && chore.claimed {
            chore.again_at = now + self.ctx.config.renew_interval.per(2);
            self.chores.waiting.push_back(slot);
        } else if in_time && promised {
            // An earlier attempt was applied after all.
            self.claim_written(slot);
        } else {
            self.drop_chore(slot);
        }
        let key = row.key.clone();
        self.observe(row, false);
        if ours && in_time {
            self.take_handed(&key);
        }
    }

    /// Takes what its owner gave up to us.
    fn take_handed(&mut self, key: &LeaseKey) {
        let Some(ix) = self.view.find(key.as_str()) else {
            return;
        };
        let free =
            |lease: &Lease| !lease.busy() && lease.row.as_ref().is_some_and(|row| self.knows_lineage(row));
        if self.is_running() && self.view.get(ix).is_some_and(free) {
            let why = self.reason_to_take(ix);
            self.ctx.request(Request::Take(ix, why));
        }
    }

    fn chore_settled(&mut self, chore: Chore, outcome: Outcome) {
        let applied = matches!(outcome, Outcome::Applied(_));
        let lease = chore.change.key().clone();
        match chore.change {
            Change::Create(row) if applied => {
                let checkpoint = row.checkpoint;
                self.ctx.tell(Notice::Created {
                    lease,
                    checkpoint,
                    why: chore.why,
                });
                self.observe(*row, false);
            }
            Change::Delete { .. } if applied => {
                if let Some(ix) = self.view.find(lease.as_str())
                    && self.view.get(ix).is_some_and(|lease| !lease.busy())
                {
                    self.view.forget(ix);
                }
                self.ctx.tell(Notice::Removed { lease });
            }
            _ => {}
        }
        if let Some(parent) = chore.child_of {
            if let Some(tenure) = self.view.get_mut(parent).and_then(|lease| lease.tenure.as_mut()) {
                tenure.children_left = tenure.children_left.saturating_sub(1);
            }
            self.view.arm(parent, self.ctx.now);
        } else if self.chores.is_idle() {
            // What was just created has no owner yet.
            let now = self.ctx.now;
            self.ctx.request(Request::Rescan(now));
        }
    }
}
