//! The lock of a leader of ours. The leader renews the lock every few seconds, or another worker takes the lock.

use super::{LATE_LEASES, Led, SLACK_US};
use crate::oracles::{LifeNo, Property, Time, Verdict};
use leasehold_engine::fleet::LEADER_BEAT;
use std::collections::BTreeSet;

/// The longest time between two renewals of a lock by a leader, with one failed renewal between.
const BEATS_US: Time = 2 * LEADER_BEAT.0 + SLACK_US;

impl Led {
    /// A live leader renews its lock.
    pub(super) fn look_for_beats(&mut self, now: Time, others: &BTreeSet<LifeNo>, verdict: &mut Verdict) {
        let holder = self.lock.filter(|life| !others.contains(life));
        let Some((life, known)) = holder.and_then(|life| Some((life, self.lives.get(&life)?))) else {
            // No worker of ours has the lock.
            return;
        };
        // A take of unknown outcome is executed late: its worker does not know of the lock.
        let told = known.unheard.is_none_or(|at| at + LATE_LEASES * self.lease < now);
        let stood = now - self.beaten;
        if told && self.is_ready(now, known) && stood > BEATS_US {
            self.beaten = now;
            verdict.report(Property::RequestsOnTime, now, || {
                format!(
                    "life {life} has the leader's lock, and last renewed the lock {} ms ago: it may take {} ms",
                    stood / 1_000,
                    BEATS_US / 1_000
                )
            });
        }
    }
}
