//! KCL 3.4: its workers report and elect their leader in two tables beside the lease table; and its replacement by
//! KCL 3.5 in the same tables. Our workers are members of a KCL 3.4 fleet, as of a KCL 3.5 fleet.

use super::super::{APPLICATION, Row};
use super::led::{self, ASSIGNED, SHARDS, Tables, beside, moves_without_repeats};
use crate::interop::fleet::{Fleet, program};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::account::text;
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::member::Member;
use leasehold_tests::wait::until;
use std::time::Duration;

/// A text of the row with this key in the coordinator's table.
async fn state(fleet: &Fleet, key: &str, name: &str) -> Option<String> {
    let rows = beside(fleet, "CoordinatorState").await;
    let row = rows.iter().find(|row| text(row, "key") == Some(key))?;
    text(row, name).map(str::to_owned)
}

/// No row of the fleet has come into the lease table.
async fn only_leases_in_the_lease_table(fleet: &Fleet) {
    let rows = fleet.world.rows(APPLICATION).await;
    let others = rows.iter().filter(|row| !row.contains_key("leaseCounter"));
    let others: Vec<_> = others.map(|row| text(row, "leaseKey")).collect();
    assert_eq!(others, Vec::<Option<&str>>::new(), "{}", fleet.test);
}

/// The leader of KCL 3.4 gives our worker a share of its own worker's leases, by hand-over, and takes the leases
/// back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_34_assigns_leases_to_ours_and_moves_them() {
    const TEST: &str = "kcl-34-assigning";
    let Some((fleet, producer, program)) = Fleet::with(TEST, Kcl::ThreeFour).await else {
        return;
    };
    let last = led::their_leader_assigns(&fleet, &program, Tables::Three).await;
    only_leases_in_the_lease_table(&fleet).await;
    fleet.finish(producer, vec![last]).await;
}

/// A worker of ours leads KCL 3.4, and assigns the dead leader's leases, and the children of a split. Then a worker
/// of KCL leads again.
#[tokio::test(flavor = "multi_thread")]
async fn ours_leads_workers_of_kcl_34_and_gives_the_lead_back() {
    const TEST: &str = "kcl-34-led-by-ours";
    let Some((fleet, producer, program)) = Fleet::with(TEST, Kcl::ThreeFour).await else {
        return;
    };
    let [mut lea, bert, carl] = led::ours_leads(&fleet, &program, Tables::Three).await;
    fleet.leave(&mut lea).await;
    let theirs = ["bert", "carl"];
    Tables::Three.until_leads(&fleet, &theirs, Duration::from_secs(90)).await;
    fleet.until_read_among("what lea read", &[1, 2, 3, 4], &theirs).await;
    moves_without_repeats(&fleet);
    only_leases_in_the_lease_table(&fleet).await;
    fleet.finish(producer, vec![bert, carl]).await;
}

/// Workers of KCL 3.4 are replaced by workers of KCL 3.5, one by one. A worker of ours runs all the time.
async fn replaced(fleet: &Fleet) -> Option<[Member; 3]> {
    let (Some(old), Some(new)) =
        (program(fleet.test, Kcl::ThreeFour).await, program(fleet.test, Kcl::Three).await)
    else {
        return None;
    };
    let mut anna = fleet.theirs(&old, "anna", ASSIGNED);
    fleet.until_read("anna to read all", SHARDS, &["anna"]).await;
    let lea = fleet.ours("lea");
    Tables::Three.until_reports(fleet, "lea").await;
    fleet.until_read("lea to be given a share", SHARDS, &["anna", "lea"]).await;
    let carl = fleet.theirs(&new, "carl", ASSIGNED);
    Tables::Three.until_reports(fleet, "carl").await;
    fleet.leave(&mut anna).await;
    fleet.until_read_among("what anna read", SHARDS, &["carl", "lea"]).await;
    Tables::Three.until_leads(fleet, &["carl"], Duration::from_secs(180)).await;
    let dora = fleet.theirs(&new, "dora", ASSIGNED);
    Tables::Three.until_reports(fleet, "dora").await;
    fleet.until_read_among("all shards to be read", SHARDS, &["carl", "dora", "lea"]).await;
    Some([lea, carl, dora])
}

