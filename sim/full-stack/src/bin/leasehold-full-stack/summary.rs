//! The reports about one world, and about all worlds.

use crate::fleet::line;
use leasehold_full_stack::verdict::{Counts, Verdict};
use leasehold_testing::harness::FAMILIES;
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};

/// So many worlds must show every family of faults and every kind of event.
const ALL_SEEN_AFTER: u64 = 100;
const EVENTS: [&str; 8] = ["split", "merge", "kill", "start", "pause", "cut", "shut-down", "subscribe"];

/// The outcome of one world.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// The world's verdict, after a run.
    pub verdict: Option<Verdict>,
    /// The reason why the world did not run.
    pub failure: Option<String>,
    /// The number of repetitions.
    pub repeats: u64,
    /// Whether the world ran with logging on, too.
    pub logged: bool,
    /// Differences of further runs.
    pub differences: Vec<String>,
    /// The report about a failure, with the faults that it needs.
    pub report: Option<String>,
}

impl Outcome {
    /// Compares another run of the same world.
    pub(crate) fn again(&mut self, other: Result<Verdict, String>, when: &str) {
        match (&self.verdict, other) {
            (Some(first), Ok(second)) if *first == second => {}
            (Some(first), Ok(second)) if first.digest != second.digest => {
                self.differences.push(format!("digest {} {when}", second.digest))
            }
            (_, Ok(_)) => self.differences.push(format!("another verdict {when}")),
            (_, Err(why)) => self.differences.push(format!("{when}, {why}")),
        }
    }

    fn complaints(&self) -> Vec<String> {
        let violations = self.verdict.iter().flat_map(|verdict| verdict.violations.iter());
        self.failure.iter().chain(violations).chain(&self.differences).cloned().collect()
    }

    /// Prints it.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub(crate) fn print(&self, json: bool, to: &mut impl Write) -> io::Result<()> {
        if json {
            let told = json!({
                "seed": self.seed, "verdict": self.verdict, "failure": self.failure,
                "repeats": self.repeats, "logged": self.logged, "differences": self.differences,
                "report": self.report,
            });
            return line(to, &told.to_string());
        }
        let complaints = self.complaints();
        let told = match &self.verdict {
            None => format!("seed {}: did not run", self.seed),
            Some(verdict) => format!(
                "seed {}: digest {}, {} s, {} records, {} calls, {} lives ({} killed), {}",
                self.seed,
                verdict.digest,
                verdict.lasted_ms / 1_000,
                verdict.records,
                verdict.calls,
                verdict.lives,
                verdict.killed,
                if complaints.is_empty() { "clean" } else { "NOT CLEAN" },
            ),
        };
        line(to, &told)?;
        for told in
            complaints.iter().map(String::as_str).chain(self.report.iter().flat_map(|text| text.lines()))
        {
            line(to, &format!("    {told}"))?;
        }
        Ok(())
    }
}

/// Counts in words.
fn listed(counts: &Counts) -> String {
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    each.join(", ")
}

/// The report about all worlds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    asked: u64,
    ran: u64,
    clean: u64,
    repeats: u64,
    logged: u64,
    differences: u64,
    virtual_seconds: u64,
    records: u64,
    lost: u64,
    repeated: u64,
    lives: u64,
    killed: u64,
    calls: u64,
    inputs_replayed: u64,
    events: Counts,
    faults: Counts,
    never_seen: Vec<&'static str>,
    dirty_seeds: Vec<u64>,
}

