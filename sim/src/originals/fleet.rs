//! Which programs the workers of a world run.

use serde::{Deserialize, Serialize};

/// A program that a worker can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Ours.
    #[default]
    Leasehold,
    /// vmware-go-kcl, version 2.
    VmwareGoKcl,
    /// kcl-rb, version 1.
    KclRb,
}

impl Program {
    /// Its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::VmwareGoKcl => "vmware-go-kcl",
            Self::KclRb => "kcl-rb",
        }
    }

    /// Whether it keeps a lease from one read to the next; else it takes each anew, every second.
    pub fn keeps_leases(self) -> bool {
        self != Self::KclRb
    }
}

/// Which programs the workers are, and how the programs of others are used.
///
/// What these have in common with ours they take from the world's configuration: the lease's duration, the renewal
/// interval, how often shards are looked for (the scan interval), the initial position, the size of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Dealt out to the workers in turn; none: all are ours.
    pub programs: Vec<Program>,
    /// Whether programs that can do without take leases from each other to balance them.
    pub stealing: bool,
    /// The one name that every worker is given, ours too; else each has its own, and with other programs each life of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What applications do otherwise than checkpoint each batch after it was processed.
    pub application: Application,
}

/// An application on another's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// Checkpoints each batch after it was processed.
    #[default]
    Ordinary,
    /// Never checkpoints: it keeps its results, and its progress, in memory.
    Forgetful,
    /// Checkpoints without a position when it is told to stop, as it does at the end of a shard.
    EndsOnStop,
}

impl Fleet {
    /// What a worker is.
    pub fn program(&self, worker: usize) -> Program {
        match self.programs.len() {
            0 => Program::Leasehold,
            many => self.programs[worker % many],
        }
    }

    /// Whether what the workers hold, they keep.
    pub fn keeps_leases(&self) -> bool {
        self.programs.iter().all(|program| program.keeps_leases())
    }

    /// Whether a worker of so many is not ours.
    pub fn has_others(&self, workers: u32) -> bool {
        (0..workers as usize).any(|worker| self.program(worker) != Program::Leasehold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_dealt_out_in_turn() {
        let fleet = Fleet {
            programs: vec![Program::VmwareGoKcl, Program::Leasehold],
            ..Fleet::default()
        };
        let dealt: Vec<_> = (0..3).map(|worker| fleet.program(worker).name()).collect();
        assert_eq!(dealt, ["vmware-go-kcl", "leasehold", "vmware-go-kcl"]);
        assert!(fleet.has_others(1) && !Fleet::default().has_others(9));
    }
}
