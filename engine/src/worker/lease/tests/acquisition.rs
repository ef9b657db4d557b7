//! Becoming an owner.

use crate::ids::LeaseIx;
use crate::input::{Outcome, Why};
use crate::notice::{Notice, TakeReason};
use crate::output::{Effect, TableOp};
use crate::row::{Change, LeaseRow};
use crate::worker::context::Context;
use crate::worker::lease::HeldLeases;
use crate::worker::lease::acquisition::MAX_TRIES;
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{
    Did, done, owned, refused, refused_by, row, seconds, shown, shows, stage, throttled, unknown,
};

/// A worker that has begun to take a lease.
fn taking(row: LeaseRow, why: TakeReason) -> (Context, HeldLeases, LeaseTable, LeaseIx) {
    let (cx, mut leases) = stage();
    let ix = shows(&cx, &mut leases, row);
    let (mut cx, mut room) = (cx, HeldLeases::default());
    room.take(&mut cx, &mut leases, ix, why);
    (cx, room, leases, ix)
}

fn stolen() -> TakeReason {
    TakeReason::Stolen { owner: "other".into(), theirs: 4, ours: 0, target: 2 }
}

fn answer(
    cx: &mut Context, room: &mut HeldLeases, leases: &mut LeaseTable, ix: LeaseIx, outcome: Outcome,
) -> Did {
    let op = cx.did().op();
    let (_, emitted) = cx.settle(op).expect("it is waited for");
    room.on_lane(cx, leases, ix, op, emitted, outcome);
    cx.did()
}

fn take(did: &Did) -> (u64, u64) {
    match did.command().1 {
        Effect::Table(TableOp::Write(Change::Take { counter, next, .. })) => (counter, next),
        other => panic!("expected a take, found {other:?}"),
    }
}

#[test]
fn an_applied_take_makes_us_owner_with_its_counter_as_the_token() {
    let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
    let began = cx.now();
    cx.later(seconds(2));
    let did = answer(&mut cx, &mut room, &mut leases, ix, done());
    assert_eq!(did.told(), ["took"]);
    let lease = leases.get(ix).unwrap();
    let held = room.described(ix).unwrap();
    assert_eq!((held.token.0, held.counter), (1, 1));
    assert_eq!(held.valid_until, began + cx.hold(), "counted from the emission");
    assert_eq!(lease.row().unwrap().owner.as_ref(), Some(cx.me()));
    assert_eq!(leases.busy(), 1);
}

#[test]
fn an_unknown_take_is_decided_by_the_row_from_the_first_attempt() {
    let (mut cx, mut room, mut leases, ix) = taking(owned("a", "gone", 7), TakeReason::Unowned);
    let began = cx.now();
    cx.later(seconds(3));
    let op = cx.did().op();
    room.on_lane(&mut cx, &mut leases, ix, op, began, unknown());
    cx.later(seconds(1));
    let did = answer(&mut cx, &mut room, &mut leases, ix, shown(Some(owned("a", "me", 8))));
    assert_eq!(did.told(), ["adopted", "took"]);
    let held = room.described(ix).unwrap();
    assert_eq!(held.valid_until, began + cx.hold());
}

#[test]
fn an_attempt_not_applied_is_repeated_with_the_same_guard() {
    let (mut cx, mut room, mut leases, ix) = taking(owned("a", "gone", 7), TakeReason::Unowned);
    let op = cx.did().op();
    let now = cx.now();
    room.on_lane(&mut cx, &mut leases, ix, op, now, unknown());
    let op = cx.did().op();
    let unchanged = shown(Some(owned("a", "gone", 7)));
    room.on_lane(&mut cx, &mut leases, ix, op, now, unchanged);
    assert_eq!(take(&cx.did()), (7, 8));
}

#[test]
fn a_row_that_has_moved_on_ends_the_attempt() {
    for outcome in [refused_by(owned("a", "third", 8)), refused_by(LeaseRow { counter: 8, ..row("a") })] {
        let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
        let did = answer(&mut cx, &mut room, &mut leases, ix, outcome);
        assert_eq!(did.told(), ["missed-take"]);
        assert!(did.effects().is_empty() && leases.busy() == 0);
        assert_eq!(leases.row("a").unwrap().counter, 8);
    }
}

#[test]
fn a_steal_follows_an_owner_that_renews_meanwhile() {
    let (mut cx, mut room, mut leases, ix) = taking(owned("a", "other", 7), stolen());
    for key in ["b", "c"] {
        shows(&cx, &mut leases, owned(key, "other", 1));
    }
    let did = answer(&mut cx, &mut room, &mut leases, ix, refused_by(owned("a", "other", 8)));
    assert_eq!(take(&did), (8, 9));
}

#[test]
fn a_stolen_lease_opens_after_the_belief_of_its_former_owner() {
    let (mut cx, mut room, mut leases, ix) = taking(owned("a", "other", 7), stolen());
    let did = answer(&mut cx, &mut room, &mut leases, ix, done());
    assert!(did.effects().is_empty(), "it is not opened");
    assert!(leases.wake_at() > cx.now());
    cx.later(cx.config().lease_duration);
    room.step(&mut cx, &mut leases, ix);
    let did = cx.did();
    assert!(!did.effects().iter().any(|effect| matches!(effect, Effect::Consumer(_))), "no belief is left");
}

