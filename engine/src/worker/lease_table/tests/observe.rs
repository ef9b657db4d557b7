//! The effect on the table of a row shown by an answer.

use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::time::{Mono, Span};
use crate::worker::lease_table::{OnLane, Scan};
use crate::worker::testing::{context, ended, hold, owned, row, seconds, shows, stage, stage_of, whole_scan};

#[test]
fn a_row_is_as_old_as_answers_have_shown_it_standing_still() {
    let (mut cx, mut leases) = stage();
    let ix = shows(&cx, &mut leases, owned("a", "other", 1));
    cx.later(seconds(4));
    assert_eq!(leases.get(ix).unwrap().idle(), Span::ZERO, "nothing was asked");
    shows(&cx, &mut leases, owned("a", "other", 1));
    assert_eq!(leases.get(ix).unwrap().idle(), seconds(4));
    shows(&cx, &mut leases, owned("a", "other", 2));
    assert_eq!(leases.get(ix).unwrap().idle(), Span::ZERO, "its owner lives");
}

#[test]
fn a_change_between_answers_far_apart_is_no_recent_renewal() {
    let (mut cx, mut leases) = stage();
    let ix = shows(&cx, &mut leases, owned("a", "other", 1));
    let mut counter = 1;
    let mut after = |span| {
        cx.later(span);
        counter += 1;
        shows(&cx, &mut leases, owned("a", "other", counter));
        leases.get(ix).unwrap().is_unwatched()
    };
    let longest = context().config().scan_interval.times(2).max(context().config().lease_duration);
    assert!(!after(longest));
    assert!(after(longest + Span(1)), "the owner may have died in between");
    assert!(!after(seconds(1)), "the owner renews");
}

#[test]
fn a_lease_handed_over_after_a_long_time_is_watched_at_once() {
    let (mut cx, mut leases) = stage();
    let ix = hold(&mut cx, &mut leases, row("a"));
    cx.later(seconds(600));
    let counter = leases.row("a").unwrap().counter;
    leases.wrote(&cx, ix, OnLane::GivenUp { counter: counter + 1, next_owner: Some("other".into()) });
    leases.let_go(ix, false);
    cx.later(seconds(1));
    shows(&cx, &mut leases, owned("a", "other", counter + 2));
    assert!(!leases.get(ix).unwrap().is_unwatched(), "the next owner has taken the lease a moment ago");
}

#[test]
fn an_older_counter_is_taken_for_a_stale_read_the_first_time() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    let mut counter = |counter| {
        cx.later(seconds(30));
        whole_scan(&mut cx, &mut leases, &mut scan, vec![owned("a", "other", counter)]);
        leases.row("a").unwrap().counter
    };
    assert_eq!(counter(5), 5);
    assert_eq!(counter(3), 5);
    assert_eq!(counter(3), 3, "the row was made anew");
    assert_eq!(leases.get(leases.find("a").unwrap()).unwrap().highest(), 5);
}

#[test]
fn a_held_lease_follows_its_own_writes_and_a_newer_row_wakes_it() {
    let (mut cx, mut leases) = stage();
    let ix = hold(&mut cx, &mut leases, row("a"));
    cx.later(seconds(1));
    let quiet = leases.wake_at();
    shows(&cx, &mut leases, owned("a", "me", 1));
    assert_eq!(leases.wake_at(), quiet, "as we left it");

    shows(&cx, &mut leases, owned("a", "other", 7));
    let lease = leases.get(ix).unwrap();
    assert_eq!(lease.row().unwrap().owner.as_ref(), Some(cx.me()));
    assert_eq!(lease.highest(), 7);
    assert_eq!(leases.wake_at(), cx.now(), "the guard of the next write settles it");
}

#[test]
fn the_moment_is_kept_at_which_a_shard_was_seen_to_have_ended() {
    let (mut cx, mut leases) = stage();
    let ix = shows(&cx, &mut leases, row("a"));
    assert_eq!(leases.get(ix).unwrap().ended_at(), Mono::NEVER);
    cx.later(seconds(1));
    let now = cx.now();
    shows(&cx, &mut leases, ended("a", &[]));
    cx.later(seconds(1));
    shows(&cx, &mut leases, ended("a", &[]));
    assert_eq!(leases.get(ix).unwrap().ended_at(), now);
    let again = LeaseRow { checkpoint: Checkpoint::TrimHorizon, ..ended("a", &[]) };
    shows(&cx, &mut leases, again);
    assert_eq!(leases.get(ix).unwrap().ended_at(), Mono::NEVER, "a person set it back");
}
