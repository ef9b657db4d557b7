//! A model shard drives the reader through random failures, delays and acknowledgements in virtual time.

mod case;
mod limits;
mod service;

use super::*;
use crate::draw::draw_below;
use crate::input::{Outcome, Refusal, Reply};
use crate::time::Mono;
use case::{Case, cases};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LIFETIME: Span = Span::from_secs(300);
/// The life of a subscription.
const SUBSCRIBED: Span = Span::from_secs(100);
const MAX_STEPS: u32 = 30_000;

/// One part of a record, or a plain record.
#[derive(Clone, Copy, Debug)]
struct Part {
    at: Position,
    arrival: Mono,
    bytes: u64,
}

/// Records `from..to`, as indices of parts.
#[derive(Clone, Copy, Debug)]
struct Payload {
    from: usize,
    to: usize,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Idle,
    Out { batch: OpId, until: Mono },
    Back,
}

struct World {
    case: Case,
    draws: u64,
    now: Mono,
    reader: Reader,
    parts: Vec<Part>,
    close: Mono,
    ops: u64,
    flight: Option<(OpId, Want, Mono)>,
    /// Part index and birth of every iterator, also of old iterators.
    iterators: BTreeMap<OpId, (usize, Mono)>,
    /// When each `GetIterator`, and each `GetRecords` with the bytes it brought, was emitted.
    iterator_calls: Vec<Mono>,
    record_calls: Vec<(Mono, u64)>,
    subscribe_calls: Vec<Mono>,
    /// When the last subscription was granted.
    granted: Option<Mono>,
    held: BTreeMap<OpId, Payload>,
    /// Earlier parts were fetched; absent before the first fetch, and after a rewind.
    fetched: Option<usize>,
    /// The command in flight was sent before a rewind.
    void: bool,
    work: Work,
    resume_at: Option<Mono>,
    /// A call for a subscription found nothing, and no answer has shown the shard since.
    found_nothing: bool,
    /// The next part that was never delivered: no delivery may begin behind it.
    frontier: usize,
    /// Earlier parts are processed.
    done: usize,
    /// `done` when reading began or was rewound, and as acknowledged since the front batch was handed over.
    floor: usize,
    front_done: usize,
    /// Earlier parts were handed over, or were processed before reading began.
    handed: usize,
    /// Reading begins at a moment: the accepted moment, after its acceptance.
    since: Option<Option<i64>>,
    /// An answer claimed the end too early.
    lied: bool,
}

fn refused(why: Why) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: String::new() })
}

impl World {
    fn new(case: Case) -> Self {
        let mut world = Self {
            draws: 0,
            now: Mono(1_000_000_000),
            reader: Reader::new(Start::TrimHorizon, Mono(0)),
            parts: Vec::new(),
            close: Mono(0),
            ops: 0,
            flight: None,
            iterators: BTreeMap::new(),
            iterator_calls: Vec::new(),
            record_calls: Vec::new(),
            subscribe_calls: Vec::new(),
            granted: None,
            held: BTreeMap::new(),
            fetched: None,
            void: false,
            work: Work::Idle,
            resume_at: None,
            found_nothing: false,
            frontier: 0,
            done: 0,
            floor: 0,
            front_done: 0,
            handed: 0,
            since: None,
            lied: false,
            case,
        };
        let mut arrival = world.now - Span::from_secs(10);
        for n in 0..world.case.records {
            arrival += Span::from_millis(world.below(world.case.spacing + 1));
            let sequence = (10 + n * 3).into();
            for sub in 0..1 + world.below(4).saturating_sub(1) {
                let at = Position { sequence, sub };
                let bytes = world.below(400);
                world.parts.push(Part { at, arrival, bytes });
            }
        }
        world.close = arrival + Span::from_millis(world.below(5_000));
        let start = match world.case.start {
            1 => {
                let ahead_ms = world.below(20_000) as i64 - 10_000;
                Start::Since(Wall((world.now.0 / 1_000) as i64 + ahead_ms))
            }
            2 => {
                let time = world.now - Span::from_secs(world.below(20));
                let wall = Wall((time.0 / 1_000) as i64);
                world.frontier = world.index(|part| part.arrival.0 / 1_000 >= time.0 / 1_000);
                Start::AtTimestamp(wall)
            }
            3 if !world.parts.is_empty() => {
                let n = world.below(world.parts.len() as u64) as usize;
                world.frontier = n + 1;
                world.done = n + 1;
                world.floor = n + 1;
                world.handed = n + 1;
                Start::At(world.parts[n].at)
            }
            _ => Start::TrimHorizon,
        };
        world.since = matches!(start, Start::Since(_)).then_some(None);
        world.reader = Reader::new(start, world.now);
        world.reader.read_by(world.case.feeds);
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        draw_below(self.case.seed, "model", "", self.draws, bound)
    }

