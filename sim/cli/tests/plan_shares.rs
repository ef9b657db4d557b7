//! `leasehold plan` from outside: the assignment of leases, its rule, and reports of leases of other streams.

mod plan_output;

use plan_output::{file, findings, json_of, lease, plan, written};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// A fleet of KCL 3.x with a leader: two workers report, and one of them owns all leases.
fn led_table() -> PathBuf {
    let lease = |shard: u32, throughput: &str| {
        let mut row = lease(&format!("shardId-{shard:012}"), "w1");
        row["throughputKBps"] = json!({"N": throughput});
        row
    };
    let report = |worker: &str| {
        json!({
            "leaseKey": {"S": worker}, "entityType": {"S": "WORKER_METRIC_STATS"}, "lut": {"N": "1760000000"},
            "sts": {"M": {}}, "opr": {"M": {}}
        })
    };
    let table = json!({"Items": [
        lease(91, "8.0"), lease(95, "1.0"), lease(97, "1.0"), lease(98, "1.0"),
        report("w1"), report("w2"),
        {"leaseKey": {"S": "Leader"}, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w2"}, "leaseDuration": {"S": "120000"},
         "recordVersionNumber": {"S": "v"}},
        {"leaseKey": {"S": "Migration3.0"}, "entityType": {"S": "CLIENT_VERSION_MIGRATION"}, "cv": {"S": "CLIENT_VERSION_3X"}}
    ]});
    written("led.json", &table.to_string())
}

#[test]
fn a_leader_assigns_by_load_and_by_count_if_that_is_asked_for() {
    let (shards, table) = (file("shards.json"), led_table());
    let at = |now: &str, more: &[&str]| plan(&shards, &table, &[&["--now", now], more].concat());
    let run = |more: &[&str]| at("2025-10-09T08:53:30Z", more);
    let a_minute_later = "2025-10-09T08:55:00Z";
    let moved = |plan: &Value| {
        let rounds = plan["next_rounds"].as_array().expect("a list").iter();
        let rounds = std::iter::once(&plan["assign"]).chain(rounds);
        let steps = rounds.flat_map(|round| round.as_array().expect("a list"));
        steps.filter(|step| step["how"] == "move").count()
    };
    let load = json_of(&run(&["--json"]));
    assert_eq!(load["rule"]["by"], "leader");
    assert_eq!(load["rule"]["leader"], "w2");
    assert_eq!(load["rests"], true);
    assert_eq!(load["assign"][0]["from"], "w1");
    // The three light leases, which are less than half of the load.
    assert_eq!(moved(&load), 3, "{load}");
    let count = json_of(&run(&["--json", "--assign", "count"]));
    assert_eq!((moved(&count), &count["next_rounds"]), (2, &json!([])), "{count}");
    let said = String::from_utf8(run(&[]).stdout).expect("text");
    let line = |start: &str| said.lines().find(|line| line.starts_with(start));
    let rule =
        line("rule leader: w2 assigns leases by load, as CLIENT_VERSION_3X says, and w2 holds the lock");
    assert!(rule.is_some(), "{said}");
    assert!(line("move shardId-0000000000").is_some(), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.ends_with(", 0 to assign, 3 to move")), "{said}");
    // A minute later, all reports are old: no leader assigns leases.
    let later = json_of(&at(a_minute_later, &["--json"]));
    assert_eq!(later["rule"]["by"], "count");
    let refused = at(a_minute_later, &["--assign", "load"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("expected --assign for a table whose leases a leader assigns"), "{said}");
}

#[test]
fn leases_are_followed_until_nothing_moves() {
    let rows: Vec<Value> = (90..96).map(|shard| lease(&format!("shardId-{shard:012}"), "w1")).collect();
    let leases = written("uneven.json", &json!({"Items": rows}).to_string());
    let beat = r#"{"Items": [{"wid": {"S": "w2"}, "lut": {"N": "1760000000"}}]}"#;
    let workers = written("beats.json", beat);
    let shards = file("shards.json");
    let at = ["--now", "2025-10-09T08:53:30Z", "--workers", workers.to_str().expect("a path of text")];
    let run = |more: &[&str]| plan(&shards, &leases, &[&at, more].concat());
    // Rows of KCL offer no hand-overs: a worker steals one lease in each round.
    let plan = json_of(&run(&["--json"]));
    assert_eq!(plan["assign"][0]["how"], "steal");
    assert_eq!(plan["assign"].as_array().map(Vec::len), Some(1));
    assert_eq!(plan["next_rounds"].as_array().map(Vec::len), Some(2));
    assert_eq!(findings(&plan, "unbalanced").len(), 1);
    let said = String::from_utf8(run(&[]).stdout).expect("text");
    let third = said.lines().find(|line| line.starts_with("round 3: move shardId-"));
    assert!(
        third
            .is_some_and(|line| line.contains(" from w1 to w2: w1 has 4 leases and w2 2, 3 would be fair; ")),
        "{said}"
    );
}

