//! `ends-permitted`: the application may have to permit the end of a shard. Its worker then requests the write of the
//! end only after a permission under this ownership, with no batch handed over since.

use super::fact::{Ask, Verb};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeMap;

/// Shards whose ends need a permission, and whether the application has permitted the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    permitted: BTreeMap<(LifeNo, ShardNo), bool>,
}

impl Ends {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::OpenBegun { life, shard, .. } => {
                self.permitted.remove(&(life, shard));
            }
            Fact::ConfirmsEnd { life, shard, .. } => {
                self.permitted.insert((life, shard), false);
            }
            Fact::EndPermitted { life, shard, .. } => self.set(life, shard, true),
            Fact::Delivered { life, shard, .. } | Fact::GivenBack { life, shard, .. } => {
                self.set(life, shard, false);
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.permitted.retain(|(of, _), _| *of != life);
            }
            Fact::Asked { life, ask: Ask::Write(Verb::End), about: Some(shard), .. }
                if self.permitted.get(&(life, shard)) == Some(&false) =>
            {
                verdict.report(Property::EndsPermitted, now, || {
                    format!(
                        "life {life} asked for the end of shard {shard} to be written, which its application has not permitted"
                    )
                });
            }
            _ => {}
        }
    }

    fn set(&mut self, life: LifeNo, shard: ShardNo, permitted: bool) {
        if let Some(known) = self.permitted.get_mut(&(life, shard)) {
            *known = permitted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asked, at_once, count, delivered};
    use super::*;

    const OPENS: Fact = Fact::OpenBegun { life: 0, shard: 1, token: 1 };
    const CONFIRMS: Fact = Fact::ConfirmsEnd { life: 0, shard: 1, token: 1 };
    const PERMITS: Fact = Fact::EndPermitted { life: 0, shard: 1, token: 1 };
    const GIVEN_BACK: Fact = Fact::GivenBack { life: 0, shard: 1, token: 1 };
    fn delivers() -> Fact {
        delivered(0, 1, 1, 5)
    }

    fn ends() -> Fact {
        asked(0, Ask::Write(Verb::End), 1, 1, 0, 0)
    }

    fn judged(facts: &[Fact]) -> usize {
        let facts = at_once(facts);
        count(Property::EndsPermitted, facts)
    }

    #[test]
    fn an_end_that_is_to_be_permitted_is_not_written_before() {
        assert_eq!(judged(&[OPENS, CONFIRMS, delivers(), ends()]), 1);
        assert_eq!(judged(&[OPENS, CONFIRMS, delivers(), PERMITS, ends(), ends()]), 0);
        assert_eq!(judged(&[OPENS, delivers(), ends()]), 0, "not asked for");
    }

    #[test]
    fn a_hand_over_after_the_permission_needs_another_permission() {
        assert_eq!(judged(&[OPENS, CONFIRMS, PERMITS, delivers(), ends()]), 1);
        assert_eq!(judged(&[OPENS, CONFIRMS, PERMITS, GIVEN_BACK, ends()]), 1);
    }

    #[test]
    fn a_permission_is_of_one_ownership() {
        assert_eq!(judged(&[OPENS, CONFIRMS, PERMITS, OPENS, CONFIRMS, ends()]), 1);
        assert_eq!(judged(&[OPENS, CONFIRMS, OPENS, ends()]), 0);
    }
}
