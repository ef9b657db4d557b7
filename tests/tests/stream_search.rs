//! The streams of `consume` are looked up: a fault of the service is waited out, and a refusal is told at once.

use leasehold_tests::clients;
use leasehold_tests::command;
use leasehold_tests::consume::{Consumer, Target};
use leasehold_tests::local::{Local, Refusal, instant};
use leasehold_tests::wait::until;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold-under-test");
const THROTTLED: Refusal = Refusal { code: "LimitExceededException", message: "Rate exceeded" };
const DENIED: Refusal = Refusal { code: "AccessDeniedException", message: "not you" };
const SOON: Duration = Duration::from_secs(60);

/// A server with a record in each of the streams `orders` and `returns`.
async fn start() -> Local {
    let local = Local::start(instant()).await;
    let kinesis = clients::kinesis(&local.endpoint);
    for stream in ["orders", "returns"] {
        kinesis.create_stream().stream_name(stream).shard_count(1).send().await.expect("a stream");
        let put = kinesis.put_record().stream_name(stream).partition_key("k");
        put.data(stream.as_bytes().to_vec().into()).send().await.expect("a record");
    }
    local
}

/// Refuses to describe the stream `returns`.
fn refuse(local: &Local, refusal: Refusal) {
    local.refuse_by_body(move |target, body| {
        (target.ends_with(".DescribeStreamSummary") && body.contains("returns")).then_some(refusal)
    });
}

fn target(local: &Local, name: &str) -> Target {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory for the test");
    Target {
        program: PathBuf::from(PROGRAM),
        kinesis: local.endpoint.clone(),
        dynamodb: local.endpoint.clone(),
        stream: "orders".to_owned(),
        application: "billing".to_owned(),
        format: "kcl",
        more: &["--stream", "returns"],
        directory,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_stream_is_sought_while_the_others_are_read() {
    let local = start().await;
    refuse(&local, THROTTLED);
    let mut consumer = Consumer::start(&target(&local, "stream-search"), "seeker");
    let has = |data: &str| consumer.printed().iter().any(|printed| printed.data == data);
    until("the record of the stream that is found", SOON, || async { has("orders") }).await;
    let line =
        "so far (stream \"returns\": LimitExceededException: Rate exceeded (HTTP status 400)); asking again";
    let tells = || consumer.process.stderr().contains(line);
    until("a line with the stream and the cause", SOON, || async { tells() }).await;
    assert!(!has("returns"));
    local.refuse_nothing();
    until("the record of the stream that is found late", SOON, || async { has("returns") }).await;
    consumer.process.interrupt().expect("a signal");
    let mut ended = None;
    for _ in 0..600 {
        ended = consumer.process.ended().expect("a status");
        if ended.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(ended, Some(0), "{}", consumer.process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_and_a_wrong_name_end_the_command_with_their_codes() {
    let local = start().await;
    refuse(&local, DENIED);
    let consume = |second: &'static str| {
        let endpoint = local.endpoint.clone();
        async move {
            let args = ["consume", "--stream", "orders", "--stream", second, "--application", "billing"];
            command::run(PROGRAM, &[&args[..], &["--endpoint-url", &endpoint]].concat()).await
        }
    };
    let denied = consume("returns").await;
    assert_eq!(denied.code, Some(1), "{}", denied.told);
    let said = "error: stream \"returns\": expected an answer that describes it, found AccessDeniedException: not you";
    assert!(denied.told.contains(said), "{}", denied.told);
    let missing = consume("nowhere").await;
    assert_eq!(missing.code, Some(2), "{}", missing.told);
    assert!(missing.told.contains("correct --stream"), "{}", missing.told);
}
