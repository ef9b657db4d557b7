//! The report about a world.

use crate::stage::{End, Scene};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report about a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its seed.
    pub seed: u64,
    /// Of every request and answer with its time, and of every worker's trace.
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
    pub events: BTreeMap<String, u64>,
    /// How many requests each family of faults hit.
    pub faults: BTreeMap<String, u64>,
    /// What did not hold.
    pub violations: Vec<String>,
}

impl Verdict {
    /// The verdict on a checked and replayed scene.
    pub fn on(seed: u64, scene: &mut Scene, lasted_ms: u64, inputs: u64) -> Self {
        for life in &scene.lives {
            scene.cloud.note(&(&life.client, life.trace.text()));
        }
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        Self {
            seed,
            digest: format!("{:016x}", scene.cloud.digest()),
            lasted_ms,
            records: scene.records(),
            lost: scene.records().saturating_sub(scene.ledger.processed),
            repeated: scene.ledger.repeated,
            lives: scene.lives.len() as u64,
            killed: scene.lives.iter().filter(|life| life.end == Some(End::Killed)).count() as u64,
            inputs,
            calls: scene.cloud.calls.values().sum(),
            events: owned(&scene.events),
            faults: owned(&scene.families),
            violations: scene.ledger.violations.clone(),
        }
    }
}
