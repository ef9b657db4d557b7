//! `fair-shares`: after quiet, leases stop moving. This keeps when the last one moved; the liveness phase requires an end.

use super::fact::Verb;
use super::{Fact, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Balance {
    last_move: Time,
}

impl Balance {
    pub(super) fn last_move(&self) -> Time {
        self.last_move
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact) {
        if let Fact::RowChanged {
            verb, before, after, ..
        } = fact
        {
            let owner = |row: &Option<super::fact::Row>| row.and_then(|row| row.owner);
            if owner(before) != owner(after) || *verb == Some(Verb::Take) {
                self.last_move = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::history::{changed, row};
    use super::*;

    #[test]
    fn a_move_is_a_change_of_owner() {
        let mut balance = Balance::default();
        let rows = |a, b| {
            (
                Some(row(a, 1, Mark::TrimHorizon)),
                Some(row(b, 2, Mark::TrimHorizon)),
            )
        };
        for (at, verb, (before, after), last) in [
            (5, Verb::Take, rows(None, Some(0)), 5),
            (6, Verb::Renew, rows(Some(0), Some(0)), 5),
            (7, Verb::Take, rows(Some(0), Some(1)), 7),
            (8, Verb::Release, rows(Some(1), None), 8),
        ] {
            balance.observe(at, &changed(0, Some(0), verb, before, after));
            assert_eq!(balance.last_move(), last);
        }
    }
}
