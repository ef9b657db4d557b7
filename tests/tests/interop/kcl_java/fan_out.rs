//! KCL 3.5 at its default way of reading: by fan-out, over HTTP/2.

use super::beside::{self, LIKE_KCL_2};
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::kcl_java::Kcl;

const FAN_OUT: &str = "--retrieval=fan-out";

/// The library's own client, consumer and reader, on the in-memory AWS.
#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_reads_through_a_split_and_a_merge_by_fan_out() {
    const TEST: &str = "kcl-3-fan-out";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let anna = fleet.theirs(&program, "anna", &[FAN_OUT]);
    fleet.until_read("anna to read", &[0, 1, 2], &["anna"]).await;
    fleet.world.split_first().await;
    fleet.world.merge_others().await;
    fleet.until_read("the children", &[3, 4, 5], &["anna"]).await;
    fleet.finish(producer, vec![anna]).await;
}

/// Workers of both libraries share one consumer, and the next owner of a lease takes the place at the shard; or only our worker reads by
/// fan-out.
async fn beside_ours_by_fan_out(test: &'static str, theirs: &[&str]) {
    let Some(program) = program(test, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(test).await;
    let more: Vec<&str> = LIKE_KCL_2.iter().chain(theirs).copied().collect();
    let lea = fleet.ours_by_fan_out("lea");
    let last = beside::everything_with(&fleet, &program, &more, lea).await;
    fleet.finish(producer, vec![last]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_by_polling_and_ours_by_fan_out_share_a_fleet() {
    beside_ours_by_fan_out("kcl-3-beside-fan-out", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_and_ours_share_a_fleet_both_by_fan_out() {
    beside_ours_by_fan_out("kcl-3-both-fan-out", &[FAN_OUT]).await;
}

/// Subscriptions move with the leases: KCL reads by fan-out, and ours by polling.
#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_by_fan_out_and_ours_by_polling_share_a_fleet() {
    const TEST: &str = "kcl-3-fan-out-beside";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let more: Vec<&str> = LIKE_KCL_2.iter().copied().chain([FAN_OUT]).collect();
    let last = beside::everything(&fleet, &program, &more).await;
    fleet.finish(producer, vec![last]).await;
}
