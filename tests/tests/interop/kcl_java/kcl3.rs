//! KCL 3 as it runs by default: its leader assigns leases by load, to workers that report. Ours are members of such a fleet: they
//! report, take what is assigned to them, hand over what they are asked for, and lead when it is their turn.

use super::super::APPLICATION;
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::history::{self, Cause};
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::wait::until;
use std::time::Duration;

/// A leader that looks at the load in each run, and leads for some lease durations after its last sign of life. How often workers
/// report is left as it is by default: ours do so every 30 s.
const ASSIGNED: &[&str] = &[
    "--assign-ms=6000",
    "--balance-every=1",
    "--lock-ms=6000",
    "--heartbeat-ms=1500",
];

/// Looks for a lock that ran out as seldom as by default.
const SELDOM: &[&str] = &[
    "--assign-ms=6000",
    "--balance-every=1",
    "--lock-ms=120000",
    "--heartbeat-ms=30000",
];

async fn until_reports(fleet: &Fleet, who: &str) {
    until(&format!("{who} to report"), Duration::from_secs(60), || async {
        let rows = fleet.world.rows(APPLICATION).await;
        rows.iter().any(|row| {
            let key = row.get("leaseKey").and_then(|key| key.as_s().ok());
            key.is_some_and(|key| key.starts_with(who)) && row.contains_key("lut")
        })
    })
    .await;
}

async fn leader(fleet: &Fleet) -> Option<String> {
    let rows = fleet.world.rows(APPLICATION).await;
    rows.iter()
        .find_map(|row| row.get("ownerName")?.as_s().ok().cloned())
}

async fn until_leads(fleet: &Fleet, who: &str, within: Duration) {
    until(&format!("{who} to lead"), within, || async {
        leader(fleet).await.is_some_and(|leader| leader.starts_with(who))
    })
    .await;
}

/// A planned move between theirs and ours repeats no record, in either direction.
fn moves_without_repeats(fleet: &Fleet) {
    let mut planned = fleet.watch.handovers();
    planned.retain(|handover| handover.cause == Cause::Taken);
    assert!(
        planned.iter().all(|handover| handover.repeats == 0),
        "{}: expected that no planned move repeats a record, found\n{}",
        fleet.test,
        history::table(&planned)
    );
}

/// What a worker left in good order is not repeated.
fn left_without_repeats(fleet: &Fleet) {
    let mut left = fleet.watch.handovers();
    left.retain(|handover| handover.cause == Cause::Left);
    assert!(
        left.iter().all(|handover| handover.repeats == 0),
        "{}: expected that nothing comes again after a worker left, found\n{}",
        fleet.test,
        history::table(&left)
    );
}

/// The leader of KCL gives our worker a share of the leases that its own worker reads, by hand-over, and takes them back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_3_assigns_leases_to_ours_and_moves_them_by_hand_over() {
    const TEST: &str = "kcl-3-assigning";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let mut anna = fleet.theirs(&program, "anna", ASSIGNED);
    fleet.until_read("anna to read all", &[0, 1, 2], &["anna"]).await;
    until_leads(&fleet, "anna", Duration::from_secs(60)).await;
    let mut lea = fleet.ours("lea");
    fleet
        .until_read("lea to be given a share", &[0, 1, 2], &["anna", "lea"])
        .await;
    let given = fleet.watch.ledger().handing_over();
    assert!(given > 0, "{TEST}: the leader was to begin a hand-over");
    moves_without_repeats(&fleet);

    // A leader that assigns by load may leave a third worker without a lease.
    let mut bert = fleet.theirs(&program, "bert", ASSIGNED);
    fleet.world.split_first().await;
    fleet
        .until_read_among(
            "the children of the split",
            &[1, 2, 3, 4],
            &["anna", "bert", "lea"],
        )
        .await;
    fleet.leave(&mut lea).await;
    fleet
        .until_read_among("what lea read", &[1, 2, 3, 4], &["anna", "bert"])
        .await;
    left_without_repeats(&fleet);
    // The leader dies. Another worker of KCL leads, or ours.
    let eva = fleet.ours("eva");
    until_reports(&fleet, "eva").await;
    fleet.kill(&mut anna);
    fleet
        .until_read_among("what anna read", &[1, 2, 3, 4], &["bert", "eva"])
        .await;
    moves_without_repeats(&fleet);
    fleet.leave(&mut bert).await;
    fleet.until_read("all of it", &[1, 2, 3, 4], &["eva"]).await;
    println!(
        "{TEST}: {} hand-overs begun by the leader were seen",
        fleet.watch.ledger().handing_over()
    );
    fleet.finish(producer, vec![eva]).await;
}

/// A worker of ours leads: it assigns what the dead leader of KCL read, and the children of a split, to workers of KCL and to itself.
#[tokio::test(flavor = "multi_thread")]
async fn ours_leads_workers_of_kcl_3_and_assigns_leases_to_them() {
    const TEST: &str = "kcl-3-led-by-ours";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let mut anna = fleet.theirs(&program, "anna", ASSIGNED);
    fleet.until_read("anna to read all", &[0, 1, 2], &["anna"]).await;
    until_leads(&fleet, "anna", Duration::from_secs(60)).await;
    let carl = fleet.theirs(&program, "carl", SELDOM);
    let bert = fleet.theirs(&program, "bert", SELDOM);
    let lea = fleet.ours("lea");
    for who in ["bert", "carl", "lea"] {
        until_reports(&fleet, who).await;
    }
    // The lock runs out, and the others look for it only once in half a minute.
    fleet.kill(&mut anna);
    until_leads(&fleet, "lea", Duration::from_secs(60)).await;
    fleet
        .until_read_among("what anna read", &[0, 1, 2], &["bert", "carl", "lea"])
        .await;
    // The children have no owner until the leader gives them one.
    fleet.world.split_first().await;
    fleet
        .until_read_among(
            "the children of the split",
            &[1, 2, 3, 4],
            &["bert", "carl", "lea"],
        )
        .await;
    let holders = fleet.watch.ledger();
    let theirs = holders
        .now()
        .into_values()
        .filter(|lease| lease.holder() != "lea");
    assert!(
        theirs.count() > 0,
        "{TEST}: a worker of KCL was to be assigned a lease"
    );
    moves_without_repeats(&fleet);
    fleet.finish(producer, vec![lea, bert, carl]).await;
}
