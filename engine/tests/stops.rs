//! A worker's summary at the end of a stop: released leases, leases left behind, and handlers cut off.

use crate::rig::*;
use leasehold_engine::input::{Body, Call, Cause, Outcome, Why};
use leasehold_engine::notice::{Left, Notice, StopSummary};
use leasehold_engine::time::Span;

/// A worker with three leases.
fn holder() -> Rig {
    let rig = Rig::new(3, 1).after(60);
    assert_eq!(rig.owners(3), [Some(0); 3]);
    rig
}

/// The same, and the handler hangs with the first batch of the first shard.
fn hanging() -> Rig {
    let mut rig = holder();
    rig[0].trap(hangs(DELIVER));
    rig.put(0, 5);
    rig.secs(10);
    rig
}

/// The first worker's summary at the end of its stop, once it has stopped.
fn stopped(rig: &mut Rig) -> StopSummary {
    let timeout = rig.config.shutdown_timeout();
    rig.run(timeout + Span::from_secs(1));
    summary(rig)
}

/// The summary of the first, stopped worker.
fn summary(rig: &Rig) -> StopSummary {
    assert!(rig[0].is_stopped());
    match &rig[0].notices.last().expect("a notice").1 {
        Notice::Stopped(summary) => (**summary).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stop_that_gives_everything_up_says_so() {
    let mut rig = holder();
    rig.call(0, Call::Shutdown);
    let summary = stopped(&mut rig);
    assert_eq!((summary.released, summary.left, summary.aborted), (3, 0, 0));
    assert!(summary.is_clean());
}

#[test]
fn leases_whose_release_fails_are_left_with_their_cause() {
    for (trick, cause) in [
        (
            Trick::Instead(Outcome::NotSent(Cause::Network)),
            (|left| matches!(left, Left::Failed { times: 1.. })) as fn(&Left) -> bool,
        ),
        (Trick::UNKNOWN, |left| *left == Left::Unanswered),
    ] {
        let mut rig = holder();
        rig[0].trap(meets(RELEASE, trick));
        rig.call(0, Call::Shutdown);
        let summary = stopped(&mut rig);
        assert_eq!((summary.released, summary.left, summary.aborted), (0, 3, 0));
        assert_eq!(summary.named.len(), 3);
        assert!(summary.named.iter().all(|(_, why)| cause(why)), "{summary:?}");
        assert_eq!(summary.lease_duration, rig.config.lease_duration());
        assert_eq!(rig.owners(3), [Some(0); 3]);
    }
}

#[test]
fn released_leases_and_left_ones_are_counted_apart() {
    let mut rig = holder();
    rig[0].trap(hangs(RELEASE.of(1)));
    rig.call(0, Call::Shutdown);
    let summary = stopped(&mut rig);
    assert_eq!((summary.released, summary.left), (2, 1));
    assert_eq!(summary.named, [(shard_id(1).to_lease(), Left::Unanswered)]);
}

#[test]
fn a_handler_cut_off_is_counted_although_its_lease_is_released() {
    let mut rig = hanging();
    rig.call(0, Call::Shutdown);
    while rig[0].sent(ABORT) == 0 {
        assert!(!rig[0].is_stopped(), "no handler was aborted");
        rig.secs(1);
    }
    let hung = rig[0].hung.remove(0).op;
    let outcome = Outcome::Unknown(Cause::Cancelled);
    rig.tell(0, Body::Done { op: hung, outcome });
    let summary = stopped(&mut rig);
    assert_eq!((summary.released, summary.left, summary.aborted), (3, 0, 1));
    assert!(!summary.is_clean());
}

/// A stop with a time of its own takes no longer, and leaves a hanging handler the same part of the time as the option
/// would.
#[test]
fn a_stop_with_its_own_time_ends_then_whatever_the_option() {
    let within = Span::from_secs(20);
    let mut rig = hanging();
    assert!(rig.config.shutdown_timeout() > within);
    rig.call(0, Call::ShutdownWithin(within));
    let at_last = rig.config.table_timeout().times(2) + Span::from_millis(100);
    rig.run(Span(within.0 - at_last.0));
    assert_eq!(rig[0].sent(ABORT), 0, "the handler has its time");
    rig.call(0, Call::ShutdownWithin(Span::from_secs(3_600)));
    rig.call(0, Call::Shutdown);
    rig.run(at_last + Span::from_millis(100));
    assert_eq!(summary(&rig).aborted, 1);
}

/// The worker waits for no handler then, not even for a handler that only closes its shard. Releases have the time of
/// two requests.
#[test]
fn a_stop_without_time_gives_up_what_can_be_given_up_at_once() {
    let mut rig = hanging();
    rig.call(0, Call::ShutdownWithin(Span::ZERO));
    rig.run(rig.config.table_timeout().times(2) + Span::from_millis(100));
    let summary = summary(&rig);
    assert_eq!((summary.released, summary.left, summary.aborted), (2, 1, 3));
}

/// As a person who asks once more: what would have 30 s ends with the time of two requests.
#[test]
fn a_stop_under_way_ends_sooner_if_it_is_asked_to() {
    let mut rig = hanging();
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    assert!(!rig[0].is_stopped(), "the handler has its time");
    rig.call(0, Call::ShutdownWithin(Span::ZERO));
    // A longer time takes nothing back.
    rig.call(0, Call::ShutdownWithin(Span::from_secs(60)));
    rig.run(rig.config.table_timeout().times(2) + Span::from_millis(100));
    let summary = summary(&rig);
    assert_eq!((summary.released, summary.left, summary.aborted), (2, 1, 1));
}

/// The failure is told, and not that the handler is called again: its worker shuts down.
#[test]
fn a_handler_failing_in_a_stop_is_not_said_to_be_called_again() {
    let mut rig = hanging();
    rig.call(0, Call::Shutdown);
    let hung = rig[0].hung.remove(0).op;
    let outcome = refused(Why::HandlerFailed, None);
    rig.tell(0, Body::Done { op: hung, outcome });
    let failed =
        rig[0].news(|notice| matches!(notice, Notice::HandlerFailed { .. }).then(|| notice.to_string()));
    let expected = format!(
        "handler failed for {} (attempt 1): the handler returned an error; not retrying: the lease is given up, and its next \
         owner gets the records",
        shard_id(0)
    );
    assert_eq!(failed, [expected]);
    assert!(stopped(&mut rig).is_clean());
}

/// Only owners of a lease are in the order of leaders.
#[test]
fn a_worker_without_a_lease_is_not_said_to_lead_anybody() {
    let mut rig = Rig::new(1, 1).after(60);
    let second = rig.join();
    rig.secs(10);
    let ranks =
        |worker| rig[worker].news(|notice| matches!(notice, Notice::Rank { .. }).then(|| notice.to_string()));
    let empty = "has no rank in the order of leaders, which is empty: no worker owns a lease";
    assert_eq!(ranks(0), [empty, "has rank 1 of 1 in the order of leaders"]);
    let first_only = "has no rank in the order of leaders, because it owns no lease: 1 worker is in it";
    assert_eq!(ranks(second), [first_only]);
}

/// The answer of an end comes when the time of a stop has nearly run out, and the shard is being closed already.
#[test]
fn an_end_that_is_known_late_names_the_children_all_the_same() {
    let mut rig = holder();
    rig[0].trap(hangs(either(END, CLOSE)));
    rig.split(0);
    rig.until_hung(0, Span::from_secs(1), END);
    rig.call(0, Call::Shutdown);
    rig.until_hung(0, Span::from_millis(100), CLOSE);
    rig.free(0);
    let ended = rig[0].news(|notice| match notice {
        Notice::Ended { children, .. } => Some(children.clone()),
        _ => None,
    });
    assert_eq!(ended, [[3, 4].map(shard_id)]);
}
