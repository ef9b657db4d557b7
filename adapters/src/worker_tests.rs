use super::*;
use crate::testing::{Events, FnPort};
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::time::Span;

fn silent<Op: 'static>() -> Arc<FnPort<Op>> {
    Arc::new(FnPort::new(|_, _| Box::pin(async { Outcome::NotSent(Cause::Network) })))
}

fn builder() -> CompleteBuilder {
    Worker::builder().table_port(silent()).stream_port(|_| silent()).stream("orders").application("billing")
}

#[test]
fn a_wrong_setting_is_told_before_anything_runs() {
    let error = builder().stream("").build().unwrap_err().to_string();
    assert!(error.contains("`stream`") && error.contains("expected") && error.contains("found"), "{error}");
    assert!(builder().build().is_ok());
}

#[test]
fn the_four_parts_come_in_any_order_and_outlast_other_options() {
    let worker = Worker::builder()
        .application("billing")
        .worker_id("w")
        .stream("old")
        .table_port(silent())
        .stream("orders")
        .config(|_| Config::default().with_stream("other").with_table("other"))
        .stream_port(|_| silent())
        .build()
        .unwrap();
    let config = &worker.settings.config;
    assert_eq!((config.stream(), config.table()), ("orders", "billing"));
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
    let error = worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/trace.jsonl"), "{error}");
}

#[cfg(feature = "aws")]
#[test]
fn a_client_without_a_region_is_refused_at_once() {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
    let kinesis = |region: Option<Region>| {
        let config = aws_sdk_kinesis::Config::builder().behavior_version(BehaviorVersion::latest());
        aws_sdk_kinesis::Client::from_conf(config.region(region).build())
    };
    let dynamodb = |region: Option<Region>| {
        let config = aws_sdk_dynamodb::Config::builder().behavior_version(BehaviorVersion::latest());
        aws_sdk_dynamodb::Client::from_conf(config.region(region).build())
    };
    let here = || Some(Region::new("eu-west-1"));
    let build = |kinesis, dynamodb| {
        let builder = Worker::builder().kinesis(kinesis).dynamodb(dynamodb);
        builder.stream("orders").application("billing").build()
    };
    for (refused, service) in [
        (build(kinesis(None), dynamodb(here())), "Kinesis"),
        (build(kinesis(here()), dynamodb(None)), "DynamoDB"),
    ] {
        let told = refused.unwrap_err().to_string();
        assert!(
            told.starts_with(&format!(
                "expected the {service} client to have an AWS region, found none; set AWS_REGION"
            )),
            "{told}"
        );
    }
    assert!(build(kinesis(here()), dynamodb(here())).is_ok());
}

/// Runs a changed worker until its first notice; gives the name of the notice's thread.
async fn thread_of(change: impl FnOnce(CompleteBuilder) -> CompleteBuilder) -> Option<String> {
    let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
    let builder = change(builder()).on_notice(move |_| {
        let _ = told.send(std::thread::current().name().map(str::to_owned));
    });
    let worker = builder.build().unwrap();
    let run = tokio::spawn(worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }));
    let name = tells.recv().await.unwrap();
    run.abort();
    let _ = run.await;
    name
}

#[tokio::test]
async fn leases_are_kept_on_their_own_thread_unless_told_otherwise() {
    let here = std::thread::current().name().map(str::to_owned);
    assert_eq!(thread_of(|builder| builder).await.as_deref(), Some("leasehold"));
    assert_eq!(thread_of(|builder| builder.coordination_on_caller(true)).await, here);
    let runtime = Arc::new(crate::runtime::TokioRuntime::current().unwrap());
    assert_eq!(thread_of(|builder| builder.runtime(runtime)).await, here);
}

#[tokio::test]
async fn dropping_the_run_stops_it_at_once() {
    let alive = Arc::new(());
    let (held, (told, mut tells)) = (alive.clone(), tokio::sync::mpsc::unbounded_channel());
    let worker = builder()
        .on_notice(move |_| {
            let _ = (&held, told.send(()));
        })
        .build()
        .unwrap();
    let mut run = Box::pin(worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }));
    tokio::select! {
        result = &mut run => panic!("{result:?}"),
        told = tells.recv() => told.unwrap(),
    }
    drop(run);
    assert_eq!(Arc::strong_count(&alive), 1, "nothing of it is left");
}

#[tokio::test]
async fn a_panic_of_the_observer_is_the_callers() {
    let worker = builder().on_notice(|_| panic!("the observer, on purpose")).build().unwrap();
    let run = tokio::spawn(worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }));
    let panic = run.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the observer, on purpose"));
}

#[test]
fn a_stop_that_is_too_short_for_the_last_writes_is_told() {
    let told = |seconds| {
        let events = Events::default();
        let config = Config::default().with_shutdown_timeout(Span::from_secs(seconds));
        tracing::subscriber::with_default(events.clone(), || warn_of_short_stop(&config));
        events.lines()
    };
    assert_eq!(told(6), Vec::<String>::new());
    let lines = told(1);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("two `table_timeout`, which is 6.000s, found 1.000s"), "{lines:?}");
}
