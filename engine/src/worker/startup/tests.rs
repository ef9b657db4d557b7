use super::*;
use crate::format::Format;
use crate::output::Effect;
use crate::output::EndReason;
use crate::time::Span;
use crate::worker::phase::{Phase, Stopping};
use crate::worker::testing::{self, config, done, seconds, starting};

fn table(state: TableState) -> Outcome {
    Outcome::Applied(Reply::Table(state))
}

/// A worker with its stream and its table found.
fn watching() -> (Context, Startup) {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    cx.did();
    (cx, startup)
}

/// A worker with its stream found. With this command, it looks at its table.
fn at_table() -> (Context, Startup, OpId) {
    let (mut cx, mut startup) = (starting(config(Format::Kcl)), Startup::default());
    startup.step(&mut cx);
    assert!(cx.did().is_nothing(), "a stream comes first");
    startup.on_stream_found(&mut cx);
    let op = cx.did().op();
    (cx, startup, op)
}

fn looks_at_table() -> Vec<Effect> {
    vec![Effect::Table(TableOp::Describe)]
}

#[test]
fn a_worker_that_has_found_a_stream_finds_its_table_and_scans() {
    let (mut cx, mut startup, op) = at_table();
    assert!(!cx.is_booted());
    startup.on_stream_found(&mut cx);
    assert!(cx.did().is_nothing(), "one stream is enough");

    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    assert!(cx.is_booted());
    let did = cx.did();
    assert_eq!(did.notices(), [Notice::TableReady { created: false }]);
    assert_eq!(did.requests(), [Request::Rescan(cx.now())]);
    assert_eq!(startup.wake_at(), Mono::NEVER);
}

#[test]
fn a_missing_table_is_created_and_looked_at_until_usable() {
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

/// The requests of a worker after two looks with this answer.
fn twice(answer: impl Fn() -> Outcome) -> Vec<Request> {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, answer());
    assert!(cx.did().is_nothing(), "one answer proves nothing, and is not told");
    let pause = startup.wake_at().since(cx.now());
    assert!(pause <= seconds(1), "{pause}");
    cx.later(pause);
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_table_state(&mut cx, op, answer());
    cx.did().requests().to_vec()
}

#[test]
fn another_key_or_a_denial_stops_the_worker_at_the_second_look() {
    let requests = twice(|| table(TableState::Incompatible));
    assert!(matches!(requests[..], [Request::Stop(Fatal::TableIncompatible { .. })]));
    let requests = twice(|| testing::refused(Why::Denied));
    assert!(matches!(requests[..], [Request::Stop(Fatal::Denied { .. })]));
}

#[test]
fn a_worker_that_was_denied_once_goes_on() {
    let (mut cx, mut startup, op) = at_table();
    startup.on_table_state(&mut cx, op, testing::refused(Why::Denied));
    cx.later(seconds(1));
    startup.step(&mut cx);
    let op = cx.did().op();
    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    assert!(cx.is_booted());
}

#[test]
fn a_table_is_gone_when_three_answers_in_a_row_say_so() {
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
    assert_eq!(answer(&mut startup, TableState::Missing), []);
    assert_eq!(answer(&mut startup, TableState::Usable), [], "a replica lagged behind");
    assert_eq!(answer(&mut startup, TableState::Missing), []);
    assert_eq!(answer(&mut startup, TableState::Missing), []);
    let gone = answer(&mut startup, TableState::Missing);
    assert!(matches!(gone[..], [Request::TableGone(Fatal::TableGone { .. })]), "{gone:?}");
}

#[test]
fn who_stops_because_the_table_is_gone_asks_no_more() {
    let (mut cx, mut startup) = watching();
    let deadline = cx.now() + seconds(10);
    *cx.phase_mut() = Phase::Stopping(Stopping::new(EndReason::SourceGone, deadline, true));
    startup.doubt_table(&mut cx);
    assert_eq!(cx.did().effects(), []);
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

#[test]
fn creations_of_unknown_outcome_are_repeated_ever_more_seldom() {
    let (mut cx, mut startup, mut op) = at_table();
    let mut pauses = Vec::new();
    for _ in 0..8 {
        startup.on_table_state(&mut cx, op, table(TableState::Missing));
        let pause = startup.wake_at().since(cx.now());
        if startup.wake_at() != Mono::NEVER {
            pauses.push(pause);
            cx.later(pause);
            startup.step(&mut cx);
        }
        let (create, effect) = cx.did().command();
        assert_eq!(effect, Effect::Table(TableOp::Create));
        startup.on_table_created(&mut cx, create, testing::unknown());
        let did = cx.did();
        assert_eq!((did.told(), did.effects()), (vec!["trouble"], looks_at_table()));
        op = did.op();
    }
    assert_eq!(pauses.len(), 7, "the first creation comes at once");
    assert!(pauses[6] >= cx.config().retry_max.per(2), "{pauses:?}");
    startup.on_table_state(&mut cx, op, table(TableState::Usable));
    assert!(cx.is_booted());
}
