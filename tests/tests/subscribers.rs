//! SDKs of other languages subscribe to shards of the in-memory AWS: each goes on at a continuation, loses a place, and
//! sees the children of a shard. The SDK for Rust does so in `sdk_rust.rs`, boto3 in `boto3.rs`, and the SDK for Java
//! in `interop/kcl_java/fan_out.rs`.

use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::cache::available_sdk;
use leasehold_tests::certificate::Certificate;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::subscriber::{self, Subscriber};
use std::process::Command;

async fn subscribes(test: &'static str, subscriber: Subscriber, secure: bool) {
    let command = tokio::task::spawn_blocking(move || subscriber::command(subscriber)).await;
    let Some(mut command) = available_sdk(test, command.expect("no panic")) else {
        return;
    };
    let tls = secure.then(|| Certificate::for_test(test));
    let local =
        Local::start(LocalOptions { tls: tls.as_ref().map(|tls| tls.tls.clone()), ..instant() }).await;
    let mut endpoint = local.endpoint.clone();
    if let Some(tls) = &tls {
        endpoint = tls.trusted_by(&mut command, &endpoint);
    }
    let output = tokio::task::spawn_blocking(move || Command::output(command.arg(endpoint))).await;
    let output = output.expect("no panic").expect("the program to start");
    // The last line counts: a program stopped half-way has not passed.
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed.trim(), "done", "{}: {errors}", output.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_javascript_subscribes() {
    subscribes("the_sdk_for_javascript_subscribes", Subscriber::Js, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_javascript_subscribes_over_tls() {
    subscribes("the_sdk_for_javascript_subscribes_over_tls", Subscriber::Js, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_go_subscribes() {
    subscribes("the_sdk_for_go_subscribes", Subscriber::Go, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_go_subscribes_over_tls() {
    subscribes("the_sdk_for_go_subscribes_over_tls", Subscriber::Go, true).await;
}
