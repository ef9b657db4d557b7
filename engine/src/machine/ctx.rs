//! What every machine shares: the time, the outbox, command ids, randomness.

use crate::config::Config;
use crate::draw::{draw, draw_below};
use crate::ids::{LeaseKey, OpId, WorkerId};
use crate::mutant::{Mutant, Planted};
use crate::notice::{Fatal, Notice, TakeReason};
use crate::output::{Command, Effect, Output};
use crate::row::Change;
use crate::time::{Mono, Span, Wall};
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Which machine waits for an outcome, and what it needs to know of the command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waiter {
    /// Boot and watch: the state of the table.
    TableState,
    /// Boot: the creation of the table.
    TableCreate,
    /// Boot and inquiry: the state of the stream.
    StreamState,
    /// A scan page.
    Scan,
    /// A page of the shard listing.
    List,
    /// An operation on the tables of members.
    Members,
    /// A write or read on a lease's own lane.
    Lane(u32),
    /// A strongly consistent look at a parent's row, for a lease that waits to be opened.
    Parent(u32),
    /// A row created, filled in or deleted by the keeper of rows.
    Chore(u32),
    /// A stream command of a lease's reader.
    Reader(u32),
    /// An application command of a lease.
    App(u32),
}

/// What one machine wants of another. Requests are carried out in the order in which they were made, when the machine that made
/// them has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// List the shards, unless they are being listed: something is missing, or not understood.
    ListShards(&'static str),
    /// Scan the table at this moment at the latest.
    Rescan(Mono),
    /// An operation did not find the lease table.
    DoubtTable,
    /// A shard was not found.
    DoubtStream,
    /// The shards were listed, which took so long.
    StreamListed(Span),
    /// Write a row beside the lanes of held leases.
    WriteRow {
        change: Change,
        why: String,
        /// The held lease whose end waits for this row.
        child_of: Option<u32>,
        /// Do not begin it after this moment.
        expires: Mono,
    },
    /// Forget the rows whose writes this lease waits for.
    DropRowWrites(u32),
    /// Take a lease.
    Take(u32, TakeReason),
    /// Stop: the worker cannot go on.
    Stop(Fatal),
}

/// Spreads numbers, but keeps each sixteen consecutive ones together: what was asked for together is answered together,
/// and shares its cache lines. Nothing iterates over the map, so order never shows.
#[derive(Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let spread = (self.0 ^ value >> 4)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
        self.0 = spread << 4 | value & 15;
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "its hasher is fixed, and its entries are sorted where they are iterated over"
)]
type Pending = std::collections::HashMap<u64, (Waiter, Mono), BuildHasherDefault<NumberHasher>>;

/// The shared part of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ctx {
    pub(crate) config: Config,
    pub(crate) me: WorkerId,
    pub(crate) life: u64,
    pub(crate) seed: u64,
    pub(crate) now: Mono,
    pub(crate) wall: Wall,
    pub(crate) hold: Span,
    pub(crate) out: Vec<Output>,
    pub(crate) planted: Planted,
    next_op: u64,
    pending: Pending,
    /// Empty between two inputs.
    requests: VecDeque<Request>,
}

/// What of it changes from input to input and lasts until the next one. The time does not last: an input brings its own.
impl Hash for Ctx {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut pending: Vec<_> = self.pending.iter().collect();
        pending.sort_unstable_by_key(|(op, _)| **op);
        (&self.me, self.seed, self.next_op, pending).hash(state);
    }
}

impl Ctx {
    pub(crate) fn new(config: Config, me: WorkerId, life: u64, seed: u64, now: Mono, wall: Wall) -> Self {
        let hold = config.hold();
        Self {
            config,
            me,
            life,
            seed,
            now,
            wall,
            hold,
            out: Vec::new(),
            planted: Planted::default(),
            next_op: 0,
            pending: Pending::default(),
            requests: VecDeque::new(),
        }
    }

