//! The rooms that each stream has for itself, and what is decided of every stream in turn.

use super::context::{Context, Request};
use super::lease_table::{self, Lease, LeaseTable, Scanned};
use super::shard_sync::{Listed, ShardSync};
use super::stream_consumer::StreamConsumer;
use super::stream_set::StreamIx;
use super::stream_watch::StreamWatch;
use crate::ids::OpId;
use crate::input::Outcome;
use crate::notice::ListReason;
use crate::time::{Mono, Span};

/// The most rows of unread streams removed after one scan.
const MAX_FORGOTTEN: usize = 100;

/// All streams, read or read no more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Streams {
    /// By the number of the stream.
    streams: Vec<OfStream>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OfStream {
    stream: StreamIx,
    watch: StreamWatch,
    shard_sync: ShardSync,
    consumer: StreamConsumer,
    /// The first whole scan since the stream is read has ended.
    scanned: bool,
}

impl OfStream {
    fn new(stream: StreamIx) -> Self {
        Self {
            stream,
            watch: StreamWatch::new(stream),
            shard_sync: ShardSync::new(stream),
            consumer: StreamConsumer::new(stream),
            scanned: false,
        }
    }

    /// The decisions about the stream after a whole scan. Whether its leases may be taken.
    fn after_scan(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, scanned: &Scanned, deputy: u32,
    ) -> bool {
        if !self.watch.recognises(cx, leases) {
            return false;
        }
        if !std::mem::replace(&mut self.scanned, true) {
            self.shard_sync.on_first_scan(cx, leases);
        }
        if leases.len_of(self.stream) == 0 {
            self.shard_sync.on_empty_table(cx, leases);
            return true;
        }
        self.shard_sync.on_filled_table();
        if !cx.has_recognised(self.stream) {
            if !self.shard_sync.has_just_listed(cx) {
                cx.request(Request::ListShards(self.stream, ListReason::TableWasThere));
            }
            return false;
        }
        self.shard_sync.tell_spoiled(cx, leases);
        self.shard_sync.look_for_orphans(cx, leases, deputy);
        if scanned.is_round() {
            self.after_round(cx, leases, scanned.balance().workers(), deputy);
        }
        true
    }

    /// What is looked after once in a scan interval, however often the table is scanned.
    fn after_round(&mut self, cx: &mut Context, leases: &mut LeaseTable, workers: u32, deputy: u32) {
        self.watch.watch(cx, workers);
        self.shard_sync.look_for_holes(cx, leases, deputy);
        self.shard_sync.look_for_lineage(cx, leases, deputy);
        self.shard_sync.clean_up(cx, leases, deputy);
        // A request lost among many is repeated.
        let missing = |lease: &Lease| lease.stream() == self.stream && lease.awaits_listing();
        if leases.owners().not_plain().any(|(_, lease)| missing(lease)) {
            cx.request(Request::DoubtStream(self.stream));
        }
    }
}

impl Streams {
    pub(super) fn new(cx: &Context) -> Self {
        let streams = cx.streams().read().into_iter().map(OfStream::new);
        Self { streams: streams.collect() }
    }

    fn get(&mut self, stream: StreamIx) -> Option<&mut OfStream> {
        let of = self.streams.get_mut(stream.index());
        debug_assert!(of.is_some(), "each stream has its rooms");
        of
    }

    /// A stream is read from now on: for the first time, or again.
    pub(super) fn begin(&mut self, stream: StreamIx) {
        match self.streams.get_mut(stream.index()) {
            Some(of) => {
                of.watch.begin_anew();
                of.shard_sync.begin_anew();
                of.consumer.begin_anew();
                of.scanned = false;
            }
            None => {
                debug_assert_eq!(self.streams.len(), stream.index(), "streams are numbered in order");
                self.streams.push(OfStream::new(stream));
            }
        }
    }

