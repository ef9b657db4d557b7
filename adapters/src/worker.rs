//! The worker: what an application builds and runs.

use crate::asks::{AskSender, Asks, asks};
use crate::batch::Batch;
use crate::consumer::Consumer;
use crate::driver::Driver;
use crate::error::Error;
use crate::fence::Fences;
use crate::handler::{Handler, HandlerFn};
use crate::kpl::Misplaced;
use crate::metrics::Meter;
use crate::observe::{NoticeFn, Observer};
use crate::ports::{Ports, StreamPort, TablePort};
use crate::pulse::{Polls, Pulse};
use crate::recorder::{FileSink, Flight, Recorder, Sink};
use crate::runtime::Runtime;
use crate::store::Store;
use leasehold_engine::Engine;
use leasehold_engine::config::{Config, InitialPosition};
use leasehold_engine::dialect::{Dialect, Kcl};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::Boot;
use leasehold_engine::notice::Notice;
use std::error::Error as StdError;
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// How many inputs the flight recorder keeps unless told otherwise, and how many bytes of text.
const FLIGHT: (usize, usize) = (4_096, 4 << 20);
/// How many lines wait for the trace file before a gap is recorded.
const TRACE_BACKLOG: usize = 65_536;

/// A consumer of one stream: one of a fleet that shares its shards by leases in a table.
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
///     .await
/// # }
/// ```
pub struct Worker {
    builder: Builder,
    asks: (AskSender, Asks),
    flight: Option<Flight>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("worker_id", &self.builder.worker_id)
            .field("config", &self.builder.config)
            .finish_non_exhaustive()
    }
}

/// Collects what a worker needs.
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    config: Config,
    dialect: SharedDialect,
    worker_id: Option<String>,
    runtime: Option<Arc<dyn Runtime>>,
    on_caller: bool,
    identity: Option<(u64, u64)>,
    misplaced: Misplaced,
    observer: Option<NoticeFn>,
    sink: Option<Box<dyn Sink>>,
    trace_file: Option<PathBuf>,
    dump_on_fatal: Option<PathBuf>,
    flight: Option<(usize, usize)>,
    services: Services,
}

#[derive(Default)]
struct Services {
    #[cfg(feature = "aws")]
    kinesis: Option<aws_sdk_kinesis::Client>,
    #[cfg(feature = "aws")]
    dynamodb: Option<aws_sdk_dynamodb::Client>,
    table: Option<TablePort>,
    stream: Option<MakeStream>,
}

type SharedDialect = Arc<dyn Dialect + Send + Sync>;
type MakeStream = Box<dyn FnOnce(Store) -> StreamPort + Send>;

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            config: Config::default(),
            dialect: Arc::new(Kcl),
            worker_id: None,
            runtime: None,
            on_caller: false,
            identity: None,
            misplaced: Misplaced::default(),
            observer: None,
            sink: None,
            trace_file: None,
            dump_on_fatal: None,
            flight: Some(FLIGHT),
            services: Services::default(),
        }
    }
}

impl Builder {
    /// The Kinesis client. Its retries are switched off for this worker, which does its own. It may be used elsewhere,
    /// too: the worker makes connections of its own.
    #[cfg(feature = "aws")]
    pub fn kinesis(mut self, client: aws_sdk_kinesis::Client) -> Self {
        self.services.kinesis = Some(client);
        self
    }

    /// The DynamoDB client. Its retries are switched off for this worker, which does its own. It may be used elsewhere,
    /// too: the worker makes connections of its own.
    #[cfg(feature = "aws")]
    pub fn dynamodb(mut self, client: aws_sdk_dynamodb::Client) -> Self {
        self.services.dynamodb = Some(client);
        self
    }

    /// Something else than DynamoDB to keep the leases in, such as a fake.
    pub fn table_port(mut self, port: TablePort) -> Self {
        self.services.table = Some(port);
        self
    }

    /// Something else than Kinesis to read from, such as a fake. It keeps its records in the store it is made with.
    pub fn stream_port(mut self, port: impl FnOnce(Store) -> StreamPort + Send + 'static) -> Self {
        self.services.stream = Some(Box::new(port));
        self
    }

