//! `leasehold plan` from outside: the plan from files, and the messages for bad files.

mod plan_output;

use leasehold_local_aws::kinesis::{SequenceNumber, SequenceParts};
use plan_output::{file, findings, json_of, plan, written};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The plan for the files of `tests/plan`.
fn plan_of_files(more: &[&str]) -> Output {
    plan(file("shards.json"), file("leases.json"), &[&["--json"], more].concat())
}

/// The numbers of the shards of a list.
fn numbers(list: &Value) -> String {
    let keys = list.as_array().expect("a list").iter().map(|entry| entry["lease_key"].as_str());
    keys.flatten().map(|key| key[18..].to_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_table_is_compared_with_its_stream() {
    let plan = json_of(&plan_of_files(&["--now", "2025-10-09T08:54:00Z"]));
    let kinds: Vec<&str> = plan["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "foreign-row",
            "foreign-row",
            "ended-without-children",
            "hole",
            // w2's report in the table is a day old, and w1's is not.
            "stale-worker"
        ]
    );
    assert_eq!(plan["create"][0]["lease_key"], "shardId-000000000097");
}

/// A stream with two splits, with numbers as AWS gives them (so that 97 begins below 95): shard 80 at 08:00:00, 90 and
/// 91 at 08:20:00, 95 and 97 below 90 at 08:40:00.
#[test]
fn an_empty_table_is_filled_with_what_was_open_at_a_time() {
    let number = |created: u64, shard: u32| {
        let parts = SequenceParts { created_secs: created, position: 0, time_secs: created, shard };
        SequenceNumber::new(parts).to_string()
    };
    let shard = |id: u32, parent: Option<u32>, created: u64, closed: bool, range: [&str; 2]| {
        let mut shard = json!({
            "ShardId": format!("shardId-{id:012}"),
            "HashKeyRange": {"StartingHashKey": range[0], "EndingHashKey": range[1]},
            "SequenceNumberRange": {"StartingSequenceNumber": number(created, id)}
        });
        if let Some(parent) = parent {
            shard["ParentShardId"] = json!(format!("shardId-{parent:012}"));
        }
        if closed {
            shard["SequenceNumberRange"]["EndingSequenceNumber"] = json!(number(created + 1, id));
        }
        shard
    };
    const HALF: [&str; 2] =
        ["170141183460469231731687303715884105727", "170141183460469231731687303715884105728"];
    const QUARTER: [&str; 2] =
        ["85070591730234615865843651857942052863", "85070591730234615865843651857942052864"];
    const LAST: &str = "340282366920938463463374607431768211455";
    // 2025-10-09T08:00:00Z
    let eight = 1_759_996_800;
    let listing = json!({"Shards": [
        shard(80, None, eight, true, ["0", LAST]),
        shard(90, Some(80), eight + 1_200, true, ["0", HALF[0]]),
        shard(91, Some(80), eight + 1_200, false, [HALF[1], LAST]),
        shard(95, Some(90), eight + 2_400, false, ["0", QUARTER[0]]),
        shard(97, Some(90), eight + 2_400, false, [QUARTER[1], HALF[0]]),
    ]});
    let shards = written("timed-shards.json", &listing.to_string());
    let empty = written("empty.json", r#"{"Items": []}"#);
    let run = |from: &str, more: &[&str]| plan(&shards, &empty, &[&["--from", from], more].concat());
    for (from, created, later) in [
        ("trim-horizon", "80", "90 91 97 95"),
        ("2025-10-09T07:00:00Z", "80", "90 91 97 95"),
        ("2025-10-09T08:10:00Z", "80", "90 91 97 95"),
        ("2025-10-09T08:30:00Z", "90 91", "97 95"),
        ("2025-10-09T09:00:00Z", "91 97 95", ""),
        ("latest", "91 97 95", ""),
    ] {
        let plan = json_of(&run(from, &["--json"]));
        assert_eq!(
            (numbers(&plan["create"]), numbers(&plan["wait"])),
            (created.to_owned(), later.to_owned()),
            "{from}"
        );
        assert_eq!(findings(&plan, "unknown-times").len(), 0);
    }
    let said = String::from_utf8(run("2025-10-09T08:30:00Z", &[]).stdout).expect("text");
    assert_eq!(
        said.lines().skip(1).collect::<Vec<_>>(),
        [
            "create shardId-000000000090 at AT_TIMESTAMP: there are no leases yet, and the stream is read from AT_TIMESTAMP",
            "create shardId-000000000091 at AT_TIMESTAMP: there are no leases yet, and the stream is read from AT_TIMESTAMP",
            "wait shardId-000000000097: shardId-000000000090 comes before it, and has not been processed to its end",
            "wait shardId-000000000095: shardId-000000000090 comes before it, and has not been processed to its end",
            "rule count: each worker takes its share of the leases, counted by the owners in the rows",
            "1 findings, 2 leases to create, 2 to create later, 0 to assign, 0 to move",
        ]
    );
}

#[test]
fn the_dead_are_told_by_their_heartbeats() {
    let leases = file("leases.json");
    // w1 reported at 08:53:20, w2 a day before.
    let soon = json_of(&plan_of_files(&["--workers", &leases, "--now", "2025-10-09T08:54:00Z"]));
    let stale = findings(&soon, "stale-worker");
    assert_eq!(stale.len(), 1, "{stale:?}");
    assert!(stale[0]["detail"].as_str().is_some_and(|detail| detail.starts_with("w2 reported last")));
    assert_eq!(soon["assign"][0]["to"], "w1");
    // By this machine's clock, all reports are old.
    let late = json_of(&plan_of_files(&["--workers", &leases]));
    assert_eq!(findings(&late, "stale-worker").len(), 2);
    assert_eq!(late["assign"], json!([]));
    // The table alone tells the same, unless all reports in it are old: then the file may be, too.
    let alone = json_of(&plan_of_files(&["--now", "2025-10-09T08:54:00Z"]));
    assert_eq!(alone["assign"], soon["assign"]);
    let old = json_of(&plan_of_files(&[]));
    assert_eq!(findings(&old, "stale-worker").len(), 0);
    assert_eq!(findings(&old, "old-reports").len(), 1);
    assert_eq!(old["rests"], true);
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
    let run = |stream: &str| json_of(&plan(&shards, &path, &["--json", "--stream", stream]));
    assert_eq!(findings(&run("orders"), "other-stream").len(), 2);
    assert_eq!(findings(&run("bills"), "other-stream").len(), 0);
}

/// Rows edited by hand: other programs do not read these rows, or never take the leases.
#[test]
fn rows_without_what_guards_them_are_told() {
    let shards = file("shards.json");
    for (format, rows, missing) in [
        (
            "kcl",
            r#"{"Items": [
                {"leaseKey": {"S": "shardId-000000000095"}, "checkpoint": {"S": "LATEST"},
                 "ownerSwitchesSinceCheckpoint": {"N": "0"}},
                {"leaseKey": {"S": "shardId-000000000097"}, "checkpoint": {"S": "LATEST"}, "leaseCounter": {"N": "1"},
                 "ownerSwitchesSinceCheckpoint": {"N": "0"}},
                {"leaseKey": {"S": "shardId-000000000091"}, "checkpoint": {"S": "LATER"}}]}"#,
            "leaseCounter",
        ),
        (
            "vmware-go-kcl",
            r#"{"Items": [
                {"ShardID": {"S": "shardId-000000000095"}, "AssignedTo": {"S": "w1"}},
                {"ShardID": {"S": "shardId-000000000097"}},
                {"ShardID": {"S": "shardId-000000000091"}, "LeaseTimeout": {"S": "soon"}}]}"#,
            "LeaseTimeout",
        ),
    ] {
        let leases = written(&format!("{format}-incomplete.json"), rows);
        let plan = json_of(&plan(&shards, leases, &["--json", "--format", format]));
        let incomplete = findings(&plan, "incomplete-row");
        assert_eq!(incomplete.len(), 1, "{plan}");
        assert_eq!(incomplete[0]["lease_key"], "shardId-000000000095", "{plan}");
        let detail = incomplete[0]["detail"].as_str().expect("a sentence");
        assert!(detail.starts_with(&format!("it lacks {missing},")), "{detail}");
        let unreadable = findings(&plan, "unreadable-row");
        assert_eq!(unreadable.len(), 1, "{plan}");
        let detail = unreadable[0]["detail"].as_str().expect("a sentence");
        assert!(detail.contains("no worker reads its shard until"), "{detail}");
    }
}

