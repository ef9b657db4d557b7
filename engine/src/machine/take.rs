//! Becoming the owner of leases: which, and how it goes.

use super::Core;
use super::ctx::Waiter;
use super::stage::Stage;
use super::stall::Movement;
use super::tenure::{TakeFlight, Taking, Tenure};
use super::view::Lease;
use crate::ids::{FencingToken, OpId, WorkerId};
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::{Choice, Notice, TakeReason};
use crate::output::TableOp;
use crate::policy::Steal;
use crate::row::{Change, RowRead};
use crate::time::{Mono, Span};
use std::collections::BTreeMap;

/// A take is tried again this often before it is left to the next scan.
const MAX_TRIES: u32 = 5;
/// A steal follows the row of an owner that renews it meanwhile this often before it is left to the next scan.
const MAX_CHASES: u32 = 5;
/// No more than this many leases are taken after one scan, to spare the table a burst.
const MAX_TAKES: u32 = 1_000;

/// How the leases lie, after a scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    /// Unfinished leases by live owner. We are always in it.
    pub(crate) counts: BTreeMap<WorkerId, u32>,
    /// Unfinished leases nobody lives on.
    pub(crate) available: Vec<u32>,
    /// How many of those had no owner at all.
    pub(crate) unowned: u32,
    /// All unfinished leases.
    pub(crate) unfinished: u32,
    /// How many of them one worker should have.
    pub(crate) target: u32,
}

impl Core {
    /// Counts who has what. A lease counts as expired when an answer showed its row unchanged that was asked for a lease
    /// duration after the first one that showed it so had arrived.
    pub(crate) fn balance(&self) -> Balance {
        let mut balance = Balance::default();
        let me = &self.ctx.me;
        balance.counts.insert(me.clone(), 0);
        for (ix, lease) in self.view.iter() {
            let Some(row) = lease.row.as_ref().filter(|row| !row.checkpoint.is_end()) else {
                continue;
            };
            balance.unfinished += 1;
            if lease.ours() || lease.taking.is_some() {
                if let Some(mine) = balance.counts.get_mut(me) {
                    *mine += 1;
                }
                continue;
            }
            let patience = if self.ctx.planted.is(Mutant::ExpireEarly) {
                self.ctx.config.lease_duration.per(2)
            } else {
                self.ctx.config.lease_duration
            };
            let mut expired = lease.idle() >= patience && !self.ctx.planted.is(Mutant::NeverExpire);
            if self.ctx.planted.is(Mutant::ExpiryByTheirClock) {
                expired = row.counter <= (self.ctx.wall.0.max(0) as u64).saturating_mul(1_000_000);
            }
            match row.actual_owner() {
                Some(owner) if !expired && owner != me => {
                    *balance.counts.entry(owner.clone()).or_default() += 1;
                }
                // A lease we are still letting go of cannot be taken again before that is over.
                _ if lease.busy() => {}
                _ if !self.knows_lineage(row) => {}
                None if self.ctx.planted.is(Mutant::NoTakeOfUnowned) => {}
                owner => {
                    balance.unowned += u32::from(owner.is_none());
                    balance.available.push(ix);
                }
            }
        }
        let workers = balance.counts.len() as u32;
        balance.target = balance.unfinished.div_ceil(workers);
        if self.ctx.planted.is(Mutant::FloorShare) {
            balance.target = balance.unfinished / workers;
        }
        if self.ctx.config.max_leases > 0 {
            balance.target = balance.target.min(self.ctx.config.max_leases);
        }
        balance
    }

    /// Takes what is our share of what is available, or steals a little from the busiest.
    pub(crate) fn take_share(&mut self, balance: &Balance) {
        if self.ranks() {
            return self.take_turns(balance);
        }
        let mine = balance.counts.get(&self.ctx.me).copied().unwrap_or(0);
        let need = balance.target.saturating_sub(mine);
        if need == 0 {
            return;
        }
        if !balance.available.is_empty() {
            let mut order: Vec<(u64, u32)> = balance
                .available
                .iter()
                .filter_map(|ix| {
                    let lease = self.view.get(*ix)?;
                    Some((self.ctx.draw("take", &lease.key, self.scan.number), *ix))
                })
                .collect();
            order.sort_unstable();
            // When workers start together, none sees the others yet. Taking half of what nobody ever had, and looking
            // again, lets them meet before one has everything.
            let quota = if balance.unowned > 0 {
                balance.unowned.div_ceil(2)
            } else {
                need
            };
            let now = need.min(quota.clamp(1, MAX_TAKES)) as usize;
            let more = need as usize > now && order.len() > now;
            self.tell_choice(balance, mine, None, &order, now);
            for (_, ix) in order.into_iter().take(now) {
                let why = self.reason_to_take(ix);
                self.take(ix, why);
            }
            if more {
                let soon = self
                    .ctx
                    .config
                    .retry_min
                    .times(5)
                    .min(self.ctx.config.scan_interval);
                let at = self.ctx.now + soon;
                self.scan.hurry(at);
            }
            return;
        }
        self.steal(balance, mine, need);
    }

