//! An attempt to become the owner of a lease, and what the outcomes of its writes mean.
//!
//! All its writes carry the same guard until the row is seen to have moved on, so at most one of them is ever applied.

use super::Core;
use super::ctx::{Request, Waiter};
use super::stage::Stage;
use super::stall::Movement;
use super::tenure::{TakeFlight, Taking, Tenure};
use crate::ids::{FencingToken, OpId};
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::{Notice, TakeReason};
use crate::output::TableOp;
use crate::row::{Change, RowRead};
use crate::time::{Mono, Span};

/// A take is tried again this often before it is left to the next scan.
const MAX_TRIES: u32 = 5;
/// A steal, or a claim, follows the row of an owner that renews it meanwhile this often before it is left to the next scan.
pub(crate) const MAX_CHASES: u32 = 5;

impl Core {
    /// Begins to take a lease, by its row as it is known.
    pub(crate) fn take(&mut self, ix: u32, why: TakeReason) {
        let now = self.ctx.now;
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let Some(row) = lease
            .row
            .as_ref()
            .filter(|_| lease.taking.is_none() && lease.tenure.is_none())
        else {
            return;
        };
        lease.taking = Some(Box::new(Taking {
            counter: row.counter,
            next: row.counter,
            from: row.owner.clone(),
            handed: row.handing_over.is_some(),
            checkpoint: row.checkpoint,
            why,
            first_emitted: now,
            failures: 0,
            weighed: self.news,
            chases: 0,
            flight: TakeFlight::Pause(now),
        }));
        self.busy += 1;
        self.take_step(ix);
    }

    /// Emits what an attempt needs next.
    pub(crate) fn take_step(&mut self, ix: u32) {
        let now = self.ctx.now;
        let running = self.is_running();
        let Some(taking) = self.view.get(ix).and_then(|lease| lease.taking.as_ref()) else {
            return;
        };
        let TakeFlight::Pause(until) = taking.flight else {
            return;
        };
        if now < until {
            return self.view.arm(ix, until);
        }
        if !running {
            return self.drop_taking(ix);
        }
        if !self.still_wanted(ix) {
            return;
        }
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let highest = lease.highest;
        let Some(taking) = &mut lease.taking else { return };
        if taking.failures == 0 {
            taking.first_emitted = now;
            taking.next = self.ctx.next_counter(taking.counter, highest);
        }
        let change = Change::Take {
            key: lease.key.clone(),
            counter: taking.counter,
            next: taking.next,
            from: taking.from.clone(),
            checkpoint: taking.checkpoint,
            to: self.ctx.me.clone(),
        };
        taking.flight = TakeFlight::Write(self.ctx.table(Waiter::Lane(ix), TableOp::Write(change)));
    }

    /// Weighs an attempt anew if there is news since it was decided on, and gives it up if it cannot succeed any more or our
    /// share is full by now. An earlier write of it may have been applied: then a scan shows the row as ours.
    fn still_wanted(&mut self, ix: u32) -> bool {
        let news = self.news;
        let Some(lease) = self.view.get_mut(ix) else {
            return false;
        };
        let Some(taking) = &mut lease.taking else {
            return false;
        };
        let known = std::mem::replace(&mut taking.weighed, news) == news;
        if known || self.ctx.planted.is(Mutant::RetriesRegardless) {
            return true;
        }
        let lease_key = lease.key.clone();
        if !lease.may_come_to(&self.ctx.me) {
            let row = lease.row.as_ref();
            let owner = row.and_then(|row| row.actual_owner().cloned());
            self.drop_taking(ix);
            self.ctx.tell(Notice::MissedTake {
                lease: lease_key,
                owner,
            });
            return false;
        }
        let wanted = self.ranks() || self.has_room(0);
        if !wanted {
            self.drop_taking(ix);
            self.ctx.tell(Notice::Spared { lease: lease_key });
        }
        wanted
    }

