//! Leases alone, by method.

mod acquisition;
mod application;
mod began;
mod confirmed_end;
mod failure;
mod held;
mod kept;
mod letting_go;
mod missed;
mod missing;
mod paused;
mod running;
mod shard_end;
mod stall;
mod waiting;

use super::held::HeldLease;
use super::{HeldLeases, Said};
use crate::held::Held;
use crate::ids::{FencingToken, LeaseIx, OpId};
use crate::input::{Fetched, Outcome, Reply};
use crate::notice::{Notice, Stall};
use crate::output::{ConsumerOp, Effect, EndReason, IteratorFrom, StreamOp, TableOp};
use crate::row::{Change, LeaseRow};
use crate::shard::{ChildShard, HashRange};
use crate::testkit::no_records;
use crate::time::Span;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::lease_table::LeaseTable;
use crate::worker::phase::{Phase, Stopping};
use crate::worker::testing::{at, context, done, hold_in, row, seconds, table, throttled};

/// A worker with one lease, and the worker's commands.
struct Owner {
    cx: Context,
    leases: LeaseTable,
    room: HeldLeases,
    ix: LeaseIx,
    unanswered: Vec<(OpId, Effect)>,
    notices: Vec<Notice>,
    requests: Vec<Request>,
}

impl Owner {
    /// It has taken the lease by this row.
    fn of(row: LeaseRow) -> Self {
        let cx = context();
        let leases = table(&cx);
        Self::within(cx, leases, row)
    }

    fn within(mut cx: Context, mut leases: LeaseTable, row: LeaseRow) -> Self {
        let mut room = HeldLeases::default();
        let ix = hold_in(&mut room, &mut cx, &mut leases, row);
        let mut owner =
            Self { cx, leases, room, ix, unanswered: Vec::new(), notices: Vec::new(), requests: Vec::new() };
        owner.listen();
        owner
    }

    /// The application has opened the shard of `row`, and the reader has an iterator.
    fn reading(row: LeaseRow) -> Self {
        let mut owner = Self::of(row);
        owner.answer_app(done());
        owner.iterates();
        owner.forget();
        owner
    }

    /// The handler processes records 1 to 5.
    fn processing() -> Self {
        let mut owner = Self::reading(row("a"));
        owner.answer_stream(records(1, 5));
        assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { .. })));
        owner
    }

    fn listen(&mut self) {
        let did = self.cx.did();
        self.notices.extend(did.notices().to_vec());
        self.requests.extend(did.requests().to_vec());
        self.unanswered.extend(did.commands());
    }

    fn forget(&mut self) {
        self.notices.clear();
        self.requests.clear();
    }

    fn step(&mut self) {
        self.room.step(&mut self.cx, &mut self.leases, self.ix);
        self.listen();
    }

    /// So much time passes, and the lease is looked at.
    fn later(&mut self, span: Span) {
        self.cx.later(span);
        self.step();
    }

    #[track_caller]
    fn answer(&mut self, is_it: fn(&Effect) -> bool, outcome: Outcome) {
        let place = self.unanswered.iter().position(|(_, effect)| is_it(effect));
        let (op, _) = self.unanswered.remove(place.expect("it was asked for"));
        let (waiter, emitted) = self.cx.settle(op).expect("it is waited for");
        let (cx, leases, room) = (&mut self.cx, &mut self.leases, &mut self.room);
        match waiter {
            Waiter::Lane(ix) => room.on_lane(cx, leases, ix, op, emitted, outcome),
            Waiter::App(ix) => room.on_app(cx, leases, ix, op, outcome),
            Waiter::Reader(ix) => room.on_read(cx, leases, ix, op, outcome),
            Waiter::Relative(ix) => room.on_relative(cx, leases, ix, op, outcome),
            other => panic!("{other:?} is of another room"),
        }
        self.listen();
    }

    #[track_caller]
    fn answer_app(&mut self, outcome: Outcome) {
        let is_it = |effect: &Effect| match effect {
            Effect::Consumer(op) => !is_stop(op),
            _ => false,
        };
        self.answer(is_it, outcome);
    }

    #[track_caller]
    fn answer_stream(&mut self, outcome: Outcome) {
        self.answer(|effect| matches!(effect, Effect::Stream(_)), outcome);
    }

    /// The answer of a write to the table, or of a read.
    #[track_caller]
    fn answer_table(&mut self, outcome: Outcome) {
        self.answer(|effect| matches!(effect, Effect::Table(_)), outcome);
    }

    fn find<T>(&self, pick: impl Fn(&Effect) -> Option<T>) -> Option<T> {
        self.unanswered.iter().find_map(|(_, effect)| pick(effect))
    }

    /// What the application was asked for, and has not answered yet.
    fn app(&self) -> Option<ConsumerOp> {
        self.find(|effect| match effect {
            Effect::Consumer(op) if !is_stop(op) => Some(op.clone()),
            _ => None,
        })
    }

    fn is_aborted(&self) -> bool {
        self.find(|effect| matches!(effect, Effect::Consumer(ConsumerOp::Abort { .. })).then_some(()))
            .is_some()
    }

    fn stream(&self) -> Option<StreamOp> {
        self.find(|effect| match effect {
            Effect::Stream(op) => Some(op.clone()),
            _ => None,
        })
    }

    /// The write in flight.
    fn write(&self) -> Option<Change> {
        self.find(|effect| match effect {
            Effect::Table(TableOp::Write(change)) => Some(change.clone()),
            _ => None,
        })
    }

    /// The key of the row that is being read.
    fn row_read(&self) -> Option<String> {
        self.find(|effect| match effect {
            Effect::Table(TableOp::Read { key }) => Some(key.to_string()),
            _ => None,
        })
    }

    /// The names of the notices since this was asked last.
    fn told(&mut self) -> Vec<&'static str> {
        let notices = std::mem::take(&mut self.notices);
        notices.iter().map(Notice::name).collect()
    }

    fn requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    fn held(&self) -> &HeldLease {
        self.room.actions.held(self.ix).expect("it is held")
    }

    /// What the worker says of the lease.
    fn said(&self) -> Held<'_> {
        self.held().described()
    }

    /// Whether the worker may act as the owner now.
    fn believes(&self) -> bool {
        self.leases.get(self.ix).and_then(|lease| lease.believes(self.cx.now())) == Some(true)
    }

    fn holds(&self) -> bool {
        self.room.actions.held(self.ix).is_some()
    }

    fn token(&self) -> FencingToken {
        self.held().token()
    }

    fn row(&self) -> LeaseRow {
        self.leases.row("a").expect("it has a row").clone()
    }

    /// The application says this of the lease.
    fn say(&mut self, said: Said) {
        let (ix, token) = (self.ix, self.token());
        self.room.on_said(&mut self.cx, &mut self.leases, ix, token, said);
        self.listen();
    }

    /// The application pauses the shard, or ends the pause.
    fn pause(&mut self, paused: bool) {
        self.room.on_pause_wanted(&mut self.cx, &mut self.leases, self.ix, paused);
        self.listen();
    }

    /// `span` passes in steps, and every write is acknowledged. Returns the number of writes.
    fn keeps_for(&mut self, span: Span, step: Span) -> usize {
        let until = self.cx.now() + span;
        let mut writes = 0;
        while self.cx.now() < until {
            self.later(until.since(self.cx.now()).min(step));
            if self.write().is_some() {
                self.answer_table(done());
                writes += 1;
            }
        }
        writes
    }

    /// The same, in steps of a renewal interval.
    fn keeps(&mut self, span: Span) -> usize {
        self.keeps_for(span, self.cx.config().renew_interval)
    }

    /// The clock runs for `secs` seconds, second by second, and the table applies each write.
    fn pass(&mut self, secs: u64) {
        self.keeps_for(seconds(secs), seconds(1));
    }

    /// An iterator is asked for, and comes.
    #[track_caller]
    fn iterates(&mut self) {
        self.answer_stream(Outcome::Applied(Reply::Iterator));
    }

    /// A batch that is not in memory any more is read again from this place on.
    #[track_caller]
    fn reads_again_from(&mut self) -> IteratorFrom {
        if let Some(StreamOp::GetRecords { .. }) = self.stream() {
            self.answer_stream(throttled());
            self.later(seconds(1));
        }
        match self.stream() {
            Some(StreamOp::GetIterator { from, .. }) => from,
            other => panic!("expected an iterator to be asked for, found {other:?}"),
        }
    }

    fn why_stalled(&self) -> Stall {
        self.held().why_stalled(self.cx.now(), &self.leases)
    }

    /// The worker is told to stop within its configured time.
    fn stop(&mut self) {
        let deadline = self.cx.now() + self.cx.config().shutdown_timeout;
        *self.cx.phase_mut() = Phase::Stopping(Stopping::new(EndReason::Shutdown, deadline, false));
        self.step();
    }
}