/// There, every listed shard without a row is still to be read.
#[test]
fn tables_of_other_formats_are_compared_too() {
    let shards = file("shards.json");
    let run = |format: &str, rows: &str| {
        let leases = written(&format!("{format}.json"), rows);
        json_of(&plan(&shards, leases, &["--json", "--format", format]))
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
    assert_eq!(numbers(&go["create"]), "97");
    assert_eq!(findings(&go, "unreadable-row").len(), 1, "{go}");
    let rb = run(
        "kcl-rb",
        r#"{"Items": [{"shard_id": {"S": "shardId-000000000091"}, "checkpoint": {"S": "SHARD_END"}}]}"#,
    );
    assert_eq!(numbers(&rb["create"]), "90 95 97");
    // By rank: the rows do not tell the next owners.
    let kinsumer = run(
        "kinsumer",
        r#"{"Items": [{"Shard": {"S": "shardId-000000000090"}, "SequenceNumber": {"S": ""}, "LastUpdate": {"N": "1"},
            "OwnerID": {"S": "7"}, "OwnerName": {"S": "anna"}},
            {"Shard": {"S": "shardId-000000000091"}, "SequenceNumber": {"S": ""}, "LastUpdate": {"N": "1"}}]}"#,
    );
    assert_eq!(numbers(&kinsumer["create"]), "95 97");
    assert_eq!(kinsumer["assign"], json!([]));
}

