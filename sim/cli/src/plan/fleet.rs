//! The live workers and the rule of assignment, as told by the rows of a fleet of KCL 3.x.

use leasehold_engine::fleet::{FleetLeader, FleetRow, FleetVersion, FleetWorker};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::internals::leader_assignment::{Rules, is_fresh, rules};
use leasehold_engine::policy::{Assign, Policies};
use leasehold_engine::row::RowRead;
use leasehold_engine::time::Wall;
use serde::Serialize;
use std::collections::BTreeMap;

/// The rule of assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Rule {
    /// `count`: each worker takes its share. `leader`: one worker assigns all leases. `rank`: each lease is one
    /// member's turn.
    pub(super) by: &'static str,
    /// The assigning worker.
    pub(super) leader: Option<String>,
    pub(super) detail: String,
}

/// The fleet's rows, and the last report of each worker.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// The reports in the table.
    workers: Vec<FleetWorker>,
    leader: Option<FleetLeader>,
    version: Option<FleetVersion>,
    /// The last report of each worker, in the table or elsewhere.
    reports: BTreeMap<WorkerId, FleetWorker>,
    now: Wall,
}

/// The last report of each worker. A worker may report into two tables.
pub(super) fn last_reports(heartbeats: &[FleetWorker]) -> BTreeMap<WorkerId, FleetWorker> {
    let mut reports: BTreeMap<WorkerId, FleetWorker> = BTreeMap::new();
    for report in heartbeats {
        let last = reports.entry(report.id.clone()).or_insert_with(|| report.clone());
        last.at = last.at.max(report.at);
    }
    reports
}

/// The reports in a lease table. Absent: reports exist, but all are old; the file may be old, too.
pub(super) fn in_table(rows: &[RowRead], now: Wall) -> Option<Vec<FleetWorker>> {
    let reports: Vec<FleetWorker> = rows.iter().filter_map(says).filter_map(worker).cloned().collect();
    let current = reports.is_empty() || reports.iter().any(|report| is_fresh(report, now));
    current.then_some(reports)
}

fn says(row: &RowRead) -> Option<&FleetRow> {
    match row {
        RowRead::Foreign { says, .. } => says.as_deref(),
        RowRead::Lease(_) | RowRead::Unreadable { .. } => None,
    }
}

fn worker(row: &FleetRow) -> Option<&FleetWorker> {
    match row {
        FleetRow::Worker(worker) => Some(worker),
        FleetRow::Leader(_) | FleetRow::Version(_) | FleetRow::Tables(_) => None,
    }
}

impl Fleet {
    /// The fleet of these rows and heartbeats at a time.
    pub(super) fn read(rows: &[RowRead], heartbeats: &[FleetWorker], now: Wall) -> Self {
        let mut fleet = Self { reports: last_reports(heartbeats), now, ..Self::default() };
        for row in rows.iter().filter_map(says) {
            match row {
                FleetRow::Worker(worker) => fleet.workers.push(worker.clone()),
                FleetRow::Leader(leader) => fleet.leader = Some(leader.clone()),
                FleetRow::Version(state) => fleet.version = Some(state.version.clone()),
                // The row names tables beside the lease table.
                FleetRow::Tables(_) => {}
            }
        }
        fleet
    }

    /// The workers with a fresh last report.
    pub(super) fn reporting(&self) -> impl Iterator<Item = &WorkerId> {
        let fresh = self.reports.values().filter(|report| is_fresh(report, self.now));
        fresh.map(|report| &report.id)
    }

    /// Whether a worker's reports have stopped. An owner without a name is no worker: a script writes such rows.
    pub(super) fn is_dead(&self, worker: &WorkerId) -> bool {
        let report = self.reports.get(worker);
        worker.as_str().is_empty() || report.is_some_and(|report| !is_fresh(report, self.now))
    }

    /// The table's reports of live workers.
    pub(super) fn live(&self) -> impl Iterator<Item = &FleetWorker> {
        self.workers.iter().filter(|report| is_fresh(report, self.now))
    }

    /// Whether workers report how busy their hosts are.
    pub(super) fn measures(&self) -> bool {
        self.live().any(|worker| !worker.metrics.is_empty())
    }

    /// Whether a worker runs this library, as told by its report.
    pub(super) fn is_ours(&self, worker: &WorkerId) -> Option<bool> {
        let report = self.workers.iter().find(|report| report.id == *worker);
        report.map(|report| report.ours)
    }

    /// The rules of the worker's engine.
    pub(super) fn rules(&self) -> Rules {
        rules(self.version.as_ref(), self.live().any(|worker| !worker.ours))
    }

    /// The worker that assigns leases, with the reason.
    pub(super) fn leader(&self) -> Option<(&WorkerId, String)> {
        let lock = self.leader.as_ref();
        let holds = |lock: &&FleetLeader| !lock.released && self.live().any(|worker| worker.id == lock.id);
        if let Some(lock) = lock.filter(holds) {
            return Some((&lock.id, format!("{} holds the lock of the leader", lock.id)));
        }
        let first = self.live().map(|worker| &worker.id).min()?;
        let why = match lock {
            None => "no worker leads".to_owned(),
            Some(lock) if lock.released => format!("{} gave up to lead", lock.id),
            Some(lock) => format!("the leader {} does not report any more", lock.id),
        };
        Some((first, format!("{why}: one of the live workers takes the lock, here {first}")))
    }

    /// The rule that holds. `load`: a leader assigns by load, and not by count.
    pub(super) fn rule(&self, policies: Policies, load: bool) -> Rule {
        if policies.assign == Assign::Rank {
            return Rule {
                by: "rank",
                leader: None,
                detail: "each lease is the turn of one member, by a table of members that this command does not read".into(),
            };
        }
        let version = self.version.as_ref().map_or("no version", FleetVersion::as_str);
        let own = "each worker takes its share of the leases, counted by the owners in the rows";
        match (self.rules(), self.leader()) {
            (Rules::Led, Some((leader, why))) => {
                let how = if load { "load" } else { "number of leases" };
                let theirs = match self.is_ours(leader) {
                    Some(false) => "; it is a worker of another library, whose own rule differs a little",
                    _ => "",
                };
                Rule {
                    by: "leader",
                    leader: Some(leader.to_string()),
                    detail: format!(
                        "{leader} assigns leases by {how}, as {version} says, and {why}{theirs}; no other worker takes any"
                    ),
                }
            }
            (Rules::Own, _) => count(match self.version {
                None => own.to_owned(),
                Some(_) => format!("{own}, as {version} says"),
            }),
            _ => count(format!(
                "{own}, as no leader assigns them yet: the table says {version}, and {} workers of another library report",
                self.live().filter(|worker| !worker.ours).count()
            )),
        }
    }
}

fn count(detail: String) -> Rule {
    Rule { by: "count", leader: None, detail }
}
