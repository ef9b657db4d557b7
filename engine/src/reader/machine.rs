//! Fetching: which stream command is next, and when.

mod batches;
mod doubt;
mod feed;
mod pace;
mod size;

use super::buffer::{BatchRef, Buffer};
use super::{Ctx, Event, How, Start, Want};
use crate::began;
use crate::config::ReaderConfig;
use crate::draw::draw_below;
use crate::ids::OpId;
use crate::input::{Cause, Fetched, Outcome, Reply, Why};
use crate::output::IteratorFrom;
use crate::position::Position;
use crate::shard::ChildShard;
use crate::time::{Mono, Span, Wall};
use doubt::{Doubts, EndClaim, Verdict};
pub(crate) use feed::{EVENT_PAUSE, Feeds, SILENCE, SUBSCRIBE_TIMEOUT};
use feed::{FeedKind, Subscribing};
use pace::Second;
use size::Size;

/// An iterator lives five minutes. An iterator unused for this long is replaced before the service refuses the
/// iterator.
const FRESH: Span = Span::from_secs(240);

/// After this many failures in a row, an invalid position is worth an event of its own.
const BAD_POSITION_TRIES: u32 = 3;

/// The reader of one shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reader {
    /// Where to read before the first answer with records.
    origin: IteratorFrom,
    /// The origin is the moment at which the application began. The number counts refusals of the moment in a row as a
    /// future time.
    since: Option<u32>,
    /// All records up to here were processed when reading began (or was rewound): the processed records are filtered.
    floor: Option<Position>,
    /// The last position fetched since then.
    fetched: Option<Position>,
    cursor: Option<Cursor>,
    flight: Option<Flight>,
    /// No `GetIterator` before this moment.
    iterator_at: Mono,
    /// No `GetRecords` before this moment.
    records_at: Mono,
    subscribing: Subscribing,
    /// No command at all before this moment.
    retry_at: Mono,
    /// Until this moment another application counts as a reader of the shard.
    crowded_until: Mono,
    /// The bytes read in this second.
    second: Second,
    /// Failures since the last successful `GetRecords`.
    failures: u32,
    paused: bool,
    end: Option<Vec<ChildShard>>,
    /// The last answers claim the end. A record takes the claim back, and so do several answers with the shard open.
    end_claim: Option<EndClaim>,
    /// The last answers cannot be of the place that was asked for.
    doubts: Doubts,
    buffer: Buffer,
    size: Size,
}

/// An iterator or a subscription, kept by the adapter under the id of the command that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cursor {
    via: OpId,
    since: Mono,
    feed: FeedKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    op: OpId,
    sent: Mono,
    kind: Kind,
    /// Sent before a rewind: its answer is of no use.
    void: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Iterator,
    Records {
        /// No more than so many were asked for.
        limit: u32,
    },
    Subscribe,
    Event,
}

impl Kind {
    /// The feed of a command for records.
    fn feed(self) -> FeedKind {
        match self {
            Kind::Iterator | Kind::Records { .. } => FeedKind::Iterator,
            Kind::Subscribe | Kind::Event => FeedKind::Subscription,
        }
    }
}

impl Reader {
    /// A reader that begins at `start`, at once.
    pub fn new(start: Start, now: Mono) -> Self {
        let (origin, floor) = match start {
            Start::TrimHorizon => (IteratorFrom::TrimHorizon, None),
            Start::Since(time) | Start::AtTimestamp(time) => (IteratorFrom::AtTimestamp(time), None),
            Start::At(position) => (IteratorFrom::At(position), Some(position)),
        };
        Self {
            origin,
            since: matches!(start, Start::Since(_)).then_some(0),
            floor,
            fetched: None,
            cursor: None,
            flight: None,
            iterator_at: now,
            records_at: now,
            subscribing: Subscribing::new(now),
            retry_at: now,
            crowded_until: now,
            second: Second::new(now),
            failures: 0,
            paused: false,
            end: None,
            end_claim: None,
            doubts: Doubts::default(),
            buffer: Buffer::new(floor),
            size: Size::NEW,
        }
    }

