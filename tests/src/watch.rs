//! Watches a running fleet: the output of its workers, and the rows of its lease table, each with the time.

use crate::history::{Cause, Ends, Handover, Seen, handovers};
use crate::ledger::{Entry, Ledger};
use crate::member::Printed;
use leasehold::aws::dynamodb;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often files are looked at: what a time is accurate to.
const LOOK: Duration = Duration::from_millis(10);
/// How often the table is scanned.
const SCAN: Duration = Duration::from_millis(100);

/// Something that a worker printed besides records: what happened, to which shard.
pub type Event = (String, String);

#[derive(Debug, Default)]
struct Watched {
    files: Vec<Tail>,
    seen: Vec<Seen>,
    events: BTreeMap<String, Vec<Event>>,
    ends: Ends,
    /// When the process of each worker that was asked to leave had ended.
    left: BTreeMap<String, Duration>,
    ledger: Ledger,
}

/// A file that grows.
#[derive(Debug)]
struct Tail {
    worker: String,
    path: PathBuf,
    at: u64,
    /// The beginning of a line not yet complete.
    begun: Vec<u8>,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    began: Instant,
    watched: Arc<Mutex<Watched>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch a table. Files are added as workers start.
    pub fn start(dynamodb: dynamodb::Client, table: &str) -> Self {
        let began = Instant::now();
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (files, rows, table) = (watched.clone(), watched.clone(), table.to_owned());
        let tasks = vec![
            tokio::task::spawn(async move {
                loop {
                    lock(&files).look(began.elapsed());
                    tokio::time::sleep(LOOK).await;
                }
            }),
            tokio::task::spawn(async move {
                loop {
                    let scan = dynamodb.scan().table_name(&table).consistent_read(true).send();
                    if let Ok(answer) = scan.await {
                        let at = began.elapsed();
                        let entries = answer.items().iter().filter_map(|row| Entry::read(at, row));
                        lock(&rows).ledger.scanned(entries);
                    }
                    tokio::time::sleep(SCAN).await;
                }
            }),
        ];
        Self { began, watched, tasks }
    }

    /// Watches the output of one more worker.
    pub fn add(&self, worker: &str, output: &Path) {
        lock(&self.watched).files.push(Tail {
            worker: worker.to_owned(),
            path: output.to_owned(),
            at: 0,
            begun: Vec::new(),
        });
    }

    /// Notes that a worker is stopped now.
    pub fn ends(&self, worker: &str, cause: Cause) {
        let end = (self.began.elapsed(), cause);
        lock(&self.watched).ends.insert(worker.to_owned(), end);
    }

    /// Notes that a worker has left: its process has ended.
    pub fn has_left(&self, worker: &str) {
        let at = self.began.elapsed();
        lock(&self.watched).left.insert(worker.to_owned(), at);
    }

    /// When a worker had left.
    pub fn left_at(&self, worker: &str) -> Option<Duration> {
        lock(&self.watched).left.get(worker).copied()
    }

    /// The time since the watch began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// All hand-overs so far.
    pub fn handovers(&self) -> Vec<Handover> {
        let seen = self.seen();
        handovers(&seen, &lock(&self.watched).ends)
    }

    /// What was printed so far.
    pub fn seen(&self) -> Vec<Seen> {
        let mut watched = lock(&self.watched);
        watched.look(self.began.elapsed());
        watched.seen.clone()
    }

    /// How often a worker printed an event.
    pub fn events(&self, worker: &str, what: &str) -> usize {
        let watched = lock(&self.watched);
        let events = watched.events.get(worker);
        events.map_or(0, |events| events.iter().filter(|(event, _)| event == what).count())
    }

    /// What the table said, over time.
    pub fn ledger(&self) -> Ledger {
        lock(&self.watched).ledger.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Watched {
    fn look(&mut self, now: Duration) {
        for tail in &mut self.files {
            for line in tail.lines() {
                let value: serde_json::Value = serde_json::from_str(&line).expect("a JSON line");
                let text = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
                if let Some(event) = text("event") {
                    let event = (event.to_owned(), text("shard").unwrap_or_default().to_owned());
                    self.events.entry(tail.worker.clone()).or_default().push(event);
                } else {
                    let record = Printed::read(&value);
                    let late = record.arrival.map(|arrival| arrival.elapsed().unwrap_or_default());
                    self.seen.push(Seen { at: now, worker: tail.worker.clone(), record, late });
                }
            }
        }
    }
}

impl Tail {
    /// The lines that ended since the last look.
    fn lines(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else {
            return Vec::new();
        };
        let mut new = Vec::new();
        file.seek(SeekFrom::Start(self.at)).expect("a place in a file");
        self.at += file.read_to_end(&mut new).expect("to read what is printed") as u64;
        self.begun.append(&mut new);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        let text = String::from_utf8(whole).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