#[test]
fn an_attempt_that_keeps_failing_is_left_to_the_next_scan() {
    let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
    let mut answer_to = cx.did().op();
    for failures in 1..=MAX_TRIES {
        let now = cx.now();
        room.on_lane(&mut cx, &mut leases, ix, answer_to, now, throttled());
        let did = cx.did();
        if failures == MAX_TRIES {
            assert!(did.is_nothing() && leases.busy() == 0);
            return;
        }
        assert_eq!(did.told(), ["trouble"]);
        cx.later(cx.config().retry_max);
        room.step(&mut cx, &mut leases, ix);
        answer_to = cx.did().op();
    }
}

#[test]
fn a_refusal_without_the_row_reads_it_and_no_row_ends_the_take() {
    let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
    let op = cx.did().op();
    let now = cx.now();
    room.on_lane(&mut cx, &mut leases, ix, op, now, refused(Why::ConditionFailed));
    let did = answer(&mut cx, &mut room, &mut leases, ix, shown(None));
    assert_eq!(did.told(), ["missed-take"]);
    assert_eq!(leases.busy(), 0);
}

/// A worker weighs an attempt anew after each scan, and may end the attempt in a pause. The next attempt goes on with the count.
#[test]
fn refusals_without_a_reason_are_counted_over_all_attempts() {
    let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        answer(&mut cx, &mut room, &mut leases, ix, refused_by(row("a")));
        if leases.get(ix).unwrap().busy() {
            room.give_up(&mut leases, ix);
        }
        room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
        assert!(cx.did().is_nothing(), "no take follows within the pause");
        let begun = cx.now();
        while leases.shares(&cx).balance().available().is_empty() {
            cx.later(crate::time::Span::from_millis(10));
        }
        pauses.push(cx.now().since(begun));
        room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
    }
    assert!(pauses[1] > pauses[0] && pauses[7] >= cx.config().retry_max.per(2), "{pauses:?}");
}

/// Nothing is learned from such a refusal: the attempt pauses, ends after a few tries, and the next one comes later.
#[test]
fn a_take_refused_without_a_reason_is_repeated_ever_more_seldom() {
    let (mut cx, mut room, mut leases, ix) = taking(row("a"), TakeReason::Unowned);
    let mut tries = 0;
    while leases.get(ix).unwrap().busy() {
        let did = answer(&mut cx, &mut room, &mut leases, ix, refused_by(row("a")));
        assert_eq!((did.told(), did.effects().len()), (vec!["trouble"], 0));
        tries += 1;
        cx.later(seconds(5));
        room.step(&mut cx, &mut leases, ix);
    }
    assert_eq!(tries, MAX_TRIES);
    // That was longer ago than the first pause after an attempt.
    room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
    let did = answer(&mut cx, &mut room, &mut leases, ix, refused_by(row("a")));
    assert_eq!(did.told(), ["trouble"]);
    assert!(!leases.get(ix).unwrap().busy(), "one try is enough now");
    let available = |cx: &Context, leases: &LeaseTable| leases.shares(cx).balance().available().len();
    assert_eq!(available(&cx, &leases), 0, "it is not taken for a while");
    room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
    assert!(cx.did().is_nothing());
    cx.later(seconds(5));
    assert_eq!(available(&cx, &leases), 1);
    // A row that changes is another matter.
    room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
    answer(&mut cx, &mut room, &mut leases, ix, refused_by(row("a")));
    leases.observe_now(&cx, LeaseRow { counter: 3, ..row("a") });
    assert_eq!(available(&cx, &leases), 1);
}

#[test]
fn takes_of_unknown_outcome_are_repeated_ever_more_seldom() {
    let gone = || owned("a", "gone", 7);
    let (mut cx, mut room, mut leases, ix) = taking(gone(), TakeReason::Unowned);
    let mut pauses = Vec::new();
    for times in 1..=MAX_TRIES {
        let did = answer(&mut cx, &mut room, &mut leases, ix, unknown());
        let op = did.op();
        let (_, emitted) = cx.settle(op).expect("the row is read");
        room.on_lane(&mut cx, &mut leases, ix, op, emitted, shown(Some(gone())));
        if times == 1 {
            // A single write may have been lost on its way.
            continue;
        }
        let did = cx.did();
        assert_eq!(did.effects(), []);
        let [Notice::Trouble { again_in, .. }] = did.notices() else {
            panic!("expected the failed take to be told, found {:?}", did.told());
        };
        pauses.push(*again_in);
        if times < MAX_TRIES {
            cx.later(*again_in);
            room.step(&mut cx, &mut leases, ix);
        }
    }
    assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]), "{pauses:?}");
    let may_be_taken = |cx: &Context, leases: &LeaseTable| leases.get(ix).unwrap().may_be_taken(cx);
    assert!(leases.busy() == 0 && !may_be_taken(&cx, &leases), "the next scan leaves the lease alone, too");
    cx.later(cx.config().retry_max);
    assert!(may_be_taken(&cx, &leases));
}
