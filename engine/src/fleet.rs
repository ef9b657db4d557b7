//! The rows by which workers of KCL 3.x know each other: which workers live, the load of each, the leader, and the
//! version whose rules the fleet follows. They lie in the lease table, beside the leases (KCL 3.5 and later), or in two
//! tables of their own ([`FleetTable`]).
//!
//! | row | key | who writes it |
//! |---|---|---|
//! | worker metrics | the worker's name | every worker of a KCL 3.x fleet, every [`REPORT_INTERVAL`] |
//! | leader lock | `Leader` | the leader, every [`LEADER_BEAT`], as the DynamoDB lock client does |
//! | client version | `Migration3.0` | the first worker of KCL 3.x, the leader that ends a migration, or an operator's tool |
//!
//! A worker of KCL 3.x takes no lease. The leader assigns free and expired leases to workers whose metrics are fresh, and moves
//! leases of busy workers by a hand-over.

mod tables;

pub use tables::{FleetTable, FleetTableOp, FleetTablesNews, TABLE_MIGRATION_KEY, TableMigration};

use crate::ids::{LeaseKey, WorkerId};
use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};

/// How often a worker reports: KCL's `workerMetricsReporterFreqInMillis`.
pub const REPORT_INTERVAL: Span = Span::from_secs(30);
/// After so long without a new report, a worker counts as dead: twice the reporter's interval in KCL.
pub const WORKER_EXPIRY: Span = Span::from_secs(60);
/// Reports older than this are removed: KCL's `staleWorkerMetricsEntryCleanupDuration`.
pub const FORGET_AFTER: Span = Span::from_secs(86_400);
/// How long the lock of a leader of ours lasts after its last renewal. KCL's lasts 120 s. A row with a lock says how
/// long the lock lasts, and workers of KCL wait for as long as the row says: so a successor follows a dead leader of
/// ours after 20 s.
pub const LEADER_LEASE: Span = Span::from_secs(20);
/// How often a leader of ours renews its lock: KCL's leader renews its lock every 30 s.
pub const LEADER_BEAT: Span = Span::from_secs(5);
/// A lock counts as lasting for at least this time.
const LEAST_LEADER_LEASE: Span = Span::from_secs(1);
/// How often the leader looks whether a migration can end: as often as KCL's.
pub const MIGRATION_LOOK: Span = Span::from_secs(60);
/// By when every worker of KCL has noticed that a migration has ended: it looks once a minute, and begins up to half a minute late.
pub const MIGRATION_NOTICED: Span = Span::from_secs(90);
/// How many earlier states the row of the version names, in KCL.
pub const MIGRATION_HISTORY: usize = 10;
/// The index over the owners of leases. Workers of KCL 3.x look in this index for leases assigned to them.
pub const OWNER_INDEX: &str = "LeaseOwnerToLeaseKeyIndex";
/// The key of the leader's lock.
pub const LEADER_KEY: &str = "Leader";
/// The key of the row that tells the version of the fleet.
pub const VERSION_KEY: &str = "Migration3.0";

/// The contents of a row of a fleet of KCL 3.x.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetRow {
    /// A worker lives.
    Worker(FleetWorker),
    /// A worker leads.
    Leader(FleetLeader),
    /// The fleet works by the rules of a version.
    Version(FleetState),
    /// The fleet's progress on the way from three tables to one.
    Tables(TableMigration),
}

/// A worker's report.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FleetWorker {
    /// The worker.
    pub id: WorkerId,
    /// The time of the worker's report, in whole seconds since 1970 by the worker's own clock.
    pub at: i64,
    /// Whether the reporting worker is a worker of this library.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// Whether the worker knows of fleets whose rows all lie in the lease table: KCL 3.5 and later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_table: bool,
    /// The worker's measurements of its host. None: the worker measures nothing, and the throughput of its leases is
    /// its load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<FleetMetric>,
}

/// A metric of a worker's host, such as its CPU (`C`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FleetMetric {
    /// KCL's short name.
    pub name: String,
    /// The last values, the oldest first, in millionths of a percent; negative: the metric could not be measured.
    pub recent: Vec<i64>,
    /// The most that the metric may rise to, in millionths of a percent.
    pub limit: i64,
}

/// The lock of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FleetLeader {
    /// The leading worker.
    pub id: WorkerId,
    /// Changes with every renewal of the lock.
    pub version: String,
    /// For how long the lock lasts after it was renewed, in milliseconds.
    pub lease_ms: u64,
    /// The leader gave the lock up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

impl FleetLeader {
    /// For how long the lock lasts after a renewal.
    pub(crate) fn lasts(&self) -> Span {
        Span(self.lease_ms.saturating_mul(1_000)).max(LEAST_LEADER_LEASE)
    }
}

/// The version whose rules a fleet follows, and how the fleet arrived at this version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FleetState {
    /// The version.
    pub version: FleetVersion,
    /// The writer of the row, and the time of the write, in milliseconds since 1970. None: the row does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<(String, i64)>,
    /// The states before it, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<FleetStep>,
}

/// A state that a fleet was in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FleetStep {
    /// The version, as the row spells it.
    pub version: String,
    /// The writer.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

