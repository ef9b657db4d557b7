//! Moves an application's leases from one table to another, in any of the formats.
//!
//! Guarded writes bring each row up to its counterpart, one row after the other. A migration can be interrupted
//! anywhere and run again, also in the opposite direction. [`migration`](leasehold_engine::migration) holds the
//! rules; this module reads, writes and retries.

use crate::patient::{GaveUp, PatientTable};
use crate::ports::TablePort;
use crate::runtime::Runtime;
use leasehold_engine::admin::View;
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::input::{Outcome, Reply, TableState};
use leasehold_engine::internals::{Step, next};
use leasehold_engine::members::{MembersChange, MembersOp, Shared, Side};
use leasehold_engine::output::TableOp;
use leasehold_engine::policy::Life;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::time::{Span, Wall};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// No row needs more steps than this; a row still unfinished is changed by another program all the time.
const STEPS: u32 = 20;
const TABLE_PAUSE: Span = Span::from_millis(500);
/// A new table can be used after seconds; this often it is looked for.
const TABLE_LOOKS: u32 = 240;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether to write. Without writes, the report says the writes a real run would make.
    pub apply: bool,
    /// How long to watch the old table for live workers; zero: no watch. At least the workers' lease duration.
    pub watch: Span,
    /// Go on although workers live.
    pub force: bool,
    /// What the new table's numbers mean.
    pub life: Life,
    /// The owner named in the new table while a row is brought up to date.
    pub me: WorkerId,
    /// Set if the old table loses the rows of finished shards, but the new format reads a listed shard without a row.
    /// Then ancestors of leases without a row in the old table get a row in the new table: the row says shard end.
    pub fills_ended: bool,
    /// The listed shards of the stream, each with its parents, for `fills_ended`. Without the list, only parents
    /// named in rows are known.
    pub listed: Vec<(ShardId, Vec<ShardId>)>,
    /// Workers of the new table share out a list of shards in a table beside: it is written, too.
    pub shares: bool,
}

/// What was done, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Leases in the old table.
    pub leases: u64,
    /// Rows that were not there.
    pub created: u64,
    /// Rows that were behind.
    pub updated: u64,
    /// Rows that said the same already.
    pub same: u64,
    /// Of the leases: finished shards that had no row any more.
    pub ended: u64,
    /// Shards in the list that members of the new table share out. Absent: there is no such list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// Items of the old table that are no leases; migration skips foreign items.
    pub foreign: u64,
    /// Leases that were left alone, and why.
    pub conflicts: BTreeMap<String, String>,
    /// Items of either table that cannot be read as leases, and why.
    pub unreadable: BTreeMap<String, String>,
    /// Leases of the old table with changes during the watch, and their owners.
    pub live: BTreeMap<String, String>,
    /// Nothing was written since workers live.
    pub refused: bool,
}

/// The reason for a migration's early end. Rows already written stay, and the migration can be run again.
#[derive(Debug, thiserror::Error)]
#[error("could not {what}: {how}; what was moved so far stays, and the migration can be run again")]
pub struct Stopped {
    what: String,
    how: String,
}

impl From<GaveUp> for Stopped {
    fn from(GaveUp { what, how }: GaveUp) -> Self {
        Self { what, how }
    }
}

/// That it is a table of its format.
async fn found(old: &mut PatientTable<'_>) -> Result<(), Stopped> {
    let how = match old.state("look at the old table").await? {
        TableState::Missing => {
            "expected a table of that name in this account and region, found none; correct the name or region"
        }
        TableState::Incompatible => {
            "expected the key of its format, found another; name the format that it has"
        }
        TableState::Usable | TableState::Creating | TableState::Deleting => return Ok(()),
    };
    Err(Stopped { what: "use the old table".to_owned(), how: how.to_owned() })
}

/// The table, made if it is missing.
async fn made(new: &mut PatientTable<'_>) -> Result<(), Stopped> {
    for _ in 0..TABLE_LOOKS {
        match new.state("look at the new table").await? {
            TableState::Usable => return Ok(()),
            TableState::Incompatible => {
                return Err(Stopped {
                    what: "use the new table".to_owned(),
                    how: "expected the key of its format, found another; name a table of that format, or a new one"
                        .to_owned(),
                });
            }
            TableState::Missing => {
                new.ask("create the new table", TableOp::Create).await?;
            }
            TableState::Creating | TableState::Deleting => {}
        }
        new.runtime.sleep(TABLE_PAUSE).await;
    }
    Err(Stopped { what: "use the new table".to_owned(), how: "it was not ready in two minutes".to_owned() })
}