/// The plan for a table with these owners, and old owners.
fn plan_of(name: &str, owners: &[(&str, Option<&str>)]) -> Value {
    let rows = (90..).zip(owners).map(|(shard, (owner, old))| {
        let mut row = lease(&format!("shardId-{shard:012}"), owner);
        if let Some(old) = old {
            row["checkpointOwner"] = json!({"S": old});
        }
        row
    });
    let rows: Vec<Value> = rows.collect();
    let leases = written(name, &json!({"Items": rows}).to_string());
    json_of(&plan(file("shards.json"), leases, &["--json"]))
}

#[test]
fn a_worker_is_not_compared_with_itself() {
    let plan = plan_of("promised.json", &[("w1", None), ("gone", Some("w1")), ("w1", None), ("w1", None)]);
    assert_eq!(findings(&plan, "unbalanced").len(), 0, "{plan}");
    assert_eq!(findings(&plan, "stuck-handoff").len(), 1, "{plan}");
}

#[test]
fn an_owner_without_a_name_is_no_worker() {
    let plan = plan_of("nameless.json", &[("w1", None), ("w1", None), ("", None)]);
    assert_eq!(findings(&plan, "unbalanced").len(), 0, "{plan}");
    let taken = &plan["assign"][0];
    assert_eq!(
        (&taken["lease_key"], &taken["how"], &taken["to"]),
        (&json!("shardId-000000000092"), &json!("take"), &json!("w1")),
        "{plan}"
    );
}

#[test]
fn leases_of_many_streams_are_told_in_a_line_for_each_stream() {
    let rows: Vec<Value> = ["bills:1700000000", "orders:1800000000"]
        .iter()
        .flat_map(|stream| (0..3).map(move |shard| format!("123456789012:{stream}:shardId-{shard:012}")))
        .map(|key| lease(&key, "w1"))
        .collect();
    let leases = written("many-streams.json", &json!({"Items": rows}).to_string());
    let run = |more: &[&str]| json_of(&plan(file("shards.json"), &leases, &[&["--json"], more].concat()));
    let all = run(&[]);
    assert_eq!(findings(&all, "orphan").len(), 0, "{all}");
    assert_eq!(findings(&all, "multi-stream").len(), 2, "{all}");
    let one = run(&["--stream", "orders"]);
    let other = findings(&one, "other-stream");
    assert_eq!((other.len(), findings(&one, "multi-stream").len()), (1, 1), "{one}");
    let detail = other[0]["detail"].as_str().expect("a sentence");
    assert!(
        detail.starts_with("3 leases (3 unfinished) of the stream 123456789012:bills:1700000000"),
        "{detail}"
    );
}

/// Two streams share a table: each is compared with its own shards, and the leases of both are shared out together.
#[test]
fn several_streams_are_planned_together() {
    let shards = json!({"Shards": [
        {"ShardId": "shardId-000000000000",
         "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "170141183460469231731687303715884105727"},
         "SequenceNumberRange": {"StartingSequenceNumber": "100"}},
        {"ShardId": "shardId-000000000001",
         "HashKeyRange": {"StartingHashKey": "170141183460469231731687303715884105728", "EndingHashKey": "340282366920938463463374607431768211455"},
         "SequenceNumberRange": {"StartingSequenceNumber": "100"}}]});
    let shards = written("of-one-stream.json", &shards.to_string());
    let [zero, one] = ["shardId-000000000000", "shardId-000000000001"];
    let lease = |stream: &str, shard: &str| lease(&format!("{stream}:{shard}"), "w1");
    let table = json!({"Items": [
        lease("1:orders:2", zero), lease("1:orders:2", one), lease("1:returns:3", zero), lease("1:bills:4", zero),
        {"leaseKey": {"S": "other"}, "entityType": {"S": "X"}}
    ]});
    let leases = written("of-several-streams.json", &table.to_string());
    let run = |streams: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["plan", "--json", "--leases"]).arg(&leases);
        for stream in streams {
            command.arg("--shards").arg(format!("{stream}{}", shards.display()));
        }
        command.output().expect("it starts")
    };
    let plan = json_of(&run(&["orders=", "1:returns:3="]));
    // The second shard of `returns` has no lease. The leases of `orders` are complete.
    assert_eq!(plan["create"].as_array().map(Vec::len), Some(1), "{plan}");
    assert_eq!(plan["create"][0]["lease_key"], "1:returns:3:shardId-000000000001");
    assert_eq!(findings(&plan, "hole").len(), 1, "{plan}");
    let other = findings(&plan, "other-stream");
    let detail = other[0]["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("1 lease (1 unfinished) of the stream 1:bills:4"), "{detail}");
    assert!(detail.ends_with("--shards 1:bills:4=FILE"), "{detail}");
    assert_eq!(findings(&plan, "foreign-row").len(), 1, "{plan}");

    for (streams, expected) in [
        (&["orders=", ""][..], "the stream of each file of several"),
        (&["orders=", "1:orders:2="], "found two for 1:orders:2"),
        (&["parcels="], "no lease of a stream of this name"),
    ] {
        let output = run(streams);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
