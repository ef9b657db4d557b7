//! A reader driven by hand.

use crate::input::{Fetched, Outcome, Refusal, Reply};
use crate::reader::*;
use crate::shard::{ChildShard, HashRange};
pub(super) use crate::testkit::no_records;
use crate::time::Mono;

/// A reader with its clock and configuration, driven by hand.
pub(super) struct Bench {
    pub(super) reader: Reader,
    pub(super) cfg: ReaderConfig,
    pub(super) now: Mono,
    pub(super) ops: u64,
    pub(super) subject: &'static str,
    pub(super) seed: u64,
}

pub(super) const RETRY_MIN: Span = Span::from_millis(100);
pub(super) const RETRY_MAX: Span = Span::from_secs(5);
pub(super) const STREAM_TIMEOUT: Span = Span::from_secs(15);

pub(super) const STREAM_LAG: Span = Span::from_secs(20);

pub(super) fn op(n: u64) -> OpId {
    OpId { life: 1, n }
}

pub(super) fn pos(sequence: u64) -> Position {
    Position::of(sequence.into())
}

pub(super) fn part(sequence: u64, sub: u64) -> Position {
    Position { sub, ..pos(sequence) }
}

pub(super) fn records(first: Position, last: Position, bytes: u64) -> Fetched {
    Fetched { count: 1, bytes, first: Some(first), last: Some(last), ..no_records(1) }
}

/// An answer that claims the end of the shard, and brings no records.
pub(super) fn last_answer(children: &[ChildShard]) -> Fetched {
    Fetched { end: Some(children.to_vec()), ..no_records(0) }
}

pub(super) fn refused(why: Why) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: String::new() })
}

pub(super) fn child(id: &str) -> ChildShard {
    ChildShard { id: id.into(), parents: vec!["shard".into()], range: HashRange::ALL }
}

impl Bench {
    pub(super) fn new(start: Start) -> Self {
        let now = Mono(1_000_000_000);
        Self {
            reader: Reader::new(start, now),
            cfg: ReaderConfig::default(),
            now,
            ops: 0,
            subject: "shard",
            seed: 7,
        }
    }

    /// A bench whose iterator (op 1) has arrived.
    pub(super) fn ready(start: Start) -> Self {
        let mut bench = Self::new(start);
        assert_eq!(bench.iterate(Outcome::Applied(Reply::Iterator)), None);
        bench
    }

    pub(super) fn next(&mut self) -> Option<Want> {
        self.reader.next(self.now, &self.cfg)
    }

    /// How many records the next read asks for; 0: none is next.
    pub(super) fn limit(&mut self) -> u32 {
        self.next().map_or(0, Want::limit)
    }

    pub(super) fn send(&mut self) -> OpId {
        self.ops += 1;
        let limit = self.limit();
        self.reader.sent(op(self.ops), self.now, limit);
        assert_eq!(self.next(), None, "one command at a time");
        op(self.ops)
    }

    pub(super) fn done(&mut self, op: OpId, outcome: Outcome) -> Option<Event> {
        let ctx = Ctx {
            cfg: &self.cfg,
            retry_min: RETRY_MIN,
            retry_max: RETRY_MAX,
            stream_lag: STREAM_LAG,
            stream_timeout: STREAM_TIMEOUT,
            seed: self.seed,
            subject: self.subject,
        };
        self.reader.fetched(op, self.now, &outcome, &ctx)
    }

    /// Waits until a command is due, and returns how long that took.
    pub(super) fn wait(&mut self) -> Span {
        let at = self.reader.wake_at(&self.cfg);
        assert_ne!(at, Mono::NEVER, "nothing will ever be due");
        if at > self.now {
            assert_eq!(self.reader.next(at - Span(1), &self.cfg), None);
        }
        let waited = at.since(self.now);
        self.now = self.now.max(at);
        waited
    }

    pub(super) fn iterate(&mut self, outcome: Outcome) -> Option<Event> {
        self.wait();
        assert!(matches!(self.next(), Some(Want::GetIterator(_))));
        let op = self.send();
        self.done(op, outcome)
    }

    pub(super) fn fetch(&mut self, outcome: Outcome) -> Option<Event> {
        self.wait();
        assert!(matches!(self.next(), Some(Want::GetRecords { .. })));
        let op = self.send();
        self.done(op, outcome)
    }

    pub(super) fn answer(&mut self, fetched: Fetched) -> Option<Event> {
        self.fetch(Outcome::Applied(Reply::Records(fetched)))
    }

    /// An answer from a new iterator.
    pub(super) fn again(&mut self, fetched: Fetched) -> Option<Event> {
        assert_eq!(self.iterate(Outcome::Applied(Reply::Iterator)), None);
        self.answer(fetched)
    }

    pub(super) fn process_front(&mut self) -> BatchRef {
        let batch = self.reader.front().expect("a batch");
        self.reader.delivered();
        assert_eq!(self.reader.front(), None, "one batch at a time");
        assert!(self.reader.processed(batch.batch));
        batch
    }

    pub(super) fn asks_for(&mut self, from: IteratorFrom) {
        self.wait();
        assert_eq!(self.next(), Some(Want::GetIterator(from)));
    }
}
