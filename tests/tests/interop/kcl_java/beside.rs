//! Workers of the KCL and ours in one fleet, without an end of the side-by-side run.

use crate::interop::fleet::Fleet;
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::member::Member;

/// KCL 3's setting for fleets with workers of KCL 2. With this setting, KCL 3 shares leases as KCL 2 does, by
/// counting leases.
pub(super) const LIKE_KCL_2: &[&str] = &["--client-version=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"];

/// Whatever happens to a fleet: workers of both kinds join, leave and crash, and shards are split and merged. The worker that is left.
pub(super) async fn everything(fleet: &Fleet, program: &Program, more: &[&str]) -> Member {
    everything_with(fleet, program, more, fleet.ours("lea")).await
}

/// The same, with this worker of ours.
pub(super) async fn everything_with(
    fleet: &Fleet, program: &Program, more: &[&str], mut lea: Member,
) -> Member {
    // Ours fills the table at once; the KCL waits for up to half a minute, in case another worker does.
    let mut anna = fleet.theirs(program, "anna", more);
    fleet.until_read("anna and lea to share the shards", &[0, 1, 2], &["anna", "lea"]).await;
    let mut bert = fleet.theirs(program, "bert", more);
    fleet.until_read("bert to get a share", &[0, 1, 2], &["anna", "bert", "lea"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("what anna read", &[0, 1, 2], &["bert", "lea"]).await;
    fleet.left_without_repeats(&anna);
    fleet.kill(&mut bert);
    fleet.until_read("what bert read", &[0, 1, 2], &["lea"]).await;
    let carl = fleet.theirs(program, "carl", more);
    fleet.until_read("carl to get a share", &[0, 1, 2], &["carl", "lea"]).await;

    // Last, and one worker alone may read the children: for the KCL, leases of finished shards count fully, and the
    // KCL's worker may have its whole share in finished leases.
    fleet.world.split_first().await;
    fleet.world.merge_others().await;
    fleet.until_read_among("the children", &[3, 4, 5], &["carl", "lea"]).await;
    fleet.kill(&mut lea);
    fleet.until_read("what lea read", &[3, 4, 5], &["carl"]).await;
    carl
}

async fn beside(test: &'static str, kcl: Kcl, more: &[&str]) {
    let Some((fleet, producer, program)) = Fleet::with(test, kcl).await else {
        return;
    };
    let last = everything(&fleet, &program, more).await;
    fleet.finish(producer, vec![last]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_2_and_ours_share_a_fleet() {
    beside("kcl-2-beside", Kcl::Two, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_that_counts_leases_and_ours_share_a_fleet() {
    beside("kcl-3-beside", Kcl::Three, LIKE_KCL_2).await;
}
