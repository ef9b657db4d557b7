//! The worker: what an application builds and runs.

mod builder;
mod control;
mod doors;
#[cfg(feature = "aws")]
mod operator;
pub mod parts;
mod services;

pub use builder::{Builder, CompleteBuilder};
pub use control::Control;
#[cfg(feature = "aws")]
pub use operator::Rewind;

use builder::{Settings, TraceTo};
#[cfg(feature = "aws")]
use operator::Operator;
use services::{StreamSource, TableSource};

use crate::asks::{AskSender, Asks, asks};
use crate::board::{Board, Life};
use crate::consumer::Consumer;
use crate::driver::Driver;
use crate::error::Error;
use crate::fence::Fences;
use crate::handler::{AnyHandler, Handler};
use crate::metrics::Meter;
use crate::observe::Observer;
use crate::ports::Ports;
use crate::private;
use crate::pulse::{Polls, Pulse};
use crate::recorder::{FileSink, Flight, Recorder, Sink};
use crate::report::Report;
use crate::runtime::Runtime;
use crate::store::Store;
use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::Boot;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How many lines wait for the trace file before a gap is recorded.
const TRACE_BACKLOG: usize = 65_536;

/// Makes the application's handler, for the given runtime of handlers.
type Door = Box<dyn FnOnce(&Arc<dyn Runtime>, &Polls) -> Arc<dyn AnyHandler> + Send>;

/// A consumer of one stream or of several: one worker of a fleet that shares shards by leases in a table.
///
/// ```no_run
/// # #[cfg(feature = "aws")]
/// # async fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client)
/// # -> Result<(), leasehold::Error> {
/// use leasehold::{Batch, Worker};
///
/// let worker = Worker::builder()
///     .kinesis(kinesis)
///     .dynamodb(dynamodb)
///     .stream("orders")
///     .application("billing")
///     .build()?;
/// let control = worker.control();
/// // … call `control.shutdown()` from wherever the program learns that it is to end.
/// worker
///     .run_fn(|batch: Batch| async move {
///         for record in batch {
///             println!("{} {:?}", record.partition_key, record.data);
///         }
///         Ok::<(), std::io::Error>(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    settings: Settings,
    table: TableSource,
    stream: StreamSource,
    asks: (AskSender, Asks),
    flight: Option<Flight>,
    board: Board,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("worker_id", &self.settings.worker_id)
            .field("config", &self.settings.config)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Begins a worker.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A worker from a checked builder.
    fn of(settings: Settings, table: TableSource, stream: StreamSource) -> Self {
        let flight = settings.flight.map(|(inputs, bytes)| Flight::new(inputs, bytes));
        Self { settings, table, stream, asks: asks(), flight, board: Board::default() }
    }

    /// A handle for stopping and watching this worker from any place.
    pub fn control(&self) -> Control {
        Control {
            asks: self.asks.0.clone(),
            flight: self.flight.clone(),
            board: self.board.clone(),
            #[cfg(feature = "aws")]
            operator: Arc::new(Operator::new(&self.settings, &self.table, &self.stream)),
            #[cfg(feature = "aws")]
            directory: self.settings.directory.clone(),
        }
    }

    /// Consumes the stream until [`Control::shutdown`] is called. The report names the leases given up and the
    /// progress of the shards.
    ///
    /// Handlers run on the caller's tokio runtime. Leases are kept on a separate thread (see
    /// [`Builder::coordination_on_caller`]).
    ///
    /// Dropping the future stops everything at once: handlers are dropped and leases are left to expire.
    ///
    /// # Errors
    /// [`Error::Fatal`] if the worker cannot go on: its table or stream is missing, or the worker lacks a permission
    /// for them. [`Error::Unclean`] if the worker was shut down and could not give up all its leases, or stopped
    /// handlers before the end: the error carries the report.
    ///
    /// # Panics
    /// A panic of [`Builder::on_notice`] is passed on.
    pub async fn run<H: Handler>(self, handler: H) -> Result<Report, Error> {
        self.open_door(Box::new(|_, _| Arc::new(handler))).await
    }

    async fn open_door(self, door: Door) -> Result<Report, Error> {
        let running = self.board.run();
        let result = self.start(door).await;
        running.ended(&result);
        result
    }

    async fn start(mut self, door: Door) -> Result<Report, Error> {
        if let Some(runtime) = self.settings.runtime.take() {
            self.settings.on_caller = false;
            return self.serve(door, runtime.clone(), runtime).await;
        }
        let caller = default_runtime()?;
        if self.settings.on_caller {
            return self.serve(door, caller.clone(), caller).await;
        }
        self.serve_on_own_thread(door, caller).await
    }

    #[cfg(feature = "tokio-runtime")]
    async fn serve_on_own_thread(self, door: Door, handlers: Arc<dyn Runtime>) -> Result<Report, Error> {
        crate::own_thread::run(move || async move {
            let runtime = default_runtime()?;
            self.serve(door, runtime, handlers).await
        })
        .await
        .map_err(Error::Thread)?
    }

    #[cfg(not(feature = "tokio-runtime"))]
    async fn serve_on_own_thread(self, _: Door, _: Arc<dyn Runtime>) -> Result<Report, Error> {
        Err(Error::NoRuntime)
    }

    /// Keeps the leases on one runtime and runs handlers on a second runtime, possibly the same.
    async fn serve(
        self, door: Door, runtime: Arc<dyn Runtime>, handlers: Arc<dyn Runtime>,
    ) -> Result<Report, Error> {
        let Worker { settings, table, stream, asks: (sender, asks), flight, board } = self;
        let sink = trace_sink(settings.sink, settings.trace)?;
        let store = Store::new(settings.misplaced, runtime.clone());
        let fences = Fences::default();
        let streams = stream.several(settings.directory, &settings.config, &runtime, &store);
        let table = table.port(&settings.config, settings.format, &runtime);
        let stream = stream.port(&settings.config, &runtime, &store);
        let boot = boot_record(settings.config, settings.worker_id, settings.identity, &*runtime);
        warn_of_short_stop(&boot.config);
        let worker = WorkerId::of_life(&boot.worker, boot.incarnation);
        let meter = Meter::new(boot.config.table(), stream_label(&boot.config), worker.as_str());
        board.begin(Life {
            worker,
            lease_duration: boot.config.lease_duration(),
            clock: runtime.clone(),
            store: store.clone(),
        });
        let polls = Polls::new(runtime.clone());
        let consumer = Consumer::new(
            door(&handlers, &polls),
            runtime.clone(),
            store.clone(),
            fences.clone(),
            sender.clone(),
            meter.clone(),
            polls.clone(),
        )
        .with_dead_letters(settings.dead_letters);
        let ports = Ports { table, stream, streams, consumer: Arc::new(consumer) };
        let recorder = Recorder::new(sink, flight.clone());
        let observer = Observer::new(fences, settings.observer)
            .with_metrics(meter.clone(), store)
            .with_polls(polls.clone())
            .with_board(board);
        // A runtime given by the program may have a simulated time, and no handler takes long in simulated time.
        let pulse = (settings.on_caller || !Arc::ptr_eq(&runtime, &handlers)).then(|| {
            let lease = boot.config.lease_duration();
            let pulse = Pulse::new(handlers.clone(), runtime.clone(), polls, meter, sender, lease);
            runtime.spawn(Box::pin(pulse.feel()))
        });
        let result = Driver::new(Engine::new(), runtime, ports, asks, recorder, observer)
            .with_handlers_on(handlers)
            .run(boot)
            .await;
        if let Some(pulse) = pulse {
            pulse.abort();
        }
        if let (Err(Error::Fatal(_)), Some(path), Some(flight)) = (&result, &settings.dump_on_fatal, &flight)
        {
            dump(flight, path);
        }
        result
    }
}

