//! KCL 3.5 as it runs by default: its leader assigns leases by load, to workers that report. Ours are members of such a fleet: they
//! report, take what is assigned to them, hand over what they are asked for, and lead when it is their turn.

use super::led::{self, Tables};
use crate::interop::fleet::{Fleet, program};
use leasehold_tests::kcl_java::Kcl;

/// The leader of KCL gives our worker a share of the leases that its own worker reads, by hand-over, and takes them back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_3_assigns_leases_to_ours_and_moves_them_by_hand_over() {
    const TEST: &str = "kcl-3-assigning";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let last = led::their_leader_assigns(&fleet, &program, Tables::One).await;
    println!("{TEST}: {} hand-overs begun by the leader were seen", fleet.watch.ledger().handing_over());
    fleet.finish(producer, vec![last]).await;
}

/// A worker of ours leads: it assigns what the dead leader of KCL read, and the children of a split, to workers of KCL and to itself.
#[tokio::test(flavor = "multi_thread")]
async fn ours_leads_workers_of_kcl_3_and_assigns_leases_to_them() {
    const TEST: &str = "kcl-3-led-by-ours";
    let Some(program) = program(TEST, Kcl::Three).await else {
        return;
    };
    let (fleet, producer) = Fleet::start(TEST).await;
    let workers = led::ours_leads(&fleet, &program, Tables::One).await;
    fleet.finish(producer, workers.into()).await;
}
