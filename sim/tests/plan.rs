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

/// There, every listed shard without a row is still to be read.
#[test]
fn tables_of_other_formats_are_compared_too() {
    let shards = file("shards.json");
    let run = |dialect: &str, rows: &str| {
        let leases = written(&format!("{dialect}.json"), rows);
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args([
                "plan",
                "--json",
                "--dialect",
                dialect,
                "--shards",
                &shards,
                "--leases",
            ])
            .arg(leases)
            .output();
        json_of(&output.expect("it starts"))
    };
    let created = |plan: &Value| {
        let all = plan["create"].as_array().expect("a list").iter();
        all.map(|lease| lease["lease_key"].to_string())
            .map(|key| {
                key.trim_matches('"')
                    .trim_start_matches("shardId-0000000000")
                    .to_owned()
            })
            .collect::<Vec<_>>()
    };
    let go = run(
        "vmware-go-kcl",
        r#"{"Items": [
            {"ShardID": {"S": "shardId-000000000090"}, "Checkpoint": {"S": "SHARD_END"}},
            {"ShardID": {"S": "shardId-000000000091"}, "AssignedTo": {"S": "w1"},
             "LeaseTimeout": {"S": "2025-10-09T08:54:00Z"}},
            {"ShardID": {"S": "shardId-000000000095"}, "ParentShardId": {"S": "shardId-000000000090"},
             "LeaseTimeout": {"S": "soon"}}]}"#,
    );
    assert_eq!(created(&go), ["97"]);
    assert_eq!(findings(&go, "unreadable-row").len(), 1, "{go}");
    let rb = run(
        "kcl-rb",
        r#"{"Items": [{"shard_id": {"S": "shardId-000000000091"}, "checkpoint": {"S": "SHARD_END"}}]}"#,
    );
    assert_eq!(created(&rb), ["90", "95", "97"]);
    // By rank, so that rows do not tell who would take what.
    let kinsumer = run(
        "kinsumer",
        r#"{"Items": [{"Shard": {"S": "shardId-000000000090"}, "SequenceNumber": {"S": ""}, "LastUpdate": {"N": "1"},
            "OwnerID": {"S": "7"}, "OwnerName": {"S": "anna"}},
            {"Shard": {"S": "shardId-000000000091"}, "SequenceNumber": {"S": ""}, "LastUpdate": {"N": "1"}}]}"#,
    );
    assert_eq!(created(&kinsumer), ["95", "97"]);
    assert_eq!(kinsumer["assign"], json!([]));
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
            vec!["--dialect".into(), "klc".into()],
            "expected kcl or vmware-go-kcl or kcl-rb or kinsumer, found \"klc\"",
        ),
        (
            vec![
                "--dialect".into(),
                "kinsumer".into(),
                "--stream".into(),
                "orders".into(),
            ],
            "expected --workers and --stream with --dialect kcl only",
        ),
        (
            vec!["--dialect".into(), "vmware-go-kcl".into()],
            "expected a row with the string ShardID as its key",
        ),
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

/// Worlds that begin with the stream and the table of the same files.
fn worlds(leases: &str, more: &[&str]) -> Output {
    let shards = file("shards.json");
    let failures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("what-if-failures");
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args([
            "sim",
            "--shards",
            &shards,
            "--leases",
            leases,
            "--json",
            "--no-shrink",
        ])
        .arg("--failures")
        .arg(failures)
        .args(more)
        .output()
        .expect("the command starts")
}

#[test]
fn worlds_that_begin_with_the_files_come_right() {
    let run = || json_of(&worlds(&file("leases.json"), &["--seeds", "0..50"]));
    let (one, other) = (run(), run());
    assert_eq!(one["seeds"], 50);
    assert_eq!(one["violations"], json!([]));
    assert_eq!(one["digest"], other["digest"]);
}

#[test]
fn what_keeps_a_table_from_coming_right_is_named_as_in_the_files() {
    let text = std::fs::read_to_string(file("leases.json")).expect("a file");
    let mut table: Value = serde_json::from_str(&text).expect("JSON");
    table["Items"][1]["leaseCounter"] = json!({"S": "many"});
    let broken = written("unreadable.json", &table.to_string());
    let output = worlds(broken.to_str().expect("a path of text"), &["--seed", "3"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let violation = &summary["violations"][0];
    assert_eq!(violation["property"], "P4");
    let said = violation["summary"].as_str().expect("a sentence");
    assert!(said.contains("cannot be read: leaseCounter"), "{said}");
    assert!(said.ends_with("is shardId-000000000091"), "{said}");
    let again = violation["scenario"].as_str().expect("a command");
    assert!(again.starts_with("leasehold sim --seed 3 --shards "), "{again}");
}

#[test]
fn worlds_cannot_begin_with_what_is_no_table() {
    let dialect = written(
        "other-dialect.json",
        r#"{"Items": [{"shard_id": {"S": "a"}, "owner": {"S": "b"}}]}"#,
    );
    let cases = [
        (
            dialect.to_str().expect("a path of text").to_owned(),
            "expected a row with the string leaseKey as its key",
        ),
        (file("shards.json"), "expected an object with a list \"Items\""),
    ];
    for (leases, expected) in cases {
        let output = worlds(&leases, &["--seed", "1"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.contains(&leases), "{said}");
    }
    let alone = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["sim", "--shards", &file("shards.json")])
        .output()
        .expect("the command starts");
    assert_eq!(alone.status.code(), Some(2));
}