    /// The command to issue now, if any. Once issued, report it with [`sent`](Self::sent); until then the answer stays.
    pub fn next(&mut self, now: Mono, cfg: &ReaderConfig) -> Option<Want> {
        if self.due(cfg)? > now {
            return None;
        }
        if self.cursor.is_some_and(|cursor| self.is_replaced(cursor, now)) {
            self.cursor = None;
            if self.due(cfg)? > now {
                return None;
            }
        }
        Some(match (self.cursor, self.feed(now)) {
            (None, FeedKind::Iterator) => Want::GetIterator(self.place()),
            (None, FeedKind::Subscription) => Want::Subscribe(self.place()),
            (Some(Cursor { via, feed: FeedKind::Iterator, .. }), _) => {
                Want::GetRecords { via, limit: self.doubted_limit(self.size.limit(cfg)) }
            }
            (Some(Cursor { via, feed: FeedKind::Subscription, .. }), _) => Want::NextEvent { via },
        })
    }

    /// The driver issued the command of the last [`next`](Self::next) under this id, for at most this many records.
    pub fn sent(&mut self, op: OpId, now: Mono, limit: u32) {
        debug_assert!(self.flight.is_none(), "one stream command at a time");
        debug_assert!(self.end.is_none() && !self.paused, "what ended or is paused is not read");
        self.flight = Some(Flight {
            op,
            sent: now,
            kind: match (self.cursor.map(|cursor| cursor.feed), self.feed(now)) {
                (None, FeedKind::Iterator) => Kind::Iterator,
                (None, FeedKind::Subscription) => Kind::Subscribe,
                (Some(FeedKind::Iterator), _) => Kind::Records { limit },
                (Some(FeedKind::Subscription), _) => Kind::Event,
            },
            void: false,
        });
    }

    /// A stream command ended. The outcome of any but the one in flight is ignored.
    pub fn fetched(&mut self, op: OpId, now: Mono, outcome: &Outcome, ctx: &Ctx<'_>) -> Option<Event> {
        let flight = self.flight.take_if(|flight| flight.op == op)?;
        match flight.kind {
            Kind::Iterator => self.iterator_at = flight.sent + ctx.cfg.min_interval,
            Kind::Records { .. } => self.records_at = flight.sent + ctx.cfg.min_interval,
            Kind::Subscribe => self.called(&flight),
            Kind::Event => self.heard(outcome),
        }
        self.learn_size(&flight, now, outcome, ctx);
        self.see_crowd(&flight, now, outcome);
        if let Outcome::Applied(Reply::Records(answer)) = outcome {
            let doubted = match flight.void {
                true => None,
                false => self.refuse_doubtful(now, answer, ctx),
            };
            if doubted.is_some() {
                return doubted;
            }
            self.pace(&flight, now, answer, ctx);
        }
        if flight.void {
            return None;
        }
        let how = match (flight.kind, outcome) {
            (Kind::Iterator, Outcome::Applied(Reply::Iterator))
            | (Kind::Subscribe, Outcome::Applied(Reply::Subscribed)) => {
                self.found();
                self.cursor = Some(Cursor { via: op, since: now, feed: flight.kind.feed() });
                return None;
            }
            (Kind::Records { .. } | Kind::Event, Outcome::Applied(Reply::Records(answer))) => {
                return self.take(&flight, now, answer, ctx);
            }
            (_, Outcome::Applied(_)) => How::Mismatched,
            (_, Outcome::Refused(refusal)) => How::Refused(refusal.why),
            (_, Outcome::NotSent(cause)) => How::NotSent(*cause),
            (_, Outcome::Unknown(cause)) => How::Unknown(*cause),
        };
        match flight.kind.feed() {
            FeedKind::Iterator => Some(self.fail(op, now, flight.kind, how, ctx)),
            FeedKind::Subscription => self.unsubscribed(&flight, now, how, ctx),
        }
    }

    /// The adapter has lost a batch: all unprocessed records already fetched are read again.
    pub fn rewind(&mut self) {
        if self.fetched.is_none() {
            return;
        }
        if let Some(again) = self.buffer.rewind() {
            self.origin = IteratorFrom::At(again);
            self.since = None;
        }
        self.floor = self.buffer.watermark();
        self.fetched = None;
        self.cursor = None;
        // The end was fetched somewhere ahead of where reading goes on.
        self.end = None;
        self.end_claim = None;
        // The next event may come late: nothing waits for it.
        self.flight.take_if(|flight| flight.kind == Kind::Event);
        if let Some(flight) = &mut self.flight {
            flight.void = true;
        }
    }

    /// Goes on after [`Event::ShardMissing`].
    pub fn resume(&mut self, now: Mono) {
        if self.paused {
            self.paused = false;
            self.retry_at = self.retry_at.max(now);
        }
    }

