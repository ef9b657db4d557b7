//! The shared state of the worker and a shard's task: the waiting batch, the end of the stream, and the task's
//! result.

use crate::asks::{DROPPED, ShardAsks};
use crate::batch::{Batch, ShardInfo};
use crate::catch::Panicked;
use crate::fence::Fence;
use crate::handler::Flush;
use crate::receipt::{Receipt, WeakReceipt};
use leasehold_engine::output::FlushReason;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// With fewer receipts than this, settled receipts are not searched for.
const FEW: usize = 16;

/// One task of a shard, from the worker's side and from the task's side.
pub(super) struct Link {
    pub(super) info: Arc<ShardInfo>,
    pub(super) fence: Fence,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The batch that the task may take.
    waiting: Option<Batch>,
    /// The task must acknowledge its kept batches, and does not know yet.
    full: bool,
    end: Option<End>,
    /// The task has been told that its stream has ended.
    end_seen: bool,
    /// The batches taken by the task, except some settled batches.
    taken: Vec<WeakReceipt>,
    look_through_at: usize,
    asks: Option<ShardAsks>,
    returned: Option<Returned>,
    wakers: Vec<Waker>,
}

/// The end of a stream.
struct End {
    why: FlushReason,
    /// Tells the time left, if known.
    flush: Option<Flush>,
}

/// How a task returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// With `Ok` after the end of its stream.
    Finished,
    /// Otherwise. `told`: the engine knows of it.
    Failed { why: String, told: bool },
}

impl Link {
    pub(super) fn new(info: Arc<ShardInfo>, fence: Fence) -> Self {
        let state = Mutex::default();
        Self { info, fence, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the waiting tasks.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, wakers) = {
            let mut state = self.state();
            (change(&mut state), std::mem::take(&mut state.wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Looks now and after each change, until `look` gives an answer.
    pub(super) fn poll<T>(
        &self, cx: &mut Context<'_>, look: impl FnOnce(&mut View<'_>) -> Option<T>,
    ) -> Poll<T> {
        let mut view = View { state: self.state(), changed: false };
        let answer = look(&mut view);
        let View { mut state, changed } = view;
        let wakers = match changed {
            true => std::mem::take(&mut state.wakers),
            false => Vec::new(),
        };
        if answer.is_none() && !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        answer.map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits for an answer.
    pub(super) fn wait<T>(
        &self, mut look: impl FnMut(&mut View<'_>) -> Option<T>,
    ) -> impl Future<Output = T> {
        poll_fn(move |cx| self.poll(cx, &mut look))
    }
}

/// The state, for a waiting task.
pub(super) struct View<'a> {
    state: MutexGuard<'a, State>,
    changed: bool,
}

/// What the task asks.
impl View<'_> {
    /// The batch that waits; `Some(None)`: the stream has ended.
    pub(super) fn take(&mut self) -> Option<Option<Batch>> {
        if let Some(batch) = self.state.waiting.take() {
            self.changed = true;
            self.state.took(&batch.receipt);
            return Some(Some(batch));
        }
        self.see_end(|_| true).map(|_| None)
    }

    /// Whether the task must acknowledge its kept batches: true once for each report.
    pub(super) fn take_full(&mut self) -> Option<()> {
        std::mem::take(&mut self.state.full).then_some(())
    }

    /// The reason of the stream's end, if `such` accepts the reason.
    pub(super) fn see_end(&mut self, such: impl FnOnce(FlushReason) -> bool) -> Option<FlushReason> {
        let why = self.state.end.as_ref()?.why;
        such(why).then(|| {
            self.state.end_seen = true;
            why
        })
    }
}

/// What the worker asks.
impl View<'_> {
    /// How the task returned.
    fn returned(&self) -> Option<Returned> {
        self.state.returned.clone()
    }

    /// Whether the task returned with a failure that the engine does not know of. It does now.
    fn tell(&mut self) -> Option<String> {
        let Some(Returned::Failed { why, told }) = &mut self.state.returned else {
            return None;
        };
        (!std::mem::replace(told, true)).then(|| why.clone())
    }
}

impl State {
    /// Whether the lease is given up.
    fn is_leaving(&self) -> bool {
        matches!(&self.end, Some(end) if matches!(end.why, FlushReason::Leaving(_)))
    }

    fn took(&mut self, receipt: &Receipt) {
        if self.taken.len() >= self.look_through_at {
            self.taken.retain(|receipt| receipt.unsettled().is_some());
            self.look_through_at = FEW.max(2 * self.taken.len());
        }
        self.taken.push(receipt.downgrade());
    }
}

/// Takes an untaken batch away from the task.
struct Untaken<'a>(&'a Link);

impl Drop for Untaken<'_> {
    fn drop(&mut self) {
        let batch = self.0.state().waiting.take();
        drop(batch);
    }
}

