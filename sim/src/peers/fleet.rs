//! The programs of a world's workers.

use crate::named::named;
use leasehold_engine::format::Format;
use serde::{Deserialize, Serialize};

named! {
    /// A worker's program.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Program by pub name {
        /// Our library.
        #[default]
        Leasehold = "leasehold",
        /// vmware-go-kcl, version 2.
        VmwareGoKcl = "vmware-go-kcl",
        /// kcl-rb, version 1.
        KclRb = "kcl-rb",
        /// kinsumer.
        Kinsumer = "kinsumer",
        /// The Java KCL, version 2.
        Kcl2 = "kcl-2",
        /// The Java KCL, version 3.
        Kcl3 = "kcl-3",
    }
}

impl Program {
    /// The format of the program's tables, unless the program can use any format.
    fn format(self) -> Option<Format> {
        match self {
            Self::Leasehold => None,
            Self::VmwareGoKcl => Some(Format::VmwareGoKcl),
            Self::KclRb => Some(Format::KclRb),
            Self::Kinsumer => Some(Format::Kinsumer),
            Self::Kcl2 | Self::Kcl3 => Some(Format::Kcl),
        }
    }

    /// Whether the program writes to a lease again and again, though no data is new.
    pub fn renews_leases(self) -> bool {
        !matches!(self, Self::KclRb | Self::Kinsumer)
    }

    /// Whether the program keeps a lease from one read to the next; else the program takes each lease anew, every
    /// second.
    pub fn keeps_leases(self) -> bool {
        self != Self::KclRb
    }
}

/// The programs of the workers, and the use of foreign programs.
///
/// Foreign programs take shared settings from the world's configuration: the lease's duration, the renewal interval,
/// the time between searches for shards (the scan interval; kinsumer: the members' intervals), the initial position,
/// the size of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// The programs, dealt out to the workers in turn; none: all workers are ours. After its turn in an upgrade, a
    /// worker is ours.
    pub programs: Vec<Program>,
    /// Whether programs with optional stealing take leases from each other for balance.
    pub stealing: bool,
    /// The one name of every worker, including ours. Else each worker has its own name, and with foreign programs each
    /// life of a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The application's policy for checkpoints: by default a checkpoint after each processed batch.
    pub application: Application,
    /// The strategy of a leader of version 3 of the Java KCL.
    #[serde(skip_serializing_if = "Assignment::is_default")]
    pub assignment: Assignment,
    /// Workers of version 3 of the Java KCL start as in a fleet of version 2, and change to the rules of version 3 when
    /// all workers report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub migrates: bool,
    /// Whether workers of version 3 of the Java KCL know each other from two tables beside the lease table, like 3.0 to
    /// 3.4.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tables_beside: bool,
    /// Whether the lease table has the index of owners from its beginning. Else only workers in migration to version 3
    /// create the index.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub owner_index: bool,
    /// Owners of version 3 of the Java KCL forget every second requested hand-over, like versions before 3.5: the owner
    /// keeps the lease and never lets go. Their leader ends the hand-over, like later versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
    /// The processes of the Java KCL that read by subscription under the application's consumer, KCL's default, in one of a
    /// thousand. The rest polls.
    #[serde(skip_serializing_if = "is_none")]
    pub fan_out: u32,
}

fn is_none(rate: &u32) -> bool {
    *rate == 0
}

/// The strategy by which a leader of version 3 of the Java KCL assigns leases: its `LeaseAssignmentStrategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// By the number of leases: `LEASE_COUNT_BASED`.
    #[default]
    Count,
    /// By the load of the workers, the default of KCL: `WORKER_UTILIZATION_AWARE`.
    Load,
}

impl Assignment {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An application on a foreign program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// Stores a checkpoint after each processed batch.
    #[default]
    Ordinary,
    /// Never stores a checkpoint: its results and its progress stay in memory.
    Forgetful,
    /// Stores a checkpoint without a position on a request to stop, as at the end of a shard.
    EndsOnStop,
}

impl Fleet {
    /// Whether these programs can share a table of this format under the configured name; if not, the reason as a
    /// sentence.
    pub(crate) fn check(&self, format: Format) -> Result<(), String> {
        for program in &self.programs {
            if program.format().is_some_and(|needed| needed != format) {
                return Err(format!(
                    "`fleet.programs`: expected programs of the format {format}, found {}",
                    program.name()
                ));
            }
        }
        if self.migrates && self.tables_beside {
            return Err(
                "`fleet.migrates`: expected a fleet whose rows are in the lease table, found `tables_beside`; remove one of them"
                    .to_owned(),
            );
        }
        let length = self.name.as_ref().map_or(1, String::len);
        if (1..=100).contains(&length) {
            Ok(())
        } else {
            Err(format!("`fleet.name`: expected 1 to 100 bytes, found {length}"))
        }
    }

    /// The program of a worker.
    pub fn program(&self, worker: usize) -> Program {
        match self.programs.len() {
            0 => Program::Leasehold,
            many => self.programs[worker % many],
        }
    }

    /// Whether all workers keep their leases between reads.
    pub fn keeps_leases(&self) -> bool {
        self.programs.iter().all(|program| program.keeps_leases())
    }

    /// Whether a worker leads the fleet and assigns the leases, as in version 3 of the Java KCL.
    pub fn is_led(&self) -> bool {
        self.programs.contains(&Program::Kcl3)
    }

    /// Whether all workers renew their leases.
    pub fn renews_leases(&self) -> bool {
        self.programs.iter().all(|program| program.renews_leases())
    }

    /// Whether any of this many workers is not ours.
    pub fn has_others(&self, workers: u32) -> bool {
        (0..workers as usize).any(|worker| self.program(worker) != Program::Leasehold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_dealt_out_in_turn() {
        let fleet = Fleet { programs: vec![Program::VmwareGoKcl, Program::Leasehold], ..Fleet::default() };
        let dealt: Vec<_> = (0..3).map(|worker| fleet.program(worker).name()).collect();
        assert_eq!(dealt, ["vmware-go-kcl", "leasehold", "vmware-go-kcl"]);
        assert!(fleet.has_others(1) && !Fleet::default().has_others(9));
    }

    #[test]
    fn programs_of_different_tables_are_refused() {
        let fleet = |programs: &[Program], name: Option<&str>| Fleet {
            programs: programs.to_vec(),
            name: name.map(str::to_owned),
            ..Fleet::default()
        };
        let mixed = fleet(&[Program::VmwareGoKcl, Program::Leasehold], Some("worker"));
        assert_eq!(mixed.check(Format::VmwareGoKcl), Ok(()));
        assert!(mixed.check(Format::Kinsumer).is_err());
        let members = fleet(&[Program::Kinsumer, Program::Leasehold], None);
        assert_eq!(members.check(Format::Kinsumer), Ok(()));
        for (wrong, word) in
            [(mixed, "vmware-go-kcl"), (members, "kinsumer"), (fleet(&[], Some("")), "1 to 100")]
        {
            let error = wrong.check(Format::Kcl).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
