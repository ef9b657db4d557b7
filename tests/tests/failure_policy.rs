//! Records that a handler cannot process.

use super::metrics::{exported, exporter};
use leasehold::{
    Ack, Batch, Control, DeadLetter, DeadLetterFile, DeadLetterStream, Error, FailurePolicy, Handler, Letter,
    Notice, Report,
};
use leasehold_tests::account::Account;
use leasehold_tests::probe::quick;
use leasehold_tests::wait::until;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

const STREAM: &str = "poisoned";
const SOON: Duration = Duration::from_secs(60);

/// Fails with every batch that holds `poison`, until `cured` is set. Notes all processed records.
#[derive(Clone, Default)]
struct Picky {
    processed: Arc<Mutex<Vec<String>>>,
    cured: Arc<AtomicBool>,
}

impl Handler for Picky {
    type Error = io::Error;

    async fn process(&self, batch: Batch) -> Result<Ack, io::Error> {
        let texts: Vec<String> =
            batch.records().iter().map(|record| String::from_utf8_lossy(&record.data).into_owned()).collect();
        if texts.iter().any(|text| text == "poison") && !self.cured.load(Ordering::Relaxed) {
            return Err(io::Error::other("it is poisonous"));
        }
        self.processed.lock().unwrap().extend(texts);
        Ok(Ack::All)
    }
}

impl Picky {
    fn seen(&self) -> Vec<String> {
        self.processed.lock().unwrap().clone()
    }
}

/// Refuses the first letters, and writes later letters to a file.
struct FailsFirst(AtomicU32, DeadLetterFile);

impl DeadLetter for FailsFirst {
    type Error = io::Error;

    async fn store(&self, letter: Letter) -> Result<(), io::Error> {
        let left = |left: u32| left.checked_sub(1);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
            return Err(io::Error::other("the queue is full"));
        }
        self.1.store(letter).await.map_err(io::Error::other)
    }
}

struct Running {
    handler: Picky,
    control: Control,
    notices: Arc<Mutex<Vec<Notice>>>,
    task: JoinHandle<Result<Report, Error>>,
}

impl Running {
    fn named(&self, name: &str) -> Vec<Notice> {
        let notices = self.notices.lock().unwrap();
        notices.iter().filter(|notice| notice.name() == name).cloned().collect()
    }

    async fn stop(self) {
        self.control.shutdown();
        self.task.await.expect("it does not panic").expect("it stops cleanly");
    }
}

/// A stream of one shard with five records; the third record is poison.
async fn poisoned() -> Account {
    let account = Account::start().await;
    account.create(STREAM, 1).await;
    for data in ["1", "2", "poison", "4", "5"] {
        account.put(STREAM, 0, data).await;
    }
    account
}

fn start(
    account: &Account, application: &str, policy: FailurePolicy, sink: Option<impl DeadLetter>,
) -> Running {
    exporter();
    let (handler, notices) = (Picky::default(), Arc::new(Mutex::new(Vec::new())));
    let told = notices.clone();
    let mut builder = account
        .worker_of(STREAM, application)
        .config(|config| quick(config).with_handler_backoff(Duration::from_millis(20)))
        .failure_policy(policy)
        .on_notice(move |notice| told.lock().unwrap().push(notice.clone()));
    if let Some(sink) = sink {
        builder = builder.dead_letter(sink);
    }
    let worker = builder.build().expect("a worker");
    let control = worker.control();
    Running { handler: handler.clone(), control, notices, task: tokio::spawn(worker.run(handler)) }
}

#[tokio::test]
async fn a_poison_record_goes_to_the_file_the_rest_is_processed() {
    let account = poisoned().await;
    let path = std::env::temp_dir().join(format!("leasehold-dead-letters-{}.jsonl", std::process::id()));
    // What an earlier run left.
    let _ = std::fs::remove_file(&path);
    let sink = FailsFirst(AtomicU32::new(2), DeadLetterFile::open(&path).expect("a file"));
    let running = start(&account, "aside", FailurePolicy::set_aside(2), Some(sink));
    until("the records around the poison", SOON, || async { running.handler.seen() == ["1", "2", "4", "5"] })
        .await;
    let text = std::fs::read_to_string(&path).expect("the file");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    // "poison" in Base64.
    assert_eq!((&lines[0]["data"], &lines[0]["attempts"]), (&"cG9pc29u".into(), &2.into()));
    assert_eq!(lines[0]["error"], "it is poisonous");
    assert_eq!(running.named("set-aside").len(), 1);
    assert_eq!(running.named("set-aside-failed").len(), 2);
    let set_aside = [("application", "aside"), ("reason", "failed")];
    assert_eq!(exported("leasehold_set_aside_records_total", &set_aside), Some(1.0));
    running.stop().await;
    std::fs::remove_file(&path).expect("the file");
}

#[tokio::test]
async fn a_shard_stopped_for_a_record_goes_on_when_resumed() {
    let account = poisoned().await;
    let running = start(&account, "stopped", FailurePolicy::stop(2), None::<DeadLetterFile>);
    until("the stop", SOON, || async { !running.named("shard-stopped").is_empty() }).await;
    until("the gauge", SOON, || async {
        exported("leasehold_shards_stopped", &[("application", "stopped")]) == Some(1.0)
    })
    .await;
    // More than a life of a lease.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(running.handler.seen(), ["1", "2"]);
    assert_eq!(running.named("lost").len(), 0);
    running.handler.cured.store(true, Ordering::Relaxed);
    running.control.resume("shardId-000000000000");
    until("the rest", SOON, || async { running.handler.seen() == ["1", "2", "poison", "4", "5"] }).await;
    assert_eq!(running.named("shard-stopped").len(), 1);
    until("the gauge", SOON, || async {
        exported("leasehold_shards_stopped", &[("application", "stopped")]) == Some(0.0)
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_poison_record_may_go_to_another_stream_unchanged() {
    let account = poisoned().await;
    let kinesis = account.kinesis.clone();
    account.create("dead", 1).await;
    let sink = DeadLetterStream::new(kinesis.clone(), "dead");
    let running = start(&account, "picky", FailurePolicy::set_aside(1), Some(sink));
    until("the records around the poison", SOON, || async { running.handler.seen() == ["1", "2", "4", "5"] })
        .await;
    let iterator = kinesis.get_shard_iterator().stream_name("dead").shard_id("shardId-000000000000");
    let iterator = iterator.shard_iterator_type("TRIM_HORIZON".into()).send().await;
    let iterator = iterator.expect("an iterator").shard_iterator.expect("an iterator");
    let answer = kinesis.get_records().shard_iterator(iterator).send().await.expect("records");
    let [record] = answer.records() else { panic!("expected one record, found {:?}", answer.records()) };
    assert_eq!((record.data().as_ref(), record.partition_key()), (&b"poison"[..], Some("k")));
    running.stop().await;
}