    /// Puts the planted bug into what is fixed for a life, if it is one of that kind.
    pub(crate) fn plant(&mut self) {
        if self.planted.is(Mutant::Unpaced) {
            self.config.reader.min_interval = Span::ZERO;
            self.config.reader.idle_interval = Span::ZERO;
            self.config.reader.bytes_per_second = u64::MAX;
        }
        if self.planted.is(Mutant::NoBudget) {
            self.config.reader.buffer_bytes = u64::MAX;
            self.config.reader.buffer_batches = u32::MAX;
        }
        if self.planted.is(Mutant::NeverCheckpoint) {
            self.config.checkpoint_interval = Span::from_secs(1_000_000);
        }
        if self.planted.is(Mutant::HoldTooLong) {
            self.hold = self.config.lease_duration.scaled(3, 2);
        }
    }

    /// The counter for the next write of a row that shows `counter`, and is known to have shown `highest`.
    ///
    /// A row whose counter was removed, or set back, goes on where it was: others may remember what it had come to, and fencing
    /// tokens must grow. Only a time that is there stands for itself, however early, since others act on it.
    pub(crate) fn next_counter(&self, counter: u64, highest: u64) -> u64 {
        let life = self.config.policies.life;
        let stands = counter > 0 && life.tells_time();
        // No counter comes after the last one.
        let base = if stands || highest == u64::MAX {
            counter
        } else {
            counter.max(highest)
        };
        life.next(base, self.wall, self.config.lease_duration)
    }

    /// Asks for something to be done; its outcome will go to `waiter`.
    pub(crate) fn issue(&mut self, waiter: Waiter, give_up: Mono, effect: Effect) -> OpId {
        self.next_op += 1;
        let op = OpId {
            life: self.life,
            n: self.next_op,
        };
        self.pending.insert(op.n, (waiter, self.now));
        self.out.push(Output::Do(Command { op, give_up, effect }));
        op
    }

    /// Asks for an operation on the lease table.
    pub(crate) fn table(&mut self, waiter: Waiter, op: crate::output::TableOp) -> OpId {
        let give_up = self.now + self.config.table_timeout;
        self.issue(waiter, give_up, Effect::Table(op))
    }

    /// Asks for an operation on the stream.
    pub(crate) fn stream(&mut self, waiter: Waiter, op: crate::output::StreamOp) -> OpId {
        let give_up = self.now + self.config.stream_timeout;
        self.issue(waiter, give_up, Effect::Stream(op))
    }

    /// Asks for an operation on the application, which may take as long as it likes.
    pub(crate) fn app(&mut self, waiter: Waiter, op: crate::output::ConsumerOp) -> OpId {
        self.issue(waiter, Mono::NEVER, Effect::Consumer(op))
    }

    /// Asks another machine for something.
    pub(crate) fn request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// Asks for a row to be written. `expires`: `NEVER` for the children of a held lease, which are given up with it.
    pub(crate) fn write_row(&mut self, change: Change, why: String, child_of: Option<u32>, expires: Mono) {
        self.request(Request::WriteRow {
            change,
            why,
            child_of,
            expires,
        });
    }

    /// The next request that was not carried out yet.
    pub(crate) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Who waits for this command and when it was emitted; forgets it. `None` for a stray or repeated outcome.
    pub(crate) fn settle(&mut self, op: OpId) -> Option<(Waiter, Mono)> {
        if op.life == self.life {
            self.pending.remove(&op.n)
        } else {
            None
        }
    }

    /// How many commands are without an outcome.
    pub(crate) fn unanswered(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn tell(&mut self, notice: Notice) {
        self.out.push(Output::Tell(notice));
    }

    /// The pause before the `failures`-th retry in a row: doubles, is capped, and is spread by a keyed draw over the
    /// upper half, so that workers that failed together do not come back together.
    pub(crate) fn backoff(&self, what: &str, subject: &str, failures: u32) -> Span {
        let full = self
            .config
            .retry_min
            .times(1 << failures.saturating_sub(1).min(20));
        let full = full.min(self.config.retry_max).0.max(2);
        Span(
            full / 2
                + draw_below(
                    self.seed,
                    what,
                    subject,
                    self.now.0 ^ u64::from(failures),
                    full / 2,
                ),
        )
    }

    /// A keyed draw about a lease.
    pub(crate) fn draw(&self, purpose: &str, key: &LeaseKey, n: u64) -> u64 {
        draw(self.seed, purpose, key.as_str(), n)
    }

    /// A keyed draw of this worker in `0..bound`.
    pub(crate) fn draw_below(&self, purpose: &str, n: u64, bound: u64) -> u64 {
        draw_below(self.seed, purpose, self.me.as_str(), n, bound)
    }
}
