//! `leasehold admin` beside a running worker, and on a table that is damaged.

use leasehold::Notice;
use leasehold_tests::command;
use leasehold_tests::two_shards::{SHARDS, TwoShards, all_become, becomes, becomes_after_a_loss};
use leasehold_tests::wait::until;
use serde_json::Value;
use std::time::Duration;

const STREAM: &str = "administered";
const APPLICATION: &str = "administration";
const SOON: Duration = Duration::from_secs(60);

trait Administered {
    async fn admin(&self, what: &str, more: &[&str]) -> (Option<i32>, String, String);
    async fn rewind(&self, more: &[&str]) -> (Option<i32>, String, String);
}

impl Administered for TwoShards {
    /// Runs the command: its exit code, and the output of both streams.
    async fn admin(&self, what: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let args = ["admin", what, "--application", APPLICATION, "--watch", "1"];
        let here = ["--endpoint-url", &self.local.endpoint];
        let program = env!("CARGO_BIN_EXE_leasehold-under-test");
        let ended = command::run(program, &[&args[..], &here, more].concat()).await;
        (ended.code, ended.shown, ended.told)
    }

    async fn rewind(&self, more: &[&str]) -> (Option<i32>, String, String) {
        self.admin("rewind", &[&["--stream", STREAM][..], more].concat()).await
    }
}

