//! News from the leader of a migration from KCL 2 to KCL 3.

use super::kind::Severity;
use super::stop::Count;
use crate::fleet::OWNER_INDEX;
use crate::ids::WorkerId;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the leader of a migration from KCL 2 to KCL 3 found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum MigrationNews {
    /// This owner of a lease, and as many more owners as `others` says, do not report: they may be workers of KCL 2.
    OwnerSilent { owner: WorkerId, others: u32 },
    /// The index in which workers of KCL 3 look is missing, or not ACTIVE yet.
    NoIndex,
    /// All owners of leases report, as many as `owners` says, and the index exists. The migration ends if both stay
    /// true for the time `stays`.
    Ready { owners: u32, stays: Span },
    /// This worker ended the migration: the fleet follows the rules of KCL 3 from now on.
    Ended { owners: u32 },
}

impl MigrationNews {
    /// The name and severity of the news.
    pub(super) fn kind(&self) -> (&'static str, Severity) {
        match self {
            MigrationNews::OwnerSilent { .. } | MigrationNews::NoIndex => ("migration-waits", Severity::Info),
            MigrationNews::Ready { .. } => ("migration-ready", Severity::Info),
            MigrationNews::Ended { .. } => ("migrated", Severity::Info),
        }
    }

    /// The worker besides ourselves in the news, if any.
    pub(super) fn other_worker(&self) -> Option<&WorkerId> {
        match self {
            MigrationNews::OwnerSilent { owner, .. } => Some(owner),
            _ => None,
        }
    }
}

impl fmt::Display for MigrationNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrationNews::OwnerSilent { owner, others } => {
                write!(f, "waits with the migration to KCL 3: {owner}")?;
                if *others > 0 {
                    write!(f, " and {}", Count(*others, "other owner", "other owners"))?;
                }
                f.write_str(
                    " of leases did not report for a minute; stop such workers if they are of KCL 2, or start them with \
                     CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X if they are of KCL 3",
                )
            }
            MigrationNews::NoIndex => write!(
                f,
                "waits with the migration to KCL 3: the lease table has no index {OWNER_INDEX} that is ACTIVE; workers of KCL 3 create \
                 it when they start with CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"
            ),
            MigrationNews::Ready { owners, stays } => write!(
                f,
                "all {} of leases report, and the index {OWNER_INDEX} is there: ends the migration to KCL 3 if that stays so for {stays}",
                Count(*owners, "owner", "owners")
            ),
            MigrationNews::Ended { owners } => write!(
                f,
                "ended the migration to KCL 3: all {} of leases report; a leader assigns leases from now on, and KCL's tool for \
                 operators can go back",
                Count(*owners, "owner", "owners")
            ),
        }
    }
}
