//! Notices handlers that block their threads, and a runtime of handlers that runs no tasks.
//!
//! A handler that blocks its thread (a synchronous client, `thread::sleep`, a long computation) takes a thread from
//! the handlers' runtime. The tasks of that thread wait. When all threads are taken, no handler is served, and
//! nothing logs the cause. To find the cause, each call of a handler notes the start of its present poll, and a
//! warning names calls with long polls. Besides, the pulse spawns a task on that runtime again and again. While the
//! task is late, the pulse tells the engine repeatedly, and once more when the task has run. The engine reports the
//! block and its end once each, and gives up the leases if the block lasts.

use crate::asks::AskSender;
use crate::metrics::{self, Meter, seconds};
use crate::runtime::Runtime;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::time::{Mono, Span};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A task not run for this long is late. A handler's poll of this length is long.
const PATIENCE: Span = Span::from_secs(5);
/// The number of looks within `PATIENCE`. A process stopped as a whole misses one look at most.
const LOOKS: u64 = 5;
/// The warning is not repeated sooner.
const SAY_AGAIN: Span = Span::from_secs(60);
/// The greatest number of kept ended polls.
const MOST_OVER: usize = 1_024;
/// Since when a call is in a poll that is in none.
const IDLE: u64 = u64::MAX;

/// The running calls of handlers, each with the start of its present poll. Clones share one state.
#[derive(Clone)]
pub(crate) struct Polls {
    clock: Arc<dyn Runtime>,
    /// The length of a long poll, in µs.
    patience: Arc<AtomicU64>,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    next: u64,
    calls: BTreeMap<u64, (LeaseKey, Arc<AtomicU64>)>,
    /// Polls that took long and are over.
    over: Vec<Poll>,
}

/// One long poll of a call, running or over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Poll {
    lease: LeaseKey,
    since: Mono,
    /// The poll's length by now, or at its end.
    span: Span,
}

/// One call of a handler: forgotten when it is dropped.
struct Call {
    polls: Polls,
    n: u64,
    since: Arc<AtomicU64>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.polls.running().calls.remove(&self.n);
    }
}

impl Polls {
    pub(crate) fn new(clock: Arc<dyn Runtime>) -> Self {
        Self { clock, patience: Arc::new(AtomicU64::new(PATIENCE.0)), running: Arc::default() }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call of a shard's handler, and notes when it is being polled.
    pub(crate) fn watch<F: Future>(
        &self, lease: LeaseKey, call: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let since = Arc::new(AtomicU64::new(IDLE));
        let n = {
            let mut running = self.running();
            running.next += 1;
            let n = running.next;
            running.calls.insert(n, (lease, since.clone()));
            n
        };
        let watched = Call { polls: self.clone(), n, since };
        async move {
            let mut call = pin!(call);
            poll_fn(|cx| {
                let since = watched.polls.clock.now();
                watched.since.store(since.0, Ordering::Relaxed);
                let poll = call.as_mut().poll(cx);
                watched.since.store(IDLE, Ordering::Relaxed);
                watched.polls.ended(watched.n, since);
                poll
            })
            .await
        }
    }

    /// A poll of this call has ended.
    fn ended(&self, call: u64, since: Mono) {
        let span = self.clock.now().since(since);
        if span.0 < self.patience.load(Ordering::Relaxed) {
            return;
        }
        let mut running = self.running();
        if running.over.len() < MOST_OVER
            && let Some((lease, _)) = running.calls.get(&call)
        {
            let lease = lease.clone();
            running.over.push(Poll { lease, since, span });
        }
    }

    /// The long polls ended since the last call.
    fn take_over(&self) -> Vec<Poll> {
        std::mem::take(&mut self.running().over)
    }

    /// Names the handlers that block the runtime. The runtime has run no task for the time `idle`; a handler blocks a thread if its present poll
    /// has lasted half of `idle`.
    pub(crate) fn who_blocks(&self, idle: Span) -> String {
        who_blocks(&self.longer_than(idle.per(2), self.clock.now()))
    }

    /// The running polls of at least this length, the longest first.
    fn longer_than(&self, least: Span, now: Mono) -> Vec<Poll> {
        let running = self.running();
        let calls = running.calls.values();
        let mut found: Vec<Poll> = calls
            .map(|(lease, since)| (lease, Mono(since.load(Ordering::Relaxed))))
            .filter(|(_, since)| since.0 != IDLE && now.since(*since) >= least)
            .map(|(lease, since)| Poll { lease: lease.clone(), since, span: now.since(since) })
            .collect();
        found.sort_by_key(|poll| Reverse(poll.span));
        found
    }
}

/// Looks at the handlers, and at their runtime.
pub(crate) struct Pulse {
    /// The runtime to look at.
    handlers: Arc<dyn Runtime>,
    /// The runtime of the looks. A runtime looking at itself cannot notice its own lateness.
    own: Arc<dyn Runtime>,
    polls: Polls,
    meter: Meter,
    /// The way to the engine.
    asks: AskSender,
    patience: Span,
    /// The handlers that a warning named: when, and in which poll.
    named: BTreeMap<LeaseKey, (Mono, Mono)>,
}

impl Pulse {
    /// With leases that last for so long.
    pub(crate) fn new(
        handlers: Arc<dyn Runtime>, own: Arc<dyn Runtime>, polls: Polls, meter: Meter, asks: AskSender,
        lease: Span,
    ) -> Self {
        let patience = PATIENCE.min(lease.per(2));
        polls.patience.store(patience.0, Ordering::Relaxed);
        Self { handlers, own, polls, meter, asks, patience, named: BTreeMap::new() }
    }