    /// The stream's name.
    pub fn stream(mut self, name: impl Into<String>) -> Self {
        self.config.stream = name.into();
        self
    }

    /// The application's name, which is also the name of its lease table, or what the names of its tables begin with, if the
    /// dialect has more than one. Workers with the same one share the shards.
    pub fn application(mut self, name: impl Into<String>) -> Self {
        self.config.table = name.into();
        self
    }

    /// How rows of the lease table are spelled, and what follows from that; by default as by KCL for Java
    /// ([`Kcl`]). Where workers know each other from tables of their own, as kinsumer's do, leases last for five of the checks
    /// of [`Config::members`](leasehold_engine::config::Config::members); change both together.
    pub fn dialect(mut self, dialect: impl Dialect + Send + Sync + 'static) -> Self {
        self.config.policies = dialect.policies();
        if dialect.membership().is_some() {
            self.config.lease_duration = self.config.members.expiry();
        }
        self.dialect = Arc::new(dialect);
        self
    }

    /// Where shards without a lease are started; by default at the oldest record. Leases that the table holds already go on from
    /// their checkpoints, which is said in a warning if this is not the default.
    pub fn initial_position(mut self, position: InitialPosition) -> Self {
        self.config.initial_position = position;
        self
    }

    /// A name for this worker, for people; by default `worker`. It need not be unique.
    pub fn worker_id(mut self, id: impl Into<String>) -> Self {
        self.worker_id = Some(id.into());
        self
    }

    /// Changes any option.
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// What to do with an aggregated record that holds records of another shard.
    pub fn misplaced_aggregates(mut self, misplaced: Misplaced) -> Self {
        self.misplaced = misplaced;
        self
    }

    /// A runtime for everything: handlers, leases and requests. By default, handlers run on the tokio runtime that
    /// [`Worker::run`] is called in, and the rest on a thread of its own.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Whether leases are kept, and requests made, on the tokio runtime that [`Worker::run`] is called in; by default
    /// `false`: on a thread named `leasehold`, with a runtime of its own. Then handlers that block the threads of their
    /// runtime delay each other only, and a warning names them. With `true` they delay renewals too, and leases are lost.
    ///
    /// Say `true` where a program may not start threads, and in tests whose time is paused: it does not pause on another
    /// thread.
    pub fn coordination_on_caller(mut self, on_caller: bool) -> Self {
        self.on_caller = on_caller;
        self
    }

    /// Fixes the incarnation and the seed, which are drawn from entropy otherwise. For simulations: no two lives of
    /// one worker id may share an incarnation.
    pub fn identity(mut self, incarnation: u64, seed: u64) -> Self {
        self.identity = Some((incarnation, seed));
        self
    }

    /// Called with everything the engine tells. It must not block: leases are not renewed meanwhile.
    pub fn on_notice(mut self, each: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.observer = Some(Box::new(each));
        self
    }

    /// Writes a full trace to a file, which can be replayed.
    pub fn trace_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.trace_file = Some(path.into());
        self
    }

    /// Writes a full trace somewhere else.
    pub fn trace_sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// How many inputs, and how many bytes of text, the flight recorder keeps in memory.
    pub fn flight_recorder(mut self, inputs: usize, bytes: usize) -> Self {
        self.flight = (inputs > 0 && bytes > 0).then_some((inputs, bytes));
        self
    }

    /// Where the flight recorder is dumped if the worker cannot go on.
    pub fn dump_on_fatal(mut self, path: impl Into<PathBuf>) -> Self {
        self.dump_on_fatal = Some(path.into());
        self
    }

    /// Checks that everything is there and can work.
    ///
    /// # Errors
    /// What is missing or wrong, and what to do about it.
    pub fn build(self) -> Result<Worker, Error> {
        self.config.check()?;
        self.services.check()?;
        let flight = self.flight.map(|(inputs, bytes)| Flight::new(inputs, bytes));
        Ok(Worker {
            builder: self,
            asks: asks(),
            flight,
        })
    }
}

