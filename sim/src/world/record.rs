//! A world's record of its events: facts for its oracles, marks, a log for people, a recording for pictures.

use super::found::Found;
use crate::names::Names;
use crate::options::Options;
use crate::oracles::fact::Owner;
use crate::oracles::{Fact, Oracles, ShardNo, Terms, Time};
use crate::recording::{Recording, RequestNo};
use crate::report::{ColumnLog, Marks};
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
        let workers = workers as usize;
        Self {
            oracles: Oracles::new(terms),
            marks: Marks::default(),
            states: BTreeSet::new(),
            log: options.log.then(|| Log::new(workers)),
            recording: options.record.then(Recording::default),
            changes: 0,
        }
    }

    /// Adds the results at the world's end.
    pub(super) fn add_to(self, found: &mut Found) {
        found.duplicates = self.oracles.duplicates();
        found.window_us = self.oracles.windows().longest_us;
        (found.violations, found.canary) = self.oracles.verdict.into_parts();
        found.marks = self.marks;
        found.states = self.states;
        found.log = self.log.map(|log| log.lines.into_lines()).unwrap_or_default();
        found.recording = self.recording.unwrap_or_default();
        found.changes = self.changes;
    }

    pub(super) fn oracles(&self) -> &Oracles {
        &self.oracles
    }

    pub(super) fn oracles_mut(&mut self) -> &mut Oracles {
        &mut self.oracles
    }

    /// Records a fact.
    pub(super) fn fact(&mut self, now: Time, names: &Names, fact: Fact) {
        self.oracles.observe(now, &fact);
        if let Some(log) = &mut self.log {
            log.fact(names, &fact);
        }
        if let Some(recording) = &mut self.recording {
            recording.fact(now, fact);
        }
    }

    /// Records a fault of a worker or of one of its requests.
    pub(super) fn fault(
        &mut self, now: Time, name: &'static str, worker: Option<usize>, request: Option<RequestNo>,
    ) {
        self.marks.set(name);
        if let Some(recording) = &mut self.recording {
            recording.fault(now, name, worker, request);
        }
    }

    /// Records a worker's notice.
    pub(super) fn told(&mut self, now: Time, w: usize, notice: &Notice) {
        if let Some(mark) = crate::marks::mark_of(notice) {
            self.marks.set(mark);
        }
        if let Some(recording) = &mut self.recording {
            recording.told(now, w, notice);
        }
    }

    /// Counts a mark.
    pub(super) fn mark(&mut self, mark: &'static str) {
        self.marks.set(mark);
    }

    /// Records the kind of a lease's state.
    pub(super) fn state(&mut self, kind: u32) {
        self.states.insert(kind);
    }

    /// From now on the row of a shard names this owner.
    pub(super) fn owned(&mut self, shard: ShardNo, owner: Option<&WorkerId>) {
        if let Some(log) = &mut self.log {
            log.owned(shard as usize, owner.cloned());
        }
    }

    /// Records a state change, in words.
    pub(super) fn line(&mut self, now: Time, names: &Names, line: impl FnOnce() -> String) {
        self.changes += 1;
        if let Some(log) = &mut self.log {
            log.line(now, names, &line());
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
