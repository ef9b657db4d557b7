//! The time from a lease's take to the first batch in its handler.

use crate::metrics::{self, Meter};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{ConsumerOp, Effect, StreamOp};
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;

/// Leases taken recently, before the first call of their handlers.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    /// When each was taken.
    taken: BTreeMap<LeaseKey, Mono>,
    /// The unanswered reads of these leases' shards.
    reads: BTreeMap<OpId, LeaseKey>,
}

impl Handovers {
    pub(crate) fn notice(&mut self, now: Mono, notice: &Notice) {
        match notice {
            Notice::Took { lease, .. } => {
                self.taken.insert(lease.clone(), now);
            }
            Notice::Blocked { lease, .. }
            | Notice::Lost { lease, .. }
            | Notice::Released { lease }
            | Notice::Ended { lease, .. } => {
                self.taken.remove(lease);
            }
            _ => {}
        }
    }

    /// A command begins.
    pub(crate) fn command(&mut self, meter: &Meter, now: Mono, op: OpId, effect: &Effect) {
        if self.taken.is_empty() {
            return;
        }
        match effect {
            Effect::Consumer(ConsumerOp::Deliver { lease, .. }) => self.over(meter, now, lease),
            Effect::Stream(StreamOp::GetRecords { shard, .. } | StreamOp::NextEvent { shard, .. }) => {
                self.reads(op, shard.to_lease());
            }
            // A worker of several streams: its leases name their streams.
            Effect::StreamOf(
                stream,
                StreamOp::GetRecords { shard, .. } | StreamOp::NextEvent { shard, .. },
            ) => self.reads(op, stream.lease(shard.as_str())),
            _ => {}
        }
    }

    fn reads(&mut self, op: OpId, lease: LeaseKey) {
        if self.taken.contains_key(&lease) {
            self.reads.insert(op, lease);
        }
    }

    /// A command has ended.
    pub(crate) fn outcome(&mut self, meter: &Meter, now: Mono, op: OpId, outcome: &Outcome) {
        let Some(lease) = self.reads.remove(&op) else {
            return;
        };
        if let Outcome::Applied(Reply::Records(fetched)) = outcome
            && fetched.count == 0
            && fetched.behind_ms == 0
        {
            self.over(meter, now, &lease);
        }
    }

    fn over(&mut self, meter: &Meter, now: Mono, lease: &LeaseKey) {
        if let Some(taken) = self.taken.remove(lease) {
            meter.observe(&metrics::HANDOVER, [], now.since(taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;
    use leasehold_engine::ids::FencingToken;
    use leasehold_engine::notice::TakeReason;
    use leasehold_engine::stream_id::StreamId;
    use leasehold_engine::testkit::no_records;

    /// The tip is reached without a record: a later record is no part of the hand-over.
    #[test]
    fn an_empty_read_at_the_tip_ends_the_hand_over_of_any_stream() {
        let orders: StreamId = "123456789012:orders:1700000000".parse().unwrap();
        let read = StreamOp::GetRecords { shard: "shardId-000000000001".into(), via: op(1), limit: 10 };
        let event = StreamOp::NextEvent { shard: "shardId-000000000001".into(), via: op(1) };
        let cases = [
            (LeaseKey::from("shardId-000000000001"), Effect::Stream(read.clone())),
            (LeaseKey::from("shardId-000000000001"), Effect::Stream(event)),
            (orders.lease("shardId-000000000001"), Effect::StreamOf(orders, read)),
        ];
        let meter = Meter::new("billing", "orders", "w");
        for (lease, effect) in cases {
            let mut handovers = Handovers::default();
            let (token, why) = (FencingToken(1), TakeReason::Unowned);
            handovers.notice(Mono(1), &Notice::Took { lease, token, why });
            handovers.command(&meter, Mono(2), op(2), &effect);
            let empty = Outcome::Applied(Reply::Records(no_records(0)));
            handovers.outcome(&meter, Mono(3), op(2), &empty);
            assert!(handovers.taken.is_empty(), "{effect:?}");
        }
    }
}
