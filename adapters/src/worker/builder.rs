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
/// [`dynamodb`](Builder::dynamodb), [`stream`](Builder::stream) and [`application`](Builder::application). The type
/// of a builder names the given parts (see [`parts`](crate::parts)). A program without one of the parts does not
/// compile:
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

/// A builder with all four parts.
pub type CompleteBuilder = Builder<Kinesis, DynamoDb, Stream, Application>;

/// All parts of a worker with a default.
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
    /// The Kinesis client. The worker switches the client's retries off, and retries by itself. The program may use
    /// the client too: the worker makes separate connections. Required: no default.
    #[cfg(feature = "aws")]
    pub fn kinesis(self, client: aws_sdk_kinesis::Client) -> Builder<Kinesis, D, S, A> {
        self.reading(StreamSource::Client(client))
    }

    /// The DynamoDB client. The worker switches the client's retries off, and retries by itself. The program may use
    /// the client too: the worker makes separate connections. Required: no default.
    #[cfg(feature = "aws")]
    pub fn dynamodb(self, client: aws_sdk_dynamodb::Client) -> Builder<K, DynamoDb, S, A> {
        self.keeping(TableSource::Client(client))
    }

    /// A lease table other than DynamoDB. For tests of this project: the types are in `internals`.
    #[doc(hidden)]
    pub fn table_port(self, port: TablePort) -> Builder<K, DynamoDb, S, A> {
        self.keeping(TableSource::Port(port))
    }

    /// A source other than Kinesis. The port keeps its records in the store passed to `port`. For tests of this
    /// project: the types are in `internals`.
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

    /// The stream's name. Required: no default. Replaces a name set by [`config`](Builder::config).
    pub fn stream(self, name: impl Into<String>) -> Builder<K, D, Stream, A> {
        self.named(Named::One(name.into()))
    }

    /// The streams, for an application that reads several: KCL's multi-stream mode. It takes the place of
    /// [`stream`](Builder::stream).
    ///
    /// The leases of all streams stand in one table, under keys `<account>:<stream>:<creation time>:<shard id>`, and
    /// are shared out together. Within a worker of several streams a shard's name is the key of its lease: shards of
    /// two streams never have the same name. [`ShardInfo::stream`](crate::ShardInfo::stream) and
    /// [`ShardInfo::shard_id`](crate::ShardInfo::shard_id) give the name's parts.
    /// [`Control::add_stream`](crate::Control::add_stream) and
    /// [`Control::remove_stream`](crate::Control::remove_stream) change the streams of a running worker. The notice
    /// [`StreamNews::Lost`](crate::StreamNews::Lost) names a stream that is missing, deleted or made anew. The worker
    /// goes on with its remaining streams, and ends without any.
    ///
    /// A table with leases of one stream cannot be used for several, as with KCL: leases of the wrong kind are left
    /// alone.
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

    /// The application's name: also the name of the lease table, or the beginning of the tables' names in a format
    /// with several tables. Workers of the same name share the shards. Required: no default. Replaces a table set by
    /// [`config`](Builder::config).
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
    /// The spelling of rows in the lease table, and the policies of the format; by default the format of KCL for Java
    /// ([`Kcl`]). In formats with a table of members, as kinsumer's, leases last for five of the checks of
    /// [`Config::members`](leasehold_engine::config::Config::members); change both together.
    pub fn format(mut self, format: impl LeaseFormat + Send + Sync + 'static) -> Self {
        self.settings.config = self.settings.config.with_policies(format.policies());
        if format.membership().is_some() {
            let expiry = self.settings.config.members().expiry();
            self.settings.config = self.settings.config.with_lease_duration(expiry);
        }
        self.settings.format = Arc::new(format);
        self
    }

    /// The start of shards without a lease; by default the oldest record. Leases already in the table go on from
    /// their checkpoints. A warning says this if the position is not the default.
    pub fn initial_position(mut self, position: InitialPosition) -> Self {
        self.settings.config = self.settings.config.with_initial_position(position);
        self
    }

    /// A readable name for this worker; by default `worker`. Two workers may share a name, unless the option
    /// `unique_names` is on. A name has 1 to 1,024 bytes and no control characters, as people read the name in the
    /// table and in logs; [`Builder::build`] refuses all other names.
    pub fn worker_id(mut self, id: impl Into<String>) -> Self {
        self.settings.worker_id = Some(id.into());
        self
    }

    /// Changes any option: `change` gets the present options, and returns the new options.
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

    /// The treatment of an aggregated record that holds records of another shard, as after a split; by default
    /// [`Misplaced::Drop`]: the records of this shard are handed over, and the foreign records are dropped, since a
    /// Kinesis Producer Library sends them again. (KCL drops all records, as with [`Misplaced::DropWhole`], and loses
    /// records.) Choose [`Misplaced::Keep`] if some producer ignores the shard of its aggregated record. While the
    /// hash keys of a shard are unknown, all records are handed over.
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

    /// The sink for records set aside by [`FailurePolicy::set_aside`] or [`Misplaced::DeadLetter`]; by default none:
    /// an event is then the only remnant of a record set aside by the policy.
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

    /// A runtime for everything: handlers, leases and requests. By default, handlers run on the caller's tokio
    /// runtime of [`Worker::run`], and the rest on a separate thread.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.settings.runtime = Some(runtime);
        self
    }

    /// Whether leases are kept, and requests made, on the caller's tokio runtime of [`Worker::run`]; by default
    /// `false`: on a thread named `leasehold`, with a separate runtime. With `false`, handlers that block their
    /// threads delay only other handlers, and a warning names the blocking handlers. With `true`, blocking handlers
    /// also delay renewals, and leases are lost.
    ///
    /// Say `true` where a program may not start threads, and in tests whose time is paused: it does not pause on another
    /// thread.
    pub fn coordination_on_caller(mut self, on_caller: bool) -> Self {
        self.settings.on_caller = on_caller;
        self
    }

    /// Fixes the incarnation and the seed, otherwise drawn from entropy. For simulations: no two lives of one worker
    /// id may share an incarnation.
    pub fn identity(mut self, incarnation: u64, seed: u64) -> Self {
        self.settings.identity = Some((incarnation, seed));
        self
    }

    /// Called with every event of the worker and its reason; by default nothing is called. The function must not
    /// block: no lease is renewed during a call.
    pub fn on_notice(mut self, each: impl FnMut(&Notice) + Send + 'static) -> Self {
        self.settings.observer = Some(Box::new(each));
        self
    }

    /// Writes a full trace to a file for `leasehold replay`; by default no trace is written. An earlier file of that
    /// name is replaced. A trace holds every input of the engine and no record data but the texts of handlers'
    /// errors. Lines too fast for the disk are left out, and recorded as a gap. On Unix the file is created with the
    /// mode 0600; an earlier file keeps its mode.
    pub fn trace_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.trace = Some(TraceTo::File(path.into()));
        self
    }

    /// Writes a full trace to a folder, in files of a limited size, with a limit for all files: for a worker that
    /// runs for months. A folder replaces a [`trace_file`](Builder::trace_file), and the reverse. [`TraceFolder`]
    /// describes the effect of the limit.
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

    /// The number of inputs, and of bytes of text, in the flight recorder's memory; by default 4,096 and 4 MiB. The
    /// flight recorder holds the end of the full trace, for [`Control::dump_flight`](crate::Control::dump_flight).
    /// With 0 for either, the flight recorder is off and costs nothing.
    pub fn flight_recorder(mut self, inputs: usize, bytes: usize) -> Self {
        self.settings.flight = (inputs > 0 && bytes > 0).then_some((inputs, bytes));
        self
    }

    /// The file for the flight recorder's dump if the worker cannot go on; by default none. An earlier file of that
    /// name is replaced, and keeps its mode; on Unix a new file is created with 0600.
    pub fn dump_on_fatal(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.dump_on_fatal = Some(path.into());
        self
    }

    /// Checks that everything can work.
    ///
    /// # Errors
    /// The error and its remedy: [`Error::Config`] for an option or a name outside of its range, and
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
