use super::*;
use crate::config::Config;
use crate::format::Format;
use crate::input::Cause;
use crate::output::Effect;
use crate::row::LeaseRow;
use crate::stream_id::StreamId;
use crate::stream_identity::StreamIdentity;
use crate::worker::hopeless::CLIENT_PATIENCE;
use crate::worker::lease_table::Scan;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, refused, row, seconds, starting, table, whole_scan};

const CREATED: Wall = Wall(1_600_000_000_000);
const ONLY: StreamIx = StreamIx::ONLY;

fn stream(created: Wall) -> Outcome {
    let readable = true;
    Outcome::Applied(Reply::Stream(StreamState { readable, created, arn: "".into() }))
}

fn beginning() -> (Context, StreamWatch) {
    (starting(config(Format::Kcl)), StreamWatch::new(ONLY))
}

/// A look at the stream gets this answer.
fn looks(cx: &mut Context, watch: &mut StreamWatch, answer: Outcome) {
    watch.step(cx);
    let op = cx.did().op();
    watch.on_state(cx, op, answer);
}

/// The stream is doubted, and the look at it gets this answer.
fn doubts(cx: &mut Context, watch: &mut StreamWatch, answer: Outcome) {
    watch.doubt(cx);
    looks(cx, watch, answer);
}

/// A worker that has found its stream.
fn watching() -> (Context, StreamWatch) {
    let (mut cx, mut watch) = beginning();
    looks(&mut cx, &mut watch, stream(CREATED));
    cx.did();
    (cx, watch)
}

/// A worker of two streams. By this command, it looks for the first.
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
fn one_denied_stream_of_several_is_asked_for_again() {
    let (mut cx, mut watch, op) = of_two();
    watch.on_state(&mut cx, op, refused(Why::Denied));
    let did = cx.did();
    assert_eq!((did.told(), did.requests()), (vec!["trouble"], &[][..]));
    assert!(watch.wake_at(&cx) > cx.now());

    let (mut cx, mut watch) = beginning();
    let requests = twice(&mut cx, &mut watch, || refused(Why::Denied));
    assert!(matches!(requests[..], [Request::Stop(Fatal::Denied { .. })]));
}

/// A starting worker gets this answer at its first and second look. Returns its requests after the second.
fn twice(cx: &mut Context, watch: &mut StreamWatch, answer: impl Fn() -> Outcome) -> Vec<Request> {
    looks(cx, watch, answer());
    assert!(cx.did().is_nothing(), "one answer proves nothing, and is not told");
    let pause = watch.wake_at(cx).since(cx.now());
    assert!(pause <= seconds(1), "{pause}");
    cx.later(pause);
    looks(cx, watch, answer());
    cx.did().requests().to_vec()
}

#[test]
fn an_unread_stream_is_not_looked_at_until_it_is_read_again() {
    let (mut cx, mut watch, op) = of_two();
    cx.end_stream(ONLY, crate::output::EndReason::StreamRemoved);
    assert_eq!(watch.wake_at(&cx), Mono::NEVER);
    let id: StreamId = "1:a:2".parse().unwrap();
    cx.add_stream(&id.into());
    watch.begin_anew();
    watch.step(&mut cx);
    assert!(cx.did().is_nothing(), "the answer to the first question is still to come");
    watch.on_state(&mut cx, op, stream(CREATED));
    assert_eq!(cx.did().requests(), [Request::StreamFound(ONLY)]);
}

#[test]
fn an_unreadable_stream_is_looked_at_again_after_a_pause() {
    let (mut cx, mut watch) = beginning();
    watch.step(&mut cx);
    let op = cx.did().op();
    let creating = StreamState { readable: false, created: CREATED, arn: "".into() };
    watch.on_state(&mut cx, op, Outcome::Applied(Reply::Stream(creating)));
    assert!(cx.did().is_nothing(), "a pause comes first");
    cx.later(seconds(1));
    watch.step(&mut cx);
    assert_eq!(cx.did().effects(), looks_at_stream());
}

#[test]
fn many_missing_shards_cause_one_look_and_a_listing() {
    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    watch.doubt(&mut cx);
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    watch.on_state(&mut cx, did.op(), stream(CREATED));
    assert_eq!(cx.did().requests(), [Request::ListShards(ONLY, ListReason::ShardNotFound)]);

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
                assert_eq!(did.requests(), [Request::LoseStream(ONLY, Fatal::StreamGone { stream })]);
                break;
            }
            cx.later(watch.wake_at(&cx).since(cx.now()));
            watch.step(&mut cx);
        }
        // The second description is requested after a second, so that it can contradict a wrong first description.
        assert_eq!((answers, cx.now().since(asked)), (4, cx.config().scan_interval));
    }
}

