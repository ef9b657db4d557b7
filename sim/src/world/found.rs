//! The results of a world.

use super::Ending;
use crate::faults::RequestFault;
use crate::oracles::{LifeNo, Time, Violation};
use crate::recording::Recording;
use crate::report::Marks;
use leasehold_engine::input::Input;
use std::collections::BTreeSet;

/// The results of a world.
#[derive(Clone, Debug)]
pub struct Found {
    /// Violations of properties.
    pub violations: Vec<Violation>,
    /// The canary was heard.
    pub canary: bool,
    /// Kinds of leases' states, as numbers.
    pub states: BTreeSet<u32>,
    /// The ending of the run.
    pub ending: Ending,
    /// The number of the engines' inputs.
    pub inputs: u64,
    /// The time in the world at its end.
    pub simulated: Time,
    /// A digest of every input and output.
    pub digest: u64,
    /// The digest at regular numbers of inputs, if requested.
    pub checks: Vec<u64>,
    /// Marks of events in the world.
    pub marks: Marks,
    /// Records delivered more than once.
    pub duplicates: u64,
    /// The greatest time of double processing, in µs.
    pub window_us: u64,
    /// A line for each state change, if requested.
    pub log: Vec<String>,
    /// Every input of every life, if requested.
    pub trace: Vec<(LifeNo, Input)>,
    /// All chance faults, if requested.
    pub request_faults: Vec<RequestFault>,
    /// The number of state changes: the lines of a column log, even without the log.
    pub changes: u64,
    /// The recording of all facts, if requested.
    pub recording: Recording,
}

impl Found {
    /// The results of a world with this ending, otherwise still empty.
    pub(super) fn new(ending: Ending) -> Self {
        Self {
            violations: Vec::new(),
            canary: false,
            states: BTreeSet::new(),
            ending,
            inputs: 0,
            simulated: 0,
            digest: 0,
            checks: Vec::new(),
            marks: Marks::default(),
            duplicates: 0,
            window_us: 0,
            log: Vec::new(),
            trace: Vec::new(),
            request_faults: Vec::new(),
            changes: 0,
            recording: Recording::default(),
        }
    }
}
