//! From changes to writes.
//!
//! The programs that own these formats replace whole items, and write checkpoints without any guard. Our writes change
//! single attributes. Each write is guarded by the deadline and by the workers allowed to write.

use super::super::reading::{dated, naming, still_names};
use super::{Columns, SHARD_END, absent, empty};
use crate::began;
use crate::ids::{ShardId, WorkerId};
use crate::position::Checkpoint;
use crate::row::{Change, Guard, LeaseRow, Renaming};
use crate::shard::HashRange;
use crate::table::{Action, AttributeValue, Condition, Item, Update};

const SECOND: u64 = 1_000_000_000;

pub(super) fn condition(table: &Columns, change: &Change) -> Condition {
    let key: &'static str = table.key;
    match change {
        Change::Create(_) => Condition::NotExists(key.into()),
        Change::Take { counter, from, checkpoint, named: stream, .. } => {
            let mut all = vec![
                // Only its key tells a row without any former owner from a missing row.
                Condition::Exists(key.into()),
                at(table, *counter),
                of(table, from.as_ref()),
                // Others write checkpoints without moving the deadline.
                still(table, *checkpoint),
            ];
            all.extend(still_names(table.stream, stream.as_ref()));
            Condition::All(all)
        }
        Change::Claim { counter, from, checkpoint, .. } => Condition::All(vec![
            at(table, *counter),
            named(table.owner, from),
            empty(table.claim),
            still(table, *checkpoint),
        ]),
        // No leader assigns leases of these formats, and a table belongs to one stream: these conditions never hold.
        Change::Assign { .. } | Change::Offer { .. } | Change::Weigh { .. } | Change::Forget { .. } => {
            Condition::All(vec![Condition::Exists(key.into()), Condition::NotExists(key.into())])
        }
        Change::Renew { guard, .. }
        | Change::Checkpoint { guard, .. }
        | Change::End { guard, .. }
        | Change::Release { guard, .. }
        | Change::HandOver { guard, .. } => held(table, guard),
        Change::SetRange { was, .. } => still_covers(table, *was),
        Change::Reset { counter, owner, handing_over, checkpoint, .. } => Condition::All(vec![
            Condition::Exists(key.into()),
            at(table, *counter),
            had(table, owner.as_ref(), handing_over.as_ref()),
            still(table, *checkpoint),
        ]),
        Change::Name(renaming) => still_named(table, renaming),
        Change::Delete { counter, .. } => {
            Condition::All(vec![at(table, *counter), still(table, Checkpoint::ShardEnd)])
        }
    }
}

fn still_named(table: &Columns, renaming: &Renaming) -> Condition {
    let mut all = vec![at(table, renaming.counter), still(table, renaming.checkpoint)];
    all.extend(still_names(table.stream, Some(&renaming.named)));
    Condition::All(all)
}

/// The lease is this worker's, or no worker's.
fn of(table: &Columns, worker: Option<&WorkerId>) -> Condition {
    match worker {
        // The owner, or the worker waiting for a released lease or for a hand-over.
        Some(worker) => Condition::Any(vec![
            named(table.claim, worker),
            Condition::All(vec![named(table.owner, worker), empty(table.claim)]),
        ]),
        None => Condition::All(vec![absent(table.owner), empty(table.claim)]),
    }
}

fn held(table: &Columns, guard: &Guard) -> Condition {
    Condition::All(vec![
        at(table, guard.counter),
        named(table.owner, &guard.holder),
        match &guard.next_owner {
            None => empty(table.claim),
            Some(next) => named(table.claim, next),
        },
    ])
}

/// The row names these workers, as at the read: the owner, and the worker handing over to the owner.
fn had(table: &Columns, owner: Option<&WorkerId>, handing_over: Option<&WorkerId>) -> Condition {
    match (owner, handing_over) {
        (Some(claimant), Some(owner)) => {
            Condition::All(vec![named(table.owner, owner), named(table.claim, claimant)])
        }
        // An owner with a claim on its own lease, and a claimant of a released lease, each count as one owner.
        (Some(owner), None) => Condition::Any(vec![
            Condition::All(vec![absent(table.owner), named(table.claim, owner)]),
            Condition::All(vec![
                named(table.owner, owner),
                Condition::Any(vec![empty(table.claim), named(table.claim, owner)]),
            ]),
        ]),
        (None, _) => Condition::All(vec![absent(table.owner), empty(table.claim)]),
    }
}

