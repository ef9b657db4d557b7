//! What a world keeps if it is to be shown: facts, notices and faults, in the order in which they happened.

use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use leasehold_engine::notice::Notice;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The truth.
    Fact(Fact),
    /// What a worker says of itself.
    Told {
        /// Who says it.
        worker: u32,
        /// What it says.
        notice: Notice,
    },
    /// Something was made to go wrong.
    Fault(Fault),
}

/// Something that was made to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name, as it is counted.
    pub name: &'static str,
    /// Whom it hit.
    pub worker: Option<u32>,
    /// The request it hit.
    pub request: Option<RequestNo>,
}

/// A request: whose, which, and what about.
pub type RequestNo = (LifeNo, u64, Option<ShardNo>);

/// Everything that happened, with its time.
#[derive(Clone, Debug, Default)]
pub struct Recording(Vec<(Time, Event)>);

impl Recording {
    /// Adds a fact.
    pub fn fact(&mut self, at: Time, fact: Fact) {
        // What answers showed and workers hold says nothing that the rows do not.
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

    /// Adds what a worker said.
    pub fn told(&mut self, at: Time, worker: usize, notice: &Notice) {
        let (worker, notice) = (worker as u32, notice.clone());
        self.0.push((at, Event::Told { worker, notice }));
    }

    /// Adds a fault that hit a worker or one of its requests, or nobody in particular.
    pub fn fault(&mut self, at: Time, name: &'static str, worker: Option<usize>, request: Option<RequestNo>) {
        let worker = worker.map(|w| w as u32);
        self.0.push((at, Event::Fault(Fault { name, worker, request })));
    }

    /// All of it, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &Event)> {
        self.0.iter().map(|(at, event)| (*at, event))
    }
}
