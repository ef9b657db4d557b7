//! What the answers on the lane of a held lease mean.

use super::laned;
use crate::ids::OpId;
use crate::input::{Outcome, Why};
use crate::notice::LossReason;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease::lane::{Answer, From, Lane, WriteKind};
use crate::worker::testing::{done, owned, refused, refused_by, row, seconds, shown, unknown};

/// The answer to an operation that was emitted just now.
fn answer(cx: &mut Context, lane: &mut Lane, kind: WriteKind, outcome: Outcome) -> Answer {
    let (key, emitted) = ("a".into(), cx.now());
    let from = From { key: &key, kind, emitted };
    lane.on_answer(cx, &from, OpId { life: 1, n: 1 }, outcome)
}

#[test]
fn an_unknown_write_that_was_applied_counts_from_its_emission() {
    let (mut cx, mut lane) = laned();
    let began = cx.now();
    cx.later(seconds(3));
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Renew, unknown()), Answer::Nothing);
    assert_eq!(lane.valid_until, began + cx.hold(), "nothing is assumed");
    cx.later(seconds(2));
    let own = refused_by(owned("a", "me", 6));
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Renew, own), Answer::StillOurs);
    assert_eq!(lane.valid_until, began + seconds(3) + cx.hold());
    assert_eq!((lane.counter, lane.unresolved), (6, None));
    assert_eq!(cx.did().told(), ["trouble", "adopted"]);
}

#[test]
fn a_row_with_another_owner_or_counter_is_a_loss() {
    for row in [owned("a", "other", 6), owned("a", "me", 9), row("a")] {
        let (mut cx, mut lane) = laned();
        let answer = answer(&mut cx, &mut lane, WriteKind::Renew, refused_by(row.clone()));
        let by = row.owner.clone();
        let why = LossReason::Taken { by, row: Box::new(row.clone()) };
        assert_eq!(answer, Answer::Lost(why, Some(Box::new(row))));
    }
}

#[test]
fn a_removed_row_is_put_back_during_the_belief_and_lost_after() {
    let (mut cx, mut lane) = laned();
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Read, shown(None)), Answer::Restore);
    cx.later(cx.hold());
    let gone = Answer::Lost(LossReason::RowGone, None);
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Read, shown(None)), gone);
}

#[test]
fn after_a_refusal_without_the_row_a_read_says_what_was_applied() {
    let (mut cx, mut lane) = laned();
    let bare = refused(Why::ConditionFailed);
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::End, bare), Answer::LookAtRow);
    let ended = LeaseRow { checkpoint: Checkpoint::ShardEnd, counter: 6, ..row("a") };
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Read, shown(Some(ended))), Answer::Ended);
}

#[test]
fn an_unknown_release_is_over_when_the_row_has_no_owner() {
    let (mut cx, mut lane) = laned();
    answer(&mut cx, &mut lane, WriteKind::Release, unknown());
    let free = LeaseRow { counter: 6, ..row("a") };
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Release, refused_by(free)), Answer::GivenUp);
}

#[test]
fn a_counter_removed_by_a_person_is_put_back_by_the_next_write() {
    let (mut cx, mut lane) = laned();
    let bare = refused_by(owned("a", "me", 0));
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::Renew, bare), Answer::Nothing);
    assert_eq!((cx.did().told(), lane.counter), (vec!["mending"], 0));
}

#[test]
fn a_missing_table_is_doubted_and_the_write_is_tried_again() {
    let (mut cx, mut lane) = laned();
    let answer = answer(&mut cx, &mut lane, WriteKind::Renew, refused(Why::NotFound));
    assert_eq!(answer, Answer::Nothing);
    assert_eq!(cx.did().requests(), [Request::DoubtTable]);
    assert!(lane.backoff.until() > cx.now());
}

#[test]
fn an_acknowledged_hand_over_gives_the_lease_up() {
    let (mut cx, mut lane) = laned();
    lane.next_owner = Some("other".into());
    assert_eq!(answer(&mut cx, &mut lane, WriteKind::HandOver, done()), Answer::GivenUp);
    assert_eq!(lane.counter, 6);
}

/// The guard of a write may not hold of the very row that it is made of, and the row does not say why.
#[test]
fn a_refusal_that_the_row_does_not_explain_brings_a_pause() {
    let ours = || owned("a", "me", 5);
    for shows in [true, false] {
        let (mut cx, mut lane) = laned();
        let mut pauses = Vec::new();
        for _ in 0..4 {
            let refusal = match shows {
                true => refused_by(ours()),
                false => refused(Why::ConditionFailed),
            };
            let said = answer(&mut cx, &mut lane, WriteKind::Renew, refusal);
            if !shows {
                assert_eq!(said, Answer::LookAtRow);
                answer(&mut cx, &mut lane, WriteKind::Read, shown(Some(ours())));
            }
            assert!(lane.believes(cx.now()), "nothing is known but the refusal");
            pauses.push(lane.backoff.until().since(cx.now()));
            cx.later(Span(1));
        }
        let doubles = |pair: &[Span]| pair[0] > Span::ZERO && pair[1] > pair[0];
        assert!(pauses.windows(2).all(doubles), "{pauses:?}");
        assert_eq!(cx.did().told(), ["trouble"; 3], "of the second refusal and those that follow");
        answer(&mut cx, &mut lane, WriteKind::Renew, done());
        assert_eq!((lane.refusals, lane.backoff.failures()), (0, 0));
    }
}

/// The first refusal shows that the row is to be handed over: the next write has another guard, and follows at once.
#[test]
fn a_refusal_that_the_row_explains_costs_no_pause() {
    let (mut cx, mut lane) = laned();
    let requested = LeaseRow { handing_over: Some("me".into()), ..owned("a", "other", 5) };
    let said = answer(&mut cx, &mut lane, WriteKind::Renew, refused_by(requested));
    assert_eq!((said, lane.next_owner), (Answer::Nothing, Some("other".into())));
    assert!(lane.backoff.until() <= cx.now());
}

#[test]
fn uncounted_time_makes_an_unknown_write_older() {
    let (mut cx, mut lane) = laned();
    answer(&mut cx, &mut lane, WriteKind::Renew, unknown());
    let since = lane.unresolved.expect("it may have been applied").since;
    lane.missed(seconds(60));
    assert_eq!(lane.unresolved.expect("nothing has answered that").since, since - seconds(60));
}
