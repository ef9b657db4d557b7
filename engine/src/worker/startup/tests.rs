use super::*;
use crate::format::Format;
use crate::notice::ListReason;
use crate::output::Effect;
use crate::worker::testing::{self, config, done, refused, seconds, starting};

const CREATED: Wall = Wall(1_600_000_000_000);

fn table(state: TableState) -> Outcome {
    Outcome::Applied(Reply::Table(state))
}

fn stream(created: Wall) -> Outcome {
    let readable = true;
    Outcome::Applied(Reply::Stream(StreamState { readable, created }))
}

/// A worker that has found its table and its stream.
fn watching() -> (Context, Startup) {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_stream_state(&mut cx, op, stream(CREATED));
    let op = cx.did().op();
    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    cx.did();
    (cx, startup)
}

/// A worker that has found its stream and looks at its table, by this command.
fn at_table() -> (Context, Startup, OpId) {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_stream_state(&mut cx, op, stream(CREATED));
    let op = cx.did().op();
    (cx, startup, op)
}

fn looks_at_table() -> Vec<Effect> {
    vec![Effect::Table(TableOp::Describe)]
}

fn looks_at_stream() -> Vec<Effect> {
    vec![Effect::Stream(StreamOp::Describe)]
}

#[test]
fn a_worker_finds_its_stream_then_its_table_and_scans() {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    let (op, describe) = cx.did().command();
    assert_eq!(describe, Effect::Stream(StreamOp::Describe));

    startup.on_stream_state(&mut cx, op, stream(CREATED));
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_table());
    assert!(!cx.is_booted());

    startup.on_table_state(&mut cx, did.op(), table(TableState::Usable));
    assert!(cx.is_booted());
    let did = cx.did();
    assert_eq!(did.notices(), [Notice::TableReady { created: false }]);
    assert_eq!(did.requests(), [Request::Rescan(cx.now())]);
    assert_eq!(startup.wake_at(), Mono::NEVER);
}

/// A wrong name or region leaves no table behind.
#[test]
fn a_worker_without_a_stream_ends_before_it_looks_at_a_table() {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_stream_state(&mut cx, op, refused(Why::NotFound));
    let did = cx.did();
    assert!(
        matches!(did.requests(), [Request::Stop(Fatal::StreamMissing { .. })]),
        "{:?}",
        did.requests()
    );
    assert_eq!(did.effects(), []);
}

/// So does one that is still being created, or is deleted.
#[test]
fn a_stream_that_cannot_be_read_yet_is_waited_for_before_a_table_is_created() {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    let op = cx.did().op();
    let creating = StreamState {
        readable: false,
        created: CREATED,
    };
    startup.on_stream_state(&mut cx, op, Outcome::Applied(Reply::Stream(creating)));
    assert!(cx.did().is_nothing(), "a pause comes first");
    cx.later(seconds(1));
    startup.step(&mut cx);
    assert_eq!(cx.did().effects(), looks_at_stream());
}

#[test]
fn a_missing_table_is_created_and_looked_at_until_it_can_be_used() {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, table(TableState::Missing));
    let (op, create) = cx.did().command();
    assert_eq!(create, Effect::Table(TableOp::Create));

    startup.on_table_created(&mut cx, op, done());
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_table());
    startup.on_table_state(&mut cx, did.op(), table(TableState::Creating));
    assert!(cx.did().is_nothing(), "a pause comes first");
    cx.later(seconds(1));
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    assert_eq!(cx.did().notices(), [Notice::TableReady { created: true }]);
}

#[test]
fn a_table_with_another_key_stops_the_worker() {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, table(TableState::Incompatible));
    let table = cx.config().table.clone();
    assert_eq!(
        cx.did().requests(),
        [Request::Stop(Fatal::TableIncompatible { table })]
    );
}

#[test]
fn a_table_is_gone_when_two_answers_in_a_row_say_so() {
    let (mut cx, mut startup) = watching();
    let mut answer = |startup: &mut Startup, state| {
        cx.later(seconds(1));
        startup.doubt_table(&mut cx);
        startup.step(&mut cx);
        let op = cx.did().op();
        startup.on_table_state(&mut cx, op, table(state));
        cx.did().requests().to_vec()
    };
    assert_eq!(answer(&mut startup, TableState::Missing), []);
    assert_eq!(
        answer(&mut startup, TableState::Usable),
        [],
        "a replica lagged behind"
    );
    assert_eq!(answer(&mut startup, TableState::Missing), []);
    let gone = answer(&mut startup, TableState::Missing);
    assert!(
        matches!(gone[..], [Request::TableGone(Fatal::TableGone { .. })]),
        "{gone:?}"
    );
}

#[test]
fn many_missing_shards_have_the_stream_looked_at_once_and_its_shards_listed() {
    let (mut cx, mut startup) = watching();
    startup.doubt_stream(&mut cx);
    startup.doubt_stream(&mut cx);
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    startup.on_stream_state(&mut cx, did.op(), stream(CREATED));
    assert_eq!(
        cx.did().requests(),
        [Request::ListShards(ListReason::ShardNotFound)]
    );

    startup.doubt_stream(&mut cx);
    assert!(cx.did().is_nothing(), "not again so soon");
    assert_eq!(startup.wake_at(), cx.now() + STREAM_PAUSE);
}

#[test]
fn a_stream_that_was_made_anew_or_is_missing_is_not_ours() {
    let answers = [stream(Wall(CREATED.0 + 1)), refused(Why::NotFound)];
    for answer in answers {
        let (mut cx, mut startup) = watching();
        startup.watch_stream(&mut cx, 1);
        assert!(cx.did().is_nothing(), "it was looked at just now");
        cx.later(seconds(60));
        startup.watch_stream(&mut cx, 1);
        let op = cx.did().op();
        startup.on_stream_state(&mut cx, op, answer);
        let stream = cx.config().stream.clone();
        assert_eq!(cx.did().requests(), [Request::Stop(Fatal::StreamGone { stream })]);
    }
}

#[test]
fn a_question_that_failed_is_asked_again_after_a_pause() {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, testing::unknown());
    let did = cx.did();
    assert_eq!((did.told(), did.effects()), (vec!["trouble"], vec![]));
    let pause = startup.wake_at().since(cx.now());
    assert!(pause > Span::ZERO && pause <= cx.config().retry_min, "{pause}");
    cx.later(pause);
    startup.step(&mut cx);
    assert_eq!(cx.did().effects(), looks_at_table());
}

/// Such a client will not do better, but one failure proves little.
#[test]
fn a_client_that_can_make_no_request_stops_a_worker_that_starts_and_no_other() {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    let unsent = || Outcome::NotSent(Cause::Client);
    for _ in 0..CLIENT_PATIENCE {
        startup.step(&mut cx);
        let op = cx.did().op();
        startup.on_stream_state(&mut cx, op, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_stream_state(&mut cx, op, unsent());
    let did = cx.did();
    assert!(
        matches!(did.requests(), [Request::Stop(Fatal::Client { .. })]),
        "{:?}",
        did.requests()
    );

    let (mut cx, mut startup) = watching();
    startup.doubt_stream(&mut cx);
    for _ in 0..CLIENT_PATIENCE + 2 {
        startup.step(&mut cx);
        let op = cx.did().op();
        startup.on_stream_state(&mut cx, op, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
}