impl Summary {
    /// The summary of `asked` worlds before the first run.
    pub(crate) fn new(asked: u64) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Adds a world.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        if outcome.complaints().is_empty() {
            self.clean += 1;
        } else {
            self.dirty_seeds.push(outcome.seed);
            self.dirty_seeds.sort_unstable();
        }
        self.repeats += outcome.repeats;
        self.logged += u64::from(outcome.logged);
        self.differences += outcome.differences.len() as u64;
        let Some(verdict) = outcome.verdict else { return };
        self.ran += 1;
        self.virtual_seconds += verdict.lasted_ms / 1_000;
        self.records += verdict.records;
        self.lost += verdict.lost;
        self.repeated += verdict.repeated;
        self.lives += verdict.lives;
        self.killed += verdict.killed;
        self.calls += verdict.calls;
        self.inputs_replayed += verdict.inputs;
        for (all, one) in [(&mut self.events, verdict.events), (&mut self.faults, verdict.faults)] {
            for (name, count) in one {
                *all.entry(name).or_default() += count;
            }
        }
        self.never_seen = FAMILIES
            .iter()
            .filter(|family| !self.faults.contains_key(**family))
            .chain(EVENTS.iter().filter(|event| !self.events.contains_key(**event)))
            .copied()
            .collect();
    }

    /// Whether every world ran and is clean, and all worlds together showed every fault family.
    pub(crate) fn is_good(&self) -> bool {
        let all_seen = self.never_seen.is_empty() || self.asked < ALL_SEEN_AFTER;
        self.asked > 0 && self.ran == self.asked && self.clean == self.asked && all_seen
    }

    /// Prints it.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub(crate) fn print(&self, json: bool, to: &mut impl Write) -> io::Result<()> {
        if json {
            return line(to, &json!({ "summary": self, "good": self.is_good() }).to_string());
        }
        line(
            to,
            &format!(
                "{} of {} worlds ran, {} clean; {} run twice, {} with logging on, {} differences",
                self.ran, self.asked, self.clean, self.repeats, self.logged, self.differences
            ),
        )?;
        line(
            to,
            &format!(
                "{} s of virtual time, {} records ({} lost, {} processed more than once), {} lives of workers ({} killed), \
                 {} SDK calls executed, {} engine inputs replayed",
                self.virtual_seconds,
                self.records,
                self.lost,
                self.repeated,
                self.lives,
                self.killed,
                self.calls,
                self.inputs_replayed
            ),
        )?;
        line(to, &format!("events: {}", listed(&self.events)))?;
        line(to, &format!("requests: {}", listed(&self.faults)))?;
        if !self.never_seen.is_empty() {
            line(to, &format!("never seen: {}", self.never_seen.join(", ")))?;
        }
        if !self.dirty_seeds.is_empty() {
            line(to, &format!("not clean: {:?}", self.dirty_seeds))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(seed: u64) -> Verdict {
        Verdict { seed, ..Verdict::default() }
    }

    #[test]
    fn worlds_that_did_not_run_are_not_good() {
        assert!(!Summary::new(0).is_good());
        assert!(!Summary::new(1).is_good());
        let mut summary = Summary::new(2);
        for seed in 0..2 {
            summary.add(Outcome {
                seed,
                verdict: (seed == 0).then(|| verdict(0)),
                failure: (seed == 1).then(|| "it crashed".to_owned()),
                ..Outcome::default()
            });
        }
        assert!(!summary.is_good());
        assert_eq!(summary.dirty_seeds, [1]);
    }

    #[test]
    fn a_violation_or_a_difference_is_not_good() {
        let mut clean = Outcome { verdict: Some(verdict(7)), ..Outcome::default() };
        clean.again(Ok(verdict(7)), "in its second run");
        let mut summary = Summary::new(1);
        summary.add(clean);
        assert!(summary.is_good());

        let mut other = Outcome { verdict: Some(verdict(7)), ..Outcome::default() };
        other.again(Ok(verdict(8)), "in its second run");
        let mut summary = Summary::new(1);
        summary.add(other);
        assert!(!summary.is_good());

        let mut summary = Summary::new(1);
        let violations = vec!["lost".to_owned()];
        summary.add(Outcome { verdict: Some(Verdict { violations, ..verdict(7) }), ..Outcome::default() });
        assert!(!summary.is_good());
    }

    #[test]
    fn many_worlds_without_a_single_fault_are_not_good() {
        let mut summary = Summary::new(ALL_SEEN_AFTER);
        for seed in 0..ALL_SEEN_AFTER {
            summary.add(Outcome { seed, verdict: Some(verdict(seed)), ..Outcome::default() });
        }
        assert_eq!(summary.clean, ALL_SEEN_AFTER);
        assert!(!summary.is_good());
    }
}
