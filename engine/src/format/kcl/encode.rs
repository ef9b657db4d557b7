//! From changes to conditional writes.

use super::super::reading::{dated, naming, still_names};
use super::{LEASE, name, sentinel};
use crate::began;
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::Checkpoint;
use crate::row::{Change, Guard, HandsOver, LeaseRow, Renaming};
use crate::shard::HashRange;
use crate::stream_id::split_key;
use crate::table::{Action, AttributeValue, Condition, Item, Update};
use crate::time::Wall;

pub(super) fn condition(change: &Change) -> Condition {
    match change {
        Change::Create(_) => not_exists(name::KEY),
        Change::Take { counter, from, checkpoint, named: stream, .. } => {
            let mut all = bare(*counter, from.as_ref(), *checkpoint);
            all.extend([counts(*counter), named(name::OWNER, from.as_ref())]);
            all.extend(still_names(name::IDENTITY, stream.as_ref()));
            Condition::All(all)
        }
        // KCL's hand-over, begun by the next owner. A renewal or a checkpoint that comes first does no harm.
        Change::Claim { from, .. } => {
            Condition::All(vec![owned_by(name::OWNER, from), nobody(name::OLD_OWNER)])
        }
        // KCL's leader checks the owners alone, and forgets without a condition. The counter is added: an owner that renewed since is not robbed.
        Change::Assign { counter, from, handing_over, .. }
        | Change::Forget { counter, owner: from, handing_over, .. } => Condition::All(vec![
            Condition::Exists(name::KEY.into()),
            counts(*counter),
            named(name::OWNER, from.as_ref()),
            named(name::OLD_OWNER, handing_over.as_ref()),
        ]),
        Change::Offer { from, .. } | Change::Weigh { owner: from, .. } => {
            Condition::All(vec![owned_by(name::OWNER, from), nobody(name::OLD_OWNER)])
        }
        Change::Renew { guard, .. }
        | Change::Checkpoint { guard, .. }
        | Change::End { guard, .. }
        | Change::Release { guard, .. }
        | Change::HandOver { guard, .. } => held(guard),
        Change::SetRange { was, .. } => still_covers(*was),
        Change::Reset { counter, owner, handing_over, checkpoint, .. } => {
            reset(*counter, owner.as_ref(), handing_over.as_ref(), *checkpoint)
        }
        Change::Name(renaming) => still_named(renaming),
        Change::Delete { counter, .. } => Condition::All(vec![
            counts(*counter),
            equals(name::CHECKPOINT, AttributeValue::s(sentinel::SHARD_END)),
        ]),
    }
}

/// The row is as it was read.
fn reset(
    counter: u64, owner: Option<&WorkerId>, handing_over: Option<&WorkerId>, checkpoint: Checkpoint,
) -> Condition {
    let mut all = vec![
        // A row without a counter and an owner is told from none at all by its key alone.
        Condition::Exists(name::KEY.into()),
        counts(counter),
        named(name::OWNER, owner),
    ];
    // A new hand-over names another owner, so none is missed. A former hand-over may have left the name of an old
    // owner.
    all.extend(handing_over.map(|from| owned_by(name::OLD_OWNER, from)));
    all.push(equals(name::CHECKPOINT, AttributeValue::s(spelled(checkpoint).0)));
    Condition::All(all)
}

/// The row names these hash keys, or none.
fn still_covers(was: Option<HashRange>) -> Condition {
    Condition::All(match was {
        None => {
            let lacks =
                |name: &'static str| [Condition::NoString(name.into()), equals(name, AttributeValue::s(""))];
            let bounds = [lacks(name::RANGE_START), lacks(name::RANGE_END)];
            vec![Condition::Exists(name::KEY.into()), Condition::Any(bounds.into_iter().flatten().collect())]
        }
        Some(was) => vec![
            equals(name::RANGE_START, AttributeValue::s(was.start.to_string())),
            equals(name::RANGE_END, AttributeValue::s(was.end.to_string())),
        ],
    })
}

