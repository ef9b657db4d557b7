//! From when a shard at LATEST or AT_TIMESTAMP is read.

use super::Owner;
use crate::config::{Config, InitialPosition};
use crate::format::Format;
use crate::input::Why;
use crate::notice::TakeReason;
use crate::output::{ConsumerOp, Effect, IteratorFrom, StreamOp, TableOp};
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::time::Wall;
use crate::worker::lease::HeldLeases;
use crate::worker::testing::{
    config, context, done, refused, row, running, seconds, shown, shows, stage_of, table, unknown,
};

fn latest(began: Option<Wall>, counter: u64) -> LeaseRow {
    LeaseRow { checkpoint: Checkpoint::Latest, began, counter, ..row("a") }
}

/// The beginning of an owner that takes this row, as told to the application and as read from the stream.
#[track_caller]
fn begins(mut owner: Owner) -> (Option<Wall>, IteratorFrom) {
    let Some(ConsumerOp::Open { since, .. }) = owner.app() else {
        panic!("expected to open the shard, found {:?}", owner.app())
    };
    owner.answer_app(done());
    (since, asked(&owner))
}

#[track_caller]
fn asked(owner: &Owner) -> IteratorFrom {
    match owner.stream() {
        Some(StreamOp::GetIterator { from, .. }) => from,
        other => panic!("expected an iterator to be asked for, found {other:?}"),
    }
}

#[test]
fn a_first_owner_begins_at_its_take_and_others_as_the_row_says() {
    let now = context().wall();
    let margin_before = Wall(now.0 - 1_000);
    let first = begins(Owner::of(latest(None, 0)));
    assert_eq!(first, (Some(now), IteratorFrom::AtTimestamp(now)));
    let of_a_new_row = begins(Owner::of(latest(Some(Wall(5_000)), 0)));
    assert_eq!(of_a_new_row.1, IteratorFrom::AtTimestamp(Wall(6_000)), "nobody had it");
    let later = begins(Owner::of(latest(Some(margin_before), 7)));
    assert_eq!(later, (Some(margin_before), IteratorFrom::AtTimestamp(margin_before)));
}

#[test]
fn a_row_keeps_its_timestamp_whatever_its_owner_is_told() {
    let told = |time, began| {
        let initial_position = InitialPosition::AtTimestamp(Wall(time));
        let config = Config { initial_position, ..config(Format::Kcl) };
        let cx = running(config);
        let leases = table(&cx);
        let checkpoint = Checkpoint::AtTimestamp;
        begins(Owner::within(cx, leases, LeaseRow { checkpoint, began, ..row("a") })).1
    };
    assert_eq!(told(9, Some(Wall(3))), IteratorFrom::AtTimestamp(Wall(3)));
    assert_eq!(told(9, None), IteratorFrom::AtTimestamp(Wall(9)));
}

#[test]
fn all_attempts_to_take_a_row_write_the_moment_of_the_first() {
    let (mut cx, mut leases, mut room) = stage_of(HeldLeases::default());
    let ix = shows(&cx, &mut leases, latest(None, 7));
    room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
    let mut moments = Vec::new();
    let now = cx.now();
    for _ in 0..2 {
        let (op, effect) = cx.did().command();
        let Effect::Table(TableOp::Write(Change::Take { began, .. })) = effect else {
            panic!("expected a take, found {effect:?}")
        };
        moments.push(began);
        room.on_lane(&mut cx, &mut leases, ix, op, now, unknown());
        cx.later(seconds(1));
        let read = cx.did().op();
        room.on_lane(&mut cx, &mut leases, ix, read, now, shown(Some(latest(None, 7))));
    }
    assert_eq!(moments, [Some(Wall(context().wall().0 - 1_000)); 2]);
    let (_, has_one) = {
        let (mut cx, mut leases, mut room) = stage_of(HeldLeases::default());
        let ix = shows(&cx, &mut leases, latest(Some(Wall(1)), 7));
        room.take(&mut cx, &mut leases, ix, TakeReason::Unowned);
        cx.did().command()
    };
    assert!(
        matches!(has_one, Effect::Table(TableOp::Write(Change::Take { began: Some(Wall(1)), .. }))),
        "{has_one:?}"
    );
}

/// The service calls the moment one of its future: an earlier moment is durable before its use.
#[test]
fn an_earlier_moment_is_written_before_its_use_and_a_release() {
    let mut owner = Owner::of(latest(None, 0));
    let now = context().wall();
    let at = |early_ms| IteratorFrom::AtTimestamp(Wall(now.0 - early_ms));
    owner.answer_app(done());
    owner.answer_stream(refused(Why::Invalid));
    owner.later(seconds(1));
    assert_eq!(asked(&owner), at(1_000), "the row says so");
    owner.answer_stream(refused(Why::Invalid));
    owner.later(seconds(1));
    assert_eq!(owner.stream(), None, "the row says a later one");
    let Some(Change::Renew { began, .. }) = owner.write() else {
        panic!("expected a renewal, found {:?}", owner.write())
    };
    assert_eq!(began, Some(Wall(now.0 - 3_000)));
    owner.answer_table(unknown());
    owner.later(seconds(2));
    assert!(matches!(owner.write(), Some(Change::Renew { began: Some(_), .. })), "until it is known");
    owner.answer_table(done());
    owner.later(seconds(1));
    assert_eq!(asked(&owner), at(3_000));
    assert_eq!(owner.leases.row("a").unwrap().began, Some(Wall(now.0 - 3_000)));
    owner.iterates();
    owner.later(seconds(1));
    assert!(matches!(owner.stream(), Some(StreamOp::GetRecords { .. })));
}
