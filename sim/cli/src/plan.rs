//! `leasehold plan`: the work of shard sync on a table, and the table's faults, from two files and without a network.

#[cfg(test)]
mod engine_tests;
mod fleet;
pub(crate) mod other;
pub(crate) mod parts;
mod rounds;
mod start;
mod streams;
pub(crate) mod survey;
mod whose;

use crate::exit::{self, Failure, Verdict};
use crate::input;
use crate::position::{parse_moment, parse_position};
use crate::present::this_moment;
use crate::text::{Text, put, put_line};
use clap::{Args, ValueEnum};
use fleet::{Fleet, Rule};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::time::Wall;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use streams::{ShardsFile, parse_shards};
use survey::Asked;

/// Say what workers would do after one look at a lease table: the leases they create and why, the shards that wait, the
/// faults of the table, and the assignment of each lease, round by round until nothing moves.
///
/// The command asks AWS nothing and changes nothing. The files are the output of `aws kinesis list-shards` and `aws
/// dynamodb scan`: one object, several in a row (pages), or an array of objects.
///
/// In an empty table, each shard open at the position in --from gets a lease; the children of these shards follow after
/// the end of their parents. For a time, a worker asks the service for the open shards. This command takes the open
/// shards from the sequence numbers in the list, in whole seconds: within two seconds after a reshard, it still names
/// the parents. A worker reads no record of these parents older than the time.
///
/// The table shows the rule of assignment: each worker takes its share, or a leader of a fleet of KCL 3.x assigns
/// leases. In a round, each worker looks at the table once, in the order of names. An owner counts as alive, unless its
/// reports in the lease table or in --workers have stopped. Each worker draws the leases to move among equal leases:
/// the real moves may differ from the moves of this plan.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  aws kinesis list-shards --stream-name orders > shards.json\n  aws dynamodb scan --table-name billing > leases.json\n  leasehold plan --shards shards.json --leases leases.json\n  leasehold plan --shards shards.json --leases leases.json --stream orders --workers leases.json --now 2025-01-31T12:00:00Z\n  leasehold plan --shards shards.json --leases leases.json --assign count\n  leasehold plan --shards orders=orders.json --shards returns=returns.json --leases leases.json\n  leasehold plan --format vmware-go-kcl --shards shards.json --leases leases.json"
)]
pub(super) struct PlanArgs {
    /// The shards of the stream: the answer of ListShards. For an application of several streams: one file for each
    /// stream, with the stream before the file, as a name or an identifier `<account>:<stream>:<creation time in
    /// seconds>`.
    #[arg(long, value_name = "[STREAM=]FILE", required = true, value_parser = parse_shards)]
    shards: Vec<ShardsFile>,
    /// The rows of the lease table: what Scan answered.
    #[arg(long, value_name = "FILE")]
    leases: PathBuf,
    /// The start of shards without a lease: trim-horizon, latest or a time as of RFC 3339.
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position)]
    from: InitialPosition,
    /// How leases are kept in the table: kcl, vmware-go-kcl, kcl-rb or kinsumer (its table of checkpoints).
    #[arg(long, alias = "dialect", default_value_t = Format::Kcl, value_name = "FORMAT")]
    format: Format,
    /// KCL 3's worker metrics in a table of their own: the answer of a Scan. Workers without a report for a minute are
    /// taken for dead, and their leases are assigned to other workers.
    #[arg(long, value_name = "FILE")]
    workers: Option<PathBuf>,
    /// The time at which the files were written, as of RFC 3339; by default this moment.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    now: Option<Wall>,
    /// The table's stream: rows of another stream are reported, and left out of all other results.
    #[arg(long, value_name = "NAME", value_parser = other::parse_stream)]
    stream: Option<String>,
    /// How a leader shares leases out, in a fleet of KCL 3.x: by their load, as workers do, or by their number.
    #[arg(long, value_name = "HOW")]
    assign: Option<Assign>,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

/// How a leader shares leases out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Assign {
    /// By how busy workers and leases are.
    Load,
    /// By the number of leases.
    Count,
}

/// A lease that shard sync would create.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Creation {
    lease_key: String,
    checkpoint: String,
    parents: Vec<String>,
    pub(crate) reason: String,
    /// The whole lease as a row.
    #[serde(skip)]
    pub(crate) row: LeaseRow,
}

