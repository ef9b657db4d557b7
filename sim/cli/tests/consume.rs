//! `leasehold consume` from outside: its output, and its behaviour at a stdout without room.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "processes are waited for by the clock")]

mod command;

use command::*;
use rustix::io::ioctl_fionread;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn consume_prints_a_line_per_record_and_goes_on_where_it_ended() {
    let local = Local::start();
    local.create_stream("orders", 1);
    // The digits 0 to 5 in base64: with `--text`, the output is the digit itself.
    let digits = ["MA==", "MQ==", "Mg==", "Mw==", "NA==", "NQ=="];
    let put = |digits: &[&str]| digits.iter().for_each(|digit| local.put_record("orders", "k", digit));
    put(&digits[..5]);
    let url = local.url();
    let base = ["consume", "--stream", "orders", "--application", "billing", "--endpoint-url", &url];
    let with = |more: &[&str]| {
        let args: Vec<&str> = base.iter().copied().chain(more.iter().copied()).collect();
        leasehold(&args)
    };
    let lines = |output: &Output| -> Vec<Value> {
        let text = stdout(output);
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    };

    // Three of the five, in the middle of a batch.
    let first = lines(&exits(0, with(&["--max-records", "3"]).output().expect("the command starts")));
    let data: Vec<&Value> = first.iter().map(|line| &line["data"]).collect();
    assert_eq!(data, ["MA==", "MQ==", "Mg=="]);
    assert_eq!(first[0]["shard"], "shardId-000000000000");
    assert!(first[0]["token"].as_u64() > Some(0), "{:?}", first[0]);
    assert_eq!(first[0]["token"], first[2]["token"]);
    assert_eq!(first[0]["sub_sequence"], 0);
    assert_eq!(first[0]["partition_key"], "k");
    assert!(first[0]["sequence"].as_str() < first[1]["sequence"].as_str());
    assert!(first[0]["arrival"].as_str().is_some_and(|time| time.ends_with('Z')), "{}", first[0]);

    // The next consumer goes on behind these records, and ends on Ctrl-C.
    let mut child = with(&["--text"]).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut out = BufReader::new(child.stdout.take().expect("its stdout")).lines();
    let mut child = Running(child);
    let mut next = || -> Value {
        let line = out.next().expect("a line").expect("readable");
        serde_json::from_str(&line).expect("a JSON line")
    };
    assert_eq!(next()["data"], "3");
    assert_eq!(next()["data"], "4");
    put(&digits[5..]);
    assert_eq!(next()["data"], "5");
    assert_eq!(interrupt(&mut child), Some(0));
}

/// Waits until `is_so` returns true.
fn until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "not so after {within:?}: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

fn text<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_else(|| panic!("no {field} in {line}"))
}

/// A stream of four shards, and consumers of the stream. The first read of a shard brings all its records: more bytes
/// than a pipe holds.
struct Orders {
    local: Local,
    logs: PathBuf,
}

impl Orders {
    const SHARDS: usize = 4;
    const RECORDS: usize = 10 * Self::SHARDS;
    /// The pipe holds four lines: fewer than a shard has records.
    #[cfg(target_os = "linux")]
    const PIPE: usize = 16 << 10;