    fn drop_taking(&mut self, ix: u32) {
        if let Some(lease) = self.view.get_mut(ix)
            && let Some(taking) = lease.taking.take()
        {
            // A refusal that shows the row as another's may be of a second execution: it proves nothing.
            lease.robbed |= matches!(taking.why, TakeReason::Stolen { .. });
            self.busy -= 1;
        }
    }

    pub(crate) fn take_done(&mut self, ix: u32, op: OpId, outcome: Outcome) {
        let Some(taking) = self.view.get(ix).and_then(|lease| lease.taking.clone()) else {
            return;
        };
        let reading = match taking.flight {
            TakeFlight::Write(expected) if expected == op => false,
            TakeFlight::Read(expected) if expected == op => true,
            _ => return,
        };
        match outcome {
            Outcome::Applied(Reply::Row(row)) if reading => self.take_seen(ix, &taking, row.map(|row| *row)),
            Outcome::Applied(_) if !reading => self.own(ix, &taking),
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed && !reading => {
                match refusal.current {
                    Some(row) => self.take_seen(ix, &taking, Some(*row)),
                    // Without the row, a refusal may mean that an earlier attempt of ours was applied.
                    None => self.take_read(ix),
                }
            }
            // A read says what became of a write of unknown outcome.
            Outcome::Unknown(_) if !reading => self.take_read(ix),
            other => {
                if matches!(&other, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
                    self.ctx.request(Request::DoubtTable);
                }
                self.take_again(ix, op, super::describe(&other));
            }
        }
    }

    fn take_read(&mut self, ix: u32) {
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let key = lease.key.clone();
        if let Some(taking) = &mut lease.taking {
            taking.failures += 1;
            taking.flight = TakeFlight::Read(self.ctx.table(Waiter::Lane(ix), TableOp::Read { key }));
        }
    }

    fn take_again(&mut self, ix: u32, op: OpId, how: String) {
        let now = self.ctx.now;
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let Some(taking) = &mut lease.taking else { return };
        taking.failures += 1;
        if taking.failures >= MAX_TRIES {
            // If one of the attempts was or will be applied, the next scan shows the row as ours.
            return self.drop_taking(ix);
        }
        let pause = self.ctx.backoff("take", lease.key.as_str(), taking.failures);
        taking.flight = TakeFlight::Pause(now + pause);
        let key = lease.key.clone();
        self.ctx.tell(Notice::Trouble {
            op,
            what: format!("take {key}"),
            lease: Some(key),
            how,
            again_in: pause,
        });
        self.take_step(ix);
    }

    /// The row as it is now decides what became of our attempts.
    fn take_seen(&mut self, ix: u32, taking: &Taking, row: Option<RowRead>) {
        let Some(lease) = self.view.get(ix) else { return };
        let key = lease.key.clone();
        match row {
            Some(RowRead::Lease(row)) => {
                if row.owner.as_ref() == Some(&self.ctx.me)
                    && row.handing_over.is_none()
                    && row.counter == taking.next
                {
                    // It may as well have been handed over to us after all, and earlier, which leaves a row like ours.
                    if taking.handed {
                        self.drop_taking(ix);
                        self.observe(row, false);
                        return self.take(ix, TakeReason::Ours);
                    }
                    self.ctx.tell(Notice::Adopted {
                        lease: key,
                        counter: row.counter,
                    });
                    return self.own(ix, taking);
                }
                let same = row.owner == taking.from && row.checkpoint == taking.checkpoint;
                if row.counter == taking.counter && same && taking.failures < MAX_TRIES {
                    // Not applied, or not yet. The same guard makes a second attempt safe beside a late first one.
                    if let Some(taking) = self.view.get_mut(ix).and_then(|lease| lease.taking.as_mut()) {
                        taking.flight = TakeFlight::Pause(self.ctx.now);
                    }
                    return self.take_step(ix);
                }
                // Its owner renewed it since the scan, and may do so in the time of every scan.
                let chases = matches!(taking.why, TakeReason::Stolen { .. })
                    && row.owner == taking.from
                    && row.handing_over.is_none()
                    && !row.checkpoint.is_end()
                    && taking.chases < MAX_CHASES
                    && !self.ctx.planted.is(Mutant::NeverChases);
                let owner = row.actual_owner().cloned();
                self.drop_taking(ix);
                self.observe(row, false);
                if chases && (self.has_room(1) || self.ctx.planted.is(Mutant::RetriesRegardless)) {
                    return self.chase(ix, taking);
                }
                self.ctx.tell(Notice::MissedTake { lease: key, owner });
            }
            _ => {
                self.drop_taking(ix);
                self.ctx.tell(Notice::MissedTake {
                    lease: key,
                    owner: None,
                });
            }
        }
    }

