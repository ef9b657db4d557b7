//! Scenes of a fleet whose leases are assigned by rank; alone, and beside members of another program.

use crate::rig::side::{beside, fleet, fleet_with_tables, share, stamp};
use crate::rig::*;
use leasehold_engine::ids::ShardId;
use leasehold_engine::input::*;
use leasehold_engine::members::*;
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Span;

#[test]
fn three_members_have_the_shards_that_are_theirs_by_rank() {
    let mut rig = fleet(7, 3).with_records(0..7, 20).after(60);
    let expected: Vec<_> = (0..7).map(|shard| Some(shard % 3)).collect();
    assert_eq!(rig.owners(7), expected);
    rig.assert_all_processed();
    let shards: Vec<ShardId> = (0..7).map(shard_id).collect();
    assert_eq!(rig.side.shards(), shards);
    assert_eq!(rig.side.members().len(), 3);
}

#[test]
fn the_tables_beside_the_lease_table_are_created() {
    let mut rig = fleet(1, 1).after(5);
    assert_eq!(rig.side.members(), [rig[0].me()]);
}

#[test]
fn a_joining_worker_gets_its_turns_and_no_record_comes_twice() {
    let mut rig = fleet(4, 1).after(30);
    assert_eq!(rig.owners(4), [Some(0); 4]);
    rig.join();
    for _ in 0..6 {
        rig.put_all(0..4, 10);
        rig.secs(10);
    }
    assert_eq!(rig.owners(4), [Some(0), Some(1), Some(0), Some(1)]);
    rig.assert_all_processed();
    assert_eq!(rig.duplicates(), 0);
}

#[test]
fn a_leaving_worker_is_not_counted_and_leads_no_more() {
    let mut rig = fleet(4, 2).after(40);
    let leader = rig.side.leads();
    assert_eq!(leader, Some(rig[0].me()));
    rig.call(0, Call::Shutdown);
    assert!(rig[0].is_stopped());
    assert_eq!(rig.side.leads(), None);
    assert_eq!(rig.side.members(), [rig[1].me()]);
    // A check, and a scan.
    rig.secs(30);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    assert_eq!(rig.side.leads(), Some(rig[1].me()));
}

#[test]
fn the_turns_of_the_dead_are_taken_after_a_long_silence() {
    let mut rig = fleet(4, 2).after(40);
    rig[0].die();
    let died = rig.now;
    rig.put_all(0..4, 10);
    rig.secs(60);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    rig.assert_all_processed();
    let first = rig[1].told_at(TOOK).into_iter().find(|at| *at > died).unwrap();
    assert!(first.since(died) >= rig.config.hold(), "{}", first.since(died));
    // The dead member led, and its successor leads after five intervals.
    assert_eq!(rig.side.leads(), Some(rig[1].me()));
}

#[test]
fn a_split_is_read_through_in_order_and_shared_out_anew() {
    let mut rig = fleet(2, 2).with_records(0..2, 50).after(40);
    let (a, b) = rig.split(0);
    rig.put_all([a, b], 20);
    let merged = rig.merge(b, 1);
    rig.put(merged, 30);
    rig.assert_all_processed_in(120);
    assert_eq!(rig.duplicates(), 0);
    for ended in [0, 1, b] {
        assert_eq!(rig.row(ended).checkpoint, Checkpoint::ShardEnd);
    }
    assert_eq!(rig.side.shards(), [a, merged].map(shard_id));
    assert_eq!([a, merged].map(|shard| rig.owner(shard)), [Some(0), Some(1)]);
}

/// The other program's client counts as a member, and its turns are left alone.
#[test]
fn the_turns_of_other_programs_are_left_alone() {
    let mut rig = fleet_with_tables(4, 0);
    let now = stamp(&rig);
    rig.side.register("0-client", now);
    share(&mut rig, 0..4);
    rig.join();
    beside(&mut rig, "0-client", 60);
    assert_eq!(rig.owners(4)[1], Some(0));
    assert_eq!(rig.owners(4)[3], Some(0));
    for shard in [0, 2] {
        assert_eq!(rig.row(shard).owner, None);
    }
    assert_eq!(rig.side.leader(), None, "it is not ours to lead");
    // The client ends without a word: its leases are ours after five checks, and so is the lead.
    rig.secs(40);
    assert_eq!(rig.owners(4), [Some(0); 4]);
    assert_eq!(rig.side.leads(), Some(rig[0].me()));
}

/// The lease of a live owner is not taken, however silent the owner; the owner releases the lease when it sees whose
/// turn the shard is.
#[test]
fn a_silent_owner_that_lives_has_time_to_give_up() {
    let mut rig = fleet_with_tables(2, 0);
    for shard in 0..2 {
        rig.insert(bare(shard));
        rig.name([shard], "0-client");
        rig.row_mut(shard).counter = stamp(&rig);
    }
    share(&mut rig, 0..2);
    // The client was alone, and the fleet was at rest for long.
    beside(&mut rig, "0-client", 60);
    rig.join();
    let joined = rig.now;
    beside(&mut rig, "0-client", 30);
    let takes = rig[0].notices.iter().filter_map(|(at, notice)| match notice {
        Notice::Took { lease, why, .. } => Some((*at, lease, why)),
        _ => None,
    });
    let takes: Vec<_> = takes.collect();
    let [(at, key, TakeReason::Expired { .. })] = &takes[..] else {
        panic!("{takes:?}");
    };
    assert_eq!(**key, shard_id(1).to_lease(), "the other is not our turn");
    assert!(at.since(joined) >= rig.config.lease_duration(), "observed, not told by its time");
}

