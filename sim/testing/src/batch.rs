//! Records and batches for unit tests of handlers.

use crate::clock::StillClock;
use bytes::Bytes;
use leasehold::internals::TestShard;
use leasehold::runtime::Runtime as _;
use leasehold::{
    Batch, Checkpoint, Fence, FencingToken, HashKey, Position, Record, SequenceNumber, ShardId, ShardInfo,
    Span, Wall,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The default shard of a lease.
const SHARD: &str = "shardId-000000000000";
/// For how long a lease lasts that is not told otherwise: the default of `lease_duration`.
const LEASE: Duration = Duration::from_secs(10);

/// A record for a [batch](TestLease::batch): with this payload, the partition key `key`, and the next sequence number
/// after the record before.
///
/// ```
/// let record = leasehold_testing::record("paid").partition_key("order-7").sequence(9).build();
/// assert_eq!(&record.data[..], b"paid");
/// assert_eq!(&*record.partition_key, "order-7");
/// ```
pub fn record(data: impl Into<Bytes>) -> RecordBuilder {
    RecordBuilder {
        data: data.into(),
        partition_key: "key".into(),
        sequence: None,
        sub: 0,
        explicit_hash_key: None,
        arrival: None,
        aggregated: false,
    }
}

/// A batch with these records, of a valid lease of its own. For the name of the shard, the token, or a fence that ends,
/// begin with a [`TestLease`].
///
/// ```
/// use leasehold_testing::{batch, record};
///
/// let batch = batch([record("a"), record("b")]).attempt(2).build();
/// assert_eq!((batch.len(), batch.attempt()), (2, 2));
/// assert!(batch.fence().is_valid());
/// ```
pub fn batch(records: impl IntoIterator<Item = RecordBuilder>) -> BatchBuilder {
    TestLease::new().batch(records)
}

/// The description of a record.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built, or given to a batch"]
pub struct RecordBuilder {
    data: Bytes,
    partition_key: Arc<str>,
    sequence: Option<SequenceNumber>,
    sub: u64,
    explicit_hash_key: Option<HashKey>,
    arrival: Option<Wall>,
    aggregated: bool,
}

impl RecordBuilder {
    /// Its partition key; `key` by default.
    pub fn partition_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.partition_key = key.into();
        self
    }

    /// The record's sequence number. By default 1, or one more than the record before in the batch or in the lease.
    pub fn sequence(mut self, number: impl Into<SequenceNumber>) -> Self {
        self.sequence = Some(number.into());
        self
    }

    /// Makes the record a part of an aggregated record: part `sub`, from 0. The parts of one aggregated record share a
    /// sequence number, so give the number, too.
    pub fn part(mut self, sub: u64) -> Self {
        self.sub = sub;
        self.aggregated = true;
        self
    }

    /// The explicit hash key of the record's producer; none by default.
    pub fn explicit_hash_key(mut self, key: HashKey) -> Self {
        self.explicit_hash_key = Some(key);
        self
    }

    /// The record's arrival in the stream; unknown by default.
    pub fn arrival(mut self, at: Wall) -> Self {
        self.arrival = Some(at);
        self
    }

    /// The record alone, of the shard `shardId-000000000000`. A batch makes its records for its own shard.
    #[must_use]
    pub fn build(self) -> Record {
        self.in_shard(&SHARD.into(), 1.into())
    }

    fn in_shard(self, shard: &ShardId, next: SequenceNumber) -> Record {
        let position = Position { sequence: self.sequence.unwrap_or(next), sub: self.sub };
        let mut record = Record::new(shard.clone(), position, self.partition_key, self.data);
        record.explicit_hash_key = self.explicit_hash_key;
        record.arrival = self.arrival;
        record.aggregated = self.aggregated;
        record
    }
}

/// One ownership of a shard, in the hands of a test: makes batches, ends on the test's request, and knows the
/// acknowledged records. Clones are handles on the same ownership.
///
/// ```
/// use leasehold_testing::{TestLease, record};
///
/// let lease = TestLease::new();
/// let batch = lease.batch([record("a"), record("b")]).build();
/// batch.ack(&batch.records()[0]);
/// assert_eq!(lease.acknowledged(), Some(batch.records()[0].position));
///
/// let fence = batch.fence();
/// lease.expire();
/// assert!(!fence.is_valid());
/// ```
#[derive(Clone, Debug)]
pub struct TestLease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<StillClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shard: TestShard,
    /// The number of the last record made.
    last: SequenceNumber,
}

