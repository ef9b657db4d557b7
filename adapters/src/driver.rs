//! The loop around the engine: inputs in, commands out as tasks, their outcomes back in.
//!
//! The driver decides nothing. Guarantees of the driver:
//! * the boot record is the first input, and every input is recorded before the engine sees the input;
//! * every command is answered exactly once, at the latest at its `give_up` time, whatever its task does; for an
//!   answer that arrives bit by bit, the time counts from the last byte;
//! * time that the monotonic clock did not count, as the wall clock shows it, reaches the engine within 250 ms of the machine's own time
//!   while a shard is open, and within a second otherwise;
//! * all calls of the application made before its handler returns reach the engine before the handler's outcome;
//! * data left behind by a given-up command is forgotten.

use crate::asks::{Ask, Asks};
use crate::catch::{Panicked, catch};
use crate::clocks;
use crate::error::Error;
use crate::machine::Machine;
use crate::observe::Observer;
use crate::ports::{Kind, PROGRESS, Ports};
use crate::recorder::Recorder;
use crate::report::Report;
use crate::runtime::{Runtime, Sleep, Task};
use crate::trace::OutputDigest;
use leasehold_engine::Engine;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Body, Boot, Call, Cause, Input, Outcome, Reply};
use leasehold_engine::internals::Digest;
use leasehold_engine::notice::{Fatal, Notice, StopSummary};
use leasehold_engine::output::{Command, ConsumerOp, Effect, Output};
use leasehold_engine::time::{Mono, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::mpsc;

/// After this many turns of the loop, the driver yields to other tasks, even with more work to do.
const TURNS: u32 = 64;

/// How often the driver compares both clocks and looks up held leases for the fences of long-running handlers. Timers
/// do not count the time of a suspended machine.
const REFRESH_FENCES: Span = Span::from_millis(250);

/// How often the gauges are set.
const REFRESH_METRICS: Span = Span::from_secs(1);

/// Runs one engine until it has stopped.
pub(crate) struct Driver<M = Engine> {
    engine: M,
    runtime: Arc<dyn Runtime>,
    /// Where handlers run.
    handlers: Arc<dyn Runtime>,
    ports: Ports,
    asks: Asks,
    recorder: Recorder,
    observer: Observer,
    outcomes: Outcomes,
    in_flight: BTreeMap<OpId, InFlight>,
    give_ups: BTreeSet<(Mono, OpId)>,
    wake_at: Mono,
    timer: Option<(Mono, Sleep)>,
    /// When the fences were last refreshed; absent when they must be at once.
    fences_seen: Option<Mono>,
    /// When the gauges are due again.
    metrics_due: Mono,
    fatal: Option<Fatal>,
    /// The given-up and the left leases, known once the engine has stopped.
    stopped: StopSummary,
}

struct Outcomes {
    sender: mpsc::UnboundedSender<(OpId, Kind, Outcome)>,
    receiver: mpsc::UnboundedReceiver<(OpId, Kind, Outcome)>,
}

struct InFlight {
    kind: Kind,
    begun: Mono,
    /// How long nothing of its answer may come.
    patience: Span,
    /// When the command is given up, if no byte of its answer arrives until then.
    give_up: Mono,
    task: Task,
}

impl<M> fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("in_flight", &self.in_flight.len())
            .field("wake_at", &self.wake_at)
            .finish_non_exhaustive()
    }
}

/// What woke the driver.
enum Woken {
    Outcome(OpId, Kind, Outcome),
    Ask(Ask),
    Timer,
}

