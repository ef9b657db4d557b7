//! The stream in the workers' view: the in-memory Kinesis, with listings that lag.

mod consumers;
mod misread;
mod replica;
mod spelled;

use super::given::past;
use super::table::wall_ms;
use crate::draws::{Draws, Roll};
use crate::faults::StreamFaults;
use crate::names::{Names, record_of, sequence};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::start::Start;
use crate::streams::{StreamNo, Streams};
use crate::swarm::{EPOCH_MS, Load, STREAM_AGE_MS};
use bytes::Bytes;
pub(crate) use consumers::Pushed;
use leasehold_engine::input::{Fetched, Outcome, Reply, ShardPage, StreamState};
use leasehold_engine::output::{IteratorFrom, ShardFilter as Filter};
use leasehold_engine::position::Position;
use leasehold_engine::shard::ChildShard;
use leasehold_engine::table::Item;
use leasehold_engine::time::Wall;
use leasehold_local_aws::kinesis::{
    ApiError, ChildShard as Child, CreateStream, EndOfShard, IteratorStart, Kinesis, KinesisConfig,
    ListShards, NewRecord, ReadRecord, Shard, ShardCountUpdate, ShardFilter, ShardInfo, ShardIterator,
    Stream, StreamId, StreamStatus, Subscription,
};
pub(crate) use replica::{Sight, claimed_end, not_found, of_table};
use spelled::{child, failure, nothing_yet, shard};
use std::sync::Arc;

static PAYLOAD: [u8; 1 << 15] = [0; 1 << 15];

/// The streams, and the service's own acts.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    kinesis: Kinesis,
    streams: Streams,
    /// Each stream's name, and the id of its present creation.
    ids: Vec<(String, StreamId)>,
    list_lag_ms: i64,
    list_page: Option<u32>,
    children_unnamed: bool,
    key: Arc<str>,
    bytes: usize,
}

/// The items of an answer to a foreign program, and the start of the next page.
pub(crate) type Items = (Vec<Arc<Item>>, Option<Item>);

/// The contents of an answer that the worker keeps under the command's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Carry {
    Nothing,
    /// The items of a foreign program's read, and the start of the next page.
    Items(Vec<Arc<Item>>, Option<Item>),
    /// The rest of a listing.
    Token(String),
    /// A place to read from.
    Iterator(ShardNo, ShardIterator),
    Subscription(ShardNo, Box<Subscription>),
    /// Records from the first part to the last, and the place of the next read.
    Batch {
        shard: ShardNo,
        first: u64,
        last: u64,
        next: Option<ReadOn>,
        /// This part has the number of a part processed before.
        low: Option<u64>,
    },
}

/// How a worker goes on reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadOn {
    Iterator(ShardIterator),
    Subscription(Box<Subscription>),
}

impl Carry {
    /// The oracles' fact about an answer that brought records to a life.
    pub(crate) fn fetched(&self, life: LifeNo, outcome: &Outcome) -> Option<Fact> {
        match (outcome, self) {
            (Outcome::Applied(Reply::Records(fetched)), &Carry::Batch { shard, first, last, .. })
                if fetched.count > 0 && first <= last =>
            {
                Some(Fact::Fetched { life, shard, first, last, bytes: fetched.bytes })
            }
            _ => None,
        }
    }
}

impl Source {
    /// Streams older than the application. `shards`: their number of shards together.
    pub(crate) fn new(
        streams: Streams, shards: u32, load: &Load, faults: &StreamFaults,
    ) -> Result<Self, ApiError> {
        let mut kinesis = account(faults);
        let created_ms = EPOCH_MS - STREAM_AGE_MS;
        let each = shards.div_ceil(streams.all().len() as u32);
        let mut ids = Vec::new();
        for stream in streams.all() {
            let name = streams.name(stream);
            let id = kinesis.create_stream(created_ms, &CreateStream::provisioned(&name, each))?;
            ids.push((name, id));
        }
        Ok(Self::of(kinesis, streams, ids, load, faults))
    }

    /// An existing stream.
    pub(crate) fn given(
        start: &Start, draws: Draws, load: &Load, faults: &StreamFaults,
    ) -> Result<Self, ApiError> {
        let mut kinesis = account(faults);
        let (created_ms, shards) = past(start, draws, &Bytes::from_static(&PAYLOAD[..size(load)]));
        let streams = Streams::default();
        let name = streams.name(0);
        let id = kinesis.restore_stream(EPOCH_MS, &name, created_ms, &shards)?;
        Ok(Self::of(kinesis, streams, vec![(name, id)], load, faults))
    }

