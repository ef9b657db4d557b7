//! The leader's lock alone: its writes, and the meaning of outcomes.

use super::super::lock::{COURTESY, LeaderLock};
use crate::fleet::{FleetLeader, FleetRow, FleetWrite, LEADER_BEAT, LEADER_LEASE};
use crate::input::{Outcome, Why};
use crate::time::Span;
use crate::worker::context::Context;
use crate::worker::kcl3::Kcl3Workers;
use crate::worker::testing::{context, done, refused, seconds, throttled, unknown};

/// A scan shows the lock with this version, or none.
fn shows(cx: &Context, fleet: &mut Kcl3Workers, scan: u64, version: Option<&str>) {
    if let Some(version) = version {
        let lock = FleetLeader {
            id: "other".into(),
            version: version.into(),
            lease_ms: LEADER_LEASE.0 / 1_000,
            released: false,
        };
        fleet.observe(cx, scan, cx.now(), FleetRow::Leader(lock));
    }
    fleet.scanned(cx, scan);
}

/// Asks for what is due, and answers it.
fn turn(
    cx: &Context, lock: &mut LeaderLock, fleet: &Kcl3Workers, scan: u64, outcome: Outcome,
) -> Option<FleetWrite> {
    let write = lock.due(cx, fleet, scan)?;
    lock.on_outcome(cx.now(), &write, cx.now(), &outcome);
    Some(write)
}

/// A lock that was free for long enough.
fn free() -> (Context, LeaderLock, Kcl3Workers) {
    let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
    shows(&cx, &mut fleet, 1, None);
    cx.later(COURTESY);
    shows(&cx, &mut fleet, 2, None);
    (cx, LeaderLock::default(), fleet)
}

/// The lock was taken, with this version, and the answer was lost.
fn perhaps_leading() -> (Context, LeaderLock, Kcl3Workers, String) {
    let (cx, mut lock, fleet) = free();
    match turn(&cx, &mut lock, &fleet, 2, unknown()) {
        Some(FleetWrite::Lead { version, .. }) => (cx, lock, fleet, version),
        other => panic!("expected a take, found {other:?}"),
    }
}

/// It is ours now.
fn leading() -> (Context, LeaderLock, Kcl3Workers) {
    let (cx, mut lock, fleet) = free();
    let write = turn(&cx, &mut lock, &fleet, 2, done());
    assert!(matches!(write, Some(FleetWrite::Lead { seen: None, .. })), "{write:?}");
    assert!(lock.leads(cx.now()));
    (cx, lock, fleet)
}

#[test]
fn a_free_lock_is_left_to_others_for_a_while() {
    let (mut cx, mut lock, mut fleet) = (context(), LeaderLock::default(), Kcl3Workers::default());
    shows(&cx, &mut fleet, 1, None);
    cx.later(Span(COURTESY.0 - 1));
    shows(&cx, &mut fleet, 2, None);
    assert_eq!(turn(&cx, &mut lock, &fleet, 2, done()), None);
}

#[test]
fn a_still_lock_is_taken_when_it_has_run_out_and_once_a_scan() {
    let (mut cx, mut lock, mut fleet) = (context(), LeaderLock::default(), Kcl3Workers::default());
    shows(&cx, &mut fleet, 1, Some("v1"));
    cx.later(LEADER_LEASE);
    shows(&cx, &mut fleet, 2, Some("v1"));
    assert_eq!(turn(&cx, &mut lock, &fleet, 2, done()), None, "it may still be believed in");
    cx.later(Span(1));
    shows(&cx, &mut fleet, 3, Some("v1"));
    let write = turn(&cx, &mut lock, &fleet, 3, refused(Why::ConditionFailed));
    assert!(matches!(write, Some(FleetWrite::Lead { seen: Some(seen), .. }) if seen == "v1"));
    assert!(!lock.leads(cx.now()));
    assert_eq!(turn(&cx, &mut lock, &fleet, 3, done()), None, "nothing new was seen");
    shows(&cx, &mut fleet, 4, Some("v2"));
    assert_eq!(turn(&cx, &mut lock, &fleet, 4, done()), None, "it was renewed");
}

