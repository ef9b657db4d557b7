//! The `leasehold` command from outside: its exit codes, formats and manners.

mod command;

use command::*;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error} in {:?}; stderr: {}", stdout(output), stderr(output)))
}

/// The results of one short demo, and the folder of its traces. All tests share them.
fn demo() -> &'static (Value, PathBuf) {
    static DEMO: OnceLock<(Value, PathBuf)> = OnceLock::new();
    DEMO.get_or_init(|| {
        let traces = directory("demo");
        let path = traces.to_str().expect("a path of text");
        let args = ["demo", "--seconds", "8", "--records", "2000", "--json", "--trace", path];
        (json_of(&exits(0, run(&args))), traces)
    })
}

/// A copy of a demo worker's trace, changed.
fn changed_trace(name: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let (_, traces) = demo();
    let text = std::fs::read_to_string(traces.join("worker-2.jsonl")).expect("a trace");
    let path = directory(name).join("trace.jsonl");
    std::fs::write(&path, change(text)).expect("a changed trace");
    path
}

fn replay(path: &Path, more: &[&str]) -> Output {
    let mut args = vec!["replay", path.to_str().expect("a path of text")];
    args.extend(more);
    run(&args)
}

#[test]
fn every_help_has_an_example() {
    for command in ["demo", "local", "consume", "sim", "replay", "show", "diff"] {
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        let text = stdout(&output);
        assert!(text.contains("Example"), "{text}");
        assert!(text.contains(&format!("leasehold {command}")), "{text}");
    }
    assert!(stdout(&run(&["--help"])).contains("Exit codes"));
}

#[test]
fn wrong_usage_is_exit_code_2_and_a_sentence_on_stderr() {
    for (line, part) in [
        ("dance", "dance"),
        ("demo --workers 0", "--workers"),
        ("demo --seconds soon", "--seconds"),
        ("sim --seeds 9..3", "the first below the second"),
        ("sim --seed 1 --seeds 1..2", "cannot be used with"),
        ("consume --stream s", "--application"),
        ("consume --stream s --application abc --from yesterday", "trim-horizon"),
        (
            "consume --stream s --application abc --endpoint-url foo",
            "expected --endpoint-url to be a URL with a scheme (http or https) and a host, found \"foo\"",
        ),
        (
            "consume --stream s --application abc --endpoint-url 127.0.0.1:9",
            "write it as in http://127.0.0.1:9",
        ),
        (
            "migrate --from kcl-rb --from-table billing --to kcl --to-table billing",
            "source and target are the same table",
        ),
        ("local --host 256.0.0.1 --port 0", "256.0.0.1"),
        ("replay /nowhere/trace.jsonl", "/nowhere/trace.jsonl"),
        ("show /nowhere/trace.jsonl --html x.html", "/nowhere/trace.jsonl"),
        ("diff /nowhere/a.jsonl /nowhere/b.jsonl", "/nowhere/a.jsonl"),
    ] {
        let output = words(line).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(part), "{line}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{line}");
    }
    let output = leasehold(&["sim", "--seed", "1"])
        .env("RUST_LOG", "leasehold=shouting")
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("RUST_LOG"), "{}", stderr(&output));
}

#[test]
fn the_demo_loses_nothing_and_keeps_order() {
    let (results, traces) = demo();
    assert_eq!(results["records_put"], 2_000, "{results}");
    assert_eq!(results["records_processed"], 2_000, "{results}");
    assert_eq!(results["lost"], 0, "{results}");
    assert_eq!(results["out_of_order"], 0, "{results}");
    assert_eq!(results["reshards"], 3, "{results}");
    assert_eq!(results["workers_killed"], 1, "{results}");
    for field in ["duplicates", "handoffs", "seconds", "records_per_second"] {
        assert!(results[field].is_number(), "{field} in {results}");
    }
    for worker in 1..=4 {
        assert!(traces.join(format!("worker-{worker}.jsonl")).is_file(), "worker {worker}");
    }
}

#[test]
fn a_demo_workers_trace_replays_without_divergence() {
    let (_, traces) = demo();
    for worker in 1..=4 {
        let path = traces.join(format!("worker-{worker}.jsonl"));
        let report = json_of(&exits(0, replay(&path, &["--json"])));
        assert_eq!(report["divergence"], Value::Null, "{report}");
        assert!(report["inputs"].as_u64() > Some(10), "{report}");
        assert_eq!(report["digest"].as_str().map(str::len), Some(16), "{report}");
    }
}

