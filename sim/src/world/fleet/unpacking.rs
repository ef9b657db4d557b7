//! Aggregated records at a worker: the application's knowledge of the shards' hash keys, and a handler's parts of a
//! batch. The shipped rule decides the parts.

use super::Fleet;
use super::worker::Adapter;
use crate::oracles::{Fact, LifeNo, ShardNo};
use crate::streams::{self, StreamNo};
use crate::world::context::Context;
use crate::world::services::stream::Carry;
use leasehold_engine::ids::{FencingToken, OpId, ShardId};
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::position::Position;
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_local_aws::kinesis::ShardIndex;

/// A range without hash keys.
const NO_KEYS: HashRange = HashRange { start: HashKey(1), end: HashKey(0) };

impl Fleet {
    /// Keeps the contents of an answer, and takes aggregated records apart. `stream`: the listed stream.
    pub(in crate::world) fn take_in(
        &mut self, cx: &mut Context, w: usize, (op, stream): (OpId, Option<StreamNo>), carry: Carry,
        outcome: &mut Outcome,
    ) {
        let life = self.workers[w].life();
        let adapter = self.workers[w].adapter_mut();
        if !cx.plan().faults.aggregates.is_on() {
            return adapter.keep(op.n, carry);
        }
        learn(cx, adapter, (op, stream), &carry, outcome);
        let left_out = match carry {
            Carry::Batch { shard, first, last, .. } => {
                let (range, misplaced) = (adapter.range(shard), cx.plan().faults.aggregates.misplaced);
                let parts = cx.names().parts();
                let would_be = |range| parts.left_out(shard, (first, last), range, misplaced);
                // No part of an aggregated record is within an empty range.
                let unproven = range.proven().is_none() && !would_be(Some(NO_KEYS)).is_empty();
                let left_out = would_be(range.proven());
                if let (true, Outcome::Applied(Reply::Records(fetched))) = (unproven, outcome) {
                    fetched.range_unproven = true;
                    cx.fact(Fact::RangeUnproven { life, shard });
                }
                Some((shard, left_out))
            }
            _ => None,
        };
        adapter.keep(op.n, carry);
        if let Some((shard, left_out)) = left_out.filter(|(_, left_out)| !left_out.is_empty()) {
            cx.mark("aggregate-left-out");
            adapter.leave_out(shard, op.n, left_out);
        }
    }

    /// A handler's parts of a batch, if the batch is known.
    pub(super) fn given(
        &self, cx: &Context, w: usize, (shard, batch): (ShardNo, OpId), after: Option<Position>, alone: bool,
    ) -> Option<Given> {
        let adapter = &self.workers[w].adapter;
        let known = adapter.batch(shard, batch.n)?;
        let done = after.and_then(|after| cx.names().parts().at(shard, after));
        let done = done.max(after.and_then(|_| adapter.low(shard, batch.n)));
        let left_out = adapter.left_out(shard, batch.n);
        Some(Given::of(known, left_out, done, alone))
    }
}

/// Learns the hash keys of shards from listings and from the ends of parents.
fn learn(
    cx: &Context, adapter: &mut Adapter, (op, stream): (OpId, Option<StreamNo>), carry: &Carry,
    outcome: &Outcome,
) {
    let streams = cx.names().streams();
    let number = |stream: StreamNo, id: &ShardId| {
        let index = streams::number(id.as_str())?;
        Some(streams.shard(stream, ShardIndex(index)))
    };
    match (outcome, carry) {
        (Outcome::Applied(Reply::Shards(page)), _) => {
            for shard in &page.shards {
                if let Some(known) = stream.and_then(|stream| number(stream, &shard.id)) {
                    adapter.range_mut(known).learn(shard.range, op);
                }
            }
        }
        (Outcome::Applied(Reply::Records(fetched)), Carry::Batch { shard, .. }) => {
            for child in fetched.end.iter().flatten() {
                if let Some(known) = number(streams.of(*shard), &child.id) {
                    adapter.range_mut(known).learn(child.range, op);
                }
            }
        }
        _ => {}
    }
}

