//! What every room is given: the time, the configuration, the phase of the worker, randomness, and the outbox.

use super::pending::Pending;
pub(super) use super::pending::Waiter;
use super::phase::Phase;
use super::read_budget::ReadBudget;
pub(super) use super::request::{Request, RowWriteId};
use super::standstill::Standstill;
use super::stream_consumer::patience;
use super::stream_set::{StreamIx, StreamSet};
use super::table_turns::{TableTurns, Turn};
use crate::config::{Config, InitialPosition, ReadMode, StreamSource};
use crate::draw::{draw, draw_below};
use crate::ids::{LeaseIx, LeaseKey, OpId, WorkerId};
use crate::input::Outcome;
use crate::notice::Notice;
use crate::output::{Command, ConsumerOp, Effect, EndReason, Output, StreamOp, TableOp};
use crate::policy::{Assign, Finished, Lineage, Steal};
use crate::reader::Feeds;
use crate::row::Change;
use crate::skew::{Missed, Skew};
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Span, Wall};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The part of a worker that all rooms share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    config: Config,
    me: WorkerId,
    life: u64,
    seed: u64,
    now: Mono,
    wall: Wall,
    skew: Skew,
    hold: Span,
    phase: Phase,
    /// Whether the runtime of the handlers runs anything.
    standstill: Standstill,
    /// Table and stream were found: rows and shards may be read.
    booted: bool,
    /// The streams that are read.
    streams: StreamSet,
    /// What the reads of all shards share.
    reads: ReadBudget,
    /// The requests about leases that are under way.
    turns: TableTurns,
    out: Vec<Output>,
    next_op: u64,
    pending: Pending,
    /// Empty between two inputs.
    requests: VecDeque<Request>,
}

/// State that changes from input to input and lasts until the next input. The time does not last: an input brings its
/// own. The difference of the clocks is left out, since only a jump of a wall clock makes a difference.
impl Hash for Context {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut pending: Vec<_> = self.pending.iter().collect();
        pending.sort_unstable_by_key(|(op, _)| **op);
        (&self.me, self.seed, self.next_op, pending).hash(state);
        (&self.phase, &self.standstill, self.booted, &self.streams).hash(state);
        (&self.reads, &self.turns).hash(state);
    }
}

impl Context {
    pub(super) fn new(config: Config, me: WorkerId, life: u64, seed: u64, now: Mono, wall: Wall) -> Self {
        let hold = config.hold();
        let skew = Skew::new(&config, now, wall);
        let streams = StreamSet::new(&config);
        let reads = ReadBudget::new(&config);
        let turns = TableTurns::new(config.max_table_requests);
        Self {
            config,
            me,
            life,
            seed,
            now,
            wall,
            skew,
            hold,
            phase: Phase::Running,
            standstill: Standstill::default(),
            booted: false,
            streams,
            reads,
            turns,
            out: Vec::new(),
            next_op: 0,
            pending: Pending::default(),
            requests: VecDeque::new(),
        }
    }

    /// Takes the time of an input. A clock that went back is taken as not having moved. Gives what the monotonic clock did not count.
    pub(super) fn clock(&mut self, at: Mono, wall: Wall) -> Option<Span> {
        self.now = self.now.max(at);
        self.wall = wall;
        match self.skew.look(self.now, wall)? {
            Missed::Time(by) => Some(by),
            Missed::Ignored { by, again } => {
                if !again {
                    self.notify(Notice::WallIgnored { by });
                }
                None
            }
        }
    }

