//! Every example runs against the AWS in memory, as a process of its own, and ends well after SIGTERM.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "processes are waited for by the clock of the machine")]

use leasehold_local_aws::dynamo::DynamoConfig;
use leasehold_local_aws::http::{LocalOptions, Loopback};
use leasehold_local_aws::kinesis::KinesisConfig;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many records the producer puts; two of them are no JSON.
const RECORDS: usize = 100;
const SOON: Duration = Duration::from_secs(60);

/// An AWS in memory with the records of the producer, and a folder for what an example prints and writes.
struct Scene {
    aws: Loopback,
    folder: PathBuf,
    /// How many programs were started.
    runs: AtomicUsize,
}

impl Scene {
    async fn new(name: &str) -> Self {
        let options = LocalOptions {
            kinesis: KinesisConfig::instant(),
            dynamo: DynamoConfig { create_ms: 0, ..DynamoConfig::default() },
            ..LocalOptions::default()
        };
        let folder = std::env::temp_dir().join(format!("leasehold-example-{name}-{}", std::process::id()));
        // What an earlier process of this number left.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let aws = Loopback::start(options).await.expect("a free port");
        let runs = AtomicUsize::new(0);
        let scene = Self { aws, folder, runs };
        scene.produce(RECORDS);
        scene
    }

    /// Puts so many records, and waits for that.
    fn produce(&self, records: usize) {
        let mut producer = self.start("producer", &[&records.to_string()]);
        assert!(producer.child.wait().expect("an end").success(), "{}", producer.told());
    }

    /// Starts an example: with the environment that the README beside the examples names, and in the folder.
    fn start(&self, name: &str, args: &[&str]) -> Example {
        let deps = std::env::current_exe().expect("this test");
        let built = deps.ancestors().nth(2).expect("the folder of the build");
        let program = built.join("examples").join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
        let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        assert!(
            time(&program) >= time(&source),
            "expected {program:?} to be built from {source:?} as it is now, found an older one or none; `cargo test --test` builds no \
             example: run `cargo build -p leasehold --examples` before it"
        );
        let runs = self.runs.fetch_add(1, Ordering::Relaxed);
        let printed = self.folder.join(format!("{name}-{runs}.out"));
        let file = File::create(&printed).expect("a file");
        let child = Command::new(program)
            .args(args)
            .current_dir(&self.folder)
            .env("AWS_ENDPOINT_URL", self.aws.endpoint())
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .stderr(file.try_clone().expect("a file"))
            .stdout(file)
            .spawn()
            .expect("it starts");
        Example { child, printed }
    }
}

impl Scene {
    /// Puts the lease of a shard back to its oldest record.
    fn read_again(&self, table: &str, shard: &str) {
        let body = format!(
            r#"{{"TableName": "{table}", "Key": {{"leaseKey": {{"S": "{shard}"}}}},
                "UpdateExpression": "SET checkpoint = :oldest",
                "ExpressionAttributeValues": {{":oldest": {{"S": "TRIM_HORIZON"}}}}}}"#
        );
        let address = self.aws.endpoint().trim_start_matches("http://").to_owned();
        let mut socket = TcpStream::connect(&address).expect("the AWS in memory");
        write!(
            socket,
            "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-amz-target: DynamoDB_20120810.UpdateItem\r\n\
             content-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a request");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// A running example. It is killed when this is dropped.
struct Example {
    child: Child,
    printed: PathBuf,
}

impl Example {
    fn told(&self) -> String {
        fs::read_to_string(&self.printed).expect("what it prints")
    }

    /// The lines in the example's output that contain this text.
    fn lines(&self, with: &str) -> Vec<String> {
        let told = self.told();
        told.lines().filter(|line| line.contains(with)).map(str::to_owned).collect()
    }

    /// Waits for what the example is to do.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "expected {what}, but: {ended:?}\n{}", self.told());
            assert!(began.elapsed() < SOON, "expected {what} in time:\n{}", self.told());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to end, as Kubernetes does.
    fn signal(&self) {
        let mut kill = Command::new("kill");
        let sent = kill.arg("-TERM").arg(self.child.id().to_string()).status();
        assert!(sent.expect("the program `kill`").success());
    }

    /// Ends it. Gives what it printed.
    fn terminate(self) -> String {
        self.signal();
        self.ended()
    }

