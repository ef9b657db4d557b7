//! What the application keeps and acknowledges later.

use super::{Owner, closes_for, halves, reads_the_end, records};
use crate::config::ReaderConfig;
use crate::format::Format;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::output::{ConsumerOp, EndReason, FlushReason, IteratorFrom};
use crate::position::Checkpoint;
use crate::worker::lease::Said;
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{at, config, done, owned, refused, refused_by, row, running, seconds, table};

/// The batch that the handler is given.
fn given(owner: &Owner) -> Option<OpId> {
    match owner.app()? {
        ConsumerOp::Deliver { batch, .. } => Some(batch),
        _ => None,
    }
}

fn flushes(owner: &Owner) -> Option<FlushReason> {
    match owner.app()? {
        ConsumerOp::Flush { why, .. } => Some(why),
        _ => None,
    }
}

fn kept() -> Outcome {
    Outcome::Applied(Reply::Kept)
}

/// The handler keeps records 1 to 5, 6 to 7 and 8 to 9: the batches.
fn keeping() -> (Owner, [OpId; 3]) {
    let mut owner = Owner::processing();
    let mut batches = [given(&owner).expect("given"); 3];
    for (n, (first, last)) in [(1, (6, 7)), (2, (8, 9))] {
        owner.answer_app(kept());
        owner.later(seconds(1));
        owner.answer_stream(records(first, last));
        batches[n] = given(&owner).expect("given");
    }
    owner.answer_app(kept());
    (owner, batches)
}

#[test]
fn the_watermark_follows_the_batches_acknowledged_without_a_gap() {
    let (mut owner, [first, second, third]) = keeping();
    assert_eq!(owner.said().processed, None);
    owner.say(Said::Acknowledged(second));
    assert_eq!(owner.said().processed, None, "the first batch is a gap");
    owner.say(Said::ProcessedThrough(at(3)));
    assert_eq!(owner.said().processed, Some(at(3)));
    owner.say(Said::Acknowledged(first));
    assert_eq!(owner.said().processed, Some(at(7)));
    owner.say(Said::Acknowledged(third));
    assert_eq!(owner.said().processed, Some(at(9)));
}

#[test]
fn a_position_in_a_kept_batch_says_nothing_of_earlier_batches() {
    let (mut owner, [first, _, third]) = keeping();
    owner.say(Said::ProcessedThrough(at(8)));
    assert_eq!(owner.said().processed, None);
    owner.say(Said::Acknowledged(third));
    owner.say(Said::Acknowledged(first));
    assert_eq!(owner.said().processed, Some(at(5)));
}

#[test]
fn an_acknowledgement_before_the_answer_of_its_hand_over_counts() {
    let mut owner = Owner::processing();
    let batch = given(&owner).expect("given");
    owner.say(Said::Acknowledged(batch));
    owner.answer_app(kept());
    assert_eq!(owner.said().processed, Some(at(5)));
}

#[test]
fn words_under_another_token_or_of_an_unknown_batch_are_ignored() {
    let (mut owner, [first, ..]) = keeping();
    let (ix, stale) = (owner.ix, crate::ids::FencingToken(owner.token().0 + 1));
    owner.room.on_said(&mut owner.cx, &mut owner.leases, ix, stale, Said::Acknowledged(first));
    owner.say(Said::Acknowledged(OpId { life: 9, n: 9 }));
    assert_eq!(owner.said().processed, None);
}

#[test]
fn a_position_after_the_give_back_of_a_batch_before_is_ignored() {
    let (mut owner, [first, ..]) = keeping();
    owner.say(Said::GivenBack(first, "the sink is full".into()));
    owner.say(Said::ProcessedThrough(at(9)));
    assert_eq!(owner.said().processed, None, "the first batch comes again");
}

#[test]
fn a_kept_batch_given_back_comes_again_with_all_after_it() {
    let (mut owner, [first, second, third]) = keeping();
    owner.forget();
    owner.say(Said::Acknowledged(first));
    owner.say(Said::Acknowledged(third));
    owner.say(Said::GivenBack(second, "the sink is full".into()));
    assert_eq!(owner.told(), ["handler-failed"]);
    assert_eq!(owner.said().processed, Some(at(5)));
    owner.later(seconds(1));
    assert_eq!(owner.reads_again_from(), IteratorFrom::At(at(5)));
    owner.iterates();
    owner.answer_stream(records(5, 9));
    owner.later(seconds(5));
    assert!(given(&owner).is_some_and(|again| again != second && again != third));
    // The old batches are not acknowledged any more by anything.
    owner.say(Said::Acknowledged(second));
    assert_eq!(owner.said().processed, Some(at(5)));
}

