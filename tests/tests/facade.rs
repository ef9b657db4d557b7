//! The crate `leasehold` exports everything for applications: this file names no other crate of the project.

use leasehold::admin::{
    Admin, AdminError, Deed, Deregistered, Done, Plan, RegisteredConsumer, Step, Stepped, To, View, Which,
    release,
};
use leasehold::format::{Format, Kcl, LeaseFormat, Policies};
use leasehold::parts::{DynamoDb, Kinesis};
use leasehold::runtime::{BoxFuture, Runtime, Sleep, Task, TokioRuntime};
use leasehold::{
    Ack, AssignBy, BadConfig, BadOption, BadSequenceNumber, BadStream, BadStreamId, Batch, BatchIter,
    Builder, Bytes, Checkpoint, Choice, CompleteBuilder, Config, Control, DeadLetter, DeadLetterChannel,
    DeadLetterFile, DeadLetterStream, EndReason, Error, FailureAction, FailurePolicy, Fatal, Fence,
    FencingToken, FleetConfig, Flush, FlushReason, Handler, HandlerFn, HashKey, HashRange, Health,
    InitialPosition, LeaseKey, LeaseRow, LeaseStatus, Left, Letter, ListReason, LossReason, MembersConfig,
    MigrationNews, Misplaced, Mono, NotDurable, NotStored, NotTaken, Notice, OpId, OptionInfo, Phase,
    Position, ReadMode, ReaderConfig, Receipt, Record, Report, Rewind, RuntimeNews, SequenceNumber, Severity,
    ShardHandler, ShardId, ShardInfo, ShardStream, Span, Stall, Stalled, Status, StopSummary, StreamId,
    StreamNews, StreamRef, TakeReason, TraceFolder, TraceSink, Wall, Worker, WorkerId, dead_letter_channel,
    on_signal, shutdown_on_signal,
};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a handler may see of a record.
#[expect(dead_code, reason = "the types are what is tested")]
struct Seen {
    shard: ShardId,
    lease: LeaseKey,
    token: FencingToken,
    position: Position,
    arrival: Option<Wall>,
    hash_key: Option<HashKey>,
    behind: Span,
}

/// A handler that keeps all of that.
#[derive(Default)]
struct Keep(Mutex<Vec<Seen>>);