fn still_named(renaming: &Renaming) -> Condition {
    let mut all = vec![
        counts(renaming.counter),
        equals(name::CHECKPOINT, AttributeValue::s(spelled(renaming.checkpoint).0)),
    ];
    all.extend(still_names(name::IDENTITY, Some(&renaming.named)));
    Condition::All(all)
}

/// Tells a row without a counter and an owner from a missing row, and from a row that lost its counter later: such a
/// row may have ended since the read. A position is left out, since a position may be spelled in several ways.
fn bare(counter: u64, owner: Option<&WorkerId>, checkpoint: Checkpoint) -> Vec<Condition> {
    let mut all = Vec::new();
    if counter > 0 || owner.is_some() {
        return all;
    }
    all.push(Condition::Exists(name::KEY.into()));
    if !matches!(checkpoint, Checkpoint::At(_)) {
        all.push(equals(name::CHECKPOINT, AttributeValue::s(spelled(checkpoint).0)));
    }
    all
}

/// We own the row, or are its old owner during the hand-over that we know of. An unknown hand-over fails the guard, and
/// so shows.
fn held(guard: &Guard) -> Condition {
    let counter = counts(guard.counter);
    Condition::All(match &guard.next_owner {
        None => vec![counter, owned_by(name::OWNER, &guard.holder), nobody(name::OLD_OWNER)],
        Some(next) => vec![counter, owned_by(name::OWNER, next), owned_by(name::OLD_OWNER, &guard.holder)],
    })
}

pub(super) fn action(change: &Change) -> Action {
    Action::Update(match change {
        Change::Create(row) => return Action::Put(item(row)),
        Change::Delete { .. } | Change::Forget { .. } => return Action::Delete,
        Change::Renew { guard, began, .. } => counted(guard.next).set_some(name::BEGAN, dated(*began)),
        Change::Take { next, from, to, checkpoint, began, stream, .. } => {
            let update = taken_from(counted(*next), *checkpoint, *began)
                .set(name::OWNER, AttributeValue::s(to.clone()))
                .set(name::HANDS_OVER, AttributeValue::s(to.clone()))
                .remove(name::OLD_OWNER)
                .remove(name::NEXT_OWNER)
                // The former owner's read rate does not describe ours. KCL's leader takes the average for a lease
                // without a rate.
                .remove(name::THROUGHPUT)
                .set_some(name::IDENTITY, naming(stream.as_ref()));
            match from {
                Some(from) if from != to => update.add(name::SWITCHES, 1),
                // A row without the number gets a zero: KCL does not read the row otherwise.
                _ => update.add(name::SWITCHES, 0),
            }
        }
        Change::Claim { from, by, .. } => Update::default()
            .set(name::OWNER, AttributeValue::s(by.clone()))
            .set(name::OLD_OWNER, AttributeValue::s(from.clone()))
            .set(name::NEXT_OWNER, AttributeValue::s(by.clone())),
        Change::Assign { next, from, handing_over, to, .. } => {
            assigned(counted(*next), from.as_ref(), handing_over.as_ref(), to)
        }
        Change::Offer { from, to, .. } => Update::default()
            .set(name::OWNER, AttributeValue::s(to.clone()))
            .set(name::OLD_OWNER, AttributeValue::s(from.clone()))
            .remove(name::NEXT_OWNER),
        Change::Checkpoint { key, guard, position } => progress(key, guard.next, Checkpoint::At(*position)),
        Change::Reset { key, next, to, .. } => {
            progress(key, *next, *to).remove(name::OWNER).remove(name::OLD_OWNER)
        }
        Change::End { key, guard, children, .. } => ended(key, guard.next, children),
        // To give up a row that is being handed over is to complete the hand-over.
        Change::Release { guard, .. } if guard.next_owner.is_none() => {
            counted(guard.next).remove(name::OWNER)
        }
        Change::Release { guard, .. } | Change::HandOver { guard, .. } => {
            counted(guard.next).remove(name::OLD_OWNER)
        }
        Change::Name(renaming) => {
            Update::default().set(name::IDENTITY, AttributeValue::s(renaming.stream.text()))
        }
        Change::Weigh { throughput, .. } => Update::default().set(name::THROUGHPUT, weight(*throughput)),
        Change::SetRange { range, .. } => Update::default()
            .set(name::RANGE_START, AttributeValue::s(range.start.to_string()))
            .set(name::RANGE_END, AttributeValue::s(range.end.to_string())),
    })
}