impl From<FleetVersion> for FleetState {
    fn from(version: FleetVersion) -> Self {
        Self { version, written: None, before: Vec::new() }
    }
}

impl FleetState {
    /// The states before the next state, the newest first.
    pub(crate) fn history(&self) -> Vec<FleetStep> {
        let now = self.written.as_ref().map(|(by, at)| FleetStep {
            version: self.version.as_str().to_owned(),
            by: by.clone(),
            at: *at,
        });
        let all = now.into_iter().chain(self.before.iter().cloned());
        all.take(MIGRATION_HISTORY).collect()
    }
}

/// The version by whose rules a fleet works.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetVersion {
    /// `CLIENT_VERSION_UPGRADE_FROM_2X`: by the rules of KCL 2.x, until all workers report.
    UpgradeFrom2x,
    /// `CLIENT_VERSION_2X`: by those of KCL 2.x, after a rollback.
    Version2x,
    /// `CLIENT_VERSION_3X_WITH_ROLLBACK`: by those of KCL 3.x, and an operator may still go back.
    Version3xWithRollback,
    /// `CLIENT_VERSION_3X`: by the rules of KCL 3.x.
    Version3x,
    /// A version unknown to this library.
    Unknown(String),
}

impl FleetVersion {
    /// The version with this spelling in rows.
    pub fn of(text: &str) -> Self {
        let known = [Self::UpgradeFrom2x, Self::Version2x, Self::Version3xWithRollback, Self::Version3x];
        let found = known.into_iter().find(|version| version.as_str() == text);
        found.unwrap_or_else(|| Self::Unknown(text.to_owned()))
    }

    /// The version's spelling in rows.
    pub fn as_str(&self) -> &str {
        match self {
            Self::UpgradeFrom2x => "CLIENT_VERSION_UPGRADE_FROM_2X",
            Self::Version2x => "CLIENT_VERSION_2X",
            Self::Version3xWithRollback => "CLIENT_VERSION_3X_WITH_ROLLBACK",
            Self::Version3x => "CLIENT_VERSION_3X",
            Self::Unknown(text) => text,
        }
    }
}

/// A write of such a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetWrite {
    /// Report that this worker lives, over any earlier row.
    Report {
        /// Us.
        worker: WorkerId,
        /// In whole seconds since 1970.
        at: i64,
        /// Whether the adapter is to put in how busy the host's CPU is, as other workers do. Without such workers,
        /// loads of two kinds would stand side by side.
        measure: bool,
        /// The adapter's values: the last values, the oldest first, in millionths of a percent. The engine leaves the
        /// list empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cpu: Vec<i64>,
    },
    /// Remove our own report.
    Leave {
        /// Us.
        worker: WorkerId,
    },
    /// Remove the report of a worker that died long ago, if the row is unchanged since the read.
    Forget {
        /// The worker.
        worker: WorkerId,
        /// The time of the report, as read.
        at: i64,
    },
    /// Take the leader's lock, if the row is unchanged since the read.
    Lead {
        /// Us.
        worker: WorkerId,
        /// The version that the write leaves.
        version: String,
        /// The version as read; absent: no lock was found.
        seen: Option<String>,
    },
    /// Renew the lock, if it is ours.
    Beat {
        /// Us.
        worker: WorkerId,
        /// The version that the write leaves.
        version: String,
        /// The versions that our last writes may have left.
        seen: Vec<String>,
    },
    /// Give the lock up, if it is ours.
    StepDown {
        /// Us.
        worker: WorkerId,
        /// The versions that our last writes may have left.
        seen: Vec<String>,
    },
    /// End the migration from the rules of KCL 2 to those of KCL 3, if the state is unchanged since the read.
    Migrate {
        /// Us.
        worker: WorkerId,
        /// When, in milliseconds since 1970.
        at: i64,
        /// The state as read.
        seen: Box<FleetState>,
    },
}

impl FleetWrite {
    /// The primary key of the row.
    pub fn key(&self) -> LeaseKey {
        match self {
            FleetWrite::Report { worker, .. }
            | FleetWrite::Leave { worker }
            | FleetWrite::Forget { worker, .. } => LeaseKey::from(worker.as_str()),
            FleetWrite::Lead { .. } | FleetWrite::Beat { .. } | FleetWrite::StepDown { .. } => {
                LeaseKey::from(LEADER_KEY)
            }
            FleetWrite::Migrate { .. } => LeaseKey::from(VERSION_KEY),
        }
    }

    /// A short name for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            FleetWrite::Report { .. } => "report the worker's metrics",
            FleetWrite::Leave { .. } => "remove the worker's metrics",
            FleetWrite::Forget { .. } => "remove the metrics of a dead worker",
            FleetWrite::Lead { .. } => "take the leader's lock",
            FleetWrite::Beat { .. } => "renew the leader's lock",
            FleetWrite::StepDown { .. } => "give up the leader's lock",
            FleetWrite::Migrate { .. } => "end the migration to KCL 3",
        }
    }
}

/// A time as reports tell it.
pub(crate) fn seconds(wall: Wall) -> i64 {
    wall.0.div_euclid(1_000)
}
