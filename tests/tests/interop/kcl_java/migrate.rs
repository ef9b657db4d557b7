//! The migration of a fleet from the rules of KCL 2 to those of KCL 3, with a worker of ours in it all the time, and the rollback.
//!
//! The leader of KCL migrates when every owner of a lease has reported for ten minutes: this test runs at night only.
//! Our leader is told to wait for less; all workers of KCL follow within a minute and a half.

use super::super::APPLICATION;
use super::beside::LIKE_KCL_2;
use super::led::Tables;
use crate::interop::fleet::{Fleet, like_theirs, program};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::wait::until;
use std::time::Duration;

const SHARDS: &[u32] = &[0, 1, 2];
/// Ten minutes, and the pauses between the leader's looks.
const MIGRATED: Duration = Duration::from_secs(900);
/// Every worker looks once a minute and a half.
const FOLLOWED: Duration = Duration::from_secs(120);

/// The text of this attribute in the row of this key.
async fn said(fleet: &Fleet, key: &str, attribute: &str) -> Option<String> {
    let rows = fleet.world.rows(APPLICATION).await;
    let row = rows.iter().find(|row| row["leaseKey"].as_s().is_ok_and(|found| found == key))?;
    row.get(attribute)?.as_s().ok().cloned()
}

/// All owners are to report for a few seconds only.
const SOON_MIGRATED: &[&str] = like_theirs!("--fleet-migration-wait=10 s");

/// The states in the row, the newest first: each state and its writer.
async fn states(fleet: &Fleet) -> Vec<(String, String)> {
    let rows = fleet.world.rows(APPLICATION).await;
    let key = |row: &&_| {
        let row: &std::collections::HashMap<String, AttributeValue> = row;
        row["leaseKey"].as_s().is_ok_and(|key| key == "Migration3.0")
    };
    let row = rows.iter().find(key).expect("the state of the migration");
    let earlier = row["h"].as_l().expect("a list").iter();
    let maps = std::iter::once(row).chain(earlier.map(|step| step.as_m().expect("a map")));
    let text = |map: &std::collections::HashMap<String, AttributeValue>, name: &str| {
        map[name].as_s().expect("a text").clone()
    };
    maps.map(|map| (text(map, "cv"), text(map, "mb"))).collect()
}

async fn version(fleet: &Fleet) -> Option<String> {
    said(fleet, "Migration3.0", "cv").await
}

/// What KCL's tool for operators writes.
async fn roll_back(fleet: &Fleet) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    fleet
        .world
        .dynamodb
        .update_item()
        .table_name(APPLICATION)
        .key("leaseKey", text("Migration3.0"))
        .update_expression("SET cv = :to, mb = :by")
        .condition_expression("cv = :from")
        .expression_attribute_values(":to", text("CLIENT_VERSION_2X"))
        .expression_attribute_values(":by", text("KclMigrationTool-rollback"))
        .expression_attribute_values(":from", text("CLIENT_VERSION_3X_WITH_ROLLBACK"))
        .send()
        .await
        .expect("the state to be changed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a quarter of an hour: the leader of KCL waits for ten minutes"]
async fn a_fleet_migrates_to_kcl_3_and_rolls_back_with_ours_in_it() {
    const TEST: &str = "kcl-migration";
    let (Some(two), Some(three)) = (program(TEST, Kcl::Two).await, program(TEST, Kcl::Three).await) else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let lea = fleet.ours("lea");
    let mut anna = fleet.theirs(&two, "anna", &[]);
    fleet.until_read("anna and lea to share the shards", SHARDS, &["anna", "lea"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("lea to read all", SHARDS, &["lea"]).await;
    let mut bert = fleet.theirs(&three, "bert", LIKE_KCL_2);
    fleet.until_read("bert to get a share", SHARDS, &["bert", "lea"]).await;
    assert_eq!(version(&fleet).await.as_deref(), Some("CLIENT_VERSION_UPGRADE_FROM_2X"));
    until("the fleet to go over", MIGRATED, || async {
        version(&fleet).await.as_deref() == Some("CLIENT_VERSION_3X_WITH_ROLLBACK")
    })
    .await;
    until("a worker to lead by the lock", FOLLOWED, || async {
        said(&fleet, "Leader", "ownerName").await.is_some()
    })
    .await;
    let carl = fleet.theirs(&three, "carl", LIKE_KCL_2);
    Tables::One.until_reports(&fleet, "carl").await;
    // By load, a leader of KCL may leave a third worker without a lease. The leases of a leaving worker go to the
    // worker without a lease.
    fleet.leave(&mut bert).await;
    fleet.until_owned_within("carl to be given what bert left", SHARDS, &["carl", "lea"], FOLLOWED).await;
    fleet.until_read("carl to read it", SHARDS, &["carl", "lea"]).await;

    roll_back(&fleet).await;
    until("ours to take its report back", FOLLOWED, || async {
        let rows = fleet.world.rows(APPLICATION).await;
        !rows.iter().any(|row| row.contains_key("lut") && row.contains_key("leaseholdOwner"))
    })
    .await;
    let dora = fleet.theirs(&three, "dora", LIKE_KCL_2);
    tokio::time::sleep(FOLLOWED).await;
    assert_eq!(version(&fleet).await.as_deref(), Some("CLIENT_VERSION_2X"));
    fleet.until_read_among("all shards to be read", SHARDS, &["carl", "dora", "lea"]).await;
    fleet.finish(producer, vec![lea, carl, dora]).await;
}

/// The first of two owners by name leads, and the first is ours. KCL's workers read our leader's states: running
/// workers follow, and a worker starting with the default configuration completes the migration.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes four minutes: workers of KCL look once a minute"]
async fn ours_leads_a_fleet_to_the_rules_of_kcl_3() {
    const TEST: &str = "kcl-migration-led-by-ours";
    let Some(three) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let ada = fleet.ours_with("ada", SOON_MIGRATED);
    fleet.until_read("ada to read all", SHARDS, &["ada"]).await;
    let bert = fleet.theirs(&three, "bert", LIKE_KCL_2);
    fleet.until_read("bert to get a share", SHARDS, &["ada", "bert"]).await;
    until("the fleet to go over", FOLLOWED, || async {
        version(&fleet).await.as_deref() == Some("CLIENT_VERSION_3X_WITH_ROLLBACK")
    })
    .await;
    let [ended, begun, ..] = &states(&fleet).await[..] else {
        panic!("{TEST}: expected that the row names the state before")
    };
    assert!(ended.1.starts_with("ada"), "{TEST}: {ended:?}");
    assert_eq!((begun.0.as_str(), begun.1.as_str()), ("CLIENT_VERSION_UPGRADE_FROM_2X", "bert"));
    until("a worker to lead by the lock", FOLLOWED * 2, || async {
        said(&fleet, "Leader", "ownerName").await.is_some()
    })
    .await;
    // carl reads the whole row at the start, and writes the last state.
    let carl = fleet.theirs(&three, "carl", &[]);
    until("carl to complete the migration", FOLLOWED, || async {
        version(&fleet).await.as_deref() == Some("CLIENT_VERSION_3X")
    })
    .await;
    let versions: Vec<String> = states(&fleet).await.into_iter().map(|state| state.0).collect();
    assert_eq!(
        versions[..3],
        ["CLIENT_VERSION_3X", "CLIENT_VERSION_3X_WITH_ROLLBACK", "CLIENT_VERSION_UPGRADE_FROM_2X"]
    );
    fleet.until_read("carl to be given a share", SHARDS, &["ada", "bert", "carl"]).await;
    fleet.finish(producer, vec![ada, bert, carl]).await;
}
