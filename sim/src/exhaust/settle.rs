//! The end of a path: no more faults, and all must come right without help.
//!
//! A paused worker goes on, a stopped worker is started again, late requests never land. Within a bound, each record
//! must be processed, and a live worker must process each shard left. Then all workers are told to stop. Afterwards no
//! lease may have an owner.

use super::step::First;
use super::world::World;
use crate::oracles::{Property, ShardNo, Time};
use leasehold_engine::position::Checkpoint;
use std::sync::Arc;

impl World {
    /// The time allowed until all is well: leases expire, are taken and settle; missing leases are found; and the
    /// records left are read.
    fn settling_bound(&self) -> Time {
        let config = self.scope.config();
        let records = u64::from(self.scope.records) + 4;
        6 * (config.lease_duration().0 + config.scan_interval().0)
            + records * config.reader().min_interval().0
    }

    /// Lets the world come right, and judges the result.
    pub(super) fn settle(&mut self) {
        self.tell(|_| "from here on nothing goes wrong".into());
        self.flights.retain(|flight| !flight.orphan);
        for flight in &mut self.flights {
            if flight.slow {
                Arc::make_mut(flight).slow = false;
            }
        }
        for w in 0..self.workers.len() {
            self.go_on(w, First::Answers);
        }
        let deadline = self.now + self.settling_bound();
        while let Some(unmet) = self.unmet() {
            for w in 0..self.workers.len() {
                if self.workers[w].ended {
                    self.start(w);
                }
            }
            if self.now > deadline {
                let bound = self.settling_bound() / 1_000_000;
                let now = self.now;
                let verdict = &mut self.truth_mut().oracles.verdict;
                verdict.report(Property::LeasesOwned, now, || {
                    format!("{bound} s after the last fault, {unmet}")
                });
                return;
            }
            self.go_straight_on();
            if !self.violations().is_empty() {
                return;
            }
        }
        for w in 0..self.workers.len() {
            if self.workers[w].runs() && !self.workers[w].stopping {
                self.ask_to_stop(w);
            }
        }
        let deadline = self.now + 2 * self.scope.config().shutdown_timeout().0 + 1_000_000;
        while self.workers.iter().any(|worker| !worker.ended) && self.now <= deadline {
            self.go_straight_on();
        }
    }

    /// The first unmet condition.
    fn unmet(&self) -> Option<String> {
        let stream = self.source.truth(0)?;
        for shard in stream.shards() {
            let number: ShardNo = shard.index().0;
            let records = shard.next_position() - 1;
            let done = self.truth.oracles.processed(number);
            if done < records {
                return Some(format!("{done} of the {records} records of shard {number} are processed"));
            }
            let row = self.truth.rows.get(number as usize).and_then(|row| row.now.as_ref());
            let ended = row.is_some_and(|row| row.checkpoint == Checkpoint::ShardEnd);
            if !shard.is_open() && !ended {
                return Some(format!("the end of shard {number} is not durable"));
            }
            let held = self.workers.iter().any(|worker| worker.runs() && worker.processes(number, self.now));
            if shard.is_open() && !held {
                return Some(format!("no worker processes shard {number}"));
            }
        }
        None
    }
}