    /// Looks for ever.
    pub(crate) async fn feel(mut self) {
        let pause = self.patience.per(LOOKS);
        if Arc::ptr_eq(&self.handlers, &self.own) {
            loop {
                self.own.sleep(pause).await;
                self.look();
            }
        }
        loop {
            let (beat, mut felt) = oneshot::channel();
            let asked = self.own.now();
            self.handlers.spawn(Box::pin(async move {
                // Sending fails only if the listener has stopped.
                let _ = beat.send(());
            }));
            self.own.sleep(pause).await;
            let mut looks = 1;
            while matches!(felt.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
                self.show(self.own.now().since(asked));
                if looks >= LOOKS {
                    // A process that was stopped as a whole meanwhile did not look.
                    self.is_late(pause.times(looks), looks == LOOKS);
                }
                self.own.sleep(pause).await;
                looks += 1;
            }
            if looks > LOOKS {
                self.asks.runtime(None);
            }
            if looks > 1 {
                self.show(Span::ZERO);
            }
            self.look();
        }
    }

    fn show(&self, late: Span) {
        self.meter.set(&metrics::HANDLERS_LATE, [], seconds(late));
    }

    fn show_blocking(&self, handlers: usize) {
        self.meter.set(&metrics::HANDLERS_BLOCKING, [], handlers as f64);
    }

    /// Tells the engine that the runtime is late. `first`: the engine's first report names the blocking handlers.
    fn is_late(&mut self, late: Span, first: bool) {
        let now = self.own.now();
        self.show_blocking(self.polls.longer_than(self.patience, now).len());
        self.asks.runtime(Some(late));
        if first {
            for poll in self.polls.longer_than(late.per(2), now) {
                self.named.insert(poll.lease, (now, poll.since));
            }
        }
    }

    /// Names the handlers that block their threads, and reports the end of each block.
    fn look(&mut self) {
        let now = self.own.now();
        for Poll { lease, since, span } in self.polls.take_over() {
            match self.named.get(&lease) {
                Some((_, named)) if *named == since => tracing::info!(
                    target: "leasehold",
                    kind = "unblocked",
                    %lease,
                    "the handler of {lease} no longer blocks its thread: it did for {span}"
                ),
                _ => self.name(now, &Poll { lease, since, span }),
            }
        }
        let blocking = self.polls.longer_than(self.patience, now);
        self.show_blocking(blocking.len());
        for poll in &blocking {
            self.name(now, poll);
        }
        self.named.retain(|lease, (at, since)| {
            now.since(*at) < SAY_AGAIN
                || blocking.iter().any(|poll| poll.lease == *lease && poll.since == *since)
        });
    }

    /// Warns about one handler, unless a recent warning named the handler.
    fn name(&mut self, now: Mono, poll: &Poll) {
        let Poll { lease, since, span } = poll;
        let lately = self.named.get(lease);
        if lately.is_some_and(|(at, _)| now.since(*at) < SAY_AGAIN) {
            return;
        }
        self.named.insert(lease.clone(), (now, *since));
        tracing::warn!(
            target: "leasehold",
            kind = "blocked",
            %lease,
            "the handler of {lease} has blocked its thread for {span}: use tokio::task::spawn_blocking for what blocks, or the \
             other tasks of that thread wait"
        );
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.show(Span::ZERO);
        self.show_blocking(0);
    }
}

fn who_blocks(blocking: &[Poll]) -> String {
    if blocking.is_empty() {
        return "no handler of this worker is in a long poll, so something else in this program blocks its threads".to_owned();
    }
    let each = blocking
        .iter()
        .map(|Poll { lease, span, .. }| format!("the handler of {lease} has blocked a thread for {span}"));
    let each = each.collect::<Vec<_>>().join("; ");
    format!("{each} (tokio::task::spawn_blocking is for work that blocks)")
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "pulse_tests.rs"]
mod tests;
