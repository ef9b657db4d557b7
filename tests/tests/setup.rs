//! A worker with wrong clients, endpoints, streams or permissions: within 5 s one line of the log names the fault,
//! the place, and the remedy; a hopeless fault ends the worker with an error.

use super::bad_input::{DENIED, assert_says};
use leasehold::aws::dynamodb;
use leasehold::{Batch, Control, Error, Fatal, Report, Worker};
use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::account::Account;
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::log::Log;
use leasehold_tests::process::free_port;
use leasehold_tests::wait::until;
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::Level;
use tracing::instrument::WithSubscriber;

const STREAM: &str = "orders";
const TABLE: &str = "billing";
/// Timers of the worker bring each line within 5 s; a busy machine may be late.
const SOON: Duration = Duration::from_secs(10);

/// A worker with default options, but for the pauses after failures in a case of its own.
struct Starts {
    log: Log,
    control: Control,
    run: JoinHandle<Result<Report, Error>>,
}

impl Starts {
    fn with(kinesis: &str, dynamodb: dynamodb::Client) -> Self {
        let worker = Worker::builder()
            .kinesis(clients::kinesis(kinesis))
            .dynamodb(dynamodb)
            .stream(STREAM)
            .application(TABLE)
            .build()
            .expect("a worker");
        let (control, log) = (worker.control(), Log::default());
        let run = worker.run_fn(|_: Batch| async { Ok::<(), Infallible>(()) });
        let run = tokio::spawn(run.with_subscriber(log.clone()));
        Self { log, control, run }
    }

    fn at(endpoint: &str) -> Self {
        Self::with(endpoint, clients::dynamodb(endpoint))
    }

    /// Waits for a warning with these parts, checks for further warnings, and stops the worker.
    async fn warns(self, parts: &[&str]) {
        until(&format!("a warning with {parts:?}"), SOON, || async {
            let warnings = self.log.of(Level::WARN);
            warnings.iter().any(|line| parts.iter().all(|part| line.contains(part)))
        })
        .await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let warnings = self.log.of(Level::WARN);
        assert_eq!(warnings.len(), 1, "{warnings:#?}");
        self.control.shutdown();
        self.run.await.expect("no panic").expect("a good end");
    }

    /// Waits for its end.
    async fn fails(self) -> Error {
        let ended = tokio::time::timeout(SOON, self.run).await;
        ended.expect("an end within 10 s").expect("no panic").expect_err("an error")
    }
}

/// An AWS in memory with the stream.
async fn with_stream() -> Local {
    stream_in(instant()).await
}

