//! The time from a lease's take to the first batch in its handler.

use crate::metrics::{self, Meter};
use leasehold_engine::ids::{LeaseKey, OpId, ShardId};
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{ConsumerOp, Effect, StreamOp};
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;

/// Leases taken recently, before the first call of their handlers.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    /// When each was taken.
    taken: BTreeMap<ShardId, Mono>,
    /// The unanswered reads of these leases' shards.
    reads: BTreeMap<OpId, ShardId>,
}

impl Handovers {
    pub(crate) fn notice(&mut self, now: Mono, notice: &Notice) {
        match notice {
            Notice::Took { lease, .. } => {
                self.taken.insert(lease.to_shard(), now);
            }
            Notice::Blocked { lease, .. }
            | Notice::Lost { lease, .. }
            | Notice::Released { lease }
            | Notice::Ended { lease, .. } => {
                self.taken.remove(&lease.to_shard());
            }
            _ => {}
        }
    }

    /// A command begins.
    pub(crate) fn command(&mut self, meter: &Meter, now: Mono, op: OpId, effect: &Effect) {
        match effect {
            Effect::Consumer(ConsumerOp::Deliver { lease, .. }) => self.begun(meter, now, lease),
            Effect::Stream(StreamOp::GetRecords { shard, .. }) if self.taken.contains_key(shard) => {
                self.reads.insert(op, shard.clone());
            }
            _ => {}
        }
    }

    /// A command has ended.
    pub(crate) fn outcome(&mut self, meter: &Meter, now: Mono, op: OpId, outcome: &Outcome) {
        let Some(shard) = self.reads.remove(&op) else {
            return;
        };
        if let Outcome::Applied(Reply::Records(fetched)) = outcome
            && fetched.count == 0
            && fetched.behind_ms == 0
        {
            self.over(meter, now, &shard);
        }
    }

    fn begun(&mut self, meter: &Meter, now: Mono, lease: &LeaseKey) {
        if !self.taken.is_empty() {
            self.over(meter, now, &lease.to_shard());
        }
    }

    fn over(&mut self, meter: &Meter, now: Mono, shard: &ShardId) {
        if let Some(taken) = self.taken.remove(shard) {
            meter.observe(&metrics::HANDOVER, [], now.since(taken));
        }
    }
}