#[test]
fn a_replay_shows_what_is_asked_for() {
    let (_, traces) = demo();
    let path = traces.join("worker-2.jsonl");
    let text = stdout(&replay(&path, &["--from", "0", "--until", "0"]));
    assert!(text.contains("boot of worker-2"), "{text}");
    assert!(!text.contains("tick"), "{text}");
    // The story of one shard, under either spelling of its id, holds no other shard; the story of an unknown shard is
    // empty.
    let (long, short) = ("shardId-000000000001", "shard-1");
    let told: Vec<String> = (1..=4)
        .map(|worker| {
            let path = traces.join(format!("worker-{worker}.jsonl"));
            let text = stdout(&replay(&path, &["--explain", long]));
            assert_eq!(text, stdout(&replay(&path, &["--explain", short])));
            text
        })
        .collect();
    let told = told.concat();
    assert!(told.contains("took shard-1") && told.contains("started processing shard-1 from"), "{told}");
    assert!(!told.contains("took shard-0"), "{told}");
    let none = stdout(&replay(&path, &["--explain", "shard-99"]));
    assert!(none.starts_with("no divergence"), "{none}");
}

#[test]
fn a_flipped_outcome_is_the_first_divergence() {
    let mut flipped_at = 0;
    let path = changed_trace("flipped", |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // The table's creation, or a later write: applied becomes refused.
        let (at, line) = lines
            .iter_mut()
            .enumerate()
            .skip(10)
            .find(|(_, line)| line.contains(r#""outcome":{"applied":"done"}"#))
            .expect("a write that was applied");
        *line = line.replace(
            r#""outcome":{"applied":"done"}"#,
            r#""outcome":{"refused":{"why":"condition-failed"}}"#,
        );
        // The header is the first line, so line 1 is input 0.
        let before = lines[..at].iter().filter(|line| line.starts_with(r#"{"n":"#));
        flipped_at = before.count() as u64;
        lines.join("\n") + "\n"
    });
    let divergence = &json_of(&exits(1, replay(&path, &["--json"])))["divergence"];
    assert_eq!(divergence["input"], flipped_at, "{divergence}");
    assert_ne!(divergence["expected"], divergence["found"]);
    let text = stdout(&replay(&path, &[]));
    assert!(text.contains(&format!("DIVERGENCE at input {flipped_at}: expected ")), "{text}");
}

#[test]
fn a_damaged_trace_is_refused_with_the_number_of_the_line() {
    type Damage = fn(&mut Vec<&str>);
    let cases: [(&str, Damage, &str, &str); 5] = [
        ("cut-in-a-line", |lines| lines.truncate(20), "{\"n\":19,\"at\":12", "line 21 "),
        ("cut-between-lines", |lines| lines.truncate(20), "", "line 21 "),
        ("garbled", |lines| lines[4] = r#"{"n":3,"at":!}"#, "", "line 5 "),
        ("missing-line", |lines| _ = lines.remove(6), "", "line 7 "),
        ("no-trace", |lines| *lines = vec!["{\"hello\":1}"], "", "line 1 "),
    ];
    for (name, damage, rest, line) in cases {
        let path = changed_trace(name, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            damage(&mut lines);
            lines.join("\n") + "\n" + rest
        });
        let output = replay(&path, &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stdout(&output));
        assert!(stderr(&output).contains(line), "{name}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{name}");
        // `--partial` replays the trace of a killed process.
        if name.starts_with("cut-") {
            let output = replay(&path, &["--json", "--partial"]);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            assert_eq!(json_of(&output)["complete"], false, "{name}");
        }
    }
}

/// A simulation's findings decide the exit code; the simulator's own tests judge the findings.
fn expected_code(found_something: bool) -> Option<i32> {
    Some(i32::from(found_something))
}

#[test]
fn one_world_has_a_log_and_a_verdict() {
    let output = run(&["sim", "--seed", "42"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), expected_code(text.contains("VIOLATION")), "{text}");
    assert!(text.contains("| event") && text.contains("seed 42: "), "{text}");
    let json = json_of(&run(&["sim", "--seed", "42", "--json"]));
    assert_eq!(json["seeds"], 1);
    assert_eq!(json["violations"] == json!([]), output.status.success(), "{json}");
}

#[test]
fn many_worlds_have_a_digest_that_does_not_depend_on_jobs() {
    let many = |jobs: &str| {
        let output = run(&["sim", "--seeds", "0..6", "--jobs", jobs, "--json"]);
        let json = json_of(&output);
        let found = json["violations"].as_array().map(|violations| !violations.is_empty());
        assert_eq!(output.status.code(), expected_code(found.expect("a list")), "{json}");
        json
    };
    let (one, two) = (many("1"), many("2"));
    assert_eq!(one["seeds"], 6);
    assert!(one["inputs"].as_u64() > Some(0));
    for field in ["excused", "simulated_seconds", "wall_seconds"] {
        assert!(one[field].is_number(), "{field} in {one}");
    }
    assert!(one["marks"].is_object());
    assert_eq!(one["digest"].as_str().map(str::len), Some(16));
    assert_eq!(one["digest"], two["digest"]);
    assert_eq!(one["violations"], two["violations"]);
}

#[test]
fn a_simulated_life_is_a_trace_too() {
    let path = directory("sim-trace").join("out.jsonl");
    let output = run(&["sim", "--seed", "3", "--trace", path.to_str().expect("text")]);
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    assert_eq!(
        json_of(&exits(0, replay(&path.with_file_name("out.0.jsonl"), &["--json"])))["complete"],
        true
    );
}

#[test]
fn a_trace_is_shown_and_does_not_differ_from_itself() {
    let (_, traces) = demo();
    let (one, other) = (traces.join("worker-1.jsonl"), traces.join("worker-2.jsonl"));
    let (one, other) = (one.to_str().expect("text"), other.to_str().expect("text"));
    let page = directory("show").join("page.html");
    exits(0, run(&["show", one, "--html", page.to_str().expect("text")]));
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.starts_with("<!doctype html>") && text.contains("worker-1"));
    assert_eq!(run(&["diff", one, one]).status.code(), Some(0));
    assert_eq!(json_of(&exits(1, run(&["diff", one, other, "--json"])))["same"], 0);
}

#[test]
#[cfg(unix)]
fn local_answers_and_ends_on_interrupt() {
    let mut local = Local::start();
    let streams = local.ask("Kinesis_20131202.ListStreams", &json!({}));
    assert_eq!(streams["StreamNames"], json!([]));
    let tables = local.ask("DynamoDB_20120810.ListTables", &json!({}));
    assert_eq!(tables["TableNames"], json!([]));
    assert_eq!(interrupt(&mut local.process), Some(0));
    let mut said = String::new();
    let stderr = local.process.0.stderr.as_mut().expect("its stderr");
    stderr.read_to_string(&mut said).expect("text");
    assert!(!said.contains("warning"), "only this machine reaches it: {said}");
}

/// A table with the smallest provisioned capacity.
fn table(name: &str) -> Value {
    json!({
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    })
}

#[test]
fn a_script_that_never_waits_works_with_local() {
    let local = Local::start();
    let call = |target: &str, body: Value| local.ask(target, &body);
    for n in 0..20 {
        let stream = format!("s{n}");
        local.create_stream(&stream, 1);
        local.put_record(&stream, "k", "MA==");
        call("Kinesis_20131202.DescribeStream", json!({ "StreamName": stream }));
        call("Kinesis_20131202.DescribeLimits", json!({}));
    }
    let shard = json!({ "StreamName": "s0", "ShardId": "0", "ShardIteratorType": "TRIM_HORIZON" });
    for _ in 0..20 {
        let iterator = call("Kinesis_20131202.GetShardIterator", shard.clone());
        let read = json!({ "ShardIterator": iterator["ShardIterator"] });
        let read = call("Kinesis_20131202.GetRecords", read);
        assert_eq!(read["Records"].as_array().map(Vec::len), Some(1));
    }
    call("DynamoDB_20120810.CreateTable", table("tab"));
    // More than a second's capacity, and than what is saved up for bursts.
    let big = json!({ "TableName": "tab", "Item": { "k": { "S": "a" }, "v": { "S": "x".repeat(300_000) } } });
    for _ in 0..5 {
        call("DynamoDB_20120810.PutItem", big.clone());
    }
}

#[test]
fn strict_local_is_as_slow_and_as_narrow_as_aws() {
    // Creates a stream and a table, and tells their states right afterwards, or the refusal.
    let states = |local: &Local, n: u32| {
        let stream = json!({ "StreamName": format!("s{n}"), "ShardCount": 1 });
        let (_, answer) = local.call("Kinesis_20131202.CreateStream", &stream);
        let (_, shown) =
            local.call("Kinesis_20131202.DescribeStreamSummary", &json!({ "StreamName": format!("s{n}") }));
        let name = format!("tab{n}");
        local.call("DynamoDB_20120810.CreateTable", &table(&name));
        let (_, described) = local.call("DynamoDB_20120810.DescribeTable", &json!({ "TableName": name }));
        let stream = &shown["StreamDescriptionSummary"]["StreamStatus"];
        let found = [&answer["__type"], stream, &described["Table"]["TableStatus"]];
        found.map(|value| value.as_str().unwrap_or_default().to_owned())
    };
    // On a busy machine, some of what passes is not seen.
    let seen = |options: &[&str]| {
        let local = Local::start_with(options);
        let all: Vec<_> = (0..50).map(|n| states(&local, n)).collect();
        let has = |at: usize, what: &str| all.iter().any(|states| states[at] == what);
        (has(0, "LimitExceededException"), has(1, "CREATING"), has(2, "CREATING"))
    };
    assert_eq!(seen(&[]), (false, false, false));
    assert_eq!(seen(&["--strict", "--no-limits"]), (false, true, true));
    assert_eq!(seen(&["--strict", "--instant"]), (true, false, false));
    assert_eq!(seen(&["--strict"]), (true, true, true));
}

#[test]
fn local_has_the_account_and_region_it_is_told() {
    let local = Local::start_with(&["--account", "123456789012", "--region", "eu-north-1"]);
    local.create_stream("s", 1);
    let (_, shown) = local.call("Kinesis_20131202.DescribeStreamSummary", &json!({ "StreamName": "s" }));
    assert_eq!(
        shown["StreamDescriptionSummary"]["StreamARN"],
        "arn:aws:kinesis:eu-north-1:123456789012:stream/s"
    );
    let (_, made) = local.call("DynamoDB_20120810.CreateTable", &table("tab"));
    assert_eq!(made["TableDescription"]["TableArn"], "arn:aws:dynamodb:eu-north-1:123456789012:table/tab");
    for (option, bad) in [("--account", "12"), ("--region", "Europe")] {
        let output = run(&["local", option, bad]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(stderr(&output).contains("expected the n"), "{}", stderr(&output));
    }
}

#[test]
fn a_stream_that_does_not_exist_is_told_in_a_sentence() {
    let local = Local::start();
    let url = local.url();
    let output = run(&["consume", "--stream", "nothing", "--application", "billing", "--endpoint-url", &url]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("expected a stream \"nothing\""), "{text}");
}

#[test]
fn missing_credentials_and_regions_are_told_at_once() {
    let consume = ["consume", "--stream", "orders", "--application", "billing"];
    let without = |command: &mut Command| {
        let output = command
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_CONFIG_FILE", "/nowhere/config")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let text = without(&mut leasehold(&consume));
    assert!(text.contains("--region"), "{text}");
    let text = without(leasehold(&consume).env("AWS_ENDPOINT_URL", "localhost:4567"));
    assert!(
        text.contains("expected AWS_ENDPOINT_URL to be a URL") && text.contains("http://localhost:4567"),
        "{text}"
    );
    let text = without(leasehold(&consume).args(["--region", "eu-west-1"]));
    assert!(text.contains("AWS_ACCESS_KEY_ID"), "{text}");
}

#[test]
fn a_machine_is_measured_part_by_part() {
    let figures = json_of(&run(&["bench", "--reader", "--json"]));
    let names: Vec<&String> = figures.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["reader_ns_per_read", "reader_reads_per_second"]);
    assert!(figures["reader_reads_per_second"].as_f64().expect("a number") > 0.0);
}
