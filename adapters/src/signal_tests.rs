use super::*;
use crate::testing::Memory;
use crate::{Worker, status::Phase};
use std::process::Command;
use std::time::Duration;

fn worker() -> Worker {
    let memory = Memory::with_shards(1);
    Worker::builder()
        .table_port(memory.table_port())
        .stream_port(move |store| memory.stream_port(store))
        .stream("orders")
        .application("billing")
        .build()
        .unwrap()
}

#[tokio::test]
async fn both_signals_shut_the_worker_down() {
    for signal in ["-INT", "-TERM"] {
        let worker = worker();
        let control = worker.control();
        shutdown_on_signal(control.clone()).unwrap();
        let run = tokio::spawn(worker.run_fn(|_| async { Ok::<(), io::Error>(()) }));
        while control.status().phase != Phase::Running {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let me = std::process::id().to_string();
        let sent = Command::new("kill").args([signal, &me]).status().unwrap();
        assert!(sent.success());
        let ended = tokio::time::timeout(Duration::from_secs(20), run).await;
        let report = ended.expect("a stop").unwrap().unwrap();
        assert!(report.is_clean());
    }
}

#[test]
fn outside_of_a_runtime_the_error_says_so() {
    let error = shutdown_on_signal(worker().control()).unwrap_err();
    assert!(matches!(error, Error::NoRuntime), "{error}");
}
