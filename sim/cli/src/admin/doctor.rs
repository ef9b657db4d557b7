//! `leasehold admin doctor`: reads a table and its stream, compares them, and mends the table.

use super::ailment::{self, Ailment, Patient};
use super::change;
use super::naming::{self, Described};
use super::table::{Table, TableArgs};
use crate::clients::in_full;
use crate::exit::{self, Failure, Verdict};
use crate::names;
use crate::plan::parts::{Parts, Unnamed};
use crate::plan::survey::{Asked, survey};
use crate::position::parse_position;
use crate::text::{Text, counted, put, put_line};
use clap::Args;
use leasehold::admin::{Done, NamedStream, Plan, Shard, TableReport};
use leasehold::format::LeaseFormat;
use leasehold::internals::item_from_sdk;
use leasehold::{InitialPosition, LeaseKey};
use leasehold_engine::row::RowRead;
use leasehold_engine::table::Item;
use leasehold_engine::time::Wall;
use serde::Serialize;
use std::collections::BTreeMap;

/// Find the faults of a table, and mend faults with a safe repair.
///
/// The command compares the table with the shards of the stream, or of each named stream: holes in the hash space,
/// leases of lost shards, ends without children, unreadable rows or rows without guarding attributes, rows of another
/// stream, stalled hand-overs.
/// Each finding names the expectation, the fact, and the advice. With --repair, the command prints the writes to mend
/// the table; with --apply as well, it makes these writes, each under a condition. A missing lease is created only
/// while no worker of the stream lives: a live fleet creates missing leases itself. Leases of further streams in the
/// table are counted, and not examined.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold admin doctor --application billing --stream orders\n  leasehold admin doctor --application billing --stream orders --repair --apply\n  leasehold admin doctor --application billing --stream orders --stream returns"
)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The stream's name. For an application of several streams: each stream, in several flags or with commas between
    /// them, as a name, an ARN, or an identifier `<account>:<stream>:<creation time in seconds>`.
    #[arg(long, value_name = "STREAM", required = true, value_delimiter = ',', value_parser = names::stream)]
    stream: Vec<String>,
    /// Where the fleet starts shards without a lease: trim-horizon, latest or a time as of RFC 3339.
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position)]
    from: InitialPosition,
    /// Print the writes to mend the table.
    #[arg(long)]
    repair: bool,
    /// Make these writes.
    #[arg(long, requires = "repair")]
    apply: bool,
}

/// The JSON output.
#[derive(Serialize)]
struct Told<'a> {
    findings: &'a [Ailment],
    unnamed: &'a [Unnamed],
    repair: Option<&'a Plan>,
    applied: bool,
    done: &'a [Done],
    /// The number of findings left.
    left: usize,
}

/// A stream that is examined, the stream's shards, and the stream's descriptions.
type Listed = (NamedStream, Vec<Shard>, Described);

pub(super) async fn run(args: DoctorArgs) -> Result<Verdict, Failure> {
    let table = args.table.open().await?;
    let streams = listed(&table, &args.stream).await?;
    let (_, report) = table.watched().await?;
    let (findings, unnamed) = examine(&table, &args, &streams, &report).await?;
    let plan =
        Plan { steps: findings.iter().flat_map(|found| &found.repairs).cloned().collect(), left: Vec::new() };
    let mut done = Vec::new();
    let mut left = findings.len();
    if args.apply && !plan.steps.is_empty() {
        done = table.admin.apply(&plan).await?;
        left = examine(&table, &args, &streams, &report).await?.0.len();
    }
    let results = Told {
        findings: &findings,
        unnamed: &unnamed,
        repair: args.repair.then_some(&plan),
        applied: args.apply,
        done: &done,
        left,
    };
    exit::show(args.table.json, &results, || told(&results, &plan))?;
    Ok(Verdict::of(left > 0))
}

/// The given streams, and their shards.
async fn listed(table: &Table, given: &[String]) -> Result<Vec<Listed>, Failure> {
    let several = table.are_several(given).await?;
    let mut streams: Vec<Listed> = Vec::new();
    for stream in table.streams(given, several).await? {
        let shards = shards(table, &stream).await?;
        let described = naming::described(table, &stream).await;
        streams.push((stream, shards, described));
    }
    Ok(streams)
}

