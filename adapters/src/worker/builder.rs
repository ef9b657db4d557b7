//! What a worker is made of: one setter for each thing.

use super::Worker;
use super::parts::{
    Application, DynamoDb, Given, Kinesis, Named, NoApplication, NoDynamoDb, NoKinesis, NoStream, Stream,
};
use super::services::{Directory, SharedFormat, StreamSource, TableSource};
use crate::dead_letter::{AnyDeadLetter, DeadLetter, FailurePolicy, check_sink};
use crate::error::Error;
use crate::observe::NoticeFn;
use crate::ports::{StreamPort, TablePort};
use crate::recorder::{Sink, TraceFolder};
use crate::runtime::Runtime;
use crate::store::Store;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::config::{Config, InitialPosition, Streams};
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::notice::Notice;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// How many inputs the flight recorder keeps unless told otherwise, and how many bytes of text.
const FLIGHT: (usize, usize) = (4_096, 4 << 20);

/// Collects what a worker needs. Begins with [`Worker::builder`].
///
/// Four parts have no default, and the setters are called in any order: [`kinesis`](Builder::kinesis),
/// [`dynamodb`](Builder::dynamodb), [`stream`](Builder::stream) and [`application`](Builder::application). The type of a builder tells
/// which of them it has (see [`parts`](crate::parts)). A program that forgets one does not compile:
///
/// ```compile_fail,E0277
/// # fn example(dynamodb: leasehold::aws::dynamodb::Client) {
/// // Without `.kinesis(client)`.
/// let worker = leasehold::Worker::builder().dynamodb(dynamodb).stream("orders").application("billing").build();
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # fn example(kinesis: leasehold::aws::kinesis::Client) {
/// // Without `.dynamodb(client)`.
/// let worker = leasehold::Worker::builder().kinesis(kinesis).stream("orders").application("billing").build();
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client) {
/// // Without `.stream(name)`.
/// let worker = leasehold::Worker::builder().kinesis(kinesis).dynamodb(dynamodb).application("billing").build();
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client) {
/// // Without `.application(name)`.
/// let worker = leasehold::Worker::builder().kinesis(kinesis).dynamodb(dynamodb).stream("orders").build();
/// # }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<K = NoKinesis, D = NoDynamoDb, S = NoStream, A = NoApplication> {
    kinesis: K,
    dynamodb: D,
    stream: S,
    application: A,
    settings: Settings,
}

/// Where the full trace is written to.
pub(super) enum TraceTo {
    File(PathBuf),
    Folder(TraceFolder),
}

/// A builder that has every part that a worker needs.
pub type CompleteBuilder = Builder<Kinesis, DynamoDb, Stream, Application>;

/// What a worker is made of beside its four parts: everything with a default.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) format: SharedFormat,
    pub(super) worker_id: Option<String>,
    pub(super) runtime: Option<Arc<dyn Runtime>>,
    pub(super) on_caller: bool,
    pub(super) identity: Option<(u64, u64)>,
    pub(super) misplaced: Misplaced,
    pub(super) policy: Option<FailurePolicy>,
    pub(super) dead_letters: Option<Arc<dyn AnyDeadLetter>>,
    pub(super) observer: Option<NoticeFn>,
    pub(super) sink: Option<Box<dyn Sink>>,
    pub(super) trace: Option<TraceTo>,
    pub(super) dump_on_fatal: Option<PathBuf>,
    pub(super) flight: Option<(usize, usize)>,
    /// How each of several streams is reached.
    pub(super) directory: Option<Directory>,
}

impl<K, D, S, A> fmt::Debug for Builder<K, D, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("config", &self.settings.config).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            kinesis: NoKinesis::default(),
            dynamodb: NoDynamoDb::default(),
            stream: NoStream::default(),
            application: NoApplication::default(),
            settings: Settings::default(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: Config::default(),
            format: Arc::new(Kcl),
            worker_id: None,
            runtime: None,
            on_caller: false,
            identity: None,
            misplaced: Misplaced::default(),
            policy: None,
            dead_letters: None,
            observer: None,
            sink: None,
            trace: None,
            dump_on_fatal: None,
            flight: Some(FLIGHT),
            directory: None,
        }
    }
}

/// The four parts.
impl<K, D, S, A> Builder<K, D, S, A> {
    /// The Kinesis client. Its retries are switched off for this worker, which does its own. It may be used elsewhere,
    /// too: the worker makes connections of its own. It has no default.
    #[cfg(feature = "aws")]
    pub fn kinesis(self, client: aws_sdk_kinesis::Client) -> Builder<Kinesis, D, S, A> {
        self.reading(StreamSource::Client(client))
    }