/// What the worker does.
impl Link {
    /// Waits until the task has taken a batch.
    ///
    /// # Errors
    /// If the task returned without taking the batch, or failed with the batch.
    pub(super) async fn hand_over(&self, batch: Batch) -> Result<(), String> {
        self.change(|state| {
            state.asks = Some(batch.receipt.asks().clone());
            state.full = false;
            debug_assert!(state.waiting.is_none(), "the task has taken the batch before, or lost that batch");
            state.waiting = Some(batch);
        });
        let _untaken = Untaken(self);
        self.wait(|view| match view.returned() {
            Some(Returned::Failed { why, .. }) => {
                view.tell();
                Some(Err(why))
            }
            _ => view.state.waiting.is_none().then_some(Ok(())),
        })
        .await
    }

    /// The task keeps as much as it may.
    pub(super) fn want_flush(&self) {
        self.change(|state| state.full = true);
    }

    /// The stream ends after the batch that waits.
    pub(super) fn end(&self, why: FlushReason, flush: Option<Flush>) {
        self.change(|state| state.end = Some(End { why, flush }));
    }

    /// Why the stream has ended, if it has.
    pub(super) fn ended(&self) -> Option<FlushReason> {
        self.state().end.as_ref().map(|end| end.why)
    }

    /// The time left; absent without a limit, or with an unknown limit.
    pub(super) fn remaining(&self) -> Option<Duration> {
        self.state().end.as_ref()?.flush.as_ref()?.remaining()
    }

    /// How the task returned, if it has.
    pub(super) fn returned(&self) -> Option<Returned> {
        self.state().returned.clone()
    }

    /// Waits until the task has returned.
    pub(super) async fn until_returned(&self) -> Returned {
        self.wait(|view| view.returned()).await
    }

    /// A failure of the task that the engine does not know of. It does now.
    pub(super) fn tell(&self) -> Option<String> {
        let mut view = View { state: self.state(), changed: false };
        view.tell()
    }
}

/// What runs the task does.
impl Link {
    /// The task is about to be polled: dropped batches wait until the poll has shown whether the task goes on.
    pub(super) fn before_poll(&self) {
        if let Some(asks) = &self.state().asks {
            asks.withhold();
        }
    }

    /// The task goes on. While the lease is given up, dropped batches wait for the task's return: a batch given back
    /// would stop the task.
    pub(super) fn goes_on(&self) {
        let asks = {
            let state = self.state();
            state.asks.clone().filter(|_| !state.is_leaving())
        };
        if let Some(asks) = asks {
            let dropped = asks.release();
            dropped.into_iter().for_each(|batch| asks.give_back(batch, DROPPED.to_owned()));
        }
    }

    /// The task has returned. If the task failed, its unacknowledged and dropped batches are given back. While the
    /// lease is given up, the failure is the answer of the flush instead.
    pub(super) fn returns(&self, result: Result<Result<(), String>, Panicked>) {
        let mut state = self.state();
        if state.returned.is_some() {
            return;
        }
        let asks = state.asks.clone();
        let dropped = asks.as_ref().map(ShardAsks::release).unwrap_or_default();
        let taken = std::mem::take(&mut state.taken);
        let taken: Vec<Receipt> = taken.iter().filter_map(WeakReceipt::unsettled).collect();
        let is_leaving = state.is_leaving();
        let failure = self.failure(&state, result, dropped.len());
        drop(state);
        let why = failure.as_deref().unwrap_or(DROPPED);
        if let Some(asks) = asks.filter(|_| !is_leaving) {
            dropped.iter().for_each(|batch| asks.give_back(*batch, why.to_owned()));
        }
        if failure.is_some() {
            taken.iter().for_each(|receipt| match is_leaving {
                true => receipt.answered(),
                false => receipt.give_back(why),
            });
        }
        let none_given_back = is_leaving || (dropped.is_empty() && taken.is_empty());
        let returned = match failure {
            None => Returned::Finished,
            Some(why) => Returned::Failed { why, told: !none_given_back },
        };
        self.change(|state| state.returned = Some(returned));
    }

    fn failure(
        &self, state: &State, result: Result<Result<(), String>, Panicked>, dropped: usize,
    ) -> Option<String> {
        let shard = &self.info.shard;
        let (found, then) = match result {
            Ok(Ok(())) if state.end_seen && dropped == 0 => return None,
            Ok(Ok(())) if state.end_seen => {
                return Some(format!(
                    "expected the task of shard {shard} to acknowledge every batch before it returns, found that it dropped {dropped} \
                     of them; they come again; acknowledge each batch that is processed"
                ));
            }
            Ok(Ok(())) => (
                "it returned `Ok(())` before that".to_owned(),
                "let the task call `next` until that gives `None`",
            ),
            Ok(Err(error)) => {
                (format!("it failed: {error}"), "remove the cause, or handle the error inside the task")
            }
            Err(Panicked(message)) => (format!("it panicked: {message}"), "remove the cause of the panic"),
        };
        Some(format!(
            "expected the task of shard {shard} to run until its stream has ended, found that {found}; what it had not acknowledged \
             comes again, to a new task; {then}"
        ))
    }
}