    /// Waits until it has ended well. Gives what it printed.
    fn ended(mut self) -> String {
        let began = Instant::now();
        while began.elapsed() < SOON {
            if let Some(status) = self.child.try_wait().expect("a child") {
                assert!(status.success(), "{status}:\n{}", self.told());
                return self.told();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("expected it to end after SIGTERM:\n{}", self.told());
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The lines of JSON of a file.
fn json(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn minimal() {
    let scene = Scene::new("minimal").await;
    let mut example = scene.start("minimal", &[]);
    example.until("all records", |it| it.lines(" bytes").len() >= RECORDS);
    example.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn state_per_shard() {
    let scene = Scene::new("state").await;
    let mut example = scene.start("state_per_shard", &[]);
    let counted = |text: &str| -> usize {
        let counts = text.lines().filter(|line| line.starts_with("shardId-"));
        let counts = counts.filter_map(|line| line.split(' ').nth(1));
        counts.map(|count| count.parse::<usize>().expect("a count")).sum()
    };
    example.until("all records", |it| counted(&it.told()) >= RECORDS);
    let told = example.terminate();
    assert_eq!(counted(&told), RECORDS, "{told}");
}

/// The shards and positions of all records in finished files.
fn in_files(folder: &Path) -> BTreeSet<String> {
    let mut records = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a file").path();
        if path.to_string_lossy().ends_with(".jsonl") {
            let lines = json(&path).into_iter();
            records.extend(lines.map(|line| format!("{} {}", line["shard"], line["position"])));
        }
    }
    records
}

/// The number of files without the ending of finished files.
fn unfinished(folder: &Path, ending: &str) -> usize {
    let files = fs::read_dir(folder).expect("the folder").flatten();
    files.filter(|file| !file.path().to_string_lossy().ends_with(ending)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_files() {
    let scene = Scene::new("files").await;
    let mut example = scene.start("batch_files", &["files"]);
    let folder = scene.folder.join("files");
    example.until("all records in files", |_| in_files(&folder).len() >= RECORDS);
    let told = example.terminate();
    assert_eq!(in_files(&folder).len(), RECORDS, "{told}");
    assert_eq!(unfinished(&folder, ".jsonl"), 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letter() {
    let scene = Scene::new("letters").await;
    let mut example = scene.start("dead_letter", &[]);
    let letters = scene.folder.join("dead-letters.jsonl");
    example.until("all other records", |it| it.lines(" owes ").len() >= RECORDS - 2);
    example.until("two letters", |_| json(&letters).len() == 2);
    let told = example.terminate();
    for letter in json(&letters) {
        // "no JSON" in Base64.
        assert_eq!((&letter["data"], &letter["attempts"]), (&"bm8gSlNPTg==".into(), &2.into()));
    }
    // Acknowledged records from before the error did not come again.
    let owed = told.lines().filter(|line| line.contains(" owes "));
    assert_eq!(owed.count(), RECORDS - 2, "{told}");
}

/// What the example answers: status line, headers and text.
fn get(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).expect("the example listens");
    write!(socket, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_and_health() {
    let scene = Scene::new("health").await;
    let mut example = scene.start("shutdown_and_health", &["127.0.0.1:0"]);
    example.until("records of both shards", |it| it.lines(" records of shardId-").len() >= 2);
    let line = example.lines("http://127.0.0.1:").remove(0);
    let address = line.trim_start_matches("http://");
    let health = get(address, "/health");
    assert!(health.starts_with("HTTP/1.1 200 ") && health.ends_with("\r\n\r\nhealthy\n"), "{health}");
    let status = get(address, "/status");
    let (_, text) = status.split_once("\r\n\r\n").expect("a text");
    let status: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&status["phase"], status["leases"].as_array().map(Vec::len)), (&"running".into(), Some(2)));
    assert!(get(address, "/").starts_with("HTTP/1.1 404 "));
    let told = example.terminate();
    assert!(told.contains("the worker has stopped; 2 leases were released"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn axum_service() {
    let scene = Scene::new("service").await;
    let mut example = scene.start("axum_service", &["127.0.0.1:0", "3"]);
    example.until("records of both shards", |it| it.lines(" records of shardId-").len() >= 2);
    let line = example.lines("http://127.0.0.1:").remove(0);
    let address = line.trim_start_matches("http://");
    let health = get(address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 ") && health.ends_with("\r\n\r\nhealthy\n"), "{health}");
    let status = get(address, "/status");
    assert!(status.contains("content-type: application/json"), "{status}");
    let (_, text) = status.split_once("\r\n\r\n").expect("a text");
    let status: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&status["phase"], status["leases"].as_array().map(Vec::len)), (&"running".into(), Some(2)));
    example.until("metrics of all records", |_| {
        let metrics = get(address, "/metrics");
        let processed = |line: &&str| line.starts_with("leasehold_processed_records_total");
        let counts = metrics.lines().filter(processed);
        let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        counts.sum::<usize>() == RECORDS
    });

    // Health fails first. Then the worker is stopped together with the pages.
    example.signal();
    example.until("health to fail", |_| {
        let health = get(address, "/healthz");
        health.starts_with("HTTP/1.1 503 ") && health.ends_with("shutting down\n")
    });
    let told = example.ended();
    assert!(told.contains("the worker has stopped; 2 leases were released"), "{told}");
    assert!(TcpStream::connect(address).is_err(), "the pages are gone");
}

/// The shards and positions of all records in finished Parquet files.
fn in_tables(folder: &Path) -> BTreeSet<String> {
    let mut records = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a file").path();
        if path.to_string_lossy().ends_with(".parquet") {
            let reader = SerializedFileReader::new(File::open(&path).expect("a file")).expect("a whole file");
            for row in reader.get_row_iter(None).expect("rows") {
                let row = row.expect("a row");
                let text = |column| row.get_string(column).expect("a text").clone();
                let is_order = text(3).starts_with("{\"order\":") || text(3) == "no JSON";
                assert!(is_order && text(2).starts_with("customer-"), "{row}");
                records.insert(format!("{} {}", text(0), text(1)));
            }
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn parquet() {
    let scene = Scene::new("tables").await;
    let folder = scene.folder.join("tables");
    let mut example = scene.start("parquet", &["tables"]);
    example.until("all records in files", |_| in_tables(&folder).len() >= RECORDS);
    let told = example.terminate();
    assert_eq!(in_tables(&folder).len(), RECORDS, "{told}");
    assert_eq!(unfinished(&folder, ".parquet"), 0, "{told}");
}

/// How often each record is stored, and the sum of the orders of all customers.
fn in_sqlite(file: &Path) -> (BTreeMap<String, u64>, u64) {
    let read = || -> rusqlite::Result<_> {
        let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mut query =
            database.prepare("SELECT shard || ' ' || position, count(*) FROM orders GROUP BY 1")?;
        let records = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sum = database.query_row("SELECT coalesce(sum(orders), 0) FROM totals", [], |row| row.get(0))?;
        Ok((records.collect::<rusqlite::Result<_>>()?, sum))
    };
    // Not there yet.
    read().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_exactly_once() {
    let scene = Scene::new("sqlite").await;
    let file = scene.folder.join("orders.sqlite");
    let stored = || in_sqlite(&file).0.len();

    // It is killed in mid-run: all of the first records are stored, and some of the others.
    let mut first = scene.start("sqlite_exactly_once", &[]);
    first.until("the first records", |_| stored() >= RECORDS);
    let mut more = scene.start("producer", &[&RECORDS.to_string()]);
    first.until("some of the others", |_| stored() > RECORDS);
    drop(first);
    assert!(more.child.wait().expect("an end").success());
    // As if it had written no checkpoint.
    for shard in ["shardId-000000000000", "shardId-000000000001"] {
        scene.read_again("sqlite-exactly-once", shard);
    }

    let mut second = scene.start("sqlite_exactly_once", &[]);
    second.until("records that come again, and all others", |it| {
        let lines = it.lines(" stored, ").into_iter();
        let again = lines.filter(|line| !line.ends_with(" stored, 0 skipped"));
        again.count() > 0 && stored() >= 2 * RECORDS
    });

    // As if another worker had taken the shards: what this one writes is refused.
    let tokens = |sql: &str| {
        let database = Connection::open(&file).expect("the file");
        assert_eq!(database.execute(sql, []).expect("an update"), 2, "two shards");
    };
    tokens("UPDATE shards SET token = token + 1000");
    scene.produce(RECORDS);
    second.until("both shards to be refused", |it| {
        let shards = ["shardId-000000000000", "shardId-000000000001"];
        shards.iter().all(|shard| !it.lines(&format!(" of {shard} is not the newest")).is_empty())
    });
    assert_eq!(stored(), 2 * RECORDS);
    tokens("UPDATE shards SET token = token - 1000");
    second.until("the rest", |_| stored() >= 3 * RECORDS);
    let told = second.terminate();

    let (records, orders) = in_sqlite(&file);
    let repeated = records.iter().filter(|(_, times)| **times != 1);
    assert_eq!(repeated.count(), 0, "each record is there once: {records:?}\n{told}");
    assert_eq!((records.len(), orders), (3 * RECORDS, 3 * RECORDS as u64), "{told}");
}