    /// The DynamoDB client. Its retries are switched off for this worker, which does its own. It may be used elsewhere,
    /// too: the worker makes connections of its own. It has no default.
    #[cfg(feature = "aws")]
    pub fn dynamodb(self, client: aws_sdk_dynamodb::Client) -> Builder<K, DynamoDb, S, A> {
        self.keeping(TableSource::Client(client))
    }

    /// Something else than DynamoDB to keep the leases in. For tests of this project: the types are in `internals`.
    #[doc(hidden)]
    pub fn table_port(self, port: TablePort) -> Builder<K, DynamoDb, S, A> {
        self.keeping(TableSource::Port(port))
    }

    /// Something else than Kinesis to read from. It keeps its records in the store it is made with. For tests of this project:
    /// the types are in `internals`.
    #[doc(hidden)]
    pub fn stream_port(
        self, port: impl FnOnce(Store) -> StreamPort + Send + 'static,
    ) -> Builder<Kinesis, D, S, A> {
        self.reading(StreamSource::Port(Box::new(port)))
    }

    fn reading(self, from: StreamSource) -> Builder<Kinesis, D, S, A> {
        Builder {
            kinesis: Kinesis(from),
            dynamodb: self.dynamodb,
            stream: self.stream,
            application: self.application,
            settings: self.settings,
        }
    }

    fn keeping(self, leases: TableSource) -> Builder<K, DynamoDb, S, A> {
        Builder {
            kinesis: self.kinesis,
            dynamodb: DynamoDb(leases),
            stream: self.stream,
            application: self.application,
            settings: self.settings,
        }
    }

    /// The stream's name. It has no default. It takes the place of the one that [`config`](Builder::config) may set.
    pub fn stream(self, name: impl Into<String>) -> Builder<K, D, Stream, A> {
        self.named(Named::One(name.into()))
    }

    /// The streams, for an application that reads several: KCL's multi-stream mode. It takes the place of
    /// [`stream`](Builder::stream).
    ///
    /// The leases of all streams stand in one table, under keys `<account>:<stream>:<creation time>:<shard id>`, and are shared out
    /// together. Within such a worker a shard's name is the key of its lease, so that shards of two streams never have the same name:
    /// [`ShardInfo::stream`](crate::ShardInfo::stream) and [`ShardInfo::shard_id`](crate::ShardInfo::shard_id) give its parts.
    /// [`Control::add_stream`](crate::Control::add_stream) and [`Control::remove_stream`](crate::Control::remove_stream) change the
    /// streams of a worker that runs. A stream that is missing, deleted or made anew is told with the notice
    /// [`StreamNews::Lost`](crate::StreamNews::Lost), and the others are read; the worker ends when it has none left.
    ///
    /// A table that holds leases of one stream cannot be used for several, as with KCL: leases of the other kind are left alone.
    ///
    /// ```no_run
    /// # async fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// use leasehold::{StreamRef, Worker};
    ///
    /// let mut streams = Vec::new();
    /// for name in ["orders", "arn:aws:kinesis:eu-west-1:210987654321:stream/returns"] {
    ///     streams.push(StreamRef::find(&kinesis, name).await?);
    /// }
    /// let worker = Worker::builder()
    ///     .kinesis(kinesis)
    ///     .dynamodb(dynamodb)
    ///     .streams(streams)
    ///     .application("billing")
    ///     .build()?;
    /// # let _ = worker;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "aws")]
    pub fn streams(
        self, streams: impl IntoIterator<Item = crate::aws::stream_ref::StreamRef>,
    ) -> Builder<K, D, Stream, A> {
        self.named(Named::Several(streams.into_iter().collect()))
    }

    fn named(self, named: Named) -> Builder<K, D, Stream, A> {
        Builder {
            kinesis: self.kinesis,
            dynamodb: self.dynamodb,
            stream: Stream(named),
            application: self.application,
            settings: self.settings,
        }
    }

    /// The application's name, which is also the name of its lease table, or what the names of its tables begin with, if the
    /// format has more than one. Workers with the same name share the shards. It has no default. It takes the place of the table
    /// that [`config`](Builder::config) may set.
    pub fn application(self, name: impl Into<String>) -> Builder<K, D, S, Application> {
        Builder {
            kinesis: self.kinesis,
            dynamodb: self.dynamodb,
            stream: self.stream,
            application: Application(name.into()),
            settings: self.settings,
        }
    }
}

