use super::*;
use crate::config::Config;
use crate::format::Format;
use crate::input::Cause;
use crate::output::Effect;
use crate::stream_id::StreamId;
use crate::worker::hopeless::CLIENT_PATIENCE;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, refused, seconds, starting};

const CREATED: Wall = Wall(1_600_000_000_000);
const ONLY: StreamIx = StreamIx::ONLY;

fn stream(created: Wall) -> Outcome {
    let readable = true;
    Outcome::Applied(Reply::Stream(StreamState { readable, created }))
}

fn beginning() -> (Context, StreamWatch) {
    (starting(config(Format::Kcl)), StreamWatch::new(ONLY))
}

/// A worker that has found its stream.
fn watching() -> (Context, StreamWatch) {
    let (mut cx, mut watch) = beginning();
    watch.step(&mut cx);
    let op = cx.did().op();
    watch.on_state(&mut cx, op, stream(CREATED));
    cx.did();
    (cx, watch)
}

/// A worker that looks for the first of its two streams, by this command.
fn of_two() -> (Context, StreamWatch, OpId) {
    let ids = ["1:a:2", "1:b:2"].map(|id| id.parse::<StreamId>().unwrap());
    let several = Config::default().with_table("leases").with_streams(ids.to_vec());
    let (mut cx, mut watch) = (starting(several), StreamWatch::new(ONLY));
    watch.step(&mut cx);
    let op = cx.did().op();
    (cx, watch, op)
}

fn looks_at_stream() -> Vec<Effect> {
    vec![Effect::Stream(StreamOp::Describe)]
}

#[test]
fn a_stream_is_found_once() {
    let (mut cx, mut watch) = beginning();
    watch.step(&mut cx);
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    watch.on_state(&mut cx, did.op(), stream(CREATED));
    assert_eq!(cx.did().requests(), [Request::StreamFound(ONLY)]);
    assert_eq!(watch.wake_at(&cx), Mono::NEVER);
}

/// The others are read meanwhile, and a permission may be granted at any time.
#[test]
fn one_of_several_streams_that_may_not_be_described_is_asked_for_again() {
    let (mut cx, mut watch, op) = of_two();
    watch.on_state(&mut cx, op, refused(Why::Denied));
    let did = cx.did();
    assert_eq!((did.told(), did.requests()), (vec!["trouble"], &[][..]));
    assert!(watch.wake_at(&cx) > cx.now());

    let (mut cx, mut watch) = beginning();
    let requests = twice(&mut cx, &mut watch, || refused(Why::Denied));
    assert!(matches!(requests[..], [Request::Stop(Fatal::Denied { .. })]));
}

/// A worker that starts is answered like this, and once more at its second look. What it asks for then.
fn twice(cx: &mut Context, watch: &mut StreamWatch, answer: impl Fn() -> Outcome) -> Vec<Request> {
    watch.step(cx);
    let op = cx.did().op();
    watch.on_state(cx, op, answer());
    assert!(
        cx.did().is_nothing(),
        "one answer proves nothing, and is not told"
    );
    let pause = watch.wake_at(cx).since(cx.now());
    assert!(pause <= seconds(1), "{pause}");
    cx.later(pause);
    watch.step(cx);
    let op = cx.did().op();
    watch.on_state(cx, op, answer());
    cx.did().requests().to_vec()
}

#[test]
fn a_stream_that_is_read_no_more_is_not_looked_at_until_it_is_read_again() {
    let (mut cx, mut watch, op) = of_two();
    cx.end_stream(ONLY, crate::output::EndReason::StreamRemoved);
    assert_eq!(watch.wake_at(&cx), Mono::NEVER);
    let id: StreamId = "1:a:2".parse().unwrap();
    cx.add_stream(&id.into());
    watch.begin_anew();
    watch.step(&mut cx);
    assert!(
        cx.did().is_nothing(),
        "the answer to the first question is still to come"
    );
    watch.on_state(&mut cx, op, stream(CREATED));
    assert_eq!(cx.did().requests(), [Request::StreamFound(ONLY)]);
}

#[test]
fn a_stream_that_cannot_be_read_yet_is_looked_at_again_after_a_pause() {
    let (mut cx, mut watch) = beginning();
    watch.step(&mut cx);
    let op = cx.did().op();
    let creating = StreamState {
        readable: false,
        created: CREATED,
    };
    watch.on_state(&mut cx, op, Outcome::Applied(Reply::Stream(creating)));
    assert!(cx.did().is_nothing(), "a pause comes first");
    cx.later(seconds(1));
    watch.step(&mut cx);
    assert_eq!(cx.did().effects(), looks_at_stream());
}