    fn fails(&mut self) -> bool {
        self.below(1_000) < self.case.failures
    }

    fn index(&self, from: impl Fn(&Part) -> bool) -> usize {
        self.parts.iter().position(from).unwrap_or(self.parts.len())
    }

    /// Runs to the end of the shard.
    fn run(&mut self) {
        for _ in 0..MAX_STEPS {
            self.send();
            self.deliver();
            self.check();
            if self.reader.finished().is_some() {
                return;
            }
            self.advance();
        }
        panic!("no end after {MAX_STEPS} steps: {:?}", self.reader);
    }

    fn send(&mut self) {
        let Some(want) = self.reader.next(self.now, &self.case.cfg) else {
            return;
        };
        assert_eq!(self.flight, None, "two commands at a time");
        assert!(self.resume_at.is_none(), "not paused");
        let cfg = &self.case.cfg;
        let (batches, bytes) = (self.held.len(), self.held_bytes());
        assert!(
            batches == 0 || batches < cfg.buffer_batches as usize && bytes < cfg.buffer_bytes,
            "beyond the budget: {batches} batches, {bytes} bytes"
        );
        match want {
            Want::GetIterator(_) => self.iterator_calls.push(self.now),
            Want::GetRecords { .. } => self.record_calls.push((self.now, 0)),
            Want::Subscribe(_) => self.subscribe_calls.push(self.now),
            Want::NextEvent { .. } => {}
        }
        let feeds = self.case.feeds;
        let by_iterator = matches!(want, Want::GetIterator(_) | Want::GetRecords { .. });
        let evidence = self.reader.is_end_claimed() || self.reader.doubts() || self.found_nothing;
        assert!(!by_iterator || feeds != Feeds::Subscriptions || evidence, "no evidence is needed");
        assert!(by_iterator || feeds != Feeds::Iterators, "no subscription is wanted");
        self.ops += 1;
        let op = OpId { life: 1, n: self.ops };
        self.reader.sent(op, self.now, want.limit());
        assert_eq!(self.reader.next(self.now, &self.case.cfg), None);
        // An event comes with the next record, or as a sign of life.
        let tip = matches!(want, Want::NextEvent { via } if self.iterators[&via].0 >= self.index(|part| part.arrival > self.now));
        let longest = if tip { 5_000 } else { 300 };
        self.flight = Some((op, want, self.now + Span::from_millis(self.below(longest))));
    }

    fn held_bytes(&self) -> u64 {
        self.held.values().map(|payload| payload.bytes).sum()
    }

    fn deliver(&mut self) {
        let Some(front) = self.reader.front() else {
            return;
        };
        assert!(!matches!(self.work, Work::Out { .. }), "two batches at a time");
        let payload = self.held[&front.batch];
        let skipped =
            (payload.from..payload.to).take_while(|n| Some(self.parts[*n].at) <= front.after).count();
        let from = payload.from + skipped;
        assert!(from < payload.to, "nothing to hand over in {front:?}");
        assert!(from <= self.frontier, "skips {:?}", &self.parts[self.frontier..from]);
        assert!(from >= self.floor, "processed before reading began");
        assert_eq!(front.last, self.parts[payload.to - 1].at);
        self.frontier = self.frontier.max(payload.to);
        self.handed = self.handed.max(payload.to);
        if self.work == Work::Idle {
            self.front_done = 0;
        }
        let until = self.now + Span::from_millis(self.below(self.case.work + 1));
        let batch = front.batch;
        self.work = Work::Out { batch, until };
        self.reader.delivered();
    }

