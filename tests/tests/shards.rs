//! Workers with a task for each shard: ends of shards, shutdowns, failures and crashes. No record is lost.

mod ends;

use leasehold::{Batch, Control, EndReason, Error, FlushReason, Notice, Report, ShardStream};
use leasehold_tests::account::{Account, text};
use leasehold_tests::probe::quick;
use leasehold_tests::two_shards::{SHARDS, TwoShards};
use leasehold_tests::wait::until;
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(60);

/// The acts of all workers' tasks in a test, in order.
#[derive(Clone, Debug, Default)]
struct Diary(Arc<Mutex<Vec<Line>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    worker: &'static str,
    shard: String,
    did: Did,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Did {
    Begin,
    /// A record was processed for good.
    Process(String),
    /// The stream ended.
    End(Option<FlushReason>),
}

impl Diary {
    fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap().clone()
    }

    /// The place of the first line like this.
    fn place(&self, of_shard: &str, is: impl Fn(&Did) -> bool) -> Option<usize> {
        let lines = self.lines();
        lines.iter().position(|line| line.shard == of_shard && is(&line.did))
    }

    fn begins(&self, of_shard: &str) -> usize {
        let lines = self.lines();
        let begins = lines.iter().filter(|line| line.shard == of_shard && line.did == Did::Begin);
        begins.count()
    }

    /// How often tasks of a worker were told the end of the first shard.
    fn ends_of_first(&self, by: &str) -> usize {
        let end = Did::End(Some(FlushReason::ShardEnd));
        let is = |line: &&Line| line.worker == by && line.shard == SHARDS[0] && line.did == end;
        self.lines().iter().filter(is).count()
    }

    /// The payloads that a worker processed, each once.
    fn payloads(&self, by: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let lines = self.lines();
        let of = lines.into_iter().filter(|line| by(line.worker));
        of.filter_map(|line| match line.did {
            Did::Process(data) => Some(data),
            _ => None,
        })
        .collect()
    }

    async fn until_processed(&self, all: &BTreeSet<String>) {
        until("all records to be processed", SOON, || async { self.payloads(|_| true) == *all }).await;
    }
}

/// A shard's task, with a diary.
struct Task {
    shard: ShardStream,
    worker: &'static str,
    diary: Diary,
}

impl Task {
    fn write(&self, did: Did) {
        let shard = self.shard.info().shard.to_string();
        let worker = self.worker;
        self.diary.0.lock().unwrap().push(Line { worker, shard, did });
    }

    /// Processes a batch for good.
    fn process(&self, batch: &Batch) {
        for record in batch {
            self.write(Did::Process(String::from_utf8_lossy(&record.data).into_owned()));
        }
        batch.acknowledge();
    }

    async fn next(&self) -> Option<Batch> {
        let batch = self.shard.next().await;
        if batch.is_none() {
            self.write(Did::End(self.shard.why_ended()));
        }
        batch
    }

    async fn process_all(&self) {
        while let Some(batch) = self.next().await {
            self.process(&batch);
        }
    }
}

/// A running worker.
struct Running {
    control: Control,
    run: JoinHandle<Result<Report, Error>>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Running {
    async fn shutdown(self) -> Vec<Notice> {
        self.control.shutdown();
        let ended = tokio::time::timeout(SOON, self.run).await;
        let result = ended.expect("an end in time").expect("no panic");
        result.expect("the worker to end well");
        self.notices.lock().unwrap().clone()
    }
}

/// The in-memory AWS with a stream of two shards, and the diary of all tasks.
struct Scene {
    stream: TwoShards,
    diary: Diary,
    put: BTreeSet<String>,
}

impl Scene {
    async fn new() -> Self {
        let stream = TwoShards::start("tasks", "app").await;
        Self { stream, diary: Diary::default(), put: BTreeSet::new() }
    }

    /// Starts a worker with this task.
    fn start<F, Fut>(&self, name: &'static str, task: F) -> Running
    where
        F: Fn(Task) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let told = notices.clone();
        let worker = self
            .stream
            .worker_builder()
            .worker_id(name)
            .config(quick)
            .on_notice(move |notice| told.lock().unwrap().push(notice.clone()))
            .build()
            .expect("a worker");
        let control = worker.control();
        let diary = self.diary.clone();
        let run = tokio::spawn(worker.run_shards(move |shard| {
            let task_of = Task { shard, worker: name, diary: diary.clone() };
            task_of.write(Did::Begin);
            task(task_of)
        }));
        Running { control, run, notices }
    }

    /// Puts this number of records into each end of the hash keys, in turns.
    async fn put(&mut self, count: usize) {
        for _ in 0..count {
            for hash_key in [0, u128::MAX] {
                let data = format!("{:05}", self.put.len());
                Account::put(&self.stream, "tasks", hash_key, data.clone()).await;
                self.put.insert(data);
            }
        }
    }

    /// Splits the first shard.
    async fn split(&self) {
        self.stream.split_first(1_000).await;
    }

