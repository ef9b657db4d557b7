//! The report about a world.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// The report about a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its seed.
    pub seed: u64,
    /// Of every request and answer with its time, of every event, and of every worker's trace.
    pub digest: String,
    /// The world's length, in milliseconds of its own time.
    pub lasted_ms: u64,
    /// How many records were written.
    pub records: u64,
    /// How many were never processed.
    pub lost: u64,
    /// How many were processed more than once.
    pub repeated: u64,
    /// The number of worker processes.
    pub lives: u64,
    /// The number of killed processes.
    pub killed: u64,
    /// The number of engine inputs, all of them replayed.
    pub inputs: u64,
    /// How many requests the services executed.
    pub calls: u64,
    /// The world's events, by kind.
    pub events: Counts,
    /// How many requests each family of faults hit.
    pub faults: Counts,
    /// The number of drawn faults.
    pub drawn: usize,
    /// The property that does not hold, if any.
    pub broken: Option<String>,
    /// What does not hold.
    pub violations: Vec<String>,
    /// The report about the failure, if asked for.
    pub report: Option<String>,
}
