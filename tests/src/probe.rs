//! A worker in this process, and its processed records.

use crate::wait::{SOON, until};
use leasehold::{Batch, CompleteBuilder, Config, Control, Error, Notice, Report, Span};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A running worker.
#[derive(Debug)]
pub struct Probe {
    seen: Arc<Mutex<Seen>>,
    control: Control,
    run: JoinHandle<Result<Report, Error>>,
}

/// What a worker processed and told.
#[derive(Debug, Default)]
pub struct Seen {
    /// By shard, in the order of processing: sequence number and payload of each record.
    pub records: BTreeMap<String, Vec<(String, String)>>,
    /// What it told.
    pub notices: Vec<Notice>,
}

impl Seen {
    /// The number of processed records; a repeated record counts twice.
    pub fn count(&self) -> usize {
        self.records.values().map(Vec::len).sum()
    }

    /// The payloads, sorted, each once.
    pub fn payloads(&self) -> Vec<String> {
        let mut all: Vec<String> = self.records.values().flatten().map(|(_, data)| data.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The last sequence number processed of a shard.
    pub fn last(&self, shard: &str) -> Option<&str> {
        Some(self.records.get(shard)?.last()?.0.as_str())
    }
}

/// The defaults, but for everything that takes time.
pub fn quick(config: Config) -> Config {
    let reader = config
        .reader()
        .clone()
        .with_min_interval(Span::from_millis(200))
        .with_idle_interval(Span::from_millis(200));
    config
        .with_lease_duration(Span::from_millis(1_500))
        .with_renew_interval(Span::from_millis(300))
        .with_scan_interval(Span::from_millis(400))
        .with_stream_lag(Span::from_millis(400))
        .with_table_timeout(Span::from_millis(700))
        .with_retry_max(Span::from_millis(500))
        .with_checkpoint_interval(Span::from_millis(200))
        .with_bootstrap_delay(Span::ZERO)
        .with_shutdown_timeout(Span::from_secs(5))
        .with_reader(reader)
}

impl Probe {
    /// Starts the builder's worker, with quick options.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn of(builder: CompleteBuilder) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (told, processed) = (seen.clone(), seen.clone());
        let worker = builder
            .worker_id("probe")
            .config(quick)
            .on_notice(move |notice| lock(&told).notices.push(notice.clone()))
            .build()
            .expect("a worker");
        let control = worker.control();
        let run = tokio::spawn(worker.run_fn(move |batch: Batch| {
            let seen = processed.clone();
            async move {
                let mut seen = lock(&seen);
                for record in &batch {
                    let line = (
                        record.position.sequence.to_string(),
                        String::from_utf8_lossy(&record.data).into_owned(),
                    );
                    seen.records.entry(record.shard.to_string()).or_default().push(line);
                }
                Ok::<(), Infallible>(())
            }
        }));
        Self { seen, control, run }
    }

    /// What was processed and told so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// Waits until so many different payloads were processed.
    ///
    /// # Panics
    /// If that takes long.
    pub async fn processed(&self, count: usize) {
        let what = format!("{count} records to be processed");
        until(&what, SOON, || async { self.seen().payloads().len() >= count }).await;
    }

    /// Waits until it told something.
    ///
    /// # Panics
    /// If that takes long.
    pub async fn told(&self, what: &str, is: impl Fn(&Notice) -> bool) {
        until(what, SOON, || async { self.seen().notices.iter().any(&is) }).await;
    }

    /// Waits for its own end.
    ///
    /// # Panics
    /// If the worker does not end, or ends well.
    pub async fn failed(&mut self) -> Error {
        let ended = tokio::time::timeout(Duration::from_secs(90), &mut self.run).await;
        ended
            .expect("the worker to end")
            .expect("the worker not to panic")
            .expect_err("the worker to give up")
    }

    /// A handle on it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Asks it to shut down.
    pub fn ask_to_stop(&self) {
        self.control.shutdown();
    }

    /// Shuts it down.
    ///
    /// # Panics
    /// If the worker does not end, or ends with an error.
    pub async fn shutdown(&mut self) {
        self.ask_to_stop();
        let ended = tokio::time::timeout(Duration::from_secs(60), &mut self.run).await;
        ended.expect("the worker to end").expect("the worker not to panic").expect("the worker to end well");
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
