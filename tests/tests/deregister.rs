//! `leasehold admin deregister`: the consumer of an application is ended, unless workers live.

use super::bad_input::DENIED;
use leasehold::{Config, ReadMode, StreamRef};
use leasehold_local_aws::http::LocalOptions;
use leasehold_tests::account::{Account, Row, s, text};
use leasehold_tests::command::{self, Ended};
use leasehold_tests::local::{Refusal, instant};
use leasehold_tests::probe::Probe;
use leasehold_tests::wait::until;
use serde_json::Value;
use std::time::Duration;

const APPLICATION: &str = "fanned-out";
const SOON: Duration = Duration::from_secs(60);
const THROTTLED: Refusal = Refusal { code: "LimitExceededException", message: "Rate exceeded" };

/// An account with streams of two shards, and the table of an application.
struct Readers(Account);

impl Readers {
    async fn start(streams: &[&str]) -> Self {
        Self::with(instant(), streams).await
    }

    async fn with(options: LocalOptions, streams: &[&str]) -> Self {
        let account = Account::with(options).await;
        for stream in streams {
            account.create(stream, 2).await;
        }
        Self(account)
    }

    /// Lets a worker of the stream `orders` read by subscription, and stops the worker.
    async fn read_once() -> Self {
        let scene = Self::start(&["orders"]).await;
        let mut probe = scene.subscriber().await;
        probe.shutdown().await;
        scene
    }

    /// A worker of the stream `orders`, after its first records: the worker has registered its consumer.
    async fn subscriber(&self) -> Probe {
        let by_subscription = |config: Config| {
            let reader = config.reader().clone().with_mode(ReadMode::Auto);
            config.with_reader(reader)
        };
        self.0.put_both("orders", "a").await;
        let probe = Probe::of(self.0.worker_of("orders", APPLICATION).config(by_subscription));
        probe.processed(1).await;
        until("a consumer", SOON, || async { self.is_registered("orders").await }).await;
        probe
    }

    async fn arn(&self, stream: &str) -> String {
        let answer = self.0.kinesis.describe_stream_summary().stream_name(stream).send().await;
        let answer = answer.expect("a description");
        answer.stream_description_summary().expect("a summary").stream_arn().to_owned()
    }

    /// Registers a consumer; gives its ARN.
    async fn register(&self, stream: &str, consumer: &str) -> String {
        let register = self.0.kinesis.register_stream_consumer().stream_arn(self.arn(stream).await);
        let answer = register.consumer_name(consumer).send().await.expect("an answer");
        answer.consumer.expect("a consumer").consumer_arn
    }

    async fn consumers(&self, stream: &str) -> Vec<String> {
        let list = self.0.kinesis.list_stream_consumers().stream_arn(self.arn(stream).await);
        let list = list.send().await.expect("a list");
        list.consumers().iter().map(|consumer| consumer.consumer_name().to_owned()).collect()
    }

    /// Whether the application's consumer is registered at a stream.
    async fn is_registered(&self, stream: &str) -> bool {
        self.consumers(stream).await.iter().any(|name| name == APPLICATION)
    }

    async fn deregister(&self, more: &[&str]) -> Ended {
        self.deregister_after("1", more).await
    }

    /// The same, with a watch of so many seconds.
    async fn deregister_after(&self, watch: &str, more: &[&str]) -> Ended {
        let args = ["admin", "deregister", "--application", APPLICATION, "--watch", watch];
        let here = ["--endpoint-url", &self.0.local.endpoint];
        let program = env!("CARGO_BIN_EXE_leasehold-under-test");
        command::run(program, &[&args[..], &here, more].concat()).await
    }
}

/// Checks the output of a run for its exit code and for each of these parts.
fn ends(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    for part in parts {
        assert!(ended.shown.contains(part) || ended.told.contains(part), "{part} in {ended:?}");
    }
}

#[tokio::test]
async fn the_consumer_of_a_stopped_fleet_is_shown_and_ended() {
    let scene = Readers::read_once().await;
    let orders = ["--stream", "orders"];
    let shown = scene.deregister(&orders).await;
    let step =
        format!("deregister the consumer {APPLICATION} of orders, {}/consumer/", scene.arn("orders").await);
    ends(
        &shown,
        0,
        &[
            &step,
            "which is ACTIVE",
            "registers a consumer of this name anew",
            "nothing was deregistered; say --apply",
        ],
    );
    assert!(scene.is_registered("orders").await, "a dry run ends nothing");

    scene.register("orders", "another").await;
    let done = scene.deregister(&["--stream", "orders", "--apply"]).await;
    ends(&done, 0, &["which is ACTIVE: deregistered", "1 of 1 consumer deregistered"]);
    assert_eq!(scene.consumers("orders").await, ["another"]);

    // Nothing is left to be done, and that is said without a watch of the table.
    let none = scene.deregister_after("3600", &["--stream", "orders", "--apply"]).await;
    ends(&none, 0, &["orders has no consumer fanned-out", "there is nothing to deregister"]);
    assert_eq!(none.shown.matches("no consumer").count(), 1, "{none:?}");
}