#[test]
fn at_its_limit_a_handler_is_to_flush_and_is_given_nothing() {
    let reader = ReaderConfig::default().with_kept_batches(1);
    let cx = running(config(Format::Kcl).with_reader(reader));
    let leases: LeaseTable = table(&cx);
    let mut owner = Owner::within(cx, leases, row("a"));
    owner.answer_app(done());
    owner.iterates();
    owner.answer_stream(records(1, 5));
    let batch = given(&owner).expect("given");
    owner.later(seconds(1));
    owner.answer_stream(records(6, 9));
    owner.answer_app(kept());
    assert_eq!(flushes(&owner), Some(FlushReason::Full));
    owner.answer_app(done());
    assert_eq!(owner.app(), None, "it is told once");
    owner.say(Said::Acknowledged(batch));
    assert!(given(&owner).is_some());
}

#[test]
fn the_end_of_a_shard_waits_until_all_kept_is_acknowledged() {
    let (mut owner, batches) = keeping();
    owner.later(seconds(1));
    reads_the_end(&mut owner, &halves());
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
    owner.say(Said::Acknowledged(batches[0]));
    owner.answer_app(done());
    assert_eq!(owner.app(), None);
    assert_eq!(owner.held().processing().children(), []);
    owner.say(Said::Acknowledged(batches[2]));
    owner.say(Said::Acknowledged(batches[1]));
    assert_eq!(owner.held().processing().children(), ["b".into(), "c".into()], "the shard ends");
}

#[test]
fn a_flush_that_fails_is_repeated_after_a_pause() {
    let (mut owner, _) = keeping();
    owner.later(seconds(1));
    reads_the_end(&mut owner, &[]);
    owner.forget();
    owner.answer_app(refused(Why::HandlerFailed));
    assert_eq!(owner.told(), ["handler-failed"]);
    assert_eq!(owner.app(), None);
    owner.later(owner.cx.config().handler_backoff.times(4));
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
}

#[test]
fn a_stop_waits_for_durable_acknowledgements_before_the_close() {
    let (mut owner, batches) = keeping();
    owner.stop();
    let leaving = FlushReason::Leaving(EndReason::Shutdown);
    assert_eq!(flushes(&owner), Some(leaving));
    owner.answer_app(done());
    for batch in batches {
        owner.say(Said::Acknowledged(batch));
    }
    assert_eq!(owner.app(), None, "not before the checkpoint is durable");
    // The first acknowledgement was written at once, later acknowledgements after that.
    owner.answer_table(done());
    assert_eq!((owner.said().checkpoint, owner.app()), (Checkpoint::At(at(5)), None));
    owner.answer_table(done());
    assert_eq!(owner.said().checkpoint, Checkpoint::At(at(9)));
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
}

#[test]
fn a_batch_not_acknowledged_in_time_is_given_up_and_told() {
    let (mut owner, batches) = keeping();
    owner.say(Said::Acknowledged(batches[0]));
    owner.pass(6);
    owner.forget();
    owner.stop();
    owner.pass(21);
    assert!(owner.is_aborted(), "a flush that takes too long is stopped");
    owner.answer_app(Outcome::Unknown(crate::input::Cause::Cancelled));
    assert!(owner.told().contains(&"unacknowledged"));
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
}

#[test]
fn a_lost_lease_is_closed_without_a_flush() {
    let (mut owner, _) = keeping();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(refused_by(owned("a", "other", 9)));
    assert_eq!(closes_for(owner.app()), Some(EndReason::LeaseLost));
}

#[test]
fn after_progress_the_rest_of_a_batch_comes_without_a_failure() {
    let mut owner = Owner::processing();
    owner.forget();
    owner.answer_app(Outcome::Applied(Reply::ProcessedThrough(at(2))));
    assert_eq!(owner.said().processed, Some(at(2)));
    assert_eq!(owner.told(), [] as [&str; 0]);
    let Some(ConsumerOp::Deliver { after, attempt, .. }) = owner.app() else {
        panic!("expected a hand-over, found {:?}", owner.app())
    };
    assert_eq!((after, attempt), (Some(at(2)), 1));
    owner.answer_app(Outcome::Applied(Reply::ProcessedThrough(at(2))));
    assert_eq!(owner.app(), None, "without progress there is a pause");
}

#[test]
fn a_batch_given_back_before_the_answer_comes_again() {
    let mut owner = Owner::processing();
    let batch = given(&owner).expect("given");
    owner.forget();
    owner.say(Said::GivenBack(batch, "dropped".into()));
    owner.answer_app(kept());
    assert_eq!(owner.told(), ["handler-failed"]);
    owner.later(owner.cx.config().handler_backoff.times(2));
    assert_eq!(given(&owner), Some(batch));
}

#[test]
fn batches_acknowledged_during_a_call_may_be_checkpointed() {
    let mut owner = Owner::processing();
    let batch = given(&owner).expect("given");
    owner.say(Said::Acknowledged(batch));
    assert_eq!(owner.said().processed, Some(at(5)));
}
