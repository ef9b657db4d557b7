//! One worker: its rooms, and the router between them.
//!
//! | room | what it does |
//! |---|---|
//! | [`streams`] | the rooms that each stream has for itself, and decisions for every stream in turn |
//! | [`stream_watch`] | for each stream: whether the stream exists, and is still the same |
//! | [`stream_consumer`] | for each stream: the consumer under which shards are read by subscription |
//! | [`startup`] | table there and ours; the watch over it |
//! | [`lease_table`] | rows as observed, scans, expiry, facts about rows from a listing |
//! | [`shard_sync`] | for each stream: listing shards, and creating and removing rows to make the table follow the stream |
//! | [`leadership`] | which worker acts first where one is enough |
//! | [`assignment`] | the leases that this worker is to have, by count, by a leader or by rank; hand-overs |
//! | [`kcl3`] | a fleet with workers of KCL 3.x: live workers, the leader, the leader's assignments |
//! | [`ranked`] | leases by rank among members: live members, turns of shards |
//! | [`lease`] | taking and holding leases, and reading their shards |
//! | [`row_writes`] | rows written beside the lanes of held leases |
//!
//! A room is a struct with private fields. It is given the [`context::Context`] (time, configuration, phase, streams,
//! outbox) and the [`lease_table::LeaseTable`]. A room posts a [`context::Request`] to another room, and the worker
//! carries the request out afterwards. Only this file knows all rooms.

mod assignment;
mod backoff;
mod by_number;
mod calls;
mod choice;
mod context;
mod evidence;
mod hopeless;
mod kcl3;
mod leadership;
mod lease;
mod lease_request;
mod lease_table;
mod pending;
mod phase;
mod ranked;
mod read_budget;
mod request;
mod row_writes;
mod shard_sync;
mod standstill;
mod startup;
mod stream_consumer;
mod stream_set;
mod stream_watch;
mod streams;
mod table_pace;
mod table_turns;
#[cfg(test)]
mod testing;
mod wording;

use crate::held::Held;
use crate::ids::{LeaseIx, LeaseKey, OpId, WorkerId};
use crate::input::{Boot, Outcome};
use crate::notice::{Fatal, Notice, Stall, StreamNews};
use crate::output::{EndReason, Output};
use crate::stream_id::StreamId;
use crate::time::{Mono, Span, Wall};
use assignment::Assignment;
use context::{Context, Request, Waiter};
use leadership::Leadership;
use lease::HeldLeases;
use lease_table::{Balance, LeaseTable, Scan, Scanned};
use phase::{Phase, Stopping};
use row_writes::RowWrites;
use shard_sync::Listed;
use startup::Startup;
use stream_set::StreamIx;
use streams::Streams;
use wording::{describe, unexplained};

/// Leases stepped because of their deadlines per input. The rest follows with the next tick, which is asked for at once.
const MAX_STEPS: usize = 256;
/// The most rounds in which effects of an input may lead to further effects.
const MAX_ROUNDS: usize = 64;

/// One worker after its boot record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    cx: Context,
    leases: LeaseTable,
    held: HeldLeases,
    startup: Startup,
    scan: Scan,
    streams: Streams,
    leadership: Leadership,
    assignment: Assignment,
    row_writes: RowWrites,
}

impl Worker {
    pub(crate) fn new(record: Boot, at: Mono, wall: Wall) -> Self {
        // The name in the rows tells this life from a former life of the same worker.
        let me = WorkerId::of_life(&record.worker, record.incarnation);
        let valid = record.config.check();
        let cx = Context::new(record.config, me.clone(), record.incarnation, record.seed, at.reached(), wall);
        let mut worker = Self {
            leases: LeaseTable::new(cx.needs_listings()),
            streams: Streams::new(&cx),
            cx,
            held: HeldLeases::default(),
            startup: Startup::default(),
            scan: Scan::default(),
            leadership: Leadership::default(),
            assignment: Assignment::default(),
            row_writes: RowWrites::default(),
        };
        let hold = worker.cx.hold();
        worker.cx.notify(Notice::Booted { worker: me, hold });
        if let Err(error) = valid {
            let detail = error.to_string();
            worker.cx.request(Request::Stop(Fatal::Config { detail }));
        }
        worker
    }

    /// Takes the time of an input. A clock that went back counts as standing. Time that the monotonic clock did not
    /// count is taken off beliefs, and not added to observations of other workers: a set clock robs no live owner.
    pub(crate) fn clock(&mut self, at: Mono, wall: Wall) {
        if let Some(by) = self.cx.clock(at.reached(), wall) {
            self.held.on_missed(&mut self.cx, &mut self.leases, by);
            self.assignment.on_missed(by);
        }
    }