    fn new(name: &str) -> Self {
        let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&logs).expect("a directory for the test");
        let local = Local::start();
        local.create_stream("orders", Self::SHARDS);
        // 2,700 bytes: a line has less than what a pipe takes at once.
        let data = "QUFB".repeat(900);
        let quarter = u128::MAX / Self::SHARDS as u128;
        let records: Vec<Value> = (0..Self::RECORDS)
            .map(|n| {
                let hash = (n % Self::SHARDS) as u128 * quarter + quarter / 2;
                json!({ "PartitionKey": format!("k{n}"), "ExplicitHashKey": hash.to_string(), "Data": data })
            })
            .collect();
        let records = json!({ "StreamName": "orders", "Records": records });
        assert_eq!(local.ask("Kinesis_20131202.PutRecords", &records)["FailedRecordCount"], 0);
        Self { local, logs }
    }

    fn command(&self, application: &str) -> Command {
        let mut command = leasehold(&["consume", "--stream", "orders", "--application", application]);
        command.args(["--endpoint-url", &self.local.url()]);
        command
    }

    /// A consumer with an unread stdout. The process has few threads: blocked threads would leave none free.
    fn consumer(&self, application: &str) -> Consumer {
        let log = self.logs.join(application);
        let mut child = self
            .command(application)
            .env("RUST_LOG", "warn,leasehold=info")
            .env("TOKIO_WORKER_THREADS", "2")
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("the command starts");
        let out = child.stdout.take().expect("its stdout");
        #[cfg(target_os = "linux")]
        rustix::pipe::fcntl_setpipe_size(&out, Self::PIPE).expect("a smaller pipe");
        Consumer { process: Running(child), out, log }
    }

    /// The rows of the lease table by shard.
    fn rows(&self, application: &str) -> BTreeMap<String, Value> {
        let (_, body) = self.local.call("DynamoDB_20120810.Scan", &json!({ "TableName": application }));
        let items = body["Items"].as_array().cloned().unwrap_or_default();
        items
            .into_iter()
            .map(|item| (item["leaseKey"]["S"].as_str().expect("a key").to_owned(), item))
            .collect()
    }

    fn counters(&self, application: &str) -> Vec<u64> {
        let number = |row: &Value| row["leaseCounter"]["N"].as_str()?.parse().ok();
        self.rows(application)
            .values()
            .map(|row| number(row).unwrap_or_else(|| panic!("no counter in {row}")))
            .collect()
    }

    fn update(&self, application: &str, shard: &str, expression: &str, values: &Value) {
        let body = json!({
            "TableName": application,
            "Key": { "leaseKey": { "S": shard } },
            "UpdateExpression": expression,
            "ExpressionAttributeValues": values,
        });
        self.local.ask("DynamoDB_20120810.UpdateItem", &body);
    }
}

struct Consumer {
    process: Running,
    out: ChildStdout,
    log: PathBuf,
}

impl Consumer {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }

    fn has_said(&self, what: &str) -> bool {
        self.log().contains(what)
    }

    /// Waits until all shards are processed and stdout takes no more, and tells how much is in it.
    fn until_stdout_is_full(&self) -> usize {
        until("all shards are processed", Duration::from_secs(60), || {
            self.log().matches(" started processing shardId-").count() == 4
        });
        let mut seen = (0, Instant::now());
        until("stdout is full", Duration::from_secs(60), || {
            let holds = ioctl_fionread(&self.out).expect("a pipe");
            if holds != seen.0 {
                seen = (holds, Instant::now());
            }
            holds > 0 && seen.1.elapsed() > Duration::from_secs(2)
        });
        seen.0 as usize
    }
}

#[test]
fn an_unread_stdout_costs_no_lease_and_does_not_outlast_a_stop() {
    let orders = Orders::new("unread");
    let mut consumer = orders.consumer("unread");
    consumer.until_stdout_is_full();
    let (before, owners) = (orders.counters("unread"), |row: &Value| row["leaseOwner"].clone());
    assert_eq!(before.len(), 4);
    let owned: Vec<Value> = orders.rows("unread").values().map(owners).collect();
    // More renewals than fit into the life of a lease.
    until("all leases are renewed", Duration::from_secs(60), || {
        let now = orders.counters("unread");
        before.iter().zip(&now).all(|(before, now)| *now >= before + 4)
    });
    let still: Vec<Value> = orders.rows("unread").values().map(owners).collect();
    assert_eq!(owned, still);

    signal(&consumer.process, "TERM");
    let code = ended(&mut consumer.process, Duration::from_secs(60));
    let log = consumer.log();
    assert_eq!(code, Some(1), "{log}");
    let said = "error: stdout took no more lines until the worker had to end: ";
    let (_, sentence) = log.split_once(said).unwrap_or_else(|| panic!("{log}"));
    let left: usize = sentence.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(sentence.contains(" records of 4 shards were not written and so not acknowledged"), "{sentence}");

    // Exactly the written records were acknowledged.
    let mut printed = String::new();
    consumer.out.read_to_string(&mut printed).expect("text");
    let lines: Vec<Value> = printed.lines().map(line).collect();
    assert_eq!(lines.len() + left, Orders::RECORDS, "{sentence}");
    let mut last = BTreeMap::new();
    for line in &lines {
        last.insert(text(line, "shard").to_owned(), text(line, "sequence").to_owned());
    }
    for (shard, row) in orders.rows("unread") {
        let expected = last.get(&shard).map_or("TRIM_HORIZON", String::as_str);
        assert_eq!(row["checkpoint"]["S"], expected, "{shard}: {log}");
    }
}

