//! A shard that no worker owns: what unit tests of handlers make batches of.

use crate::asks::{Ask, Asks, ShardAsks, asks};
use crate::batch::{Batch, ShardInfo};
use crate::fence::{Fence, Fences};
use crate::record::Record;
use crate::runtime::Runtime;
use crate::store::{Fetched, Reading};
use leasehold_engine::ids::{FencingToken, ShardId};
use leasehold_engine::input::Call;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Mono;
use std::fmt;
use std::sync::Arc;

/// A shard with a lease that lasts for as long as it is told to, and what a handler said about its batches.
pub struct TestShard {
    info: Arc<ShardInfo>,
    fences: Fences,
    fence: Fence,
    asks: ShardAsks,
    said: Asks,
    /// Everything up to here is acknowledged.
    through: Option<Position>,
    /// How often a checkpoint was asked for.
    checkpoints: u32,
}

impl fmt::Debug for TestShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestShard")
            .field("info", &self.info)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl TestShard {
    /// A shard of which everything up to `from` is processed. Its lease is over until it is [believed](TestShard::believe) in.
    pub fn new(shard: ShardId, token: FencingToken, from: Checkpoint, clock: Arc<dyn Runtime>) -> Self {
        let lease = shard.to_lease();
        let (sender, said) = asks();
        let fences = Fences::default();
        Self {
            fence: fences.open(lease.clone(), token, clock),
            asks: sender.shard(lease.clone(), token),
            info: Arc::new(ShardInfo {
                shard,
                lease,
                token,
                from,
            }),
            fences,
            said,
            through: None,
            checkpoints: 0,
        }
    }

    /// What a handler is told of the shard.
    pub fn info(&self) -> &Arc<ShardInfo> {
        &self.info
    }

    /// The fence that all batches have.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// The lease lasts until then.
    pub fn believe(&self, until: Mono) {
        self.fences.believe(&self.info.lease, self.info.token, until);
    }

    /// The lease is lost for good.
    pub fn lose(&self) {
        self.fences.close(&self.info.lease, self.info.token);
    }

    /// A batch as a worker hands it over.
    pub fn batch(&self, records: Vec<Record>, behind_ms: u64, attempt: u32) -> Batch {
        let reading = Reading::behind_by(behind_ms);
        Batch {
            shard: self.info.clone(),
            fetched: Arc::new(Fetched { records, reading }),
            first: 0,
            attempt,
            fence: self.fence.clone(),
            asks: self.asks.clone(),
        }
    }

    /// Everything up to here was acknowledged through batches; absent: nothing was.
    pub fn acknowledged(&mut self) -> Option<Position> {
        self.hear();
        self.through
    }

    /// How many times checkpoints were asked for. Those in a row, with nothing read in between, count as one.
    pub fn checkpoints(&mut self) -> u32 {
        self.hear();
        self.checkpoints
    }

    fn hear(&mut self) {
        while let Some(ask) = self.said.try_next() {
            for call in Ask::into_calls(ask) {
                match call {
                    Call::Processed { through, .. } => self.through = self.through.max(Some(through)),
                    Call::Checkpoint { .. } => self.checkpoints += 1,
                    _ => {}
                }
            }
        }
    }
}