    fn of(
        kinesis: Kinesis, streams: Streams, ids: Vec<(String, StreamId)>, load: &Load, faults: &StreamFaults,
    ) -> Self {
        Self {
            kinesis,
            streams,
            ids,
            list_lag_ms: faults.list_lag_ms,
            list_page: (faults.list_page > 0).then_some(faults.list_page),
            children_unnamed: faults.children_unnamed,
            key: "key".into(),
            bytes: size(load),
        }
    }

    /// The listing tells the truth from now on, and page tokens live as long as in AWS. Else many workers could list
    /// many pages at once without coming to the last page: a token might live shorter than a wait in the queue.
    pub(crate) fn heal(&mut self) {
        self.list_lag_ms = 0;
        self.kinesis.set_token_expiry(StreamFaults::default().token_expiry_ms);
    }

    /// Ground truth: a stream, if existing.
    pub(crate) fn truth(&self, stream: StreamNo) -> Option<&Stream> {
        self.kinesis.stream(self.name(stream))
    }

    /// Ground truth: a shard.
    pub(crate) fn shard(&self, shard: ShardNo) -> Option<&Shard> {
        let (stream, index) = self.streams.place(shard);
        self.truth(stream)?.shard(index)
    }

    /// The numbering of shards.
    pub(crate) fn streams(&self) -> Streams {
        self.streams
    }

    fn name(&self, stream: StreamNo) -> &str {
        &self.ids[stream as usize].0
    }

    fn id(&self, stream: StreamNo) -> StreamId {
        self.ids[stream as usize].1
    }

    /// The service's own acts are done up to now.
    pub(crate) fn advance(&mut self, now_ms: i64) {
        self.kinesis.advance(now_ms);
    }

    /// Begins to split a shard.
    pub(crate) fn split(&mut self, now_ms: i64, shard: ShardNo, at: u128) -> Result<(), ApiError> {
        let (stream, index) = self.streams.place(shard);
        self.kinesis.split_shard(now_ms, self.id(stream), index, at)
    }

    /// Begins to merge two shards of one stream.
    pub(crate) fn merge(&mut self, now_ms: i64, [left, right]: [ShardNo; 2]) -> Result<(), ApiError> {
        let (stream, left) = self.streams.place(left);
        let (_, right) = self.streams.place(right);
        self.kinesis.merge_shards(now_ms, self.id(stream), left, right)
    }

    /// Begins to change the number of a stream's shards.
    pub(crate) fn resize(
        &mut self, now_ms: i64, stream: StreamNo, shards: u32,
    ) -> Result<ShardCountUpdate, ApiError> {
        let id = self.id(stream);
        self.kinesis.update_shard_count(now_ms, id, shards)
    }

    /// The time of the stream's next own change.
    pub(crate) fn next_change_ms(&self) -> Option<i64> {
        self.kinesis.next_change_ms()
    }

    /// Puts a record with the size of this many parts into a stream. Returns the record's shard, and the record's
    /// number in the shard.
    pub(crate) fn put(
        &mut self, at_ms: i64, stream: StreamNo, hash_key: u128, parts: usize,
    ) -> Option<(ShardNo, u64)> {
        let bytes = self.bytes.saturating_mul(parts).min(PAYLOAD.len());
        let record = NewRecord {
            data: Bytes::from_static(&PAYLOAD[..bytes]),
            partition_key: self.key.clone(),
            explicit_hash_key: Some(hash_key),
        };
        let id = self.id(stream);
        let written = self.kinesis.put_record(at_ms, id, record, None).ok()?;
        let record = written.sequence_number.parts()?.position;
        Some((self.streams.shard(stream, written.shard), record))
    }

    /// A person deletes a stream; returns whether the stream existed.
    pub(crate) fn delete(&mut self, now_ms: i64, stream: StreamNo) -> bool {
        let (name, _) = &self.ids[stream as usize];
        self.kinesis.delete_stream(now_ms, name.as_str(), true).is_ok()
    }

    /// A person creates another stream of the same name.
    pub(crate) fn remake(&mut self, now_ms: i64, stream: StreamNo, shards: u32) -> bool {
        let (name, id) = &mut self.ids[stream as usize];
        let made = self.kinesis.create_stream(now_ms, &CreateStream::provisioned(name, shards));
        match made {
            Ok(made) => {
                *id = made;
                true
            }
            Err(_) => false,
        }
    }

    /// The service forgets all records older than a time, and the shards closed before the time.
    pub(crate) fn trim(&mut self, before_ms: i64) {
        for (_, id) in &self.ids {
            self.kinesis.forget_before(*id, before_ms);
        }
    }

