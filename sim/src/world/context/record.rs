//! A world's record of its events: facts for its oracles, marks, a log for people, a recording for pictures.

use super::Context;
use crate::names::Names;
use crate::options::Options;
use crate::oracles::fact::Owner;
use crate::oracles::{Fact, LifeNo, Oracles, Property, ShardNo, Terms, Time};
use crate::recording::{Recording, RequestNo};
use crate::report::{ColumnLog, Marks};
use crate::world::found::Found;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::notice::Notice;
use std::collections::BTreeSet;

/// The whole record.
#[derive(Debug)]
pub(super) struct Record {
    oracles: Oracles,
    marks: Marks,
    states: BTreeSet<u32>,
    log: Option<Log>,
    recording: Option<Recording>,
    /// State changes so far.
    changes: u64,
}

/// The column log, and the contents of its columns.
#[derive(Debug)]
struct Log {
    lines: ColumnLog,
    /// Whether each worker's process runs.
    up: Vec<bool>,
    /// The owner of each lease, by its row.
    owners: Vec<Option<WorkerId>>,
}

impl Record {
    pub(super) fn new(terms: &Terms, workers: u32, options: &Options) -> Self {
        Self {
            oracles: Oracles::new(terms),
            marks: Marks::default(),
            states: BTreeSet::new(),
            log: options.log.then(|| Log::new(workers as usize)),
            recording: options.record.then(Recording::default),
            changes: 0,
        }
    }
}

impl Context {
    /// Adds the results at the world's end.
    pub(in crate::world) fn add_to(self, found: &mut Found) {
        let record = self.record;
        found.simulated = self.now;
        found.duplicates = record.oracles.duplicates();
        found.window_us = record.oracles.windows().longest_us;
        (found.violations, found.canary) = record.oracles.verdict.into_parts();
        found.marks = record.marks;
        found.states = record.states;
        found.log = record.log.map(|log| log.lines.into_lines()).unwrap_or_default();
        found.recording = record.recording.unwrap_or_default();
        found.changes = record.changes;
    }

    pub(in crate::world) fn oracles(&self) -> &Oracles {
        &self.record.oracles
    }

    /// Records a fact.
    pub(in crate::world) fn fact(&mut self, fact: Fact) {
        self.observe(&fact);
        if let Some(log) = &mut self.record.log {
            log.fact(&self.names, &fact);
        }
        if let Some(recording) = &mut self.record.recording {
            recording.fact(self.now, fact);
        }
    }

    /// Tells a fact only to the oracles, for facts without use in the recording.
    pub(in crate::world) fn observe(&mut self, fact: &Fact) {
        self.record.oracles.observe(self.now, fact);
    }

    /// A property is violated.
    pub(in crate::world) fn report(&mut self, property: Property, summary: impl FnOnce() -> String) {
        self.record.oracles.verdict.report(property, self.now, summary);
    }

    /// This life belongs to a foreign program.
    pub(in crate::world) fn note_other(&mut self, life: LifeNo) {
        self.record.oracles.note_other(life);
    }

    /// The oracles look for overdue events.
    pub(in crate::world) fn look(&mut self) {
        self.record.oracles.look(self.now);
    }

    /// The oracles look for events overdue since the end of the faults.
    pub(in crate::world) fn look_at_end(&mut self, since: Time, ours: bool) {
        self.record.oracles.look_at_end(self.now, since, ours);
    }

    /// Records a fault of a worker or of one of its requests.
    pub(in crate::world) fn fault(
        &mut self, name: &'static str, worker: Option<usize>, request: Option<RequestNo>,
    ) {
        self.mark(name);
        if let Some(recording) = &mut self.record.recording {
            recording.fault(self.now, name, worker, request);
        }
    }

    /// Records a worker's notice.
    pub(in crate::world) fn told(&mut self, w: usize, notice: &Notice) {
        if let Some(mark) = crate::marks::mark_of(notice) {
            self.mark(mark);
        }
        if let Some(recording) = &mut self.record.recording {
            recording.told(self.now, w, notice);
        }
    }

    /// Counts a mark.
    pub(in crate::world) fn mark(&mut self, mark: &'static str) {
        self.record.marks.set(mark);
    }

    /// Records the kind of a lease's state.
    pub(in crate::world) fn state(&mut self, kind: u32) {
        self.record.states.insert(kind);
    }

    /// From now on the row of a shard names this owner.
    pub(in crate::world) fn owned(&mut self, shard: ShardNo, owner: Option<&WorkerId>) {
        if let Some(log) = &mut self.record.log {
            log.owned(shard as usize, owner.cloned());
        }
    }

    /// Records a state change, in words.
    pub(in crate::world) fn line(&mut self, line: impl FnOnce() -> String) {
        self.record.changes += 1;
        if let Some(log) = &mut self.record.log {
            log.line(self.now, &self.names, &line());
        }
    }
}

impl Log {
    fn new(workers: usize) -> Self {
        Self { lines: ColumnLog::new(workers), up: vec![false; workers], owners: Vec::new() }
    }

    fn fact(&mut self, names: &Names, fact: &Fact) {
        match *fact {
            Fact::Booted { worker, .. } => self.up[worker as usize] = true,
            Fact::Stopped { life, .. } | Fact::Died { life } => {
                self.up[names.worker(life)] = false;
            }
            _ => {}
        }
    }

    fn owned(&mut self, shard: usize, owner: Option<WorkerId>) {
        if self.owners.len() <= shard {
            self.owners.resize(shard + 1, None);
        }
        self.owners[shard] = owner;
    }

    fn line(&mut self, now: Time, names: &Names, line: &str) {
        let mut held: Vec<Option<u32>> = self.up.iter().map(|up| up.then_some(0)).collect();
        for owner in self.owners.iter().flatten() {
            if let Owner::Life(life) = names.owner(owner)
                && let Some(count) = &mut held[names.worker(life)]
            {
                *count += 1;
            }
        }
        self.lines.line(now, &held, line);
    }
}
