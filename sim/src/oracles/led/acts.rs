//! The acts of our workers on leases and their leftovers, in a fleet with a leader. The leader and the rows decide
//! about each act.

use super::{LATE_LEASES, Led, Life, Truth, is_open};
use crate::oracles::fact::{Owner, Row, Verb};
use crate::oracles::{LifeNo, Property, ShardNo, Time, Verdict};
use leasehold_engine::fleet::WORKER_EXPIRY;
use std::collections::BTreeSet;

impl Led {
    /// A worker of ours wrote a row.
    pub(super) fn judge(
        &self, now: Time, (life, shard, verb): (LifeNo, ShardNo, Verb),
        (before, after): (Option<Row>, Option<Row>), others: &BTreeSet<LifeNo>, verdict: &mut Verdict,
    ) {
        let known = self.lives.get(&life).copied().unwrap_or_default();
        let stopping = known.stopping;
        // With a wrong clock, a new worker takes the reports of live workers for reports of dead workers.
        let judged = !stopping && !known.is_misled;
        if matches!(verb, Verb::Take | Verb::Assign) && judged && self.is_led(now, others) {
            self.judge_early(now, (life, shard), before, others, verdict);
        }
        if !matches!(verb, Verb::Assign | Verb::BeginHandOver) {
            return;
        }
        let to = after.and_then(|row| row.next.or(row.owner));
        if !stopping && !self.leads(now, life) {
            verdict.report(Property::OneLeader, now, || {
                format!(
                    "life {life} gives shard {shard} to {to:?}, and the leader's lock is that of life {:?}",
                    self.lock
                )
            });
        }
        self.judge_target(now, (life, shard), to, verdict);
    }

    /// A worker of ours takes a lease, or assigns the lease to another worker.
    fn judge_early(
        &self, now: Time, (life, shard): (LifeNo, ShardNo), before: Option<Row>, others: &BTreeSet<LifeNo>,
        verdict: &mut Verdict,
    ) {
        let truth = self.rows.get(shard as usize).copied().unwrap_or_default();
        let row = before.filter(is_open);
        if let Some(why) = row.and_then(|row| self.early(now, (life, shard), row, truth, others)) {
            verdict.report(Property::FairShares, now, || {
                format!("life {life} takes or assigns shard {shard}, {why}: it is too early, or another worker's to assign")
            });
        }
    }

    fn judge_target(
        &self, now: Time, (life, shard): (LifeNo, ShardNo), to: Option<Owner>, verdict: &mut Verdict,
    ) {
        let Some(Owner::Life(to)) = to else { return };
        let known = self.lives.get(&to);
        // A report may be executed after the death of its worker.
        let over = known.and_then(|life| Some(life.over?.max(life.reported)));
        let acting = self.lives.get(&life).copied().unwrap_or_default();
        let dead = known.copied().unwrap_or_default();
        if let Some(over) = over.filter(|over| !self.may_count(now, *over, acting, dead)) {
            verdict.report(Property::LeasesOwned, now, || {
                format!(
                    "life {life} gives shard {shard} to life {to}, which ended {} ms ago",
                    (now - over) / 1_000
                )
            });
        }
    }

    /// Whether a worker of ours may take a life for alive, which reported or lived until `over` at the latest.
    fn may_count(&self, now: Time, over: Time, acting: Life, dead: Life) -> bool {
        let sure = acting.unheard.is_none_or(|at| at + LATE_LEASES * self.lease < now);
        // A monotonic clock may not count a standstill.
        let counts_all = acting.since == acting.born;
        if !acting.is_misled && sure && counts_all && over < acting.born {
            // The report is older than the worker: only the time in the report counts.
            let validity = WORKER_EXPIRY.0 + self.answer;
            return now.abs_diff(dead.told) <= validity;
        }
        // A clock ahead by less than a report's validity looks like a right clock. A new worker with a wrong clock of
        // its own takes the report for a new report, and counts the report's validity from its own start.
        let from = match self.wall_steps {
            true if acting.is_misled => acting.born.max(over + WORKER_EXPIRY.0),
            true => over + WORKER_EXPIRY.0,
            false => over,
        };
        now <= from + WORKER_EXPIRY.0 + self.doubt
    }

