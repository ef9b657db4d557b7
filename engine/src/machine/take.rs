//! Which leases are taken: how they lie, what our share is, and whom something is stolen from.

use super::Core;
use super::ctx::Request;
use super::view::Lease;
use crate::ids::WorkerId;
use crate::mutant::Mutant;
use crate::notice::{Choice, Notice, TakeReason};
use crate::policy::Steal;
use crate::time::Span;
use std::collections::BTreeMap;

/// No more than this many leases are taken after one scan, to spare the table a burst.
const MAX_TAKES: u32 = 1_000;

/// How the leases lie, after a scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    /// Unfinished leases by live owner. We are always in it.
    pub(crate) counts: BTreeMap<WorkerId, u32>,
    /// Unfinished leases nobody lives on.
    pub(crate) available: Vec<u32>,
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
            let handed = lease.row.as_ref().is_some_and(|row| row.handing_over.is_some());
            let coming = lease.may_come_to(me)
                && !self.ctx.planted.is(Mutant::TakesForgotten)
                && !(handed && self.ctx.planted.is(Mutant::HandedOnForgotten));
            if lease.ours() || coming {
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
                _ => balance.available.push(ix),
            }
        }
        let workers = balance.counts.len() as u32;
        balance.target = balance.unfinished.div_ceil(workers);
        if self.ctx.planted.is(Mutant::FloorShare) {
            balance.target = balance.unfinished / workers;
        }
        if self.ctx.config.max_leases > 0 && !self.ctx.planted.is(Mutant::QuotaIgnored) {
            balance.target = balance.target.min(self.ctx.config.max_leases);
        }
        balance
    }

    /// Takes what is our share of what is available, or steals a little from the busiest.
    pub(crate) fn take_share(&mut self, balance: &Balance) {
        if self.ranks() {
            return self.take_turns(balance);
        }
        if balance.unfinished > 0 {
            self.upkeep.shares_since.get_or_insert(self.ctx.now);
        }
        let mine = balance.counts.get(&self.ctx.me).copied().unwrap_or(0);
        let need = balance.target.saturating_sub(mine);
        if need == 0 {
            return;
        }
        if balance.available.is_empty() {
            self.steal(balance, mine, need);
        } else {
            self.take_available(balance, mine, need);
        }
    }

    /// Takes what nobody lives on, up to our share. A part of it may be left to others for a moment: then we look again.
    fn take_available(&mut self, balance: &Balance, mine: u32, need: u32) {
        let now = self.ctx.now;
        let mut order: Vec<(u64, u32)> = balance
            .available
            .iter()
            .filter_map(|ix| {
                let lease = self.view.get(*ix)?;
                Some((self.ctx.draw("take", &lease.key, self.scan.number), *ix))
            })
            .collect();
        order.sort_unstable();
        let all_know = self.upkeep.shares_since.unwrap_or(now) + self.ctx.config.meeting();
        let most = if self.ctx.planted.is(Mutant::TakesInDrops) {
            self.drop_of(&order)
        } else if now < all_know {
            self.leave_half(balance, &mut order)
        } else {
            order.len() as u32
        };
        let most = most.min(need).min(MAX_TAKES);
        let more = need > most && order.len() > most as usize;
        self.tell_choice(balance, mine, None, &order, most as usize);
        for (_, ix) in order.into_iter().take(most as usize) {
            let why = self.reason_to_take(ix);
            self.ctx.request(Request::Take(ix, why));
        }
        if more {
            self.ctx.request(Request::Rescan(all_know.max(now)));
        }
    }

    /// Puts behind the rest, in the order drawn, what is left to others for a moment. Returns how many may be taken at once.
    ///
    /// When workers start together, none sees the others before they have something. So of what another that starts may be
    /// about to take, half is left. That is what no worker ever had; and what was given up, if no other worker is seen to live:
    /// then the whole fleet may be starting. What a worker that died or gave up left to a live fleet is taken at once.
    fn leave_half(&self, balance: &Balance, order: &mut Vec<(u64, u32)>) -> u32 {
        let alone = balance.counts.len() == 1;
        let mut take = false;
        let (at_once, left): (Vec<_>, Vec<_>) = order.drain(..).partition(|(_, ix)| {
            let row = self.view.get(*ix).and_then(|lease| lease.row.as_ref());
            let anybodys = row.is_some_and(|row| row.never_owned() || row.owner.is_none() && alone);
            take ^= anybodys;
            take || !anybodys
        });
        let most = at_once.len() as u32;
        order.extend(at_once);
        order.extend(left);
        most
    }

    /// A planted bug: how many leases are taken at a time, if any of them has no owner.
    fn drop_of(&self, order: &[(u64, u32)]) -> u32 {
        let unowned = |(_, ix): &&(u64, u32)| self.reason_to_take(*ix) == TakeReason::Unowned;
        match order.iter().filter(unowned).count() as u32 {
            0 => order.len() as u32,
            unowned => unowned.div_ceil(2),
        }
    }

    /// Whether our share has room for so many more leases, by all that was shown to us.
    pub(crate) fn has_room(&self, more: u32) -> bool {
        let balance = self.balance();
        let mine = balance.counts.get(&self.ctx.me).copied().unwrap_or(0);
        mine + more <= balance.target
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
        let most = match self.ctx.planted.is(Mutant::StealsAll) {
            true => u32::MAX,
            false => self.ctx.config.max_steals.saturating_sub(self.steals_begun()),
        };
        let spare = spare.min(most) as usize;
        let spare = spare.max(usize::from(self.ctx.planted.is(Mutant::StealFromEqual)));
        // Whoever has some to spare has two more than we at least: one taken leaves us more even, or leases would wander.
        if spare == 0 {
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
        let begun = spare.min(order.len()) as u32;
        self.upkeep.stolen = (self.scan.number, self.steals_begun().saturating_add(begun));
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
            self.ctx.request(Request::Take(ix, why));
        }
    }

    /// So many were begun since the scan that is under way, or the last one, began: it may show them with their old owners.
    fn steals_begun(&self) -> u32 {
        match self.upkeep.stolen {
            (scan, steals) if scan == self.scan.number => steals,
            _ => 0,
        }
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
}
