//! The state of a running worker: the driver writes the state, and every `Control` reads the state, on any thread at
//! any time.
//!
//! After each input the engine names the leases changed by the input, and the board copies only these leases. The
//! board always shows the engine's state, and an input costs the same with any number of leases.

mod blocked;

use self::blocked::Blocked;
use crate::health::Health;
use crate::machine::Machine;
use crate::runtime::Runtime;
use crate::status::{LeaseStatus, Phase, Stalled, Status};
use crate::store::Store;
use leasehold_engine::Held;
use leasehold_engine::ids::{FencingToken, LeaseIx, LeaseKey, ShardId, WorkerId};
use leasehold_engine::input::{Outcome, Why};
use leasehold_engine::notice::{Notice, Stall as Reason};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::shown::Shown;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The driver's loop runs at least once a second. Even with shorter leases, the loop counts as standing still only
/// after this time.
const LEAST_PATIENCE: Span = Span::from_secs(3);

/// The board of one worker. Clones are handles on the same.
#[derive(Clone, Default)]
pub(crate) struct Board(Arc<Inner>);

struct Inner {
    /// Absent before the worker has begun to run.
    life: OnceLock<Life>,
    /// When the driver's loop last ran.
    turned: AtomicU64,
    /// Since when requests to the table have failed, if the last one has.
    table_fails: AtomicU64,
    state: Mutex<State>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            life: OnceLock::new(),
            turned: AtomicU64::new(0),
            table_fails: AtomicU64::new(Mono::NEVER.0),
            state: Mutex::default(),
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("life", &self.0.life).finish_non_exhaustive()
    }
}

/// What does not change while the worker runs.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) worker: WorkerId,
    pub(crate) lease_duration: Span,
    pub(crate) clock: Arc<dyn Runtime>,
    pub(crate) store: Store,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// Since when it has done that.
    since: Mono,
    end: Option<End>,
    /// The held leases, by the engine's number of each lease.
    held: Vec<Option<Holding>>,
    stalls: BTreeMap<LeaseKey, Stall>,
    blocked: Blocked,
}

impl State {
    /// The worker does something else from now on.
    fn enter(&mut self, phase: Phase, now: Mono) {
        if self.phase != phase {
            (self.phase, self.since) = (phase, now);
        }
    }
}

/// How the worker ended.
#[derive(Debug)]
enum End {
    Well,
    Failed(String),
    Dropped,
}

/// One ownership of a lease.
#[derive(Clone, Debug)]
struct Holding {
    lease: LeaseKey,
    token: FencingToken,
    checkpoint: Checkpoint,
    valid_until: Mono,
    /// When it was first seen to be held.
    since: Mono,
    open: bool,
    stalled: bool,
    paused: bool,
    processed: Option<Position>,
    waits_for: Option<Reason>,
}

#[derive(Clone, Debug)]
struct Stall {
    since: Mono,
    waits_for: String,
}

impl Life {
    /// The longest standstill of the loop or of the handlers' runtime in a healthy worker.
    fn patience(&self) -> Span {
        self.lease_duration.max(LEAST_PATIENCE)
    }
}

impl Holding {
    fn new(held: &Held<'_>, since: Mono) -> Self {
        Self {
            lease: held.lease.clone(),
            token: held.token,
            checkpoint: held.checkpoint,
            valid_until: held.valid_until,
            since,
            open: held.open,
            stalled: held.stalled,
            paused: held.paused,
            processed: held.processed,
            waits_for: None,
        }
    }

    fn is_of(&self, held: &Held<'_>) -> bool {
        self.token == held.token && self.lease == *held.lease
    }

    fn update(&mut self, held: &Held<'_>) {
        debug_assert!(
            self.processed <= held.processed,
            "one ownership of {} processes no record less than before",
            self.lease
        );
        self.checkpoint = held.checkpoint;
        self.valid_until = held.valid_until;
        self.open = held.open;
        self.stalled = held.stalled;
        self.paused = held.paused;
        self.processed = held.processed;
    }

    fn status(self, life: &Life, now: Mono, stall: Option<&Stall>) -> LeaseStatus {
        let shard = self.lease.to_shard();
        let backlog = life.store.backlog(&shard, now);
        LeaseStatus {
            shard,
            token: self.token,
            checkpoint: self.checkpoint,
            waiting: backlog.records,
            read: backlog.behind.is_some(),
            behind: backlog.behind.unwrap_or(now.since(self.since)),
            processed: self.processed,
            open: self.open,
            paused: self.paused,
            waits_for: self.waits_for.map(|reason| reason.to_string()),
            remaining: self.valid_until.since(now),
            stalled: stall
                .filter(|_| self.stalled)
                .map(|stall| Stalled { idle: now.since(stall.since), waits_for: stall.waits_for.clone() }),
            lease: self.lease,
        }
    }
}