    /// The reason why a worker must not take or assign a lease yet.
    fn early(
        &self, now: Time, (life, shard): (LifeNo, ShardNo), row: Row, truth: Truth, others: &BTreeSet<LifeNo>,
    ) -> Option<String> {
        let (named, renewed) = (now - truth.named, now - truth.renewed);
        let (me, leads) = (Some(Owner::Life(life)), self.leads(now, life));
        let ms = |us: Time| us / 1_000;
        // A leader ends a hand-over left unfinished by the owner.
        let ends = leads && row.next.is_some() && named >= self.overdue + self.lease;
        let left = match self.has_leader(now, others) {
            true => self.patience,
            false => self.leaderless,
        };
        let patience = match leads {
            true if row.owner.is_some_and(|owner| self.is_marked(shard, owner, others)) => self.lease,
            true => self.silence_of(row, truth, others),
            false => left + self.lease,
        };
        // The report of a stopped or dead worker is removed. The worker then never takes an assigned lease.
        let is_gone = |owner: Owner| match owner {
            Owner::Life(owner) => {
                let known = self.lives.get(&owner);
                known.is_some_and(|known| known.reports.is_none() && known.reported > 0)
            }
            Owner::Stranger => false,
        };
        let leader = self.lock.and_then(|life| self.lives.get(&life));
        let abandoned = leader.is_some_and(|known| known.over.is_some());
        match row.owner {
            owner if owner == me => None,
            Some(owner) if leads && truth.assigned.is_some() && is_gone(owner) => None,
            // Without a leader, each worker may take a free lease.
            None if !leads && !abandoned && named < self.patience => {
                Some(format!("which is free for {} ms", ms(named)))
            }
            Some(owner) if row.next == me && renewed < self.lease && named < self.overdue => {
                Some(format!("which {owner:?} is to hand over to it for {} ms", ms(named)))
            }
            Some(owner) if row.next != me && renewed < patience && !ends => {
                Some(format!("which {owner:?} renewed {} ms ago", ms(renewed)))
            }
            _ => None,
        }
    }

    /// The report of a worker of ours was removed.
    pub(super) fn judge_removal(&self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let known = self.lives.get(&life).copied().unwrap_or_default();
        let runs =
            known.over.is_none() && !known.stopping && !known.stands && !known.blocked && !known.cut_off;
        // A worker with failed requests may have looked dead a moment ago.
        let runs = runs && known.hindered.is_none_or(|at| at + self.doubt < now);
        let is_of = |row: Row| is_open(&row) && row.is_of(life) && row.next.is_none();
        let renews = |truth: &Truth| truth.named < truth.renewed && now < truth.renewed + self.lease;
        let renewed =
            |truth: &Truth| truth.row.is_some_and(is_of) && truth.assigned.is_none() && renews(truth);
        if runs && self.rows.iter().any(renewed) {
            verdict.report(Property::LeasesOwned, now, || {
                format!(
                    "life {life} renews its leases, and its report was removed: leaders assign no lease to it"
                )
            });
        }
    }

    pub(super) fn judge_stop(&self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let known = self.lives.get(&life).copied().unwrap_or_default();
        if known.cut_off || known.unheard.is_some_and(|at| now < at + LATE_LEASES * self.lease) {
            return;
        }
        if known.reports.is_some() {
            verdict.report(Property::StopsCleanly, now, || {
                format!("life {life} stopped, and its report is still there: leases will be assigned to it")
            });
        }
        if self.lock == Some(life) {
            verdict.report(Property::StopsCleanly, now, || {
                format!(
                    "life {life} stopped, and the leader's lock is still its own: nobody leads for a while"
                )
            });
        }
    }
}
