//! `leasehold migrate`: moves leases from one table to another.

use crate::clients::{Clients, in_full};
use crate::exit::{self, Failure, Verdict};
use crate::names;
use crate::text::{Text, put, put_line};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use leasehold::Config;
use leasehold::format::{Format, LeaseFormat};
use leasehold::internals::{
    DynamoTable, MigrationPlan as Plan, MigrationReport as Report, TablePort, migrate,
};
use leasehold::runtime::{Runtime, TokioRuntime};
use leasehold_engine::ids::ShardId;
use leasehold_engine::policy::Finished;
use leasehold_engine::time::Span;
use std::sync::Arc;

/// The number of names in the output. Further names are counted, and listed in the JSON.
const NAMED: usize = 10;

/// Move an application's leases to another table: checkpoints, parents and ends.
///
/// Without --apply, the command writes nothing. After an interruption, run the command again. To go back, swap the two
/// tables. A checkpoint never goes backwards, and an owned lease of the new table is left alone. Stop the old fleet
/// first: the command watches the old table for live workers, and writes nothing beside a live worker.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  leasehold migrate --from vmware-go-kcl --from-table billing --to kcl --to-table billing-kcl --apply"
)]
pub(super) struct MigrateArgs {
    /// How leases are kept in the old table: kcl, vmware-go-kcl, kcl-rb or kinsumer.
    #[arg(long, value_name = "FORMAT")]
    from: Format,
    /// The old table.
    #[arg(long, value_name = "TABLE")]
    from_table: String,
    /// How leases are kept in the new table.
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The new table. A missing table is created.
    #[arg(long, value_name = "TABLE")]
    to_table: String,
    /// The stream, by its name. KCL removes rows of finished shards. On the way from KCL's table to another, each such
    /// shard gets a finished row if it is still listed and is an ancestor of a lease: the new fleet would read the
    /// shard again. Without --stream, only parents named by rows get a finished row.
    #[arg(long, value_name = "STREAM")]
    stream: Option<String>,
    /// Write. Without it, only say what would be written.
    #[arg(long)]
    apply: bool,
    /// Move although workers of the old table live. Their later progress is not moved.
    #[arg(long)]
    force: bool,
    /// How long the old table is watched for workers that live, in seconds: their lease duration at least.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(..=3_600))]
    watch: u64,
    /// Another server than AWS, such as `leasehold local`.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// The AWS region.
    #[arg(long)]
    region: Option<String>,
    /// The report as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: MigrateArgs) -> Result<Verdict, Failure> {
    if args.from_table == args.to_table {
        return Err(Failure::unusable(format!(
            "expected --from-table and --to-table to name two tables, found {:?} for both, so source and target are the same \
             table; name another table with --to-table, which is created if it is missing",
            args.from_table
        )));
    }
    names::table("--from-table", &args.from_table)?;
    names::table("--to-table", &args.to_table)?;
    let clients = Clients::from_environment(args.endpoint_url.as_deref(), args.region.clone()).await?;
    let runtime: Arc<dyn Runtime> = Arc::new(
        TokioRuntime::current()
            .map_err(|error| Failure::under_way(format!("there is no runtime to run on: {error}")))?,
    );
    let port = |name: &str, kind: Format| -> TablePort {
        let config = Config::default().with_table(name.to_owned()).with_policies(kind.policies());
        let table = DynamoTable::new(&clients.dynamodb, &runtime, &config);
        Arc::new(table.with_format(Arc::new(kind)))
    };
    let fills_ended = args.from.policies().finished == Finished::WhenRead
        && args.to.policies().finished != Finished::WhenRead;
    let listed = match &args.stream {
        Some(stream) if fills_ended => listed(&clients, stream).await?,
        _ => Vec::new(),
    };
    let plan = Plan {
        fills_ended,
        listed,
        shares: args.to.membership().is_some(),
        apply: args.apply,
        watch: Span::from_secs(args.watch),
        force: args.force,
        life: args.to.policies().life,
        me: "leasehold-migrate".into(),
    };
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} leases, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let (old, new) = (port(&args.from_table, args.from), port(&args.to_table, args.to));
    let report = migrate(&old, &new, &runtime, &plan, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })
    .await
    .map_err(|stopped| Failure::under_way(stopped.to_string()))?;
    bar.finish_and_clear();
    exit::show(args.json, &report, || told(&report, args.apply))?;
    let whole = !report.refused && report.conflicts.is_empty() && report.unreadable.is_empty();
    Ok(Verdict::of(!whole))
}

/// The shards of a stream, each with its parents.
async fn listed(clients: &Clients, stream: &str) -> Result<Vec<(ShardId, Vec<ShardId>)>, Failure> {
    let (mut shards, mut token) = (Vec::new(), None);
    loop {
        let request = clients.kinesis.list_shards();
        let request = match token {
            // A token stands for the stream, too, and may not be given together with it.
            Some(token) => request.next_token(token),
            None => request.stream_name(stream),
        };
        let answer = request.send().await.map_err(|error| {
            Failure::under_way(format!(
                "expected the shards of the stream {stream:?}, found {}; correct --stream, or leave it out",
                in_full(&error)
            ))
        })?;
        for shard in answer.shards() {
            let parents = [shard.parent_shard_id(), shard.adjacent_parent_shard_id()];
            let parents = parents.into_iter().flatten().map(ShardId::from).collect();
            shards.push((ShardId::from(shard.shard_id()), parents));
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(shards);
        }
    }
}

fn told(report: &Report, apply: bool) -> Text {
    let mut text = Text::default();
    if report.refused {
        put_line!(text, "nothing was written: workers of the old table live; stop them, or say --force");
    } else if !apply {
        put_line!(text, "nothing was written; say --apply to do this:");
    }
    let (create, bring) = match apply && !report.refused {
        true => ("created", "brought"),
        false => ("to create", "to bring"),
    };
    put!(
        text,
        "{} leases: {} {create}, {} {bring} up to date, {} the same already",
        report.leases,
        report.created,
        report.updated,
        report.same
    );
    if report.ended > 0 {
        put_line!(text, "");
        put!(
            text,
            "{} of them are finished shards without a row in the old table, which leases came from",
            report.ended
        );
    }
    if let Some(shards) = report.shared {
        put_line!(text, "");
        put!(text, "{shards} unfinished shards in the list that members share out");
    }
    if report.foreign > 0 {
        put_line!(text, "");
        put!(text, "{} items are no leases and stay where they are", report.foreign);
    }
    for (what, named) in [
        ("is owned by the living", &report.live),
        ("was left alone", &report.conflicts),
        ("cannot be read", &report.unreadable),
    ] {
        for (key, why) in named.iter().take(NAMED) {
            put_line!(text, "");
            put!(text, "{key} {what}: {why}");
        }
        if named.len() > NAMED {
            put_line!(text, "");
            put!(text, "and {} more like it", named.len() - NAMED);
        }
    }
    text
}
