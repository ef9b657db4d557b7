//! `leasehold consume`: a real worker that prints records.

use super::clients::Clients;
use super::exit::{Failure, Verdict};
use super::position::parse_position;
use super::signal;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use leasehold::dialect::{Dialect, Kind};
use leasehold::{Batch, Control, Error, Fatal, InitialPosition, Notice, Position, Record, Worker};
use leasehold_engine::config::MembersConfig;
use leasehold_engine::ids::{FencingToken, LeaseKey};
use leasehold_engine::time::{Span, Wall};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Consume a stream as one worker of an application: one JSON line per record.
///
/// Credentials and region are found as by every AWS tool. Workers of the same application share the stream's shards.
/// A record is acknowledged after its line was written, so that after a crash some lines may come again but none is
/// missing. Ends on Ctrl-C, giving its shards up for others.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold consume --stream orders --application billing --from latest --text\n\nA line:\n  {\"shard\":\"shardId-000000000000\",\"token\":17,\"sequence\":\"4959…\",\"sub_sequence\":0,\"partition_key\":\"k\",\"data\":\"aGk=\",\"arrival\":\"2025-01-01T00:00:00Z\"}"
)]
pub(super) struct ConsumeArgs {
    /// The stream's name.
    #[arg(long)]
    stream: String,
    /// The application's name, which is also the name of its lease table.
    #[arg(long)]
    application: String,
    /// Another server than AWS, for both services, such as `leasehold local`.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// The AWS region.
    #[arg(long)]
    region: Option<String>,
    /// Where shards nobody has read yet are started: trim-horizon, latest, or a time as in RFC 3339.
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position)]
    from: InitialPosition,
    /// How leases are kept in the table.
    #[arg(long, default_value_t)]
    dialect: Kind,
    /// With --dialect kinsumer: how often members say that they live, in seconds, its shardCheckFrequency. The same for all
    /// members; 60 if it is not given.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    check_interval: Option<u64>,
    /// With --dialect kinsumer: how often the leader acts, in seconds, its leaderActionFrequency. The same for all members; as
    /// often as the check if it is not given.
    #[arg(long, value_name = "SECONDS", requires = "check_interval", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lead_interval: Option<u64>,
    /// A name for this worker, for people.
    #[arg(long, value_name = "NAME")]
    worker_id: Option<String>,
    /// Show payloads as text instead of base64; what is no UTF-8 is replaced by U+FFFD.
    #[arg(long)]
    text: bool,
    /// Record everything the worker is told, for `leasehold replay`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Stop after this many records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_records: Option<u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    shard: &'a str,
    /// The fencing token: what is printed under one of them is in order.
    token: u64,
    sequence: String,
    sub_sequence: u64,
    partition_key: &'a str,
    data: String,
    arrival: Option<String>,
}

impl<'a> Line<'a> {
    fn of(record: &'a Record, token: FencingToken, text: bool) -> Self {
        Self {
            shard: record.shard.as_str(),
            token: token.0,
            sequence: record.position.sequence.to_string(),
            sub_sequence: record.position.sub,
            partition_key: &record.partition_key,
            data: if text {
                String::from_utf8_lossy(&record.data).into_owned()
            } else {
                STANDARD.encode(&record.data)
            },
            arrival: record
                .arrival
                .and_then(|Wall(millis)| DateTime::from_millis(millis).fmt(Format::DateTime).ok()),
        }
    }
}

/// How long the last record's checkpoint is waited for before the worker is shut down anyway.
const LAST_CHECKPOINT: Duration = Duration::from_secs(3);

/// The printing side, shared by all shards.
struct Printer {
    text: bool,
    state: Mutex<State>,
    control: Control,
    /// The last record that is wanted, once it is printed.
    last: Arc<Last>,
}

/// The record after which the worker is to end.
#[derive(Default)]
struct Last {
    record: OnceLock<(LeaseKey, Position)>,
    printed: Notify,
    durable: Notify,
}

impl Last {
    fn is_printed(&self, lease: LeaseKey, position: Position) {
        if self.record.set((lease, position)).is_ok() {
            self.printed.notify_one();
        }
    }

    fn observe(&self, notice: &Notice) {
        if let Notice::Checkpointed { lease, position } = notice
            && let Some((last, at)) = self.record.get()
            && last == lease
            && position >= at
        {
            self.durable.notify_one();
        }
    }

    /// Shuts the worker down once the last record is printed and its progress durable, so that the next worker goes on
    /// right behind it.
    async fn end(&self, control: Control) {
        self.printed.notified().await;
        // In vain if the lease is lost meanwhile: then the record will come again elsewhere.
        let _ = tokio::time::timeout(LAST_CHECKPOINT, self.durable.notified()).await;
        control.shutdown();
    }
}

struct State {
    /// How many records may still be printed.
    left: Option<u64>,
    /// Why printing ended, unless it was because enough was printed.
    broken: Option<io::Error>,
}

/// Why a batch is not acknowledged as a whole: the worker is about to shut down.
#[derive(Debug)]
struct NoMoreOutput;

impl std::fmt::Display for NoMoreOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no more output is wanted")
    }
}

