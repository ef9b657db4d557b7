//! `leasehold admin doctor`: a table and its stream are read, compared, and mended.

use super::ailment::{self, Ailment, Patient};
use super::change;
use super::table::{Table, TableArgs, under_way};
use crate::clients::in_full;
use crate::exit::{self, Failure, Verdict};
use crate::plan::survey::{Asked, survey};
use crate::position::parse_position;
use clap::Args;
use leasehold::admin::{Done, Plan, Shard, TableReport};
use leasehold::format::LeaseFormat;
use leasehold::internals::item_from_sdk;
use leasehold::{InitialPosition, LeaseKey};
use leasehold_engine::row::RowRead;
use leasehold_engine::table::Item;
use leasehold_engine::time::Wall;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Say what is wrong with a table, and mend what can be mended safely.
///
/// The table is compared with the shards of the stream: holes in the hash space, leases of shards that are gone, ends without
/// children, rows that cannot be read or lack what guards them, hand-overs that stand still. Each finding says what was expected,
/// what was found, and what to do. With --repair, it says which writes would mend the table; with --apply, too, they are made, each
/// one conditional. A lease that is missing is created only while no worker lives: a live fleet does that itself.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold admin doctor --application billing --stream orders\n  leasehold admin doctor --application billing --stream orders --repair --apply"
)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The stream's name.
    #[arg(long)]
    stream: String,
    /// Where the fleet starts shards without a lease: trim-horizon, latest or a time as of RFC 3339.
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position)]
    from: InitialPosition,
    /// Say which writes would mend the table.
    #[arg(long)]
    repair: bool,
    /// Make these writes.
    #[arg(long, requires = "repair")]
    apply: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Told<'a> {
    findings: &'a [Ailment],
    repair: Option<&'a Plan>,
    applied: bool,
    done: &'a [Done],
    /// So many findings are left.
    left: usize,
}

pub(super) async fn run(args: DoctorArgs) -> Result<Verdict, Failure> {
    let table = args.table.open().await?;
    let listed = table.admin.shards(&table.clients.kinesis, &args.stream).await;
    let shards = listed.map_err(under_way)?;
    let (_, report) = table.watched().await?;
    let findings = examine(&table, &args, &shards, &report).await?;
    let plan = Plan {
        steps: findings.iter().filter_map(|found| found.repair.clone()).collect(),
        left: Vec::new(),
    };
    let mut done = Vec::new();
    let mut left = findings.len();
    if args.apply && !plan.steps.is_empty() {
        done = table.admin.apply(&plan).await.map_err(under_way)?;
        left = examine(&table, &args, &shards, &report).await?.len();
    }
    if args.table.json {
        exit::print_json(&Told {
            findings: &findings,
            repair: args.repair.then_some(&plan),
            applied: args.apply,
            done: &done,
            left,
        })?;
    } else {
        exit::print(&told(&findings, &plan, &args, &done, left))?;
    }
    Ok(if left == 0 { Verdict::Fine } else { Verdict::Found })
}

/// What is wrong with the table as it is now.
async fn examine(
    table: &Table,
    args: &DoctorArgs,
    shards: &[Shard],
    report: &TableReport,
) -> Result<Vec<Ailment>, Failure> {
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
    let asked = Asked {
        from: args.from,
        policies: format.policies(),
        heartbeats: &[],
        now: Wall(0),
    };
    let survey = survey(shards, &rows, &asked);
    let patient = Patient {
        view: &rows.into_iter().collect(),
        shards,
        lacks: &lacks,
        report,
        finished: format.policies().finished,
    };
    Ok(ailment::judge(&survey, &patient))
}

/// All items of the table, as they are: rows do not tell what an item lacks.
async fn items(table: &Table) -> Result<Vec<Item>, Failure> {
    let scan = table
        .clients
        .dynamodb
        .scan()
        .table_name(&table.name)
        .consistent_read(true);
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

fn told(findings: &[Ailment], plan: &Plan, args: &DoctorArgs, done: &[Done], left: usize) -> String {
    let mut text = String::new();
    for found in findings {
        let about = found
            .lease
            .as_ref()
            .map_or(String::new(), |key| format!(" {key}"));
        let _ = writeln!(
            text,
            "{}{about}: expected {}, found {}; {}",
            found.kind, found.expected, found.found, found.advice
        );
    }
    match findings.len() {
        0 => text.push_str("nothing is wrong with the table"),
        1 => text.push_str("1 finding"),
        more => {
            let _ = write!(text, "{more} findings");
        }
    }
    if args.repair && !findings.is_empty() {
        let _ = write!(text, "\n{}", change::told(plan, args.apply, done));
        if args.apply {
            let _ = write!(text, ", {left} findings left");
        }
    } else if !plan.steps.is_empty() {
        let _ = write!(text, ", {} of which --repair can mend", plan.steps.len());
    }
    text
}
