//! Noticing that the runtime of the handlers runs no tasks, and which handlers are the cause.
//!
//! A handler that blocks its thread (a synchronous client, `thread::sleep`, a long computation) takes a thread from the
//! runtime it runs on. When all are taken, no handler is served, and nothing logs the cause. So a task is given to that
//! runtime again and again. If it is not run for a while, a warning names the handlers that have been in one poll since.

use crate::metrics::{self, Meter};
use crate::runtime::Runtime;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A task that was not run for so long is late.
const PATIENCE: Span = Span::from_secs(5);
/// How many looks make up that time. A process that was stopped as a whole misses one look at most.
const LOOKS: u64 = 5;
/// The warning is not repeated sooner.
const SAY_AGAIN: Span = Span::from_secs(60);
/// Since when a call is in a poll that is in none.
const IDLE: u64 = u64::MAX;

/// The calls of handlers that run, each with the time since when it has been in one poll. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Polls {
    clock: Arc<dyn Runtime>,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    next: u64,
    calls: BTreeMap<u64, (LeaseKey, Arc<AtomicU64>)>,
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
        Self {
            clock,
            running: Arc::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call of a shard's handler, and notes when it is being polled.
    pub(crate) fn watch<F: Future>(
        &self,
        lease: LeaseKey,
        call: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let since = Arc::new(AtomicU64::new(IDLE));
        let n = {
            let mut running = self.running();
            running.next += 1;
            let n = running.next;
            running.calls.insert(n, (lease, since.clone()));
            n
        };
        let watched = Call {
            polls: self.clone(),
            n,
            since,
        };
        async move {
            let mut call = pin!(call);
            poll_fn(|cx| {
                watched
                    .since
                    .store(watched.polls.clock.now().0, Ordering::Relaxed);
                let poll = call.as_mut().poll(cx);
                watched.since.store(IDLE, Ordering::Relaxed);
                poll
            })
            .await
        }
    }

    /// The calls that have been in one poll for so long, the longest first.
    fn longer_than(&self, least: Span, now: Mono) -> Vec<(LeaseKey, Span)> {
        let running = self.running();
        let mut found: Vec<_> = running
            .calls
            .values()
            .map(|(lease, since)| (lease, Mono(since.load(Ordering::Relaxed))))
            .filter(|(_, since)| since.0 != IDLE && now.since(*since) >= least)
            .map(|(lease, since)| (lease.clone(), now.since(since)))
            .collect();
        found.sort_by(|(_, one), (_, other)| other.cmp(one));
        found
    }
}

/// Looks whether the runtime of the handlers runs the tasks it is given.
pub(crate) struct Pulse {
    /// The runtime to look at.
    pub(crate) handlers: Arc<dyn Runtime>,
    /// The runtime that looks.
    pub(crate) own: Arc<dyn Runtime>,
    pub(crate) polls: Polls,
    pub(crate) meter: Meter,
    patience: Span,
    said: Option<Mono>,
}

impl Pulse {
    /// With leases that last for so long.
    pub(crate) fn new(
        handlers: Arc<dyn Runtime>,
        own: Arc<dyn Runtime>,
        polls: Polls,
        meter: Meter,
        lease: Span,
    ) -> Self {
        Self {
            handlers,
            own,
            polls,
            meter,
            patience: PATIENCE.min(lease.per(2)),
            said: None,
        }
    }

    /// Looks for ever.
    pub(crate) async fn feel(mut self) {
        let pause = self.patience.per(LOOKS);
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
                let late = self.own.now().since(asked);
                self.show(late);
                if looks >= LOOKS {
                    self.warn(late);
                }
                self.own.sleep(pause).await;
                looks += 1;
            }
            if looks > 1 {
                self.show(Span::ZERO);
            }
        }
    }

    fn show(&self, late: Span) {
        self.meter
            .set(&metrics::HANDLERS_LATE, [], late.as_millis() as f64 / 1_000.0);
    }

    fn warn(&mut self, late: Span) {
        let now = self.own.now();
        if self.said.is_some_and(|said| now.since(said) < SAY_AGAIN) {
            return;
        }
        self.said = Some(now);
        let blocking = self.polls.longer_than(late.per(2), now);
        tracing::warn!(target: "leasehold", kind = "blocked", "{}", sentence(late, &blocking));
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.show(Span::ZERO);
    }
}

fn sentence(late: Span, blocking: &[(LeaseKey, Span)]) -> String {
    let mut text = format!("the runtime that runs the handlers has run no task for {late}: ");
    if blocking.is_empty() {
        text += "no handler of this worker is in a long poll, so something else in this program blocks its threads; ";
    }
    for (lease, span) in blocking {
        let _ = write!(text, "the handler of {lease} has blocked a thread for {span}; ");
    }
    text + "run what blocks in tokio::task::spawn_blocking, or the handlers wait and their shards fall behind"
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "pulse_tests.rs"]
mod tests;
