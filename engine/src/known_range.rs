//! The hash keys of a shard, as far as answers of the service prove them.
//!
//! What a shard takes never changes. Parts of aggregated records are dropped because of it, and a dropped part does not come back. So one
//! answer is not enough: two answers to different requests must say the same. The row of a lease does not count, since it was written because of
//! an answer.

use crate::ids::OpId;
use crate::shard::HashRange;

/// The knowledge about one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownRange {
    /// The range by two answers.
    proven: Option<HashRange>,
    /// The last answer, and the request.
    said: Option<(HashRange, OpId)>,
}

impl KnownRange {
    /// Learns the range from a listing, or from the last answer of a parent. `by`: the answered request.
    pub fn learn(&mut self, range: HashRange, by: OpId) {
        let agrees = |(said, before): (HashRange, OpId)| said == range && before != by;
        if self.said.is_some_and(agrees) {
            self.proven = Some(range);
        }
        self.said = Some((range, by));
    }

    /// The hash keys, if two answers agree.
    pub fn proven(self) -> Option<HashRange> {
        self.proven
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::HashKey;

    fn op(n: u64) -> OpId {
        OpId { life: 1, n }
    }

    fn up_to(end: u128) -> HashRange {
        HashRange { start: HashKey(0), end: HashKey(end) }
    }

    #[test]
    fn two_answers_to_different_requests_prove_a_range() {
        let mut known = KnownRange::default();
        known.learn(up_to(5), op(1));
        known.learn(up_to(5), op(1));
        assert_eq!(known.proven(), None);
        known.learn(up_to(5), op(2));
        assert_eq!(known.proven(), Some(up_to(5)));
    }

    #[test]
    fn one_wrong_answer_changes_nothing_that_two_have_proven() {
        let mut known = KnownRange::default();
        for (n, end) in [(1, 5), (2, 5), (3, 7), (4, 5)] {
            known.learn(up_to(end), op(n));
        }
        assert_eq!(known.proven(), Some(up_to(5)));
        known.learn(up_to(7), op(5));
        known.learn(up_to(7), op(6));
        assert_eq!(known.proven(), Some(up_to(7)));
    }
}