/// A handler's parts of a batch.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The first part.
    pub(super) first: u64,
    /// The last part.
    pub(super) last: u64,
    /// The last part of the batch.
    pub(super) whole: u64,
    /// The parts left out between the first and the last.
    left_out: Vec<u64>,
    /// The handler is to receive only one part.
    pub(super) alone: bool,
}

impl Given {
    /// The given parts of a batch. `done`: the end of gapless progress. `alone`: only the next given part.
    pub(super) fn of((first, last): (u64, u64), left_out: &[u64], done: Option<u64>, alone: bool) -> Self {
        let first = done.map_or(first, |done| first.max(done + 1));
        let next = (first..=last).find(|part| left_out.binary_search(part).is_err());
        let until = match (alone, next) {
            (true, Some(next)) => next,
            // All remaining parts are left out: the batch is done.
            (true, None) if !left_out.is_empty() && first <= last => last,
            (true, None) => first.min(last),
            (false, _) => last,
        };
        let within = |part: &&u64| (first..=until).contains(*part);
        Self {
            first,
            last: until,
            whole: last,
            left_out: left_out.iter().filter(within).copied().collect(),
            alone: alone && (next.is_some() || left_out.is_empty()),
        }
    }

    /// Tells the oracles the parts that the handler does not receive.
    pub(super) fn tell_left_out(&self, cx: &mut Context, life: LifeNo, shard: ShardNo, token: FencingToken) {
        if !self.left_out.is_empty() {
            cx.fact(Fact::LeftOut { life, shard, token: token.0, parts: self.left_out.clone() });
        }
    }

    /// Whether the range has parts, and the handler receives none of them.
    pub(super) fn is_empty(&self) -> bool {
        self.first <= self.last && self.left_out.len() as u64 > self.last - self.first
    }

    /// The part, if the handler receives a single part.
    pub(super) fn only(&self) -> Option<u64> {
        let count = (self.last + 1).saturating_sub(self.first) - self.left_out.len() as u64;
        let mut parts = self.first..=self.last;
        (count == 1).then(|| parts.find(|part| self.has(*part))).flatten()
    }

    fn has(&self, part: u64) -> bool {
        self.left_out.binary_search(&part).is_err()
    }

    /// The given parts.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        (self.first..=self.last).filter(|part| self.has(*part))
    }

    /// The last given part up to this part; 0: none.
    pub(super) fn up_to(&self, part: u64) -> u64 {
        let mut parts = (self.first..=part.min(self.last)).rev();
        parts.find(|part| self.has(*part)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_given_what_is_not_left_out() {
        let given = Given::of((3, 9), &[3, 5, 8, 9], Some(3), false);
        assert_eq!((given.first, given.last, given.whole), (4, 9, 9));
        assert_eq!(given.parts().collect::<Vec<_>>(), [4, 6, 7]);
        assert_eq!((given.up_to(9), given.up_to(5), given.up_to(3)), (7, 4, 0));
        assert_eq!((given.only(), given.is_empty()), (None, false));
    }

    #[test]
    fn one_alone_is_the_next_that_is_given() {
        let given = Given::of((3, 9), &[3, 4, 8, 9], None, true);
        assert_eq!((given.first, given.last, given.only(), given.alone), (3, 5, Some(5), true));
        let rest = Given::of((3, 9), &[3, 4, 8, 9], Some(7), true);
        assert_eq!((rest.first, rest.last, rest.is_empty(), rest.alone), (8, 9, true, false));
    }

    #[test]
    fn records_done_before_are_not_given_again() {
        let given = Given::of((3, 9), &[], Some(9), false);
        assert_eq!((given.first, given.last, given.is_empty(), given.only()), (10, 9, false, None));
        let alone = Given::of((3, 9), &[], Some(9), true);
        assert_eq!((alone.first, alone.last, alone.only()), (10, 9, None));
    }
}