#[tokio::test]
async fn a_live_worker_keeps_its_consumer_unless_force_is_said() {
    let scene = Readers::start(&["orders"]).await;
    let mut probe = scene.subscriber().await;
    for more in [&[][..], &["--apply"]] {
        let refused = scene.deregister(&[&["--stream", "orders"][..], more].concat()).await;
        let said = [
            "error: expected no live owner of unfinished leases, found probe:",
            "(2 leases, alive) of orders",
            "would register the consumer anew",
            "stop the workers",
            "say --force",
        ];
        ends(&refused, 1, &said);
        assert!(scene.is_registered("orders").await);
    }
    let refused = scene.deregister(&["--stream", "orders", "--apply", "--json"]).await;
    let told: Value = serde_json::from_str(&refused.shown).expect("JSON");
    assert_eq!((refused.code, &told["refused"], &told["applied"]), (Some(1), &true.into(), &false.into()));
    assert_eq!(told["streams"][0]["workers"][0]["leases"], 2, "{told}");

    let forced = scene.deregister(&["--stream", "orders", "--apply", "--force"]).await;
    ends(&forced, 0, &["owns 2 leases, and may register the consumer anew", "1 of 1 consumer deregistered"]);
    // As the command says.
    until("the consumer, registered anew", SOON, || async { scene.is_registered("orders").await }).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn an_owner_that_may_live_is_watched_for_a_lease_duration() {
    let scene = Readers::read_once().await;
    let owned = [(":owner", s("killed:1"))];
    scene.0.edit(APPLICATION, "shardId-000000000000", "SET leaseOwner = :owner", &owned).await;
    let refused = scene.deregister(&["--stream", "orders", "--apply"]).await;
    ends(&refused, 1, &["found killed:1 (1 lease, silent for 1.000s) of orders", "with --watch 10"]);
    let blind = scene.deregister_after("0", &["--stream", "orders", "--apply"]).await;
    ends(&blind, 1, &["found killed:1 (1 lease, not watched) of orders"]);
    let done = scene.deregister(&["--stream", "orders", "--apply", "--lease-duration", "1"]).await;
    ends(&done, 0, &["1 of 1 consumer deregistered"]);
}

#[tokio::test]
async fn consumers_of_several_streams_end_where_no_worker_lives() {
    let scene = Readers::start(&["orders", "returns", "refunds"]).await;
    let find = async |stream: &str| StreamRef::find(&scene.0.kinesis, stream).await.expect("a stream");
    let (orders, returns) = (find("orders").await, find("returns").await);
    let (first, second) = (orders.id().clone(), returns.id().clone());
    for stream in ["orders", "returns"] {
        scene.register(stream, APPLICATION).await;
        scene.0.put_both(stream, "a").await;
    }
    let reads = |streams: Vec<StreamRef>| scene.0.builder().streams(streams).application(APPLICATION);
    let mut both = Probe::of(reads(vec![orders.clone(), returns]));
    until("leases of both streams", SOON, || async { scene.0.rows(APPLICATION).await.len() == 4 }).await;
    both.shutdown().await;
    let mut one = Probe::of(reads(vec![orders]));
    let owned = |row: &Row| text(row, "leaseOwner").is_some();
    until("an owner of each lease of a stream", SOON, || async {
        let rows = scene.0.rows(APPLICATION).await;
        rows.iter().filter(|(key, row)| key.starts_with(first.as_str()) && owned(row)).count() == 2
    })
    .await;

    // A worker lives at one of them. The third has no consumer.
    let all = format!("orders,{second},{}", scene.arn("refunds").await);
    let refused = scene.deregister(&["--stream", &all, "--apply"]).await;
    ends(
        &refused,
        1,
        &[&format!("(2 leases, alive) of {first}; nothing was"), "refunds:", "has no consumer"],
    );
    let removed = scene.deregister(&["--stream", second.as_str(), "--apply"]).await;
    ends(&removed, 0, &[&format!("of {second}, "), "1 of 1 consumer deregistered"]);
    scene.register("returns", APPLICATION).await;

    one.shutdown().await;
    let done = scene.deregister(&["--stream", &all, "--apply", "--json"]).await;
    ends(&done, 0, &[]);
    let told: Value = serde_json::from_str(&done.shown).expect("JSON");
    assert_eq!(told["done"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!((&told["done"][1]["how"], &told["streams"][2]["consumer"]), (&"gone".into(), &Value::Null));
    for stream in ["orders", "returns"] {
        assert!(!scene.is_registered(stream).await, "{stream}");
    }
}

#[tokio::test]
async fn a_given_name_and_a_given_arn_are_used_as_they_are() {
    let scene = Readers::read_once().await;
    let arn = scene.register("orders", "special").await;
    scene.0.create("returns", 1).await;
    let wrong = scene.deregister(&["--stream", "returns", "--reader-consumer", &arn]).await;
    ends(&wrong, 2, &["expected --stream to be orders, the one stream of the consumer", "found returns"]);
    let gone = arn.replace("special:", "special:1");
    let none = scene.deregister(&["--stream", "orders", "--reader-consumer", &gone, "--apply"]).await;
    ends(&none, 0, &[&format!("orders has no consumer {gone}"), "there is nothing to deregister"]);

    // Its stream need not be described.
    scene.0.local.refuse(|target| target.ends_with(".DescribeStreamSummary").then_some(DENIED));
    let done = scene.deregister(&["--stream", "orders", "--reader-consumer", &arn, "--apply"]).await;
    ends(&done, 0, &[&format!("the consumer special of orders, {arn}"), "1 of 1 consumer deregistered"]);
    scene.0.local.refuse_nothing();
    assert_eq!(scene.consumers("orders").await, [APPLICATION]);

    scene.register("orders", "named").await;
    let done = scene.deregister(&["--stream", "orders", "--reader-consumer", "named", "--apply"]).await;
    ends(&done, 0, &["the consumer named of orders"]);
    assert_eq!(scene.consumers("orders").await, [APPLICATION]);
}

#[tokio::test]
async fn a_refusal_of_kinesis_is_told_with_the_action_and_the_remedy() {
    let scene = Readers::read_once().await;
    let apply = ["--stream", "orders", "--apply"];
    for (action, refusal, said) in [
        (
            "DescribeStreamConsumer",
            DENIED,
            "the IAM action is kinesis:DescribeStreamConsumer; grant the permission",
        ),
        (
            "DeregisterStreamConsumer",
            DENIED,
            "the IAM action is kinesis:DeregisterStreamConsumer; grant the permission",
        ),
        ("DescribeStreamSummary", DENIED, "or grant kinesis:DescribeStreamSummary"),
        (
            "DeregisterStreamConsumer",
            THROTTLED,
            "LimitExceededException: Rate exceeded (HTTP status 400); try again later",
        ),
    ] {
        scene.0.local.refuse(move |target| target.ends_with(&format!(".{action}")).then_some(refusal));
        let ended = scene.deregister(&apply).await;
        ends(&ended, 1, &["error: could not ", "expected ", refusal.code, said]);
        assert!(ended.told.contains(said), "{ended:?}");
    }
    scene.0.local.refuse_nothing();
    assert!(scene.is_registered("orders").await);
    ends(&scene.deregister(&apply).await, 0, &["1 of 1 consumer deregistered"]);
}

#[tokio::test]
async fn a_missing_table_tells_nothing_of_workers() {
    let scene = Readers::start(&["orders"]).await;
    scene.register("orders", APPLICATION).await;
    let refused = scene.deregister(&["--stream", "orders", "--apply"]).await;
    ends(&refused, 1, &["expected a table of that name", "say --force if the table was deleted"]);
    assert!(scene.is_registered("orders").await);
    let done = scene.deregister(&["--stream", "orders", "--apply", "--force"]).await;
    ends(&done, 0, &["warning: ", "nothing tells whether workers live", "1 of 1 consumer deregistered"]);
    let unknown = scene.deregister(&["--stream", "nowhere", "--force"]).await;
    ends(&unknown, 1, &["error: could not look for the consumer", "correct the name or the region"]);
}

#[tokio::test]
async fn the_end_of_a_consumer_is_waited_for() {
    let mut options = instant();
    options.kinesis.delete_ms = 2_500;
    let scene = Readers::with(options, &["orders"]).await;
    scene.register("orders", APPLICATION).await;
    let apply = ["--stream", "orders", "--apply", "--force"];
    let began = std::time::Instant::now();
    ends(&scene.deregister(&apply).await, 0, &["1 of 1 consumer deregistered"]);
    assert!(began.elapsed() > Duration::from_millis(2_500));
    assert!(!scene.is_registered("orders").await);

    // Somebody else deregistered the consumer a moment ago.
    let arn = scene.register("orders", APPLICATION).await;
    scene.0.kinesis.deregister_stream_consumer().consumer_arn(&arn).send().await.expect("an end");
    let left = scene.deregister(&apply).await;
    ends(
        &left,
        0,
        &["alone: arn:", "was deregistered already, and is DELETING", "there is nothing to deregister"],
    );
}
