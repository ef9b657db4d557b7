//! Ctrl-C and SIGTERM, once and once more, to a process whose handler never returns.
#![cfg(unix)]

use leasehold::{Batch, InitialPosition, Worker};
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::process::Process;
use leasehold_tests::wait::until;
use std::convert::Infallible;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const STREAM: &str = "orders";
const SOON: Duration = Duration::from_secs(60);
/// Where the process finds its AWS.
const ENDPOINT: &str = "LEASEHOLD_HANGING_WORKER";
/// A shell's exit code for a process ended by SIGTERM.
const TERMINATED: i32 = 143;

/// No test in the usual sense: the program of the process in the test below.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is the process of another test"]
async fn hanging_worker() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else {
        return;
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let worker = Worker::builder()
        .kinesis(clients::kinesis(&endpoint))
        .dynamodb(clients::dynamodb(&endpoint))
        .stream(STREAM)
        .application("hanging")
        .initial_position(InitialPosition::TrimHorizon)
        .build()
        .expect("a worker");
    leasehold::shutdown_on_signal(worker.control()).expect("signals");
    let result = worker
        .run_fn(|_: Batch| async {
            eprintln!("the handler is called");
            std::future::pending::<Result<(), Infallible>>().await
        })
        .await;
    panic!("expected the process to end meanwhile, found {result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_process_though_a_handler_runs() {
    let local = Local::start(instant()).await;
    let kinesis = clients::kinesis(&local.endpoint);
    let create = kinesis.create_stream().stream_name(STREAM).shard_count(1);
    create.send().await.expect("a stream");
    let put = kinesis.put_record().stream_name(STREAM).partition_key("k");
    put.data(b"data".to_vec().into()).send().await.expect("a record");

    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "signals::hanging_worker", "--ignored", "--nocapture"])
        .env(ENDPOINT, &local.endpoint);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hanging-worker.out");
    let mut process = Process::start(command, &out).expect("a process");
    until("the handler to be called", SOON, || async { process.stderr().contains("the handler is called") })
        .await;

    process.interrupt().expect("a signal");
    until("the worker to stop", SOON, || async { process.stderr().contains("shutting down with 1 lease") })
        .await;
    // The handler has nearly 30 s by default.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(process.ended().expect("a process"), None, "{}", process.stderr());

    process.terminate().expect("a signal");
    let asked = Instant::now();
    let code = loop {
        if let Some(code) = process.ended().expect("a process") {
            break code;
        }
        assert!(asked.elapsed() < SOON, "expected an end: {}", process.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let told = process.stderr();
    assert_eq!(code, TERMINATED, "{told}");
    let line = "ending the process at once with exit code 143";
    assert_eq!(told.matches(line).count(), 1, "{told}");
    // Well before the time of a first signal.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}
