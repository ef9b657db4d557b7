//! `leasehold plan`: what shard sync would do to a table, and what is wrong with it, from two files and without a network.

mod other;
mod start;
pub(crate) mod survey;

use crate::exit::{self, Failure, Verdict};
use crate::input;
use crate::position::{parse_moment, parse_position};
use clap::Args;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::time::Wall;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use survey::Asked;

/// Say what shard sync would create in a lease table and why, what waits for what, what is wrong with the table, and who would
/// get what.
///
/// Nothing is asked of AWS and nothing is changed. The files are what `aws kinesis list-shards` and `aws dynamodb scan`
/// print: one object, several after one another (pages), or an array of them.
///
/// An empty table gets a lease for each shard that was open at the position in --from; the shards that came after these follow
/// when these have been read. For a time, a worker asks the service which shards were open. This command takes it from the
/// sequence numbers in the list, which tell whole seconds: within two seconds after a reshard, it names the parents still, of
/// which a worker reads nothing that is older than the time.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  aws kinesis list-shards --stream-name orders > shards.json\n  aws dynamodb scan --table-name billing > leases.json\n  leasehold plan --shards shards.json --leases leases.json\n  leasehold plan --shards shards.json --leases leases.json --stream orders --workers leases.json --now 2025-01-31T12:00:00Z\n  leasehold plan --format vmware-go-kcl --shards shards.json --leases leases.json"
)]
pub(super) struct PlanArgs {
    /// The shards of the stream: what ListShards answered.
    #[arg(long, value_name = "FILE")]
    shards: PathBuf,
    /// The rows of the lease table: what Scan answered.
    #[arg(long, value_name = "FILE")]
    leases: PathBuf,
    /// Where shards that have no lease yet are started: trim-horizon, latest or a time as of RFC 3339.
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position)]
    from: InitialPosition,
    /// How leases are kept in the table: kcl, vmware-go-kcl, kcl-rb or kinsumer (its table of checkpoints).
    #[arg(long, alias = "dialect", default_value_t = Format::Kcl, value_name = "FORMAT")]
    format: Format,
    /// KCL 3's worker metrics: what Scan of their table answered, or of a lease table that holds them. Workers that have not
    /// reported for a minute are taken for dead, and their leases are assigned to others.
    #[arg(long, value_name = "FILE")]
    workers: Option<PathBuf>,
    /// The time at which the files were written, as of RFC 3339; by default this moment.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    now: Option<Wall>,
    /// The stream that the table should belong to: rows that name another one are told, and left out of everything else.
    #[arg(long, value_name = "NAME", value_parser = other::parse_stream)]
    stream: Option<String>,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

/// A lease that shard sync would create.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Creation {
    lease_key: String,
    checkpoint: String,
    parents: Vec<String>,
    pub(crate) reason: String,
    /// All of that, as a row.
    #[serde(skip)]
    pub(crate) row: LeaseRow,
}

/// A shard that gets its lease later.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Wait {
    lease_key: String,
    /// The nearest shard before it that is not processed.
    behind: String,
    reason: String,
}

/// Something that is wrong, or worth knowing.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) lease_key: Option<String>,
    pub(crate) detail: String,
}

/// A lease without an owner, and the worker that would take it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Assignment {
    lease_key: String,
    to: String,
    reason: String,
}

/// All of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Survey {
    pub(crate) create: Vec<Creation>,
    wait: Vec<Wait>,
    pub(crate) findings: Vec<Finding>,
    assign: Vec<Assignment>,
    /// The list of shards cannot be used, so nothing can be planned.
    #[serde(skip)]
    hopeless: bool,
}

/// What is missing of a row that is a lease all the same, if anything is.
fn incomplete(lease: &LeaseRow, lacks: &[&str]) -> Option<Finding> {
    let detail = format!(
        "it lacks {}, which every program of its format writes: somebody removed that, and other programs may leave the lease alone \
         for ever; a worker of Leasehold takes it once it has stood still for a lease duration, or at once if it names no owner, \
         and writes what is missing",
        lacks.join(" and ")
    );
    (!lacks.is_empty()).then(|| Finding {
        kind: "incomplete-row",
        lease_key: Some(lease.key.to_string()),
        detail,
    })
}

pub(super) fn run(args: &PlanArgs) -> Result<Verdict, Failure> {
    let format = args.format;
    if format != Format::Kcl && (args.workers.is_some() || args.stream.is_some()) {
        return Err(Failure::unusable(format!(
            "expected --workers and --stream with --format kcl only, found {format}: its tables hold no worker metrics and \
             name no stream"
        )));
    }
    let shards = input::shards(&args.shards)?;
    let mut items = input::items(&args.leases, format.key_name())?;
    let heartbeats = match &args.workers {
        Some(path) => input::heartbeats(path)?,
        None => Vec::new(),
    };
    let others = match &args.stream {
        Some(stream) => other::take_out(&mut items, stream),
        None => Vec::new(),
    };
    let rows: Vec<RowRead> = items.iter().map(|item| format.decode(item)).collect();
    let incomplete = rows
        .iter()
        .zip(&items)
        .filter_map(|(row, item)| incomplete(row.lease()?, &format.lacks(item)));
    let incomplete: Vec<Finding> = incomplete.collect();
    let asked = Asked {
        from: args.from,
        policies: format.policies(),
        heartbeats: &heartbeats,
        now: args.now.unwrap_or_else(this_moment),
    };
    let mut survey = survey::survey(&shards, &rows, &asked);
    survey.findings.splice(0..0, others.into_iter().chain(incomplete));
    if args.json {
        exit::print_json(&survey)?;
    } else {
        exit::print(&describe(&survey))?;
    }
    Ok(if survey.hopeless {
        Verdict::Found
    } else {
        Verdict::Fine
    })
}

fn this_moment() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn describe(survey: &Survey) -> String {
    let mut text = String::new();
    for finding in &survey.findings {
        let about = finding
            .lease_key
            .as_deref()
            .map_or(String::new(), |key| format!(" {key}"));
        let _ = writeln!(text, "{}{about}: {}", finding.kind, finding.detail);
    }
    for creation in &survey.create {
        let _ = writeln!(
            text,
            "create {} at {}: {}",
            creation.lease_key, creation.checkpoint, creation.reason
        );
    }
    for wait in &survey.wait {
        let _ = writeln!(text, "wait {}: {}", wait.lease_key, wait.reason);
    }
    for assignment in &survey.assign {
        let _ = writeln!(
            text,
            "assign {} to {}: {}",
            assignment.lease_key, assignment.to, assignment.reason
        );
    }
    let _ = write!(
        text,
        "{} findings, {} leases to create, {} to create later, {} to assign",
        survey.findings.len(),
        survey.create.len(),
        survey.wait.len(),
        survey.assign.len()
    );
    text
}
