//! `pauses-kept`: a shard paused by the application receives no batch, until the application resumes the shard or its
//! ownership ends.

use super::{EVENTS, Fact, History, LifeNo, Property, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    paused: BTreeSet<(LifeNo, ShardNo)>,
}

impl Pauses {
    pub(super) const SEES: Sees = Sees::ours(EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::PauseAsked { life, shard } => {
                self.paused.insert((life, shard));
            }
            Fact::ResumeAsked { life, shard } | Fact::Closed { life, shard, .. } => {
                self.paused.remove(&(life, shard));
            }
            Fact::Died { life } => self.paused.retain(|(of, _)| *of != life),
            Fact::Delivered { life, shard, first, last, .. } if self.paused.contains(&(life, shard)) => {
                verdict.report(Property::PausesKept, now, || {
                    format!(
                        "life {life} handed over records {first} to {last} of shard {shard}, which is paused"
                    )
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at_once, closed, count, delivered};
    use super::*;
    use leasehold_engine::output::EndReason;

    #[test]
    fn a_paused_shard_is_handed_nothing_until_it_may_go_on() {
        let judged = |facts: &[Fact]| count(Property::PausesKept, at_once(facts));
        let (life, shard) = (0, 1);
        let (pause, resume) = (Fact::PauseAsked { life, shard }, Fact::ResumeAsked { life, shard });
        let closed = closed(life, shard, EndReason::LeaseLost);
        let delivered = |shard| delivered(life, shard, 1, 5);
        let bad = [pause.clone(), delivered(1)];
        assert_eq!(judged(&bad), 1);
        assert_eq!(judged(&[delivered(1), pause.clone(), delivered(2)]), 0);
        for end in [resume, closed, Fact::Died { life }] {
            assert_eq!(judged(&[pause.clone(), end, delivered(1)]), 0);
        }
    }
}