    /// The handler's work ends, in one of three ways.
    fn end_work(&mut self, batch: OpId) {
        if self.fails() {
            self.acknowledge();
        }
        if !self.fails() {
            self.done = self.done.max(self.held[&batch].to);
            self.held.remove(&batch);
            self.work = Work::Idle;
            assert!(self.reader.processed(batch));
        } else if self.below(4) > 0 {
            self.work = Work::Back;
            assert!(self.reader.returned(batch));
            self.drop_covered();
        } else {
            self.held.clear();
            self.work = Work::Idle;
            self.floor = self.done;
            self.fetched = None;
            // An event is not waited for.
            self.flight.take_if(|(_, want, _)| matches!(want, Want::NextEvent { .. }));
            self.void = self.flight.is_some();
            self.reader.rewind();
        }
        assert!(!self.reader.processed(batch), "no batch is out");
    }

    /// A partial acknowledgement, now and then of a record never delivered.
    fn acknowledge(&mut self) {
        let n = self.below(self.parts.len() as u64) as usize;
        self.reader.processed_through(self.parts[n].at);
        // At most what was handed over counts.
        let through = (n + 1).min(self.handed);
        self.done = self.done.max(through);
        if self.work != Work::Idle {
            self.front_done = self.front_done.max(through);
            self.drop_covered();
        }
    }

    fn drop_covered(&mut self) {
        if self.work == Work::Back {
            let (&batch, payload) = self.held.first_key_value().expect("it is back");
            if payload.to <= self.front_done.max(self.floor) {
                self.held.remove(&batch);
                self.work = Work::Idle;
            }
        }
    }

    fn check(&self) {
        let watermark = self.done.checked_sub(1).map(|last| self.parts[last].at);
        assert_eq!(self.reader.watermark(), watermark);
        assert_eq!(self.reader.buffered_batches(), self.held.len());
        assert_eq!(self.reader.buffered_bytes(), self.held_bytes());
    }

    /// Goes on to the next event, and lets it happen.
    fn advance(&mut self) {
        let never = Mono::NEVER;
        let wake = self.reader.wake_at(&self.case.cfg);
        let answer = self.flight.map_or(never, |(_, _, at)| at);
        let resume = self.resume_at.unwrap_or(never);
        let work = match self.work {
            Work::Out { until, .. } => until,
            _ => never,
        };
        let next = wake.min(answer).min(resume).min(work);
        assert_ne!(next, never, "stuck: {:?}", self.reader);
        assert!(wake > self.now, "due, and nothing was sent");
        if next > self.now {
            let early = Mono(self.now.0 + self.below(next.0 - self.now.0));
            let before = self.reader.clone();
            assert_eq!(self.reader.next(early, &self.case.cfg), None, "early");
            assert_eq!(self.reader, before);
        }
        self.now = next;
        if next == wake {
            let wanted = self.reader.next(next, &self.case.cfg).is_some();
            assert!(wanted || self.reader.wake_at(&self.case.cfg) > next, "woken for nothing");
        } else if next == answer {
            if let Some((op, want, _)) = self.flight.take() {
                self.answer(op, want);
            }
        } else if next == resume {
            self.resume_at = None;
            self.reader.resume(next);
        } else if let Work::Out { batch, .. } = self.work {
            self.end_work(batch);
        }
        if !self.parts.is_empty() && self.fails() && self.below(4) == 0 {
            self.acknowledge();
        }
    }

    fn answer(&mut self, op: OpId, want: Want) {
        let outcome = match self.failure(want) {
            Some(outcome) => outcome,
            None => self.execute(op, want),
        };
        self.see_shard(want, &outcome);
        let ctx = Ctx {
            cfg: &self.case.cfg,
            retry_min: Span::from_millis(100),
            retry_max: Span::from_secs(5),
            stream_lag: Span::from_secs(20),
            stream_timeout: Span::from_secs(15),
            seed: self.case.seed,
            subject: "shard",
        };
        let event = self.reader.fetched(op, self.now, &outcome, &ctx);
        if std::mem::take(&mut self.void) {
            assert_eq!(event, None);
            self.held.remove(&op);
        }
        let after = self.reader.clone();
        assert_eq!(self.reader.fetched(op, self.now, &outcome, &ctx), None, "stale");
        assert_eq!(self.reader, after);
        match event {
            Some(Event::ShardMissing) => self.resume_at = Some(self.now + Span::from_secs(1)),
            Some(Event::Disorder { .. } | Event::Trimmed { .. }) => panic!("{event:?}"),
            _ => {}
        }
    }