#[test]
fn an_unusable_argument_is_refused_with_a_sentence() {
    let text = |path: PathBuf| path.to_str().expect("a path of text").to_owned();
    let rows = r#"{"Items": [{"wid": {"S": "w1"}, "entityType": {"S": "WORKER_METRIC_STATS"}}]}"#;
    let no_time = text(written("no-time.json", rows));
    let no_name = text(written("no-name.json", r#"{"Items": [{"lut": {"N": "1760000000"}}]}"#));
    let other = text(written("other.json", r#"{"Items": [{"leaseKey": {"S": "a"}}]}"#));
    for (args, expected) in [
        (&["--now", "today"][..], "expected a time such as"),
        (&["--format", "klc"], "expected kcl or vmware-go-kcl or kcl-rb or kinsumer, found \"klc\""),
        (
            &["--format", "kinsumer", "--stream", "orders"],
            "expected --workers and --stream with --format kcl only",
        ),
        (&["--format", "vmware-go-kcl"], "expected a row with the string ShardID as its key"),
        (&["--stream", "two words"], "expected the name of a stream"),
        (&["--workers", "nowhere.json"], "expected a readable text file"),
        (&["--workers", &no_time], "expected the time of the last report of w1"),
        (&["--workers", &no_name], "expected a worker's name"),
        (&["--workers", &other], "expected worker metrics"),
        (&["--workers", &file("shards.json")], "expected an object with a list \"Items\""),
    ] {
        let output = plan_of_files(args);
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
        .args(["sim", "--shards", &shards, "--leases", leases, "--json", "--no-shrink"])
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
fn faults_that_keep_a_table_wrong_are_named_as_in_the_files() {
    let text = std::fs::read_to_string(file("leases.json")).expect("a file");
    let mut table: Value = serde_json::from_str(&text).expect("JSON");
    table["Items"][1]["leaseCounter"] = json!({"S": "many"});
    let broken = written("unreadable.json", &table.to_string());
    let output = worlds(broken.to_str().expect("a path of text"), &["--seed", "3"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let violation = &summary["violations"][0];
    assert_eq!(violation["property"], "hash-space-covered");
    let said = violation["summary"].as_str().expect("a sentence");
    assert!(said.contains("cannot be read: leaseCounter"), "{said}");
    assert!(said.ends_with("is shardId-000000000091"), "{said}");
    let again = violation["scenario"].as_str().expect("a command");
    assert!(again.starts_with("leasehold sim --seed 3 --shards "), "{again}");
}

#[test]
fn worlds_cannot_begin_with_what_is_no_table() {
    let format =
        written("other-format.json", r#"{"Items": [{"shard_id": {"S": "a"}, "owner": {"S": "b"}}]}"#);
    let cases = [
        (
            format.to_str().expect("a path of text").to_owned(),
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
