//! Before a shard is opened.

use super::Owner;
use crate::input::Why;
use crate::output::{ConsumerOp, Effect, TableOp};
use crate::row::LeaseRow;
use crate::time::Span;
use crate::worker::testing::{done, ended, refused, row, shown, shows, stage, unknown};

fn child() -> LeaseRow {
    LeaseRow { parents: vec!["parent".into()], ..row("a") }
}

fn is_opening(owner: &Owner) -> bool {
    matches!(owner.app(), Some(ConsumerOp::Open { .. }))
}

#[test]
fn a_shard_without_parents_is_opened_at_its_checkpoint() {
    let owner = Owner::of(row("a"));
    let expected =
        ConsumerOp::Open { lease: "a".into(), token: owner.token(), from: row("a").checkpoint, since: None };
    assert_eq!(owner.app(), Some(expected));
}

#[test]
fn a_shard_waits_until_a_consistent_read_shows_its_parents_end() {
    let mut owner = Owner::of(child());
    assert_eq!((owner.app(), owner.row_read()), (None, Some("parent".into())));
    owner.answer_table(shown(Some(row("parent"))));
    assert_eq!(owner.told(), ["took", "blocked"]);
    assert!(!is_opening(&owner) && owner.row_read().is_none());

    owner.later(owner.cx.config().renew_interval);
    owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Write(_))), done());
    assert_eq!(owner.row_read(), Some("parent".into()), "it looks again");
    owner.answer_table(shown(Some(ended("parent", &["a"]))));
    assert!(is_opening(&owner));
}

/// The parents of a merged child often end within moments of each other.
#[test]
fn a_parents_row_is_read_after_growing_pauses_up_to_a_limit() {
    let mut owner = Owner::of(child());
    for pause in [250, 500, 1_000, 2_000, 3_300, 3_300] {
        owner.answer(
            |effect| matches!(effect, Effect::Table(TableOp::Read { .. })),
            shown(Some(row("parent"))),
        );
        owner.later(Span(Span::from_millis(pause).0 - 1));
        assert_eq!(owner.row_read(), None, "before {pause} ms");
        owner.later(Span(1));
        assert_eq!(owner.row_read(), Some("parent".into()), "after {pause} ms");
        if owner.write().is_some() {
            owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Write(_))), done());
        }
    }
}

#[test]
fn an_ended_parent_is_not_asked_for_and_a_lost_one_not_awaited() {
    let (cx, mut leases) = stage();
    shows(&cx, &mut leases, ended("parent", &["a"]));
    assert!(is_opening(&Owner::within(cx, leases, child())));

    let mut owner = Owner::of(child());
    owner.answer_table(shown(None));
    assert!(is_opening(&owner));
}

#[test]
fn a_shard_whose_opening_failed_is_tried_again_after_a_pause() {
    let mut owner = Owner::of(row("a"));
    owner.answer_app(refused(Why::HandlerFailed));
    assert_eq!(owner.told(), ["took", "handler-failed"]);
    assert!(!is_opening(&owner));
    let pause = owner.leases.wake_at().since(owner.cx.now());
    assert!(pause >= owner.cx.config().handler_backoff, "{pause}");
    owner.later(Span(pause.0));
    assert!(is_opening(&owner));
}

#[test]
fn a_shard_is_not_opened_after_the_belief_has_run_out() {
    let mut owner = Owner::of(child());
    owner.later(owner.cx.hold());
    owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Read { .. })), shown(None));
    assert!(!is_opening(&owner));
    owner.answer_table(unknown());
    owner.later(owner.cx.config().retry_max);
    owner.answer_table(done());
    assert!(is_opening(&owner), "once it is renewed");
}