/// The same update, but the lease also goes to a worker.
fn assigned(
    update: Update, from: Option<&WorkerId>, handing_over: Option<&WorkerId>, to: &WorkerId,
) -> Update {
    // KCL's rule.
    let switched = from.is_some_and(|from| from != to) || handing_over == Some(to);
    update
        .set(name::OWNER, AttributeValue::s(to.clone()))
        .remove(name::OLD_OWNER)
        .remove(name::NEXT_OWNER)
        .remove(name::HANDS_OVER)
        .add(name::SWITCHES, i64::from(switched))
}

/// Millionths of KiB/s, as KCL spells KiB/s.
fn weight(throughput: u64) -> AttributeValue {
    AttributeValue::n(super::fleet::decimal(i64::try_from(throughput).unwrap_or(i64::MAX)))
}

/// The same update, but the moment of a row with this checkpoint is left as after a take. KCL's checkpoints leave an
/// old moment behind; it would count if a person set the row to `LATEST`.
fn taken_from(update: Update, checkpoint: Checkpoint, began: Option<Wall>) -> Update {
    match began::is_of(checkpoint) {
        true => update.set_some(name::BEGAN, dated(began)),
        false => update.remove(name::BEGAN),
    }
}

fn counted(next: u64) -> Update {
    Update::default().set(name::COUNTER, AttributeValue::n(next))
}

/// A checkpoint as KCL writes it: it resets the count of owners, and drops a prepared checkpoint. In an application of several streams
/// it names stream and shard, too.
fn progress(key: &LeaseKey, next: u64, checkpoint: Checkpoint) -> Update {
    let (text, sub) = spelled(checkpoint);
    let update = match split_key(key.as_str()) {
        Some((stream, shard)) => counted(next)
            .set(name::STREAM, AttributeValue::s(stream.to_owned()))
            .set(name::SHARD, AttributeValue::s(shard.to_owned())),
        None => counted(next),
    };
    update
        .set(name::CHECKPOINT, AttributeValue::s(text))
        .set(name::SUB, AttributeValue::n(sub))
        .set(name::SWITCHES, AttributeValue::n(0))
        .remove(name::BEGAN)
        .remove(name::PENDING)
        .remove(name::PENDING_SUB)
        .remove(name::PENDING_STATE)
}

/// All records were processed, no worker owns the lease, and these are the children, if known.
fn ended(key: &LeaseKey, next: u64, children: &[ShardId]) -> Update {
    progress(key, next, Checkpoint::ShardEnd)
        .remove(name::OWNER)
        .remove(name::OLD_OWNER)
        .set_some(name::CHILDREN, shard_set(key, children))
}

fn spelled(checkpoint: Checkpoint) -> (String, u64) {
    let text = match checkpoint {
        Checkpoint::At(position) => return (position.sequence.to_string(), position.sub),
        Checkpoint::AtTimestamp => sentinel::AT_TIMESTAMP,
        Checkpoint::TrimHorizon => sentinel::TRIM_HORIZON,
        Checkpoint::Latest => sentinel::LATEST,
        Checkpoint::ShardEnd => sentinel::SHARD_END,
    };
    (text.to_string(), 0)
}

/// The row without workers of empty name. KCL reads an empty name as an owner that never renews; no worker can hold the
/// lease.
fn without_nameless(row: &LeaseRow) -> LeaseRow {
    let known = |worker: &Option<WorkerId>| worker.clone().filter(|worker| !worker.as_str().is_empty());
    let nameless = row.actual_owner().is_some_and(|owner| owner.as_str().is_empty());
    LeaseRow {
        owner: known(&row.owner),
        handing_over: known(&row.handing_over),
        hands_over: if nameless { HandsOver::No } else { row.hands_over },
        ..row.clone()
    }
}

