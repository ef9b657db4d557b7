//! `leasehold consume`: a real worker that prints records.
//!
//! | file | what it is |
//! |---|---|
//! | `line`, `lines` | records as lines of JSON |
//! | `printer` | the handler: makes lines, and waits until they are written |
//! | `writer`, `output` | the writing thread, and stdout |
//! | `job`, `last` | records in print; the last record of `--max-records` |
//! | `late` | streams that are found after the start of the worker |
//! | `caught`, `hindrance` | the end of `--until-caught-up`, and what it waits for |
//! | `names`, `flags`, `settings` | the worker's options as flags, variables and lines of a file |

mod caught;
mod flags;
mod hindrance;
mod job;
mod last;
mod late;
pub mod line;
mod lines;
mod names;
mod output;
mod printer;
mod settings;
mod size;
mod writer;

use crate::clients::Clients;
use crate::exit::{self, Failure, Verdict};
use crate::streams;
use crate::streams::search::Search;
use caught::{Goal, Lost};
use clap::Args;
use flags::OptionFlags;
use job::{Jobs, Unwritten};
use last::Last;
use late::Late;
use leasehold::admin::{Admin, NamedStream};
use leasehold::{
    Batch, CompleteBuilder, Error, Fatal, Notice, Report, Span, StreamId, StreamRef, TraceFolder, Worker,
};
use line::Payload;
use output::Output;
use printer::Printer;
use settings::{Given, Settings, Source, Values};
use size::parse_size;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Consume a stream as a worker of an application, with a JSON line for each record.
///
/// Credentials and region come from the sources of every AWS tool. Workers of the same application share the stream's
/// shards. The worker acknowledges a record after writing its line: after a crash some lines may come again, but none
/// is missing. While no program reads stdout, records wait, and the worker keeps its shards.
///
/// Ctrl-C ends the worker and frees its shards for other workers; a second Ctrl-C ends it at once. If stdout takes no
/// lines by then, the worker still ends within 30 s, with exit code 1, and prints the number of unwritten records.
///
/// Every option of a worker can be a flag, a variable of the environment, or a line of a file; a flag comes before a
/// variable, and a variable before the file. `--lease-duration "20 s"` is `LEASEHOLD_LEASE_DURATION` and
/// `lease_duration = "20 s"`; `--reader-max-records 500` is `LEASEHOLD_READER_MAX_RECORDS` and `max_records = 500`
/// under `[reader]`. The file holds `application`, `stream`, `initial_position` (--from), `format`, `worker_id` and
/// `misplaced_aggregates`, too. --print-config shows the resulting options.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold consume --stream orders --application billing --from latest --text\n  leasehold consume --config worker.toml --lease-duration \"20 s\" --until-caught-up\n\nA line:\n  {\"shard\":\"shardId-000000000000\",\"token\":17,\"sequence\":\"4959…\",\"sub_sequence\":0,\"partition_key\":\"k\",\"data\":\"aGk=\",\"arrival\":\"2025-01-01T00:00:00Z\"}"
)]
pub(super) struct ConsumeArgs {
    /// The stream's name. With several streams, in several flags or with commas between them, the worker reads all of
    /// them in KCL's multi-stream mode: each is a name, an ARN, or an identifier `<account>:<stream>:<creation time in
    /// seconds>`. A single ARN or identifier means multi-stream mode, too.
    #[arg(long, value_name = "STREAM", value_delimiter = ',')]
    stream: Vec<String>,
    /// The application's name; the lease table has the same name.
    #[arg(long)]
    application: Option<String>,
    /// A file in TOML with the worker's options.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only say what the options are and where each comes from, as a file for --config.
    #[arg(long)]
    print_config: bool,
    /// Another server than AWS, for both services, such as `leasehold local`.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// The AWS region.
    #[arg(long)]
    region: Option<String>,
    /// The start of shards without a lease: trim-horizon, latest, or a time as in RFC 3339. Leases in the table go on
    /// from their checkpoints. [default: trim-horizon]
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    /// How leases are kept in the table: kcl, vmware-go-kcl, kcl-rb or kinsumer. [default: kcl]
    #[arg(long, alias = "dialect")]
    format: Option<String>,
    /// With --format kinsumer: the interval of members' reports of life, in seconds, its shardCheckFrequency. The same
    /// for all members; 60 by default.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    check_interval: Option<u64>,
    /// With --format kinsumer: the interval of the leader's actions, in seconds, its leaderActionFrequency. The same
    /// for all members; by default the check interval.
    #[arg(long, value_name = "SECONDS", requires = "check_interval", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lead_interval: Option<u64>,
    /// Read by subscription (enhanced fan-out), and by polling while Kinesis refuses a subscription: the same as --reader-mode auto. AWS
    /// bills the consumer by the hour and shard.
    #[arg(long, conflicts_with = "reader.mode")]
    fan_out: bool,
    /// What to do with an aggregated record (KPL) with records of another shard, as after a split. drop: hand over the
    /// records of this shard, drop the rest; a KPL sends the dropped records again. drop-whole: drop all, as KCL does;
    /// records of a KPL since August 2024 are lost. keep: hand over all, for producers without a second send; with a
    /// KPL some records come twice. [default: drop]
    #[arg(long, value_name = "CHOICE")]
    misplaced_aggregates: Option<String>,
    /// A name for this worker, for people.
    #[arg(long, value_name = "NAME")]
    worker_id: Option<String>,
    /// Show payloads as text instead of base64; invalid UTF-8 is replaced by U+FFFD.
    #[arg(long)]
    text: bool,
    /// Record everything the worker is told, for `leasehold replay`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record all inputs of the worker into files of this folder, within a limit. Each start gets a folder of its own,
    /// and full files are compressed. At the limit, the folders of the oldest other starts are removed; after the last
    /// of them, recording ends.
    #[arg(long, value_name = "DIR", conflicts_with = "trace")]
    trace_dir: Option<PathBuf>,
    /// The size of all files in --trace-dir together.
    #[arg(long, value_name = "SIZE", requires = "trace_dir", default_value = "2GiB", value_parser = parse_size)]
    trace_limit: u64,
    /// The size of a full file in --trace-dir, before compression: 4KiB to half of --trace-limit.
    #[arg(long, value_name = "SIZE", requires = "trace_dir", default_value = "64MiB", value_parser = parse_size)]
    trace_segment: u64,
    /// Stop after this many records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_records: Option<u64>,
    /// Stop after printing every record that the stream, or each of several streams, held when the command began.
    /// Beside other workers: every record of this worker's shards, once each other shard has a live worker. Two reads
    /// of each shard, a second apart, must find no further record. An unreadable stream of several is not waited for:
    /// the exit code is then 1.
    #[arg(long)]
    until_caught_up: bool,
    #[command(flatten)]
    options: OptionFlags,
}

