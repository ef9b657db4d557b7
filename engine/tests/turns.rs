//! The turns of leases, in scenes: leases taken at once, leases taken after a while, and shards asked for.

use crate::rig::side::{beside, fleet_with_tables, share, stamp};
use crate::rig::*;
use leasehold_engine::members::*;
use leasehold_engine::notice::Notice;
use leasehold_engine::time::Mono;

/// A fleet of one worker of ours and a client of another program. The client has the first name, and takes no lease.
/// `shared`: the shards that the client shared out. Every shard has a lease without an owner.
fn second_of_two(shards: u32, shared: std::ops::Range<u32>) -> Rig {
    let mut rig = fleet_with_tables(shards, 0);
    (0..shards).for_each(|shard| rig.insert(bare(shard)));
    let now = stamp(&rig);
    rig.side.register("0-client", now);
    share(&mut rig, shared);
    rig.join();
    rig
}

/// When each lease was taken first.
fn first_takes(rig: &Rig, shards: u32) -> Vec<Option<Mono>> {
    let took = |n: u32| {
        let of_shard = |notice: &Notice| matches!(notice, Notice::Took { lease, .. } if *lease == shard_id(n).to_lease());
        rig[0].told_at(of_shard).first().copied()
    };
    (0..shards).map(took).collect()
}

fn listings(rig: &Rig, since: Mono) -> usize {
    rig[0].sent_at(LIST).into_iter().filter(|at| *at >= since).count()
}

/// Shards not shared out go round among the members, and may go to any member after a long idle time.
#[test]
fn unshared_leases_go_round_too() {
    let mut rig = second_of_two(7, 0..2);
    let joined = rig.now;
    beside(&mut rig, "0-client", 120);
    let takes = first_takes(&rig, 7);
    assert_eq!(takes[0], None, "it is that of the other, which lives");
    // Of the shards not shared out, every second shard is ours.
    let soon: Vec<usize> = (1..7).filter(|shard| takes[*shard] == takes[1]).collect();
    assert_eq!(soon, [1, 3, 5], "{takes:?}");
    for shard in [2, 4, 6] {
        let idle = takes[shard].expect("anybody's after a while").since(joined);
        let long = rig.config.lease_duration().times(2);
        assert!(idle >= long && idle < long.times(2), "{shard} after {idle}");
    }
}

/// The first of them is the turn of the first member: workers of all versions must agree on that.
#[test]
fn unshared_leases_begin_with_the_first_member() {
    let mut rig = second_of_two(7, 0..1);
    for _ in 0..8 {
        let now = stamp(&rig);
        for id in ["0-client", "1-client"] {
            rig.side.register(id, now);
        }
        rig.secs(2);
    }
    let taken = first_takes(&rig, 7).iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(taken, [false, false, false, true, false, false, true]);
}

/// Only owners get time to release: a free lease is taken as soon as its turn is known.
#[test]
fn an_unowned_lease_is_taken_at_once() {
    let mut rig = second_of_two(2, 0..2);
    let joined = rig.now;
    beside(&mut rig, "0-client", 20);
    let took = first_takes(&rig, 2)[1].expect("our turn");
    let checks = rig.config.members().check_interval().times(2);
    assert!(took.since(joined) < checks, "{}", took.since(joined));
}

/// A shard shared out by another member, and due to us, is asked for at once.
#[test]
fn a_shard_of_ours_without_a_lease_is_asked_for() {
    let mut rig = second_of_two(2, 0..2).with_records([1], 20);
    beside(&mut rig, "0-client", 40);
    let (a, b) = rig.split(0);
    let seen = rig.side.shared().map(|shared| shared.at);
    let shared = Shared { shards: [1, a, b].map(shard_id).to_vec(), at: stamp(&rig) };
    rig.side.write(MembersChange::Share { shared, seen });
    let since = rig.now;
    let checks = rig.config.members().check_interval().times(2) + rig.config.scan_interval();
    beside(&mut rig, "0-client", checks.0 / 1_000_000);
    assert_ne!(listings(&rig, since), 0);
    assert!(rig.has_row(a), "the second of three is ours");
}

/// No shard lacks a lease: a member that does not lead makes only its occasional listings.
#[test]
fn a_member_at_rest_lists_rarely() {
    let mut rig = second_of_two(4, 0..4);
    beside(&mut rig, "0-client", 60);
    let since = rig.now;
    beside(&mut rig, "0-client", 600);
    let listed = listings(&rig, since);
    let scans = 600_000_000 / rig.config.scan_interval().0 as usize;
    assert!(listed * 2 < scans, "{listed} listings, {scans} scans");
}

/// Every member tells its own place among the members, and their number.
#[test]
fn the_order_of_members_is_told() {
    let mut rig = second_of_two(2, 0..2);
    beside(&mut rig, "0-client", 20);
    rig.join();
    beside(&mut rig, "0-client", 20);
    let told = |rig: &Rig, worker| {
        rig[worker].news(|notice| match notice {
            Notice::Rank { rank, workers } => Some((*rank, *workers)),
            _ => None,
        })
    };
    assert_eq!(told(&rig, 0).last(), Some(&(Some(1), 3)));
    assert_eq!(told(&rig, 1).last(), Some(&(Some(2), 3)));
    // The client ends without a word.
    rig.secs(60);
    assert_eq!(told(&rig, 0).last(), Some(&(Some(0), 2)));
    assert_eq!(told(&rig, 1).last(), Some(&(Some(1), 2)));
}