/// Brings the rows of `new` up to the rows of `old`. `progress` gets the number of finished rows and of all rows.
///
/// # Errors
/// If a table cannot be read or written, in spite of several tries.
pub async fn migrate(
    old: &TablePort, new: &TablePort, runtime: &Arc<dyn Runtime>, plan: &Plan,
    mut progress: impl FnMut(u64, u64),
) -> Result<Report, Stopped> {
    let (mut old, mut new) = (PatientTable::new(old, runtime), PatientTable::new(new, runtime));
    found(&mut old).await?;
    let mut rows = old.rows("scan the old table").await?;
    let mut report = Report::default();
    if plan.watch > Span::ZERO && rows.leases.values().any(|row| row.owner.is_some()) {
        runtime.sleep(plan.watch).await;
        let later = old.rows("scan the old table").await?;
        for (key, row) in &later.leases {
            let before = rows.leases.get(key);
            if let Some(owner) = row.actual_owner()
                && before.is_none_or(|before| before.counter != row.counter || before.owner != row.owner)
            {
                report.live.insert(key.as_str().to_owned(), owner.as_str().to_owned());
            }
        }
        rows = later;
    }
    if plan.fills_ended {
        let ended = ended_before(&rows, &plan.listed);
        report.ended = ended.len() as u64;
        let row = |key: LeaseKey| (key.clone(), LeaseRow::new(key, Checkpoint::ShardEnd));
        rows.leases.extend(ended.into_iter().map(row));
    }
    report.leases = rows.leases.len() as u64;
    report.foreign = rows.foreign.len() as u64;
    report.unreadable = unreadable(&rows);
    report.refused = !report.live.is_empty() && !plan.force;
    let apply = plan.apply && !report.refused;
    let there = if apply {
        made(&mut new).await?;
        new.rows("scan the new table").await?
    } else if new.state("look at the new table").await? == TableState::Usable {
        new.rows("scan the new table").await?
    } else {
        View::default()
    };
    report.unreadable.extend(unreadable(&there));
    let (mut done, all) = (0, report.leases);
    for (key, row) in &rows.leases {
        if !there.unreadable.contains_key(key) {
            let seen = there.leases.get(key).cloned();
            bring(&mut new, row, seen, plan, apply, runtime, &mut report).await?;
        }
        done += 1;
        progress(done, all);
    }
    if plan.shares {
        report.shared = Some(match apply {
            true => share(&mut new, plan, runtime).await?,
            false => unfinished(&rows).count() as u64,
        });
    }
    Ok(report)
}

/// Ancestors of leases without a row in the old table: these shards are finished.
fn ended_before(rows: &View, listed: &[(ShardId, Vec<ShardId>)]) -> BTreeSet<LeaseKey> {
    let listed: BTreeMap<&ShardId, &Vec<ShardId>> =
        listed.iter().map(|(id, parents)| (id, parents)).collect();
    let above = |id: &ShardId| listed.get(id).into_iter().flat_map(|parents| parents.iter().cloned());
    let leases = rows.leases.iter();
    let mut open: Vec<ShardId> =
        leases.flat_map(|(key, row)| row.parents.iter().cloned().chain(above(&key.to_shard()))).collect();
    let mut found = BTreeSet::new();
    while let Some(shard) = open.pop() {
        let key = shard.to_lease();
        if !rows.leases.contains_key(&key) && !rows.unreadable.contains_key(&key) && found.insert(key) {
            open.extend(above(&shard));
        }
    }
    found
}

/// The shards that are still to be read, in the order of their names.
fn unfinished(rows: &View) -> impl Iterator<Item = ShardId> {
    let leases = rows.leases.iter();
    let leases = leases.filter(|(_, row)| !row.checkpoint.is_end());
    leases.map(|(key, _)| key.to_shard())
}

