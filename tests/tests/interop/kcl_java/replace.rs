//! Fleets moved over by starting and stopping workers one by one.

use super::beside::LIKE_KCL_2;
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::kcl_java::Kcl;

/// Theirs, both, ours, both, theirs. A worker leaving in good order repeats no record, in either library.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_moved_over_from_kcl_2_and_back() {
    const TEST: &str = "kcl-2-replaced";
    let Some((fleet, producer, program)) = Fleet::with(TEST, Kcl::Two).await else {
        return;
    };
    // Somebody must fill the table.
    let mut eva = fleet.ours("eva");
    let mut anna = fleet.theirs(&program, "anna", &[]);
    fleet.until_read("anna and eva to share the shards", &[0, 1, 2], &["anna", "eva"]).await;
    fleet.leave(&mut eva).await;
    fleet.until_read("anna to read all", &[0, 1, 2], &["anna"]).await;
    fleet.left_without_repeats(&eva);

    let mut lea = fleet.ours("lea");
    fleet.until_read("lea to get a share", &[0, 1, 2], &["anna", "lea"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("lea to read all", &[0, 1, 2], &["lea"]).await;
    fleet.left_without_repeats(&anna);

    let bert = fleet.theirs(&program, "bert", &[]);
    fleet.until_read("bert to get a share", &[0, 1, 2], &["bert", "lea"]).await;
    fleet.leave(&mut lea).await;
    fleet.until_read("bert to read all", &[0, 1, 2], &["bert"]).await;
    fleet.left_without_repeats(&lea);
    fleet.finish(producer, vec![bert]).await;
}

/// The first step of the way from KCL 2 to KCL 3, without new rows of KCL 3; the second step, with new rows; and back
/// to the first. A worker of ours runs all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_goes_from_kcl_2_to_kcl_3_and_back_beside_ours() {
    const TEST: &str = "kcl-2-to-3";
    const FIRST_STEP: &[&str] = &["--client-version=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1"];
    let (Some(two), Some(three)) = (program(TEST, Kcl::Two).await, program(TEST, Kcl::Three).await) else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let lea = fleet.ours("lea");
    let mut anna = fleet.theirs(&two, "anna", &[]);
    fleet.until_read("anna and lea to share the shards", &[0, 1, 2], &["anna", "lea"]).await;
    let mut bert = fleet.theirs(&three, "bert", FIRST_STEP);
    fleet.until_read("bert to get a share", &[0, 1, 2], &["anna", "bert", "lea"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("what anna read", &[0, 1, 2], &["bert", "lea"]).await;
    fleet.left_without_repeats(&anna);

    // KCL 2 cannot take leases any more once the rows of the second step are there: it takes every row for a lease.
    let mut carl = fleet.theirs(&three, "carl", LIKE_KCL_2);
    fleet.until_read("carl to get a share", &[0, 1, 2], &["bert", "carl", "lea"]).await;
    fleet.leave(&mut bert).await;
    fleet.until_read("what bert read", &[0, 1, 2], &["carl", "lea"]).await;
    fleet.left_without_repeats(&bert);

    let dora = fleet.theirs(&three, "dora", FIRST_STEP);
    fleet.until_read("dora to get a share", &[0, 1, 2], &["carl", "dora", "lea"]).await;
    fleet.leave(&mut carl).await;
    fleet.until_read("what carl read", &[0, 1, 2], &["dora", "lea"]).await;
    fleet.left_without_repeats(&carl);
    fleet.finish(producer, vec![lea, dora]).await;
}