    /// A call for a subscription that finds nothing is no evidence: an iterator shows whether the shard exists.
    fn see_shard(&mut self, want: Want, outcome: &Outcome) {
        match (want, outcome) {
            _ if self.void => {}
            (Want::Subscribe(_) | Want::NextEvent { .. }, Outcome::Refused(refusal)) => {
                self.found_nothing |= refusal.why == Why::NotFound;
            }
            (_, Outcome::Applied(Reply::Iterator | Reply::Subscribed)) => self.found_nothing = false,
            (Want::GetIterator(_), Outcome::Refused(refusal)) if refusal.why == Why::Invalid => {
                self.found_nothing = false;
            }
            _ => {}
        }
    }

    /// A failure of any class, now and then; and always if the iterator is too old.
    fn failure(&mut self, want: Want) -> Option<Outcome> {
        let refused = |why| Some(refused(why));
        if let Want::GetRecords { via, .. } = want
            && self.now.since(self.iterators[&via].1) > LIFETIME
        {
            return refused(Why::Expired);
        }
        if let Want::NextEvent { via } = want
            && self.now.since(self.iterators[&via].1) > SUBSCRIBED
        {
            return refused(Why::Expired);
        }
        if matches!(want, Want::Subscribe(_))
            && self.granted.is_some_and(|at| self.now.since(at) < Span::from_secs(5))
        {
            return refused(Why::InUse);
        }
        if !self.fails() {
            return None;
        }
        match (self.below(9), want) {
            (0, _) => Some(Outcome::NotSent(Cause::Throttled)),
            (1, _) => Some(Outcome::Unknown(Cause::Timeout)),
            (2, _) => Some(Outcome::Applied(Reply::Done)),
            (3, _) => refused(Why::Denied),
            (4, _) => refused(Why::InUse),
            (5, _) => refused(Why::NotFound),
            (6, _) => refused(Why::Invalid),
            (7, Want::GetRecords { .. }) => refused(Why::Expired),
            (8, Want::GetRecords { .. }) => refused(Why::Gone),
            _ => Some(Outcome::Unknown(Cause::Garbled)),
        }
    }

    fn execute(&mut self, op: OpId, want: Want) -> Outcome {
        match want {
            Want::GetIterator(from) | Want::Subscribe(from) => {
                let place = match from {
                    IteratorFrom::TrimHorizon => 0,
                    IteratorFrom::Latest => panic!("a place that moves"),
                    IteratorFrom::AtTimestamp(Wall(at)) => match self.begin(at) {
                        Some(place) => place,
                        None => return refused(Why::Invalid),
                    },
                    IteratorFrom::At(at) => self.index(|part| part.at.sequence >= at.sequence),
                    IteratorFrom::After(at) => self.index(|part| part.at.sequence > at.sequence),
                };
                let seamless = self.void || self.fetched.is_none_or(|fetched| fetched == place);
                assert!(seamless, "reads again what was fetched: {from:?}");
                self.iterators.insert(op, (place, self.now));
                if let Want::GetIterator(_) = want {
                    return Outcome::Applied(Reply::Iterator);
                }
                self.granted = Some(self.now);
                Outcome::Applied(Reply::Subscribed)
            }
            Want::NextEvent { via } => {
                let (from, since) = self.iterators[&via];
                let answer = self.fetch(op, from, 50);
                self.iterators.entry(op).and_modify(|(_, birth)| *birth = since);
                Outcome::Applied(Reply::Records(answer))
            }
            Want::GetRecords { via, limit } => {
                let (from, _) = self.iterators[&via];
                let answer = self.fetch(op, from, limit);
                if let Some(call) = self.record_calls.last_mut() {
                    call.1 = answer.bytes;
                }
                Outcome::Applied(Reply::Records(answer))
            }
        }
    }

    /// The place of a moment. A future moment is refused; and an accepted moment does not move on.
    fn begin(&mut self, at: i64) -> Option<usize> {
        if at > (self.now.0 / 1_000) as i64 {
            return None;
        }
        let place = self.index(|part| part.arrival.0 / 1_000 >= at as u64);
        if let Some(taken) = &mut self.since {
            let first = taken.is_none();
            assert!(taken.is_none_or(|taken| at <= taken), "begins later than it began");
            *taken = Some(at);
            if first {
                self.frontier = place;
            }
        }
        Some(place)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_handed_over_in_order_within_all_limits(case in cases()) {
        let mut world = World::new(case);
        world.run();
        world.check_end();
    }
}
