//! A process with handlers blocking every thread of their runtime for ever: the process receives signals and answers
//! questions about its health, and another worker reads its shards.
#![cfg(unix)]

use leasehold::{Batch, Control, InitialPosition, Worker};
use leasehold_tests::clients;
use leasehold_tests::probe::quick;
use leasehold_tests::process::Process;
use leasehold_tests::two_shards::TwoShards;
use leasehold_tests::wait::{SOON, until_or};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const STREAM: &str = "orders";
const APPLICATION: &str = "blocked";
/// The address of the process's AWS, and the number of threads of its runtime; 0: the runtime of
/// `#[tokio::main(flavor = "current_thread")]`.
const ENDPOINT: &str = "LEASEHOLD_BLOCKED_WORKER";
const THREADS: &str = "LEASEHOLD_BLOCKED_THREADS";
/// A shell's exit code for a process ended by SIGTERM.
const TERMINATED: i32 = 143;

fn runtime(threads: usize) -> Runtime {
    let mut builder = match threads {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().expect("a runtime")
}

/// Tells every client the worker's health, from a thread safe from blocking handlers.
fn serve_health(control: Control) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    eprintln!("health at {}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.expect("a connection");
            write!(socket, "{}", control.health()).expect("an answer");
        }
    });
}

/// No test in the usual sense: the program of the processes in the tests below.
#[test]
#[ignore = "it is the process of other tests"]
fn blocked_worker() {
    let (Ok(endpoint), Ok(threads)) = (std::env::var(ENDPOINT), std::env::var(THREADS)) else {
        return;
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let result = runtime(threads.parse().expect("a number")).block_on(async {
        let worker = Worker::builder()
            .kinesis(clients::kinesis(&endpoint))
            .dynamodb(clients::dynamodb(&endpoint))
            .stream(STREAM)
            .application(APPLICATION)
            .initial_position(InitialPosition::TrimHorizon)
            .config(|config| quick(config).with_give_up_after(Duration::from_secs(6)))
            .build()
            .expect("a worker");
        serve_health(worker.control());
        leasehold::shutdown_on_signal(worker.control()).expect("signals");
        let run = worker.run_fn(|_: Batch| async {
            eprintln!("a handler blocks its thread");
            loop {
                thread::sleep(Duration::from_secs(1));
            }
            #[allow(unreachable_code, reason = "the type of a handler")]
            Ok::<(), Infallible>(())
        });
        // As in a program with further work.
        tokio::spawn(run).await
    });
    panic!("expected the process to end meanwhile, found {result:?}");
}

struct Blocked {
    process: Process,
}

impl Blocked {
    fn start(scene: &TwoShards, threads: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "blocked::blocked_worker", "--ignored", "--nocapture"])
            .env(ENDPOINT, &scene.local.endpoint)
            .env(THREADS, threads.to_string());
        let name = format!("blocked-worker-{threads}.out");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let process = Process::start(command, &out).expect("a process");
        Self { process }
    }

    async fn says(&self, what: &str, times: usize) {
        let said = || async { self.process.stderr().matches(what).count() >= times };
        until_or(what, SOON, said, || self.process.stderr()).await;
    }

    /// The process's health, in its own words.
    fn health(&self) -> String {
        let told = self.process.stderr();
        let (_, address) = told.split_once("health at ").expect("an address");
        let address = address.lines().next().expect("a line").trim();
        let mut health = String::new();
        let mut socket = TcpStream::connect(address).expect("a connection");
        socket.read_to_string(&mut health).expect("an answer");
        health
    }
}

async fn hears_signals_and_lets_go(threads: usize) {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    scene.put("first").await;
    let mut blocked = Blocked::start(&scene, threads);
    blocked.says("a handler blocks its thread", threads.max(1)).await;
    blocked.says("has run no task for", 1).await;

    let cause = "unhealthy: the runtime that runs the handlers has run no task";
    let unhealthy = || async { blocked.health().starts_with(cause) };
    until_or("an unhealthy worker", SOON, unhealthy, || blocked.health()).await;
    let health = blocked.health();
    assert!(health.contains("the handler of shardId-00000000000"), "{health}");

    let mut probe = scene.worker();
    let read = || async { probe.seen().count() >= 2 };
    until_or("the shards to be read", SOON, read, || blocked.process.stderr()).await;
    blocked.says("letting go of 2 leases", 1).await;
    let health = blocked.health();
    assert!(health.contains("the leases were let go of"), "{health}");

    // Ctrl-C, or SIGTERM; the second signal may be of another kind.
    match threads {
        0 => blocked.process.interrupt(),
        _ => blocked.process.terminate(),
    }
    .expect("a signal");
    blocked.says("shutting down with", 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = blocked.process.stderr();
    assert_eq!(blocked.process.ended().expect("a process"), None, "its runtime cannot end: {told}");
    blocked.process.terminate().expect("a signal");
    let code = blocked.process.ends(Duration::from_secs(20)).await;
    let told = blocked.process.stderr();
    assert_eq!(code, TERMINATED, "{told}");
    let line = "ending the process at once with exit code 143";
    assert_eq!(told.matches(line).count(), 1, "{told}");
    scene.put("second").await;
    probe.processed(2).await;
    probe.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_a_blocked_only_thread_hears_signals() {
    hears_signals_and_lets_go(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_every_thread_blocked_hears_signals() {
    hears_signals_and_lets_go(2).await;
}