impl Services {
    fn check(&self) -> Result<(), Error> {
        #[cfg(feature = "aws")]
        let (kinesis, dynamodb) = (self.kinesis.is_some(), self.dynamodb.is_some());
        #[cfg(not(feature = "aws"))]
        let (kinesis, dynamodb) = (false, false);
        if self.stream.is_none() && !kinesis {
            return Err(Error::Missing {
                what: "a Kinesis client",
                call: ".kinesis(client)",
            });
        }
        if self.table.is_none() && !dynamodb {
            return Err(Error::Missing {
                what: "a DynamoDB client",
                call: ".dynamodb(client)",
            });
        }
        #[cfg(feature = "aws")]
        self.check_regions()?;
        Ok(())
    }

    /// Without a region, every request would fail before it is sent.
    #[cfg(feature = "aws")]
    fn check_regions(&self) -> Result<(), Error> {
        let kinesis = self.kinesis.as_ref().filter(|_| self.stream.is_none());
        if kinesis.is_some_and(|client| client.config().region().is_none()) {
            return Err(Error::NoRegion { service: "Kinesis" });
        }
        let dynamodb = self.dynamodb.as_ref().filter(|_| self.table.is_none());
        if dynamodb.is_some_and(|client| client.config().region().is_none()) {
            return Err(Error::NoRegion { service: "DynamoDB" });
        }
        Ok(())
    }

    #[cfg_attr(not(feature = "aws"), allow(unused_variables))]
    fn ports(
        self,
        config: &Config,
        dialect: SharedDialect,
        runtime: &Arc<dyn Runtime>,
        store: &Store,
    ) -> (Option<TablePort>, Option<StreamPort>) {
        let table = self.table;
        let stream = self.stream.map(|make| make(store.clone()));
        #[cfg(feature = "aws")]
        let table = table.or_else(|| {
            let client = self.dynamodb?;
            let table = crate::aws::DynamoTable::new(&client, runtime, config);
            Some(Arc::new(table.with_dialect(dialect)))
        });
        #[cfg(feature = "aws")]
        let stream = stream.or_else(|| {
            let client = self.kinesis?;
            Some(Arc::new(crate::aws::KinesisStream::new(
                &client,
                runtime,
                config,
                store.clone(),
            )))
        });
        (table, stream)
    }
}

impl Worker {
    /// Begins a worker.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A handle to shut this worker down, or to look into it, from elsewhere.
    pub fn control(&self) -> Control {
        Control {
            asks: self.asks.0.clone(),
            flight: self.flight.clone(),
        }
    }

    /// Consumes the stream until [`Control::shutdown`] is called.
    ///
    /// Handlers run on the tokio runtime that this is called in. What keeps the leases runs on a thread of its own (see
    /// [`Builder::coordination_on_caller`]).
    ///
    /// Dropping the future stops everything at once: handlers are dropped and leases are left to expire.
    ///
    /// # Errors
    /// [`Error::Fatal`] if the worker cannot go on: its table or stream is missing, or it is not allowed to use them.
    /// [`Error::Unclean`] if it was shut down and could not give up all its leases, or stopped handlers before the end.
    ///
    /// # Panics
    /// If [`Builder::on_notice`] panics, with its panic.
    pub async fn run<H: Handler>(mut self, handler: H) -> Result<(), Error> {
        if let Some(runtime) = self.builder.runtime.take() {
            return self.serve(handler, runtime.clone(), runtime).await;
        }
        let caller = default_runtime()?;
        if self.builder.on_caller {
            return self.serve(handler, caller.clone(), caller).await;
        }
        self.serve_on_own_thread(handler, caller).await
    }

    #[cfg(feature = "tokio-runtime")]
    async fn serve_on_own_thread<H: Handler>(
        self,
        handler: H,
        handlers: Arc<dyn Runtime>,
    ) -> Result<(), Error> {
        crate::own_thread::run(move || async move {
            let runtime = default_runtime()?;
            self.serve(handler, runtime, handlers).await
        })
        .await
        .map_err(Error::Thread)?
    }

    #[cfg(not(feature = "tokio-runtime"))]
    async fn serve_on_own_thread<H: Handler>(self, _: H, _: Arc<dyn Runtime>) -> Result<(), Error> {
        Err(Error::NoRuntime)
    }

