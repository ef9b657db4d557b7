use super::*;
use crate::testing::FnPort;
use leasehold_engine::input::{Cause, Outcome};

fn silent<Op: 'static>() -> Arc<FnPort<Op>> {
    Arc::new(FnPort::new(|_, _| {
        Box::pin(async { Outcome::NotSent(Cause::Network) })
    }))
}

fn builder() -> Builder {
    Worker::builder()
        .table_port(silent())
        .stream_port(|_| silent())
        .stream("orders")
        .application("billing")
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_runs() {
    let error = builder().stream("").build().unwrap_err().to_string();
    assert!(
        error.contains("`stream`") && error.contains("expected") && error.contains("found"),
        "{error}"
    );
    let error = Worker::builder()
        .stream("orders")
        .application("billing")
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a Kinesis client, found none; call `.kinesis(client)` on the builder"
    );
    let error = Worker::builder()
        .stream_port(|_| silent())
        .stream("orders")
        .application("billing")
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("a DynamoDB client"), "{error}");
    assert!(builder().build().is_ok());
}

#[test]
fn outside_of_a_runtime_the_error_says_so() {
    let worker = builder().build().unwrap();
    let mut run = Box::pin(worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match run.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(Error::NoRuntime)) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_file_that_cannot_be_created_is_an_error() {
    let worker = builder().trace_file("/nonexistent/trace.jsonl").build().unwrap();
    let error = worker
        .run_fn(|_| async { Ok::<(), std::io::Error>(()) })
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent/trace.jsonl"), "{error}");
}