/// A look at the stream, when due, gets this answer. Returns the requests.
fn looked(cx: &mut Context, watch: &mut StreamWatch, answer: Outcome) -> Vec<Request> {
    cx.later(watch.wake_at(cx).since(cx.now()));
    looks(cx, watch, answer);
    cx.did().requests().to_vec()
}

#[test]
fn a_description_or_a_read_takes_back_the_streams_loss() {
    let another = || stream(Wall(CREATED.0 - 1));
    for wrong in [another(), refused(Why::NotFound)] {
        let (mut cx, mut watch) = watching();
        cx.later(seconds(60));
        for _ in 0..5 {
            doubts(&mut cx, &mut watch, wrong.clone());
            assert!(!cx.may_take(ONLY), "its shards may be those of another stream");
            assert_eq!(looked(&mut cx, &mut watch, wrong.clone()), []);
            let lists = looked(&mut cx, &mut watch, stream(CREATED));
            assert!(cx.may_take(ONLY));
            assert_eq!(lists, [Request::ListShards(ONLY, ListReason::ShardNotFound)]);
            cx.later(seconds(60));
        }
    }
    let (mut cx, mut watch) = watching();
    doubts(&mut cx, &mut watch, refused(Why::NotFound));
    for _ in 0..5 {
        assert_eq!(looked(&mut cx, &mut watch, refused(Why::NotFound)), []);
        watch.answered(cx.now());
        assert!(!cx.may_take(ONLY), "a stream that was made anew can be read, too");
        assert_eq!(looked(&mut cx, &mut watch, crate::worker::testing::unknown()), []);
        assert!(!cx.may_take(ONLY), "no answer says nothing");
    }
    // A stream of another time can be read, too.
    let (mut cx, mut watch) = watching();
    doubts(&mut cx, &mut watch, another());
    watch.answered(cx.now());
    for _ in 0..2 {
        assert_eq!(looked(&mut cx, &mut watch, another()), []);
        watch.answered(cx.now());
    }
    assert_eq!(looked(&mut cx, &mut watch, another()).len(), 1);
}

