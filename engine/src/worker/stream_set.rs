//! The streams that a worker reads or has read: facts for all rooms.
//!
//! A worker of one stream has a stream without an identifier: its leases are named by shard ids alone. A worker of
//! several streams finds the stream of a lease in the lease's key. A stream no longer read keeps its number, and a
//! later reading uses the same number.

use crate::config::{Config, InitialPosition, ReadMode, StreamSource};
use crate::ids::ShardId;
use crate::input::{Outcome, Reply};
use crate::output::{Effect, EndReason, StreamOp};
use crate::row::LeaseRow;
use crate::shard::ChildShard;
use crate::stream_id::{StreamId, split_key};
use crate::stream_identity::StreamIdentity;
use crate::time::Mono;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stands for one stream within one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct StreamIx(u16);

impl StreamIx {
    /// The stream of a worker that reads one.
    pub(super) const ONLY: StreamIx = StreamIx(0);

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KnownStream {
    /// `None` for the only stream.
    id: Option<StreamId>,
    initial_position: InitialPosition,
    mode: ReadMode,
    /// The name or the ARN of the consumer, as configured.
    consumer_name: Arc<str>,
    /// The leases were recognised as this stream's, or this worker created all leases.
    recognised: bool,
    /// The service's description of the stream's identity.
    said: Option<StreamIdentity>,
    /// The description was borne out.
    identified: bool,
    /// When the last description that agrees with the first was requested.
    described: Mono,
    /// By the last description, the stream is gone or was made anew.
    denied: bool,
    /// Why the stream is read no more. `None` while it is read.
    ended: Option<EndReason>,
    /// The ARN of the consumer under which its shards are read by subscription, once the consumer is ACTIVE.
    consumer: Option<Arc<str>>,
}

/// All streams of the worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StreamSet {
    streams: Vec<KnownStream>,
    by_id: BTreeMap<StreamId, StreamIx>,
}

/// The most streams with a number. A worker given more streams in its life does not read the further streams.
const MOST: usize = 10_000;

impl KnownStream {
    /// A stream of which the worker knows nothing yet.
    fn new(id: Option<StreamId>, config: &Config) -> Self {
        Self {
            id,
            initial_position: config.initial_position,
            mode: config.reader.mode,
            consumer_name: config.consumer().into(),
            recognised: false,
            said: None,
            identified: false,
            described: Mono::default(),
            denied: false,
            ended: None,
            consumer: None,
        }
    }

    /// A stream of several. Settings of the stream take the place of the worker's options.
    fn of(source: &StreamSource, config: &Config) -> Self {
        let all = Self::new(Some(source.id.clone()), config);
        Self {
            initial_position: source.initial_position.unwrap_or(all.initial_position),
            mode: source.reader_mode.unwrap_or(all.mode),
            consumer_name: source.consumer.as_deref().map_or(all.consumer_name, Arc::from),
            ..all
        }
    }
}

impl StreamSet {
    pub(super) fn new(config: &Config) -> Self {
        let mut set = Self { streams: Vec::new(), by_id: BTreeMap::new() };
        if config.streams.is_empty() {
            set.streams.push(KnownStream::new(None, config));
        }
        for source in config.streams.as_slice() {
            set.add(source, config);
        }
        set
    }

    /// Whether leases are named by stream and shard.
    pub(super) fn are_several(&self) -> bool {
        self.streams.first().is_none_or(|stream| stream.id.is_some())
    }

    /// Reads a stream from now on. Absent: it is read already, or may not be.
    pub(super) fn add(&mut self, source: &StreamSource, config: &Config) -> Option<StreamIx> {
        let stream = KnownStream::of(source, config);
        if let Some(ix) = self.find(&source.id) {
            let known = &mut self.streams[ix.index()];
            let again = known.ended.is_some();
            if again {
                *known = stream;
            }
            return again.then_some(ix);
        }
        if self.streams.len() >= MOST {
            return None;
        }
        let ix = StreamIx(self.streams.len() as u16);
        self.streams.push(stream);
        self.by_id.insert(source.id.clone(), ix);
        Some(ix)
    }

    /// Reads a stream no more. Whether it was read: otherwise, the reason stays as it was.
    pub(super) fn end(&mut self, ix: StreamIx, why: EndReason) -> bool {
        let read = self.streams.get_mut(ix.index());
        let read = read.filter(|stream| stream.ended.is_none());
        read.map(|stream| stream.ended = Some(why)).is_some()
    }

    pub(super) fn find(&self, id: &StreamId) -> Option<StreamIx> {
        self.by_id.get(id).copied()
    }

    /// The stream of a lease, be it read or not. `None`: the stream was never read, or the key is not of this kind of
    /// application.
    pub(super) fn of_key(&self, key: &str) -> Option<StreamIx> {
        match (self.are_several(), split_key(key)) {
            (false, None) => Some(StreamIx::ONLY),
            (true, Some((id, _))) => self.by_id.get(id).copied(),
            _ => None,
        }
    }