/// Whether it tells what runs to stop.
fn is_stop(op: &ConsumerOp) -> bool {
    matches!(op, ConsumerOp::Abort { .. } | ConsumerOp::TimeOut { .. })
}

/// Records with these numbers.
fn records(first: u64, last: u64) -> Outcome {
    Outcome::Applied(Reply::Records(Fetched {
        count: (last - first + 1) as u32,
        bytes: 100,
        first: Some(at(first)),
        last: Some(at(last)),
        ..no_records(1_000)
    }))
}

/// The end of the shard, without records.
fn end(children: &[ChildShard]) -> Outcome {
    Outcome::Applied(Reply::Records(Fetched { end: Some(children.to_vec()), ..no_records(0) }))
}

/// The lease is renewed, if that is due.
fn renewed(owner: &mut Owner) {
    if owner.write().is_some_and(|change| change.verb() == "renew") {
        owner.answer_table(done());
    }
}

/// `stream_lag` passes, and the lease stays ours.
fn waits_out_the_lag(owner: &mut Owner) {
    let until = owner.cx.now() + owner.cx.config().stream_lag;
    while owner.cx.now() < until {
        let left = until.since(owner.cx.now());
        owner.later(left.min(owner.cx.config().renew_interval));
        renewed(owner);
    }
}

/// Two answers, from two iterators, claim the end: without children, `stream_lag` apart.
fn reads_the_end(owner: &mut Owner, children: &[ChildShard]) {
    owner.answer_stream(end(children));
    assert!(!owner.held().is_missing(), "one answer proves no end");
    let pause = owner.cx.config().reader.min_interval;
    match children.is_empty() {
        true => waits_out_the_lag(owner),
        false => owner.later(pause),
    }
    owner.iterates();
    owner.later(pause);
    owner.answer_stream(end(children));
}

fn child(id: &str, parents: &[&str]) -> ChildShard {
    ChildShard {
        id: id.into(),
        parents: parents.iter().map(|parent| (*parent).into()).collect(),
        range: HashRange::ALL,
    }
}

/// What "a" was split into.
fn halves() -> [ChildShard; 2] {
    ["b", "c"].map(|id| child(id, &["a"]))
}

fn closes_for(op: Option<ConsumerOp>) -> Option<EndReason> {
    match op? {
        ConsumerOp::Close { reason, .. } => Some(reason),
        _ => None,
    }
}
