//! One worker of several streams, against the AWS in memory.

use leasehold::admin::{Stepped, To, Which};
use leasehold::{CompleteBuilder, Error, Notice, Span, StreamId, StreamNews, StreamRef};
use leasehold_tests::account::{Account, Row, SHARDS, text};
use leasehold_tests::command::{self, Ended};
use leasehold_tests::probe::Probe;
use leasehold_tests::wait::until;
use std::time::Duration;

const APPLICATION: &str = "several";
const SOON: Duration = Duration::from_secs(60);

struct Scene(Account);

impl std::ops::Deref for Scene {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.0
    }
}

impl Scene {
    /// A server with these streams, each of two shards.
    async fn start(streams: &[&str]) -> Self {
        let account = Account::start().await;
        for stream in streams {
            account.create(stream, 2).await;
        }
        Self(account)
    }

    async fn find(&self, stream: &str) -> StreamRef {
        StreamRef::find(&self.kinesis, stream).await.expect("a stream")
    }

    /// Its ARN, as Kinesis tells it.
    async fn arn(&self, stream: &str) -> String {
        let answer = self.kinesis.describe_stream_summary().stream_name(stream).send().await;
        let answer = answer.expect("a description");
        answer.stream_description_summary().expect("a summary").stream_arn().to_owned()
    }

    fn reads(&self, streams: Vec<StreamRef>) -> CompleteBuilder {
        self.builder().streams(streams).application(APPLICATION)
    }

    /// A server with `orders` and `returns`, and a worker of both after processing a record of each shard.
    async fn reading() -> (Self, Probe, Vec<StreamId>) {
        let scene = Self::start(&["orders", "returns"]).await;
        let streams = vec![scene.find("orders").await, scene.find("returns").await];
        let (probe, ids) = scene.read_a_record_of_each_shard(streams).await;
        (scene, probe, ids)
    }

    /// A worker of `orders` and `returns`, after processing a record of each of the four shards.
    async fn read_a_record_of_each_shard(&self, streams: Vec<StreamRef>) -> (Probe, Vec<StreamId>) {
        let ids: Vec<_> = streams.iter().map(|stream| stream.id().clone()).collect();
        let probe = Probe::of(self.reads(streams));
        for stream in ["orders", "returns"] {
            self.put_both(stream, "a").await;
        }
        for id in &ids {
            becomes(&probe, id, 2).await;
        }
        (probe, ids)
    }

    /// Runs a command of this application.
    async fn run(&self, what: &[&str], more: &[&str]) -> Ended {
        let here = ["--application", APPLICATION, "--endpoint-url", &self.local.endpoint];
        let program = env!("CARGO_BIN_EXE_leasehold-under-test");
        command::run(program, &[what, &here, more].concat()).await
    }

    /// Runs a command of `admin`.
    async fn admin(&self, what: &str, more: &[&str]) -> Ended {
        self.run(&["admin", what, "--watch", "1"], more).await
    }
}

/// The number of processed records of a stream; a repeated record counts twice.
fn processed(probe: &Probe, stream: &StreamId) -> usize {
    let seen = probe.seen();
    let shards = seen.records.iter().filter(|(shard, _)| shard.starts_with(stream.as_str()));
    shards.map(|(_, records)| records.len()).sum()
}

async fn becomes(probe: &Probe, stream: &StreamId, count: usize) {
    let what = format!("{count} records of {stream}");
    until(&what, SOON, || async { processed(probe, stream) == count }).await;
}

