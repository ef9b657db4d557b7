//! A worker that is far behind, with the default options, 1,024 descriptors and a narrow line. Reads and renewals share
//! the line. The test prints the worker's progress, memory, descriptors and renewals.

use super::{STREAM, World, directory};
use leasehold_local_aws::kinesis::NewRecord;
use leasehold_tests::consume::Target;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::member::Member;
use leasehold_tests::proxy::Proxy;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The line, in bytes a second.
const LINE: u32 = 20_000_000;
/// The payload of each record, in bytes.
const PAYLOAD: usize = 10_000;
/// The default of `memory_budget`, with a tenth for all other memory of the process, in KiB.
const MEMORY: u64 = 256 * 1024 * 11 / 10;
/// `ulimit -n`, and the number of descriptors that the guide states.
const ALLOWED: u32 = 1024;
const DESCRIPTORS: usize = 300;
/// The worker needs a minute at most. A worker without progress fails the test after this time.
const ENDS: Duration = Duration::from_secs(300);

/// What the worker is behind by.
struct Backlog {
    shards: u32,
    /// Of each shard.
    records: u32,
}

impl Backlog {
    fn all(&self) -> u64 {
        u64::from(self.shards) * u64::from(self.records)
    }

    /// Puts the records without the line.
    fn put(&self, local: &Local) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
        let now_ms = i64::try_from(since.as_millis()).expect("a time before the year 292 million");
        let data = "x".repeat(PAYLOAD);
        let width = u128::MAX / u128::from(self.shards);
        let mut aws = local.aws.lock();
        for shard in 0..self.shards {
            for _ in 0..self.records {
                let record = NewRecord {
                    data: data.clone().into(),
                    partition_key: Arc::from("key"),
                    explicit_hash_key: Some(u128::from(shard) * width + width / 2),
                };
                aws.kinesis.put_record(now_ms, STREAM, record, None).expect("a record");
            }
        }
    }
}

/// A look at the worker.
struct Look {
    at: Duration,
    records: u64,
    /// In KiB.
    memory: u64,
    descriptors: usize,
    writes: u64,
}

/// A running worker, and the counts of its requests and lines.
struct WatchedWorker {
    began: Instant,
    worker: Member,
    output: File,
    records: u64,
    writes: Arc<AtomicU64>,
}

impl WatchedWorker {
    fn look(&mut self) -> Look {
        let mut new = Vec::new();
        self.output.read_to_end(&mut new).expect("the worker's output");
        self.records += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        let process = format!("/proc/{}", self.worker.process.id());
        Look {
            at: self.began.elapsed(),
            records: self.records,
            memory: resident(&process),
            descriptors: fs::read_dir(format!("{process}/fd")).expect("descriptors").count(),
            writes: self.writes.load(Ordering::Relaxed),
        }
    }
}

/// The memory of a process now, in KiB.
fn resident(process: &str) -> u64 {
    let status = fs::read_to_string(format!("{process}/status")).expect("a running worker");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}

fn table(looks: &[Look]) -> String {
    let mut text =
        "| after | records read | memory | descriptors | takes and renewals |\n|---|---|---|---|---|"
            .to_owned();
    for Look { at, records, memory, descriptors, writes } in looks {
        let (at, memory) = (at.as_secs(), memory / 1024);
        write!(text, "\n| {at} s | {records} | {memory} MiB | {descriptors} | {writes} |").expect("a line");
    }
    text
}

/// The printed records: each is one shard's, at one place.
fn printed(worker: &Member) -> BTreeSet<(String, String)> {
    let output = BufReader::new(File::open(&worker.output).expect("the worker's output"));
    let place = |line: std::io::Result<String>| {
        let line: serde_json::Value = serde_json::from_str(&line.expect("text")).expect("a JSON line");
        (line["shard"].to_string(), line["sequence"].to_string())
    };
    output.lines().map(place).collect()
}

/// Counts requests that take or renew leases. A renewal saves the checkpoint, too.
fn count_writes(local: &Local) -> Arc<AtomicU64> {
    let writes = Arc::<AtomicU64>::default();
    let count = writes.clone();
    local.refuse(move |operation| {
        count.fetch_add(u64::from(operation.ends_with("UpdateItem")), Ordering::Relaxed);
        None
    });
    writes
}

async fn catches_up(test: &'static str, backlog: Backlog) {
    let local = Local::start(instant()).await;
    let (proxy, shards) = (Proxy::narrow(&local.endpoint, LINE).await.expect("a free port"), backlog.shards);
    let mut world =
        World::at(local.endpoint.clone(), local.endpoint.clone(), directory(test), shards as i32).await;
    backlog.put(&local);
    world.place.kinesis.clone_from(&proxy.endpoint);
    world.place.dynamodb.clone_from(&proxy.endpoint);
    let writes = count_writes(&local);
    let program = env!("CARGO_BIN_EXE_leasehold-under-test");
    let target = Target { descriptors: Some(ALLOWED), ..Target::new(program, world.place.clone()) };
    let (began, worker) = (Instant::now(), target.start("lea"));
    let output = File::open(&worker.output).expect("the worker's output");
    let mut watched = WatchedWorker { began, worker, output, records: 0, writes };
    let mut looks = Vec::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let look = watched.look();
        let (at, all) = (look.at, look.records >= backlog.all());
        looks.push(look);
        if all {
            break;
        }
        assert!(at < ENDS, "{test}: expected all records within {ENDS:?}, found\n{}", table(&looks));
    }
    println!("{test}\n{}", table(&looks));
    let WatchedWorker { mut worker, .. } = watched;
    worker.process.terminate().expect("a signal");
    worker.process.ends_well(Duration::from_secs(60)).await;
    assert_eq!(printed(&worker).len() as u64, backlog.all(), "{test}: each record is read");
    let lines = looks.last().expect("a look").records;
    assert_eq!(lines, backlog.all(), "{test}: no lease is lost, so no record comes again");
    let memory = looks.iter().map(|look| look.memory).max().unwrap_or_default();
    assert!(memory <= MEMORY, "{test}: expected at most {MEMORY} KiB, found {memory}");
    let descriptors = looks.iter().map(|look| look.descriptors).max().unwrap_or_default();
    assert!(descriptors < DESCRIPTORS, "{test}: expected fewer than {DESCRIPTORS}, found {descriptors}");
}

/// 433 MB of text, which takes 21.6 s at least.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs two cores for itself"]
async fn forty_shards_behind_are_read_over_a_narrow_line() {
    catches_up("behind-40", Backlog { shards: 40, records: 800 }).await;
}

/// 406 MB of text, and a thousand leases to renew.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs two cores for itself"]
async fn a_thousand_shards_behind_are_read_over_a_narrow_line() {
    catches_up("behind-1000", Backlog { shards: 1000, records: 30 }).await;
}