/// A shard that gets its lease later.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Wait {
    lease_key: String,
    /// The nearest unprocessed shard before the waiting shard.
    behind: String,
    reason: String,
}

/// A fault of the table, or a fact worth knowing.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) lease_key: Option<String>,
    pub(crate) detail: String,
}

/// A lease assigned to another worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Assignment {
    lease_key: String,
    /// The lease's owner, alive or dead.
    from: Option<String>,
    to: String,
    /// `take` or `assign`: no worker renews the lease; `ask`, `steal`, `move` or `hand-over`: the lease's owner lives.
    how: &'static str,
    reason: String,
}

impl Assignment {
    /// Whether its owner lives.
    fn is_move(&self) -> bool {
        !matches!(self.how, "take" | "assign")
    }
}

/// All of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Survey {
    pub(crate) create: Vec<Creation>,
    wait: Vec<Wait>,
    pub(crate) findings: Vec<Finding>,
    /// The rule of assignment.
    rule: Option<Rule>,
    /// The moves of the first round.
    assign: Vec<Assignment>,
    /// The moves of later rounds, until nothing moves.
    next_rounds: Vec<Vec<Assignment>>,
    /// No lease moves after the last round. False: the search was given up.
    rests: bool,
    /// The list of shards is unusable: there is no plan.
    #[serde(skip)]
    hopeless: bool,
}

/// The finding about a readable lease row with missing attributes, if any are missing.
fn incomplete(lease: &LeaseRow, lacks: &[&str]) -> Option<Finding> {
    let detail = format!(
        "it lacks {}, which every program of its format writes: somebody removed that, and other programs may leave the lease alone \
         for ever; a worker of Leasehold takes it once it has stood still for a lease duration, or at once if it names no owner, \
         and writes what is missing",
        lacks.join(" and ")
    );
    (!lacks.is_empty()).then(|| Finding {
        kind: "incomplete-row",
        lease_key: Some(lease.key.as_str().to_owned()),
        detail,
    })
}

pub(super) fn run(args: &PlanArgs) -> Result<Verdict, Failure> {
    let format = args.format;
    let several = streams::are_several(&args.shards)?;
    if format != Format::Kcl && (args.workers.is_some() || args.stream.is_some()) {
        return Err(Failure::unusable(format!(
            "expected --workers and --stream with --format kcl only, found {format}: its tables hold no worker metrics and \
             name no stream"
        )));
    }
    if format != Format::Kcl && several {
        return Err(Failure::unusable(format!(
            "expected the streams of lists of shards with --format kcl only, found {format}: its tables name no stream; give --shards \
             a file alone"
        )));
    }
    if several && args.stream.is_some() {
        return Err(Failure::unusable(
            "expected --stream for a plan of one stream, found the streams of several lists of shards; leave --stream out".to_owned(),
        ));
    }
    let mut items = input::items(&args.leases, format.key_name())?;
    let mut heartbeats = match &args.workers {
        Some(path) => input::heartbeats(path)?,
        None => Vec::new(),
    };
    let others = match &args.stream {
        Some(stream) => other::take_out(&mut items, stream),
        None => Vec::new(),
    };
    let rows: Vec<RowRead> = items.iter().map(|item| format.decode(item)).collect();
    let incomplete =
        rows.iter().zip(&items).filter_map(|(row, item)| incomplete(row.lease()?, &format.lacks(item)));
    let incomplete: Vec<Finding> = incomplete.collect();
    let now = args.now.unwrap_or_else(this_moment);
    let in_table = fleet::in_table(&rows, now);
    let all_old = in_table.is_none() && heartbeats.is_empty();
    heartbeats.extend(in_table.unwrap_or_default());
    let asked = Asked {
        stream: None,
        identity: None,
        from: args.from,
        policies: format.policies(),
        heartbeats: &heartbeats,
        now,
    };
    let (mut survey, rows) = match (several, &*args.shards) {
        (false, [file]) => (survey::survey(&input::shards(&file.path)?, &rows, &asked), rows),
        (_, files) => streams::survey_several(files, rows, &asked)?,
    };
    survey.stale(&asked, &rows);
    survey.findings.splice(0..0, others.into_iter().chain(incomplete));
    if all_old {
        let detail = "no worker has reported into the table for a minute, so that reports tell nothing of who lives: if the files \
                      are older than that, name their time with --now";
        survey.find("old-reports", None, detail.to_owned());
    }
    survey.share(&rows, &asked, args.assign)?;
    exit::show(args.json, &survey, || describe(&survey))?;
    Ok(Verdict::of(survey.hopeless))
}