/// What has a default.
impl<K, D, S, A> Builder<K, D, S, A> {
    /// How rows of the lease table are spelled, and what follows from that; by default as by KCL for Java
    /// ([`Kcl`]). Where workers know each other from tables of their own, as kinsumer's do, leases last for five of the checks
    /// of [`Config::members`](leasehold_engine::config::Config::members); change both together.
    pub fn format(mut self, format: impl LeaseFormat + Send + Sync + 'static) -> Self {
        self.settings.config = self.settings.config.with_policies(format.policies());
        if format.membership().is_some() {
            let expiry = self.settings.config.members().expiry();
            self.settings.config = self.settings.config.with_lease_duration(expiry);
        }
        self.settings.format = Arc::new(format);
        self
    }

    /// Where shards without a lease are started; by default at the oldest record. Leases that the table holds already go on from
    /// their checkpoints, which is said in a warning if this is not the default.
    pub fn initial_position(mut self, position: InitialPosition) -> Self {
        self.settings.config = self.settings.config.with_initial_position(position);
        self
    }

    /// A name for this worker, for people; by default `worker`. It need not be unique, unless the option `unique_names` says that it is. It has 1 to 1,024 bytes and no control characters, as
    /// it is written into the table and shown to people who look at it; [`Builder::build`] refuses another one.
    pub fn worker_id(mut self, id: impl Into<String>) -> Self {
        self.settings.worker_id = Some(id.into());
        self
    }

    /// Changes any option: `change` gets the options as they are, and returns them as they are to be.
    ///
    /// ```
    /// # use leasehold::Worker;
    /// use std::time::Duration;
    ///
    /// let builder = Worker::builder().config(|config| {
    ///     config
    ///         .with_lease_duration(Duration::from_secs(20))
    ///         .with_max_leases(8)
    /// });
    /// ```
    ///
    /// [`Builder::build`] checks every value.
    pub fn config(mut self, change: impl FnOnce(Config) -> Config) -> Self {
        self.settings.config = change(self.settings.config);
        self
    }

    /// What to do with an aggregated record that holds records of another shard, as after a split; by default [`Misplaced::Drop`]: the
    /// records of this shard are handed over, and the others are dropped, since a Kinesis Producer Library sends those again. (KCL
    /// drops all of them, which is [`Misplaced::DropWhole`] and loses records.) Choose [`Misplaced::Keep`] if some producer does not
    /// look at the shard to which its aggregated record went. While the hash keys of a shard are not known, all records are handed over.
    pub fn misplaced_aggregates(mut self, misplaced: Misplaced) -> Self {
        self.settings.misplaced = misplaced;
        self
    }