#[tokio::test]
async fn a_running_workers_shard_is_read_again_from_its_new_place() {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    let first = scene.put("a").await;
    scene.put("b").await;
    let mut probe = scene.worker();
    all_become(&probe, &["a", "b"]).await;

    let (code, shown, _) = scene.rewind(&["--shard", SHARDS[0], "--to", "trim-horizon"]).await;
    assert_eq!(code, Some(0), "{shown}");
    for part in ["rewind shardId-000000000000 from", "is alive and loses", "nothing was written"] {
        assert!(shown.contains(part), "{shown}");
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    becomes(&probe, SHARDS[0], &["a", "b"]).await;

    // After the first record, and only in this shard.
    let (code, shown, told) = scene.rewind(&["--shard", SHARDS[0], "--to", &first, "--apply"]).await;
    assert_eq!(code, Some(0), "{shown}{told}");
    becomes(&probe, SHARDS[0], &["a", "b", "b"]).await;
    becomes(&probe, SHARDS[1], &["a", "b"]).await;

    // From a time.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let now = leasehold::Wall(now());
    tokio::time::sleep(Duration::from_millis(50)).await;
    scene.put("c").await;
    becomes(&probe, SHARDS[1], &["a", "b", "c"]).await;
    let (code, shown, told) =
        scene.rewind(&["--shard", SHARDS[1], "--to", &now.to_string(), "--apply"]).await;
    assert_eq!(code, Some(0), "{shown}{told}");
    becomes(&probe, SHARDS[1], &["a", "b", "c", "c"]).await;

    // From the beginning, everything.
    let (code, shown, told) = scene.rewind(&["--all", "--to", "trim-horizon", "--apply"]).await;
    assert!(code == Some(0) && shown.contains("2 of 2 rows written"), "{shown}{told}");
    becomes(&probe, SHARDS[0], &["a", "b", "b", "c", "a", "b", "c"]).await;
    becomes(&probe, SHARDS[1], &["a", "b", "c", "c", "a", "b", "c"]).await;
    probe.shutdown().await;
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time after 1970").as_millis() as i64
}

#[tokio::test]
async fn a_status_shows_who_lives_and_what_is_released_is_taken_again() {
    let (scene, mut probe) = TwoShards::worked_on(STREAM, APPLICATION, "a").await;
    all_become(&probe, &["a"]).await;
    let (code, shown, _) = scene.admin("status", &["--json"]).await;
    let status: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(code, Some(0));
    for n in 0..2 {
        assert_eq!(status["leases"][n]["standing"], "alive", "{shown}");
    }
    assert_eq!(status["owners"][0]["leases"], 2, "{shown}");

    let (code, shown, _) = scene.admin("release", &["--worker", "probe"]).await;
    assert!(code == Some(0) && shown.contains("say --apply to write 2 rows"), "{shown}");
    let lost = |notice: &Notice| matches!(notice, Notice::Lost { .. });
    assert!(!probe.seen().notices.iter().any(lost), "a dry run takes nothing");
    let (code, shown, told) = scene.admin("release", &["--worker", "probe", "--apply"]).await;
    assert_eq!(code, Some(0), "{shown}{told}");
    probe.told("the loss", lost).await;
    scene.put("b").await;
    for shard in SHARDS {
        becomes_after_a_loss(&probe, shard, &["a", "b"]).await;
    }
    let (code, _, told) = scene.admin("release", &["--worker", "nobody", "--apply"]).await;
    assert!(code == Some(1) && told.contains("found none"), "{told}");
    probe.shutdown().await;
    let (_, shown, _) = scene.admin("status", &[]).await;
    assert!(shown.contains("2 leases: 0 alive, 0 silent, 0 expired, 2 free"), "{shown}");
}

#[tokio::test]
async fn a_finished_shard_is_read_again_beside_its_children() {
    let (scene, mut probe) = TwoShards::worked_on(STREAM, APPLICATION, "a").await;
    becomes(&probe, SHARDS[0], &["a"]).await;
    scene.split_first(5).await;
    probe.told("the end", |notice| matches!(notice, Notice::Ended { .. })).await;
    scene.put("b").await;
    let child = "shardId-000000000002";
    becomes(&probe, child, &["b"]).await;

    let (code, shown, _) = scene.rewind(&["--shard", SHARDS[0], "--to", "latest", "--apply"]).await;
    assert!(code == Some(1) && shown.contains("LATEST would read nothing"), "{shown}");
    let (code, shown, told) = scene.rewind(&["--shard", SHARDS[0], "--to", "trim-horizon", "--apply"]).await;
    assert_eq!(code, Some(0), "{shown}{told}");
    assert!(shown.contains("shardId-000000000002 and shardId-000000000003 keep the checkpoint"), "{shown}");
    becomes(&probe, SHARDS[0], &["a", "a"]).await;
    scene.put("c").await;
    becomes(&probe, child, &["b", "c"]).await;
    let ended = |notice: &&Notice| matches!(notice, Notice::Ended { .. });
    until("the second end", SOON, || async { probe.seen().notices.iter().filter(ended).count() == 2 }).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn a_damaged_table_is_mended() {
    let (scene, mut probe) = TwoShards::worked_on(STREAM, APPLICATION, "a").await;
    all_become(&probe, &["a"]).await;
    probe.shutdown().await;
    let doctor =
        async |more: &[&str]| scene.admin("doctor", &[&["--stream", STREAM][..], more].concat()).await;
    let (code, shown, told) = doctor(&[]).await;
    assert_eq!((code, shown.trim()), (Some(0), "nothing is wrong with the table"), "{told}");
    let (code, _, told) = doctor(&["--stream", "another"]).await;
    assert!(code == Some(2) && told.contains("shard ids alone"), "{told}");

    scene.remove(APPLICATION, SHARDS[0]).await;
    scene.edit(APPLICATION, SHARDS[1], "REMOVE leaseCounter", &[]).await;

    let (code, shown, _) = doctor(&["--repair"]).await;
    assert_eq!(code, Some(1), "{shown}");
    for part in
        ["incomplete-row", "hole", "missing-lease", "create shardId-000000000000", "nothing was written"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(scene.lease(SHARDS[0]).await.is_none(), "a dry run creates nothing");

    let (code, shown, told) = doctor(&["--repair", "--apply"]).await;
    assert!(code == Some(0) && shown.contains("2 of 2 rows written"), "{shown}{told}");
    let row = scene.lease(SHARDS[1]).await.expect("a row");
    assert!(row.contains_key("leaseCounter"), "{row:?}");
    let (code, shown, _) = doctor(&[]).await;
    assert_eq!(code, Some(0), "{shown}");
    let mut probe = scene.worker();
    becomes(&probe, SHARDS[0], &["a"]).await;
    scene.put("b").await;
    becomes(&probe, SHARDS[1], &["b"]).await;
    probe.shutdown().await;
}