/// The label `stream` of a worker's metrics. Of a worker of several streams, the label `shard` names each one's shards.
fn stream_label(config: &Config) -> &str {
    match config.streams() {
        [] => config.stream(),
        _ => "several",
    }
}

/// The time limit of a stop is not kept if it is too short for the last writes.
fn warn_of_short_stop(config: &Config) {
    let (stop, least) = (config.shutdown_timeout(), config.table_timeout().times(2));
    if stop < least {
        tracing::warn!(
            target: "leasehold",
            kind = "short-stop",
            "expected `shutdown_timeout` to be at least two `table_timeout`, which is {least}, found {stop}: a stop waits for no handler, \
             and takes up to {least} while DynamoDB does not answer; set `shutdown_timeout` higher, or `table_timeout` lower"
        );
    }
}

/// Who the worker is. What was not given is drawn.
fn boot_record(
    config: Config, name: Option<String>, identity: Option<(u64, u64)>, runtime: &dyn Runtime,
) -> Boot {
    let (incarnation, seed) = identity.unwrap_or_else(|| (runtime.entropy(), runtime.entropy()));
    Boot { worker: name.unwrap_or_else(|| "worker".to_owned()), incarnation, seed, config }
}

/// The sink of the full trace, if a trace is wanted.
fn trace_sink(sink: Option<Box<dyn Sink>>, to: Option<TraceTo>) -> Result<Option<Box<dyn Sink>>, Error> {
    let (None, Some(to)) = (&sink, to) else {
        return Ok(sink);
    };
    let (created, path) = match to {
        TraceTo::File(path) => (FileSink::create(&path, TRACE_BACKLOG), path),
        TraceTo::Folder(folder) => (folder.create(TRACE_BACKLOG), folder.path().to_owned()),
    };
    match created {
        Ok(created) => Ok(Some(Box::new(created))),
        Err(source) => Err(Error::Trace { path, source }),
    }
}

fn dump(flight: &Flight, path: &Path) {
    match private::create(path).and_then(|file| flight.dump(io::BufWriter::new(file))) {
        Ok(()) => tracing::info!(?path, "the flight recorder was dumped"),
        Err(error) => tracing::error!(?path, %error, "the flight recorder cannot be dumped"),
    }
}

#[cfg(feature = "tokio-runtime")]
fn default_runtime() -> Result<Arc<dyn Runtime>, Error> {
    match crate::runtime::TokioRuntime::current() {
        Ok(runtime) => Ok(Arc::new(runtime)),
        Err(_) => Err(Error::NoRuntime),
    }
}

#[cfg(not(feature = "tokio-runtime"))]
fn default_runtime() -> Result<Arc<dyn Runtime>, Error> {
    Err(Error::NoRuntime)
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "worker_tests.rs"]
mod tests;
