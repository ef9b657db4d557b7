//! `leasehold admin release` and `leasehold admin rewind`: a plan, shown or carried out.

use super::naming::{self, Described};
use super::table::{Table, TableArgs, under_way};
use super::to::parse_to;
use crate::exit::{self, Failure, Verdict};
use crate::names;
use crate::text::{Text, put, put_line};
use clap::{ArgGroup, Args};
use leasehold::admin::{self, Done, Plan, Stepped, To, Which};
use leasehold::{Config, LeaseKey, StreamId, Wall};
use leasehold_engine::shown::Shown;
use serde::Serialize;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Take leases from their owners, so that other workers take them.
///
/// A released lease has no owner: a worker with room for it takes it at its next scan and goes on from the checkpoint. An owner
/// that lives loses the lease with its next write; until then, for a renewal interval at most, it may process records beside the
/// next owner. What it processed since its last checkpoint comes again. Nothing is written without --apply.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true).args(["shard", "worker"]),
    after_help = "Example:\n  leasehold admin release --application billing --worker worker-3 --apply"
)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The shard whose lease is meant, by the key of its lease as `admin status` shows it. May be given more than once.
    #[arg(long, value_name = "SHARD")]
    shard: Vec<String>,
    /// The worker whose leases are meant: its name as `admin status` shows it, or without what follows the last colon.
    #[arg(long, value_name = "WORKER", value_parser = parse_worker)]
    worker: Option<String>,
    /// Write. Without it, only say what would be written.
    #[arg(long)]
    apply: bool,
}

/// Put shards at another place: their records from there on are processed again.
///
/// The checkpoint is set, the owner cleared and the counter changed in one conditional write. So the present owner loses the lease,
/// cannot overwrite the new checkpoint, and the next owner begins there. Until the owner finds out, for a renewal interval at most, it
/// may process records beside the next one.
///
/// A time is turned into the place of the last record before it, since no table keeps times: with KCL's aggregated records, parts of
/// that record may come again. A sequence number is the last one that counts as processed: the record after it is the first to
/// come. A place ahead of the checkpoint skips records, which is said.
///
/// The children of a shard that had been read to its end keep their checkpoints: rewind them, too, if they are to be read again. Such
/// a child waits for the shard only if its lease changes its owner. Nothing is written without --apply.
///
/// Where rows name another stream than the service describes, nothing is rewound: a worker refuses such a table.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true).args(["shard", "all"]),
    after_help = "Example:\n  leasehold admin rewind --application billing --stream orders --all --to trim-horizon\n  leasehold admin rewind --application billing --stream orders --shard shardId-000000000003 --to 2025-01-31T12:00:00Z --apply"
)]
pub(super) struct RewindArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The stream: places are compared with its shards, and times are looked up in them. Only its leases are meant. Its name, or, where
    /// the table holds leases of several, its name, its ARN or its identifier `<account>:<stream>:<creation time in seconds>`.
    #[arg(long, value_parser = names::stream)]
    stream: String,
    /// The shard whose lease is meant, by its id or by the key of its lease. May be given more than once.
    #[arg(long, value_name = "SHARD")]
    shard: Vec<String>,
    /// All leases of the stream, ancestors first.
    #[arg(long)]
    all: bool,
    /// Where to: trim-horizon, latest, a time as of RFC 3339, or the sequence number of a record of the one shard that is named.
    #[arg(long, value_name = "PLACE", value_parser = parse_to)]
    to: To,
    /// Write. Without it, only say what would be written.
    #[arg(long)]
    apply: bool,
}

/// The name of a worker. One with control characters in a table is released by its shards.
fn parse_worker(text: &str) -> Result<String, String> {
    match Config::check_worker_id(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; name the leases with --shard if a row has such an owner")),
    }
}

fn shards(names: &[String]) -> Which {
    Which::Shards(names.iter().map(|name| LeaseKey::from(name.as_str())).collect())
}

