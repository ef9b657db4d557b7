//! `final-acts-proven`: a worker ends a lease only with support from the truth of the stream, whatever the answers
//! were: the shard is closed and wholly processed, or the stream has forgotten the shard.
//!
//! `leases-owned` judges the causes for a worker's stop, or for the end of its reads of a stream.

use super::delivery::Delivery;
use super::fact::Mark;
use super::{Fact, History, Property, Time, Verdict};

/// Judges the change of a row by the truth of its shard.
pub(super) fn judge(now: Time, fact: &Fact, history: &History, delivery: &Delivery, verdict: &mut Verdict) {
    let Fact::RowChanged { shard, by: Some(life), before, after: Some(after), .. } = *fact else {
        return;
    };
    let is_new = before.is_none_or(|row| row.checkpoint != Mark::End);
    let known = history.shard(shard);
    let excused = known.forgotten || known.given || known.rewritten;
    if after.checkpoint != Mark::End
        || !is_new
        || excused
        || history.lost_for_good
        || !history.gone.is_empty()
    {
        return;
    }
    let done = delivery.processed(shard);
    let wrong = match known.records {
        None => "which is open".to_owned(),
        Some(records) if !delivery.is_complete(shard, records) => {
            format!("of whose {records} records {done} were processed")
        }
        Some(_) => return,
    };
    verdict.report(Property::FinalActsProven, now, || {
        format!("life {life} ended the lease of shard {shard}, {wrong}, and the stream has not forgotten the shard")
    });
}

#[cfg(test)]
mod tests {
    use super::super::fact::Verb;
    use super::super::testing::{self, at_once, changed, count, finished, row};
    use super::*;

    const CLOSED: Fact = Fact::ShardClosed { shard: 0, records: 5, children: Vec::new() };

    fn created() -> Fact {
        changed(0, Some(0), Verb::Create, None, Some(row(Some(0), 1, Mark::TrimHorizon)))
    }

    fn processed() -> Fact {
        testing::processed(0, 0, 5)
    }

    fn judged(facts: Vec<Fact>) -> usize {
        count(Property::FinalActsProven, at_once(facts))
    }

    #[test]
    fn a_shard_that_is_open_or_was_not_read_to_its_end_is_not_ended() {
        assert_eq!(judged(vec![created(), finished(0)]), 1);
        assert_eq!(judged(vec![created(), CLOSED, finished(0)]), 1);
        assert_eq!(judged(vec![created(), processed(), finished(0)]), 1);
        assert_eq!(judged(vec![created(), CLOSED, processed(), finished(0)]), 0);
    }

    #[test]
    fn a_shard_that_the_stream_has_forgotten_is_ended() {
        assert_eq!(judged(vec![created(), CLOSED, Fact::Forgotten { shard: 0 }, finished(0)]), 0);
        assert_eq!(judged(vec![Fact::LostForGood, created(), finished(0)]), 0);
    }
}
