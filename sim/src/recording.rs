//! A recording for display: the facts, notices and faults of a world, in the order of their times.

use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use leasehold_engine::notice::Notice;

/// One event of a recording.
#[derive(Clone, Debug)]
pub enum Event {
    /// A fact of the world.
    Fact(Fact),
    /// A worker's notice.
    Told {
        /// The worker.
        worker: u32,
        /// The notice.
        notice: Notice,
    },
    /// A fault of the world.
    Fault(Fault),
}

/// A fault of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The fault's name in counts.
    pub name: &'static str,
    /// The worker hit, if any.
    pub worker: Option<u32>,
    /// The request hit, if any.
    pub request: Option<RequestNo>,
}

/// A request: the worker's life, the request's number, and the shard if any.
pub type RequestNo = (LifeNo, u64, Option<ShardNo>);

/// All events, with their times.
#[derive(Clone, Debug, Default)]
pub struct Recording(Vec<(Time, Event)>);

impl Recording {
    /// Adds a fact.
    pub fn fact(&mut self, at: Time, fact: Fact) {
        // Facts about answers and held leases repeat facts about rows.
        let repeats = matches!(
            fact,
            Fact::Shown { .. }
                | Fact::Looked { .. }
                | Fact::ScanEnded { .. }
                | Fact::Holds { .. }
                | Fact::HoldsNoMore { .. }
        );
        if !repeats {
            self.0.push((at, Event::Fact(fact)));
        }
    }

    /// Adds a worker's notice.
    pub fn told(&mut self, at: Time, worker: usize, notice: &Notice) {
        let (worker, notice) = (worker as u32, notice.clone());
        self.0.push((at, Event::Told { worker, notice }));
    }

    /// Adds a fault of a worker, of a request, or of the whole world.
    pub fn fault(&mut self, at: Time, name: &'static str, worker: Option<usize>, request: Option<RequestNo>) {
        let worker = worker.map(|w| w as u32);
        self.0.push((at, Event::Fault(Fault { name, worker, request })));
    }

    /// All events, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &Event)> {
        self.0.iter().map(|(at, event)| (*at, event))
    }
}
