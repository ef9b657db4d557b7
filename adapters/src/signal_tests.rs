use super::*;
use crate::testing::Memory;
use crate::{Worker, status::Phase};
use std::process::Command;

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

/// One signal in the life of this process, since a second signal would end the process. `tests/tests/blocked.rs`
/// tests signals with separate processes.
#[test]
fn a_signal_is_heard_while_every_thread_is_blocked() {
    let worker = worker();
    let control = worker.control();
    // No tokio runtime is needed here.
    shutdown_on_signal(control.clone()).unwrap();
    let (done, ended) = mpsc::channel();
    let program = thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async move {
            let run = tokio::spawn(worker.run_fn(|_| async { Ok::<(), io::Error>(()) }));
            while control.status().phase != Phase::Running {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let me = process::id().to_string();
            let sent = Command::new("kill").args(["-TERM", &me]).status().unwrap();
            assert!(sent.success());
            // The only thread for tasks of this runtime.
            while control.status().phase != Phase::Stopped && control.status().phase != Phase::Stopping {
                thread::sleep(Duration::from_millis(1));
            }
            let report = run.await.unwrap().unwrap();
            done.send(report.is_clean()).unwrap();
        });
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
    program.join().unwrap();
}