#[test]
fn a_renewal_of_unknown_outcome_does_not_cost_the_lead() {
    let (mut cx, mut lock, fleet) = leading();
    cx.later(LEADER_BEAT);
    let Some(FleetWrite::Beat { version: second, seen: first, .. }) =
        turn(&cx, &mut lock, &fleet, 3, unknown())
    else {
        panic!("a renewal is due")
    };
    assert_eq!(first.len(), 1);
    cx.later(seconds(5));
    let Some(FleetWrite::Beat { version: third, seen, .. }) = turn(&cx, &mut lock, &fleet, 3, done()) else {
        panic!("it is tried again")
    };
    assert_eq!(seen, [first[0].clone(), second], "either may be in the row");
    let step_down = lock.step_down(&"me".into());
    assert!(matches!(step_down, Some(FleetWrite::StepDown { seen, .. }) if seen == [third]));
    assert!(!lock.leads(cx.now()));
}

#[test]
fn a_leader_whose_renewals_fail_stops_when_the_lock_runs_out() {
    let (mut cx, mut lock, fleet) = leading();
    let from = cx.now();
    for scan in 3..200 {
        if cx.now().since(from) >= LEADER_LEASE {
            break;
        }
        assert!(lock.leads(cx.now()));
        turn(&cx, &mut lock, &fleet, scan, throttled());
        cx.later(seconds(1));
    }
    assert!(!lock.leads(cx.now()));
}

#[test]
fn a_take_of_unknown_outcome_is_recognised_by_its_version() {
    let (mut cx, mut lock, mut fleet, version) = perhaps_leading();
    assert!(!lock.leads(cx.now()), "it is not known yet");
    let sent = cx.now();
    cx.later(seconds(1));
    shows(&cx, &mut fleet, 3, Some(&version));
    assert_eq!(turn(&cx, &mut lock, &fleet, 3, done()), None, "no renewal is due");
    assert!(lock.leads(cx.now()));
    assert!(!lock.leads(sent + LEADER_LEASE), "it counts from when the take was sent");
}

/// A leader that has stood still for longer than its lock lasts.
fn lapsed() -> (Context, LeaderLock, Kcl3Workers) {
    let (mut cx, lock, fleet) = leading();
    cx.later(LEADER_LEASE.times(2));
    assert!(!lock.leads(cx.now()), "another worker may lead");
    (cx, lock, fleet)
}

#[test]
fn a_leader_that_stood_leads_on_if_its_version_is_in_the_row() {
    let (cx, mut lock, fleet) = lapsed();
    let write = turn(&cx, &mut lock, &fleet, 3, done());
    assert!(matches!(write, Some(FleetWrite::Beat { .. })), "{write:?}");
    assert!(lock.leads(cx.now()));
}

#[test]
fn a_leader_that_stood_leads_no_more_if_another_took_its_lock() {
    let (cx, mut lock, mut fleet) = lapsed();
    shows(&cx, &mut fleet, 3, Some("another"));
    let refused = || refused(Why::ConditionFailed);
    assert!(turn(&cx, &mut lock, &fleet, 3, refused()).is_some());
    assert!(!lock.leads(cx.now()) && lock.may_be_ours(), "the renewal may have been executed twice");
    assert!(turn(&cx, &mut lock, &fleet, 3, refused()).is_some());
    assert!(!lock.may_be_ours());
    assert_eq!(turn(&cx, &mut lock, &fleet, 3, done()), None);
    assert_eq!(lock.step_down(&"me".into()), None);
}

/// The service executes each renewal twice, and tells the outcome of the second execution.
#[test]
fn a_valid_lock_outlasts_refused_renewals() {
    let (mut cx, mut lock, fleet) = leading();
    let refused = || refused(Why::ConditionFailed);
    cx.later(LEADER_BEAT);
    for _ in 0..3 {
        assert!(turn(&cx, &mut lock, &fleet, 3, refused()).is_some());
        assert!(lock.leads(cx.now()), "no other worker takes a valid lock");
        cx.later(seconds(2));
    }
    cx.later(LEADER_LEASE);
    assert!(turn(&cx, &mut lock, &fleet, 3, refused()).is_some());
    assert!(!lock.may_be_ours(), "another worker may have taken the lock");
}

#[test]
fn a_leader_that_stood_still_gives_its_lock_up_when_it_stops() {
    let (_, mut lock, _) = lapsed();
    let step_down = lock.step_down(&"me".into());
    assert!(
        matches!(&step_down, Some(FleetWrite::StepDown { seen, .. }) if seen.len() == 1),
        "{step_down:?}"
    );
    assert!(!lock.may_be_ours());
}

#[test]
fn a_take_of_unknown_outcome_is_given_up_too() {
    let (_, mut lock, _, version) = perhaps_leading();
    let step_down = lock.step_down(&"me".into());
    assert!(matches!(step_down, Some(FleetWrite::StepDown { seen, .. }) if seen == [version]));
}