impl std::error::Error for NoMoreOutput {}

impl Printer {
    fn print(&self, batch: &Batch) -> Result<(), NoMoreOutput> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left == Some(0) || state.broken.is_some() {
            return Err(NoMoreOutput);
        }
        let most = state
            .left
            .map_or(usize::MAX, |left| left.try_into().unwrap_or(usize::MAX));
        let wanted = &batch.records()[..batch.len().min(most)];
        if let Err(error) = self.write(wanted, batch.shard().token) {
            state.broken = Some(error);
            self.control.shutdown();
            return Err(NoMoreOutput);
        }
        if let (Some(left), Some(last)) = (&mut state.left, wanted.last()) {
            *left -= wanted.len() as u64;
            if *left == 0 {
                batch.ack(last);
                batch.checkpoint();
                self.last.is_printed(batch.shard().lease.clone(), last.position);
            }
        }
        if wanted.len() == batch.len() {
            Ok(())
        } else {
            Err(NoMoreOutput)
        }
    }

    fn write(&self, records: &[Record], token: FencingToken) -> io::Result<()> {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, &Line::of(record, token, self.text))?;
            lines.push(b'\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(&lines)?;
        out.flush()
    }
}

/// How members tell each other that they live, if the dialect has members.
fn members(dialect: Kind, check: Option<u64>, lead: Option<u64>) -> Result<MembersConfig, Failure> {
    let Some(check) = check else {
        return Ok(MembersConfig::default());
    };
    if dialect.membership().is_none() {
        return Err(Failure::unusable(format!(
            "expected --check-interval with --dialect kinsumer, found {dialect}, which has no members"
        )));
    }
    Ok(MembersConfig {
        check_interval: Span::from_secs(check),
        lead_interval: Span::from_secs(lead.unwrap_or(check)),
    })
}

pub(super) async fn run(args: ConsumeArgs) -> Result<Verdict, Failure> {
    let clients = Clients::from_environment(args.endpoint_url.as_deref(), args.region).await?;
    let worker_id = args
        .worker_id
        .unwrap_or_else(|| format!("leasehold-{}", std::process::id()));
    let members = members(args.dialect, args.check_interval, args.lead_interval)?;
    let mut builder = Worker::builder()
        .config(|config| {
            // What is read and written in between is no rarer.
            config.renew_interval = config.renew_interval.min(members.check_interval);
            config.scan_interval = config.scan_interval.min(members.check_interval);
            config.members = members;
        })
        .kinesis(clients.kinesis)
        .dynamodb(clients.dynamodb)
        .stream(args.stream)
        .application(args.application)
        .dialect(args.dialect)
        .initial_position(args.from)
        .worker_id(worker_id);
    if let Some(path) = args.trace {
        builder = builder.trace_file(path);
    }
    let last = Arc::new(Last::default());
    let seen = last.clone();
    let worker = builder
        .on_notice(move |notice| seen.observe(notice))
        .build()
        .map_err(failure)?;
    let control = worker.control();
    let printer = Arc::new(Printer {
        text: args.text,
        state: Mutex::new(State {
            left: args.max_records,
            broken: None,
        }),
        control: control.clone(),
        last: last.clone(),
    });
    let interrupted = control.clone();
    tokio::spawn(async move {
        signal::interrupted().await;
        interrupted.shutdown();
    });
    tokio::spawn(async move { last.end(control).await });
    let each = printer.clone();
    let result = worker
        .run_fn(move |batch: Batch| {
            let printer = each.clone();
            async move { printer.print(&batch) }
        })
        .await;
    let mut state = printer.state.lock().unwrap_or_else(PoisonError::into_inner);
    match (result, state.broken.take()) {
        // `… | head` has seen enough.
        (Ok(()), Some(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Verdict::Fine),
        (Ok(()), Some(error)) => Err(Failure::under_way(format!(
            "stdout cannot be written: {error}; what was not written was not acknowledged"
        ))),
        (Ok(()), None) => Ok(Verdict::Fine),
        (Err(error), _) => Err(failure(error)),
    }
}

/// What never worked is wrong usage; what worked and broke is not.
fn failure(error: Error) -> Failure {
    match &error {
        Error::Fatal(Fatal::TableGone { .. } | Fatal::StreamGone { .. }) | Error::Unclean(_) => {
            Failure::under_way(error.to_string())
        }
        _ => Failure::unusable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::StopSummary;

    #[test]
    fn a_stop_that_leaves_leases_is_a_failure_under_way_that_says_so() {
        let summary = StopSummary {
            released: 1,
            left: 2,
            named: Vec::new(),
            aborted: 0,
            lease_duration: Span::from_secs(10),
        };
        let failure = failure(Error::Unclean(Box::new(summary)));
        let sentence = failure.to_string();
        assert!(
            sentence.contains("1 lease was released, 2 leases were left to expire")
                && sentence
                    .contains("another worker takes what was left once it was not renewed for 10.000s")
                && sentence.contains("no record is lost"),
            "{sentence}"
        );
        assert_eq!(failure, Failure::under_way(sentence));
    }
}
