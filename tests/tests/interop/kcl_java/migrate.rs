//! The migration of a fleet from the rules of KCL 2 to those of KCL 3, with a worker of ours in it all the time, and the rollback.
//!
//! The leader of KCL goes over when every owner of a lease has reported for ten minutes, so this runs at night only.

use super::super::APPLICATION;
use super::beside::LIKE_KCL_2;
use crate::interop::fleet::{Fleet, program};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::wait::until;
use std::time::Duration;

const SHARDS: &[u32] = &[0, 1, 2];
/// Ten minutes, and the times at which it is looked for.
const MIGRATED: Duration = Duration::from_secs(900);
/// Every worker looks once a minute and a half.
const FOLLOWED: Duration = Duration::from_secs(120);

/// What the row of this key says in this attribute.
async fn said(fleet: &Fleet, key: &str, attribute: &str) -> Option<String> {
    let rows = fleet.world.rows(APPLICATION).await;
    let row = rows
        .iter()
        .find(|row| row["leaseKey"].as_s().is_ok_and(|found| found == key))?;
    row.get(attribute)?.as_s().ok().cloned()
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
async fn a_fleet_migrates_to_the_rules_of_kcl_3_and_rolls_back_with_ours_in_it() {
    const TEST: &str = "kcl-migration";
    let (Some(two), Some(three)) = (program(TEST, Kcl::Two).await, program(TEST, Kcl::Three).await) else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let lea = fleet.ours("lea");
    let mut anna = fleet.theirs(&two, "anna", &[]);
    fleet
        .until_read("anna and lea to share the shards", SHARDS, &["anna", "lea"])
        .await;
    fleet.leave(&mut anna).await;
    fleet.until_read("lea to read all", SHARDS, &["lea"]).await;
    let bert = fleet.theirs(&three, "bert", LIKE_KCL_2);
    fleet
        .until_read("bert to get a share", SHARDS, &["bert", "lea"])
        .await;
    assert_eq!(
        version(&fleet).await.as_deref(),
        Some("CLIENT_VERSION_UPGRADE_FROM_2X")
    );
    until("the fleet to go over", MIGRATED, || async {
        version(&fleet).await.as_deref() == Some("CLIENT_VERSION_3X_WITH_ROLLBACK")
    })
    .await;
    until("a worker to lead by the lock", FOLLOWED, || async {
        said(&fleet, "Leader", "ownerName").await.is_some()
    })
    .await;
    let carl = fleet.theirs(&three, "carl", LIKE_KCL_2);
    fleet
        .until_read("carl to be given a share", SHARDS, &["bert", "carl", "lea"])
        .await;

    roll_back(&fleet).await;
    until("ours to take its report back", FOLLOWED, || async {
        let rows = fleet.world.rows(APPLICATION).await;
        !rows
            .iter()
            .any(|row| row.contains_key("lut") && row.contains_key("leaseholdOwner"))
    })
    .await;
    let dora = fleet.theirs(&three, "dora", LIKE_KCL_2);
    tokio::time::sleep(FOLLOWED).await;
    assert_eq!(version(&fleet).await.as_deref(), Some("CLIENT_VERSION_2X"));
    fleet
        .until_read_among("all shards to be read", SHARDS, &["bert", "carl", "dora", "lea"])
        .await;
    fleet.finish(producer, vec![lea, bert, carl, dora]).await;
}