impl Default for TestLease {
    fn default() -> Self {
        Self::new()
    }
}

impl TestLease {
    /// A lease of `shardId-000000000000` with the token 1, valid for 10 s of a standing clock.
    pub fn new() -> Self {
        Self::of(SHARD, 1, Checkpoint::TrimHorizon)
    }

    /// A lease of this shard with this token. A token grows with every change of owner. The shard is processed up to
    /// `from` at the lease's begin.
    pub fn of(shard: impl Into<ShardId>, token: u64, from: Checkpoint) -> Self {
        let clock = Arc::new(StillClock::default());
        let shard = TestShard::new(shard.into(), FencingToken(token), from, clock.clone());
        let last = match from {
            Checkpoint::At(position) => position.sequence,
            _ => 0.into(),
        };
        let lease = Self(Arc::new(Inner { clock, state: Mutex::new(State { shard, last }) }));
        lease.renew(LEASE);
        lease
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a batch with these records; [`BatchBuilder::build`] makes the batch.
    pub fn batch(&self, records: impl IntoIterator<Item = RecordBuilder>) -> BatchBuilder {
        BatchBuilder {
            lease: self.clone(),
            records: records.into_iter().collect(),
            behind: Duration::ZERO,
            attempt: 1,
        }
    }

    /// What [`Handler::open`](leasehold::Handler::open) and [`close`](leasehold::Handler::close) are told.
    pub fn info(&self) -> Arc<ShardInfo> {
        self.state().shard.info().clone()
    }

    /// The fence of all batches of this lease.
    pub fn fence(&self) -> Fence {
        self.state().shard.fence()
    }

    /// The worker loses the lease for good: no fence of the lease is valid any more.
    pub fn expire(&self) {
        self.state().shard.lose();
    }

    /// The worker renews the lease: from now on, the lease lasts for `lasts`. A [lost](TestLease::expire) lease stays
    /// lost.
    pub fn renew(&self, lasts: Duration) {
        let until = self.0.clock.now() + Span::from(lasts);
        self.state().shard.believe(until);
    }

    /// Moves the lease's clock.
    pub fn advance(&self, by: Duration) {
        self.0.clock.advance(by.into());
    }

    /// Everything up to here was acknowledged through batches, be it record by record; absent: nothing was. That a handler has
    /// returned `Ok` is for the test to see.
    pub fn acknowledged(&self) -> Option<Position> {
        self.state().shard.acknowledged()
    }

    /// Whether the handler asked for a checkpoint.
    pub fn checkpoint_asked(&self) -> bool {
        self.state().shard.checkpoints() > 0
    }
}

/// The description of a batch.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct BatchBuilder {
    lease: TestLease,
    records: Vec<RecordBuilder>,
    behind: Duration,
    attempt: u32,
}

impl BatchBuilder {
    /// How far behind the tip of the stream the records were read, in whole milliseconds; not at all by default.
    pub fn behind(mut self, lag: Duration) -> Self {
        self.behind = lag;
        self
    }

    /// The number of hand-overs of these records, with this hand-over; 1 by default.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// The batch.
    ///
    /// # Panics
    /// If the records are not in the order of their positions, or the batch is empty: no worker hands such a batch
    /// over.
    #[must_use]
    pub fn build(self) -> Batch {
        assert!(
            !self.records.is_empty(),
            "expected a batch to have a record, found none; no worker hands over an empty batch"
        );
        let mut state = self.lease.state();
        let shard = state.shard.info().shard.clone();
        let mut records: Vec<Record> = Vec::with_capacity(self.records.len());
        for record in self.records {
            let record = record.in_shard(&shard, following(state.last));
            state.last = record.position.sequence;
            if let Some(before) = records.last() {
                assert!(
                    before.position < record.position,
                    "expected a position after {}, found {}; give the records in the order of their positions",
                    before.position,
                    record.position
                );
            }
            records.push(record);
        }
        let behind_ms = u64::try_from(self.behind.as_millis()).unwrap_or(u64::MAX);
        state.shard.batch(records, behind_ms, self.attempt)
    }
}

/// The next sequence number.
fn following(number: SequenceNumber) -> SequenceNumber {
    let [high, middle, low] = number.words();
    let (low, carry) = low.overflowing_add(1);
    let (middle, carry) = middle.overflowing_add(u64::from(carry));
    SequenceNumber::from_words([high.wrapping_add(u64::from(carry)), middle, low])
}