impl ConsumeArgs {
    /// Combines flags, environment and file.
    fn settings(&self, streams: &[StreamRef]) -> Result<Settings, Failure> {
        let file = match &self.config {
            None => Values::new(),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::unusable(format!(
                        "expected a readable text file, but {name}: {error}; correct the path in --config"
                    ))
                })?;
                settings::of_file(&name, &text)?
            }
        };
        let variables = std::env::vars_os().filter_map(|(name, text)| {
            let text = text.into_string();
            Some((name.into_string().ok()?, text.ok()?))
        });
        Settings::resolve(self.flags(streams), settings::of_environment(variables)?, file)
    }

    /// The trace folder, if `--trace-dir` names a folder.
    fn trace_folder(&self) -> Result<Option<TraceFolder>, Failure> {
        let Some(path) = &self.trace_dir else {
            return Ok(None);
        };
        let (segment, limit) = (self.trace_segment, self.trace_limit);
        if segment < 4 << 10 || segment > limit / 2 {
            return Err(Failure::unusable(format!(
                "expected --trace-segment to be 4 KiB to half of --trace-limit, which is {limit} bytes, found {segment} bytes; correct \
                 one of them"
            )));
        }
        let folder = TraceFolder::new(path).with_segment_bytes(segment);
        Ok(Some(folder.with_limit_bytes(limit)))
    }

    fn flags(&self, streams: &[StreamRef]) -> Values {
        let several: Vec<&str> = streams.iter().map(|stream| stream.id().as_str()).collect();
        let several = (!several.is_empty()).then(|| several.join(","));
        let one = self.stream.first().filter(|_| several.is_none());
        let mut values = self.options.0.clone();
        let seconds = |number: Option<u64>| number.map(settings::seconds);
        for (name, flag, text) in [
            ("application", "--application", self.application.clone()),
            ("stream", "--stream", one.cloned()),
            ("streams", "--stream", several),
            ("initial_position", "--from", self.from.clone()),
            ("format", "--format", self.format.clone()),
            ("worker_id", "--worker-id", self.worker_id.clone()),
            ("misplaced_aggregates", "--misplaced-aggregates", self.misplaced_aggregates.clone()),
            ("members.check_interval", "--check-interval", seconds(self.check_interval)),
            ("members.lead_interval", "--lead-interval", seconds(self.lead_interval)),
            ("reader.mode", "--fan-out", self.fan_out.then(|| "auto".to_owned())),
        ] {
            if let Some(text) = text {
                let source = Source::Flag(flag.to_owned());
                values.insert(name, Given { text, source });
            }
        }
        values
    }
}