#[tokio::test]
async fn streams_by_name_and_by_arn_are_read_and_their_rows_are_kcls() {
    let scene = Scene::start(&["orders", "returns"]).await;
    let orders = scene.find("orders").await;
    let returns = scene.find(&scene.arn("returns").await).await;
    let (mut probe, ids) = scene.read_a_record_of_each_shard(vec![orders, returns]).await;

    // A split: the children's rows name their parent by its id alone.
    let shard = "shardId-000000000000";
    scene.split("orders", shard, u128::MAX / 4).await;
    for stream in ["orders", "returns"] {
        scene.put_both(stream, "b").await;
    }
    for id in &ids {
        becomes(&probe, id, 4).await;
    }
    probe.shutdown().await;

    let rows = scene.rows(APPLICATION).await;
    let child = rows[&format!("{}:shardId-000000000002", ids[0])].clone();
    assert_eq!(text(&child, "streamName"), Some(ids[0].as_str()));
    assert_eq!(text(&child, "shardId"), Some("shardId-000000000002"));
    assert_eq!(child["parentShardId"].as_ss().expect("a set"), &[shard.to_owned()]);
    let parent = &rows[&format!("{}:{shard}", ids[0])];
    assert_eq!(text(parent, "checkpoint"), Some("SHARD_END"));
    assert!(rows.contains_key(&format!("{}:{shard}", ids[1])), "{:?}", rows.keys());
}