pub(super) async fn release(args: ReleaseArgs) -> Result<Verdict, Failure> {
    let table = args.table.open().await?;
    let (view, report) = table.watched().await?;
    let which = match args.worker {
        Some(worker) => Which::Worker(worker),
        None => shards(&args.shard),
    };
    let plan = admin::release(&view, &which, &report.alive());
    if let (Which::Worker(worker), true) = (&which, plan.steps.is_empty()) {
        return Err(Failure::under_way(format!(
            "expected unfinished leases of a worker {worker:?}, found none; `admin status` names the workers that have some"
        )));
    }
    carry_out(&table, &plan, args.apply, args.table.json).await
}

pub(super) async fn rewind(args: RewindArgs) -> Result<Verdict, Failure> {
    let checked = args.to.check(&meant(&args, None), this_moment());
    checked.map_err(Failure::unusable)?;
    let table = args.table.open().await?;
    let (admin, kinesis) = (&table.admin, &table.clients.kinesis);
    let several = table.are_several(std::slice::from_ref(&args.stream)).await?;
    let stream = table.stream(&args.stream, several).await?;
    let listed = admin.shards(kinesis, &stream).await.map_err(under_way)?;
    let (mut view, report) = table.watched().await?;
    view.keep_stream(stream.id());
    match naming::described(&table, &stream).await {
        Described::As(now) => {
            if let Some(why) = naming::refusal(&view, &listed, &now, &stream) {
                return Err(Failure::under_way(why));
            }
        }
        Described::Not(why) => {
            if let Some(said) = naming::not_compared(&view, &why) {
                let _ = writeln!(io::stderr(), "warning: {}", Shown(&said));
            }
        }
    }
    let which = meant(&args, stream.id());
    let place = admin.place(kinesis, &stream, &listed, &view, &which, args.to);
    let place = place.await.map_err(under_way)?;
    let plan = admin::rewind(&view, &listed, &which, &place, &report.alive());
    carry_out(&table, &plan, args.apply, args.table.json).await
}

/// The leases that are meant, of this stream of several, or of the only one.
fn meant(args: &RewindArgs, stream: Option<&StreamId>) -> Which {
    if args.all {
        return Which::All;
    }
    let keys = args.shard.iter().map(|shard| match stream {
        // By the key of its lease, or by its id alone.
        Some(id) if !shard.contains(':') => id.lease(shard).as_str().to_owned(),
        _ => shard.clone(),
    });
    shards(&keys.collect::<Vec<_>>())
}

fn this_moment() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Told<'a> {
    plan: &'a Plan,
    applied: bool,
    done: &'a [Done],
}

/// Shows a plan, or carries it out and shows how that went.
async fn carry_out(table: &Table, plan: &Plan, apply: bool, json: bool) -> Result<Verdict, Failure> {
    let done = if apply { table.admin.apply(plan).await.map_err(under_way)? } else { Vec::new() };
    if json {
        exit::print_json(&Told { plan, applied: apply, done: &done })?;
    } else {
        exit::print(&told(plan, apply, &done))?;
    }
    let whole = plan.left.is_empty() && done.iter().all(|done| done.how == Stepped::Written);
    Ok(if whole { Verdict::Fine } else { Verdict::Found })
}

/// A plan in sentences, and how it went.
pub(super) fn told(plan: &Plan, apply: bool, done: &[Done]) -> Text {
    let mut text = Text::default();
    let mut written = 0;
    for (n, step) in plan.steps.iter().enumerate() {
        let how = match done.get(n).map(|done| &done.how) {
            None => String::new(),
            Some(Stepped::Written) => {
                written += 1;
                ": written".to_owned()
            }
            Some(Stepped::Changed(why)) => format!(": NOT written, since the row changed: {why}; look again"),
        };
        put_line!(text, "{step}{how}");
        for sentence in &step.follows {
            put_line!(text, "    {sentence}");
        }
    }
    for left in &plan.left {
        put_line!(text, "leave {} alone: {}", left.lease, left.why);
    }
    let steps = plan.steps.len();
    match (apply, steps) {
        (_, 0) => put!(text, "there is nothing to write"),
        (false, _) => put!(text, "nothing was written; say --apply to write {steps} rows"),
        (true, _) => put!(text, "{written} of {steps} rows written"),
    }
    text
}
