//! A model's access to its world: clocks, chance, other tasks, AWS and its application.

use super::process::{Exit, Task};
use crate::oracles::fact::Verb;
use leasehold_engine::input::Outcome;
use leasehold_engine::internals::draw_below;
use leasehold_engine::output::Effect;
use leasehold_engine::table::Item;
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A request of a process.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// A request like those of our workers: an operation on the stream or on the application, or a look at the table's
    /// state.
    Effect(Effect),
    /// An operation on items, in the form of the program.
    Item(Request),
}

/// An operation on a table.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub table: &'static str,
    /// The kind of the write, for faults and for reports; none: a read.
    pub verb: Option<Verb>,
    /// The operation.
    pub op: ItemOp,
}

/// Operations on items.
#[derive(Clone, Debug)]
pub(crate) enum ItemOp {
    Get {
        key: Item,
        consistent: bool,
    },
    Put {
        item: Item,
        condition: Option<Condition>,
    },
    Update {
        key: Item,
        update: Update,
        condition: Option<Condition>,
    },
    Delete {
        key: Item,
        condition: Option<Condition>,
    },
    Scan {
        consistent: bool,
        after: Option<Item>,
    },
    /// Create the index of owners, for workers of version 3 of the Java KCL in search of their assigned leases.
    CreateOwnerIndex,
}

/// The reply to a request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The number of the request.
    pub n: u64,
    /// The outcome, as for our workers.
    pub outcome: Outcome,
    /// The items of a read of a table.
    pub items: Vec<Arc<Item>>,
    /// The start of the next page of a scan.
    pub next: Option<Item>,
}

/// The world from the view of one process's tasks.
#[derive(Clone)]
pub(super) struct Host(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    seed: u64,
    drawn: u64,
    mono_us: u64,
    wall_ns: u64,
    stopping: bool,
    exit: Option<Exit>,
    asked: Vec<(u64, Ask)>,
    next: u64,
    tokens: u64,
    replies: BTreeMap<u64, Reply>,
    /// Checkpoints by the application, in the middle of batches.
    noted: Vec<(String, String)>,
    spawned: Vec<Task>,
    wake_us: u64,
    /// Some task continued in this round, and may have unblocked further tasks.
    moved: bool,
}

impl Host {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(Inner { seed, wake_us: u64::MAX, ..Inner::default() })))
    }

    /// Waits until a condition is true or `us` microseconds have passed; returns whether the condition is true.
    pub(super) async fn until(&self, us: u64, mut is_so: impl FnMut() -> bool) -> bool {
        let end = self.0.borrow().mono_us.saturating_add(us);
        poll_fn(|_| {
            let met = is_so();
            let mut inner = self.0.borrow_mut();
            if met || inner.mono_us >= end {
                inner.moved = true;
                return Poll::Ready(met);
            }
            inner.wake_us = inner.wake_us.min(end);
            Poll::Pending
        })
        .await
    }

    /// Waits for this time, in µs.
    pub(super) async fn sleep(&self, us: u64) {
        self.until(us, || false).await;
    }

    /// Waits for this time, in µs, or until a request to stop; returns whether the request came.
    pub(super) async fn sleep_or_stop(&self, us: u64) -> bool {
        self.until(us, || self.is_stopping()).await
    }

    /// The number of another ownership, to distinguish the application's processors.
    pub(super) fn next_token(&self) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.tokens += 1;
        inner.tokens
    }

    /// Makes a request, and waits for the outcome.
    pub(super) async fn ask(&self, ask: Ask) -> Reply {
        let n = self.send(ask);
        poll_fn(|_| {
            let reply = self.take_reply(n);
            self.0.borrow_mut().moved |= reply.is_some();
            reply.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Makes a request; returns the number of the request.
    pub(super) fn send(&self, ask: Ask) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.next += 1;
        let n = inner.next;
        inner.asked.push((n, ask));
        n
    }

    /// The reply to a request, once.
    pub(super) fn take_reply(&self, n: u64) -> Option<Reply> {
        self.0.borrow_mut().replies.remove(&n)
    }

    /// Starts another task.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut inner = self.0.borrow_mut();
        inner.spawned.push(Box::pin(task));
        inner.moved = true;
    }

    /// Ends the process like an uncaught exception.
    pub(super) async fn die(&self, why: String) -> ! {
        self.exit(Exit::Uncaught(why));
        std::future::pending().await
    }

    /// The monotonic clock, in µs.
    pub(super) fn mono_us(&self) -> u64 {
        self.0.borrow().mono_us
    }

    /// The wall clock, in ns since 1970.
    pub(super) fn wall_ns(&self) -> u64 {
        self.0.borrow().wall_ns
    }

    /// A number below `bound`.
    pub(super) fn below(&self, purpose: &str, bound: u64) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.drawn += 1;
        draw_below(inner.seed, purpose, "", inner.drawn, bound)
    }

    /// Shuffled values.
    pub(super) fn shuffled<T>(&self, purpose: &str, mut values: Vec<T>) -> Vec<T> {
        for n in (1..values.len()).rev() {
            values.swap(n, self.below(purpose, n as u64 + 1) as usize);
        }
        values
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.0.borrow().stopping
    }

    /// The checkpoints of a shard made by the application in the middle of a batch.
    pub(super) fn take_noted(&self, shard: &str) -> Vec<String> {
        let mut inner = self.0.borrow_mut();
        let (here, others) = std::mem::take(&mut inner.noted).into_iter().partition(|(of, _)| of == shard);
        inner.noted = others;
        let here: Vec<(String, String)> = here;
        here.into_iter().map(|(_, sequence)| sequence).collect()
    }

    pub(super) fn set_time(&self, mono_us: u64, wall_ns: u64) {
        let mut inner = self.0.borrow_mut();
        (inner.mono_us, inner.wall_ns) = (mono_us, wall_ns);
    }

    pub(super) fn begin_round(&self) {
        let mut inner = self.0.borrow_mut();
        (inner.moved, inner.wake_us) = (false, u64::MAX);
    }

    pub(super) fn has_moved(&self) -> bool {
        self.0.borrow().moved
    }

    pub(super) fn wake_at(&self) -> u64 {
        self.0.borrow().wake_us
    }

    pub(super) fn take_spawned(&self) -> Vec<Task> {
        std::mem::take(&mut self.0.borrow_mut().spawned)
    }

    pub(super) fn take_asked(&self) -> Vec<(u64, Ask)> {
        std::mem::take(&mut self.0.borrow_mut().asked)
    }

    pub(super) fn answer(&self, n: u64, reply: Reply) {
        self.0.borrow_mut().replies.insert(n, reply);
    }

    pub(super) fn stop(&self) {
        self.0.borrow_mut().stopping = true;
    }

    pub(super) fn note_checkpoint(&self, shard: &str, sequence: String) {
        self.0.borrow_mut().noted.push((shard.to_owned(), sequence));
    }

    pub(super) fn exit(&self, exit: Exit) {
        self.0.borrow_mut().exit.get_or_insert(exit);
    }

    pub(super) fn exited(&self) -> Option<Exit> {
        self.0.borrow().exit.clone()
    }
}