    /// Reads whether a shard's end is durable.
    async fn has_ended(&self, shard: &str) -> bool {
        let row = self.stream.lease(shard).await;
        row.is_some_and(|row| text(&row, "checkpoint") == Some("SHARD_END"))
    }
}

/// Collects batches, and processes them five at a time or at the end.
async fn collect(task: Task) -> io::Result<()> {
    let mut kept = Vec::new();
    while let Some(batch) = task.next().await {
        kept.push(batch);
        if kept.len() == 5 {
            kept.drain(..).for_each(|batch| task.process(&batch));
        }
    }
    kept.drain(..).for_each(|batch| task.process(&batch));
    Ok(())
}

/// Processes each batch at once.
async fn process_all(task: Task) -> io::Result<()> {
    task.process_all().await;
    Ok(())
}

#[tokio::test]
async fn a_split_shard_is_finished_before_its_childrens_tasks_begin() {
    let mut scene = Scene::new().await;
    let worker = scene.start("one", collect);
    for _ in 0..4 {
        scene.put(3).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    scene.split().await;
    scene.put(3).await;
    until("the children's records", SOON, || async {
        scene.diary.begins("shardId-000000000002") > 0 && scene.has_ended(SHARDS[0]).await
    })
    .await;
    worker.shutdown().await;
    let other = scene.start("two", process_all);
    scene.diary.until_processed(&scene.put).await;
    other.shutdown().await;
    let ended = scene.diary.place(SHARDS[0], |did| *did == Did::End(Some(FlushReason::ShardEnd)));
    let last = scene.diary.lines();
    let last = last.iter().rposition(|line| line.shard == SHARDS[0] && matches!(line.did, Did::Process(_)));
    for child in ["shardId-000000000002", "shardId-000000000003"] {
        let begun = scene.diary.place(child, |did| *did == Did::Begin);
        assert!(begun.is_some() && ended < begun && last < begun, "{ended:?} {last:?} {begun:?}");
    }
}

#[tokio::test]
async fn at_a_shutdown_tasks_acknowledge_kept_batches_alone() {
    let mut scene = Scene::new().await;
    let taken = Arc::new(Mutex::new(0));
    let count = taken.clone();
    let one = scene.start("one", move |task| {
        let count = count.clone();
        async move {
            let mut kept = Vec::new();
            while let Some(batch) = task.next().await {
                *count.lock().unwrap() += batch.len();
                kept.push(batch);
            }
            // The task of one shard processes its batches; the task of the second shard drops its batches.
            if task.shard.info().shard.as_str() == SHARDS[0] {
                kept.iter().for_each(|batch| task.process(batch));
            }
            Ok(())
        }
    });
    scene.put(10).await;
    until("all to be taken", SOON, || async { *taken.lock().unwrap() == scene.put.len() }).await;
    one.shutdown().await;
    let leaving = Did::End(Some(FlushReason::Leaving(EndReason::Shutdown)));
    for shard in SHARDS {
        assert!(scene.diary.place(shard, |did| *did == leaving).is_some());
    }
    let first = scene.diary.payloads(|worker| worker == "one");
    assert_eq!(first.len(), 10, "one shard's");
    let two = scene.start("two", collect);
    scene.put(1).await;
    until("the rest", SOON, || async { scene.diary.begins(SHARDS[1]) > 1 }).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    two.shutdown().await;
    assert_eq!(scene.diary.payloads(|_| true), scene.put, "none is lost");
    let again = scene.diary.payloads(|worker| worker == "two");
    assert!(again.is_disjoint(&first), "what was acknowledged does not come again");
}

#[tokio::test]
async fn batches_of_failed_tasks_go_to_new_tasks() {
    let mut scene = Scene::new().await;
    let worker = scene.start("one", |task| async move {
        let shard = task.shard.info().shard.clone();
        let begins = task.diary.begins(shard.as_str());
        if begins <= 3 {
            // Keeps the first batch, acknowledges the second, and fails at the third.
            let _kept = task.next().await;
            if let Some(batch) = task.next().await {
                task.process(&batch);
            }
            let _broken = task.next().await;
            assert!(shard.as_str() != SHARDS[1], "on purpose");
            return Err(io::Error::other("no space left"));
        }
        task.process_all().await;
        Ok(())
    });
    for _ in 0..40 {
        scene.put(1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scene.diary.until_processed(&scene.put).await;
    let notices = worker.shutdown().await;
    for (shard, found) in SHARDS.iter().zip(["it failed: no space left", "it panicked: on purpose"]) {
        assert!(scene.diary.begins(shard) > 3, "{:?}", scene.diary.lines());
        let told = notices.iter().any(|notice| match notice {
            Notice::HandlerFailed { lease, detail, .. } => lease.as_str() == *shard && detail.contains(found),
            _ => false,
        });
        assert!(told, "expected {found:?} of {shard}, found {notices:?}");
    }
}

#[tokio::test]
async fn after_a_crash_another_workers_tasks_process_the_rest() {
    let mut scene = Scene::new().await;
    let one = scene.start("one", |task| async move {
        let mut kept = Vec::new();
        // Acknowledges every second batch: at most, the batches before the first kept batch are durable.
        while let Some(batch) = task.next().await {
            match kept.len() % 2 {
                0 => kept.push(batch),
                _ => task.process(&batch),
            }
        }
        Ok(())
    });
    for _ in 0..10 {
        scene.put(1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    until("both tasks", SOON, || async { SHARDS.iter().all(|shard| scene.diary.begins(shard) == 1) }).await;
    one.run.abort();
    assert!(one.run.await.is_err_and(|error| error.is_cancelled()));
    scene.put(5).await;
    let before = scene.diary.lines().len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.diary.lines().len(), before, "a dropped worker has no tasks");
    let two = scene.start("two", process_all);
    scene.diary.until_processed(&scene.put).await;
    two.shutdown().await;
}