impl Survey {
    /// Adds the assignment of leases, and its rule.
    fn share(&mut self, rows: &[RowRead], asked: &Asked<'_>, assign: Option<Assign>) -> Result<(), Failure> {
        let fleet = Fleet::read(rows, asked.heartbeats, asked.now);
        let load = assign != Some(Assign::Count);
        let rule = fleet.rule(asked.policies, load);
        if assign.is_some() && rule.leader.is_none() {
            return Err(Failure::unusable(format!(
                "expected --assign for a table whose leases a leader assigns, found another rule: {}; leave --assign out",
                rule.detail
            )));
        }
        // A row repeated in the file counts once.
        let leases = rows.iter().filter_map(RowRead::lease);
        let leases: BTreeMap<_, _> = leases.map(|lease| (&lease.key, lease)).collect();
        let leases: Vec<&LeaseRow> = leases.into_values().collect();
        let course = rounds::course(&leases, &fleet, asked.policies, load);
        // The end of a hand-over begun before the plan evens nothing out.
        let evens = |step: &Assignment| step.is_move() && step.how != "hand-over";
        let moves = |round: &Vec<Assignment>| round.iter().any(evens);
        let counts = course.counts.iter();
        let most = counts.clone().max_by_key(|(_, count)| *count);
        let least = counts.min_by_key(|(_, count)| *count);
        if rule.leader.is_none()
            && course.rounds.iter().any(moves)
            && let (Some(most), Some(least)) = (most, least)
            && most.1 > least.1
        {
            let detail = format!(
                "{} has {} leases and {} has {}: workers move some",
                most.0, most.1, least.0, least.1
            );
            self.find("unbalanced", None, detail);
        }
        let mut rounds = course.rounds.into_iter();
        self.assign = rounds.next().unwrap_or_default();
        self.next_rounds = rounds.collect();
        (self.rests, self.rule) = (course.rests, Some(rule));
        Ok(())
    }
}

fn describe(survey: &Survey) -> Text {
    let mut text = Text::default();
    for finding in &survey.findings {
        let about = finding.lease_key.as_deref().map_or(String::new(), |key| format!(" {key}"));
        put_line!(text, "{}{about}: {}", finding.kind, finding.detail);
    }
    for creation in &survey.create {
        put_line!(text, "create {} at {}: {}", creation.lease_key, creation.checkpoint, creation.reason);
    }
    for wait in &survey.wait {
        put_line!(text, "wait {}: {}", wait.lease_key, wait.reason);
    }
    describe_shares(&mut text, survey);
    let rounds = || std::iter::once(&survey.assign).chain(&survey.next_rounds);
    let moves = rounds().flatten().filter(|step| step.is_move()).count();
    put!(
        text,
        "{} findings, {} leases to create, {} to create later, {} to assign, {moves} to move",
        survey.findings.len(),
        survey.create.len(),
        survey.wait.len(),
        rounds().flatten().count() - moves
    );
    text
}

/// Describes the rule of assignment, and the moves of each round.
fn describe_shares(text: &mut Text, survey: &Survey) {
    if let Some(rule) = &survey.rule {
        put_line!(text, "rule {}: {}", rule.by, rule.detail);
    }
    let rounds = std::iter::once(&survey.assign).chain(&survey.next_rounds);
    for (number, steps) in (1..).zip(rounds) {
        let round = match number {
            1 => String::new(),
            later => format!("round {later}: "),
        };
        for step in steps {
            let (key, to, reason) = (&step.lease_key, &step.to, &step.reason);
            match step.from.as_ref().filter(|_| step.is_move()) {
                Some(from) => put_line!(text, "{round}move {key} from {from} to {to}: {reason}"),
                None => put_line!(text, "{round}assign {key} to {to}: {reason}"),
            }
        }
    }
    if !survey.rests {
        put_line!(
            text,
            "what comes after round {} is not known: workers measure how busy their hosts are when leases have moved, or leases move \
             for longer than is worked out here",
            survey.next_rounds.len() + 1
        );
    }
}
