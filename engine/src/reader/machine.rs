//! Fetching: which stream command is next, and when.

mod doubt;
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
use pace::Second;
use size::Size;

/// An iterator lives five minutes. An iterator unused for this long is replaced before the service refuses the
/// iterator.
const FRESH: Span = Span::from_secs(240);

/// After this many failures in a row, an invalid position is worth an event of its own.
const BAD_POSITION_TRIES: u32 = 3;

/// The polling reader of one shard.
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

/// An iterator, kept by the adapter under the id of the command that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cursor {
    via: OpId,
    since: Mono,
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
        if self.cursor.is_some_and(|cursor| now.since(cursor.since) >= FRESH) {
            self.cursor = None;
            if self.due(cfg)? > now {
                return None;
            }
        }
        Some(match self.cursor {
            None => Want::GetIterator(self.place()),
            Some(cursor) => {
                Want::GetRecords { via: cursor.via, limit: self.doubted_limit(self.size.limit(cfg)) }
            }
        })
    }

    /// The driver issued the command of the last [`next`](Self::next) under this id, for at most this many records.
    pub fn sent(&mut self, op: OpId, now: Mono, limit: u32) {
        debug_assert!(self.flight.is_none(), "one stream command at a time");
        debug_assert!(self.end.is_none() && !self.paused, "what ended or is paused is not read");
        self.flight = Some(Flight {
            op,
            sent: now,
            kind: match self.cursor {
                None => Kind::Iterator,
                Some(_) => Kind::Records { limit },
            },
            void: false,
        });
    }

    /// A stream command ended. The outcome of any but the one in flight is ignored.
    pub fn fetched(&mut self, op: OpId, now: Mono, outcome: &Outcome, ctx: &Ctx<'_>) -> Option<Event> {
        let flight = self.flight.take_if(|flight| flight.op == op)?;
        let gate = match flight.kind {
            Kind::Iterator => &mut self.iterator_at,
            Kind::Records { .. } => &mut self.records_at,
        };
        *gate = flight.sent + ctx.cfg.min_interval;
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
            (Kind::Iterator, Outcome::Applied(Reply::Iterator)) => {
                self.cursor = Some(Cursor { via: op, since: now });
                return None;
            }
            (Kind::Records { .. }, Outcome::Applied(Reply::Records(answer))) => {
                return self.take(op, (flight.sent, now), answer, ctx);
            }
            (_, Outcome::Applied(_)) => How::Mismatched,
            (_, Outcome::Refused(refusal)) => How::Refused(refusal.why),
            (_, Outcome::NotSent(cause)) => How::NotSent(*cause),
            (_, Outcome::Unknown(cause)) => How::Unknown(*cause),
        };
        Some(self.fail(op, now, flight.kind, how, ctx))
    }

    /// The batches that wait, are handed over, or are kept.
    pub(crate) fn batches(&self) -> &Buffer {
        &self.buffer
    }

    pub(crate) fn batches_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// The next batch to hand over; none while one is being processed.
    pub fn front(&self) -> Option<BatchRef> {
        self.buffer.front()
    }

    /// The front batch was handed over.
    pub fn delivered(&mut self) {
        self.buffer.delivered();
    }

    /// The batch handed over was processed completely. Says whether this batch was out.
    pub fn processed(&mut self, batch: OpId) -> bool {
        self.buffer.processed(batch)
    }

    /// The batch handed over is kept by the application: the next batch may be handed over, and this batch is
    /// acknowledged later. Says whether this batch was out.
    pub fn keep(&mut self, batch: OpId) -> bool {
        self.buffer.keep(batch)
    }

    /// A kept batch was processed completely, in whatever order. Says whether such a batch exists.
    pub fn acknowledged(&mut self, batch: OpId) -> bool {
        self.buffer.acknowledged(batch)
    }

    /// The last position of this batch, if the application keeps the batch and has not acknowledged all its records.
    pub fn keeps(&self, batch: OpId) -> Option<Position> {
        self.buffer.keeps(batch)
    }

    /// Whether the record at this position is in the next batch to be handed over, and was not processed.
    pub fn awaits(&self, record: Position) -> bool {
        self.buffer.awaits(record)
    }

    /// The last processed position among the records handed over. Earlier records may be unprocessed.
    pub fn reached(&self) -> Option<Position> {
        self.buffer.reached()
    }

    /// All records up to and including this position were processed. Positions never handed over are not believed.
    /// While batches are kept, the position counts for the batch of this position, and for no earlier batch. A position
    /// tells nothing of an unordered batch. Says whether the call brought progress.
    pub fn processed_through(&mut self, position: Position) -> bool {
        self.buffer.processed_through(position)
    }

    /// The batch handed over was not (wholly) processed: [`front`](Self::front) gives the rest of the batch again. Says
    /// whether this batch was out.
    pub fn returned(&mut self, batch: OpId) -> bool {
        self.buffer.returned(batch)
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
    pub fn trimmed(&mut self, children: Vec<ChildShard>) {
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

    /// How many batches the application keeps.
    pub fn kept_batches(&self) -> usize {
        self.buffer.kept_batches()
    }

    /// Whether the application keeps as much as allowed: no more batches are handed over until the application has
    /// acknowledged some records.
    pub fn keeps_enough(&self, cfg: &ReaderConfig) -> bool {
        self.buffer.keeps_enough(cfg)
    }

    /// Whether the end of the shard was fetched, and every batch before it handed over and answered.
    pub fn handed_all_over(&self) -> bool {
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
        let gate = match self.cursor {
            None => self.iterator_at,
            Some(_) => self.records_at,
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

    fn take(&mut self, op: OpId, at: (Mono, Mono), answer: &Fetched, ctx: &Ctx<'_>) -> Option<Event> {
        let (mut event, (_, now)) = (None, at);
        if answer.count > 0 {
            let Some(last) = answer.last else {
                // The answer can be neither filtered nor resumed after: fetch it again.
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
                self.cursor = Some(Cursor { via: op, since: now });
                self.weigh_claim(answer);
            }
            Some(_) => {
                self.cursor = None;
                let told = match self.judge_end(at, answer, ctx) {
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
        let place = self.place();
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
            _ => {}
        }
        let again_in = match (kind, how) {
            (Kind::Records { .. }, How::NotSent(Cause::Throttled)) => self.await_turn(op.n, now, ctx),
            _ => self.back_off(op, now, ctx),
        };
        if let (Kind::Iterator, How::Refused(Why::Invalid), IteratorFrom::AtTimestamp(at), Some(tries)) =
            (kind, how, place, &mut self.since)
        {
            *tries = tries.saturating_add(1);
            self.origin = IteratorFrom::AtTimestamp(began::earlier(at, *tries));
            return Event::Early { at, again_in };
        }
        match (kind, how, place) {
            (_, How::Refused(Why::Denied | Why::WrongClock), _) => Event::Denied { again_in },
            (
                Kind::Iterator,
                How::Refused(Why::Invalid | Why::OfAnotherStream),
                IteratorFrom::At(at) | IteratorFrom::After(at),
            ) if self.failures >= BAD_POSITION_TRIES => {
                Event::BadPosition { at, tries: self.failures, again_in }
            }
            _ => Event::Trouble { how, again_in },
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
