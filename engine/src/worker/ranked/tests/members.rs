//! Registering that we live, looking for live members and shared shards.

use super::{Shown, asked, looks, member, ranked};
use crate::members::{MembersChange, MembersOp};
use crate::time::Mono;
use crate::worker::context::Request;
use crate::worker::testing::{done, hold, owned, throttled};

#[test]
fn a_round_finds_tables_registers_and_reads_members_and_turns() {
    let (mut cx, mut leases, mut members) = ranked();
    let shown = Shown { members: vec![member(&cx, "first"), member(&cx, "me")], shards: vec!["a", "b"] };
    let all = shown.round(&mut cx, &mut leases, &mut members);
    assert_eq!(all[..2], looks());
    assert!(matches!(all[2], MembersOp::Write(MembersChange::Register(_))));
    assert_eq!(all[3..], [MembersOp::List { after: None }, MembersOp::ReadShards]);
    let turns = leases.turns().expect("they are known now");
    assert_eq!((turns.rank(), turns.count()), (1, 2));
    assert_eq!(members.wake_at(&cx), cx.now() + cx.config().members.check_interval);

    cx.later(cx.config().members.check_interval);
    let again = shown.round(&mut cx, &mut leases, &mut members);
    assert_eq!(again.len(), 3, "the tables are known to be there: {again:?}");
}

#[test]
fn a_list_without_us_changes_nothing_and_we_register_again() {
    let (mut cx, mut leases, mut members) = ranked();
    let without = Shown { members: vec![member(&cx, "first")], shards: vec!["a"] };
    members.step(&mut cx, false);
    for _ in 0..4 {
        let (op, effect) = asked(&cx.did());
        let now = cx.now();
        members.on_outcome(&mut cx, &mut leases, op, now, without.answer(&effect));
        members.step(&mut cx, false);
    }
    assert!(cx.did().is_nothing() && leases.turns().is_none(), "a pause comes first");
    cx.later(members.wake_at(&cx).since(cx.now()));
    members.step(&mut cx, false);
    let (_, register) = asked(&cx.did());
    assert!(matches!(register, MembersOp::Write(MembersChange::Register(_))));
}

#[test]
fn other_turns_wake_what_is_held_and_ask_for_a_scan() {
    let (mut cx, mut leases, mut members) = ranked();
    let held = hold(&mut cx, &mut leases, owned("a", "gone", 1));
    cx.did();
    while leases.pop_due(Mono::NEVER).is_some() {}
    let shown = Shown { members: vec![member(&cx, "first"), member(&cx, "me")], shards: vec!["a", "b"] };
    members.step(&mut cx, false);
    let mut requests = Vec::new();
    for _ in 0..5 {
        let did = cx.did();
        requests.extend(did.requests().to_vec());
        let (op, effect) = asked(&did);
        let now = cx.now();
        members.on_outcome(&mut cx, &mut leases, op, now, shown.answer(&effect));
        members.step(&mut cx, false);
    }
    requests.extend(cx.did().requests().to_vec());
    assert_eq!(requests, [Request::Rescan(cx.now())]);
    assert_eq!(leases.turns().and_then(|turns| turns.has("a")), Some(false));
    assert_eq!(leases.pop_due(cx.now()), Some(held));
}

#[test]
fn a_failed_check_is_tried_again_after_all_others_and_a_pause() {
    let (mut cx, mut leases, mut members) = ranked();
    members.step(&mut cx, false);
    let (op, first) = asked(&cx.did());
    let now = cx.now();
    members.on_outcome(&mut cx, &mut leases, op, now, throttled());
    assert_eq!(cx.did().told(), ["trouble"]);
    members.step(&mut cx, false);
    assert!(cx.did().is_nothing());
    cx.later(cx.config().retry_min);
    let shown = Shown { members: vec![member(&cx, "me")], shards: vec!["a"] };
    let all = shown.round(&mut cx, &mut leases, &mut members);
    let again = all.iter().position(|op| *op == first);
    assert_eq!((all.len() > 4, again), (true, Some(4)), "{all:?}");
}

#[test]
fn a_worker_that_leaves_removes_its_row_and_asks_nothing_more() {
    let (mut cx, mut leases, mut members) = ranked();
    members.leave();
    assert!(members.is_idle(), "no row names it");
    let shown = Shown { members: vec![member(&cx, "first"), member(&cx, "me")], shards: vec!["a"] };
    shown.round(&mut cx, &mut leases, &mut members);
    members.leave();
    members.step(&mut cx, false);
    let (op, leave) = asked(&cx.did());
    assert_eq!(leave, MembersOp::Write(MembersChange::Leave("me".into())));
    let now = cx.now();
    members.on_outcome(&mut cx, &mut leases, op, now, done());
    assert!(members.is_idle());
}