/// A worker's settings, its clients, and the streams found by look-ups.
struct Told {
    settings: Settings,
    clients: Clients,
    found: Vec<StreamRef>,
    /// The look-ups that still run.
    search: Option<Search>,
}

/// The worker starts this time after the begin of the look-ups, even if some of the streams are not found by then. A
/// look-up takes a second.
const ENOUGH: Duration = Duration::from_secs(3);

impl ConsumeArgs {
    /// Absent: the options were only to be printed, and are. Streams are looked up first, if several are given.
    async fn told(&self) -> Result<Option<Told>, Failure> {
        let several = streams::are_several(&self.stream);
        // Any identifier shows whether the other options are right, before the look-ups.
        let any = StreamId::new("000000000000", "stream", 1).map(StreamRef::new).ok();
        let any = any.filter(|_| several);
        let mut settings = self.settings(any.as_slice())?;
        if self.print_config && !several {
            exit::print(&settings.printed())?;
            return Ok(None);
        }
        let clients = Clients::from_environment(self.endpoint_url.as_deref(), self.region.clone()).await?;
        let (mut found, mut search) = (Vec::new(), None);
        if several {
            let patience = settings.config.stream_timeout().into();
            let looks = search.insert(Search::begin(&clients.kinesis, &self.stream, patience));
            // A worker without a stream would remove the stream's rows after that delay.
            let removes = settings.config.stream_cleanup_delay() > Span::ZERO;
            let enough = (!self.print_config && !removes).then_some(ENOUGH);
            found = looks.found(enough).await?;
            settings = self.settings(&found)?;
        }
        if self.print_config {
            exit::print(&settings.printed())?;
            return Ok(None);
        }
        Ok(Some(Told { settings, clients, found, search }))
    }
}

pub(super) async fn run(args: ConsumeArgs) -> Result<Verdict, Failure> {
    let began = Instant::now();
    let folder = args.trace_folder()?;
    let Some(Told { settings, clients, found, search }) = args.told().await? else {
        return Ok(Verdict::Fine);
    };
    let several = streams::known(settings.config.streams(), found);
    let lost = Arc::<Lost>::default();
    let late = search.map(|search| Late::new(search, lost.clone()));
    let goal = match args.until_caught_up {
        true => Some(goal(&clients, &settings, several.as_deref(), late.as_ref(), &lost)?),
        false => None,
    };
    let worker_id = settings.worker_id.unwrap_or_else(|| format!("leasehold-{}", std::process::id()));
    let config = settings.config;
    let builder = Worker::builder().kinesis(clients.kinesis).dynamodb(clients.dynamodb);
    let builder = match several {
        None => builder.stream(config.stream()),
        Some(streams) => builder.streams(streams),
    };
    let builder = builder
        .application(config.table())
        .format(settings.format)
        .misplaced_aggregates(settings.misplaced)
        .config(|_| config)
        .worker_id(worker_id);
    let (last, jobs) = (Arc::<Last>::default(), Arc::<Jobs>::default());
    let told = (last.clone(), jobs.clone(), lost.clone());
    let worker = observed(recorded(builder, args.trace, folder), told).build().map_err(failure)?;
    let control = worker.control();
    let payload = if args.text { Payload::Text } else { Payload::Base64 };
    let (most, ending) = (args.max_records, control.clone());
    let printer = Output::stdout()
        .and_then(|output| Printer::start(output, payload, most, jobs.clone(), last.clone(), ending))
        .map_err(|error| Failure::unusable(format!("stdout cannot be used: {error}")))?;
    let printer = Arc::new(printer);
    leasehold::shutdown_on_signal(control.clone()).map_err(failure)?;
    if let Some(late) = late {
        tokio::spawn(late.add_to(control.clone()));
    }
    if let Some(goal) = goal {
        tokio::spawn(caught::end(control.clone(), goal, began));
    }
    tokio::spawn(async move { last.end(control).await });
    let each = printer.clone();
    let result = worker
        .run_fn(move |batch: Batch| {
            let printer = each.clone();
            async move { printer.print(batch).await }
        })
        .await;
    let verdict = outcome(result, printer.broken(), jobs.unwritten())?;
    match lost.told().filter(|_| args.until_caught_up) {
        None => Ok(verdict),
        Some(sentence) => Err(Failure::under_way(sentence)),
    }
}

