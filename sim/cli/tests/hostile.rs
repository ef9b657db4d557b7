//! Forging names: text of a table, a trace or a command line reaches a terminal only with escapes.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]

mod command;

use command::*;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Begins a line, clears a terminal in two ways, and turns the direction of writing.
const HOSTILE: &str = "a\nERROR forged\u{1b}[2J\u{9b}2J\u{202e}\u{2028}\r";
const SHARD: &str = "shardId-000000000000";

/// An application with a stream of one shard, and rows of an attacker.
struct Hostile {
    local: Local,
}

impl Hostile {
    fn new() -> Self {
        let local = Local::start();
        local.create_stream("orders", 1);
        let described =
            local.ask("Kinesis_20131202.DescribeStreamSummary", &json!({ "StreamName": "orders" }));
        let arn = &described["StreamDescriptionSummary"]["StreamARN"];
        local.ask(
            "Kinesis_20131202.RegisterStreamConsumer",
            &json!({ "StreamARN": arn, "ConsumerName": "billing" }),
        );
        local.ask(
            "DynamoDB_20120810.CreateTable",
            &json!({
                "TableName": "billing",
                "KeySchema": [{ "AttributeName": "leaseKey", "KeyType": "HASH" }],
                "AttributeDefinitions": [{ "AttributeName": "leaseKey", "AttributeType": "S" }],
                "BillingMode": "PAY_PER_REQUEST",
            }),
        );
        let lease = |key: &str, owner: &str, checkpoint: &str| {
            json!({
                "leaseKey": { "S": key }, "leaseOwner": { "S": owner }, "leaseCounter": { "N": "5" },
                "checkpoint": { "S": checkpoint }, "checkpointSubSequenceNumber": { "N": "0" },
                "ownerSwitchesSinceCheckpoint": { "N": "0" },
            })
        };
        let mut unreadable = lease(&format!("u{HOSTILE}"), HOSTILE, HOSTILE);
        unreadable["leaseCounter"] = json!({ "S": HOSTILE });
        let mut handed = lease(&format!("h{HOSTILE}"), HOSTILE, "TRIM_HORIZON");
        handed["checkpointOwner"] = json!({ "S": format!("x{HOSTILE}") });
        handed["parentShardId"] = json!({ "SS": [HOSTILE] });
        let foreign = json!({ "leaseKey": { "S": format!("f{HOSTILE}") }, "entityType": { "S": HOSTILE } });
        let several = lease(&format!("1:{HOSTILE}:1700000000:{SHARD}"), HOSTILE, "TRIM_HORIZON");
        let taken = lease(SHARD, HOSTILE, "TRIM_HORIZON");
        for item in [lease(HOSTILE, HOSTILE, "LATEST"), unreadable, handed, foreign, several, taken] {
            local.ask("DynamoDB_20120810.PutItem", &json!({ "TableName": "billing", "Item": item }));
        }
        Self { local }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = leasehold(args);
        command.args(["--endpoint-url", &self.local.url()]);
        command.output().expect("the command starts")
    }
}

/// Asserts that a text has no character obeyed by a terminal, and no line written by the attacker.
fn assert_plain(what: &str, text: &str) {
    let hidden = |c: char| c != '\n' && leasehold_engine::shown::is_hidden(c);
    assert_eq!(text.chars().find(|c| hidden(*c)), None, "{what}: {text:?}");
    let forged = text.lines().find(|line| line.starts_with("ERROR"));
    assert_eq!(forged, None, "{what}: {text}");
}

fn assert_plain_output(what: &str, output: &Output) {
    let (out, err) = (stdout(output), stderr(output));
    assert_plain(what, &out);
    assert_plain(what, &err);
}

