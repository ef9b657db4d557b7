//! Real workers, each on a runtime of its own, to die like a process.

use super::board::Board;
use super::ledger::{Entry, Ledger};
use crate::clients::Clients;
use crate::exit::Failure;
use leasehold::{Batch, Config, Control, Error, ReadMode, ReaderConfig, Report, Worker};
use leasehold_engine::time::Span;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How long a graceful shutdown may take.
const FAREWELL: Span = Span::from_secs(5);

/// The workers of one application.
pub(super) struct Fleet {
    pub endpoint: String,
    pub stream: String,
    pub application: String,
    pub ledger: Arc<Ledger>,
    pub board: Arc<Board>,
    /// Where traces go.
    pub traces: PathBuf,
    /// How workers read.
    pub mode: ReadMode,
    pub members: Vec<Member>,
}

pub(super) struct Member {
    pub name: String,
    pub trace: PathBuf,
    life: Option<Life>,
}

struct Life {
    runtime: Runtime,
    control: Control,
    run: JoinHandle<Result<Report, Error>>,
}

/// Shortens all intervals of production, to show more in half a minute.
fn hasten(config: Config, mode: ReadMode) -> Config {
    config
        .with_lease_duration(Span::from_secs(3))
        .with_renew_interval(Span::from_millis(900))
        .with_scan_interval(Span::from_secs(1))
        .with_table_timeout(Span::from_secs(1))
        .with_stream_lag(Span::from_secs(1))
        .with_stream_timeout(Span::from_secs(5))
        .with_retry_max(Span::from_secs(1))
        .with_checkpoint_interval(Span::from_secs(1))
        .with_audit_confidence(2)
        .with_bootstrap_delay(Span::from_millis(500))
        .with_shutdown_timeout(FAREWELL)
        .with_reader(ReaderConfig::default().with_idle_interval(Span::from_millis(250)).with_mode(mode))
}

impl Fleet {
    /// Starts one more worker.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        let index = self.members.len();
        let name = format!("worker-{}", index + 1);
        let trace = self.traces.join(format!("{name}.jsonl"));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(&name)
            .enable_all()
            .build()
            .map_err(|error| Failure::under_way(format!("no runtime for {name}: {error}")))?;
        let clients = Clients::in_memory(&self.endpoint);
        let (board, mode) = (self.board.clone(), self.mode);
        let worker = Worker::builder()
            .kinesis(clients.kinesis)
            .dynamodb(clients.dynamodb)
            .stream(&self.stream)
            .application(&self.application)
            .worker_id(&name)
            .trace_file(&trace)
            .config(move |config| hasten(config, mode))
            .on_notice(move |notice| board.notice(index, notice))
            .build()
            .map_err(|error| Failure::under_way(format!("{name} cannot be built: {error}")))?;
        let control = worker.control();
        self.board.started(index, &name);
        let (board, ledger) = (self.board.clone(), self.ledger.clone());
        let run = runtime.spawn(worker.run_fn(move |batch| {
            let result = process(&board, &ledger, index, &batch);
            std::future::ready(result)
        }));
        self.members.push(Member { name, trace, life: Some(Life { runtime, control, run }) });
        Ok(())
    }

    /// Ends a worker like a power cut: the worker finishes nothing and releases nothing.
    pub(super) fn kill(&mut self, index: usize) {
        if let Some(life) = self.members.get_mut(index).and_then(|member| member.life.take()) {
            life.runtime.shutdown_background();
            self.board.killed(index);
        }
    }

    /// The first worker that ended unasked, with its error.
    pub(super) async fn failed(&mut self) -> Option<Failure> {
        for member in &mut self.members {
            let Some(life) = &mut member.life else { continue };
            if life.run.is_finished() {
                let why = match (&mut life.run).await {
                    Ok(Ok(_)) => "it stopped".to_owned(),
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                };
                if let Some(life) = member.life.take() {
                    life.runtime.shutdown_background();
                }
                return Some(Failure::under_way(format!("{} ended early: {why}", member.name)));
            }
        }
        None
    }

    /// Shuts all workers down, and waits for their ends.
    pub(super) async fn shut_down(&mut self) -> Result<(), Failure> {
        let lives: Vec<(&str, Life)> = self
            .members
            .iter_mut()
            .filter_map(|member| Some((member.name.as_str(), member.life.take()?)))
            .collect();
        for (_, life) in &lives {
            life.control.shutdown();
        }
        let mut result = Ok(());
        for (name, life) in lives {
            let patience = Duration::from(FAREWELL) + Duration::from_secs(2);
            let ended = match tokio::time::timeout(patience, life.run).await {
                Ok(Ok(Ok(_))) => Ok(()),
                Ok(Ok(Err(error))) => Err(format!("{name} failed at last: {error}")),
                Ok(Err(error)) => Err(format!("{name} panicked: {error}")),
                Err(_) => Err(format!("{name} did not shut down within {patience:?}")),
            };
            life.runtime.shutdown_background();
            result = result.and(ended.map_err(Failure::under_way));
        }
        result
    }
}

impl Drop for Fleet {
    /// A runtime must not be dropped inside another runtime.
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(life) = member.life.take() {
                life.runtime.shutdown_background();
            }
        }
    }
}

/// The demo application's handler: it enters records into the books.
fn process(board: &Board, ledger: &Ledger, worker: usize, batch: &Batch) -> Result<(), String> {
    for record in batch {
        let entry =
            Entry::from_bytes(&record.data).map_err(|error| format!("not a record of ours: {error}"))?;
        if !ledger.processed(entry) {
            return Err(format!("record {} of key {} was never put", entry.n, entry.key));
        }
    }
    board.processed(worker, batch.len() as u64);
    Ok(())
}