/// Waits until the leader of KCL 3.5 has written this state of the fleet's move.
async fn until_moved(fleet: &Fleet, to: &str) {
    let what = format!("the fleet to be in the state {to}");
    until(&what, Duration::from_secs(300), || async {
        let now = state(fleet, "TableMigration3.5", "tm").await;
        now.is_some_and(|now| now == format!("TABLE_MIGRATION_STATUS_{to}"))
    })
    .await;
}

/// Moves the time of the state back by the waiting time of KCL's leader.
async fn age(fleet: &Fleet) {
    let update = fleet.world.dynamodb.update_item();
    let update = update.table_name(format!("{APPLICATION}-CoordinatorState"));
    let key = AttributeValue::S("TableMigration3.5".into());
    update
        .key("key", key)
        .update_expression("ADD mts :days")
        .condition_expression("attribute_exists(mts)")
        .expression_attribute_values(":days", AttributeValue::N("-864000000".into()))
        .send()
        .await
        .expect("the time of the state to be changed");
}

async fn until_ours_reports_in(fleet: &Fleet, lease_table: bool) {
    until("ours to report in one table alone", Duration::from_secs(60), || async {
        let here = fleet.world.rows(APPLICATION).await;
        let beside = beside(fleet, "WorkerMetricStats").await;
        let ours = |rows: &[Row]| {
            rows.iter().any(|row| row.contains_key("lut") && row.contains_key("leaseholdOwner"))
        };
        (ours(&here), ours(&beside)) == (lease_table, !lease_table)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_of_kcl_34_is_replaced_by_kcl_35_beside_ours() {
    const TEST: &str = "kcl-34-replaced";
    let (fleet, producer) = Fleet::start(TEST).await;
    let Some([lea, carl, dora]) = replaced(&fleet).await else {
        return;
    };
    // The leader waits for an hour in this state. Before, the leader has seen that every owner of a lease knows of
    // one table, ours included.
    until_moved(&fleet, "INIT").await;
    until_ours_reports_in(&fleet, false).await;
    moves_without_repeats(&fleet);
    fleet.world.split_first().await;
    fleet.until_read_among("the children of the split", &[1, 2, 3, 4], &["carl", "dora", "lea"]).await;
    only_leases_in_the_lease_table(&fleet).await;
    fleet.finish(producer, vec![lea, carl, dora]).await;
}

/// The whole way of a fleet of KCL 3.4 into the lease table, with ours in it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes more than two minutes: reports of workers that left must grow old"]
async fn a_fleet_of_kcl_34_moves_into_the_lease_table_with_ours_in_it() {
    const TEST: &str = "kcl-34-moved";
    const ONE_TABLE: &[&str] = &[
        "--assign-ms=6000",
        "--balance-every=1",
        "--lock-ms=6000",
        "--heartbeat-ms=1500",
        "--one-table=true",
    ];
    let (fleet, producer) = Fleet::start(TEST).await;
    let Some([lea, mut carl, mut dora]) = replaced(&fleet).await else {
        return;
    };
    let new = program(TEST, Kcl::Three).await.expect("it was there");
    until_moved(&fleet, "INIT").await;
    age(&fleet).await;
    until_moved(&fleet, "DEPLOYED").await;
    until_ours_reports_in(&fleet, true).await;

    let eva = fleet.theirs(&new, "eva", ONE_TABLE);
    fleet.leave(&mut carl).await;
    let finn = fleet.theirs(&new, "finn", ONE_TABLE);
    fleet.leave(&mut dora).await;
    fleet.until_read_among("what carl and dora read", SHARDS, &["eva", "finn", "lea"]).await;
    until_moved(&fleet, "PENDING").await;
    until_ours_reports_in(&fleet, true).await;
    age(&fleet).await;
    until_moved(&fleet, "COMPLETE").await;
    until("the lock to be in the lease table", Duration::from_secs(120), || async {
        let rows = fleet.world.rows(APPLICATION).await;
        let lock = rows.iter().find(|row| text(row, "leaseKey") == Some("Leader"));
        let leader = lock.and_then(|lock| text(lock, "ownerName")).map(str::to_owned);
        let beside = state(&fleet, "Leader", "ownerName").await;
        leader.is_some() && beside.is_none()
    })
    .await;
    fleet.world.split_first().await;
    fleet.until_read_among("the children of the split", &[1, 2, 3, 4], &["eva", "finn", "lea"]).await;
    moves_without_repeats(&fleet);
    let ours = fleet.ours("gina");
    until_ours_reports_in(&fleet, true).await;
    fleet.finish(producer, vec![lea, eva, finn, ours]).await;
}
