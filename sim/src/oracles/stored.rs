//! `stored-is-handed-over`: each part counted as stored by its producer is handed over to some handler. A part of an
//! aggregated record may be left out of a batch only if its producer sends the part again.
//!
//! `every-record-delivered` judges that each batch is handed over, without gaps between batches.

use super::{Fact, History, LifeNo, Property, READS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    counted: BTreeSet<(ShardNo, u64)>,
    /// Parts left out before any fact about the parts was known.
    left_out: BTreeSet<(ShardNo, u64)>,
}

impl Stored {
    pub(super) const SEES: Sees = Sees::all(READS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match fact {
            Fact::Stored { shard, parts } => {
                for part in parts {
                    if self.left_out.contains(&(*shard, *part)) {
                        lost(now, None, (*shard, *part), verdict);
                    }
                    self.counted.insert((*shard, *part));
                }
            }
            Fact::LeftOut { life, shard, parts, .. } => {
                for part in parts {
                    if self.counted.contains(&(*shard, *part)) {
                        lost(now, Some(*life), (*shard, *part), verdict);
                    }
                    self.left_out.insert((*shard, *part));
                }
            }
            _ => {}
        }
    }
}

fn lost(now: Time, life: Option<LifeNo>, (shard, part): (ShardNo, u64), verdict: &mut Verdict) {
    verdict.report(Property::StoredIsHandedOver, now, || {
        let who = life.map_or_else(|| "a worker".to_owned(), |life| format!("life {life}"));
        format!(
            "{who} left out part {part} of shard {shard}, which its producer counts as stored and does not send again"
        )
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at_once, count};
    use super::*;

    fn stored(parts: &[u64]) -> Fact {
        Fact::Stored { shard: 1, parts: parts.to_vec() }
    }

    fn left_out(parts: &[u64]) -> Fact {
        Fact::LeftOut { life: 0, shard: 1, token: 1, parts: parts.to_vec() }
    }

    fn judged(facts: [Fact; 2]) -> usize {
        let facts = at_once(facts);
        count(Property::StoredIsHandedOver, facts)
    }

    #[test]
    fn a_part_that_is_sent_again_may_be_left_out() {
        assert_eq!(judged([stored(&[1, 3]), left_out(&[2, 4])]), 0);
        let elsewhere = Fact::Stored { shard: 2, parts: vec![2] };
        assert_eq!(judged([elsewhere, left_out(&[2])]), 0);
    }

    #[test]
    fn a_part_counted_as_stored_may_not_be_left_out() {
        assert_eq!(judged([stored(&[1, 3]), left_out(&[3, 4])]), 1);
        assert_eq!(judged([left_out(&[3, 4]), stored(&[1, 3])]), 1);
    }
}
