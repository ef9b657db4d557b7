//! `foreign-tables-refused`: a worker of several streams takes no lease of a stream before a listing of the stream's
//! shards since the start of its reads: the worker cannot know the leases as the stream's.
//!
//! `leases-owned`: a worker of several streams reads each stream until its application takes the stream away, or the
//! stream is gone. The fate of one stream changes no other stream.

use super::fact::{Ask, Verb};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, Sees, Time, Verdict};
use crate::streams::StreamNo;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Streams taken away by applications.
    asked: BTreeSet<(LifeNo, StreamNo)>,
    /// Streams whose shards were listed to a worker.
    shown: BTreeSet<(LifeNo, StreamNo)>,
}

impl Reading {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::ShardsListed { life, stream } => drop(self.shown.insert((life, stream))),
            Fact::Asked {
                life,
                ask: Ask::Write(verb @ (Verb::Take | Verb::Claim)),
                about: Some(shard),
                ..
            } if history.streams.are_several() => {
                let stream = history.streams.of(shard);
                if !self.shown.contains(&(life, stream)) {
                    verdict.report(Property::ForeignTablesRefused, now, || {
                        format!(
                            "life {life} tried a {verb:?} of shard {shard}, and was not shown the shards of stream {stream} \
                             since it reads that"
                        )
                    });
                }
            }
            Fact::StreamTakenAway { life, stream } => drop(self.asked.insert((life, stream))),
            Fact::StreamLeft { life, stream, lost } => {
                self.shown.remove(&(life, stream));
                let asked = self.asked.remove(&(life, stream));
                let has_reason = match lost {
                    true => history.gone.contains(&stream) || history.lost_for_good,
                    false => asked,
                };
                if !has_reason {
                    verdict.report(Property::LeasesOwned, now, || {
                        format!("life {life} reads stream {stream} no more, and that is there and was not taken away")
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asked, at_once, config, count, count_under};
    use super::*;

    #[test]
    fn a_lease_of_a_stream_that_was_not_listed_is_left_alone() {
        let terms = super::super::Terms { streams: 2, ..super::super::Terms::plain(config()) };
        let found = |facts: &[Fact]| count_under(&terms, Property::ForeignTablesRefused, at_once(facts));
        let life = 0;
        let listed = |stream| Fact::ShardsListed { life, stream };
        let take = |shard| asked(life, Ask::Write(Verb::Take), shard, 1, 0, 0);
        assert_eq!(found(&[listed(1), take(3)]), 0);
        assert_eq!(found(&[listed(1), take(2)]), 1, "it is of the other stream");
        let stream = 1;
        let left = Fact::StreamLeft { life, stream, lost: false };
        let away = Fact::StreamTakenAway { life, stream };
        assert_eq!(found(&[listed(1), away, left, take(3)]), 1);
    }

    #[test]
    fn a_stream_is_left_for_a_reason() {
        let found = |facts: &[Fact]| {
            let facts = at_once(facts);
            count(Property::LeasesOwned, facts)
        };
        let (life, stream) = (0, 1);
        let left = |lost| Fact::StreamLeft { life, stream, lost };
        let asked = Fact::StreamTakenAway { life, stream };
        let gone = |stream| Fact::StreamGone { stream };
        assert_eq!(found(&[asked.clone(), left(false)]), 0);
        assert_eq!(found(&[asked, left(false), left(false)]), 1, "once");
        assert_eq!(found(&[gone(1), left(true)]), 0);
        assert_eq!(found(&[gone(0), left(true)]), 1, "another one is gone");
        assert_eq!(found(&[Fact::LostForGood, left(true)]), 0);
    }
}