impl Handler for Keep {
    type Error = Infallible;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Infallible> {
        let _: &Checkpoint = &shard.from;
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Infallible> {
        let shard = batch.shard();
        let mut kept = self.0.lock().unwrap();
        kept.extend(batch.records().iter().map(|record: &Record| {
            let _: SequenceNumber = record.position.sequence;
            Seen {
                shard: shard.shard.clone(),
                lease: shard.lease.clone(),
                token: shard.token,
                position: record.position,
                arrival: record.arrival,
                hash_key: record.explicit_hash_key,
                behind: batch.behind(),
            }
        }));
        Ok(Ack::All)
    }

    async fn close(&self, _: &ShardInfo, reason: EndReason) {
        let _: EndReason = reason;
    }
}

#[test]
fn options_and_handlers_are_written_with_this_crate_alone() {
    let config = Config::default()
        .with_table("billing")
        .with_stream("orders")
        .with_initial_position(InitialPosition::AtTimestamp(Wall(1_767_225_600_000)))
        .with_lease_duration(Span::from_secs(20))
        .with_reader(
            ReaderConfig::default().with_idle_interval(Span::from_millis(500)).with_mode(ReadMode::Auto),
        )
        .with_members(MembersConfig::default())
        .with_fleet(FleetConfig::default().with_assign_by(AssignBy::Number));
    assert_eq!(config.check(), Ok(()));
    assert_eq!(WorkerId::from("worker:1f").to_string(), "worker:1f");
    fn is_handler(_: impl Handler) {}
    is_handler(Keep::default());
}

#[test]
fn options_are_listed_and_their_errors_name_them() {
    let bad: BadConfig = Config::default().with_table("a").check().unwrap_err();
    assert_eq!(bad.option(), "table");
    let option: &OptionInfo = Config::options()
        .find(|option| option.name == "reader.max_records")
        .expect("an option of the reader");
    assert_eq!((option.default, option.range), ("10000", "1 to 10000"));
    let config = Config::default().with_lease_duration(Duration::from_secs(20));
    assert_eq!(config.lease_duration(), Span::from_secs(20));
}

/// The parts of a notice open to programs.
fn look(notice: &Notice) -> Option<(LeaseKey, String)> {
    match notice {
        Notice::Took { lease, why, token } => {
            let _: &FencingToken = token;
            match why {
                TakeReason::Expired { owner, idle } => {
                    let (_, _): (&WorkerId, &Span) = (owner, idle);
                    Some((lease.clone(), owner.to_string()))
                }
                _ => Some((lease.clone(), String::new())),
            }
        }
        Notice::Lost { lease, why: LossReason::Taken { by, row } } => {
            let _: &Checkpoint = &row.checkpoint;
            Some((lease.clone(), format!("{by:?}")))
        }
        Notice::Listing { why } => {
            let _: &ListReason = why;
            None
        }
        Notice::Stalled { lease, why, .. } => {
            let why: &Stall = why;
            Some((lease.clone(), why.to_string()))
        }
        Notice::Chose(choice) => {
            let _: &Choice = choice;
            None
        }
        Notice::Stream(StreamNews::Lost { stream, why }) => {
            let _: &Fatal = why;
            Some((stream.as_str().into(), why.to_string()))
        }
        Notice::Migration(news) => {
            let _: &MigrationNews = news;
            None
        }
        Notice::Runtime(RuntimeNews::LetsGo { idle, leases }) => {
            let (_, _): (&Span, &u32) = (idle, leases);
            None
        }
        _ => notice.lease().map(|lease| (lease.clone(), notice.name().to_owned())),
    }
}

/// Streams of a worker that reads several.
#[test]
fn several_streams_are_named_with_this_crate_alone() {
    let id: Result<StreamId, BadStreamId> = "123456789012:orders:1700000000".parse();
    let named = StreamRef::new(id.expect("an identifier"));
    let arn: Result<StreamRef, BadStream> =
        StreamRef::from_arn("arn:aws:kinesis:eu-west-1:123456789012:stream/returns", 1_700_000_000);
    let built =
        with_clients(Worker::builder()).streams([named, arn.expect("an ARN")]).application("billing").build();
    assert!(built.is_ok(), "{built:?}");
}

/// Adds clients to a builder at any stage.
fn with_clients<K, D, S, A>(builder: Builder<K, D, S, A>) -> Builder<Kinesis, DynamoDb, S, A> {
    let client = leasehold::aws::kinesis::Config::builder()
        .behavior_version(leasehold::aws::kinesis::config::BehaviorVersion::latest())
        .region(leasehold::aws::kinesis::config::Region::new("eu-west-1"));
    let kinesis = leasehold::aws::kinesis::Client::from_conf(client.build());
    let client = leasehold::aws::dynamodb::Config::builder()
        .behavior_version(leasehold::aws::dynamodb::config::BehaviorVersion::latest())
        .region(leasehold::aws::dynamodb::config::Region::new("eu-west-1"));
    let dynamodb = leasehold::aws::dynamodb::Client::from_conf(client.build());
    builder.kinesis(kinesis).dynamodb(dynamodb)
}

#[test]
fn notices_are_looked_into_with_this_crate_alone() {
    let stray = Notice::Stray { what: "a tick".to_owned() };
    assert_eq!(look(&stray), None);
    assert_eq!((stray.name(), stray.severity()), ("stray", Severity::Warning));
    let builder: Builder = Worker::builder().on_notice(|notice| drop(look(notice)));
    let builder: CompleteBuilder = with_clients(builder).application("billing").stream("");
    let error: Error = builder.build().unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error}");
    let _ = |error: Error| match error {
        Error::Fatal(fatal) => {
            let fatal: Fatal = fatal;
            fatal.to_string()
        }
        Error::Unclean(report) => {
            let report: Box<Report> = report;
            let summary: &StopSummary = &report.stop;
            let named: &[(LeaseKey, Left)] = &summary.named;
            let durable: &BTreeMap<ShardId, Checkpoint> = &report.durable;
            format!("{named:?} {durable:?}")
        }
        other => other.to_string(),
    };
}