#[test]
fn admin_shows_what_a_table_says_as_escapes() {
    let hostile = Hostile::new();
    let table = ["--application", "billing", "--watch", "0"];
    for command in [
        &["admin", "status"][..],
        &["admin", "status", "--json"],
        &["admin", "doctor", "--stream", "orders"],
        &["admin", "doctor", "--stream", "orders", "--repair"],
        &["admin", "doctor", "--stream", "orders", "--json"],
        &["admin", "release", "--shard", HOSTILE],
        &["admin", "release", "--shard", SHARD, "--shard", HOSTILE],
        &["admin", "rewind", "--stream", "orders", "--all", "--to", "trim-horizon"],
        &["admin", "deregister", "--stream", "orders"],
        &["admin", "deregister", "--stream", "orders", "--json"],
    ] {
        let args: Vec<&str> = command.iter().chain(&table).copied().collect();
        let output = hostile.run(&args);
        assert_plain_output(&command.join(" "), &output);
        let told = stdout(&output) + &stderr(&output);
        assert!(told.contains("ERROR forged"), "{command:?}: {told}");
    }
    let mut migrate = words("migrate --from kcl --from-table billing --to kcl --to-table other --watch 0");
    let output = migrate.args(["--endpoint-url", &hostile.local.url()]).output().expect("the command starts");
    assert_plain_output("migrate", &output);
    assert!(stdout(&output).contains("ERROR forged"), "{}", stdout(&output));
}

#[test]
fn plan_shows_what_its_files_say_as_escapes() {
    let hostile = Hostile::new();
    let folder = directory("hostile-plan");
    let (shards, leases) = (folder.join("shards.json"), folder.join("leases.json"));
    let listed = hostile.local.ask("Kinesis_20131202.ListShards", &json!({ "StreamName": "orders" }));
    let mut named = listed.clone();
    named["Shards"][0]["ShardId"] = json!(HOSTILE);
    let rows = hostile.local.ask("DynamoDB_20120810.Scan", &json!({ "TableName": "billing" }));
    std::fs::write(&leases, rows.to_string()).expect("a file");
    for list in [listed, named] {
        std::fs::write(&shards, list.to_string()).expect("a file");
        let (shards, leases) = (shards.to_str().expect("text"), leases.to_str().expect("text"));
        for more in [&[][..], &["--json"]] {
            let mut args = vec!["plan", "--shards", shards, "--leases", leases];
            args.extend(more);
            let output = run(&args);
            assert_plain_output("plan", &output);
            assert!(stdout(&output).contains("ERROR forged"), "{}", stdout(&output));
        }
    }
}

/// Runs a worker until it has a record, and writes the worker's trace.
fn consume(hostile: &Hostile, trace: &str) -> Output {
    let mut command = words("-vv consume --stream orders --application billing --text --max-records 1");
    command.args(["--endpoint-url", &hostile.local.url(), "--trace", trace]);
    command.args(["--lease-duration", "2 s", "--renew-interval", "400 ms"]);
    command.args(["--table-timeout", "800 ms", "--scan-interval", "500 ms"]);
    command.output().expect("the command starts")
}

/// The worker's own log, and every view of its trace.
#[test]
fn consume_and_its_trace_show_what_a_table_says_as_escapes() {
    let hostile = Hostile::new();
    hostile.local.put_record("orders", HOSTILE, "YQobWzJKwps=");
    let folder = directory("hostile-consume");
    let trace = folder.join("trace.jsonl");
    let trace = trace.to_str().expect("text");
    let output = exits(0, consume(&hostile, trace));
    let log = stderr(&output);
    assert_plain("the log", &log);
    assert!(log.contains("a\\nERROR forged\\u{1b}[2J\\u{9b}2J\\u{202e}\\u{2028}\\r"), "{log}");
    let line: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&line["partition_key"], &line["data"]), (&json!(HOSTILE), &json!("a\n\u{1b}[2J\u{9b}")));
    assert_plain("a record", &stdout(&output));

    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(trace).expect("a trace").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let html = folder.join("trace.html");
    let html = html.to_str().expect("text");
    for args in [
        &["replay", trace, "--from", "0", "--until", "100000"][..],
        &["replay", trace, "--explain", SHARD],
        &["replay", trace, "--explain", HOSTILE],
        &["replay", trace, "--from", "0", "--until", "100000", "--json"],
        &["replay", trace, "--html", html],
        &["diff", trace, trace],
        &["show", trace, "--html", html],
    ] {
        assert_plain_output(&args.join(" "), &run(args));
    }
    let explained = stdout(&run(&["replay", trace, "--explain", SHARD]));
    assert!(explained.contains("a\\nERROR forged"), "{explained}");
    // In a page, a line break is a space.
    let page = std::fs::read_to_string(html).expect("a page");
    assert_plain("the page", &page.replace('\n', " "));
}

