//! Handlers that block every thread of their runtime: no lease is lost, and the log names the handlers.

use leasehold::aws::dynamodb;
use leasehold::{Batch, Notice};
use leasehold_tests::account::{Account, Row, SHARDS};
use leasehold_tests::local::{Local, instant};
use leasehold_tests::log::Log;
use leasehold_tests::probe::quick;
use leasehold_tests::wait::until;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tracing::Level;
use tracing::instrument::WithSubscriber;

const STREAM: &str = "slow";
const APPLICATION: &str = "blocks";
const SOON: Duration = Duration::from_secs(60);
/// More than two lives of a lease.
const BLOCKED: Duration = Duration::from_secs(4);

fn of_blocking(log: &Log) -> Vec<String> {
    let mut warnings = log.of(Level::WARN);
    warnings.retain(|text| text.contains("spawn_blocking"));
    warnings
}

/// How often each lease's row was written.
async fn counters(account: &Account) -> BTreeMap<String, u64> {
    let rows = account.rows(APPLICATION).await.into_iter();
    let counter = |row: Row| row["leaseCounter"].as_n().expect("a counter").parse().expect("a number");
    rows.map(|(key, row)| (key, counter(row))).collect()
}

/// With half of the worker's timeout: an HTTP client could mistake equal timeouts for one.
fn with_connect_timeout(client: &dynamodb::Client, timeout: Duration) -> dynamodb::Client {
    let timeouts = dynamodb::config::timeout::TimeoutConfig::builder().connect_timeout(timeout);
    let config = client.config().to_builder().timeout_config(timeouts.build());
    dynamodb::Client::from_conf(config.build())
}

fn two_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}

#[test]
fn no_lease_is_lost_to_blocked_threads_and_the_log_names_them() {
    // The servers must not be what is blocked.
    let (outside, program) = (two_threads(), two_threads());
    let local = outside.block_on(Local::start(instant()));
    let mut account = Account::at(local.clone());
    account.dynamodb = with_connect_timeout(&account.dynamodb, Duration::from_millis(350));
    // The program has used the worker's clients before: the clients have open connections on the program's runtime.
    program.block_on(async {
        account.create(STREAM, 2).await;
        account.put_both(STREAM, "data").await;
        let asks: Vec<_> = (0..12).map(|_| tokio::spawn(account.dynamodb.list_tables().send())).collect();
        for ask in asks {
            ask.await.expect("no panic").expect("an answer");
        }
    });
    let (calls, notices) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (called, told) = (calls.clone(), notices.clone());
    let worker = account
        .worker_of(STREAM, APPLICATION)
        .config(quick)
        .on_notice(move |notice| told.lock().expect("no panic").push(notice.clone()))
        .build()
        .expect("a worker");
    let control = worker.control();
    let log = Log::default();
    let run = worker.run_fn(move |_: Batch| {
        let called = called.clone();
        async move {
            called.fetch_add(1, Ordering::SeqCst);
            // Both block at the same time.
            while called.load(Ordering::SeqCst) < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            thread::sleep(BLOCKED);
            called.fetch_add(1, Ordering::SeqCst);
            Ok::<(), Infallible>(())
        }
    });
    let run = program.spawn(run.with_subscriber(log.clone()));
    let from_outside = Account::at(local);
    outside.block_on(async {
        until("both handlers to block", SOON, || async { calls.load(Ordering::SeqCst) >= 2 }).await;
        let before = counters(&from_outside).await;
        until("a warning", SOON, || async { !of_blocking(&log).is_empty() }).await;
        until("both to be renewed four times more", SOON, || async {
            let now = counters(&from_outside).await;
            SHARDS.iter().all(|shard| now[*shard] >= before[*shard] + 4)
        })
        .await;
        assert_eq!(calls.load(Ordering::SeqCst), 2, "both still block");
        until("both handlers to return", SOON, || async { calls.load(Ordering::SeqCst) >= 4 }).await;
        control.shutdown();
        run.await.expect("no panic").expect("a good end");
    });
    for notice in notices.lock().expect("no panic").iter() {
        assert!(!matches!(notice, Notice::Lost { .. } | Notice::Fenced { .. }), "{notice}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 4, "each record was processed once");
    let warnings = of_blocking(&log);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for shard in SHARDS {
        let expected = format!("the handler of {shard} has blocked a thread for ");
        assert!(warnings[0].contains(&expected), "{}", warnings[0]);
    }
}

/// The other threads of the runtime go on meanwhile: only the warning can tell of the block.
#[test]
fn a_blocking_handler_and_its_end_are_named_though_others_run() {
    let (outside, program) = (two_threads(), two_threads());
    let account = outside.block_on(async {
        let account = Account::start().await;
        account.create(STREAM, 1).await;
        account.put(STREAM, 0, "data").await;
        account
    });
    let worker = account.worker_of(STREAM, APPLICATION).config(quick).build().expect("a worker");
    let (control, log) = (worker.control(), Log::default());
    let run = worker.run_fn(|_: Batch| async {
        thread::sleep(Duration::from_millis(2_500));
        Ok::<(), Infallible>(())
    });
    let run = program.spawn(run.with_subscriber(log.clone()));
    outside.block_on(async {
        until("the end of the block to be told", SOON, || async {
            let told = log.of(Level::INFO);
            told.iter().any(|text| text.contains("no longer blocks its thread"))
        })
        .await;
        control.shutdown();
        run.await.expect("no panic").expect("a good end");
    });
    let warnings = of_blocking(&log);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = format!("the handler of {} has blocked its thread for ", SHARDS[0]);
    assert!(warnings[0].starts_with(&expected), "{}", warnings[0]);
}
