//! An application of several streams, read by workers of the KCL and by ours: keys, identifiers and relatives are as
//! KCL writes and reads them.

use super::super::{APPLICATION, STREAM, World, shard};
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::history::Cause;
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::producer::{Producer, Put};
use leasehold_tests::watch::Watch;
use std::collections::BTreeSet;

const OTHER: &str = "returns";

/// The leases of these shards of each stream.
fn leases(ids: &[String; 2], shards: [&[u32]; 2]) -> BTreeSet<String> {
    let each = ids.iter().zip(shards);
    each.flat_map(|(id, shards)| shards.iter().map(move |number| format!("{id}:{}", shard(*number))))
        .collect()
}

/// The records of a stream, by the names of leases.
fn named(id: &str, put: Put) -> Put {
    put.into_iter().map(|(shard, records)| (format!("{id}:{shard}"), records)).collect()
}

/// Both read both streams. One stream is split, each kind of worker leaves, and the remaining worker reads on.
async fn both(test: &'static str, kcl: Kcl, more: &[&str]) {
    let Some(program) = program(test, kcl).await else {
        return;
    };
    let mut world = World::start(test).await;
    let ids = world.read_several(OTHER).await;
    let producers = [STREAM, OTHER].map(|stream| Producer::start(world.kinesis.clone(), stream));
    let watch = Watch::start(world.dynamodb.clone(), APPLICATION);
    let fleet = Fleet { test, world, watch };
    let whole = leases(&ids, [&[0, 1, 2], &[0, 1, 2]]);

    // Ours fills the table at once, with rows that the KCL has to read.
    let mut lea = fleet.ours("lea");
    fleet.until_leases_are_read("lea to read all", &whole, &["lea"]).await;
    let mut anna = fleet.theirs(&program, "anna", more);
    fleet.until_leases_are_read("anna to get a share", &whole, &["anna", "lea"]).await;
    fleet.world.split_first().await;
    let halves = leases(&ids, [&[1, 2, 3, 4], &[0, 1, 2]]);
    fleet.until_leases_are_read("the children of the split", &halves, &["anna", "lea"]).await;

    fleet.leave(&mut lea).await;
    fleet.until_leases_are_read("what lea read", &halves, &["anna"]).await;
    // If the KCL reads the parents of a merge, the child's row is written by the KCL.
    fleet.world.merge_others().await;
    let merged = leases(&ids, [&[3, 4, 5], &[0, 1, 2]]);
    fleet.until_leases_are_read("the child of the merge", &merged, &["anna"]).await;
    let mia = fleet.ours("mia");
    fleet.until_leases_are_read("mia to get a share", &merged, &["anna", "mia"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_leases_are_read("what anna read", &merged, &["mia"]).await;
    let left = fleet.watch.handovers().into_iter().filter(|handover| handover.cause == Cause::Left);
    let again: Vec<_> = left.filter(|handover| handover.repeats > 0).collect();
    assert!(again.is_empty(), "{test}: nothing comes again after a worker left, but {again:?}");

    let mut put = Put::new();
    for (id, producer) in ids.iter().zip(producers) {
        put.extend(named(id, producer.finish().await));
    }
    fleet.finish_with(put, vec![mia]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_2_and_ours_read_several_streams() {
    both("kcl-2-several-streams", Kcl::Two, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_and_ours_read_several_streams() {
    let assigned = ["--assign-ms=6000", "--balance-every=1", "--lock-ms=6000", "--heartbeat-ms=1500"];
    both("kcl-3-several-streams", Kcl::Three, &assigned).await;
}
