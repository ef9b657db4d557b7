//! The leases whose turn has come.

use super::{ranked, taken, turns};
use crate::notice::ListReason;
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{self, LeaseTable};
use crate::worker::ranked::Members;
use crate::worker::ranked::ranks;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{owned, row, seconds, shard, shows};

fn take_turns(cx: &mut Context, leases: &LeaseTable, members: &Members) -> Vec<String> {
    let balance = leases.shares(cx).balance();
    members.take_turns(cx, leases, &balance);
    taken(&cx.did(), leases)
}

#[test]
fn nothing_is_taken_before_the_turns_are_known() {
    let (mut cx, mut leases, members) = ranked();
    for key in ["a", "b", "c", "d"] {
        shows(&cx, &mut leases, row(key));
    }
    assert_eq!(take_turns(&mut cx, &leases, &members), [""; 0]);
    turns(&cx, &mut leases, &["first"], &["a", "b", "c", "d"]);
    assert_eq!(take_turns(&mut cx, &leases, &members), ["b", "d"]);
}

#[test]
fn a_silent_member_has_time_to_give_up_turns_of_others() {
    let (mut cx, mut leases, members) = ranked();
    for name in ["first", "gone"] {
        shows(&cx, &mut leases, owned(&format!("of-{name}"), name, 1));
    }
    cx.later(cx.config().lease_duration);
    for name in ["first", "gone"] {
        shows(&cx, &mut leases, owned(&format!("of-{name}"), name, 1));
    }
    // Ours are the second and the fourth.
    turns(&cx, &mut leases, &["first"], &["a", "of-first", "of-foo", "of-gone"]);
    assert_eq!(members.turns_since(), Mono(0), "they changed long ago");
    assert_eq!(take_turns(&mut cx, &leases, &members), ["of-first", "of-gone"]);
}

#[test]
fn unshared_leases_go_round_among_the_members() {
    let (mut cx, mut leases, members) = ranked();
    for key in ["x", "y", "z"] {
        shows(&cx, &mut leases, row(key));
    }
    turns(&cx, &mut leases, &["first"], &[]);
    assert_eq!(take_turns(&mut cx, &leases, &members), ["y"]);
    cx.later(cx.config().lease_duration.times(2));
    for key in ["x", "y", "z"] {
        shows(&cx, &mut leases, row(key));
    }
    assert_eq!(take_turns(&mut cx, &leases, &members), ["x", "y", "z"], "no member took them for long");
}

#[test]
fn a_shard_of_ours_without_a_lease_has_the_shards_listed() {
    let (mut cx, mut leases, _) = ranked();
    turns(&cx, &mut leases, &["first"], &["a", "b"]);
    shows(&cx, &mut leases, row("b"));
    ranks::ask_leases(&mut cx, &leases);
    assert!(cx.did().is_nothing(), "the other one is not our turn");
    turns(&cx, &mut leases, &[], &["a", "b"]);
    cx.later(seconds(1));
    lease_table::learn_lineage(&mut leases, &cx, &[shard("a", &[])], cx.now());
    ranks::ask_leases(&mut cx, &leases);
    let why = ListReason::SharedShardWithoutLease;
    assert_eq!(cx.did().requests(), [Request::ListShards(StreamIx::ONLY, why)]);
}
