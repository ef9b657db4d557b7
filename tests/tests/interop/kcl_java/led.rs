//! Scenes of a fleet under a leader of KCL 3 or of ours. Workers report and elect the leader in the lease table, as
//! in KCL 3.5, or in two tables beside the lease table, as in KCL 3.0 to 3.4.

use super::super::{APPLICATION, Row};
use crate::interop::fleet::Fleet;
use leasehold_tests::account::text;
use leasehold_tests::history::{self, Cause};
use leasehold_tests::kcl_java::Program;
use leasehold_tests::member::Member;
use leasehold_tests::wait::until;
use std::time::Duration;

/// A leader with a look at the load in each run, leading for some lease durations after its last sign of life. The
/// interval of workers' reports stays at its default: our workers report every 30 s.
pub(super) const ASSIGNED: &[&str] =
    &["--assign-ms=6000", "--balance-every=1", "--lock-ms=6000", "--heartbeat-ms=1500"];

/// Looks for a lock that ran out as seldom as by default.
const SELDOM: &[&str] =
    &["--assign-ms=6000", "--balance-every=1", "--lock-ms=120000", "--heartbeat-ms=30000"];

pub(super) const SHARDS: &[u32] = &[0, 1, 2];
const AFTER_SPLIT: &[u32] = &[1, 2, 3, 4];
const SOON: Duration = Duration::from_secs(60);

/// Where workers know each other from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tables {
    /// The lease table.
    One,
    /// Two tables beside it.
    Three,
}

/// The rows of a table beside the lease table.
pub(super) async fn beside(fleet: &Fleet, suffix: &str) -> Vec<Row> {
    fleet.world.rows(&format!("{APPLICATION}-{suffix}")).await
}

impl Tables {
    /// The rows with the reports, and the attribute that names their workers.
    async fn reports(self, fleet: &Fleet) -> (Vec<Row>, &'static str) {
        match self {
            Tables::One => (fleet.world.rows(APPLICATION).await, "leaseKey"),
            Tables::Three => (beside(fleet, "WorkerMetricStats").await, "wid"),
        }
    }

    pub(super) async fn leader(self, fleet: &Fleet) -> Option<String> {
        let rows = match self {
            Tables::One => fleet.world.rows(APPLICATION).await,
            Tables::Three => beside(fleet, "CoordinatorState").await,
        };
        let owner = rows.iter().find_map(|row| text(row, "ownerName"));
        owner.map(str::to_owned)
    }

    pub(super) async fn until_reports(self, fleet: &Fleet, who: &str) {
        until(&format!("{who} to report"), SOON, || async {
            let (rows, name) = self.reports(fleet).await;
            let reports = |row: &Row| text(row, name).is_some_and(|id| id.starts_with(who));
            rows.iter().any(|row| reports(row) && row.contains_key("lut"))
        })
        .await;
    }

    /// Until one of these leads.
    pub(super) async fn until_leads(self, fleet: &Fleet, who: &[&str], within: Duration) {
        until(&format!("one of {who:?} to lead"), within, || async {
            let leader = self.leader(fleet).await;
            leader.is_some_and(|leader| who.iter().any(|who| leader.starts_with(who)))
        })
        .await;
    }
}

/// A planned move between theirs and ours, and what a worker left in good order, repeats no record, in either direction.
pub(super) fn moves_without_repeats(fleet: &Fleet) {
    let mut planned = fleet.watch.handovers();
    planned.retain(|handover| handover.cause != Cause::Killed);
    assert!(
        planned.iter().all(|handover| handover.repeats == 0),
        "{}: expected that no planned move repeats a record, found\n{}",
        fleet.test,
        history::table(&planned)
    );
}

/// The leader of KCL gives our worker a share of its own worker's leases, by hand-over, and takes the leases back.
/// The leader dies, and the last worker, ours, has all leases in the end.
pub(super) async fn their_leader_assigns(fleet: &Fleet, program: &Program, tables: Tables) -> Member {
    let mut anna = fleet.theirs(program, "anna", ASSIGNED);
    fleet.until_read("anna to read all", SHARDS, &["anna"]).await;
    tables.until_leads(fleet, &["anna"], SOON).await;
    let mut lea = fleet.ours("lea");
    tables.until_reports(fleet, "lea").await;
    fleet.until_read("lea to be given a share", SHARDS, &["anna", "lea"]).await;
    let given = fleet.watch.ledger().handing_over();
    assert!(given > 0, "{}: the leader was to begin a hand-over", fleet.test);
    moves_without_repeats(fleet);

    // A leader that assigns by load may leave a third worker without a lease.
    let mut bert = fleet.theirs(program, "bert", ASSIGNED);
    fleet.world.split_first().await;
    fleet.until_read_among("the children of the split", AFTER_SPLIT, &["anna", "bert", "lea"]).await;
    fleet.leave(&mut lea).await;
    fleet.until_read_among("what lea read", AFTER_SPLIT, &["anna", "bert"]).await;
    moves_without_repeats(fleet);
    // The leader dies. Another worker of KCL leads, or ours.
    let eva = fleet.ours("eva");
    tables.until_reports(fleet, "eva").await;
    fleet.kill(&mut anna);
    fleet.until_read_among("what anna read", AFTER_SPLIT, &["bert", "eva"]).await;
    moves_without_repeats(fleet);
    fleet.leave(&mut bert).await;
    fleet.until_read("all of it", AFTER_SPLIT, &["eva"]).await;
    moves_without_repeats(fleet);
    eva
}

/// A worker of ours leads: our leader assigns the dead KCL leader's leases, and the children of a split, to workers
/// of KCL and to our worker. Our worker comes first among the remaining workers.
pub(super) async fn ours_leads(fleet: &Fleet, program: &Program, tables: Tables) -> [Member; 3] {
    let mut anna = fleet.theirs(program, "anna", ASSIGNED);
    fleet.until_read("anna to read all", SHARDS, &["anna"]).await;
    tables.until_leads(fleet, &["anna"], SOON).await;
    let carl = fleet.theirs(program, "carl", SELDOM);
    let bert = fleet.theirs(program, "bert", SELDOM);
    let lea = fleet.ours("lea");
    for who in ["bert", "carl", "lea"] {
        tables.until_reports(fleet, who).await;
    }
    // The lock runs out, and the remaining workers look for the lock only once in half a minute.
    fleet.kill(&mut anna);
    tables.until_leads(fleet, &["lea"], SOON).await;
    fleet.until_read_among("what anna read", SHARDS, &["bert", "carl", "lea"]).await;
    // The children have no owner until the leader assigns them.
    fleet.world.split_first().await;
    fleet.until_read_among("the children of the split", AFTER_SPLIT, &["bert", "carl", "lea"]).await;
    let ledger = fleet.watch.ledger();
    let theirs = ledger.now().into_values().filter(|lease| lease.holder() != "lea");
    assert!(theirs.count() > 0, "{}: a worker of KCL was to be assigned a lease", fleet.test);
    moves_without_repeats(fleet);
    [lea, bert, carl]
}
