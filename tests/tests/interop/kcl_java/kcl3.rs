//! KCL 3 as it runs by default: its leader assigns leases by load, to workers that report their load. Ours do not, so the leader
//! gives them nothing; they count leases, and take those that expired and their share of the others.

use super::super::APPLICATION;
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::kcl_java::Kcl;
use leasehold_tests::wait::until;
use std::time::Duration;

/// A leader that looks at the load in each run, and leads for a lease duration after its last sign of life.
const ASSIGNED: &[&str] = &[
    "--assign-ms=6000",
    "--balance-every=1",
    "--load-ms=1000",
    "--lock-ms=6000",
    "--heartbeat-ms=1500",
];

/// How leases are shared is not what this is about. When a worker leaves or crashes, the others read on, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn kcl_3_that_assigns_leases_and_ours_lose_nothing() {
    const TEST: &str = "kcl-3-assigning";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let mut lea = fleet.ours("lea");
    fleet.until_read("lea to read all", &[0, 1, 2], &["lea"]).await;
    let mut anna = fleet.theirs(&program, "anna", ASSIGNED);
    until("anna to lead", Duration::from_secs(60), || async {
        let rows = fleet.world.rows(APPLICATION).await;
        rows.iter().any(|row| row.contains_key("ownerName"))
    })
    .await;
    fleet.leave(&mut lea).await;
    fleet.until_read("anna to read all", &[0, 1, 2], &["anna"]).await;
    fleet.left_without_repeats(&lea);

    let bert = fleet.theirs(&program, "bert", ASSIGNED);
    fleet
        .until_read("bert to be given a share", &[0, 1, 2], &["anna", "bert"])
        .await;
    let mut eva = fleet.ours("eva");
    fleet.world.split_first().await;
    fleet
        .until_read(
            "the children of the split, and a share for eva",
            &[1, 2, 3, 4],
            &["anna", "bert", "eva"],
        )
        .await;
    fleet.kill(&mut anna);
    fleet
        .until_read("what anna read", &[1, 2, 3, 4], &["bert", "eva"])
        .await;
    fleet.kill(&mut eva);
    fleet.until_read("what eva read", &[1, 2, 3, 4], &["bert"]).await;
    println!(
        "{TEST}: {} hand-overs begun by the leader were seen",
        fleet.watch.ledger().handing_over()
    );
    fleet.finish(producer, vec![bert]).await;
}