    /// An input of another worker, or a repeated input.
    pub(crate) fn stray(&mut self, what: String) {
        self.cx.notify(Notice::Stray { what });
    }

    /// The outcome of a command goes to the waiting room.
    pub(crate) fn on_outcome(&mut self, op: OpId, outcome: Outcome) {
        let Some((waiter, emitted)) = self.cx.settle(op) else {
            return self.stray(format!("an outcome of {op}, which is not expected"));
        };
        if *self.cx.phase() == Phase::Stopped {
            return;
        }
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        if matches!(waiter, Waiter::Lane(_) | Waiter::Relative(_)) {
            cx.learn_pace(leases.busy(), &outcome);
        }
        match waiter {
            Waiter::TableState => self.startup.on_table_state(cx, op, outcome),
            Waiter::TableCreate => self.startup.on_table_created(cx, op, outcome),
            Waiter::StreamState(stream) => self.streams.on_state(cx, stream, op, outcome),
            Waiter::Consumer(stream) => self.streams.on_consumer(cx, leases, (stream, op), &outcome),
            Waiter::Scan => {
                if let Some(scanned) = self.scan.on_page(cx, leases, op, outcome) {
                    self.assignment.kcl3().on_whole_scan(cx, leases, &scanned);
                    self.after_scan(&scanned);
                }
            }
            Waiter::Kcl3Look => self.assignment.kcl3().on_look(cx, leases, op, outcome),
            Waiter::List(stream) => {
                if let Some(listed) = self.streams.on_page(cx, leases, (stream, op, emitted), outcome) {
                    self.after_listing(stream, &listed);
                }
            }
            Waiter::Members => self.assignment.on_members(cx, leases, op, emitted, outcome),
            Waiter::Kcl3Write => self.assignment.kcl3().on_write(cx, op, emitted, outcome),
            Waiter::Discovery => self.assignment.on_discovery(cx, leases, op, outcome),
            Waiter::RowWrite(id) => {
                // What follows from the answer to a request for a lease is decided by the room of assignment.
                if let Some(outcome) = self.row_writes.on_outcome(cx, leases, id, op, outcome)
                    && let Some(request) = self.row_writes.request_mut(id)
                {
                    let next = self.assignment.on_request_answer(cx, leases, request, outcome);
                    self.row_writes.follow(cx, id, op, next);
                }
            }
            Waiter::Relative(ix) => self.held.on_relative(cx, leases, ix, op, outcome),
            Waiter::Reader(ix) => {
                let stream = leases.get(ix).map(lease_table::Lease::stream);
                let outcome = self.streams.on_read(cx, stream, emitted, outcome);
                self.held.on_read(cx, leases, ix, op, outcome);
            }
            Waiter::App(ix) => self.held.on_app(cx, leases, ix, op, outcome),
            Waiter::Lane(ix) => self.held.on_lane(cx, leases, ix, op, emitted, outcome),
        }
    }

    /// Reads a stream, too.
    fn add_stream(&mut self, source: &crate::config::StreamSource) {
        let Some(stream) = self.cx.add_stream(source) else {
            // The worker stops, is of one stream alone, or reads the stream already.
            return;
        };
        self.streams.begin(stream);
        let stream = source.id.as_str().to_owned();
        self.cx.notify(Notice::Stream(StreamNews::Added { stream }));
    }

    /// A stream was found. Start-up waits for the first stream. The leases of further streams are looked for at once.
    fn on_stream_found(&mut self, stream: StreamIx) {
        let cx = &mut self.cx;
        if let Some(id) = cx.streams().id(stream) {
            let stream = id.as_str().to_owned();
            cx.notify(Notice::Stream(StreamNews::Found { stream }));
        }
        self.startup.on_stream_found(cx);
        if cx.is_booted() {
            cx.request(Request::Rescan(cx.now()));
        }
    }

    /// Reads a stream no more, as the application wants it.
    fn remove_stream(&mut self, id: &StreamId) {
        let Some(stream) = self.cx.streams().find(id) else {
            // The stream was never read.
            return;
        };
        if self.end_stream(stream, EndReason::StreamRemoved) {
            let stream = id.as_str().to_owned();
            self.cx.notify(Notice::Stream(StreamNews::Removed { stream }));
        }
    }

    fn end_stream(&mut self, stream: StreamIx, why: EndReason) -> bool {
        let ended = self.cx.end_stream(stream, why);
        if ended {
            self.leases.forget_idle(|lease| lease.stream() == stream);
            self.leases.wake_busy(self.cx.now());
        }
        ended
    }