    /// The first readable record of a shard.
    pub(crate) fn first(&self, shard: ShardNo) -> u64 {
        let shard = self.shard(shard);
        shard.map_or(
            1,
            |shard| {
                if shard.is_expired() { shard.next_position() } else { shard.first_position() }
            },
        )
    }

    /// Whether the service has forgotten a shard.
    pub(crate) fn is_forgotten(&self, shard: ShardNo) -> bool {
        let shard = self.shard(shard);
        shard.is_some_and(|shard| shard.is_expired())
    }

    /// The number of a shard's records.
    pub(crate) fn records(&self, shard: ShardNo) -> u64 {
        let shard = self.shard(shard);
        shard.map_or(0, |shard| shard.next_position() - 1)
    }

    /// The first record at or after a time.
    pub(crate) fn first_at(&self, shard: ShardNo, wall: Wall) -> u64 {
        let Some(shard) = self.shard(shard) else {
            return 1;
        };
        let before = shard.records().take_while(|(_, record)| record.arrival_ms < wall.0).count();
        shard.first_position() + before as u64
    }

    /// The position of a record.
    pub(crate) fn position(&self, shard: ShardNo, record: u64) -> Option<Position> {
        self.shard(shard)?.record(record).map(|(number, _)| Position::of(sequence(number)))
    }

    pub(crate) fn describe(&mut self, now: Time, stream: StreamNo) -> Outcome {
        let (name, _) = &self.ids[stream as usize];
        match self.kinesis.describe_stream_summary(wall_ms(now), name.as_str()) {
            Ok(summary) => Outcome::Applied(Reply::Stream(StreamState {
                readable: matches!(summary.status, StreamStatus::Active | StreamStatus::Updating),
                created: Wall(summary.created_ms),
                arn: summary.arn.into(),
            })),
            Err(error) => failure(error),
        }
    }

    pub(crate) fn list(
        &mut self, now: Time, stream: StreamNo, filter: Filter, token: Option<&str>, names: &mut Names,
        sight: Sight<'_>,
    ) -> (Outcome, Carry) {
        let now_ms = wall_ms(now);
        let (name, _) = &self.ids[stream as usize];
        let request = ListShards {
            stream: token.is_none().then_some(name.as_str().into()),
            next_token: token,
            max_results: self.list_page,
            filter: token.is_none().then_some(match sight.filter(filter) {
                Filter::All => ShardFilter::FromTrimHorizon,
                Filter::AtTrimHorizon => ShardFilter::AtTrimHorizon,
                Filter::AtLatest => ShardFilter::AtLatest,
                Filter::AtTimestamp(wall) => ShardFilter::AtTimestamp(wall.0),
            }),
            ..ListShards::default()
        };
        match self.kinesis.list_shards(now_ms, &request) {
            Ok(page) => {
                let more = page.next_token.is_some();
                let shown: Vec<ShardInfo> = page
                    .shards
                    .into_iter()
                    .filter_map(|info| match sight.replica {
                        Some(replica) => self.seen_by(replica, stream, info),
                        None => self.lagging(now_ms, stream, info, sight.roll),
                    })
                    .collect();
                let shards = shown.into_iter().map(|info| shard(info, names)).collect();
                let carry = page.next_token.map_or(Carry::Nothing, Carry::Token);
                (Outcome::Applied(Reply::Shards(ShardPage { shards, more })), carry)
            }
            Err(error) => (failure(error), Carry::Nothing),
        }
    }

    /// A shard in the view of a late listing: a new shard is missing, a shard just closed looks open. Each shard has
    /// its own delay, so a child may appear before its parent closes, or a parent closed without children.
    fn lagging(
        &self, now_ms: i64, stream: StreamNo, mut info: ShardInfo, roll: &mut Roll,
    ) -> Option<ShardInfo> {
        if self.list_lag_ms == 0 {
            return Some(info);
        }
        let seen_ms = now_ms - roll.below(self.list_lag_ms as u64 + 1) as i64;
        let closed_ms = now_ms - roll.below(self.list_lag_ms as u64 + 1) as i64;
        let truth = self.truth(stream)?.shard(info.shard)?;
        if truth.opened_ms() > seen_ms {
            return None;
        }
        if truth.closed_ms().is_some_and(|closed| closed > closed_ms) {
            info.ending_sequence = None;
        }
        Some(info)
    }

