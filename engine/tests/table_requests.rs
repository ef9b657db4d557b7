//! How many requests about leases are under way at the lease table at the same time.

use crate::rig::*;
use leasehold_engine::input::Call;
use leasehold_engine::output::*;
use std::collections::BTreeSet;

fn is_of_owner(effect: &Effect) -> bool {
    [RENEW, CHECKPOINT, RELEASE].iter().any(|act| act.is(effect))
}

/// A rig whose workers may have `most` requests under way.
fn rig(shards: u32, most: u32) -> Rig {
    Rig::of(shards, 0, |config| config.with_max_table_requests(most)).with_records(0..shards, 30)
}

/// The leases with a request under way, each once.
fn under_way(rig: &Rig) -> BTreeSet<String> {
    let hung = &rig[0].hung;
    let keys: BTreeSet<String> =
        hung.iter().filter_map(|command| command.effect.described().1.map(str::to_owned)).collect();
    assert_eq!(keys.len(), hung.len(), "a lease has one request at a time");
    keys
}

#[test]
fn leases_are_taken_some_at_a_time_and_each_has_its_turn() {
    let mut rig = rig(20, 8);
    rig.join_trapped(hangs(TAKE));
    rig.secs(30);
    let inputs = rig[0].turns();
    let mut taken = BTreeSet::new();
    for round in 0..5 {
        let takes = under_way(&rig);
        assert_eq!(takes.len(), 4, "in round {round}: {takes:?}");
        assert!(taken.is_disjoint(&takes), "in round {round}: {takes:?}");
        taken.extend(takes);
        rig.release(0);
    }
    assert_eq!(taken.len(), 20);
    rig.secs(5);
    let more = rig[0].turns() - inputs;
    assert!(more < 1_000, "a lease that waits is not looked at all the time: {more}");
    rig.assert_all_processed_in(20);
}

#[test]
fn owners_that_wait_for_their_turn_renew_in_the_end() {
    let mut rig = rig(20, 4);
    rig.join_then(60);
    let counters = |rig: &Rig| -> Vec<u64> { (0..20).map(|n| rig.row(n).counter).collect() };
    let before = counters(&rig);
    rig[0].trap(hangs(is_of_owner));
    rig.run(rig.config.renew_interval());
    let inputs = rig[0].turns();
    let mut renewed = BTreeSet::new();
    for round in 0..5 {
        let renewals = under_way(&rig);
        assert_eq!(renewals.len(), 4, "in round {round}: {renewals:?}");
        renewed.extend(renewals);
        rig.release(0);
    }
    assert_eq!(renewed.len(), 20, "who came first, renews first");
    let more = rig[0].turns() - inputs;
    assert!(more < 100, "a lease that waits is not looked at all the time: {more}");
    let all = before.iter().zip(counters(&rig));
    assert!(all.clone().all(|(before, now)| *before < now), "{all:?}");
}

#[test]
fn a_stop_releases_all_leases_some_at_a_time() {
    let mut rig = rig(20, 4);
    rig.join_then(60);
    rig[0].trap(hangs(is_of_owner));
    rig.call(0, Call::Shutdown);
    for round in 0..5 {
        assert_eq!(under_way(&rig).len(), 4, "in round {round}");
        assert!(!rig[0].is_stopped());
        rig.release(0);
    }
    assert!(rig[0].is_stopped());
    assert!((0..20).all(|n| rig.row(n).owner.is_none()));
}
