//! The engine: one input in, a drained outbox out.

pub use crate::held::Held;
use crate::ids::{LeaseIx, WorkerId};
use crate::input::{Body, Input};
use crate::notice::{Notice, Stall};
use crate::output::Output;
use crate::time::Mono;
use crate::worker::Worker;
use std::hash::{Hash, Hasher};

/// The coordination of one worker.
///
/// It is told everything and asks for everything: it reads no clock, draws no entropy and does no I/O. The same inputs
/// give the same outputs, bit for bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    worker: Option<Box<Worker>>,
    /// Outputs while there is no worker yet.
    early: Vec<Output>,
}

/// The engine's outputs after one input. Drain the outbox before the next input: it borrows the engine.
#[must_use = "the commands in an outbox are lost unless it is drained"]
#[derive(Debug)]
pub struct Outbox<'a> {
    outputs: std::vec::Drain<'a, Output>,
    wake_at: Mono,
}

impl Outbox<'_> {
    /// When to send a [`Tick`](crate::input::Body::Tick) if no input comes before; [`Mono::NEVER`] for no need.
    pub fn wake_at(&self) -> Mono {
        self.wake_at
    }
}

impl Iterator for Outbox<'_> {
    type Item = Output;

    fn next(&mut self) -> Option<Output> {
        self.outputs.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.outputs.size_hint()
    }
}

impl ExactSizeIterator for Outbox<'_> {}

/// The state behind the answers to all further inputs, without the configuration, which never changes. So a search over
/// states recognises a state visited before.
impl Hash for Engine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.worker.hash(state);
    }
}

impl Engine {
    /// An engine that waits for its boot record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one input. The engine is total: any input in any order is legal, no input panics, and the number of
    /// outputs is bounded by the size of the input and of the fleet's leases.
    pub fn handle(&mut self, input: Input) -> Outbox<'_> {
        let Input { at, wall, body } = input;
        let worker = match &mut self.worker {
            Some(worker) => {
                worker.clock(at, wall);
                match body {
                    Body::Boot(_) => worker.stray("a second boot record".into()),
                    Body::Tick => {}
                    Body::Done { op, outcome } => worker.on_outcome(op, outcome),
                    Body::Call(call) => worker.on_call(call),
                }
                worker
            }
            empty => match body {
                Body::Boot(record) => empty.insert(Box::new(Worker::new(*record, at, wall))),
                body => {
                    let what = format!("{} before the boot record", body.name());
                    self.early.push(Output::Tell(Notice::Stray { what }));
                    return Outbox { outputs: self.early.drain(..), wake_at: Mono::NEVER };
                }
            },
        };
        worker.run_due();
        let wake_at = worker.wake_at();
        Outbox { outputs: worker.outputs(), wake_at }
    }

    /// The name written by this worker into its rows; absent before the boot record.
    pub fn worker(&self) -> Option<&WorkerId> {
        Some(self.worker.as_ref()?.id())
    }

    /// Whether the worker has stopped, and no output follows.
    pub fn is_stopped(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.is_stopped())
    }

    /// How many commands have no outcome yet.
    pub fn unanswered(&self) -> usize {
        self.worker.as_ref().map_or(0, |worker| worker.unanswered())
    }

    /// How many rows of the lease table the last scans showed that should be leases and cannot be read.
    pub fn unreadable(&self) -> usize {
        self.worker.as_ref().map_or(0, |worker| worker.unreadable())
    }

    /// The leases held by this worker, in no particular order, but in the same order after the same inputs.
    pub fn held(&self) -> impl Iterator<Item = Held<'_>> {
        self.worker.iter().flat_map(|worker| worker.held())
    }

    /// Moves into `into` all leases whose holding by this worker may have changed since the last call;
    /// [`Engine::held_in`] tells the present holding.
    pub fn touched(&mut self, into: &mut Vec<LeaseIx>) {
        if let Some(worker) = &mut self.worker {
            worker.take_touched(into);
        }
    }

    /// The worker's holding of a lease; absent if the lease is not held.
    pub fn held_in(&self, lease: LeaseIx) -> Option<Held<'_>> {
        self.worker.as_ref()?.held_in(lease)
    }

    /// The reason why a held lease waits, as of the last input; absent if the lease waits for new records alone, or is
    /// not held. A waiting lease is not always a stalled lease: [`Held::stalled`] says that.
    pub fn waits_for(&self, lease: LeaseIx) -> Option<Stall> {
        self.worker.as_ref()?.waits_for(lease)
    }
}
