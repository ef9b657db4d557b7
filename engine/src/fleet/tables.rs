//! The two tables in which fleets of KCL 3.0 to 3.4 keep the rows by which workers know each other, and the migration
//! of KCL 3.5 from these tables into the lease table.
//!
//! | table | default name | hash key | rows |
//! |---|---|---|---|
//! | workers | `<application>-WorkerMetricStats` | `wid` | a report of each worker |
//! | coordinator | `<application>-CoordinatorState` | `key` | the leader's lock, the version of the fleet, and how far it is on its way |
//!
//! A worker of KCL 3.5 reads both these tables and the lease table until the migration is over. The row
//! `TableMigration3.5` decides the table of its writes: see [`TableMigration`].

use super::FleetWrite;
use crate::ids::LeaseKey;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The key of the row with the fleet's progress into the lease table.
pub const TABLE_MIGRATION_KEY: &str = "TableMigration3.5";

/// One of the two tables beside the lease table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetTable {
    /// Reports of workers.
    Workers,
    /// The leader's lock, and the states of migrations.
    Coordinator,
}

impl FleetTable {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Workers, Self::Coordinator];

    /// The table's name, if the application's programs keep the default name.
    pub fn default_name(self, application: &str) -> String {
        format!("{application}{}", self.default_suffix())
    }

    /// The length of the default name.
    pub(crate) fn default_length(self, application: &str) -> usize {
        application.len() + self.default_suffix().len()
    }

    fn default_suffix(self) -> &'static str {
        match self {
            FleetTable::Workers => "-WorkerMetricStats",
            FleetTable::Coordinator => "-CoordinatorState",
        }
    }
}

/// An operation on one of the two tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetTableOp {
    /// The table's state. A missing table is an answer, not a refusal.
    Describe,
    /// One page of rows, eventually consistent.
    Scan {
        /// Start after this key; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<LeaseKey>,
    },
    /// One write of a row. A failed guard is refused with `ConditionFailed`.
    Write(FleetWrite),
}

impl FleetTableOp {
    /// A short name for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            FleetTableOp::Describe => "describe a table of a KCL 3 fleet",
            FleetTableOp::Scan { .. } => "scan a table of a KCL 3 fleet",
            FleetTableOp::Write(write) => write.verb(),
        }
    }
}

/// A fleet's progress from three tables to one: `TableMigration3.5`. The fleet's leader takes the steps. Without this
/// row, no step was taken: a worker of KCL 3.0 to 3.4 takes none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableMigration {
    /// All workers know of one table, for less than an hour. Reports and states are written to the two tables.
    Init,
    /// All workers read all tables. Workers configured to go on write their reports to the lease table.
    Deployed,
    /// The two tables hold only the lock and this row, and this state is watched for a while.
    Pending,
    /// All is in the lease table, the lock too. The two tables are read no more.
    Complete,
    /// A state unknown to this library.
    Unknown(String),
}

/// What was found of the two tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FleetTablesNews {
    /// The tables exist, and are used.
    Found,
    /// All is in the lease table from now on.
    OneTable,
    /// The tables are gone.
    Gone,
    /// The row `TableMigration3.5` holds a state unknown to this library.
    Unknown {
        /// The state in the row.
        state: String,
    },
    /// The existence of the tables, or their content, could not be found out.
    Unreadable {
        /// The service's answer.
        detail: String,
    },
}

impl fmt::Display for FleetTablesNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetTablesNews::Found => f.write_str(
                "found the tables of a fleet of KCL 3.0 to 3.4: this worker reports there, and reads there which workers live and which \
                 one leads",
            ),
            FleetTablesNews::OneTable => f.write_str(
                "the fleet of KCL 3 has moved into the lease table: this worker reports there, and the tables beside it are read no more",
            ),
            FleetTablesNews::Gone => f.write_str(
                "the tables of a fleet of KCL 3.0 to 3.4 are gone: reports and the lock of the leader are looked for in the lease table",
            ),
            FleetTablesNews::Unknown { state } => write!(
                f,
                "the row {TABLE_MIGRATION_KEY} names {state:?}, expected a state from TABLE_MIGRATION_STATUS_INIT to \
                 TABLE_MIGRATION_STATUS_COMPLETE: this worker takes what is assigned to it, and does not lead; use a newer release of it"
            ),
            FleetTablesNews::Unreadable { detail } => write!(
                f,
                "could not find out whether a fleet of KCL 3.0 to 3.4 has tables beside the lease table: {detail}; a leader of such a fleet \
                 does not see this worker; allow DescribeTable and Scan on both, or switch the option `fleet_tables` off"
            ),
        }
    }
}
