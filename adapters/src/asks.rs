//! The application's requests to the worker, on their way to the driver.
//!
//! Acknowledgements of a batch are cumulative: each shard has one cell with the latest state, and the queue holds
//! every shard at most once. An application can acknowledge faster than the driver reads without waiting and without
//! filling memory.

use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::Call;
use leasehold_engine::position::Position;
use leasehold_engine::time::Span;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A queue of requests and its sender.
pub(crate) fn asks() -> (AskSender, Asks) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let sender = AskSender {
        queue: sender,
        stopping: Arc::new(AtomicBool::new(false)),
        shortest: Arc::new(AtomicU64::new(u64::MAX)),
    };
    let asks = Asks { receiver, _open: sender.clone() };
    (sender, asks)
}

/// Where the driver reads what is asked.
#[derive(Debug)]
pub(crate) struct Asks {
    receiver: mpsc::UnboundedReceiver<Ask>,
    /// Keeps the queue open: reading never ends.
    _open: AskSender,
}

impl Asks {
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Ask> {
        match self.receiver.poll_recv(cx) {
            Poll::Ready(Some(ask)) => Poll::Ready(ask),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// How much waits to be read.
    pub(crate) fn len(&self) -> usize {
        self.receiver.len()
    }

    /// The next request in the queue.
    pub(crate) fn try_next(&mut self) -> Option<Ask> {
        self.receiver.try_recv().ok()
    }
}

/// Asks something of the worker.
#[derive(Clone, Debug)]
pub(crate) struct AskSender {
    queue: mpsc::UnboundedSender<Ask>,
    stopping: Arc<AtomicBool>,
    /// The shortest time that a shutdown was asked for with, in microseconds.
    shortest: Arc<AtomicU64>,
}

impl AskSender {
    /// Asks for a shutdown, within the time `within` or the time of the options. A repeated call is passed on only
    /// with a shorter time than all calls before: a longer time cannot make the shutdown end sooner.
    pub(crate) fn shutdown(&self, within: Option<Span>) {
        let first = !self.stopping.swap(true, Ordering::Relaxed);
        let shorter =
            within.is_some_and(|Span(within)| within < self.shortest.fetch_min(within, Ordering::Relaxed));
        if first || shorter {
            let _ = self.queue.send(Ask(Inner::Shutdown(within)));
        }
    }

    /// Asks the worker to pause a shard's handler, or to resume.
    pub(crate) fn pause(&self, lease: LeaseKey, paused: bool) {
        let _ = self.queue.send(Ask(match paused {
            true => Inner::Pause(lease),
            false => Inner::Resume(lease),
        }));
    }

    /// Asks the worker to add a stream or to remove a stream.
    #[cfg(feature = "aws")]
    pub(crate) fn streams(&self, call: Call) {
        let _ = self.queue.send(Ask(Inner::Said(call)));
    }

    /// Reports for how long the runtime of the handlers has run nothing; absent: the runtime runs again.
    pub(crate) fn runtime(&self, blocked: Option<Span>) {
        let call = blocked.map_or(Call::RuntimeRuns, Call::RuntimeBlocked);
        let _ = self.queue.send(Ask(Inner::Said(call)));
    }

    /// A cell for the requests about one ownership of a shard.
    pub(crate) fn shard(&self, lease: LeaseKey, token: FencingToken) -> ShardAsks {
        ShardAsks(Arc::new(Cell {
            lease,
            token,
            queue: self.queue.clone(),
            wanted: Mutex::default(),
            withheld: Mutex::default(),
        }))
    }
}

/// Something that was asked.
#[derive(Debug)]
pub(crate) struct Ask(Inner);

#[derive(Debug)]
enum Inner {
    Shard(ShardAsks),
    Shutdown(Option<Span>),
    Pause(LeaseKey),
    Resume(LeaseKey),
    /// Streams are added and removed, and the runtime of the handlers runs nothing, or runs.
    Said(Call),
}

impl Ask {
    pub(crate) fn into_calls(self) -> impl Iterator<Item = Call> {
        match self.0 {
            Inner::Shutdown(within) => vec![within.map_or(Call::Shutdown, Call::ShutdownWithin)],
            Inner::Pause(lease) => vec![Call::Pause { lease }],
            Inner::Resume(lease) => vec![Call::Resume { lease }],
            Inner::Said(call) => vec![call],
            Inner::Shard(ShardAsks(cell)) => cell.calls(),
        }
        .into_iter()
    }
}

/// The requests about one ownership of a shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardAsks(Arc<Cell>);

#[derive(Debug)]
struct Cell {
    lease: LeaseKey,
    token: FencingToken,
    queue: mpsc::UnboundedSender<Ask>,
    wanted: Mutex<Wanted>,
    /// While this is present: the batches that were dropped meanwhile.
    withheld: Mutex<Option<Vec<OpId>>>,
}

/// The reason for giving back a batch dropped by the application.
pub(crate) const DROPPED: &str =
    "the batch was dropped without an acknowledgement; keep it, or a receipt of it, until it is acknowledged";

#[derive(Debug, Default)]
struct Wanted {
    /// How far each batch was processed.
    through: BTreeMap<OpId, Position>,
    acknowledged: Vec<OpId>,
    given_back: Vec<(OpId, String)>,
    checkpoint: bool,
    queued: bool,
}

impl Cell {
    /// The requests since the last call. Processed positions come first, then given-back batches, and a checkpoint
    /// last.
    fn calls(&self) -> Vec<Call> {
        let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        let (lease, token) = (&self.lease, self.token);
        let processed = wanted.through.into_values().map(|through| Call::Processed {
            lease: lease.clone(),
            token,
            through,
        });
        let acknowledged = wanted.acknowledged.into_iter().map(|batch| Call::Acknowledged {
            lease: lease.clone(),
            token,
            batch,
        });
        let given_back = wanted.given_back.into_iter().map(|(batch, detail)| Call::GivenBack {
            lease: lease.clone(),
            token,
            batch,
            detail,
        });
        let checkpoint = wanted.checkpoint.then(|| Call::Checkpoint { lease: lease.clone(), token });
        processed.chain(acknowledged).chain(given_back).chain(checkpoint).collect()
    }
}

impl ShardAsks {
    /// A batch was processed up to here.
    pub(crate) fn processed(&self, batch: OpId, through: Position) {
        self.want(|wanted| {
            let known = wanted.through.entry(batch).or_insert(through);
            *known = through.max(*known);
        });
    }

    /// All of a batch was processed.
    pub(crate) fn acknowledged(&self, batch: OpId) {
        self.want(|wanted| wanted.acknowledged.push(batch));
    }

    /// A batch will not be processed.
    pub(crate) fn give_back(&self, batch: OpId, why: String) {
        self.want(|wanted| wanted.given_back.push((batch, why)));
    }

    /// Nothing is left that could acknowledge a batch: it is given back.
    pub(crate) fn dropped(&self, batch: OpId) {
        if let Some(withheld) = &mut *self.withheld() {
            return withheld.push(batch);
        }
        self.give_back(batch, DROPPED.to_owned());
    }

    /// Batches that are dropped from now on are named by [`release`](Self::release), and not given back.
    pub(crate) fn withhold(&self) {
        self.withheld().get_or_insert_default();
    }

    /// The batches dropped since [`withhold`](Self::withhold). From now on, a dropped batch is given back at once.
    pub(crate) fn release(&self) -> Vec<OpId> {
        self.withheld().take().unwrap_or_default()
    }

    fn withheld(&self) -> MutexGuard<'_, Option<Vec<OpId>>> {
        self.0.withheld.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn checkpoint(&self) {
        self.want(|wanted| wanted.checkpoint = true);
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        if !std::mem::replace(&mut wanted.queued, true) {
            let _ = self.0.queue.send(Ask(Inner::Shard(self.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;

    #[test]
    fn many_acknowledgements_become_the_last_one() {
        let (sender, mut asks) = asks();
        let shard = sender.shard("s".into(), FencingToken(3));
        for n in [1, 5, 4] {
            shard.processed(op(1), Position::of(n.into()));
        }
        shard.checkpoint();
        let ask = asks.receiver.try_recv().expect("queued");
        let calls: Vec<_> = ask.into_calls().collect();
        assert_eq!(
            calls,
            [
                Call::Processed {
                    lease: "s".into(),
                    token: FencingToken(3),
                    through: Position::of(5.into())
                },
                Call::Checkpoint { lease: "s".into(), token: FencingToken(3) },
            ]
        );
        assert!(asks.receiver.try_recv().is_err(), "queued once");
        shard.processed(op(1), Position::of(6.into()));
        assert!(asks.receiver.try_recv().is_ok(), "and again when there is more");
    }

    #[test]
    fn news_of_several_batches_is_told_of_each() {
        let (sender, mut asks) = asks();
        let (lease, token) = ("s".into(), FencingToken(3));
        let shard = sender.shard(lease, token);
        shard.checkpoint();
        shard.give_back(op(3), "full".into());
        shard.acknowledged(op(2));
        shard.processed(op(1), Position::of(5.into()));
        let ask = asks.receiver.try_recv().expect("queued");
        let calls: Vec<_> = ask.into_calls().collect();
        let lease = || "s".into();
        assert_eq!(
            calls,
            [
                Call::Processed { lease: lease(), token, through: Position::of(5.into()) },
                Call::Acknowledged { lease: lease(), token, batch: op(2) },
                Call::GivenBack { lease: lease(), token, batch: op(3), detail: "full".into() },
                Call::Checkpoint { lease: lease(), token },
            ]
        );
    }

    #[test]
    fn dropped_batches_are_given_back_unless_they_are_withheld() {
        let (sender, mut asks) = asks();
        let shard = sender.shard("s".into(), FencingToken(3));
        let mut given_back = || {
            let asks = std::iter::from_fn(|| asks.try_next());
            let calls = asks.flat_map(Ask::into_calls);
            let batches = calls.map(|call| match call {
                Call::GivenBack { batch, detail, .. } if detail == DROPPED => batch,
                other => panic!("{other:?}"),
            });
            batches.collect::<Vec<_>>()
        };
        shard.dropped(op(1));
        assert_eq!(given_back(), [op(1)]);
        shard.withhold();
        shard.dropped(op(2));
        shard.withhold();
        assert_eq!(shard.release(), [op(2)]);
        shard.dropped(op(3));
        assert_eq!(given_back(), [op(3)]);
        assert_eq!(shard.release(), []);
    }

    #[test]
    fn a_shutdown_is_asked_for_once_and_again_only_with_less_time() {
        let within = |span| Call::ShutdownWithin(Span(span));
        for (asked, expected) in [
            (vec![None, None], vec![Call::Shutdown]),
            (vec![None, Some(7), Some(7), Some(8)], vec![Call::Shutdown, within(7)]),
            (vec![Some(7), None, Some(9), Some(0)], vec![within(7), within(0)]),
        ] {
            let (sender, mut asks) = asks();
            for within in asked {
                sender.clone().shutdown(within.map(Span));
            }
            let calls = std::iter::from_fn(|| asks.try_next()).flat_map(Ask::into_calls);
            assert_eq!(calls.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn pauses_and_their_ends_arrive_in_the_order_of_the_requests() {
        let (sender, mut asks) = asks();
        let lease = || LeaseKey::from("a");
        sender.pause(lease(), true);
        sender.clone().pause(lease(), false);
        let mut calls = Vec::new();
        while let Some(ask) = asks.try_next() {
            calls.extend(ask.into_calls());
        }
        let (lease, again) = (lease(), lease());
        assert_eq!(calls, [Call::Pause { lease }, Call::Resume { lease: again }]);
    }

    #[test]
    fn a_request_to_an_ended_worker_is_dropped() {
        let (sender, asks) = asks();
        drop(asks);
        sender.pause("a".into(), true);
        sender.shutdown(None);
    }
}
