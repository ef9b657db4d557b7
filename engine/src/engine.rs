//! The engine: one input in, a drained outbox out.

use crate::ids::{FencingToken, LeaseKey, WorkerId};
use crate::input::Input;
use crate::output::Output;
use crate::position::Checkpoint;
use crate::time::Mono;

/// The coordination of one worker.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    outbox: Vec<Output>,
}

/// What the engine asks for after one input. Drain it before the next: it borrows the engine.
#[must_use = "the commands in an outbox are lost unless it is drained"]
#[derive(Debug)]
pub struct Outbox<'a> {
    outputs: std::vec::Drain<'a, Output>,
    wake_at: Mono,
}

impl Outbox<'_> {
    /// When to send a [`Tick`](crate::input::Body::Tick) if nothing else happens before; [`Mono::NEVER`] for no need.
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

/// A lease this worker holds, as it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// The lease.
    pub lease: &'a LeaseKey,
    /// The ownership.
    pub token: FencingToken,
    /// The counter of the last write known to be durable.
    pub counter: u64,
    /// The checkpoint of the last write known to be durable.
    pub checkpoint: Checkpoint,
    /// The worker believes in its ownership before this moment, and not at or after it.
    pub valid_until: Mono,
    /// Whether the application has the shard open.
    pub open: bool,
}

impl Engine {
    /// An engine that waits for its boot record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one input. Total: any input in any order is legal, and none panics.
    pub fn handle(&mut self, input: Input) -> Outbox<'_> {
        let _ = input;
        Outbox {
            outputs: self.outbox.drain(..),
            wake_at: Mono::NEVER,
        }
    }

    /// The name this worker writes into its rows; absent before the boot record.
    pub fn worker(&self) -> Option<&WorkerId> {
        None
    }

    /// Whether the worker has stopped, and nothing will follow.
    pub fn is_stopped(&self) -> bool {
        false
    }

    /// The leases this worker holds, in no particular (but repeatable) order.
    pub fn held(&self) -> impl Iterator<Item = Held<'_>> {
        std::iter::empty()
    }
}
