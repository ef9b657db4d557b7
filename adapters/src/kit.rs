//! A shard that no worker owns: what unit tests of handlers make batches of.

use crate::asks::{Ask, Asks, ShardAsks, asks};
use crate::batch::{Batch, ShardInfo};
use crate::fence::{Fence, Fences};
use crate::misplaced::Outside;
use crate::receipt::Receipt;
use crate::record::Record;
use crate::runtime::Runtime;
use crate::store::{Fetched, Reading};
use leasehold_engine::ids::{FencingToken, OpId, ShardId};
use leasehold_engine::input::Call;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Mono;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A shard with a lease of a length set by the test, and the handler's acknowledgements of its batches.
pub struct TestShard {
    info: Arc<ShardInfo>,
    fences: Fences,
    fence: Fence,
    asks: ShardAsks,
    said: Asks,
    /// The last record of each made batch, and whether the whole batch was acknowledged at once.
    made: Mutex<Vec<(Position, bool)>>,
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
    /// A shard processed up to `from`. Its lease is over until [`believe`](TestShard::believe) is called.
    pub fn new(shard: ShardId, token: FencingToken, from: Checkpoint, clock: Arc<dyn Runtime>) -> Self {
        let lease = shard.to_lease();
        let (sender, said) = asks();
        let fences = Fences::default();
        Self {
            fence: fences.open(lease.clone(), token, clock),
            asks: sender.shard(lease.clone(), token),
            info: Arc::new(ShardInfo { shard, lease, token, from, since: None }),
            fences,
            said,
            made: Mutex::default(),
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
        let last = records.last().map(|record| record.position).unwrap_or_default();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = OpId { life: 0, n: made.len() as u64 };
        made.push((last, false));
        let end = records.len();
        Batch {
            shard: self.info.clone(),
            fetched: Arc::new(Fetched {
                records,
                outside: Outside::default(),
                reading,
                foreign: false,
                unordered: false,
            }),
            first: 0,
            end,
            attempt,
            fence: self.fence.clone(),
            batch,
            receipt: Receipt::new(batch, last, self.asks.clone()),
        }
    }

    /// The acknowledged position, over the batches made by [`batch`](TestShard::batch) without a gap. Absent: no
    /// acknowledgement.
    pub fn acknowledged(&mut self) -> Option<Position> {
        self.hear();
        self.through
    }

    /// The number of checkpoint requests. Requests in a row, with nothing read in between, count as one request.
    pub fn checkpoints(&mut self) -> u32 {
        self.hear();
        self.checkpoints
    }

    fn hear(&mut self) {
        while let Some(ask) = self.said.try_next() {
            for call in Ask::into_calls(ask) {
                match call {
                    Call::Processed { through, .. } => self.through = self.through.max(Some(through)),
                    Call::Acknowledged { batch, .. } => self.acknowledge(batch),
                    Call::Checkpoint { .. } => self.checkpoints += 1,
                    _ => {}
                }
            }
        }
    }

    /// All of a batch was acknowledged: counts if it was of all before it.
    fn acknowledge(&mut self, batch: OpId) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, done)) = made.get_mut(batch.n as usize) {
            *done = true;
        }
        let run = made.iter().take_while(|(last, done)| *done || Some(*last) <= self.through);
        self.through = self.through.max(run.map(|(last, _)| *last).last());
    }
}