/// The shards of a stream, by two equal lists. Repairs follow from the list, and one list may be partial.
async fn shards(table: &Table, stream: &NamedStream) -> Result<Vec<Shard>, Failure> {
    let list = || table.admin.shards(&table.clients.kinesis, stream);
    let first = list().await?;
    tokio::time::sleep(naming::APART).await;
    let second = list().await?;
    match first == second {
        true => Ok(second),
        false => Err(Failure::under_way(format!(
            "expected two lists of the shards of {stream}, a second apart, to say the same, found {} and then {} shards that differ; \
             nothing was written: run this again when no reshard is under way",
            first.len(),
            second.len()
        ))),
    }
}

/// The present faults of the table, and the leases of unnamed streams.
async fn examine(
    table: &Table, args: &DoctorArgs, streams: &[Listed], report: &TableReport,
) -> Result<(Vec<Ailment>, Vec<Unnamed>), Failure> {
    let format = args.table.format;
    let items = items(table).await?;
    let rows: Vec<RowRead> = items.iter().map(|item| format.decode(item)).collect();
    let lacks: BTreeMap<LeaseKey, Vec<&'static str>> = rows
        .iter()
        .zip(&items)
        .filter(|(row, _)| row.lease().is_some())
        .map(|(row, item)| (row.key().clone(), format.lacks(item)))
        .filter(|(_, lacks)| !lacks.is_empty())
        .collect();
    let several = streams.iter().any(|(stream, ..)| stream.id().is_some());
    let mut parts = Parts::of(rows, several);
    let mut findings = Vec::new();
    for (stream, shards, described) in streams {
        let rows = parts.take(stream.id());
        let asked = Asked {
            stream: stream.id(),
            identity: described.identity(),
            from: args.from,
            policies: format.policies(),
            heartbeats: &[],
            now: Wall(0),
        };
        let survey = survey(shards, &rows, &asked);
        let patient = Patient {
            stream: stream.id(),
            view: &rows.into_iter().collect(),
            shards,
            lacks: &lacks,
            report,
            finished: format.policies().finished,
        };
        findings.extend(naming::judge(&patient, described));
        findings.extend(ailment::judge(&survey, &patient));
    }
    let (strays, unnamed) = parts.left();
    findings.extend(ailment::stray(strays));
    Ok((findings, unnamed))
}

/// All raw items of the table: rows do not show missing attributes of an item.
async fn items(table: &Table) -> Result<Vec<Item>, Failure> {
    let scan = table.clients.dynamodb.scan().table_name(&table.name).consistent_read(true);
    let mut pages = scan.into_paginator().items().send();
    let mut items = Vec::new();
    while let Some(item) = pages.next().await {
        let item = item.map_err(|error| {
            Failure::under_way(format!("could not scan the lease table: {}", in_full(&error)))
        })?;
        items.push(item_from_sdk(item));
    }
    Ok(items)
}

fn told(results: &Told<'_>, plan: &Plan) -> Text {
    let Told { findings, unnamed, repair, applied, done, left } = *results;
    let mut text = Text::default();
    for Unnamed { stream, count } in unnamed {
        put_line!(
            text,
            "{count} of the stream {stream}, which was not named; add --stream {stream} to examine them"
        );
    }
    for found in findings {
        let lease = found.lease.as_ref().map(|key| format!(" {key}"));
        let stream = found.stream.as_ref().map(|id| format!(" {id}"));
        let about = lease.or(stream).unwrap_or_default();
        put_line!(
            text,
            "{}{about}: expected {}, found {}; {}",
            found.kind,
            found.expected,
            found.found,
            found.advice
        );
    }
    match findings.len() {
        0 => put!(text, "nothing is wrong with the table"),
        some => put!(text, "{}", counted(some as u64, "finding")),
    }
    if repair.is_some() && !findings.is_empty() {
        put_line!(text, "");
        text.add(&change::told(plan, applied, done));
        if applied {
            put!(text, ", {left} findings left");
        }
    } else if !plan.steps.is_empty() {
        put!(text, ", {} of which --repair can mend", plan.steps.len());
    }
    text
}