    /// The monotonic clock did not count so much time. Beliefs begin when their commands were emitted, which is longer ago.
    pub(super) fn backdate_beliefs(&mut self, span: Span) {
        let pending = self.pending.values_mut();
        let beliefs = pending.filter(|(waiter, _)| matches!(waiter, Waiter::Lane(_) | Waiter::Kcl3Write));
        beliefs.for_each(|(_, emitted)| *emitted = *emitted - span);
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The name in the rows of this life of this worker.
    pub(super) fn me(&self) -> &WorkerId {
        &self.me
    }

    /// Whether `owner` is a former process of this worker. With unique names, that process has ended.
    pub(super) fn is_former_life(&self, owner: &WorkerId) -> bool {
        self.config.unique_names && *owner != self.me && owner.is_life_of_same(&self.me)
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn now(&self) -> Mono {
        self.now
    }

    pub(super) fn wall(&self) -> Wall {
        self.wall
    }

    /// For how long a lease is believed in after the emission of the write that proves it.
    pub(super) fn hold(&self) -> Span {
        self.hold
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(super) fn phase_mut(&mut self) -> &mut Phase {
        &mut self.phase
    }

    /// Whether new work is begun.
    pub(super) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the runtime of the handlers runs anything.
    pub(super) fn standstill(&self) -> &Standstill {
        &self.standstill
    }

    pub(super) fn standstill_mut(&mut self) -> &mut Standstill {
        &mut self.standstill
    }

    /// Whether this worker is to have leases: the worker runs, and so do its handlers, as far as is known.
    pub(super) fn wants_leases(&self) -> bool {
        self.is_running() && !self.standstill.lets_go()
    }

    /// Whether a stop has come to the point where handlers are aborted and checkpoints not waited for: two requests before its
    /// deadline.
    pub(super) fn forced(&self) -> bool {
        self.phase.ends_within(self.config.table_timeout.times(2), self.now)
    }

    /// Whether a stop waits for handlers no more: one request before its deadline.
    pub(super) fn out_of_patience(&self) -> bool {
        self.phase.ends_within(self.config.table_timeout, self.now)
    }

    /// Whether table and stream were found.
    pub(super) fn is_booted(&self) -> bool {
        self.booted
    }

    pub(super) fn set_booted(&mut self) {
        debug_assert!(!self.booted, "a worker boots once");
        self.booted = true;
    }

    pub(super) fn streams(&self) -> &StreamSet {
        &self.streams
    }

    /// What the reads of all shards share.
    pub(super) fn reads(&self) -> &ReadBudget {
        &self.reads
    }

    pub(super) fn reads_mut(&mut self) -> &mut ReadBudget {
        &mut self.reads
    }

    /// The requests about leases that are under way.
    pub(super) fn turns(&self) -> &TableTurns {
        &self.turns
    }

    pub(super) fn turns_mut(&mut self) -> &mut TableTurns {
        &mut self.turns
    }

    /// Whether a request about this lease may be made now. If not, the lease waits in line.
    pub(super) fn takes_turn(&mut self, lease: LeaseIx, turn: Turn) -> bool {
        self.turns.ask(lease, turn, self.now)
    }

    /// A request about a lease has this outcome. `leases`: how many the worker is about.
    pub(super) fn learn_pace(&mut self, leases: u32, outcome: &Outcome) {
        self.turns.learn(self.now, &self.config, leases, outcome);
    }

    /// Whether a row may have stood still because the table throttled.
    pub(super) fn spares_owners(&self) -> bool {
        self.turns.spares_owners(self.now, &self.config)
    }

    /// Adds a stream to read. `None` for a stream that is read already, or in a worker of one stream only.
    pub(super) fn add_stream(&mut self, source: &StreamSource) -> Option<StreamIx> {
        let may = self.is_running() && self.streams.are_several();
        may.then(|| self.streams.add(source, &self.config)).flatten()
    }

    /// Reads a stream no more. Whether it was read.
    pub(super) fn end_stream(&mut self, stream: StreamIx, why: EndReason) -> bool {
        self.streams.end(stream, why)
    }

    /// Its name, for people.
    pub(super) fn stream_name(&self, stream: StreamIx) -> String {
        let id = self.streams.id(stream);
        id.map_or_else(|| self.config.stream.clone(), ToString::to_string)
    }

    /// Whether the leases are known to be of this stream.
    pub(super) fn has_recognised(&self, stream: StreamIx) -> bool {
        self.streams.is_recognised(stream)
    }

    pub(super) fn set_recognised(&mut self, stream: StreamIx) {
        self.streams.recognise(stream);
    }

    /// The service has described the stream as it did at first; the description was asked for at that moment.
    pub(super) fn set_described(&mut self, stream: StreamIx, asked: Mono) {
        self.streams.set_described(stream, asked);
    }

    /// Sets whether, by the last description, the stream is gone or was made anew.
    pub(super) fn set_denied(&mut self, stream: StreamIx, denied: bool) {
        self.streams.set_denied(stream, denied);
    }

    /// The service has said what the stream is.
    pub(super) fn set_said(&mut self, stream: StreamIx, identity: Option<StreamIdentity>) {
        self.streams.set_said(stream, identity);
    }

    /// The shards of the stream may be subscribed to under this consumer, or under none.
    pub(super) fn set_consumer(&mut self, stream: StreamIx, arn: Option<Arc<str>>) {
        self.streams.set_consumer(stream, arn);
    }

    /// How the shards of a stream may be read now.
    pub(super) fn feeds(&self, stream: StreamIx) -> Feeds {
        match (self.streams.mode(stream), self.streams.consumer(stream)) {
            (ReadMode::Polling, _) | (ReadMode::Auto, None) => Feeds::Iterators,
            (ReadMode::Auto, Some(_)) => Feeds::Both,
            (ReadMode::FanOut, Some(_)) => Feeds::Subscriptions,
            (ReadMode::FanOut, None) => Feeds::Nothing,
        }
    }

    /// The description of the stream was borne out: rows may now name the stream.
    pub(super) fn set_identified(&mut self, stream: StreamIx) {
        if !self.streams.is_identified(stream) {
            self.streams.set_identified(stream);
            self.request(Request::StreamIdentified(stream));
        }
    }

    /// Whether leases of a stream may be taken or requested: the stream is read, and known since. A worker of one
    /// stream takes no lease before it has recognised the stream. While descriptions say that the stream is gone or
    /// made anew, its shards may belong to another stream.
    pub(super) fn may_take(&self, stream: StreamIx) -> bool {
        let identified = self.streams.is_identified(stream) && !self.streams.is_denied(stream);
        let known = identified && !self.standstill.lets_go();
        known && self.streams.reads(stream) && (!self.streams.are_several() || self.has_recognised(stream))
    }

    /// Why the leases of a stream are let go of, if they are.
    pub(super) fn leaves(&self, stream: StreamIx) -> Option<EndReason> {
        let stands = self.standstill.lets_go().then_some(EndReason::HandlersBlocked);
        let stops = self.phase.stopping().or_else(|| self.streams.ended(stream));
        stops.or(stands)
    }

    /// Whether leases are assigned by rank among the members.
    pub(super) fn ranks(&self) -> bool {
        self.config.policies.assign == Assign::Rank
    }

    /// Whether owners hand leases over on request.
    pub(super) fn hands_over(&self) -> bool {
        self.config.policies.steal == Steal::Ask && self.config.policies.assign == Assign::Count
    }

    /// Whether rows may lack what only a list of the shards says.
    pub(super) fn needs_listings(&self) -> bool {
        self.config.policies.lineage == Lineage::Listed
    }

    /// Whether the absence of a row means that its shard still has to be read.
    pub(super) fn absence_is_unread(&self) -> bool {
        self.config.policies.finished != Finished::WhenRead
            && self.config.initial_position == InitialPosition::TrimHorizon
    }

    /// The counter for the next write of a row that shows `counter`. The row is known to have shown `highest`.
    ///
    /// A row whose counter was removed or set back goes on from its highest counter: other workers may remember that
    /// counter, and fencing tokens must grow. Only a time in the row stands for itself, however early, since other
    /// workers act on the time.
    pub(super) fn next_counter(&self, counter: u64, highest: u64) -> u64 {
        let life = self.config.policies.life;
        let stands = counter > 0 && life.tells_time();
        // No counter comes after the last one.
        let base = if stands || highest == u64::MAX { counter } else { counter.max(highest) };
        let next = life.next(base, self.wall, self.config.lease_duration);
        debug_assert!(next > counter || counter == u64::MAX, "a write leaves a greater counter");
        next
    }

    /// Asks for something to be done; its outcome will go to `waiter`.
    fn issue(&mut self, waiter: Waiter, give_up: Mono, effect: Effect) -> OpId {
        debug_assert!(give_up > self.now, "an operation has time to be carried out");
        self.next_op += 1;
        let op = OpId { life: self.life, n: self.next_op };
        let before = self.pending.insert(op.n, (waiter, self.now));
        debug_assert!(before.is_none(), "an operation has a name of its own");
        self.out.push(Output::Do(Command { op, give_up, effect }));
        op
    }

    /// Asks for an operation on the lease table.
    pub(super) fn table(&mut self, waiter: Waiter, op: TableOp) -> OpId {
        let give_up = self.now + self.config.table_timeout;
        self.issue(waiter, give_up, Effect::Table(op))
    }

    /// Requests an operation on the row of the lease with this turn.
    pub(super) fn table_in_turn(&mut self, turn: Turn, waiter: Waiter, op: TableOp) -> OpId {
        debug_assert!(
            matches!(waiter, Waiter::Lane(_) | Waiter::Relative(_)),
            "turns end with the outcomes of these"
        );
        let op = self.table(waiter, op);
        self.turns.begun(op, turn, self.now);
        op
    }

    /// Asks for an operation on a stream.
    pub(super) fn stream(&mut self, waiter: Waiter, stream: StreamIx, op: StreamOp) -> OpId {
        let give_up = self.now + patience(&op, &self.config);
        let effect = self.streams.effect(stream, op);
        self.issue(waiter, give_up, effect)
    }

    /// Sends an operation to the application. The operation may take any time.
    pub(super) fn app(&mut self, waiter: Waiter, op: ConsumerOp) -> OpId {
        self.issue(waiter, Mono::NEVER, Effect::Consumer(op))
    }

    /// The room that waits for this command, and the time of the command's emission; forgets both. `None` for a stray
    /// or repeated outcome.
    pub(super) fn settle(&mut self, op: OpId) -> Option<(Waiter, Mono)> {
        if op.life != self.life {
            return None;
        }
        let waiter = self.pending.remove(&op.n);
        match waiter {
            Some((Waiter::Reader(_), _)) => self.reads.ended(op),
            Some((Waiter::Lane(_) | Waiter::Relative(_), _)) => self.turns.ended(op),
            _ => {}
        }
        debug_assert!(
            waiter.is_none() || op.n <= self.next_op,
            "only a command that was emitted has an outcome"
        );
        debug_assert!(
            waiter.as_ref().is_none_or(|(_, emitted)| *emitted <= self.now),
            "an outcome comes after its command"
        );
        waiter
    }

    /// How many commands are without an outcome.
    pub(super) fn unanswered(&self) -> usize {
        self.pending.len()
    }

    /// An invariant does not hold. Tests stop here. In production the worker reports the failure, and goes on as well
    /// as it can.
    #[cold]
    pub(super) fn broken(&mut self, expected: &str) {
        debug_assert!(false, "{expected}");
        let expected = expected.into();
        self.notify(Notice::InvariantBroken { expected });
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        self.out.push(Output::Tell(notice));
    }

    /// Tells of a request that failed, and when the request is made again.
    pub(super) fn trouble(
        &mut self, op: OpId, lease: Option<LeaseKey>, what: impl Into<String>, how: String, again_in: Span,
    ) {
        self.notify(Notice::Trouble { op, lease, what: what.into(), how, again_in });
    }

    /// Moves the outputs out, keeping the memory.
    pub(super) fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        debug_assert!(self.requests.is_empty(), "every request is carried out before outputs are read");
        self.out.drain(..)
    }

    /// Posts a request to another room.
    pub(super) fn request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// The stream of a lease, as the lease's row is to name the stream.
    pub(super) fn identity_of(&self, key: &LeaseKey) -> Option<StreamIdentity> {
        let stream = self.streams.of_key(key.as_str())?;
        self.streams.identity(stream).cloned()
    }

    /// Requests a write of a row beside the lanes. A new row names its stream. `expires`: `NEVER` for the children of a
    /// held lease. A loss of that lease gives up its children's writes, too.
    pub(super) fn write_row(
        &mut self, mut change: Change, why: String, child_of: Option<LeaseIx>, expires: Mono,
    ) {
        if let Change::Create(row) = &mut change {
            row.stream = self.identity_of(&row.key);
        }
        debug_assert!(
            child_of.is_none() || expires == Mono::NEVER,
            "what a held lease waits for does not expire"
        );
        self.request(Request::WriteRow { change, why, child_of, expires });
    }

    /// The next request that was not carried out yet.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// The pause before the `failures`-th retry in a row: `Backoff` counts the failures.
    pub(super) fn pause(&self, what: &str, subject: &str, failures: u32) -> Span {
        let full = self.config.retry_min.doubled(failures, self.config.retry_max).0;
        let n = self.now.0 ^ u64::from(failures);
        Span(full / 2 + draw_below(self.seed, what, subject, n, full / 2))
    }

    /// The pause between two looks at a condition that passes without action.
    pub(super) fn poll_pause(&self) -> Span {
        let config = &self.config;
        config.retry_max.min(Span::from_secs(1)).max(config.retry_min)
    }

    /// A keyed draw about a lease.
    pub(super) fn draw(&self, purpose: &str, key: &LeaseKey, n: u64) -> u64 {
        draw(self.seed, purpose, key.as_str(), n)
    }

    /// A keyed draw of this worker in `0..bound`.
    pub(super) fn draw_below(&self, purpose: &str, n: u64, bound: u64) -> u64 {
        draw_below(self.seed, purpose, self.me.as_str(), n, bound)
    }
}