    /// Steals a lease by its row as it is by now.
    fn chase(&mut self, ix: u32, before: &Taking) {
        self.take(ix, before.why.clone());
        if let Some(taking) = self.view.get_mut(ix).and_then(|lease| lease.taking.as_mut()) {
            taking.chases = before.chases + 1;
        }
    }

    /// The lease is ours from now on.
    fn own(&mut self, ix: u32, taking: &Taking) {
        let now = self.ctx.now;
        let config = &self.ctx.config;
        let counter = taking.next;
        let token = if self.ctx.planted.is(Mutant::TokenReused) {
            FencingToken(1)
        } else {
            FencingToken(counter)
        };
        // A former owner that may live believes until its next write is refused, at the latest for a lease duration
        // after the take was applied: ours, or an earlier one that was given up and made the row ours all the same.
        let robbed = self.view.get(ix).is_some_and(|lease| lease.robbed);
        let stolen = matches!(taking.why, TakeReason::Stolen { .. });
        let settle = (stolen || robbed && taking.why == TakeReason::Ours)
            && config.settle_stolen
            && !self.ctx.planted.is(Mutant::NoSettle);
        let open_after = if settle { now + config.lease_duration } else { now };
        // Renewals of leases taken together are spread out.
        let renew_interval = config.renew_interval;
        let early = self.view.get(ix).map_or(0, |lease| {
            self.ctx.draw("first renewal", &lease.key, counter) % (renew_interval.0 / 4 + 1)
        });
        let me = self.ctx.me.clone();
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let mut parents = Vec::new();
        if let Some(row) = &mut lease.row {
            parents = row.parents.clone();
            if self.ctx.planted.is(Mutant::OneParentOnly) {
                parents.truncate(1);
            }
            row.counter = counter;
            row.owner = Some(me);
            row.handing_over = None;
        }
        lease.observed_at = now;
        lease.highest = lease.highest.max(counter);
        lease.robbed = false;
        lease.taking = None;
        lease.tenure = Some(Box::new(Tenure {
            token,
            counter,
            next: counter.saturating_add(1),
            durable: taking.checkpoint,
            valid_until: taking.first_emitted + self.ctx.hold,
            fenced: false,
            lost: false,
            next_owner: None,
            flight: None,
            unresolved: None,
            never_adopt: false,
            renew_at: taking.first_emitted + renew_interval - Span(early),
            retry_at: Mono(0),
            failures: 0,
            stage: Stage::Waiting,
            opened: false,
            open_after,
            parents,
            looking: None,
            look_at: Mono(0),
            open_failures: 0,
            told_blocked: false,
            reader: None,
            missing: false,
            childless: false,
            app: None,
            aborted: false,
            attempts: 0,
            deliver_after: Mono(0),
            processed: None,
            flush: false,
            checkpoint_at: now + self.ctx.config.checkpoint_interval,
            children: Vec::new(),
            children_left: 0,
            heirs: Vec::new(),
            co_parents: Vec::new(),
            verdicts: 0,
            bringers: Vec::new(),
            told_waiting: false,
            movement: Movement::new(now),
        }));
        let key = lease.key.clone();
        self.ctx.tell(Notice::Took {
            lease: key,
            token,
            why: taking.why.clone(),
        });
        self.step(ix);
    }
}
