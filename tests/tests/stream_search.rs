//! The streams of `consume` are looked up: a fault of the service is waited out, and a refusal is told at once.

use super::interop::directory;
use leasehold_tests::account::Account;
use leasehold_tests::command;
use leasehold_tests::consume::Target;
use leasehold_tests::local::{Local, Refusal};
use leasehold_tests::member::Place;
use leasehold_tests::wait::until;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold-under-test");
const THROTTLED: Refusal = Refusal { code: "LimitExceededException", message: "Rate exceeded" };
const DENIED: Refusal = Refusal { code: "AccessDeniedException", message: "not you" };
const SOON: Duration = Duration::from_secs(60);

/// A server with a record in each of the streams `orders` and `returns`.
async fn start() -> Local {
    let account = Account::start().await;
    for stream in ["orders", "returns"] {
        account.create(stream, 1).await;
        account.put(stream, 0, stream).await;
    }
    account.local
}

/// Refuses to describe the stream `returns`.
fn refuse(local: &Local, refusal: Refusal) {
    local.refuse_by_body(move |target, body| {
        (target.ends_with(".DescribeStreamSummary") && body.contains("returns")).then_some(refusal)
    });
}

fn target(local: &Local, name: &str) -> Target {
    Target {
        more: &["--stream", "returns"],
        ..Target::new(PROGRAM, Place::at(&local.endpoint, directory(name)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_stream_is_sought_while_the_others_are_read() {
    let local = start().await;
    refuse(&local, THROTTLED);
    let mut consumer = target(&local, "stream-search").start("seeker");
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
    consumer.process.ends_well(SOON).await;
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