#[test]
fn names_on_a_command_line_are_checked_before_anything_is_asked() {
    let nowhere = ["--endpoint-url", "http://127.0.0.1:1"];
    for (args, told) in [
        (
            &["consume", "--stream", "orders", "--application", "billing", "--worker-id", HOSTILE][..],
            "option `worker_id`: expected a name of 1 to 1,024 bytes without control characters, found \"a\\nERROR",
        ),
        (
            &["consume", "--stream", "orders", "--application", "billing", "--worker-id", ""],
            "option `worker_id`: expected a name of 1 to 1,024 bytes without control characters, found none",
        ),
        (&["consume", "--stream", HOSTILE, "--application", "billing"], "option `stream`: expected "),
        (
            &["admin", "release", "--application", "billing", "--worker", "w\u{1b}[2J"],
            "without control characters, found \"w\\u{1b}[2J\"",
        ),
        (&["admin", "status", "--table", "bill\u{1b}ing"], "option `table`: expected "),
        (
            &["admin", "doctor", "--table", "billing", "--stream", "or\u{9b}ders"],
            "option `stream`: expected ",
        ),
        (
            &[
                "admin",
                "deregister",
                "--table",
                "billing",
                "--stream",
                "orders",
                "--consumer",
                "bill\u{1b}ing",
            ],
            "option `reader.consumer`: expected a name of 1 to 128",
        ),
    ] {
        let output = leasehold(args).args(nowhere).output().expect("the command starts");
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(told), "{args:?}: {error}");
    }
}

#[test]
fn local_serves_beside_idle_hundreds_and_refuses_other_hosts() {
    // As few sockets as macOS gives a process.
    let mut child = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_leasehold");
    child.args(["-c", &format!("ulimit -n 256; exec '{program}' local --port 0 --allow-host leasehold")]);
    let local = Local::of(child);
    let silent: Vec<_> =
        (0..500).map(|_| TcpStream::connect(&local.address).expect("a connection")).collect();
    let began = Instant::now();
    for _ in 0..5 {
        local.ask("Kinesis_20131202.ListStreams", &json!({}));
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    drop(silent);

    let asked = |host: &str| {
        use std::io::{Read as _, Write as _};
        let mut socket = TcpStream::connect(&local.address).expect("a connection");
        write!(socket, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("a request");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).expect("a reply");
        reply
    };
    assert!(asked("leasehold:4567").starts_with("HTTP/1.1 200"));
    let refused = asked("evil.example");
    assert!(refused.starts_with("HTTP/1.1 421"), "{refused}");
    assert!(refused.contains("start it with --allow-host evil.example"), "{refused}");
}

/// A few kilobytes compressed; hundreds of megabytes of one endless line when expanded.
#[test]
fn a_trace_that_is_a_bomb_is_refused_at_the_limit_of_a_line() {
    use std::io::Write as _;
    let folder = directory("bomb");
    let path = folder.join("segment-000001.jsonl.gz");
    let file = std::fs::File::create(&path).expect("a file");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    packed
        .write_all(b"{\"leasehold-trace\":1,\"software\":\"0.1.0\",\"kind\":\"full\"}\n{\"n\":0,\"at\":\"")
        .expect("a header");
    for _ in 0..300 {
        packed.write_all(&[b'0'; 1 << 20]).expect("a megabyte");
    }
    packed.finish().expect("a bomb");
    assert!(path.metadata().expect("a bomb").len() < 1 << 20);
    let path = path.to_str().expect("text");
    for more in [&[][..], &["--partial"]] {
        // Two lines of the limit, and what the process needs besides.
        let mut limited = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_leasehold");
        limited
            .args(["-c", &format!("ulimit -v 800000; exec '{program}' replay '{path}' {}", more.join(" "))]);
        let error = stderr(&exits(2, limited.output().expect("the command starts")));
        assert!(error.contains("line 2 of the trace: expected a line of at most 67108864 bytes"), "{error}");
    }
}