    /// What happens when the handler fails again and again with the same record; by default [`FailurePolicy::retry`]. It takes the
    /// place of the options [`Config::failure_attempts`] and [`Config::failure_action`].
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.settings.policy = Some(policy);
        self
    }

    /// Where records go that are set aside, with [`FailurePolicy::set_aside`] or [`Misplaced::DeadLetter`]; by default nowhere: an
    /// event is all that is left of a record that is set aside by the policy.
    ///
    /// ```
    /// use leasehold::{DeadLetterFile, FailurePolicy, Worker};
    ///
    /// # fn example() -> std::io::Result<()> {
    /// let builder = Worker::builder()
    ///     .failure_policy(FailurePolicy::set_aside(3))
    ///     .dead_letter(DeadLetterFile::open("/var/lib/billing/dead-letters.jsonl")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dead_letter(mut self, sink: impl DeadLetter) -> Self {
        self.settings.dead_letters = Some(Arc::new(sink));
        self
    }

    /// A runtime for everything: handlers, leases and requests. By default, handlers run on the tokio runtime that
    /// [`Worker::run`] is called in, and the rest on a thread of its own.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.settings.runtime = Some(runtime);
        self
    }

    /// Whether leases are kept, and requests made, on the tokio runtime that [`Worker::run`] is called in; by default
    /// `false`: on a thread named `leasehold`, with a runtime of its own. Then handlers that block the threads of their
    /// runtime delay each other only, and a warning names them. With `true` they delay renewals too, and leases are lost.
    ///
    /// Say `true` where a program may not start threads, and in tests whose time is paused: it does not pause on another
    /// thread.
    pub fn coordination_on_caller(mut self, on_caller: bool) -> Self {
        self.settings.on_caller = on_caller;
        self
    }

    /// Fixes the incarnation and the seed, which are drawn from entropy otherwise. For simulations: no two lives of
    /// one worker id may share an incarnation.
    pub fn identity(mut self, incarnation: u64, seed: u64) -> Self {
        self.settings.identity = Some((incarnation, seed));
        self
    }

    /// Called with everything that happens to the worker, and why; by default nothing is called. It must not block: leases are
    /// not renewed meanwhile.
    pub fn on_notice(mut self, each: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.settings.observer = Some(Box::new(each));
        self
    }

    /// Writes a full trace to a file, which `leasehold replay` reads; by default none is written. An earlier file of that name is
    /// replaced. A trace holds every input of the engine and no record data but the texts of handlers' errors. What the disk is too
    /// slow for is left out, and recorded as a gap. On Unix the file is created with the mode 0600; an earlier one keeps its mode.
    pub fn trace_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.trace = Some(TraceTo::File(path.into()));
        self
    }

    /// Writes a full trace to a folder, in files of a limited size, with a limit for all of them: for a worker that runs for months.
    /// It takes the place of a [`trace_file`](Builder::trace_file), and the other way round. [`TraceFolder`] says what happens at
    /// the limit.
    ///
    /// ```
    /// use leasehold::{TraceFolder, Worker};
    ///
    /// let folder = TraceFolder::new("/var/lib/billing/trace").with_limit_bytes(1 << 30);
    /// let builder = Worker::builder().trace_folder(folder);
    /// ```
    pub fn trace_folder(mut self, folder: TraceFolder) -> Self {
        self.settings.trace = Some(TraceTo::Folder(folder));
        self
    }

    /// Writes a full trace to a sink of the application's own. It takes the place of a [`trace_file`](Builder::trace_file) and of a
    /// [`trace_folder`](Builder::trace_folder).
    pub fn trace_sink(mut self, sink: impl Sink + 'static) -> Self {
        self.settings.sink = Some(Box::new(sink));
        self
    }

    /// How many inputs, and how many bytes of text, the flight recorder keeps in memory; by default 4,096 and 4 MiB. It is the
    /// end of the full trace, for [`Control::dump_flight`](crate::Control::dump_flight). With 0 for either it is off, and costs
    /// nothing.
    pub fn flight_recorder(mut self, inputs: usize, bytes: usize) -> Self {
        self.settings.flight = (inputs > 0 && bytes > 0).then_some((inputs, bytes));
        self
    }

    /// Where the flight recorder is dumped if the worker cannot go on; by default nowhere. An earlier file of that name is
    /// replaced, and keeps its mode; on Unix a new one is created with 0600.
    pub fn dump_on_fatal(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.dump_on_fatal = Some(path.into());
        self
    }

    /// Checks that everything can work.
    ///
    /// # Errors
    /// What is wrong, and what to do about it: [`Error::Config`] for an option or a name outside of its range, and
    /// [`Error::NoRegion`] for a client without a region.
    pub fn build(self) -> Result<Worker, Error>
    where
        K: Given<Kinesis>,
        D: Given<DynamoDb>,
        S: Given<Stream>,
        A: Given<Application>,
    {
        let mut settings = self.settings;
        let (Stream(named), Application(table)) = (self.stream.given(), self.application.given());
        settings.config = settings.config.with_table(table);
        match named {
            Named::One(stream) => {
                settings.config = settings.config.with_stream(stream).with_streams(Streams::default());
            }
            #[cfg(feature = "aws")]
            Named::Several(streams) => {
                let sources: Streams = streams.iter().map(|stream| stream.source.clone()).collect();
                if sources.is_empty() {
                    return Err(Error::NoStreams);
                }
                settings.config = settings.config.with_stream("").with_streams(sources);
                settings.directory = Some(Directory::of(&streams));
            }
        }
        if let Some(policy) = settings.policy {
            policy.check()?;
            settings.config = policy.apply(settings.config);
        }
        if settings.runtime.is_none() {
            settings.config = crate::memory::with_budget(settings.config);
        }
        settings.config.check()?;
        settings.config.check_given_worker_id(settings.worker_id.as_deref())?;
        check_sink(&settings.config, settings.misplaced, settings.dead_letters.is_some())?;
        let (Kinesis(stream), DynamoDb(table)) = (self.kinesis.given(), self.dynamodb.given());
        #[cfg(feature = "aws")]
        if settings.directory.is_some() && stream.client().is_none() {
            return Err(Error::NoStreams);
        }
        stream.check()?;
        table.check()?;
        Ok(Worker::of(settings, table, stream))
    }
}