#[tokio::test]
async fn streams_are_added_and_removed_while_the_worker_runs() {
    let scene = Scene::start(&["orders", "returns"]).await;
    let (orders, returns) = (scene.find("orders").await, scene.find("returns").await);
    let (first, second) = (orders.id().clone(), returns.id().clone());
    let mut probe = Probe::of(scene.reads(vec![orders]));
    scene.put_both("orders", "a").await;
    scene.put_both("returns", "a").await;
    becomes(&probe, &first, 2).await;
    assert_eq!(processed(&probe, &second), 0);

    let control = probe.control().clone();
    control.add_stream(returns.clone()).expect("a worker of several streams");
    becomes(&probe, &second, 2).await;
    control.remove_stream(&second).expect("a worker of several streams");
    let released = |row: &Row| text(row, "leaseOwner").is_none();
    until("the release of both leases", SOON, || async {
        let rows = scene.rows(APPLICATION).await;
        let of_second = rows.iter().filter(|(key, _)| key.starts_with(second.as_str()));
        of_second.filter(|(_, row)| released(row)).count() == 2
    })
    .await;

    scene.put_both("returns", "b").await;
    control.add_stream(returns).expect("a worker of several streams");
    becomes(&probe, &second, 4).await;
    assert_eq!(processed(&probe, &first), 2);
    probe.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_is_deleted_is_told_and_the_other_is_read_on() {
    let (scene, mut probe, ids) = Scene::reading().await;
    scene.delete("returns").await;
    let lost = |notice: &Notice| matches!(notice, Notice::Stream(StreamNews::Lost { stream, .. }) if *stream == ids[1].to_string());
    probe.told("the loss of the stream", lost).await;
    scene.put_both("orders", "b").await;
    becomes(&probe, &ids[0], 4).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn one_streams_shards_are_rewound_and_the_others_go_on() {
    let (_, mut probe, ids) = Scene::reading().await;
    let control = probe.control().clone();
    let unknown = Which::Shards(vec!["shardId-000000000000".into()]);
    let told = control.rewind(&unknown, To::TrimHorizon).await.expect_err("no name of such a worker");
    assert!(told.to_string().contains("expected the names of shards of this worker's streams"), "{told}");
    let which = Which::Shards(vec![ids[0].lease("shardId-000000000000")]);
    let rewind = control.rewind(&which, To::TrimHorizon).await.expect("a plan");
    assert_eq!((rewind.plan().steps.len(), rewind.plan().left.len()), (1, 0), "{rewind}");
    let done = rewind.apply().await.expect("writes");
    assert!(done.iter().all(|done| done.how == Stepped::Written), "{done:?}");
    becomes(&probe, &ids[0], 3).await;
    assert_eq!(processed(&probe, &ids[1]), 2);
    probe.shutdown().await;
}

#[tokio::test]
async fn rows_of_a_removed_stream_go_when_that_is_wanted() {
    let scene = Scene::start(&["orders", "returns"]).await;
    let (orders, returns) = (scene.find("orders").await, scene.find("returns").await);
    let second = returns.id().clone();
    let wanted = scene
        .reads(vec![orders, returns])
        .config(|config| config.with_stream_cleanup_delay(Span::from_secs(5)));
    let mut probe = Probe::of(wanted);
    scene.put_both("returns", "a").await;
    becomes(&probe, &second, 2).await;
    probe.control().remove_stream(&second).expect("a worker of several streams");
    until("the removal of both rows", Duration::from_secs(90), || async {
        !scene.rows(APPLICATION).await.keys().any(|key| key.starts_with(second.as_str()))
    })
    .await;
    let forgot = |notice: &Notice| matches!(notice, Notice::Stream(StreamNews::Forgot { .. }));
    probe.told("what was removed", forgot).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn an_unreadable_option_is_told_with_the_expectation() {
    let scene = Scene::start(&["orders"]).await;
    let error = StreamRef::find(&scene.kinesis, "nowhere").await.expect_err("no such stream");
    assert!(error.to_string().contains("expected an answer that describes it"), "{error}");
    let error = scene.reads(Vec::new()).build().expect_err("nothing to read");
    assert!(matches!(error, Error::NoStreams), "{error}");
    let orders = scene.find("orders").await;
    let twice = scene.reads(vec![orders.clone(), orders.clone()]).build().expect_err("twice");
    assert!(twice.to_string().contains("option `streams`: expected each stream once"), "{twice}");
    let one = scene.worker_of("orders", APPLICATION).build().expect("a worker of one stream");
    let refused = one.control().add_stream(orders).expect_err("a worker of one stream");
    assert!(refused.to_string().contains("expected a worker of several streams"), "{refused}");
}

/// Checks a text for each of these parts.
fn says(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.shown.contains(part), "{part} in {ended:?}");
    }
}

#[tokio::test]
async fn each_stream_of_a_table_is_examined_and_mended() {
    let (scene, mut probe, ids) = Scene::reading().await;
    probe.shutdown().await;
    let sound = scene.admin("doctor", &["--stream", "orders", "--stream", "returns"]).await;
    assert_eq!((sound.code, sound.shown.trim()), (Some(0), "nothing is wrong with the table"), "{sound:?}");
    // The leases of an unnamed stream are counted, and none of its shards is reported as gone.
    let one = scene.admin("doctor", &["--stream", "orders"]).await;
    assert_eq!(one.code, Some(0), "{one:?}");
    let unnamed = format!("2 leases (2 unfinished) of the stream {}, which was not named", ids[1]);
    says(&one, &[&unnamed, "nothing is wrong with the table"]);

    let (gone, hurt) = (ids[0].lease("shardId-000000000000"), ids[1].lease("shardId-000000000001"));
    scene.remove(APPLICATION, gone.as_str()).await;
    scene.edit(APPLICATION, hurt.as_str(), "REMOVE leaseCounter", &[]).await;

    let both = format!("orders,{}", scene.arn("returns").await);
    let found = scene.admin("doctor", &["--stream", &both, "--repair"]).await;
    assert_eq!(found.code, Some(1), "{found:?}");
    let (hole, missing) = (format!("hole {}", ids[0]), format!("missing-lease {gone}"));
    let (create, incomplete) = (format!("create {gone} at"), format!("incomplete-row {hurt}"));
    says(&found, &[&hole, &missing, &create, &incomplete, "3 findings", "nothing was written"]);
    let one = scene.admin("doctor", &["--stream", ids[1].as_str()]).await;
    says(&one, &[&incomplete, "1 finding,"]);
    let mended = scene.admin("doctor", &["--stream", &both, "--repair", "--apply"]).await;
    assert_eq!(mended.code, Some(0), "{mended:?}");
    says(&mended, &["2 of 2 rows written, 0 findings left"]);
    let row = scene.row(APPLICATION, gone.as_str()).await.expect("a row");
    assert_eq!(text(&row, "streamName"), Some(ids[0].as_str()));

    let mut probe = Probe::of(scene.reads(vec![scene.find("orders").await, scene.find("returns").await]));
    becomes(&probe, &ids[0], 1).await;
    scene.put_both("returns", "b").await;
    becomes(&probe, &ids[1], 2).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn leases_of_several_streams_are_shown_and_rewound_by_keys() {
    let (scene, mut probe, ids) = Scene::reading().await;
    let shard = "shardId-000000000000";
    let (first, second) = (ids[0].lease(shard), ids[1].lease(shard));
    let status = scene.admin("status", &[]).await;
    says(&status, &[first.as_str(), second.as_str(), "4 leases: 4 alive"]);
    let released = scene.admin("release", &["--shard", second.as_str(), "--apply"]).await;
    assert_eq!(released.code, Some(0), "{released:?}");
    says(&released, &[&format!("release {second}"), "1 of 1 rows written"]);
    let unknown = scene.admin("release", &["--shard", shard]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    says(&unknown, &["`admin status` lists those that there are"]);
    probe.shutdown().await;

    // In this table, a name alone means one of several streams, and the leases of the second stream are left alone.
    let all = ["--all", "--to", "trim-horizon"];
    let arn = scene.arn("orders").await;
    for stream in ["orders", ids[0].as_str(), &arn] {
        let rewound = scene.admin("rewind", &[&["--stream", stream][..], &all].concat()).await;
        assert_eq!(rewound.code, Some(0), "{rewound:?}");
        says(&rewound, &[&format!("rewind {first} from"), "to write 2 rows"]);
        assert!(!rewound.shown.contains(ids[1].as_str()), "{rewound:?}");
    }
    let one = ["--stream", "returns", "--shard", shard, "--to", "trim-horizon"];
    let rewound = scene.admin("rewind", &one).await;
    says(&rewound, &[&format!("rewind {second} from"), "to write 1 rows"]);
}

#[tokio::test]
async fn a_consumer_of_several_streams_ends_caught_up_with_each() {
    let scene = Scene::start(&["orders", "returns"]).await;
    let ids = [scene.find("orders").await, scene.find("returns").await].map(|stream| stream.id().clone());
    let consume = async |streams: &str| {
        let quick = ["--scan-interval", "500 ms", "--bootstrap-delay", "0 s"];
        let more = [&["--until-caught-up", "--stream", streams][..], &quick].concat();
        let ended = scene.run(&["consume"], &more).await;
        let of = |id: &StreamId| ended.shown.lines().filter(|line| line.contains(id.as_str())).count();
        (ended.code, ids.each_ref().map(of), ended)
    };
    let put = async || {
        scene.put_both("orders", "a").await;
        scene.put_both("returns", "a").await;
    };
    put().await;
    scene.split("returns", SHARDS[0], u128::MAX / 4).await;
    put().await;
    let (code, lines, ended) = consume("orders,returns").await;
    assert_eq!((code, lines), (Some(0), [4, 4]), "{ended:?}");
    put().await;
    // The worker does not wait for free leases of a foreign stream.
    let (code, lines, ended) = consume(ids[0].as_str()).await;
    assert_eq!((code, lines), (Some(0), [2, 0]), "{ended:?}");
    let (code, lines, ended) = consume("orders,returns").await;
    assert_eq!((code, lines), (Some(0), [0, 2]), "{ended:?}");

    // An unreadable stream is reported, and the readable stream is read to its end.
    put().await;
    let nowhere = StreamId::new(ids[0].account(), "nowhere", 5).expect("an identifier");
    let (code, lines, ended) = consume(&format!("orders,{nowhere}")).await;
    assert_eq!((code, lines), (Some(1), [2, 0]), "{ended:?}");
    let told = ended.told.lines().last().unwrap_or_default();
    assert!(told.starts_with(&format!("error: has not caught up with stream {nowhere}: ")), "{told}");
}