#[test]
fn a_second_signal_ends_a_consumer_though_stdout_takes_nothing() {
    let orders = Orders::new("twice");
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let mut consumer = orders.consumer(name);
        consumer.until_stdout_is_full();
        signal(&consumer.process, name);
        until("it shuts down", Duration::from_secs(10), || consumer.has_said("shutting down with"));
        signal(&consumer.process, name);
        let ended = ended(&mut consumer.process, Duration::from_secs(5));
        assert_eq!(ended, Some(code), "{}", consumer.log());
    }
}

#[test]
fn no_line_is_written_under_a_token_lost_while_stdout_stood() {
    let orders = Orders::new("lost");
    let mut consumer = orders.consumer("lost");
    let full = consumer.until_stdout_is_full();
    let shards: Vec<String> = orders.rows("lost").into_keys().collect();
    for shard in &shards {
        let thief = json!({ ":thief": { "S": "thief" }, ":one": { "N": "1" } });
        orders.update("lost", shard, "SET leaseOwner = :thief ADD leaseCounter :one", &thief);
    }
    until("all leases are known to be lost", Duration::from_secs(30), || {
        let log = consumer.log();
        let of = |shard| move |line: &&str| line.contains("lost ") && line.contains(shard);
        let mut shards = shards.iter();
        shards.all(|shard| log.lines().any(|line| of(shard.as_str())(&line)))
    });
    // The thief releases its leases, so the consumer prints the rest in the end.
    for shard in &shards {
        let one = json!({ ":one": { "N": "1" } });
        orders.update("lost", shard, "REMOVE leaseOwner ADD leaseCounter :one", &one);
    }

    // The bytes in the pipe were written in time.
    let mut before = vec![0; full];
    consumer.out.read_exact(&mut before).expect("what it holds");
    assert_eq!(before.last(), Some(&b'\n'));
    let before = String::from_utf8(before).expect("text");
    let mut seen = BTreeSet::new();
    let mut lost = BTreeMap::new();
    for line in before.lines().map(line) {
        seen.insert(text(&line, "sequence").to_owned());
        lost.insert(text(&line, "shard").to_owned(), line["token"].as_u64());
    }
    let mut out = BufReader::new(consumer.out).lines();
    while seen.len() < Orders::RECORDS {
        let line = line(&out.next().expect("a further line").expect("readable"));
        seen.insert(text(&line, "sequence").to_owned());
        let old = lost.get(text(&line, "shard")).copied().flatten();
        assert!(line["token"].as_u64() > old, "{line} after {old:?} was lost");
    }
    assert_eq!(interrupt(&mut consumer.process), Some(0));
}

#[test]
fn a_reader_that_has_gone_has_seen_enough() {
    let orders = Orders::new("head");
    let mut consumer = orders.consumer("head");
    let mut first = String::new();
    BufReader::new(consumer.out).read_line(&mut first).expect("a line");
    assert_eq!(line(&first)["token"].as_u64().map(|token| token > 0), Some(true));
    let code = ended(&mut consumer.process, Duration::from_secs(60));
    assert_eq!(code, Some(0), "{}", std::fs::read_to_string(&consumer.log).expect("a log"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_stdout_that_cannot_be_written_is_told_with_the_reason() {
    let orders = Orders::new("device");
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let output = orders.command("device").stdout(full).output().expect("the command starts");
    let log = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(
        log.contains("error: stdout cannot be written: No space left on device (os error 28); what was not written was not \
                      acknowledged"),
        "{log}"
    );
    for (shard, row) in orders.rows("device") {
        assert_eq!(row["checkpoint"]["S"], "TRIM_HORIZON", "{shard}");
    }
}

#[test]
fn an_initial_position_that_moves_no_lease_is_told() {
    let orders = Orders::new("from");
    let consume = |from: &str| {
        let output = orders
            .command("billing")
            .args(["--max-records", "1", "--from", from])
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let told = |log: &str| -> Vec<String> {
        let lines = log.lines().filter(|line| line.contains("the initial position"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(told(&consume("2020-01-01T00:00:00Z")), [] as [String; 0], "it fills the table");
    let log = consume("2020-01-01T00:00:00Z");
    let [said] = &told(&log)[..] else { panic!("{log}") };
    assert!(
        said.contains(" WARN ")
            && said.contains(
                "found 1 lease in the lease table of \"billing\" and goes on from its checkpoint: the initial position \
                 2020-01-01T00:00:00Z applies only to shards without a lease; to begin anew from there, stop the fleet"
            ),
        "{said}"
    );
    assert_eq!(told(&consume("trim-horizon")), [] as [String; 0]);
}
