//! The span around each call of a handler, as a formatting subscriber shows it.

use leasehold::Batch;
use leasehold_tests::account::Account;
use leasehold_tests::probe::quick;
use leasehold_tests::wait::until;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    fn line_with(&self, part: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned();
        text.lines().find(|line| line.contains(part)).map(str::to_owned)
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Text {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// On one thread: the subscriber of this test is also the subscriber of its handlers.
#[tokio::test]
async fn a_handlers_log_is_in_a_span_with_worker_stream_and_shard() {
    let text = Text::default();
    let subscriber = tracing_subscriber::fmt().with_writer(text.clone()).with_ansi(false);
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let account = Account::start().await;
    account.create("orders", 1).await;
    for _ in 0..3 {
        account.put("orders", 0, "data").await;
    }
    let worker = account
        .worker_of("orders", "billing")
        .worker_id("w")
        .identity(31, 1)
        .config(quick)
        .build()
        .expect("a worker");
    let control = worker.control();
    let run = tokio::spawn(worker.run_fn(|_: Batch| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tracing::info!("the handler was here");
        Ok::<(), Infallible>(())
    }));
    until("the handler's line", Duration::from_secs(60), || async {
        text.line_with("the handler was here").is_some()
    })
    .await;
    control.shutdown();
    run.await.expect("no panic").expect("a good end");
    let line = text.line_with("the handler was here").expect("the line");
    let span = "process{worker=\"w:1f\" application=\"billing\" stream=\"orders\" shard=\"shardId-000000000000\" attempt=1 records=3}";
    assert!(line.contains(span), "expected {span} in: {line}");
}
