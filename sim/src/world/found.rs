//! What comes of a world.

use super::Ending;
use crate::faults::RequestFault;
use crate::oracles::{LifeNo, Time, Violation};
use crate::recording::Recording;
use crate::report::Marks;
use leasehold_engine::input::Input;
use std::collections::BTreeSet;

/// What was found in a world.
#[derive(Clone, Debug)]
pub struct Found {
    /// What should not have happened.
    pub violations: Vec<Violation>,
    /// The canary was heard.
    pub canary: bool,
    /// Kinds of states that leases were in, as numbers.
    pub states: BTreeSet<u32>,
    /// How the run ended.
    pub ending: Ending,
    /// How many inputs the engines took.
    pub inputs: u64,
    /// How much time passed in the world.
    pub simulated: Time,
    /// A digest of every input and output.
    pub digest: u64,
    /// What it was after every so many inputs, if asked for.
    pub checks: Vec<u64>,
    /// What occurred.
    pub marks: Marks,
    /// Records delivered more than once.
    pub duplicates: u64,
    /// The greatest time of double processing, in µs.
    pub window_us: u64,
    /// A line per state change, if asked for.
    pub log: Vec<String>,
    /// Every input of every life, if asked for.
    pub trace: Vec<(LifeNo, Input)>,
    /// Everything that chance did, if asked for.
    pub request_faults: Vec<RequestFault>,
    /// How many state changes there were: the lines a column log has, or would have.
    pub changes: u64,
    /// Everything that happened, if asked for.
    pub recording: Recording,
}

impl Found {
    /// A world that has ended so, of which nothing else is known yet.
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