    fn get(&self, ix: StreamIx) -> Option<&KnownStream> {
        self.streams.get(ix.index())
    }

    /// Whether it is read.
    pub(super) fn reads(&self, ix: StreamIx) -> bool {
        self.get(ix).is_some_and(|stream| stream.ended.is_none())
    }

    /// Why the worker reads the stream no more. `None` while it reads the stream.
    pub(super) fn ended(&self, ix: StreamIx) -> Option<EndReason> {
        self.get(ix)?.ended
    }

    /// The streams that are read, in the order of their numbers.
    pub(super) fn read(&self) -> Vec<StreamIx> {
        let all = (0..self.streams.len()).map(|n| StreamIx(n as u16));
        all.filter(|ix| self.reads(*ix)).collect()
    }

    /// Whether the leases are known to be of this stream.
    pub(super) fn is_recognised(&self, ix: StreamIx) -> bool {
        self.get(ix).is_some_and(|stream| stream.recognised)
    }

    pub(super) fn recognise(&mut self, ix: StreamIx) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            stream.recognised = true;
        }
    }

    /// The identity by the service's description, borne out or not. `None`: unknown.
    pub(super) fn said(&self, ix: StreamIx) -> Option<&StreamIdentity> {
        self.get(ix)?.said.as_ref()
    }

    /// Whether the service's description was borne out, or has no identity to bear out.
    pub(super) fn is_identified(&self, ix: StreamIx) -> bool {
        self.get(ix).is_some_and(|stream| stream.identified || stream.said.is_none())
    }

    /// What the stream is: rows are written under it. Absent: not known.
    pub(super) fn identity(&self, ix: StreamIx) -> Option<&StreamIdentity> {
        self.said(ix).filter(|_| self.is_identified(ix))
    }

    /// Whether a row of a shard of stream `ix` names another stream.
    pub(super) fn is_of_another(&self, ix: StreamIx, row: &LeaseRow) -> bool {
        let (said, named) = (self.said(ix), row.stream.as_ref());
        said.zip(named).is_some_and(|(said, named)| named.is_another(said))
    }

    pub(super) fn set_said(&mut self, ix: StreamIx, identity: Option<StreamIdentity>) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            debug_assert!(!stream.identified || stream.said == identity, "what was borne out stays");
            stream.said = identity;
        }
    }

    pub(super) fn set_identified(&mut self, ix: StreamIx) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            stream.identified = true;
        }
    }

    /// The ARN of the stream. Absent: not known, or the service knows no ARNs.
    pub(super) fn arn(&self, ix: StreamIx) -> Option<Arc<str>> {
        self.identity(ix)?.arn().map(Arc::from)
    }

    /// The ARN of the consumer that may subscribe to the stream's shards.
    pub(super) fn consumer(&self, ix: StreamIx) -> Option<&Arc<str>> {
        self.get(ix)?.consumer.as_ref()
    }

    pub(super) fn set_consumer(&mut self, ix: StreamIx, arn: Option<Arc<str>>) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            stream.consumer = arn;
        }
    }

    /// When the last description that agrees with the first was requested.
    pub(super) fn described(&self, ix: StreamIx) -> Mono {
        self.get(ix).map_or(Mono::default(), |stream| stream.described)
    }

    /// Whether, by the last description, the stream is gone or was made anew.
    pub(super) fn is_denied(&self, ix: StreamIx) -> bool {
        self.get(ix).is_some_and(|stream| stream.denied)
    }

    pub(super) fn set_denied(&mut self, ix: StreamIx, denied: bool) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            stream.denied = denied;
        }
    }

    pub(super) fn set_described(&mut self, ix: StreamIx, asked: Mono) {
        if let Some(stream) = self.streams.get_mut(ix.index()) {
            stream.described = asked;
        }
    }

    /// Where its shards without a lease are started.
    pub(super) fn initial_position(&self, ix: StreamIx) -> InitialPosition {
        let stream = self.get(ix);
        debug_assert!(stream.is_some(), "a number stands for a stream");
        stream.map_or(InitialPosition::TrimHorizon, |stream| stream.initial_position)
    }

    /// How its shards are read.
    pub(super) fn mode(&self, ix: StreamIx) -> ReadMode {
        let stream = self.get(ix);
        debug_assert!(stream.is_some(), "a number stands for a stream");
        stream.map_or(ReadMode::Polling, |stream| stream.mode)
    }

    /// The name or the ARN of its consumer, as configured.
    pub(super) fn consumer_name(&self, ix: StreamIx) -> Arc<str> {
        let stream = self.get(ix);
        debug_assert!(stream.is_some(), "a number stands for a stream");
        stream.map(|stream| stream.consumer_name.clone()).unwrap_or_default()
    }

    /// The identifier. `None` for the only stream.
    pub(super) fn id(&self, ix: StreamIx) -> Option<&StreamId> {
        self.get(ix)?.id.as_ref()
    }

    /// The operation on this stream, with Kinesis's name of the shard.
    pub(super) fn effect(&self, ix: StreamIx, op: StreamOp) -> Effect {
        match self.id(ix) {
            Some(id) => Effect::StreamOf(id.clone(), stripped(id, op)),
            None => Effect::Stream(op),
        }
    }

    /// The answer to an operation on this stream, with the engine's names of shards.
    pub(super) fn qualify(&self, ix: StreamIx, outcome: Outcome) -> Outcome {
        match self.id(ix) {
            Some(id) => qualified(id, outcome),
            None => outcome,
        }
    }
}