    /// The worker cannot go on with a stream. A worker of several streams goes on with its remaining streams.
    fn lose_stream(&mut self, stream: StreamIx, why: Fatal) {
        if !self.cx.is_running() || !self.cx.streams().reads(stream) {
            return;
        }
        if self.cx.streams().read().len() <= 1 {
            return self.stop_for(why, false);
        }
        self.end_stream(stream, EndReason::SourceGone);
        let stream = self.cx.stream_name(stream);
        let why = Box::new(why);
        self.cx.notify(Notice::Stream(StreamNews::Lost { stream, why }));
    }

    /// Everything that is decided after a whole scan.
    fn after_scan(&mut self, scanned: &Scanned) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        if scanned.is_round() {
            self.leadership.elect(cx, leases);
        }
        let deputy = self.leadership.deputy();
        if !self.streams.after_scan(cx, leases, scanned, deputy) {
            return;
        }
        self.assignment.on_scanned(cx, leases, scanned);
        self.take_share(scanned.balance());
    }

    /// Everything that follows from a list of all shards of a stream.
    fn after_listing(&mut self, stream: StreamIx, listed: &Listed) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        let known = cx.has_recognised(stream);
        if !listed.is_sound() {
            return self.held.on_bad_listing(cx, leases, stream);
        }
        if !self.streams.recognises(cx, leases, stream, listed) {
            return;
        }
        self.held.on_shards_listed(cx, leases, stream, listed.first_page_at(), listed.shards());
        self.streams.create_missing(cx, leases, (stream, listed), self.leadership.deputy());
        self.assignment.on_shards_listed(cx, leases, listed.shards());
        if cx.needs_listings() || !known {
            // What could not be taken before, for want of its parents or of knowing the stream, can be now.
            let balance = leases.shares(cx).balance();
            self.take_share(&balance);
        }
    }

    fn take_share(&mut self, balance: &Balance) {
        let requests = self.row_writes.requests();
        let requested: Vec<LeaseKey> = requests.map(|(_, request)| request.key().clone()).collect();
        let (cx, leases) = (&mut self.cx, &self.leases);
        self.assignment.take_share(cx, leases, balance, &requested);
    }

    /// Writes rows, after a look at the requests for leases that are more than our share has room for by now.
    fn write_rows(&mut self) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        if self.assignment.weighs_requests(cx) {
            let requests = self.row_writes.requests();
            let spared = self.assignment.spared_requests(cx, leases, requests);
            self.row_writes.spare(cx, &spared);
        }
        self.row_writes.step(cx, leases);
    }

    /// Lets go of everything within so much time.
    fn stop(&mut self, reason: EndReason, timeout: Span, table_gone: bool) {
        if *self.cx.phase() != Phase::Running {
            return;
        }
        let now = self.cx.now();
        let deadline = now + timeout;
        *self.cx.phase_mut() = Phase::Stopping(Stopping::new(reason, deadline, table_gone));
        let held = self.leases.unordered().filter(|lease| lease.is_ours()).count() as u32;
        self.cx.notify(Notice::ShuttingDown { held });
        self.assignment.leave(&self.cx);
        self.leases.wake_busy(now);
    }

    fn stop_for(&mut self, fatal: Fatal, table_gone: bool) {
        if *self.cx.phase() == Phase::Running {
            self.cx.notify(Notice::Fatal(fatal));
            let timeout = self.cx.config().shutdown_timeout;
            self.stop(EndReason::SourceGone, timeout, table_gone);
        } else if let Phase::Stopping(stopping) = self.cx.phase_mut()
            && table_gone
        {
            stopping.set_table_gone();
        }
    }

    /// Does all due work, and all work that follows. Called after every input.
    pub(crate) fn run_due(&mut self) {
        let mut steps = MAX_STEPS;
        self.carry_out_requests();
        lease::wake_waiting(&self.cx, &mut self.leases);
        for _ in 0..MAX_ROUNDS {
            if *self.cx.phase() == Phase::Stopped {
                return;
            }
            while steps > 0
                && let Some(ix) = self.leases.pop_due(self.cx.now())
            {
                steps -= 1;
                self.held.step(&mut self.cx, &mut self.leases, ix);
            }
            self.carry_out_requests();
            self.step_rooms();
            if !self.carry_out_requests() {
                return;
            }
        }
        self.cx.broken("the rooms come to an end of asking each other");
    }

    fn step_rooms(&mut self) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        if let Phase::Stopping(_) = cx.phase() {
            return self.stop_step();
        }
        self.startup.step(cx);
        self.assignment.kcl3().look(cx);
        self.scan.step(cx, leases);
        self.streams.step(cx, leases);
        let listing = self.streams.are_listed();
        self.assignment.step(cx, leases, listing);
        self.write_rows();
    }

    fn stop_step(&mut self) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        let (now, timeout) = (cx.now(), cx.config().table_timeout);
        let urgency = u8::from(cx.forced()) + u8::from(cx.out_of_patience());
        if let Phase::Stopping(stopping) = cx.phase_mut()
            && stopping.escalate(urgency, now, timeout)
        {
            leases.wake_busy(now);
        }
        self.write_rows();
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        let listing = self.streams.are_listed();
        self.assignment.step(cx, leases, listing);
        let let_go = leases.busy() == 0 && self.assignment.is_idle() && !self.row_writes.assigns();
        if let_go || cx.phase().ends_within(Span::ZERO, now) {
            let summary = cx.phase().summary(self.held.left_behind(leases, now), cx.config().lease_duration);
            *cx.phase_mut() = Phase::Stopped;
            cx.notify(Notice::Stopped(Box::new(summary)));
        }
    }

    /// Carries out the requests between rooms. Returns whether a request was found.
    fn carry_out_requests(&mut self) -> bool {
        let mut any = false;
        while let Some(request) = self.cx.next_request() {
            any = true;
            if *self.cx.phase() != Phase::Stopped {
                self.carry_out(request);
            }
        }
        any
    }

    fn carry_out(&mut self, request: Request) {
        let (cx, leases) = (&mut self.cx, &mut self.leases);
        match request {
            Request::ListShards(stream, why) => self.streams.list(cx, stream, why),
            Request::Rescan(at) => self.scan.schedule_by(at),
            Request::DoubtTable => self.startup.doubt_table(cx),
            Request::StreamFound(stream) => self.on_stream_found(stream),
            Request::StreamIdentified(stream) => {
                if let Some(scanned) = self.streams.on_identified(cx, leases, stream) {
                    self.after_scan(&scanned);
                }
            }
            Request::DoubtStream(stream) => self.streams.doubt(cx, stream),
            Request::DoubtConsumer(stream) => self.streams.doubt_consumer(cx, stream),
            Request::StreamListed(stream, took) => self.streams.listed(cx, stream, took),
            Request::LoseStream(stream, why) => self.lose_stream(stream, why),
            Request::WriteRow { change, why, child_of, expires } => {
                self.row_writes.add(cx, change, why, child_of, expires)
            }
            Request::OfOwner(request) => self.row_writes.add_request(cx, request),
            Request::DropRowWrites(ix) => self.row_writes.drop_children_of(ix),
            Request::ChildWritten(ix) => self.held.on_child_written(cx, leases, ix),
            Request::GivenUp(ix) => self.assignment.on_given_up(cx, leases, ix),
            Request::Take(ix, why) => self.held.take(cx, leases, ix, why),
            Request::TableGone(fatal) => self.stop_for(fatal, true),
            Request::Stop(fatal) => self.stop_for(fatal, false),
        }
    }

    /// When to be woken at the latest.
    pub(crate) fn wake_at(&mut self) -> Mono {
        let (leases, cx) = (self.leases.wake_at(), &self.cx);
        let always = leases
            .min(self.assignment.wake_at(cx, &self.leases))
            .min(self.row_writes.wake_at(cx))
            .min(cx.turns().wake_at(cx.now()));
        match cx.phase() {
            Phase::Stopped => Mono::NEVER,
            Phase::Stopping(stopping) => always.min(stopping.wake_at(cx.now(), cx.config().table_timeout)),
            Phase::Running => {
                let looks = self.scan.wake_at(cx, &self.leases).min(self.assignment.look_at(cx));
                always.min(self.startup.wake_at()).min(looks).min(self.streams.wake_at(cx))
            }
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.cx.phase() == Phase::Stopped
    }

    /// The name in the rows of this life.
    pub(crate) fn id(&self) -> &WorkerId {
        self.cx.me()
    }

    /// How many commands have no outcome yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.cx.unanswered()
    }

    /// How many rows ought to be leases and cannot be read.
    pub(crate) fn unreadable(&self) -> usize {
        self.leases.scans().unreadable().len()
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = Held<'_>> {
        self.held.all()
    }

    /// Moves out the numbers of leases of which more or less may be held than at the last call.
    pub(crate) fn take_touched(&mut self, into: &mut Vec<LeaseIx>) {
        self.leases.take_touched(into);
    }

    pub(crate) fn held_in(&self, ix: LeaseIx) -> Option<Held<'_>> {
        self.held.described(ix)
    }

    pub(crate) fn waits_for(&self, ix: LeaseIx) -> Option<Stall> {
        self.held.waits_for(&self.cx, &self.leases, ix)
    }

    /// Moves the outputs out, keeping the memory.
    pub(crate) fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.cx.outputs()
    }
}
