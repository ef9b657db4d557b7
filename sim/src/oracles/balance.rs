//! `fair-shares`: after quiet, leases stop moving. This oracle keeps the time of the last move; the liveness phase
//! requires an end.

use super::fact::begins;
use super::{Fact, History, ROWS, Sees, Time, Verdict};

#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    last_move: Time,
}

impl Balance {
    pub(super) const SEES: Sees = Sees::all(ROWS);

    pub(super) fn last_move(&self) -> Time {
        self.last_move
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, _: &mut Verdict) {
        if let Fact::RowChanged { verb, before, after, .. } = *fact {
            // A leader of version 3 of the Java KCL also assigns ended leases, again and again to a worker of ours. Our
            // worker does not renew an ended lease.
            if history.of_others && before.is_some_and(|row| !row.is_open()) {
                return;
            }
            if begins(verb, before, after) {
                self.last_move = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::{Mark, Verb};
    use super::super::testing::{blank, changed, of_others, row};
    use super::*;

    #[test]
    fn a_move_is_a_change_of_owner() {
        let (mut balance, verdict) = (Balance::default(), &mut Verdict::default());
        let rows = |a, b| (Some(row(a, 1, Mark::TrimHorizon)), Some(row(b, 2, Mark::TrimHorizon)));
        for (at, verb, (before, after), last) in [
            (5, Verb::Take, rows(None, Some(0)), 5),
            (6, Verb::Renew, rows(Some(0), Some(0)), 5),
            (7, Verb::Take, rows(Some(0), Some(1)), 7),
            (8, Verb::Release, rows(Some(1), None), 8),
        ] {
            balance.observe(at, &changed(0, Some(0), verb, before, after), &blank(), verdict);
            assert_eq!(balance.last_move(), last);
        }
        let ended = |owner| Some(row(owner, 3, Mark::End));
        let assigned = changed(0, Some(0), Verb::Take, ended(None), ended(Some(1)));
        balance.observe(9, &assigned, &of_others(true), verdict);
        assert_eq!(balance.last_move(), 8);
        balance.observe(9, &assigned, &blank(), verdict);
        assert_eq!(balance.last_move(), 9);
    }
}
