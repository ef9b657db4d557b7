//! The leases of a dead worker, and their heirs. The leader assigns the leases; without a leader, the followers take
//! the leases. The leader also ends the unfinished hand-overs of live workers.

use super::{Led, Life, Truth, is_open};
use crate::oracles::fact::{Owner, Row};
use crate::oracles::{LifeNo, Property, ShardNo, Time, Verdict};
use leasehold_engine::fleet::LEADER_LEASE;
use std::collections::BTreeSet;

impl Led {
    /// Whether a worker may lead, as far as the fleet knows.
    pub(super) fn has_leader(&self, now: Time, others: &BTreeSet<LifeNo>) -> bool {
        let Some((life, known)) = self.lock.and_then(|life| Some((life, self.lives.get(&life)?))) else {
            return false;
        };
        let lasts = match others.contains(&life) {
            true => super::KCL_LOCK_US,
            false => LEADER_LEASE.0,
        };
        // A clock may be fast, and a report may count for less than its time.
        let renews = now < self.beaten + lasts / 2;
        let idle = known.idle.is_some_and(|last| last + self.doubt > now);
        // Where clocks are set, a report is no proof of life.
        let told = !self.wall_steps || self.owns(now, life);
        // A new holder of the lock is not yet known as the leader, nor is a leader without a report.
        let reported = known.reports.is_some_and(|(since, _)| since + self.doubt < now);
        let seen = told && reported && self.locked + self.doubt < now;
        known.over.is_none() && !known.stands && !known.cut_off && !idle && renews && seen
    }

    /// The time for which a leader leaves a lease to its owner. An owner that wrote its own name into the row is a
    /// worker of ours and renews the lease.
    pub(super) fn silence_of(&self, row: Row, truth: Truth, others: &BTreeSet<LifeNo>) -> Time {
        match row.owner {
            Some(Owner::Life(owner)) if truth.assigned.is_none() && !others.contains(&owner) => self.lease,
            _ => self.silence,
        }
    }

    /// Whether the row may say that its owner has taken the lease: a worker of ours took the lease, now or earlier.
    pub(super) fn is_marked(&self, shard: ShardNo, owner: Owner, others: &BTreeSet<LifeNo>) -> bool {
        let Owner::Life(owner) = owner else { return false };
        !others.contains(&owner) && self.takers.contains(&(shard, owner))
    }

    /// Whether a life runs unhindered, and has scanned for long enough.
    pub(super) fn is_ready(&self, now: Time, known: &Life) -> bool {
        let runs = known.over.is_none() && !known.stopping && !known.stands && !known.cut_off;
        runs && known.since + self.doubt < now
            && known.scanned + self.doubt > now
            && known.hindered.is_none_or(|at| at + self.doubt < now)
    }

    /// A lease of a dead worker gets another owner in time.
    pub(super) fn look_for_heirs(&mut self, now: Time, others: &BTreeSet<LifeNo>, verdict: &mut Verdict) {
        if !self.is_led(now, others) {
            return;
        }
        let ready = |life: LifeNo, known: &Life| !others.contains(&life) && self.is_ready(now, known);
        let holder = self.lock.and_then(|life| Some((life, self.lives.get(&life)?)));
        let eldest = || {
            let ready = self.lives.iter().filter(|(life, known)| ready(**life, known));
            ready.map(|(_, known)| known.since).min()
        };
        let (leads, from) = match holder {
            Some((life, known)) if ready(life, known) => (true, self.locked),
            // Our leader's time is over. Another worker takes the lock after the lock has stood still.
            Some((life, known)) if !others.contains(&life) => {
                let Some((over, since)) = known.over.zip(eldest()) else {
                    return;
                };
                (false, over.max(since))
            }
            _ => return,
        };
        let ended = |owner: LifeNo| self.lives.get(&owner).and_then(|life| life.over);
        let rows = self.rows.iter().enumerate();
        let left = rows.filter_map(|(shard, truth)| {
            let row = truth.row.filter(is_open)?;
            let Some(Owner::Life(owner)) = row.owner else {
                return None;
            };
            let stood = now - truth.renewed.max(truth.named).max(ended(owner)?).max(from);
            let allowed = match leads {
                true => self.silence_of(row, *truth, others),
                false => self.lease + self.leaderless,
            };
            Some((shard, owner, stood, allowed + self.doubt))
        });
        let left: Vec<_> = left.filter(|(_, _, stood, allowed)| stood > allowed).collect();
        if leads {
            self.look_for_hand_overs(now, verdict);
        }
        for (shard, owner, stood, allowed) in left {
            self.rows[shard].named = now;
            verdict.report(Property::LeasesOwned, now, || {
                format!(
                    "shard {shard} is still life {owner}'s, which ended: it has stood for {} ms, and a worker of ours is to \
                     assign or to take it within {} ms",
                    stood / 1_000,
                    allowed / 1_000
                )
            });
        }
    }

    /// A hand-over ends, if a worker of ours leads.
    fn look_for_hand_overs(&mut self, now: Time, verdict: &mut Verdict) {
        let allowed = self.ends_by + self.doubt;
        for (shard, truth) in self.rows.iter_mut().enumerate() {
            let Some(row) = truth.row.filter(is_open).filter(|row| row.next.is_some()) else {
                continue;
            };
            let stood = now - truth.named.max(self.locked);
            if stood > allowed {
                truth.named = now;
                verdict.report(Property::LeasesOwned, now, || {
                    format!(
                        "shard {shard} is to be handed over by {:?} to {:?} for {} ms, and the leader of ours is to end that \
                         within {} ms",
                        row.owner,
                        row.next,
                        stood / 1_000,
                        allowed / 1_000
                    )
                });
            }
        }
    }
}
