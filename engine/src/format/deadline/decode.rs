//! From items to rows.

use super::super::reading::{get, identity, keyed, moment, number, range, shards, text, wrong};
use super::{Columns, SHARD_END};
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{HandsOver, LeaseRow, RowRead};
use crate::table::{AttributeValue, Item};

pub(super) fn decode(table: &Columns, item: &Item) -> RowRead {
    keyed(table.key, item, |key| lease(table, key, item))
}

fn lease(table: &Columns, key: LeaseKey, item: &Item) -> Result<LeaseRow, String> {
    let worker = |name| -> Result<Option<WorkerId>, String> {
        match get(item, name) {
            // An empty owner never writes again: some programs leave such rows behind.
            Some(AttributeValue::S(text)) => Ok(Some(WorkerId::new(text.clone()))),
            None => Ok(None),
            found => Err(wrong(name, "a string", found)),
        }
    };
    let claimant = worker(table.claim)?.filter(|claimant| !claimant.as_str().is_empty());
    let (owner, handing_over) = match (worker(table.owner)?, claimant) {
        (Some(owner), Some(claimant)) if owner != claimant => (Some(claimant), Some(owner)),
        (owner, claimant) => (owner.or(claimant), None),
    };
    let mut parents = shards(table.parents, get(item, table.parents))?;
    if parents.is_empty() {
        let first = text(table.parent, get(item, table.parent))?;
        parents.extend(first.map(|id| ShardId::new(id.clone())));
    }
    Ok(LeaseRow {
        key,
        owner,
        handing_over,
        counter: deadline(table, item)?,
        switches: 0,
        checkpoint: checkpoint(table, item)?,
        parents,
        children: shards(table.children, get(item, table.children))?,
        range: range([
            (table.range_start, get(item, table.range_start)),
            (table.range_end, get(item, table.range_end)),
        ])?,
        hands_over: HandsOver::No,
        throughput: None,
        began: moment(item.get(table.began)),
        stream: identity(item.get(table.stream)),
    })
}

/// An owner has a lease until a deadline.
pub(super) fn lacks(table: &Columns, item: &Item) -> Vec<&'static str> {
    let there = |name| get(item, name).is_some();
    let owned = there(table.owner) && !there(table.timeout);
    owned.then_some(table.timeout).into_iter().collect()
}

/// In nanoseconds since 1970; 0 for none.
fn deadline(table: &Columns, item: &Item) -> Result<u64, String> {
    if let Some(name) = table.exact
        && let Some(exact) = number(name, get(item, name))?
    {
        return Ok(exact);
    }
    let found = get(item, table.timeout);
    match text(table.timeout, found)? {
        None => Ok(0),
        Some(text) => (table.read)(text).ok_or_else(|| wrong(table.timeout, table.time, found)),
    }
}

fn checkpoint(table: &Columns, item: &Item) -> Result<Checkpoint, String> {
    let found = get(item, table.checkpoint);
    let Some(text) = text(table.checkpoint, found)? else {
        return Ok(match item.get(table.start).and_then(AttributeValue::as_s) {
            Some("LATEST") => Checkpoint::Latest,
            Some("AT_TIMESTAMP") => Checkpoint::AtTimestamp,
            _ => Checkpoint::TrimHorizon,
        });
    };
    if **text == *SHARD_END {
        return Ok(Checkpoint::ShardEnd);
    }
    let sequence =
        text.parse().map_err(|_| wrong(table.checkpoint, "a sequence number or SHARD_END", found))?;
    let sub = number(table.sub, get(item, table.sub))?.unwrap_or(0);
    Ok(Checkpoint::At(Position { sequence, sub }))
}