/// Writes the members' list of shards; gives the list's length. Without a list, the first member to start takes all
/// listed shards as unfinished, finished shards included. An empty list counts as no list.
async fn share(new: &mut PatientTable<'_>, plan: &Plan, runtime: &Arc<dyn Runtime>) -> Result<u64, Stopped> {
    made_side(new).await?;
    for _ in 0..STEPS {
        let rows = new.rows("scan the new table").await?;
        let seen = match new.members("read the list of shards", MembersOp::ReadShards).await? {
            Outcome::Applied(Reply::Shared(seen)) => seen,
            other => return Err(unexpected("read the list of shards", &other)),
        };
        let mut shards: BTreeSet<ShardId> = unfinished(&rows).collect();
        // A shard found by a member since stays in the list, unless the shard is finished.
        let is_new = |shard: &&ShardId| !rows.leases.contains_key(&shard.to_lease());
        let found = seen.iter().flat_map(|seen| &seen.shards);
        shards.extend(found.filter(is_new).cloned());
        let shards: Vec<ShardId> = shards.into_iter().collect();
        let many = shards.len() as u64;
        if shards.is_empty() || seen.as_ref().is_some_and(|seen| seen.shards == shards) {
            return Ok(many);
        }
        let seen = seen.map(|seen| seen.at);
        let at = plan.life.next(seen.unwrap_or(0), Wall(runtime.wall().0), Span::ZERO);
        let shared = Shared { shards, at };
        let change = MembersChange::Share { shared, seen };
        // Whether it was written is looked at next: another may have been quicker.
        new.members("write the list of shards", MembersOp::Write(change)).await?;
    }
    Err(Stopped {
        what: "write the list of shards".to_owned(),
        how: "somebody else changes the list all the time; stop the worker that writes to the new table"
            .to_owned(),
    })
}

fn unexpected(what: &str, outcome: &Outcome) -> Stopped {
    Stopped { what: what.to_owned(), how: format!("answered with what was not asked for: {outcome:?}") }
}

/// The table with the list of shards, made if it is missing.
async fn made_side(new: &mut PatientTable<'_>) -> Result<(), Stopped> {
    let what = "look at the table of the leader and the shards";
    for _ in 0..TABLE_LOOKS {
        match new.members(what, MembersOp::Describe(Side::Fleet)).await? {
            Outcome::Applied(Reply::Table(TableState::Usable)) => return Ok(()),
            Outcome::Applied(Reply::Table(TableState::Missing)) => {
                let create = MembersOp::Create(Side::Fleet);
                new.members("create the table of the leader and the shards", create).await?;
            }
            Outcome::Applied(Reply::Table(TableState::Creating | TableState::Deleting)) => {}
            Outcome::Applied(Reply::Table(TableState::Incompatible)) => {
                return Err(Stopped {
                    what: "use the table of the leader and the shards".to_owned(),
                    how: "expected the key of its format, found another; name another application".to_owned(),
                });
            }
            other => return Err(unexpected(what, &other)),
        }
        new.runtime.sleep(TABLE_PAUSE).await;
    }
    Err(Stopped {
        what: "use the table of the leader and the shards".to_owned(),
        how: "it was not ready in two minutes".to_owned(),
    })
}

fn unreadable(view: &View) -> BTreeMap<String, String> {
    let each = view.unreadable.iter();
    each.map(|(key, why)| (key.as_str().to_owned(), why.clone())).collect()
}

/// Brings one row up to date.
async fn bring(
    new: &mut PatientTable<'_>, old: &LeaseRow, mut seen: Option<LeaseRow>, plan: &Plan, apply: bool,
    runtime: &Arc<dyn Runtime>, report: &mut Report,
) -> Result<(), Stopped> {
    let missing = seen.is_none();
    let mut changed = false;
    for _ in 0..STEPS {
        let wall = Wall(runtime.wall().0);
        match next(old, seen.as_ref(), &plan.me, plan.life, wall) {
            Step::Done => {
                *(match (changed, missing) {
                    (false, _) => &mut report.same,
                    (true, true) => &mut report.created,
                    (true, false) => &mut report.updated,
                }) += 1;
                return Ok(());
            }
            Step::Conflict(why) => {
                report.conflicts.insert(old.key.as_str().to_owned(), why.to_string());
                return Ok(());
            }
            Step::Write(_) if !apply => {
                *(if missing { &mut report.created } else { &mut report.updated }) += 1;
                return Ok(());
            }
            Step::Write(change) => {
                changed = true;
                let what = format!("{} {} in the new table", change.verb(), change.key());
                new.ask(&what, TableOp::Write(*change)).await?;
                let what = format!("read {} in the new table", old.key);
                match new.read(&what, &old.key).await? {
                    Ok(row) => seen = row,
                    Err(why) => {
                        report.unreadable.insert(old.key.as_str().to_owned(), why);
                        return Ok(());
                    }
                }
            }
        }
    }
    let why =
        "somebody else changes the row all the time; stop the worker that writes to the new table".to_owned();
    report.conflicts.insert(old.key.as_str().to_owned(), why);
    Ok(())
}

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod tests;