/// Two takes of a free lease: the later take relied on a read from before the earlier taker's whole tenure.
#[test]
fn a_take_that_was_late_undoes_nothing() {
    let mut rig = fleet(1, 1).with_records([0], 20);
    rig[0].trap(hangs(TAKE));
    rig.secs(10);
    assert_eq!(rig[0].hung.len(), 1);
    // Another worker took the lease, read the shard, and released the lease.
    let later = stamp(&rig) + 1;
    let sequence = 7.into();
    let row = rig.row_mut(0);
    (row.counter, row.checkpoint) = (later, Checkpoint::At(Position::of(sequence)));
    rig.free(0);
    assert_eq!(rig.row(0).checkpoint, Checkpoint::At(Position::of(sequence)));
    rig.secs(60);
    assert_eq!(rig.owner(0), Some(0));
    let first = rig[0].reading.processed[&shard_id(0)][0];
    assert_eq!(first, 8, "read on from where the other was");
}

/// An owner without progress to commit writes all the same, so that no member takes it for dead.
#[test]
fn an_idle_shard_is_renewed() {
    let mut rig = fleet(1, 1).after(20);
    let before = rig.row(0).counter;
    rig.secs(8);
    let after = rig.row(0).counter;
    assert!(after - before >= 3_000_000_000, "{before} {after}");
}

/// A worker whose own clock is wrong counts the same members as every other worker, once it has seen these members
/// write.
#[test]
fn nobody_is_robbed_by_a_wrong_clock() {
    for ahead in [3_600_000, -3_600_000] {
        let mut rig = fleet(4, 1).after(30);
        rig.wall_ahead = vec![0, ahead];
        rig.join();
        for _ in 0..6 {
            rig.put_all(0..4, 10);
            rig.secs(10);
        }
        assert_eq!(rig.owners(4), [Some(0), Some(1), Some(0), Some(1)], "{ahead}");
        assert_eq!(rig.duplicates(), 0);
        assert_eq!(rig.all_told(LOST), 0);
        // Nor are the rows of the living removed.
        assert_eq!(rig.side.members().len(), 2);
    }
}

/// While the tables of members are out of reach, every member goes on with its leases.
#[test]
fn leases_outlive_the_tables_of_members() {
    let mut rig = fleet(4, 2).after(40);
    for worker in 0..2 {
        rig[worker].trap(meets(
            |effect: &Effect| matches!(effect, Effect::Table(TableOp::Members(_))),
            Trick::THROTTLED,
        ));
    }
    let before = rig.owners(4);
    rig.secs(60);
    assert_eq!(rig.owners(4), before);
    (0..2).for_each(|worker| rig[worker].trap = None);
    rig.secs(30);
    assert_eq!(rig.owners(4), before);
}

#[test]
fn a_late_write_of_our_name_is_given_up_if_not_our_turn() {
    let mut rig = fleet(2, 2).after(40);
    assert_eq!(rig.owners(2), [Some(0), Some(1)]);
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    let late = rig[1].me();
    rig.join();
    rig.give(1, late);
    rig.secs(60);
    assert_eq!(rig.owners(2), [Some(1), Some(2)]);
}

/// A failed registration waits behind all other work, but not for ever: a member missing from the list registers first
/// of all.
#[test]
fn a_registration_that_failed_is_made_up_for() {
    let mut rig = fleet(2, 0);
    rig.join();
    rig[0].trap(first(3, REGISTER, Trick::UNKNOWN));
    let me = rig[0].me();
    rig.side.write(MembersChange::Leave(me.clone()));
    rig.secs(20);
    assert_eq!(rig.side.members(), [me]);
}

/// A list older than a lease tells nothing of the lease's parents.
#[test]
fn a_child_that_a_lagging_list_lacks_waits_for_its_parent() {
    let mut rig = fleet(1, 0);
    rig.configure(|config| config.with_scan_interval(Span::from_secs(2)).with_stream_lag(Span::from_secs(2)));
    rig.join_then(20);
    rig.give(0, "0-client");
    beside(&mut rig, "0-client", 4);
    let before: Vec<_> = rig.stream.shards.values().cloned().collect();
    let (a, b) = rig.split(0);
    for child in [a, b] {
        rig.put(child, 5);
        rig.insert(bare(child));
    }
    // As far behind as a list may be.
    rig[0].trap(first(1, LIST, Trick::listed(before)));
    beside(&mut rig, "0-client", 4);
    for child in [a, b] {
        assert_eq!(rig[0].reading.processed.get(&shard_id(child)), None, "its parent is unfinished");
    }
}
