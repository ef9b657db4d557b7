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
    /// What the world had, such as records and lives.
    pub counts: Counts,
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
