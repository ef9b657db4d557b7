//! Rows in boto3's style: boto3 writes NULL for None, and KCL writes no attribute.

use leasehold::Notice;
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::two_shards::{SHARDS, TwoShards, all_become, becomes};

const STREAM: &str = "orders";
const APPLICATION: &str = "billing";

/// Turns each attribute of this shard's row into NULL.
async fn nullify(scene: &TwoShards, shard: &str, attributes: &[&str]) {
    for attribute in attributes {
        let expression = format!("SET {attribute} = :null");
        scene.edit(APPLICATION, shard, &expression, &[(":null", AttributeValue::Null(true))]).await;
    }
}

#[tokio::test]
async fn a_lease_whose_owner_is_null_is_free() {
    let (scene, mut probe) = TwoShards::worked_on(STREAM, APPLICATION, "a").await;
    for shard in SHARDS {
        becomes(&probe, shard, &["a"]).await;
        let saved =
            |notice: &Notice| matches!(notice, Notice::Checkpointed { lease, .. } if lease.as_str() == shard);
        probe.told("the checkpoint", saved).await;
    }

    // The first shard's owner lives: its next write is refused, and the owner takes the lease anew. The owner of the
    // second shard does not notice the change.
    let lost = |notice: &Notice| matches!(notice, Notice::Lost { .. });
    nullify(&scene, SHARDS[0], &["leaseOwner"]).await;
    nullify(&scene, SHARDS[1], &["checkpointOwner", "childShardIds", "parentShardId"]).await;
    probe.told("the loss", lost).await;
    scene.put("b").await;
    all_become(&probe, &["a", "b"]).await;
    let losses = probe.seen().notices.iter().filter(|notice| lost(notice)).count();
    assert_eq!(losses, 1, "{:#?}", probe.seen().notices);
    probe.shutdown().await;

    // A worker that starts finds such rows.
    for shard in SHARDS {
        nullify(&scene, shard, &["leaseOwner", "checkpointOwner", "entityType"]).await;
    }
    scene.put("c").await;
    let mut next = scene.worker();
    all_become(&next, &["c"]).await;
    let unreadable = |notice: &&Notice| matches!(notice, Notice::Unreadable { .. });
    assert_eq!(next.seen().notices.iter().filter(unreadable).count(), 0);
    next.shutdown().await;
}
