//! KCL 3.5 at its defaults: its leader assigns leases by load, to reporting workers. Our workers are members of a KCL
//! 3.5 fleet: they report, take assigned leases, hand over requested leases, and lead at their turn.

use super::led::{self, Tables};
use crate::interop::fleet::Fleet;
use leasehold_tests::kcl_java::Kcl;

/// The leader of KCL gives our worker a share of its own worker's leases, by hand-over, and takes the leases back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_3_assigns_leases_to_ours_and_moves_them() {
    const TEST: &str = "kcl-3-assigning";
    let Some((fleet, producer, program)) = Fleet::with(TEST, Kcl::Three).await else {
        return;
    };
    let last = led::their_leader_assigns(&fleet, &program, Tables::One).await;
    println!("{TEST}: {} hand-overs begun by the leader were seen", fleet.watch.ledger().handing_over());
    fleet.finish(producer, vec![last]).await;
}

/// A worker of ours leads: our leader assigns the dead KCL leader's leases, and the children of a split, to workers
/// of KCL and to our worker.
#[tokio::test(flavor = "multi_thread")]
async fn ours_leads_workers_of_kcl_3_and_assigns_leases_to_them() {
    const TEST: &str = "kcl-3-led-by-ours";
    let Some((fleet, producer, program)) = Fleet::with(TEST, Kcl::Three).await else {
        return;
    };
    let workers = led::ours_leads(&fleet, &program, Tables::One).await;
    fleet.finish(producer, workers.into()).await;
}