    pub(crate) fn iterator(&mut self, now: Time, shard: ShardNo, from: IteratorFrom) -> (Outcome, Carry) {
        let (stream, index) = self.streams.place(shard);
        let (name, _) = &self.ids[stream as usize];
        match self.kinesis.get_shard_iterator(wall_ms(now), name.as_str(), index, start(from)) {
            Ok(iterator) => (Outcome::Applied(Reply::Iterator), Carry::Iterator(shard, iterator)),
            Err(error) => (failure(error), Carry::Nothing),
        }
    }

    /// The children of a shard.
    pub(crate) fn children(&self, shard: ShardNo, names: &mut Names) -> Vec<ChildShard> {
        let (stream, index) = self.streams.place(shard);
        let children = |truth: &Stream| Some(truth.children_of(truth.shard(index)?));
        let children = self.truth(stream).and_then(children).unwrap_or_default();
        children.into_iter().map(|shard| child(shard, names)).collect()
    }

    pub(crate) fn fetch(
        &mut self, now: Time, shard: ShardNo, iterator: ShardIterator, limit: u32, empty: bool,
        names: &mut Names,
    ) -> (Outcome, Carry) {
        let now_ms = wall_ms(now);
        let page = match self.kinesis.get_records(now_ms, &iterator, Some(limit)) {
            Ok(page) => page,
            Err(error) => return (failure(error), Carry::Nothing),
        };
        if empty && !page.records.is_empty() {
            return nothing_yet(shard, ShardIterator { issued_ms: now_ms, ..iterator });
        }
        let next = page.next.map(ReadOn::Iterator);
        let brought = (&*page.records, page.millis_behind_latest, page.child_shards);
        // An application receives no records of another shard.
        let own = iterator.shard == self.streams.place(shard).1;
        self.brought((shard, own), brought, next, names)
    }

    /// What an answer has brought, as the worker's adapter describes it.
    pub(crate) fn brought(
        &self, (shard, own): (ShardNo, bool),
        (records, behind_ms, children): (&[ReadRecord], i64, Vec<Child>), next: Option<ReadOn>,
        names: &mut Names,
    ) -> (Outcome, Carry) {
        let position =
            |record: Option<&ReadRecord>| record.map(|record| Position::of(sequence(record.sequence_number)));
        let (first, last) = (position(records.first()), position(records.last()));
        let unnamed = self.children_unnamed;
        let end = next.is_none().then(|| {
            let named = children.into_iter().filter(|_| !unnamed);
            named.map(|shard| child(shard, names)).collect()
        });
        let of = |position: Option<Position>| position.filter(|_| own).and_then(record_of);
        let (from, to) = (of(first), of(last));
        let parts = names.parts();
        let carry = Carry::Batch {
            shard,
            first: from.map_or(1, |record| parts.first(shard, record)),
            last: to.map_or(0, |record| parts.last(shard, record)),
            next,
            low: None,
        };
        // The last part of an aggregated record, in an adapter's description.
        let last = last.map(|position| Position {
            sub: to.map_or(0, |record| parts.count(shard, record).saturating_sub(1)),
            ..position
        });
        let fetched = Fetched {
            count: records.len() as u32,
            bytes: records.iter().map(|record| record.data.len() as u64).sum(),
            first,
            last,
            behind_ms: behind_ms.max(0) as u64,
            end,
            ..Fetched::default()
        };
        (Outcome::Applied(Reply::Records(fetched)), carry)
    }
}

/// Where the service begins to read.
fn start(from: IteratorFrom) -> IteratorStart {
    let fake = |position: Position| {
        leasehold_local_aws::kinesis::SequenceNumber::from_words(position.sequence.words())
    };
    match from {
        IteratorFrom::TrimHorizon => IteratorStart::TrimHorizon,
        IteratorFrom::Latest => IteratorStart::Latest,
        IteratorFrom::AtTimestamp(wall) => IteratorStart::AtTimestamp(wall.0),
        IteratorFrom::At(position) => IteratorStart::AtSequence(fake(position)),
        IteratorFrom::After(position) => IteratorStart::AfterSequence(fake(position)),
    }
}

/// The account of the stream.
fn account(faults: &StreamFaults) -> Kinesis {
    let end_of_shard =
        if faults.end_with_records { EndOfShard::WithLastRecords } else { EndOfShard::OwnAnswer };
    Kinesis::new(KinesisConfig {
        create_ms: 0,

        update_ms: faults.update_ms,
        limits: faults.limits,
        iterator_expiry_ms: faults.iterator_expiry_ms,
        token_expiry_ms: faults.token_expiry_ms,
        end_of_shard,
        ..KinesisConfig::default()
    })
}

fn size(load: &Load) -> usize {
    (load.bytes as usize).clamp(1, PAYLOAD.len())
}