/// A whole new item, without empty strings and sets: KCL writes none, and DynamoDB takes no empty set.
fn item(row: &LeaseRow) -> Item {
    let row = &without_nameless(row);
    let (checkpoint, sub) = spelled(row.checkpoint);
    let named = |owner: Option<&WorkerId>| owner.map(|owner| AttributeValue::s(owner.clone()));
    let says = |what: HandsOver| named(row.actual_owner()).filter(|_| row.hands_over == what);
    let next_owner = match row.handing_over {
        Some(_) => named(row.owner.as_ref()).filter(|_| row.hands_over == HandsOver::Yes),
        None => says(HandsOver::Later),
    };
    let (stream, shard) = split_key(row.key.as_str()).unzip();
    let part = |part: Option<&str>| part.map(|part| AttributeValue::s(part.to_owned()));
    let bound = |bound: Option<crate::shard::HashKey>| bound.map(|key| AttributeValue::s(key.to_string()));
    [
        (name::KEY, Some(AttributeValue::s(row.key.clone()))),
        (name::OWNER, named(row.owner.as_ref())),
        (name::OLD_OWNER, named(row.handing_over.as_ref())),
        (name::HANDS_OVER, says(HandsOver::Yes)),
        (name::NEXT_OWNER, next_owner),
        (name::COUNTER, Some(AttributeValue::n(row.counter))),
        (name::SWITCHES, Some(AttributeValue::n(row.switches))),
        (name::CHECKPOINT, Some(AttributeValue::s(checkpoint))),
        (name::SUB, Some(AttributeValue::n(sub))),
        (name::PARENTS, shard_set(&row.key, &row.parents)),
        (name::CHILDREN, shard_set(&row.key, &row.children)),
        (name::RANGE_START, bound(row.range.map(|range| range.start))),
        (name::RANGE_END, bound(row.range.map(|range| range.end))),
        (name::BEGAN, dated(row.began)),
        (name::ENTITY, Some(AttributeValue::s(LEASE))),
        (name::STREAM, part(stream)),
        (name::SHARD, part(shard)),
        (name::IDENTITY, naming(row.stream.as_ref())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.into(), value?)))
    .collect()
}

/// Shards by their ids alone, in an application of several streams too: relatives are of the same stream.
fn shard_set(key: &LeaseKey, shards: &[ShardId]) -> Option<AttributeValue> {
    let stream = split_key(key.as_str()).map(|(stream, _)| stream);
    // The inverse of how relatives are read: the name of the row's own stream is cut off, and no other.
    let bare = |shard: &ShardId| {
        let whole = shard.as_str();
        let cut = stream.and_then(|stream| whole.strip_prefix(stream)?.strip_prefix(':'));
        cut.unwrap_or(whole).to_owned()
    };
    (!shards.is_empty()).then(|| AttributeValue::Ss(shards.iter().map(bare).collect()))
}

/// The counter is unchanged since the read. Zero stands for a missing counter, too.
fn counts(counter: u64) -> Condition {
    let equal = equals(name::COUNTER, AttributeValue::n(counter));
    match counter {
        0 => Condition::Any(vec![not_exists(name::COUNTER), equal]),
        _ => equal,
    }
}

fn equals(name: &'static str, value: AttributeValue) -> Condition {
    Condition::Equals(name.into(), value)
}

fn owned_by(name: &'static str, owner: &WorkerId) -> Condition {
    equals(name, AttributeValue::s(owner.clone()))
}

/// The attribute names this worker, or none.
fn named(name: &'static str, worker: Option<&WorkerId>) -> Condition {
    worker.map_or_else(|| nobody(name), |worker| owned_by(name, worker))
}

/// The attribute names no worker, by KCL's reading: NULL, which boto3 writes for None, and each other type but a string
/// stand for no worker.
fn nobody(name: &'static str) -> Condition {
    Condition::NoString(name.into())
}

fn not_exists(name: &'static str) -> Condition {
    Condition::NotExists(name.into())
}
