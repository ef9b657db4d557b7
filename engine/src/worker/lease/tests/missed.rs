//! Time that the monotonic clock did not count.

use super::*;
use crate::worker::testing::{owned, refused_by, seconds, unknown};

impl Owner {
    /// The monotonic clock did not count so much time, as the next input shows.
    fn miss(&mut self, by: Span) {
        self.room.on_missed(&mut self.cx, &mut self.leases, by);
        assert_eq!(self.cx.did().notices(), [Notice::TimeMissed { by, leases: 1 }]);
        assert_eq!(self.leases.pop_due(self.cx.now()), Some(self.ix), "it is looked at now");
        self.step();
    }
}

#[test]
fn after_missed_time_a_belief_ends_earlier_and_is_renewed_now() {
    let mut owner = Owner::processing();
    let before = owner.said().valid_until;
    owner.miss(seconds(1));
    assert_eq!(owner.said().valid_until, before - seconds(1));
    assert!(!owner.is_aborted() && owner.write().is_none(), "a second is not much");
    owner.miss(owner.cx.config().renew_interval);
    assert!(!owner.is_aborted(), "it may be believed in still");
    assert!(matches!(owner.write(), Some(Change::Renew { .. })));
}

#[test]
fn a_handler_stops_if_the_lease_may_be_lost_and_goes_on_if_not() {
    let mut owner = Owner::processing();
    owner.miss(seconds(60));
    assert!(owner.is_aborted());
    assert!(matches!(owner.write(), Some(Change::Renew { .. })));
    assert_eq!(owner.told(), ["fenced"]);
    owner.answer_table(done());
    assert_eq!(owner.told(), ["resumed"]);
    assert!(owner.believes());
}

#[test]
fn a_renewal_under_way_proves_nothing_about_the_time_after_it() {
    let mut owner = Owner::processing();
    owner.later(owner.cx.config().renew_interval);
    assert!(owner.write().is_some());
    owner.miss(seconds(60));
    owner.answer_table(done());
    assert!(!owner.believes(), "its answer is older than it seems");
    assert!(owner.write().is_some(), "the next one is due");
    owner.answer_table(done());
    assert!(owner.believes());
}

#[test]
fn nor_does_one_of_unknown_outcome_that_was_applied() {
    let mut owner = Owner::processing();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(unknown());
    owner.miss(seconds(60));
    owner.later(seconds(2));
    let applied = LeaseRow { counter: owner.said().counter + 1, ..owned("a", "me", 0) };
    owner.answer_table(refused_by(applied));
    assert!(owner.told().contains(&"adopted"));
    assert!(!owner.believes(), "its answer is older than it seems");
}