/// A client unable to make requests will not do better, but a single failure proves little.
#[test]
fn a_client_without_requests_stops_a_starting_worker_alone() {
    let (mut cx, mut watch) = beginning();
    let unsent = || Outcome::NotSent(Cause::Client);
    for _ in 0..CLIENT_PATIENCE {
        looks(&mut cx, &mut watch, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
    looks(&mut cx, &mut watch, unsent());
    let did = cx.did();
    assert!(matches!(did.requests(), [Request::Stop(Fatal::Client { .. })]), "{:?}", did.requests());

    let (mut cx, mut watch) = watching();
    watch.doubt(&mut cx);
    for _ in 0..CLIENT_PATIENCE + 2 {
        looks(&mut cx, &mut watch, unsent());
        assert_eq!(cx.did().told(), ["trouble"]);
        cx.later(seconds(60));
    }
}

#[test]
fn a_stream_that_is_missing_at_two_looks_is_lost() {
    let (mut cx, mut watch) = beginning();
    let requests = twice(&mut cx, &mut watch, || refused(Why::NotFound));
    assert!(matches!(requests[..], [Request::LoseStream(ONLY, Fatal::StreamMissing { .. })]), "{requests:?}");
}

const ARN: &str = "arn:aws:kinesis:eu-central-1:123456789012:stream/stream";

/// The stream as described by a service with ARNs.
fn named(created: Wall) -> Outcome {
    Outcome::Applied(Reply::Stream(StreamState { readable: true, created, arn: ARN.into() }))
}

fn identity(created: Wall) -> StreamIdentity {
    StreamIdentity::new(ARN, created).unwrap()
}

/// Another stream of the same name.
const ANOTHER: Wall = Wall(CREATED.0 - 60_000);

/// A worker with an answer about its stream.
fn told(created: Wall) -> (Context, StreamWatch) {
    let (mut cx, mut watch) = beginning();
    cx.set_booted();
    looks(&mut cx, &mut watch, named(created));
    assert_eq!(cx.did().requests(), [Request::StreamFound(ONLY)]);
    (cx, watch)
}

fn answer(cx: &mut Context, watch: &mut StreamWatch, created: Wall) -> Vec<Request> {
    cx.later(seconds(1));
    watch.step(cx);
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    watch.on_state(cx, did.op(), named(created));
    cx.did().requests().to_vec()
}

/// A scan shows a row naming a stream created at this time, or a row without a name.
fn scanned(cx: &mut Context, leases: &mut LeaseTable, scan: &mut Scan, created: Option<Wall>) {
    // No scan follows another scan sooner.
    cx.later(seconds(3));
    let stream = created.map(identity);
    whole_scan(cx, leases, scan, vec![LeaseRow { stream, ..row("shardId-000000000000") }]);
    cx.did();
}

#[test]
fn a_second_answer_bears_the_first_one_out() {
    let (mut cx, mut watch) = told(CREATED);
    assert!(!cx.streams().is_identified(ONLY));
    assert_eq!(watch.wake_at(&cx), cx.now() + identity::APART);
    let requests = answer(&mut cx, &mut watch, CREATED);
    assert_eq!(requests, [Request::StreamIdentified(ONLY)]);
    assert_eq!(cx.streams().identity(ONLY), Some(&identity(CREATED)));
    assert_eq!(watch.wake_at(&cx), Mono::NEVER);
}

#[test]
fn one_wrong_answer_at_the_start_is_not_believed() {
    let (mut cx, mut watch) = told(ANOTHER);
    assert_eq!(answer(&mut cx, &mut watch, CREATED), []);
    assert_eq!(cx.streams().identity(ONLY), None);
    assert_eq!(answer(&mut cx, &mut watch, CREATED), [Request::StreamIdentified(ONLY)]);
    assert_eq!(cx.streams().identity(ONLY), Some(&identity(CREATED)));
}

#[test]
fn a_row_bears_the_first_answer_out() {
    let (mut cx, mut watch) = told(CREATED);
    let (mut leases, mut scan) = (table(&cx), Scan::default());
    scanned(&mut cx, &mut leases, &mut scan, None);
    assert!(!watch.recognises(&mut cx, &leases), "a row that names no stream says nothing");
    scanned(&mut cx, &mut leases, &mut scan, Some(CREATED));
    assert!(watch.recognises(&mut cx, &leases));
    assert_eq!(cx.streams().identity(ONLY), Some(&identity(CREATED)));
}

#[test]
fn another_streams_name_is_proof_by_a_later_scan_and_an_answer() {
    let (mut cx, mut watch) = told(CREATED);
    answer(&mut cx, &mut watch, CREATED);
    let (mut leases, mut scan) = (table(&cx), Scan::default());
    scanned(&mut cx, &mut leases, &mut scan, Some(ANOTHER));
    assert!(!watch.recognises(&mut cx, &leases));
    let did = cx.did();
    assert_eq!(did.effects(), looks_at_stream());
    assert_eq!(did.requests(), [Request::Rescan(cx.now() + identity::APART)]);
    cx.later(seconds(1));
    scanned(&mut cx, &mut leases, &mut scan, Some(ANOTHER));
    assert!(!watch.recognises(&mut cx, &leases));
    assert_eq!(
        cx.did().requests(),
        [Request::Rescan(cx.now() + identity::APART)],
        "no answer has come since"
    );
    watch.on_state(&mut cx, did.op(), named(CREATED));
    cx.later(seconds(1));
    scanned(&mut cx, &mut leases, &mut scan, Some(ANOTHER));
    assert!(!watch.recognises(&mut cx, &leases));
    let did = cx.did();
    let [Request::LoseStream(ONLY, Fatal::OtherStream { lease, detail, .. })] = did.requests() else {
        panic!("{:?}", did.requests());
    };
    assert_eq!(lease.as_str(), "shardId-000000000000");
    assert!(
        detail.contains("created 2020-09-13T12:25:40") && detail.contains("created 2020-09-13T12:26:40"),
        "{detail}"
    );
}

#[test]
fn a_row_that_names_another_stream_for_one_scan_is_no_proof() {
    let (mut cx, mut watch) = told(CREATED);
    answer(&mut cx, &mut watch, CREATED);
    let (mut leases, mut scan) = (table(&cx), Scan::default());
    for created in [ANOTHER, CREATED, ANOTHER] {
        scanned(&mut cx, &mut leases, &mut scan, Some(created));
        assert_eq!(watch.recognises(&mut cx, &leases), created == CREATED);
        let did = cx.did();
        if let [(op, _)] = did.commands()[..] {
            watch.on_state(&mut cx, op, named(CREATED));
        }
        let lost = |request: &Request| matches!(request, Request::LoseStream(..));
        assert!(!did.requests().iter().any(lost), "{:?}", did.requests());
        cx.later(seconds(1));
    }
}

/// A wrong first answer contradicts every row: the next answer sets it right.
#[test]
fn a_wrong_first_answer_refuses_no_table() {
    let (mut cx, mut watch) = told(ANOTHER);
    let (mut leases, mut scan) = (table(&cx), Scan::default());
    for _ in 0..2 {
        scanned(&mut cx, &mut leases, &mut scan, Some(CREATED));
        assert!(!watch.recognises(&mut cx, &leases));
        assert!(matches!(cx.did().requests(), [Request::Rescan(_)]));
    }
    assert_eq!(answer(&mut cx, &mut watch, CREATED), []);
    scanned(&mut cx, &mut leases, &mut scan, Some(CREATED));
    assert!(watch.recognises(&mut cx, &leases));
    assert_eq!(cx.did().requests(), [Request::StreamIdentified(ONLY)]);
}
