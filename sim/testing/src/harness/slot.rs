//! One worker of a world: its life, if alive, and the events on their way to it.

use super::fault::{Micros, Service, Time};
use super::host::Host;
use super::outbox::Outbox;
use super::world::Ended;
use leasehold::Control;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// An event on its way to a process.
pub(super) enum Coming<A> {
    /// An answer to a request.
    Answer(oneshot::Sender<A>, Box<A>),
    /// The process stands still until then.
    Pause(Time),
    Resume,
    /// The worker is asked to shut down, and starts again at this time.
    ShutDown(Time),
}

/// One worker.
pub(super) struct Slot<H: Host> {
    pub(super) alive: Option<Alive<H>>,
    /// Events for the worker, by time.
    pub(super) inbox: BTreeMap<(Micros, u64), Coming<H::Answer>>,
    /// The number of lives until now.
    pub(super) lives: usize,
    /// The number of requests sent to each service, in all lives.
    tables: u64,
    streams: u64,
    /// The number of writes that moved a checkpoint.
    pub(super) checkpoints: u64,
    /// The number of batches handed over.
    pub(super) batches: u64,
}

/// A process that lives.
pub(super) struct Alive<H: Host> {
    pub(super) life: usize,
    pub(super) outbox: Outbox<H::Request, H::Answer>,
    pub(super) control: Control,
    pub(super) ended: Arc<Mutex<Option<Ended>>>,
    /// Whether it stands still.
    pub(super) still: bool,
    /// Whether the worker was asked to shut down.
    pub(super) asked: bool,
    /// The time of the next start after the shutdown.
    pub(super) again: Time,
}

impl<H: Host> Slot<H> {
    pub(super) fn new() -> Self {
        Self {
            alive: None,
            inbox: BTreeMap::new(),
            lives: 0,
            tables: 0,
            streams: 0,
            checkpoints: 0,
            batches: 0,
        }
    }

    /// The time of the next event for the worker.
    pub(super) fn next(&self) -> Option<Micros> {
        self.inbox.first_key_value().map(|((at, _), _)| *at)
    }

    /// The event due at this moment.
    pub(super) fn pop(&mut self, now: Micros) -> Option<Coming<H::Answer>> {
        let entry = self.inbox.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// Counts a request. Returns the request's number among the requests to this service.
    pub(super) fn counts(&mut self, service: Service) -> u64 {
        let count = match service {
            Service::Table => &mut self.tables,
            Service::Stream => &mut self.streams,
        };
        *count += 1;
        *count - 1
    }
}

impl<H: Host> Alive<H> {
    /// The result of the worker, after its end.
    pub(super) fn take_end(&self) -> Option<Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