impl<M: Machine> Driver<M> {
    /// A driver for an engine before its boot.
    pub(crate) fn new(
        engine: M, runtime: Arc<dyn Runtime>, ports: Ports, asks: Asks, recorder: Recorder,
        observer: Observer,
    ) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            engine,
            handlers: runtime.clone(),
            runtime,
            ports,
            asks,
            recorder,
            observer,
            // Bounded by the commands in flight, and the engine bounds their number.
            outcomes: Outcomes { sender, receiver },
            in_flight: BTreeMap::new(),
            give_ups: BTreeSet::new(),
            wake_at: Mono::NEVER,
            timer: None,
            fences_seen: None,
            metrics_due: Mono(0),
            fatal: None,
            stopped: StopSummary::default(),
        }
    }

    /// Runs handlers on another runtime. Its clock is not used.
    #[must_use]
    pub(crate) fn with_handlers_on(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.handlers = runtime;
        self
    }

    /// Boots the engine and serves the engine until its stop. Gives the leases given up and left, and the progress of
    /// the shards.
    ///
    /// # Errors
    /// [`Error::Fatal`]: the reason of the engine's stop without a shutdown. [`Error::Unclean`]: the worker was asked
    /// to stop, and left something behind.
    pub(crate) async fn run(mut self, boot: Boot) -> Result<Report, Error> {
        self.feed(Body::Boot(Box::new(boot)));
        let mut turn = 0;
        while !self.engine.is_stopped() {
            let (now, wall) = clocks::read(&*self.runtime);
            self.observer.turned(now);
            self.refresh_fences(now);
            self.refresh_metrics(now);
            if self.give_up_overdue(now) {
                continue;
            }
            if self.wake_at <= now || self.observer.clocks().missed(now, wall) > Span::ZERO {
                self.wake_at = Mono::NEVER;
                self.feed(Body::Tick);
            }
            turn += 1;
            if turn >= TURNS {
                turn = 0;
                yield_once().await;
            }
            if self.engine.is_stopped() {
                break;
            }
            match self.next().await {
                Woken::Outcome(op, kind, outcome) => self.finish(op, kind, outcome),
                Woken::Ask(ask) => self.answer(ask),
                Woken::Timer => {}
            }
        }
        self.stop();
        let report = Report { stop: std::mem::take(&mut self.stopped), durable: self.observer.durable() };
        match self.fatal.take() {
            Some(fatal) => Err(Error::Fatal(fatal)),
            None if report.is_clean() => Ok(report),
            None => Err(Error::Unclean(Box::new(report))),
        }
    }

    /// Hands one input to the engine, and carries out the engine's outputs.
    fn feed(&mut self, body: Body) {
        let (at, wall) = clocks::read(&*self.runtime);
        if let Body::Boot(boot) = &body {
            self.observer.clocks().begin(&boot.config, at, wall);
        }
        let input = Input { at, wall, body };
        self.observer.input();
        self.recorder.begin(&input);
        let recording = self.recorder.is_on();
        let mut digest = Digest::new();
        let mut commands = Vec::new();
        self.wake_at = self.engine.feed(input, &mut |output| {
            if recording {
                digest.absorb(&output);
            }
            match output {
                Output::Do(command) => commands.push(command),
                Output::Tell(notice) => {
                    let notice = self.observer.in_full(notice);
                    self.observer.notice(at, &notice);
                    if matches!(notice, Notice::Resumed { .. }) {
                        self.fences_seen = None;
                    }
                    match notice {
                        Notice::Fatal(fatal) => {
                            self.fatal.get_or_insert(fatal);
                        }
                        Notice::Stopped(summary) => self.stopped = *summary,
                        _ => {}
                    }
                }
            }
        });
        // The engine has shortened its beliefs by the missed time. Until their update here, fences subtract the
        // missed time themselves.
        if self.observer.clocks().missed(at, wall) > Span::ZERO {
            self.fences_seen = None;
            self.refresh_fences(at);
        }
        self.observer.clocks().told(at, wall);
        self.observer.follow(at, &mut self.engine);
        if recording {
            digest.absorb(&self.wake_at);
            self.recorder.end(OutputDigest::from(digest));
        }
        for command in commands {
            self.start(command);
        }
    }

    fn start(&mut self, command: Command) {
        let Command { op, give_up, .. } = command;
        let kind = Kind::of(&command.effect);
        self.observer.command(self.runtime.now(), op, &command.effect);
        // The call of the port already stops a handler; the rest of the command needs no handler runtime.
        let runtime = match &command.effect {
            Effect::Consumer(ConsumerOp::Abort { .. } | ConsumerOp::TimeOut { .. })
            | Effect::Table(_)
            | Effect::Stream(_)
            | Effect::StreamOf(..) => &self.runtime,
            Effect::Consumer(_) => &self.handlers,
        };
        let mut answer = Answer { op, kind, to: self.outcomes.sender.clone(), sent: false };
        // Ports are called in the order of the commands; what they return runs as it likes.
        let work = match catch_unwind(AssertUnwindSafe(|| self.ports.execute(command))) {
            Ok(work) => work,
            Err(_) => Box::pin(std::future::ready(Outcome::Unknown(Cause::Cancelled))),
        };
        let task = runtime.spawn(Box::pin(async move {
            let outcome = match catch(work).await {
                Ok(outcome) => outcome,
                Err(Panicked(message)) => {
                    tracing::error!(%op, message, "a command of the worker panicked; whether it was executed is not known");
                    Outcome::Unknown(Cause::Cancelled)
                }
            };
            answer.send(outcome);
        }));
        let begun = self.runtime.now();
        let in_flight = InFlight { kind, begun, patience: give_up.since(begun), give_up, task };
        let before = self.in_flight.insert(op, in_flight);
        debug_assert!(before.is_none(), "the engine numbers each command once, and {op} is in flight");
        self.give_ups.insert((give_up, op));
        self.check();
    }

    /// Each command in flight has one time to be given up, and no other command has.
    fn check(&self) {
        debug_assert_eq!(
            self.in_flight.len(),
            self.give_ups.len(),
            "each command in flight is answered at its time to be given up at the latest"
        );
    }

    fn finish(&mut self, op: OpId, kind: Kind, outcome: Outcome) {
        let Some(gone) = self.in_flight.remove(&op) else {
            // The command was given up before, and has been answered.
            self.ports.forget(kind, op);
            return;
        };
        debug_assert_eq!(kind, gone.kind, "{op} is answered by the port that carries it out");
        self.give_ups.remove(&(gone.give_up, op));
        self.check();
        if kind == Kind::Consumer {
            self.hear_out();
        }
        // A port may have kept what the service said although the outcome is an answer: that there is no table, say.
        let failure = self.ports.failure(kind, op);
        let failure = failure.filter(|_| !matches!(outcome, Outcome::Applied(_)));
        self.observer.outcome(self.runtime.now(), kind, op, &outcome, failure);
        if let Outcome::Applied(Reply::Records(fetched)) = &outcome {
            self.observer.fetched(fetched);
        }
        self.feed(Body::Done { op, outcome });
    }

    /// Gives up the first overdue command.
    fn give_up_overdue(&mut self, now: Mono) -> bool {
        let Some((_, op)) = self.give_ups.first().copied().filter(|(at, _)| *at <= now) else {
            return false;
        };
        // The command's answer may be waiting in the queue: an answer in hand is worth more.
        while let Ok((other, kind, outcome)) = self.outcomes.receiver.try_recv() {
            self.finish(other, kind, outcome);
            if other == op {
                return true;
            }
        }
        if self.is_on_its_way(now, op) {
            return true;
        }
        if let Some(late) = self.in_flight.get(&op) {
            late.task.abort();
            let kind = late.kind;
            self.ports.forget(kind, op);
            self.observer.given_up(kind);
            self.finish(op, kind, Outcome::Unknown(Cause::Timeout));
        }
        true
    }

    /// Checks for an overdue answer that still arrives bit by bit, and moves the command's give-up time.
    fn is_on_its_way(&mut self, now: Mono, op: OpId) -> bool {
        let Some(late) = self.in_flight.get_mut(&op) else {
            return false;
        };
        let Some(heard) = self.ports.heard(late.kind, op) else {
            return false;
        };
        let most = late.begun + late.patience.times(PROGRESS);
        let until = (heard + late.patience).min(most);
        if until <= now {
            return false;
        }
        debug_assert!(
            until > late.give_up,
            "an answer on its way moves the time of {op} to be given up forward"
        );
        self.give_ups.remove(&(late.give_up, op));
        late.give_up = until;
        self.give_ups.insert((until, op));
        true
    }

    /// Passes on all calls of the application up to now. A handler's outcome may close the shard, and a later
    /// acknowledgement is lost. New calls during the loop wait: the stream of calls may never end.
    fn hear_out(&mut self) {
        for _ in 0..self.asks.len() {
            if let Some(ask) = self.asks.try_next() {
                self.answer(ask);
            }
        }
    }

    fn answer(&mut self, ask: Ask) {
        for call in ask.into_calls() {
            match &call {
                Call::Processed { lease, through, .. } => self.observer.processed(lease, *through),
                Call::Acknowledged { lease, batch, .. } => self.observer.acknowledged(lease, *batch),
                Call::GivenBack { lease, .. } => self.observer.given_back(lease),
                _ => {}
            }
            self.feed(Body::Call(call));
        }
    }

    /// Tells the handlers how long their leases are known to last by now.
    fn refresh_fences(&mut self, now: Mono) {
        let fresh = self.fences_seen.is_some_and(|seen| now.since(seen) < REFRESH_FENCES);
        if fresh || !self.observer.has_open() {
            return;
        }
        self.fences_seen = Some(now);
        let observer = &self.observer;
        self.engine.each_held(&mut |held| observer.believe(held.lease, held.token, held.valid_until));
    }

    /// Sets the metrics that tell the state.
    fn refresh_metrics(&mut self, now: Mono) {
        if now >= self.metrics_due {
            self.metrics_due = now + REFRESH_METRICS;
            let consumed = self.ports.table.consumed();
            self.observer.state(now, &self.engine, consumed, self.recorder.gaps());
        }
    }

    /// Waits for the next thing to happen: outcomes before calls before timers.
    async fn next(&mut self) -> Woken {
        let give_up = self.give_ups.first().map_or(Mono::NEVER, |(at, _)| *at);
        let fences_due = match (self.fences_seen, self.observer.has_open()) {
            (Some(seen), true) => seen + REFRESH_FENCES,
            _ => Mono::NEVER,
        };
        let due = self.wake_at.min(give_up).min(self.metrics_due).min(fences_due);
        self.set_timer(due);
        poll_fn(|cx| {
            if let Poll::Ready(Some((op, kind, outcome))) = self.outcomes.receiver.poll_recv(cx) {
                return Poll::Ready(Woken::Outcome(op, kind, outcome));
            }
            if let Poll::Ready(ask) = self.asks.poll_next(cx) {
                return Poll::Ready(Woken::Ask(ask));
            }
            if let Some((_, timer)) = &mut self.timer
                && timer.as_mut().poll(cx).is_ready()
            {
                self.timer = None;
                return Poll::Ready(Woken::Timer);
            }
            Poll::Pending
        })
        .await
    }

    /// A timer firing too early does no harm. A later deadline needs no new timer.
    fn set_timer(&mut self, due: Mono) {
        if due == Mono::NEVER || self.timer.as_ref().is_some_and(|(at, _)| *at <= due) {
            return;
        }
        self.timer = Some((due, self.runtime.sleep_until(due)));
    }

    fn stop(&mut self) {
        self.give_ups.clear();
        for (op, left) in std::mem::take(&mut self.in_flight) {
            left.task.abort();
            self.ports.forget(left.kind, op);
            self.feed(Body::Done { op, outcome: Outcome::Unknown(Cause::Cancelled) });
        }
        self.recorder.close();
        let (now, consumed) = (self.runtime.now(), self.ports.table.consumed());
        self.observer.state(now, &self.engine, consumed, self.recorder.gaps());
        self.observer.stopped();
    }
}

impl<M> Drop for Driver<M> {
    /// Aborts all tasks when a running driver is dropped.
    fn drop(&mut self) {
        for left in self.in_flight.values() {
            left.task.abort();
        }
    }
}

/// Sends an outcome, even if the task of the command is dropped.
struct Answer {
    op: OpId,
    kind: Kind,
    to: mpsc::UnboundedSender<(OpId, Kind, Outcome)>,
    sent: bool,
}

impl Answer {
    fn send(&mut self, outcome: Outcome) {
        self.sent = true;
        // The receiver is gone once the driver is gone.
        let _ = self.to.send((self.op, self.kind, outcome));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.sent {
            self.send(Outcome::Unknown(Cause::Cancelled));
        }
    }
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "driver_heard_tests.rs"]
mod heard_tests;
#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "driver_tests.rs"]
mod tests;
