//! `leasehold plan` from outside: what it makes of files, and what it says of bad ones.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/plan")
        .join(name);
    path.to_str().expect("a path of text").to_owned()
}

fn plan(more: &[&str]) -> Output {
    let (shards, leases) = (file("shards.json"), file("leases.json"));
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["plan", "--shards", &shards, "--leases", &leases, "--json"])
        .args(more)
        .output()
        .expect("the command starts")
}

fn json_of(output: &Output) -> Value {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn findings(plan: &Value, kind: &str) -> Vec<Value> {
    let all = plan["findings"].as_array().expect("a list");
    all.iter()
        .filter(|finding| finding["kind"] == kind)
        .cloned()
        .collect()
}

/// A file of this test's own.
fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path
}

#[test]
fn a_table_is_compared_with_its_stream() {
    let plan = json_of(&plan(&["--now", "2025-10-09T08:54:00Z"]));
    let kinds: Vec<&str> = plan["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        ["foreign-row", "foreign-row", "ended-without-children", "hole"]
    );
    assert_eq!(plan["create"][0]["lease_key"], "shardId-000000000097");
}

#[test]
fn the_dead_are_told_by_their_heartbeats() {
    let leases = file("leases.json");
    // w1 reported at 08:53:20, w2 a day before.
    let soon = json_of(&plan(&["--workers", &leases, "--now", "2025-10-09T08:54:00Z"]));
    let stale = findings(&soon, "stale-worker");
    assert_eq!(stale.len(), 1, "{stale:?}");
    assert!(
        stale[0]["detail"]
            .as_str()
            .is_some_and(|detail| detail.starts_with("w2 reported last"))
    );
    assert_eq!(soon["assign"][0]["to"], "w1");
    // By this machine's clock, nobody has reported for long.
    let late = json_of(&plan(&["--workers", &leases]));
    assert_eq!(findings(&late, "stale-worker").len(), 2);
    assert_eq!(late["assign"], json!([]));
}

#[test]
fn rows_of_another_stream_are_told() {
    let path = written(
        "two-streams.json",
        r#"{"Items": [
            {"leaseKey": {"S": "123456789012:bills:1700000000:shardId-000000000095"}, "checkpoint": {"S": "LATEST"},
             "leaseCounter": {"N": "1"}, "ownerSwitchesSinceCheckpoint": {"N": "0"}},
            {"leaseKey": {"S": "shardId-000000000095"}, "streamName": {"S": "bills"}, "checkpoint": {"S": "LATEST"},
             "leaseCounter": {"N": "1"}, "ownerSwitchesSinceCheckpoint": {"N": "0"}}]}"#,
    );
    let shards = file("shards.json");
    let run = |stream: &str| {
        let leases = path.to_str().expect("a path of text");
        let args = [
            "plan", "--shards", &shards, "--leases", leases, "--json", "--stream", stream,
        ];
        json_of(
            &Command::new(env!("CARGO_BIN_EXE_leasehold"))
                .args(args)
                .output()
                .expect("it starts"),
        )
    };
    assert_eq!(findings(&run("orders"), "other-stream").len(), 2);
    assert_eq!(findings(&run("bills"), "other-stream").len(), 0);
}

#[test]
fn what_cannot_be_used_is_refused_with_a_sentence() {
    let no_time = written(
        "no-time.json",
        r#"{"Items": [{"wid": {"S": "w1"}, "entityType": {"S": "WORKER_METRIC_STATS"}}]}"#,
    );
    let no_name = written("no-name.json", r#"{"Items": [{"lut": {"N": "1760000000"}}]}"#);
    let other = written("other.json", r#"{"Items": [{"leaseKey": {"S": "a"}}]}"#);
    let text = |path: &PathBuf| path.to_str().expect("a path of text").to_owned();
    let cases = [
        (vec!["--now".into(), "today".into()], "expected a time such as"),
        (
            vec!["--stream".into(), "two words".into()],
            "expected the name of a stream",
        ),
        (
            vec!["--workers".into(), "nowhere.json".into()],
            "expected a readable text file",
        ),
        (
            vec!["--workers".into(), text(&no_time)],
            "expected the time of the last report of w1",
        ),
        (
            vec!["--workers".into(), text(&no_name)],
            "expected a worker's name",
        ),
        (vec!["--workers".into(), text(&other)], "expected worker metrics"),
        (
            vec!["--workers".into(), file("shards.json")],
            "expected an object with a list \"Items\"",
        ),
    ];
    for (args, expected) in cases {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = plan(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