impl Board {
    /// The worker begins to run. When the guard is dropped, it has ended.
    pub(crate) fn run(&self) -> Running {
        Running(self.clone())
    }

    /// What is known before the first input.
    pub(crate) fn begin(&self, life: Life) {
        let now = life.clock.now();
        self.turned(now);
        self.state().since = now;
        let begun = self.0.life.set(life);
        debug_assert!(begun.is_ok(), "a worker is run once");
    }

    /// The driver's loop runs.
    pub(crate) fn turned(&self, now: Mono) {
        self.0.turned.store(now.0, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: End) {
        let now = self.0.life.get().map(|life| life.clock.now());
        let mut state = self.state();
        state.enter(Phase::Stopped, now.unwrap_or(Mono(0)));
        state.end.get_or_insert(end);
    }

    /// A request to the table was answered, or was not.
    pub(crate) fn table(&self, now: Mono, outcome: &Outcome) {
        let answers = match outcome {
            Outcome::Applied(_) => true,
            // The table does what it should: another worker, or this one, was faster.
            Outcome::Refused(refusal) => {
                matches!(refusal.why, Why::ConditionFailed | Why::NotFound | Why::InUse)
            }
            Outcome::NotSent(_) | Outcome::Unknown(_) => false,
        };
        let fails = &self.0.table_fails;
        if answers {
            fails.store(Mono::NEVER.0, Ordering::Relaxed);
        } else if fails.load(Ordering::Relaxed) == Mono::NEVER.0 {
            fails.store(now.0, Ordering::Relaxed);
        }
    }

    /// What the worker is and holds now.
    pub(crate) fn status(&self) -> Status {
        let life = self.0.life.get();
        let (phase, since, mut held, stalls, blocked) = {
            let state = self.state();
            let held: Vec<Holding> = state.held.iter().flatten().cloned().collect();
            let blocked = state.blocked.since();
            (state.phase, state.since, held, state.stalls.clone(), blocked)
        };
        held.sort_unstable_by(|one, other| one.lease.cmp(&other.lease));
        let leases = life.map(|life| {
            let now = life.clock.now();
            let each = held.into_iter().map(|holding| {
                let stall = stalls.get(&holding.lease);
                holding.status(life, now, stall)
            });
            each.collect()
        });
        Status {
            worker: life.map(|life| life.worker.clone()),
            phase,
            phase_for: life.map_or(Span::ZERO, |life| life.clock.now().since(since)),
            blocked_for: life.zip(blocked).map(|(life, since)| life.clock.now().since(since)),
            leases: leases.unwrap_or_default(),
        }
    }

    /// Whether the worker does its work now.
    pub(crate) fn health(&self) -> Health {
        let (mut reasons, mut remarks) = (Vec::new(), Vec::new());
        let state = self.state();
        match (&state.end, self.0.life.get()) {
            (Some(End::Well), _) => remarks.push("the worker has stopped, as it was asked to".to_owned()),
            (Some(End::Failed(error)), _) => reasons.push(format!("the worker has ended: {error}")),
            (Some(End::Dropped), _) => reasons.push(
                "the worker has ended: the future of `Worker::run` was dropped, or panicked, before the worker had stopped"
                    .to_owned(),
            ),
            (None, None) => remarks.push("the worker has not been run yet".to_owned()),
            (None, Some(life)) => {
                let now = life.clock.now();
                reasons.extend(self.stands_still(life, now));
                reasons.extend(self.has_no_table(life, now));
                reasons.extend(state.blocked.reason(life.patience(), now));
                remarks.extend(state.held.iter().flatten().filter_map(|holding| {
                    let stall = state.stalls.get(&holding.lease).filter(|_| holding.stalled)?;
                    let (lease, idle) = (&holding.lease, now.since(stall.since));
                    Some(format!("{lease} has made no progress for {idle}: {}", stall.waits_for))
                }));
            }
        }
        remarks.sort_unstable();
        Health::of(reasons, remarks)
    }

    fn stands_still(&self, life: &Life, now: Mono) -> Option<String> {
        let idle = now.since(Mono(self.0.turned.load(Ordering::Relaxed)));
        (idle > life.patience()).then(|| {
            format!(
                "the loop that keeps the leases has not run for {idle}, and a lease lasts {}: something blocks its thread, or the \
                 process gets no processor time",
                life.lease_duration
            )
        })
    }

    fn has_no_table(&self, life: &Life, now: Mono) -> Option<String> {
        let fails = now.since(Mono(self.0.table_fails.load(Ordering::Relaxed)));
        (fails > life.lease_duration).then(|| {
            format!(
                "every request to the lease table has failed for {fails}, and a lease lasts {}: see the warnings in the log for \
                 the cause",
                life.lease_duration
            )
        })
    }
}

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Running(Board);

impl Running {
    /// The worker has ended with this result.
    pub(crate) fn ended<T, E: fmt::Display>(self, result: &Result<T, E>) {
        self.0.end(match result {
            Ok(_) => End::Well,
            Err(error) => End::Failed(error.to_string()),
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing changes if it has ended.
        self.0.end(End::Dropped);
    }
}

/// Where the driver writes.
#[derive(Debug, Default)]
pub(crate) struct BoardWriter {
    board: Board,
    /// The leases touched by the engine, as a reused buffer.
    touched: Vec<LeaseIx>,
    /// Set once the worker stops: the durable checkpoint of each shard held by the worker.
    durable: Option<BTreeMap<ShardId, Checkpoint>>,
}

impl BoardWriter {
    pub(crate) fn new(board: Board) -> Self {
        Self { board, ..Self::default() }
    }

    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// Something happened.
    pub(crate) fn notice(&mut self, at: Mono, notice: &Notice) {
        match notice {
            Notice::Scanned { .. } => {
                let mut state = self.board.state();
                if state.phase == Phase::Starting {
                    state.enter(Phase::Running, at);
                }
            }
            Notice::ShuttingDown { .. } => self.stops(at),
            Notice::Runtime(news) => self.board.state().blocked.hear(at, news),
            Notice::Stalled { lease, idle, why, said } => {
                let waits_for = match said {
                    Some(said) => format!("{why}; {}", Shown(said)),
                    None => why.to_string(),
                };
                let stall = Stall { since: at - *idle, waits_for };
                self.board.state().stalls.insert(lease.clone(), stall);
            }
            Notice::Lost { lease, .. } | Notice::Released { lease } | Notice::Ended { lease, .. } => {
                self.board.state().stalls.remove(lease);
                self.gave_up(notice, lease);
            }
            Notice::Moving { lease, .. } => {
                self.board.state().stalls.remove(lease);
            }
            _ => {}
        }
    }

    /// From now on, held shards count for the report.
    fn stops(&mut self, at: Mono) {
        let mut state = self.board.state();
        state.enter(Phase::Stopping, at);
        let held = state.held.iter().flatten();
        let durable = held.map(|holding| (holding.lease.to_shard(), holding.checkpoint));
        self.durable.get_or_insert(durable.collect());
    }

    fn gave_up(&mut self, notice: &Notice, lease: &LeaseKey) {
        let Some(durable) = &mut self.durable else { return };
        match notice {
            Notice::Lost { .. } => {
                durable.remove(&lease.to_shard());
            }
            Notice::Ended { .. } => {
                durable.insert(lease.to_shard(), Checkpoint::ShardEnd);
            }
            _ => {}
        }
    }

    /// Called after an input and its notices: copies all changed leases of the engine. Calls `renewed` for each lease
    /// with a confirmed renewal, with the end of the belief before the renewal.
    pub(crate) fn follow(&mut self, now: Mono, engine: &mut impl Machine, mut renewed: impl FnMut(Mono)) {
        engine.touched(&mut self.touched);
        if self.touched.is_empty() {
            return;
        }
        let mut state = self.board.state();
        for ix in self.touched.drain(..) {
            let at = ix.index();
            let Some(held) = engine.held_in(ix) else {
                if let Some(gone) = state.held.get_mut(at) {
                    *gone = None;
                }
                continue;
            };
            if let Some(durable) = &mut self.durable {
                durable.insert(held.lease.to_shard(), held.checkpoint);
            }
            if state.held.len() <= at {
                state.held.resize_with(at + 1, || None);
            }
            let known = match &mut state.held[at] {
                Some(known) if known.is_of(&held) => {
                    if held.valid_until > known.valid_until {
                        renewed(known.valid_until);
                    }
                    known.update(&held);
                    known
                }
                other => other.insert(Holding::new(&held, now)),
            };
            known.waits_for = engine.waits_for(ix);
            // Reading goes on at the record of the checkpoint, which is not handed over again: it does not wait.
            if let (Checkpoint::At(position), None, Some(life)) =
                (known.checkpoint, known.processed, self.board.0.life.get())
            {
                life.store.processed_through(&known.lease.to_shard(), position);
            }
        }
    }

    /// How far each shard that was held during the stop was processed, durably.
    pub(crate) fn durable(&mut self) -> BTreeMap<ShardId, Checkpoint> {
        self.durable.take().unwrap_or_default()
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "board_tests.rs"]
mod tests;