    /// Keeps the leases on one runtime and runs handlers on another, which may be the same.
    async fn serve<H: Handler>(
        self,
        handler: H,
        runtime: Arc<dyn Runtime>,
        handlers: Arc<dyn Runtime>,
    ) -> Result<(), Error> {
        let Worker {
            builder,
            asks: (sender, asks),
            flight,
        } = self;
        let sink = match (builder.sink, builder.trace_file) {
            (None, Some(path)) => match FileSink::create(&path, TRACE_BACKLOG) {
                Ok(file) => Some(Box::new(file) as Box<dyn Sink>),
                Err(source) => return Err(Error::Trace { path, source }),
            },
            (sink, _) => sink,
        };
        let store = Store::new(builder.misplaced, runtime.clone());
        let fences = Fences::default();
        let (table, stream) = builder
            .services
            .ports(&builder.config, builder.dialect, &runtime, &store);
        let (Some(table), Some(stream)) = (table, stream) else {
            return Err(Error::Missing {
                what: "a client for the stream and one for the table",
                call: ".kinesis(client).dynamodb(client)",
            });
        };
        let (incarnation, seed) = builder
            .identity
            .unwrap_or_else(|| (runtime.entropy(), runtime.entropy()));
        let boot = Boot {
            worker: builder.worker_id.unwrap_or_else(|| "worker".to_owned()),
            incarnation,
            seed,
            config: builder.config,
        };
        let worker = WorkerId::of_life(&boot.worker, incarnation);
        let meter = Meter::new(&boot.config.table, &boot.config.stream, worker.as_str());
        let polls = Polls::new(runtime.clone());
        let consumer = Consumer::new(
            Arc::new(handler),
            runtime.clone(),
            store.clone(),
            fences.clone(),
            sender,
            meter.clone(),
            polls.clone(),
        );
        let ports = Ports {
            table,
            stream,
            consumer: Arc::new(consumer),
        };
        let recorder = Recorder::new(sink, flight.clone());
        let observer = Observer::new(fences, builder.observer).with_metrics(meter.clone(), store);
        // A runtime cannot be late for itself.
        let pulse = (!Arc::ptr_eq(&runtime, &handlers)).then(|| {
            let lease = boot.config.lease_duration;
            let pulse = Pulse::new(handlers.clone(), runtime.clone(), polls, meter, lease);
            runtime.spawn(Box::pin(pulse.feel()))
        });
        let result = Driver::new(Engine::new(), runtime, ports, asks, recorder, observer)
            .with_handlers_on(handlers)
            .run(boot)
            .await;
        if let Some(pulse) = pulse {
            pulse.abort();
        }
        if let (Err(Error::Fatal(_)), Some(path), Some(flight)) = (&result, &builder.dump_on_fatal, &flight) {
            match File::create(path).and_then(|file| flight.dump(io::BufWriter::new(file))) {
                Ok(()) => tracing::info!(?path, "the flight recorder was dumped"),
                Err(error) => tracing::error!(?path, %error, "the flight recorder cannot be dumped"),
            }
        }
        result
    }

    /// As [`run`](Worker::run), with a closure that is called for every batch.
    ///
    /// # Errors
    /// As [`run`](Worker::run).
    pub async fn run_fn<F, Fut, E>(self, process: F) -> Result<(), Error>
    where
        F: Fn(Batch) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        self.run(HandlerFn::new(process)).await
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

/// A handle on a worker. Clones are handles on the same.
#[derive(Clone, Debug)]
pub struct Control {
    asks: AskSender,
    flight: Option<Flight>,
}

impl Control {
    /// Asks the worker to stop: handlers finish what they have, progress is made durable, and leases are given up.
    /// [`Worker::run`] returns when that is done, or with [`Error::Unclean`] when it took longer than `shutdown_timeout`.
    /// Asking again changes nothing.
    pub fn shutdown(&self) {
        self.asks.shutdown();
    }

    /// Writes what the flight recorder holds, as a trace. Writes nothing if it is off.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn dump_flight(&self, to: impl Write) -> io::Result<()> {
        match &self.flight {
            Some(flight) => flight.dump(to),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "worker_tests.rs"]
mod tests;