    /// Goes on after [`Event::ShardMissing`] when the shard no longer exists: no record follows the fetched records.
    /// Also after an end without children, when a listing has shown the children.
    pub fn end_with(&mut self, children: Vec<ChildShard>) {
        if self.paused || self.end.as_ref().is_some_and(Vec::is_empty) {
            self.paused = false;
            self.end = Some(children);
        }
    }

    /// Goes on after an end that named no children, when a listing shows the shard open: a new iterator is asked for, after the last
    /// record that was fetched.
    pub fn read_on(&mut self, now: Mono) {
        if self.end.as_ref().is_some_and(Vec::is_empty) {
            debug_assert!(self.cursor.is_none(), "an end leaves no iterator");
            self.end = None;
            self.retry_at = self.retry_at.max(now);
        }
    }

    /// Whether the end of the shard was fetched, and every batch before it handed over and answered.
    pub fn has_handed_all_over(&self) -> bool {
        self.end.is_some() && self.buffer.len() == self.buffer.kept().0
    }

    /// The moment at which reading begins, if the service has refused later ones.
    pub fn began_earlier(&self) -> Option<Wall> {
        match (self.origin, self.since) {
            (IteratorFrom::AtTimestamp(at), Some(1..)) => Some(at),
            _ => None,
        }
    }

    /// Whether the reader waits for [`resume`](Self::resume).
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Everything up to here was processed, and may be checkpointed. Never goes back.
    pub fn watermark(&self) -> Option<Position> {
        self.buffer.watermark()
    }

    /// The children of the shard, once its end was fetched and every batch processed. The answer may have named none.
    pub fn finished(&self) -> Option<&[ChildShard]> {
        match self.buffer.len() {
            0 => self.end.as_deref(),
            _ => None,
        }
    }

    /// Whether answers claim the end of the shard, and prove nothing yet.
    pub fn is_end_claimed(&self) -> bool {
        self.end_claim.is_some()
    }

    /// Failures of reading since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The bytes that wait to be processed, are being processed, or are kept.
    pub fn buffered_bytes(&self) -> u64 {
        self.buffer.bytes()
    }

    /// The batches that wait to be processed, are being processed, or are kept.
    pub fn buffered_batches(&self) -> usize {
        self.buffer.len()
    }

    /// When to call [`next`](Self::next) if no input comes before; [`Mono::NEVER`] for no need.
    pub fn wake_at(&self, cfg: &ReaderConfig) -> Mono {
        self.due(cfg).unwrap_or(Mono::NEVER)
    }

    /// When the next command may be issued; absent while there is none.
    fn due(&self, cfg: &ReaderConfig) -> Option<Mono> {
        if self.flight.is_some() || self.paused || self.end.is_some() || self.is_full(cfg) {
            return None;
        }
        let gate = match self.cursor.map(|cursor| cursor.feed) {
            None => self.opens_at()?,
            Some(FeedKind::Iterator) => self.records_at,
            Some(FeedKind::Subscription) => Mono::default(),
        };
        let claim = self.end_claim.as_ref().map_or(gate, |claim| claim.again_at);
        Some(gate.max(self.retry_at).max(claim))
    }

    fn is_full(&self, cfg: &ReaderConfig) -> bool {
        let (kept, kept_bytes) = self.buffer.kept();
        let (batches, bytes) = (self.buffer.len() - kept, self.buffer.bytes().saturating_sub(kept_bytes));
        batches > 0 && (batches as u64 >= u64::from(cfg.buffer_batches) || bytes >= cfg.buffer_bytes)
    }

    /// Where the next record to fetch is.
    fn place(&self) -> IteratorFrom {
        match self.fetched {
            Some(position) => IteratorFrom::After(position),
            None => self.origin,
        }
    }