    /// KCL's rule: from the most loaded worker, what it has above its share, or one if we lack two and more.
    fn steal(&mut self, balance: &Balance, mine: u32, need: u32) {
        let policy = self.ctx.config.policies.steal;
        let claimed = match policy {
            Steal::Take => 0,
            Steal::Claim => {
                self.forget_claims();
                self.claimed()
            }
        };
        let (mine, need) = (mine + claimed, need.saturating_sub(claimed));
        if need == 0 || self.ctx.planted.is(Mutant::NeverSteals) {
            return;
        }
        let busiest = balance
            .counts
            .iter()
            .filter(|(owner, _)| **owner != self.ctx.me)
            .max_by_key(|(_, count)| **count);
        let Some((victim, theirs)) = busiest else { return };
        let mut spare = need.min(theirs.saturating_sub(balance.target));
        if spare == 0 && need > 1 && *theirs >= balance.target {
            spare = 1;
        }
        let spare = spare.min(self.ctx.config.max_steals) as usize;
        let spare = spare.max(usize::from(self.ctx.planted.is(Mutant::StealFromEqual)));
        // Taking one more must leave the two of us more even, or leases would wander for ever.
        let evenly = self.ctx.planted.is(Mutant::StealFromEqual);
        if (spare == 0 || *theirs <= mine + 1) && !(evenly && *theirs > 0) {
            return;
        }
        let mut order: Vec<(u64, u32)> = self
            .view
            .iter()
            .filter(|(_, lease)| !lease.busy() && lease.unfinished())
            .filter(|(_, lease)| policy == Steal::Take || self.may_claim(lease))
            .filter(|(_, lease)| {
                lease
                    .row
                    .as_ref()
                    .is_some_and(|row| row.handing_over.is_none() && row.owner.as_ref() == Some(victim))
            })
            .map(|(ix, lease)| (self.ctx.draw("steal", &lease.key, self.scan.number), ix))
            .collect();
        order.sort_unstable();
        self.tell_choice(balance, mine, Some(victim), &order, spare);
        for (_, ix) in order.into_iter().take(spare) {
            if policy == Steal::Claim {
                self.claim(ix);
                continue;
            }
            let why = TakeReason::Stolen {
                owner: victim.clone(),
                theirs: *theirs,
                ours: mine,
                target: balance.target,
            };
            self.take(ix, why);
        }
        self.chores_step();
    }

    /// Says what was weighed, the leases in the order drawn; the first `now` are taken.
    pub(crate) fn tell_choice(
        &mut self,
        balance: &Balance,
        mine: u32,
        victim: Option<&WorkerId>,
        order: &[(u64, u32)],
        now: usize,
    ) {
        let (chosen, left) = order.split_at(now.min(order.len()));
        if chosen.is_empty() {
            return;
        }
        let keys = |part: &[(u64, u32)]| {
            let leases = part.iter().filter_map(|(_, ix)| self.view.get(*ix));
            leases.map(|lease| lease.key.clone()).take(Choice::MOST).collect()
        };
        let mut counts: Vec<(WorkerId, u32)> = balance.counts.clone().into_iter().collect();
        counts.sort_by(|(a, some), (b, other)| other.cmp(some).then_with(|| a.cmp(b)));
        let us = counts.iter().position(|(worker, _)| *worker == self.ctx.me);
        if let Some(us) = us.filter(|us| *us >= Choice::MOST) {
            counts.swap(us, Choice::MOST - 1);
        }
        counts.truncate(Choice::MOST);
        let choice = Choice {
            taken: chosen.len() as u32,
            chosen: keys(chosen),
            left: keys(left),
            candidates: order.len() as u32,
            victim: victim.cloned(),
            counts,
            workers: balance.counts.len() as u32,
            unfinished: balance.unfinished,
            target: balance.target,
            ours: mine,
        };
        self.ctx.tell(Notice::Chose(Box::new(choice)));
    }

    pub(crate) fn reason_to_take(&self, ix: u32) -> TakeReason {
        let lease = self.view.get(ix);
        match lease.and_then(|lease| lease.row.as_ref()?.actual_owner()) {
            None => TakeReason::Unowned,
            Some(owner) if *owner == self.ctx.me => TakeReason::Ours,
            Some(owner) => TakeReason::Expired {
                owner: owner.clone(),
                idle: lease.map_or(Span::ZERO, Lease::idle),
            },
        }
    }

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
            checkpoint: row.checkpoint,
            why,
            first_emitted: now,
            failures: 0,
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
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        let Some(taking) = &mut lease.taking else { return };
        let TakeFlight::Pause(until) = taking.flight else {
            return;
        };
        if now < until {
            return self.view.arm(ix, until);
        }
        if !running {
            return self.drop_taking(ix);
        }
        if taking.failures == 0 {
            taking.first_emitted = now;
            taking.next = self.ctx.next_counter(taking.counter);
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

    fn drop_taking(&mut self, ix: u32) {
        if let Some(lease) = self.view.get_mut(ix)
            && let Some(taking) = lease.taking.take()
        {
            lease.robbed |= taking.failures > 0 && matches!(taking.why, TakeReason::Stolen { .. });
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
                    self.doubt_table();
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
        let what = format!("take {}", lease.key);
        self.ctx.tell(Notice::Trouble {
            op,
            what,
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
                    && taking.chases < MAX_CHASES;
                let owner = row.actual_owner().cloned();
                self.drop_taking(ix);
                self.observe(row, false);
                if chases {
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