/// The parts of a worker's state open to programs.
fn show(control: &Control) -> Vec<String> {
    let status: Status = control.status();
    let health: Health = control.health();
    let lease = |lease: &LeaseStatus| {
        let (_, _): (&Checkpoint, Span) = (&lease.checkpoint, lease.remaining);
        let stalled: Option<&Stalled> = lease.stalled.as_ref();
        stalled.map(|stalled| stalled.waits_for.clone())
    };
    let mut lines: Vec<String> = status.leases.iter().filter_map(lease).collect();
    lines.extend(health.reasons().iter().chain(health.remarks()).cloned());
    if status.phase == Phase::Starting {
        lines.push("starting".to_owned());
    }
    lines
}

/// Keeps the lines of a trace.
#[derive(Default)]
struct Lines(Vec<String>);

impl TraceSink for Lines {
    fn offer(&mut self, line: String) -> Result<(), NotTaken> {
        self.0.push(line);
        Ok(())
    }

    fn close(&mut self, lines: Vec<String>) -> Result<(), String> {
        self.0.extend(lines);
        Ok(())
    }
}

/// tokio's runtime in the place of a simulation's runtime.
#[derive(Debug)]
struct Simulated(TokioRuntime);

impl Runtime for Simulated {
    fn now(&self) -> Mono {
        self.0.now()
    }

    fn wall(&self) -> Wall {
        self.0.wall()
    }

    fn sleep_until(&self, until: Mono) -> Sleep {
        self.0.sleep_until(until)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Task {
        self.0.spawn(task)
    }

    fn entropy(&self) -> u64 {
        42
    }
}

#[tokio::test]
async fn the_builders_arguments_are_made_with_this_crate_alone() {
    let runtime = Simulated(TokioRuntime::current().expect("a runtime"));
    let built = with_clients(Worker::builder())
        .stream("orders")
        .application("billing")
        .format(Format::VmwareGoKcl)
        .misplaced_aggregates(Misplaced::Keep)
        .runtime(Arc::new(runtime))
        .identity(1, 2)
        .trace_sink(Lines::default())
        .flight_recorder(1_000, 1 << 20)
        .build();
    assert!(built.is_ok(), "{built:?}");
    let policies: Policies = Kcl.policies();
    assert_eq!(policies, Policies::default());
}

#[tokio::test]
async fn a_workers_state_is_looked_into_with_this_crate_alone() {
    let builder = with_clients(Worker::builder());
    let worker = builder.stream("orders").application("billing").build();
    let control = worker.expect("a worker").control();
    assert_eq!(show(&control), ["the worker has not been run yet", "starting"]);
}

#[test]
fn a_handler_may_be_a_closure_and_take_a_batch_apart() {
    fn is_handler(_: impl Handler) {}
    is_handler(HandlerFn::new(|batch: Batch| async move {
        let fence: Fence = batch.fence();
        let records: BatchIter = batch.into_iter();
        let payloads: Vec<Bytes> = records.map(|record| record.data).collect();
        drop((fence, payloads));
        Ok::<(), Infallible>(())
    }));
}

/// A handler of a shard with a receipt of every batch.
#[derive(Default)]
struct Receipts(Vec<Receipt>);

impl ShardHandler for Receipts {
    type Error = Infallible;

    async fn process(&mut self, batch: Batch) -> Result<Ack, Infallible> {
        self.0.push(batch.receipt());
        Ok(Ack::Later)
    }

    async fn flush(&mut self, flush: Flush) -> Result<(), Infallible> {
        let (_, _): (FlushReason, Option<Duration>) = (flush.reason(), flush.remaining());
        self.0.drain(..).for_each(|receipt| receipt.acknowledge());
        Ok(())
    }
}

#[test]
fn shards_may_have_tasks_and_handlers_of_their_own() {
    let _ = |one: Worker, other: Worker| {
        let tasks = one.run_shards(|shard: ShardStream| async move {
            let (_, _): (&ShardInfo, Fence) = (shard.info(), shard.fence());
            while let Some(batch) = shard.next().await {
                let one_by_one = |_: Record| async { Ok::<(), Infallible>(()) };
                batch.for_each_key_concurrent(4, one_by_one).await?;
                batch.acknowledge();
            }
            let _: Option<FlushReason> = shard.why_ended();
            Ok::<(), Infallible>(())
        });
        let handlers = other.run_per_shard(|_: &ShardInfo| Receipts::default());
        fn is_send(_: &impl Send) {}
        is_send(&tasks);
        is_send(&handlers);
    };
}

/// A sink of a program's own.
#[derive(Default)]
struct Shelf(Mutex<Vec<Letter>>);

impl DeadLetter for Shelf {
    type Error = NotStored;