    fn take(&mut self, flight: &Flight, now: Mono, answer: &Fetched, ctx: &Ctx<'_>) -> Option<Event> {
        let (mut event, op, feed) = (None, flight.op, flight.kind.feed());

        if answer.count > 0 {
            let Some(last) = answer.last else {
                // The answer can be neither filtered nor resumed after: fetch it again. No event comes twice.
                self.cursor.take_if(|cursor| cursor.feed == FeedKind::Subscription);
                self.back_off(op, now, ctx);
                return Some(self.disorder(answer));
            };
            let first = answer.first.unwrap_or(last);
            event = self.out_of_place(answer);
            // Numbers out of order do not tell which records were processed before.
            let is_ordered = !matches!(event, Some(Event::Disorder { .. }));
            let after = self.floor.filter(|floor| is_ordered && *floor >= first);
            self.fetched = self.fetched.max(Some(last));
            self.end_claim = None;
            self.buffer.push(
                first.min(last),
                BatchRef {
                    batch: op,
                    after,
                    bytes: answer.bytes,
                    count: answer.count,
                    last,
                    unordered: answer.unordered,
                },
            );
        }
        self.failures = 0;
        match &answer.end {
            None => {
                self.cursor = Some(Cursor { via: op, since: now, feed });
                self.weigh_claim(answer, now, ctx);
            }
            Some(_) => {
                self.cursor = None;
                let told = match self.judge_end((flight.sent, now), answer, ctx) {
                    Verdict::Proved(children) => {
                        self.end = Some(children);
                        Some(Event::EndOfShard)
                    }
                    Verdict::Claimed => None,
                    Verdict::Weak(again_in) => Some(Event::WeakEnd { again_in }),
                };
                event = event.or(told);
            }
        }
        event
    }

    fn fail(&mut self, op: OpId, now: Mono, kind: Kind, how: How, ctx: &Ctx<'_>) -> Event {
        match (kind, how) {
            (_, How::Refused(Why::NotFound)) => {
                self.paused = true;
                return Event::ShardMissing;
            }
            (Kind::Records { .. }, How::Refused(Why::Expired | Why::Gone)) => {
                self.cursor = None;
                if self.failures == 0 {
                    self.failures = 1;
                    let again_in = Span::ZERO;
                    return Event::Trouble { how, again_in };
                }
            }
            (Kind::Records { .. }, How::Refused(Why::Invalid)) => self.cursor = None,
            (_, How::Refused(Why::Denied)) => self.do_without_iterators(),
            // The place is refused, not the shard.
            (Kind::Iterator, How::Refused(Why::Invalid | Why::OfAnotherStream)) => self.found(),
            _ => {}
        }
        let again_in = match (kind, how) {
            (Kind::Records { .. }, How::NotSent(Cause::Throttled)) => self.await_turn(op.n, now, ctx),
            _ => self.back_off(op, now, ctx),
        };
        if kind == Kind::Iterator
            && let Some(event) = self.refused_place(how, self.failures, again_in)
        {
            return event;
        }
        match how {
            How::Refused(Why::Denied | Why::WrongClock) => Event::Denied { again_in },
            _ => Event::Trouble { how, again_in },
        }
    }

    /// Whether reading begins at a moment that may lie in the future of the service.
    fn begins_at_a_moment(&self) -> bool {
        self.since.is_some() && matches!(self.place(), IteratorFrom::AtTimestamp(_))
    }

    /// The service refuses the place itself. A moment that the service calls a future time is left for an earlier one. Absent: the
    /// refusal has another reason, or comes for the first times.
    fn refused_place(&mut self, how: How, tries: u32, again_in: Span) -> Option<Event> {
        match (how, self.place(), &mut self.since) {
            (How::Refused(Why::Invalid), IteratorFrom::AtTimestamp(at), Some(times)) => {
                *times = times.saturating_add(1);
                self.origin = IteratorFrom::AtTimestamp(began::earlier(at, *times));
                Some(Event::Early { at, again_in })
            }
            (
                How::Refused(Why::Invalid | Why::OfAnotherStream),
                IteratorFrom::At(at) | IteratorFrom::After(at),
                _,
            ) if tries >= BAD_POSITION_TRIES => Some(Event::BadPosition { at, tries, again_in }),
            _ => None,
        }
    }

    /// Waits for a span that doubles with every failure, its upper half drawn at random.
    fn back_off(&mut self, op: OpId, now: Mono, ctx: &Ctx<'_>) -> Span {
        self.failures = self.failures.saturating_add(1);
        let doubled = ctx.retry_min.times(1 << self.failures.min(32));
        let high = doubled.min(ctx.retry_max);
        let low = high.per(2).max(ctx.retry_min).min(high);
        debug_assert!(low <= high, "a pause is drawn from a range");
        let width = (high.0 - low.0).saturating_add(1);
        let pause = low + Span(draw_below(ctx.seed, "reader-retry", ctx.subject, op.n, width));
        self.retry_at = now + pause;
        pause
    }
}