/// The row names these hash keys, or none.
fn still_covers(table: &Columns, was: Option<HashRange>) -> Condition {
    let key: &'static str = table.key;
    Condition::All(match was {
        None => vec![
            Condition::Exists(key.into()),
            Condition::Any(vec![empty(table.range_start), empty(table.range_end)]),
        ],
        Some(was) => vec![
            Condition::Equals(table.range_start.into(), AttributeValue::s(was.start.to_string())),
            Condition::Equals(table.range_end.into(), AttributeValue::s(was.end.to_string())),
        ],
    })
}

/// The deadline is unchanged since the read. Zero stands for a missing deadline.
fn at(table: &Columns, counter: u64) -> Condition {
    let spelled = match counter {
        0 => empty(table.timeout),
        deadline => Condition::Equals(table.timeout.into(), AttributeValue::s((table.spell)(deadline))),
    };
    match table.exact {
        None => spelled,
        // No deadline of ours is of whole seconds.
        Some(exact) if counter.is_multiple_of(SECOND) => Condition::All(vec![absent(exact), spelled]),
        Some(exact) => Condition::Equals(exact.into(), AttributeValue::n(counter)),
    }
}

/// The checkpoint is unchanged since the read.
fn still(table: &Columns, checkpoint: Checkpoint) -> Condition {
    match spelled(checkpoint) {
        Some(text) => Condition::Equals(table.checkpoint.into(), AttributeValue::s(text)),
        None => empty(table.checkpoint),
    }
}

pub(super) fn action(table: &Columns, change: &Change) -> Action {
    let until = |deadline: u64| {
        let update = Update::default().set(table.timeout, AttributeValue::s((table.spell)(deadline)));
        match table.exact {
            Some(exact) => update.set(exact, AttributeValue::n(deadline)),
            None => update,
        }
    };
    Action::Update(match change {
        Change::Create(row) => return Action::Put(item(table, row)),
        Change::Delete { .. } => return Action::Delete,
        Change::Renew { guard, began, .. } => until(guard.next).set_some(table.began, dated(*began)),
        Change::Take { next, to, checkpoint, began, stream, .. } => {
            let update = until(*next)
                .set(table.owner, AttributeValue::s(to.clone()))
                .remove(table.claim)
                .set_some(table.checkpoint, none_yet(table, *checkpoint))
                .set_some(table.stream, naming(stream.as_ref()));
            match began::is_of(*checkpoint) {
                true => update.set_some(table.began, dated(*began)),
                false => update.remove(table.began),
            }
        }
        Change::Claim { by, checkpoint, .. } => {
            let update = Update::default().set(table.claim, AttributeValue::s(by.clone()));
            match spelled(*checkpoint) {
                Some(_) => update,
                // vmware-go-kcl looks at the owner and the deadline only of rows with a checkpoint, even an empty one.
                None => update.set(table.checkpoint, AttributeValue::s("")),
            }
        }
        Change::Checkpoint { guard, position, .. } => {
            placed(table, until(guard.next), Checkpoint::At(*position))
        }
        Change::Reset { next, to, .. } => {
            placed(table, until(*next), *to).remove(table.owner).remove(table.claim)
        }
        Change::Name(renaming) => {
            Update::default().set(table.stream, AttributeValue::s(renaming.stream.text()))
        }
        Change::End { guard, children, .. } => ended(table, until(guard.next), children),
        Change::Assign { .. } | Change::Offer { .. } | Change::Weigh { .. } | Change::Forget { .. } => {
            Update::default().remove(table.claim)
        }
        // A claim stays: it tells the next turn.
        Change::Release { guard, .. } | Change::HandOver { guard, .. } => {
            until(guard.next).remove(table.owner)
        }
        Change::SetRange { range, .. } => Update::default()
            .set(table.range_start, AttributeValue::s(range.start.to_string()))
            .set(table.range_end, AttributeValue::s(range.end.to_string())),
    })
}