/// Adds the observers of the worker's notices.
fn observed(
    builder: CompleteBuilder, (last, jobs, lost): (Arc<Last>, Arc<Jobs>, Arc<Lost>),
) -> CompleteBuilder {
    builder.on_notice(move |notice: &Notice| {
        last.observe(notice);
        jobs.observe(notice);
        lost.observe(notice);
    })
}

/// Adds a trace in a file or a folder, if requested.
fn recorded(builder: CompleteBuilder, file: Option<PathBuf>, folder: Option<TraceFolder>) -> CompleteBuilder {
    match (file, folder) {
        (_, Some(folder)) => builder.trace_folder(folder),
        (Some(file), None) => builder.trace_file(file),
        (None, None) => builder,
    }
}

/// The services and rows that show whether the worker has caught up.
fn goal(
    clients: &Clients, settings: &Settings, several: Option<&[StreamRef]>, late: Option<&Late>,
    lost: &Arc<Lost>,
) -> Result<Goal, Failure> {
    let table = settings.config.table();
    Ok(Goal {
        admin: Admin::new(&clients.dynamodb, table, settings.format)?,
        kinesis: clients.kinesis.clone(),
        streams: match several {
            None => vec![settings.config.stream().into()],
            Some(several) => several.iter().cloned().map(NamedStream::from).collect(),
        },
        late: late.map(Late::found).unwrap_or_default(),
        lost: lost.clone(),
    })
}

/// The command's end: by the worker's result, and by the unwritten records.
fn outcome(
    result: Result<Report, Error>, broken: Option<&io::Error>, unwritten: Option<Unwritten>,
) -> Result<Verdict, Failure> {
    let of_stdout = match broken {
        // `… | head` has seen enough.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
        Some(error) => {
            Some(format!("stdout cannot be written: {error}; what was not written was not acknowledged"))
        }
        None => unwritten.map(|unwritten| unwritten.to_string()),
    };
    match (result, of_stdout) {
        (Ok(_), None) => Ok(Verdict::Fine),
        (Ok(_), Some(sentence)) => Err(Failure::under_way(sentence)),
        (Err(error), None) => Err(failure(error)),
        // The worker left only unwritten records behind.
        (Err(Error::Unclean(report)), Some(sentence)) if report.stop.left == 0 => {
            Err(Failure::under_way(sentence))
        }
        // The worker had records to print: it had worked before.
        (Err(error), Some(sentence)) => Err(Failure::under_way(format!("{sentence}; {error}"))),
    }
}

/// A worker that never worked is wrong usage. A failure after good work is not, nor is a service that refuses all
/// requests.
fn failure(error: Error) -> Failure {
    match &error {
        Error::Fatal(
            Fatal::TableGone { .. }
            | Fatal::StreamGone { .. }
            | Fatal::Denied { .. }
            | Fatal::WrongClock { .. },
        )
        | Error::Unclean(_) => Failure::under_way(error.to_string()),
        _ => Failure::unusable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_leaves_leases_is_a_failure_that_says_so() {
        let stop = serde_json::json!({
            "released": 1, "left": 2, "named": [], "aborted": 0, "lease_duration": 10_000_000,
        });
        let report = serde_json::json!({ "stop": stop, "durable": {} });
        let report: Report = serde_json::from_value(report).unwrap();
        let failure = failure(Error::Unclean(Box::new(report)));
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