    async fn store(&self, letter: Letter) -> Result<(), NotStored> {
        let (_, _): (&Record, u32) = (&letter.record, letter.attempts);
        self.0.lock().unwrap().push(letter);
        Ok(())
    }
}

#[test]
fn unprocessable_records_are_dealt_with_by_this_crate_alone() {
    let policy: FailurePolicy = FailurePolicy::set_aside(3);
    let (channel, _letters) = dead_letter_channel(8);
    let channel: DeadLetterChannel = channel;
    let _ = |stream: DeadLetterStream, file: DeadLetterFile| {
        let with = |policy| Worker::builder().failure_policy(policy);
        drop((with(FailurePolicy::retry()).dead_letter(stream), with(policy).dead_letter(file)));
        drop((with(FailurePolicy::stop(3)).dead_letter(channel), with(policy).dead_letter(Shelf::default())));
    };
    let config = Config::default().with_failure_action(FailureAction::SetAside);
    assert_eq!(config.failure_action(), FailureAction::SetAside);
    let bad: BadOption = Config::default().with_option("nothing", "1").unwrap_err();
    assert!(bad.to_string().contains("nothing"), "{bad}");
    let bad: BadSequenceNumber = "x".parse::<SequenceNumber>().unwrap_err();
    assert!(bad.to_string().contains('x'), "{bad}");
    let _ = async |batch: Batch| {
        let durable: Result<(), NotDurable> = batch.commit().await;
        durable
    };
}

#[test]
fn an_operators_program_is_written_with_this_crate_alone() {
    let _ = async |control: Control, admin: Admin| -> Result<(), AdminError> {
        let rewind: Rewind = control.rewind(&Which::All, To::Time(Wall(0))).await?;
        let plan: &Plan = rewind.plan();
        for Step { lease, deed, seen, .. } in &plan.steps {
            let (_, _, _): (&LeaseKey, &Deed, &Option<LeaseRow>) = (lease, deed, seen);
        }
        for Done { how, .. } in rewind.apply().await? {
            let _: bool = how == Stepped::Written;
        }
        let view: View = admin.view().await?;
        drop(admin.apply(&release(&view, &Which::Worker("w".into()), &Default::default())).await?);
        Ok(())
    };
    let _ = async |admin: Admin, kinesis: leasehold::aws::kinesis::Client| -> Result<bool, AdminError> {
        let found: Option<RegisteredConsumer> = admin.consumer(&kinesis, "orders", "billing").await?;
        let Some(consumer) = found.filter(|consumer| !consumer.is_deleting()) else { return Ok(false) };
        Ok(admin.deregister(&kinesis, "orders", &consumer).await? == Deregistered::Gone)
    };
    let _: fn(Control) -> Result<(), Error> = shutdown_on_signal;
    let _: fn(fn()) -> Result<(), Error> = on_signal;
    let folder = TraceFolder::new("traces").with_limit_bytes(1 << 30);
    let _ = Worker::builder().trace_folder(folder);
    let _: fn(HashRange, OpId, LeaseRow) = |range, op, row| drop((range, op, row));
    assert!(leasehold::metrics::ALL.iter().all(|metric| !metric.name.is_empty()));
    assert_eq!(leasehold::engine::format::Format::default(), Format::Kcl);
}

/// The exported names of the crate, from its source.
fn exported() -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/src/lib.rs");
    let source = std::fs::read_to_string(source).expect("the source of the crate");
    let uses = source.split("\npub use ").skip(1);
    let mut names = Vec::new();
    for statement in uses.filter_map(|text| text.split(';').next()) {
        let list = statement.find('{').map_or(statement, |brace| &statement[brace..]);
        for item in list.trim_matches(['{', '}']).split(',') {
            let name = item.trim().rsplit([':', ' ']).next().unwrap_or_default();
            names.extend((!name.is_empty()).then(|| name.to_owned()));
        }
    }
    names
}

#[test]
fn every_name_that_is_exported_is_used_here() {
    let text = include_str!("facade.rs");
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let names = exported();
    assert!(names.len() > 60, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "add uses of {missing:?} to this file");
}
