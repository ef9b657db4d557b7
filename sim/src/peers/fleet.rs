//! Which programs the workers of a world run.

use leasehold_engine::format::Format;
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
    /// kinsumer.
    Kinsumer,
    /// The Java KCL, version 2.
    #[serde(rename = "kcl-2")]
    Kcl2,
    /// The Java KCL, version 3.
    #[serde(rename = "kcl-3")]
    Kcl3,
}

impl Program {
    /// Its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::VmwareGoKcl => "vmware-go-kcl",
            Self::KclRb => "kcl-rb",
            Self::Kinsumer => "kinsumer",
            Self::Kcl2 => "kcl-2",
            Self::Kcl3 => "kcl-3",
        }
    }

    /// The format of its tables, unless any will do.
    fn format(self) -> Option<Format> {
        match self {
            Self::Leasehold => None,
            Self::VmwareGoKcl => Some(Format::VmwareGoKcl),
            Self::KclRb => Some(Format::KclRb),
            Self::Kinsumer => Some(Format::Kinsumer),
            Self::Kcl2 | Self::Kcl3 => Some(Format::Kcl),
        }
    }

    /// Whether it writes to a lease again and again, though there is nothing new.
    pub fn renews_leases(self) -> bool {
        !matches!(self, Self::KclRb | Self::Kinsumer)
    }

    /// Whether it keeps a lease from one read to the next; else it takes each anew, every second.
    pub fn keeps_leases(self) -> bool {
        self != Self::KclRb
    }
}

/// Which programs the workers are, and how the programs of others are used.
///
/// What these have in common with ours they take from the world's configuration: the lease's duration, the renewal
/// interval, how often shards are looked for (the scan interval; kinsumer: the members' intervals), the initial position, the
/// size of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Dealt out to the workers in turn; none: all are ours. Who has had its turn in an upgrade is ours from then on.
    pub programs: Vec<Program>,
    /// Whether programs that can do without take leases from each other to balance them.
    pub stealing: bool,
    /// The one name that every worker is given, ours too; else each has its own, and with other programs each life of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What applications do otherwise than checkpoint each batch after it was processed.
    pub application: Application,
    /// By what a leader of version 3 of the Java KCL shares leases out.
    #[serde(skip_serializing_if = "Assignment::is_default")]
    pub assignment: Assignment,
    /// Workers of version 3 of the Java KCL are started as in a fleet of version 2: they go over to the rules of version 3 when all report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub migrates: bool,
    /// Whether workers of version 3 of the Java KCL know each other from two tables beside the lease table, as 3.0 to 3.4 do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tables_beside: bool,
    /// Whether the lease table has the index of owners from its beginning. Else only workers that are to go over to version 3 create it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub owner_index: bool,
    /// Owners of version 3 of the Java KCL forget every second hand-over that they are asked for, as those before 3.5 may: they go on with the
    /// lease, and never let go. Their leader ends that, as later versions do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
}

/// By what a leader of version 3 of the Java KCL shares leases out: its `LeaseAssignmentStrategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// By their number: `LEASE_COUNT_BASED`.
    #[default]
    Count,
    /// By the load of the workers, the default of its users: `WORKER_UTILIZATION_AWARE`.
    Load,
}

impl Assignment {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
    /// Whether these programs can share a table of this format, under that name; if not, why, as a sentence.
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

    /// Whether one of the workers leads the others and assigns the leases, as in version 3 of the Java KCL.
    pub fn is_led(&self) -> bool {
        self.programs.contains(&Program::Kcl3)
    }

    /// Whether what the workers hold, they renew.
    pub fn renews_leases(&self) -> bool {
        self.programs.iter().all(|program| program.renews_leases())
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
        let fleet = Fleet { programs: vec![Program::VmwareGoKcl, Program::Leasehold], ..Fleet::default() };
        let dealt: Vec<_> = (0..3).map(|worker| fleet.program(worker).name()).collect();
        assert_eq!(dealt, ["vmware-go-kcl", "leasehold", "vmware-go-kcl"]);
        assert!(fleet.has_others(1) && !Fleet::default().has_others(9));
    }

    #[test]
    fn what_cannot_share_a_table_is_refused() {
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