fn qualify_child(id: &StreamId, child: ChildShard) -> ChildShard {
    ChildShard {
        id: id.qualified(&child.id),
        parents: child.parents.iter().map(|parent| id.qualified(parent)).collect(),
        ..child
    }
}

/// An answer of Kinesis about a stream, with the engine's names of shards.
fn qualified(id: &StreamId, mut outcome: Outcome) -> Outcome {
    match &mut outcome {
        Outcome::Applied(Reply::Shards(page)) => {
            let shards = std::mem::take(&mut page.shards).into_iter();
            page.shards = shards.map(|shard| id.qualify_shard(shard)).collect();
        }
        Outcome::Applied(Reply::Records(fetched)) => {
            let children = fetched.end.take();
            let all = |all: Vec<ChildShard>| all.into_iter().map(|child| qualify_child(id, child)).collect();
            fetched.end = children.map(all);
        }
        _ => {}
    }
    outcome
}

/// An operation with Kinesis's name of its shard.
fn stripped(id: &StreamId, mut op: StreamOp) -> StreamOp {
    match &mut op {
        StreamOp::GetIterator { shard, .. }
        | StreamOp::GetRecords { shard, .. }
        | StreamOp::Subscribe { shard, .. }
        | StreamOp::NextEvent { shard, .. } => {
            let bare = shard.as_str().strip_prefix(id.as_str());
            let bare = bare.and_then(|rest| rest.strip_prefix(':'));
            debug_assert!(bare.is_some(), "a shard is read of its own stream");
            if let Some(bare) = bare.map(ShardId::from) {
                *shard = bare;
            }
        }
        StreamOp::Describe
        | StreamOp::ListShards { .. }
        | StreamOp::DescribeConsumer { .. }
        | StreamOp::RegisterConsumer { .. } => {}
    }
    op
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> StreamId {
        StreamId::new("1", name, 2).unwrap()
    }

    #[test]
    fn a_stream_keeps_its_number_when_it_is_read_again() {
        let config = Config::default().with_streams(vec![id("a"), id("b")]);
        let mut set = StreamSet::new(&config);
        let [a, b] = [0, 1].map(StreamIx);
        assert!(set.are_several() && set.read() == [a, b]);
        assert_eq!(set.add(&id("a").into(), &config), None, "it is read already");
        set.recognise(a);
        assert!(set.end(a, EndReason::StreamRemoved) && !set.end(a, EndReason::SourceGone));
        assert_eq!((set.read(), set.ended(a)), (vec![b], Some(EndReason::StreamRemoved)));
        assert_eq!(set.add(&id("a").into(), &config), Some(a));
        assert!(set.reads(a) && !set.is_recognised(a));
        assert_eq!(set.add(&id("c").into(), &config), Some(StreamIx(2)));
    }

    #[test]
    fn names_are_cut_for_kinesis_and_completed_in_its_answers() {
        let id = id("a");
        let op = |shard: &str| StreamOp::GetIterator {
            shard: ShardId::from(shard),
            from: crate::output::IteratorFrom::Latest,
        };
        assert_eq!(stripped(&id, op("1:a:2:shardId-0")), op("shardId-0"));
        let child = ChildShard {
            id: "shardId-1".into(),
            parents: vec!["shardId-0".into()],
            range: crate::shard::HashRange::ALL,
        };
        let child = qualify_child(&id, child);
        assert_eq!(child.id.as_str(), "1:a:2:shardId-1");
        assert_eq!(child.parents[0].as_str(), "1:a:2:shardId-0");
    }

    #[test]
    fn keys_of_one_stream_and_of_several_do_not_mix() {
        let one = StreamSet::new(&Config::default().with_stream("a"));
        assert_eq!(one.of_key("shardId-0"), Some(StreamIx::ONLY));
        assert_eq!(one.of_key("1:a:2:shardId-0"), None);
        let several = StreamSet::new(&Config::default().with_streams(vec![id("a")]));
        assert_eq!(several.of_key("1:a:2:shardId-0"), Some(StreamIx(0)));
        for key in ["shardId-0", "1:b:2:shardId-0", "1:a:3:shardId-0"] {
            assert_eq!(several.of_key(key), None, "{key}");
        }
    }
}