/// The same update, but the row is also left at a checkpoint.
fn placed(table: &Columns, update: Update, to: Checkpoint) -> Update {
    let update = update.remove(table.began);
    let update = match spelled(to) {
        Some(text) => update.set(table.checkpoint, AttributeValue::s(text)).remove(table.start),
        None => match none_yet(table, to) {
            Some(none) => update.set(table.checkpoint, none),
            None => update.remove(table.checkpoint),
        }
        .set(table.start, AttributeValue::s(to.to_string())),
    };
    match to.position().map_or(0, |position| position.sub) {
        0 => update.remove(table.sub),
        sub => update.set(table.sub, AttributeValue::n(sub)),
    }
}

/// The same update, but the row is also left ended and without a worker, with these children, if known.
fn ended(table: &Columns, update: Update, children: &[ShardId]) -> Update {
    update
        .set(table.checkpoint, AttributeValue::s(SHARD_END))
        .remove(table.start)
        .remove(table.began)
        .remove(table.sub)
        .remove(table.owner)
        .remove(table.claim)
        .set_some(table.children, shard_set(children))
}

/// The text of a checkpoint; absent for a place to begin at, which is no checkpoint here.
fn spelled(checkpoint: Checkpoint) -> Option<String> {
    match checkpoint {
        Checkpoint::At(position) => Some(position.sequence.to_string()),
        Checkpoint::ShardEnd => Some(SHARD_END.to_owned()),
        Checkpoint::TrimHorizon | Checkpoint::Latest | Checkpoint::AtTimestamp => None,
    }
}

/// The value in place of a checkpoint while no checkpoint is stored, if the format has such a value.
fn none_yet(table: &Columns, checkpoint: Checkpoint) -> Option<AttributeValue> {
    (table.says_none && spelled(checkpoint).is_none()).then(|| AttributeValue::s(""))
}

fn item(table: &Columns, row: &LeaseRow) -> Item {
    let text = |text: Option<String>| text.map(AttributeValue::s);
    let worker = |worker: &Option<WorkerId>| worker.clone().map(AttributeValue::s);
    // In a hand-over the row's owner is the claimant.
    let (owner, claimant) = match &row.handing_over {
        Some(_) => (&row.handing_over, &row.owner),
        None => (&row.owner, &None),
    };
    let start = match row.checkpoint {
        Checkpoint::At(_) | Checkpoint::ShardEnd => None,
        start => Some(start.to_string()),
    };
    let sub = row.checkpoint.position().map_or(0, |position| position.sub);
    let deadline = Some(row.counter).filter(|deadline| *deadline > 0);
    let mut item: Item = [
        (table.key, Some(AttributeValue::s(row.key.clone()))),
        (table.owner, worker(owner)),
        (table.claim, worker(claimant)),
        (table.timeout, text(deadline.map(table.spell))),
        (table.checkpoint, text(spelled(row.checkpoint)).or_else(|| none_yet(table, row.checkpoint))),
        (table.start, text(start)),
        (table.began, dated(row.began)),
        (table.sub, (sub > 0).then(|| AttributeValue::n(sub))),
        (table.parent, text(row.parents.first().map(ToString::to_string))),
        (table.parents, shard_set(&row.parents)),
        (table.children, shard_set(&row.children)),
        (table.range_start, text(row.range.map(|range| range.start.to_string()))),
        (table.range_end, text(row.range.map(|range| range.end.to_string()))),
        (table.stream, naming(row.stream.as_ref())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.into(), value?)))
    .collect();
    if let (Some(exact), Some(deadline)) = (table.exact, deadline) {
        item.insert(exact.into(), AttributeValue::n(deadline));
    }
    item
}

fn shard_set(shards: &[ShardId]) -> Option<AttributeValue> {
    (!shards.is_empty()).then(|| AttributeValue::Ss(shards.iter().map(ToString::to_string).collect()))
}

fn named(name: &'static str, worker: &WorkerId) -> Condition {
    Condition::Equals(name.into(), AttributeValue::s(worker.clone()))
}