#[test]
fn many_missing_shards_have_the_stream_looked_at_once_and_its_shards_listed() {
    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    watch.doubt(&mut cx);
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    watch.on_state(&mut cx, did.op(), stream(CREATED));
    assert_eq!(
        cx.did().requests(),
        [Request::ListShards(ONLY, ListReason::ShardNotFound)]
    );

    watch.doubt(&mut cx);
    assert!(cx.did().is_nothing(), "not again so soon");
    assert_eq!(watch.wake_at(&cx), cx.now() + STREAM_PAUSE);
}

#[test]
fn a_stream_that_was_made_anew_or_is_missing_is_not_ours() {
    let answers = [stream(Wall(CREATED.0 + 1)), refused(Why::NotFound)];
    for answer in answers {
        let (mut cx, mut watch) = watching();
        watch.watch(&mut cx, 1);
        assert!(cx.did().is_nothing(), "it was looked at just now");
        cx.later(seconds(60));
        watch.watch(&mut cx, 1);
        let asked = cx.now();
        let mut answers = 0;
        loop {
            let op = cx.did().op();
            watch.on_state(&mut cx, op, answer.clone());
            answers += 1;
            let did = cx.did();
            if !did.is_nothing() {
                let stream = cx.config().stream.clone();
                assert_eq!(
                    did.requests(),
                    [Request::LoseStream(ONLY, Fatal::StreamGone { stream })]
                );
                break;
            }
            cx.later(watch.wake_at(&cx).since(cx.now()));
            watch.step(&mut cx);
        }
        assert_eq!((answers, cx.now().since(asked)), (3, cx.config().scan_interval));
    }
}

/// A look at the stream is answered like this; when the next one is due, and what was asked for.
fn looked(cx: &mut Context, watch: &mut StreamWatch, answer: Outcome) -> Vec<Request> {
    cx.later(watch.wake_at(cx).since(cx.now()));
    watch.step(cx);
    let op = cx.did().op();
    watch.on_state(cx, op, answer);
    cx.did().requests().to_vec()
}

#[test]
fn a_description_or_a_read_that_says_otherwise_takes_back_what_was_said_of_the_stream() {
    let another = || stream(Wall(CREATED.0 - 1));
    for wrong in [another(), refused(Why::NotFound)] {
        let (mut cx, mut watch) = watching();
        cx.later(seconds(60));
        for _ in 0..5 {
            watch.doubt(&mut cx);
            let op = cx.did().op();
            watch.on_state(&mut cx, op, wrong.clone());
            assert_eq!(looked(&mut cx, &mut watch, wrong.clone()), []);
            let lists = looked(&mut cx, &mut watch, stream(CREATED));
            assert_eq!(lists, [Request::ListShards(ONLY, ListReason::ShardNotFound)]);
            cx.later(seconds(60));
        }
    }
    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    let op = cx.did().op();
    watch.on_state(&mut cx, op, refused(Why::NotFound));
    for _ in 0..5 {
        assert_eq!(looked(&mut cx, &mut watch, refused(Why::NotFound)), []);
        watch.answered(cx.now());
    }
    // A stream of another time can be read, too.
    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    let op = cx.did().op();
    watch.on_state(&mut cx, op, another());
    watch.answered(cx.now());
    assert_eq!(looked(&mut cx, &mut watch, another()), []);
    watch.answered(cx.now());
    assert_eq!(looked(&mut cx, &mut watch, another()).len(), 1);
}

/// Such a client will not do better, but one failure proves little.
#[test]
fn a_client_that_can_make_no_request_stops_a_worker_that_starts_and_no_other() {
    let (mut cx, mut watch) = beginning();
    let unsent = || Outcome::NotSent(Cause::Client);
    for _ in 0..CLIENT_PATIENCE {
        watch.step(&mut cx);
        let op = cx.did().op();
        watch.on_state(&mut cx, op, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
    watch.step(&mut cx);
    let op = cx.did().op();
    watch.on_state(&mut cx, op, unsent());
    let did = cx.did();
    assert!(
        matches!(did.requests(), [Request::Stop(Fatal::Client { .. })]),
        "{:?}",
        did.requests()
    );

    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    for _ in 0..CLIENT_PATIENCE + 2 {
        watch.step(&mut cx);
        let op = cx.did().op();
        watch.on_state(&mut cx, op, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
}

#[test]
fn a_stream_that_is_missing_at_two_looks_is_lost() {
    let (mut cx, mut watch) = beginning();
    let requests = twice(&mut cx, &mut watch, || refused(Why::NotFound));
    assert!(
        matches!(
            requests[..],
            [Request::LoseStream(ONLY, Fatal::StreamMissing { .. })]
        ),
        "{requests:?}"
    );
}