async fn stream_in(options: LocalOptions) -> Local {
    let local = Local::start(options).await;
    Account::at(local.clone()).create(STREAM, 1).await;
    local
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_no_url_ends_the_worker_with_the_reason() {
    for endpoint in ["not a url", "127.0.0.1:4566"] {
        let error = Starts::at(endpoint).fails().await;
        assert!(matches!(error, Error::Fatal(Fatal::Client { .. })), "{error:?}");
        assert_says(
            &error,
            &[
                "expected the client to be able to describe the stream",
                "correct the endpoint and the region",
                endpoint,
            ],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_where_nothing_listens_is_told_with_its_address() {
    let endpoint = format!("http://127.0.0.1:{}", free_port().expect("a port"));
    let line = format!(
        "Kinesis at {endpoint} cannot be reached: Connection refused (os error 111); could not describe the stream; retrying"
    );
    Starts::at(&endpoint).warns(&[&line]).await;
}

/// Listens, and gives each connection this answer; none if it is empty.
async fn listens(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4_096];
                while socket.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {
                    if socket.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_never_answers_is_told_with_its_address() {
    let (local, endpoint) = (with_stream().await, listens("").await);
    let line = format!("DynamoDB at {endpoint} does not answer in time");
    Starts::with(&local.endpoint, clients::dynamodb(&endpoint)).warns(&[&line, "retrying"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_of_a_web_server_is_told_with_its_address() {
    let endpoint = listens("HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot here\n").await;
    let line = format!("Kinesis at {endpoint} sends answers that cannot be read");
    Starts::at(&endpoint).warns(&[&line, "404", "retrying"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_missing_end_the_worker_with_the_reason() {
    let local = with_stream().await;
    let mut without = dynamodb::Config::builder()
        .behavior_version(dynamodb::config::BehaviorVersion::latest())
        .endpoint_url(&local.endpoint)
        .region(dynamodb::config::Region::from_static("us-east-1"));
    let other = clients::dynamodb(&local.endpoint);
    without.set_http_client(other.config().http_client());
    without.set_sleep_impl(other.config().sleep_impl());
    let client = dynamodb::Client::from_conf(without.build());
    let error = Starts::with(&local.endpoint, client).fails().await;
    assert!(matches!(error, Error::Fatal(Fatal::Denied { .. })), "{error:?}");
    assert_says(
        &error,
        &["expected to be allowed to describe the lease table", "DynamoDB: ", "renew the credentials"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_missing_is_told_as_its_iam_action() {
    for (operation, action, what) in [
        ("DynamoDB_20120810.DescribeTable", "dynamodb:DescribeTable", "describe the lease table"),
        ("DynamoDB_20120810.CreateTable", "dynamodb:CreateTable", "create the lease table"),
        ("Kinesis_20131202.DescribeStreamSummary", "kinesis:DescribeStreamSummary", "describe the stream"),
    ] {
        let local = with_stream().await;
        local.refuse(move |target| (target == operation).then_some(DENIED));
        let error = Starts::at(&local.endpoint).fails().await;
        assert!(matches!(error, Error::Fatal(Fatal::Denied { .. })), "{error:?}");
        assert_says(
            &error,
            &[
                &format!("expected to be allowed to {what}"),
                "AccessDeniedException: User: arn:aws:iam::000000000000:user/test is not authorized",
                &format!("the IAM action is {action}"),
                &local.endpoint,
                "grant the permission",
            ],
        );
        assert_eq!(local.refused().get(operation), Some(&2), "a second answer says the same");
    }
    // After the start, it is tried again.
    let local = with_stream().await;
    local.refuse(|target| (target == "Kinesis_20131202.ListShards").then_some(DENIED));
    let line = format!("Kinesis at {} denies access: AccessDeniedException", local.endpoint);
    let starts = Starts::at(&local.endpoint);
    starts.warns(&[&line, "the IAM action is kinesis:ListShards", "grant the permission", "retrying"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_active_yet_is_told_and_waited_for() {
    let mut options = instant();
    options.kinesis.create_ms = 600_000;
    let local = stream_in(options).await;
    let starts = Starts::at(&local.endpoint);
    starts
        .warns(&["expected stream \"orders\" to be ACTIVE", "waiting", "correct the name or the region"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_under_creation_by_another_is_told_and_waited_for() {
    let mut options = instant();
    options.dynamo.create_ms = 600_000;
    let local = stream_in(options).await;
    Starts::at(&local.endpoint)
        .warns(&["expected table \"billing\" to be ACTIVE, found that it is being created", "waiting"])
        .await;
}

/// A client of a wrong region finds no stream. The account in the wrong region stays unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_another_region_ends_the_worker_before_its_table() {
    let local = Local::start(instant()).await;
    let error = Starts::at(&local.endpoint).fails().await;
    assert!(matches!(error, Error::Fatal(Fatal::StreamMissing { .. })), "{error:?}");
    assert_says(
        &error,
        &[
            "expected a stream \"orders\" in this account and region, found none",
            &format!("Kinesis at {}: ResourceNotFoundException", local.endpoint),
            "create it, or correct the name or region",
        ],
    );
    let tables = clients::dynamodb(&local.endpoint).list_tables().send().await;
    assert_eq!(tables.expect("a list").table_names(), [] as [String; 0]);
}

/// A request to Kinesis has 15 s by default: that it waits is told before.
#[tokio::test(flavor = "multi_thread")]
async fn a_kinesis_endpoint_that_never_answers_is_told_in_time() {
    let (local, silent) = (Local::start(instant()).await, listens("").await);
    Starts::with(&silent, clients::dynamodb(&local.endpoint))
        .warns(&["DescribeStreamSummary has not been answered for", "the endpoint of the client"])
        .await;
}