    pub(super) fn step(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        for of in &mut self.streams {
            of.consumer.step(cx, leases);
            of.watch.step(cx);
            of.shard_sync.step(cx);
        }
    }

    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        let at =
            |of: &OfStream| of.watch.wake_at(cx).min(of.shard_sync.wake_at()).min(of.consumer.wake_at(cx));
        self.streams.iter().map(at).min().unwrap_or(Mono::NEVER)
    }

    /// Whether shards are being listed.
    pub(super) fn are_listed(&self) -> bool {
        self.streams.iter().any(|of| of.shard_sync.is_listing())
    }

    /// The state of a stream came, or did not.
    pub(super) fn on_state(&mut self, cx: &mut Context, stream: StreamIx, op: OpId, outcome: Outcome) {
        if let Some(of) = self.get(stream) {
            of.watch.on_state(cx, op, outcome);
        }
    }

    /// The consumer of a stream was found or registered, or was not.
    pub(super) fn on_consumer(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, (stream, op): (StreamIx, OpId),
        outcome: &Outcome,
    ) {
        if let Some(of) = self.get(stream) {
            of.consumer.on_answer(cx, leases, op, outcome);
        }
    }

    /// A subscription to a shard of a stream was refused.
    pub(super) fn doubt_consumer(&mut self, cx: &Context, stream: StreamIx) {
        if let Some(of) = self.get(stream) {
            of.consumer.doubt(cx);
        }
    }

    /// A page of a listing came, or did not. Returns a list of all shards when it is whole.
    pub(super) fn on_page(
        &mut self, cx: &mut Context, leases: &LeaseTable, (stream, op, asked): (StreamIx, OpId, Mono),
        outcome: Outcome,
    ) -> Option<Listed> {
        self.answered(stream, asked, &outcome);
        let outcome = cx.streams().qualify(stream, outcome);
        self.get(stream)?.shard_sync.on_page(cx, leases, op, outcome)
    }

    /// A listing, or a read of a shard, that was asked for at that moment was answered, or was not.
    fn answered(&mut self, stream: StreamIx, asked: Mono, outcome: &Outcome) {
        if let (Outcome::Applied(_), Some(of)) = (outcome, self.get(stream)) {
            of.watch.answered(asked);
        }
    }

    /// A read of a shard of a stream ended. Returns the outcome with the names that leases have here.
    pub(super) fn on_read(
        &mut self, cx: &Context, stream: Option<StreamIx>, asked: Mono, outcome: Outcome,
    ) -> Outcome {
        let Some(stream) = stream else { return outcome };
        self.answered(stream, asked, &outcome);
        cx.streams().qualify(stream, outcome)
    }

    /// Lists all shards of a stream, unless they are being listed.
    pub(super) fn list(&mut self, cx: &mut Context, stream: StreamIx, why: ListReason) {
        if let Some(of) = self.get(stream) {
            of.shard_sync.list(cx, why);
        }
    }

    /// A shard of a stream was not found.
    pub(super) fn doubt(&mut self, cx: &mut Context, stream: StreamIx) {
        if let Some(of) = self.get(stream) {
            of.watch.doubt(cx);
        }
    }

    /// The shards of a stream were listed, with the listing's duration `took`.
    pub(super) fn listed(&mut self, cx: &Context, stream: StreamIx, took: Span) {
        if let Some(of) = self.get(stream) {
            of.watch.listed(cx, took);
        }
    }

    /// The identity of the found stream is known now. Returns the last scan, if its rows could not be weighed before.
    pub(super) fn on_identified(
        &self, cx: &mut Context, leases: &LeaseTable, stream: StreamIx,
    ) -> Option<Scanned> {
        if cx.streams().are_several() {
            cx.request(Request::Rescan(cx.now()));
            return None;
        }
        let weighed = self.streams.get(stream.index()).is_none_or(|of| of.scanned);
        let waits = leases.scans().complete() > 0 && !weighed;
        waits.then(|| Scanned::again(cx, leases))
    }

    /// What is decided of each stream after a whole scan. Whether leases of some stream may be taken. `deputy`: how much longer than
    /// the leader we wait.
    pub(super) fn after_scan(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, scanned: &Scanned, deputy: u32,
    ) -> bool {
        let mut ready = false;
        for stream in cx.streams().read() {
            if let Some(of) = self.get(stream) {
                ready |= of.after_scan(cx, leases, scanned, deputy);
            }
        }
        if scanned.is_round() {
            forget_unread(cx, leases, deputy);
        }
        ready
    }

    /// The shards of a stream were listed. Whether the leases are of this stream. If not, the worker does nothing more
    /// with the leases.
    pub(super) fn recognises(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx, listed: &Listed,
    ) -> bool {
        let Some(of) = self.get(stream) else {
            // The lookup has asserted that each stream has its rooms.
            return false;
        };
        let recognised = of.shard_sync.recognises(cx, leases, listed);
        if recognised {
            lease_table::learn_lineage(leases, cx, listed.shards(), listed.asked_at());
            of.shard_sync.compare(cx, leases, listed);
        }
        recognised
    }

    /// Creates the missing leases of a stream beside existing leases. `deputy`: how much longer than the leader we
    /// wait.
    pub(super) fn create_missing(
        &mut self, cx: &mut Context, leases: &LeaseTable, (stream, listed): (StreamIx, &Listed), deputy: u32,
    ) {
        if let Some(of) = self.get(stream) {
            of.shard_sync.create_missing(cx, leases, listed, deputy);
        }
    }
}

/// Removes rows of streams that no worker reads any more, if so configured.
fn forget_unread(cx: &mut Context, leases: &LeaseTable, deputy: u32) {
    let delay = cx.config().stream_cleanup_delay;
    if delay == Span::ZERO {
        return;
    }
    let patience = delay.times(1 + u64::from(deputy));
    let expires = cx.now() + cx.config().scan_interval;
    for change in leases.unread().removals(cx, patience, MAX_FORGOTTEN) {
        cx.write_row(change, "no worker reads its stream any more".into(), None, expires);
    }
}
