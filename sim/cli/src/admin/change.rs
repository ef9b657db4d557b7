//! `leasehold admin release` and `leasehold admin rewind`: a plan, shown or carried out.

use super::naming::{self, Described};
use super::table::{Table, TableArgs};
use super::to::parse_to;
use crate::exit::{self, Failure, Verdict};
use crate::names;
use crate::present::this_moment;
use crate::text::{Text, put, put_line};
use clap::{ArgGroup, Args};
use leasehold::admin::{self, Done, Plan, Stepped, To, Which};
use leasehold::{Config, LeaseKey, StreamId};
use leasehold_engine::shown::Shown;
use serde::Serialize;
use std::io::{self, Write};

/// Take leases from their owners, to let other workers take them.
///
/// A released lease has no owner: a worker with room takes the lease at its next scan and goes on from the checkpoint.
/// A live owner loses the lease with its next write; until then, for a renewal interval at most, the old owner may
/// process records beside the new owner. Records processed since the last checkpoint come again. Without --apply, the
/// command writes nothing.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true).args(["shard", "worker"]),
    after_help = "Example:\n  leasehold admin release --application billing --worker worker-3 --apply"
)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The shard of the lease to release, by its lease key in `admin status`. May be given more than once.
    #[arg(long, value_name = "SHARD")]
    shard: Vec<String>,
    /// The owner of the leases to release: the worker's name in `admin status`, with or without the part after the last
    /// colon.
    #[arg(long, value_name = "WORKER", value_parser = parse_worker)]
    worker: Option<String>,
    /// Write. Without this flag, only print the planned writes.
    #[arg(long)]
    apply: bool,
}

/// Put shards at another place: records after this place are processed again.
///
/// One conditional write sets the checkpoint, clears the owner and changes the counter. So the present owner loses the
/// lease and cannot overwrite the new checkpoint, and the next owner begins at the new place. Until its next write, for
/// a renewal interval at most, the present owner may process records beside the next owner.
///
/// Tables keep no times. So a time becomes the place of the last record before the time: with KCL's aggregated records,
/// parts of this record may come again. A sequence number names the last processed record: the next record comes first.
/// A place ahead of the checkpoint skips records; the command says so.
///
/// The children of a finished shard keep their checkpoints: to read their records again, rewind the children, too. A
/// child waits for the rewound shard only after a change of the child's owner. Without --apply, the command writes
/// nothing.
///
/// Rows may name another stream than the stream described by the service. Then nothing is rewound: a worker refuses
/// such a table.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true).args(["shard", "all"]),
    after_help = "Example:\n  leasehold admin rewind --application billing --stream orders --all --to trim-horizon\n  leasehold admin rewind --application billing --stream orders --shard shardId-000000000003 --to 2025-01-31T12:00:00Z --apply"
)]
pub(super) struct RewindArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The stream of the shards to rewind. Places are compared with its shards, and times are looked up in them. The
    /// stream is given by its name; in a table of several streams, by its name, its ARN or its identifier
    /// `<account>:<stream>:<creation time in seconds>`.
    #[arg(long, value_parser = names::stream)]
    stream: String,
    /// The shard to rewind, by its id or by the key of its lease. May be given more than once.
    #[arg(long, value_name = "SHARD")]
    shard: Vec<String>,
    /// All leases of the stream, ancestors first.
    #[arg(long)]
    all: bool,
    /// Where to: trim-horizon, latest, a time as of RFC 3339, or the sequence number of a record of the one shard that is named.
    #[arg(long, value_name = "PLACE", value_parser = parse_to)]
    to: To,
    /// Write. Without this flag, only print the planned writes.
    #[arg(long)]
    apply: bool,
}

/// The name of a worker. Leases of an owner with control characters in its name are released by their shards.
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
    let listed = admin.shards(kinesis, &stream).await?;
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
    let place = admin.place(kinesis, &stream, &listed, &view, &which, args.to).await?;
    let plan = admin::rewind(&view, &listed, &which, &place, &report.alive());
    carry_out(&table, &plan, args.apply, args.table.json).await
}

/// The leases to rewind, of one of several streams or of the only stream.
fn meant(args: &RewindArgs, stream: Option<&StreamId>) -> Which {
    if args.all {
        return Which::All;
    }
    let keys = args.shard.iter().map(|shard| match stream {
        // By the lease's key, or by the shard's id alone.
        Some(id) if !shard.contains(':') => id.lease(shard).as_str().to_owned(),
        _ => shard.clone(),
    });
    shards(&keys.collect::<Vec<_>>())
}

/// The JSON output.
#[derive(Serialize)]
struct Told<'a> {
    plan: &'a Plan,
    applied: bool,
    done: &'a [Done],
}

/// Shows a plan, or carries the plan out and shows the results.
async fn carry_out(table: &Table, plan: &Plan, apply: bool, json: bool) -> Result<Verdict, Failure> {
    let done = if apply { table.admin.apply(plan).await? } else { Vec::new() };
    exit::show(json, &Told { plan, applied: apply, done: &done }, || told(plan, apply, &done))?;
    let whole = plan.left.is_empty() && done.iter().all(|done| done.how == Stepped::Written);
    Ok(Verdict::of(!whole))
}

/// A plan in sentences, with its results.
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
