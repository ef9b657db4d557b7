//! `leasehold admin status`.

use super::table::TableArgs;
use crate::exit::{self, Failure, Verdict};
use crate::text::{Text, put, put_line};
use clap::Args;
use leasehold::admin::{Standing, TableReport};

/// Show the owner of each lease, live workers, and the progress of each shard.
///
/// The table is read twice. A lease is `alive` if its row changed in between, and `silent` if not. A lease is `expired`
/// after a silent watch of a whole lease duration (--watch and --lease-duration). A lease without an owner is `free`; a
/// lease whose shard was read to its end is `finished`. The command writes nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold admin status --application billing\n  leasehold admin status --application billing --watch 15 --json"
)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    table: TableArgs,
}

pub(super) async fn run(args: StatusArgs) -> Result<Verdict, Failure> {
    let table = args.table.open().await?;
    let (_, report) = table.watched().await?;
    exit::show(args.table.json, &report, || told(&report))?;
    Ok(Verdict::Fine)
}

fn told(report: &TableReport) -> Text {
    let mut text = Text::default();
    let width = |longest: Option<usize>| longest.unwrap_or(0);
    let shard = width(report.leases.iter().map(|lease| lease.lease.to_string().chars().count()).max());
    let name =
        |owner: &Option<leasehold::WorkerId>| owner.as_ref().map_or("-".to_owned(), ToString::to_string);
    let owner = width(report.leases.iter().map(|lease| name(&lease.owner).chars().count()).max());
    for lease in &report.leases {
        put!(
            text,
            "{:shard$}  {:8}  {:owner$}  {}",
            lease.lease,
            lease.standing.to_string(),
            name(&lease.owner),
            lease.checkpoint
        );
        if let Some(next) = &lease.handed_to {
            put!(text, "  is being handed over to {next}");
        }
        put_line!(text, "");
    }
    for (key, detail) in &report.unreadable {
        put_line!(text, "{key}  cannot be read: {detail}");
    }
    for owner in &report.owners {
        let how =
            if owner.alive { "alive".to_owned() } else { format!("not seen to renew in {}", report.watched) };
        put_line!(text, "{} has {} unfinished leases, {how}", owner.worker, owner.leases);
    }
    let count = |standing| {
        let leases = report.leases.iter();
        leases.filter(|lease| lease.standing == standing).count()
    };
    put!(
        text,
        "{} leases: {} alive, {} silent, {} expired, {} free, {} finished; {} items of other kinds, {} that cannot be read (watched \
         for {})",
        report.leases.len(),
        count(Standing::Alive),
        count(Standing::Silent),
        count(Standing::Expired),
        count(Standing::Free),
        count(Standing::Finished),
        report.foreign.len(),
        report.unreadable.len(),
        report.watched
    );
    text
}
