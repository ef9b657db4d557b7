//! `leases-owned`: a worker gives up only after a loss for good: of the table, or of all its streams.

use super::{EVENTS, Fact, History, LifeNo, Property, Sees, Time, Verdict};
use crate::streams::StreamNo;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Resign {
    /// Streams left by lives, taken away or lost.
    left: BTreeSet<(LifeNo, StreamNo)>,
}

impl Resign {
    pub(super) const SEES: Sees = Sees::ours(EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::StreamLeft { life, stream, .. } => drop(self.left.insert((life, stream))),
            Fact::StreamBack { life, stream } => drop(self.left.remove(&(life, stream))),
            Fact::GivesUp { life } if !history.lost_for_good && !self.has_lost_its_last(life, history) => {
                verdict.report(Property::LeasesOwned, now, || {
                    format!("life {life} gave up, and nothing it needs was taken away")
                })
            }
            _ => {}
        }
    }

    /// Whether all of a life's remaining streams were deleted. A worker with one lost stream goes on with the rest.
    /// Streams taken away by the application, even for a while, do not remain.
    fn has_lost_its_last(&self, life: LifeNo, history: &History) -> bool {
        let reads = |stream: &StreamNo| !self.left.contains(&(life, *stream));
        let mut read = history.streams.all().filter(reads).peekable();
        read.peek().is_some() && read.all(|stream| history.gone.contains(&stream))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Terms;
    use super::super::testing::{at_once, config, count_under};
    use super::*;

    fn judged(facts: &[Fact]) -> usize {
        let terms = Terms { streams: 2, ..Terms::plain(config()) };
        count_under(&terms, Property::LeasesOwned, at_once(facts))
    }

    const UP: Fact = Fact::GivesUp { life: 0 };

    #[test]
    fn who_gives_up_has_a_reason() {
        assert_eq!(judged(&[Fact::LostForGood, UP]), 0);
        assert_eq!(judged(&[UP]), 1);
    }

    #[test]
    fn who_reads_one_stream_may_give_up_when_that_is_deleted() {
        let (life, lost) = (0, false);
        let away = |stream| {
            let away = Fact::StreamTakenAway { life, stream };
            [away, Fact::StreamLeft { life, stream, lost }]
        };
        let gone = |stream| Fact::StreamGone { stream };
        let [asked, left] = away(1);
        assert_eq!(judged(&[asked.clone(), left.clone(), gone(0), UP]), 0);
        assert_eq!(judged(&[asked.clone(), left.clone(), gone(1), UP]), 1, "it reads another one");
        assert_eq!(judged(&[gone(0), UP]), 1, "it has another one");
        let back = Fact::StreamBack { life, stream: 1 };
        assert_eq!(judged(&[asked, left, back, gone(0), UP]), 1, "it has that again");
    }
}
