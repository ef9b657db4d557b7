//! `leases-owned`: a worker gives up only if something was taken away from it: the stream or the table, for good.

use super::{Fact, Property, Time, Verdict};

#[derive(Clone, Debug, Default)]
pub(super) struct Resign {
    lost_for_good: bool,
}

impl Resign {
    pub(super) fn observe(&mut self, now: Time, fact: &Fact, verdict: &mut Verdict) {
        match *fact {
            Fact::LostForGood | Fact::Foreign => self.lost_for_good = true,
            Fact::GivesUp { life } if !self.lost_for_good => {
                verdict.report(Property::LeasesOwned, now, || {
                    format!("life {life} gave up, and nothing it needs was taken away")
                })
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::judge_only;
    use super::*;

    #[test]
    fn who_gives_up_has_a_reason() {
        let judged = |facts: &[Fact]| {
            judge_only(Property::LeasesOwned, facts.iter().cloned().map(|fact| (1, fact))).len()
        };
        let up = Fact::GivesUp { life: 0 };
        assert_eq!(judged(&[Fact::LostForGood, up.clone()]), 0);
        assert_eq!(judged(&[up]), 1);
    }
}
