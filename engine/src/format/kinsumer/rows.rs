//! Rows of the checkpoints table, both ways.
//!
//! Programs of kinsumer write checkpoints as whole items, guarded by the owner alone, and take a lease by writing back
//! an earlier read. Our writes change single attributes, and each write is also guarded by the time as read.

use super::super::reading::{dated, get, identity, keyed, moment, naming, number, still_names, text, wrong};
use crate::began;
use crate::calendar::spell_rfc1123;
use crate::ids::{LeaseKey, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{Change, Guard, LeaseRow, RowRead};
use crate::table::{Action, AttributeValue, Condition, Item, Update};

pub(super) const KEY: &str = "Shard";
pub(super) const LAST_UPDATE: &str = "LastUpdate";
const LAST_UPDATE_RFC: &str = "LastUpdateRFC";
const OWNER: &str = "OwnerID";
const OWNER_NAME: &str = "OwnerName";
const SEQUENCE: &str = "SequenceNumber";
const FINISHED: &str = "Finished";
const FINISHED_RFC: &str = "FinishedRFC";
/// Ours: where to begin, if that is neither the trim horizon nor the tip.
const START: &str = "LeaseholdStart";
/// Ours: at the tip or a timestamp, the moment from which the shard is read, in ms since 1970: N.
const BEGAN: &str = "LeaseholdBegan";
/// Ours: the place within an aggregated record.
const SUB: &str = "LeaseholdSubSequence";
/// Ours: the identity of the shard's stream.
const STREAM: &str = "LeaseholdStream";

const LATEST: &str = "LATEST";
const AT_TIMESTAMP: &str = "AT_TIMESTAMP";

/// Absent, null or an empty text.
pub(super) fn nothing(name: &'static str) -> Condition {
    Condition::Any(vec![
        Condition::NotExists(name.into()),
        Condition::Equals(name.into(), AttributeValue::Null),
        Condition::Equals(name.into(), AttributeValue::s("")),
    ])
}

pub(super) fn is(name: &'static str, value: AttributeValue) -> Condition {
    Condition::Equals(name.into(), value)
}

/// The row was last written at this time. Rows made by a person may lack the time.
pub(super) fn written_at(at: u64) -> Condition {
    let equal = is(LAST_UPDATE, AttributeValue::n(at));
    match at {
        0 => Condition::Any(vec![nothing(LAST_UPDATE), equal]),
        _ => equal,
    }
}

/// The time of a write, also for people.
pub(super) fn stamped(at: u64) -> Update {
    Update::default()
        .set(LAST_UPDATE, AttributeValue::n(at))
        .set(LAST_UPDATE_RFC, AttributeValue::s(spell_rfc1123(at)))
}

pub(super) fn decode(item: &Item) -> RowRead {
    keyed(KEY, item, |key| lease(key, item))
}

fn lease(key: LeaseKey, item: &Item) -> Result<LeaseRow, String> {
    let owner = text(OWNER, get(item, OWNER))?;
    Ok(LeaseRow {
        owner: owner.cloned().map(WorkerId::new),
        counter: number(LAST_UPDATE, get(item, LAST_UPDATE))?.unwrap_or(0),
        began: moment(item.get(BEGAN)),
        stream: identity(item.get(STREAM)),
        ..LeaseRow::new(key, checkpoint(item)?)
    })
}

/// Every write says when it was made.
pub(super) fn lacks(item: &Item) -> Vec<&'static str> {
    let stamped = get(item, LAST_UPDATE).is_some();
    (!stamped).then_some(LAST_UPDATE).into_iter().collect()
}

fn checkpoint(item: &Item) -> Result<Checkpoint, String> {
    if number(FINISHED, get(item, FINISHED))?.is_some() {
        return Ok(Checkpoint::ShardEnd);
    }
    let found = get(item, SEQUENCE);
    match text(SEQUENCE, found)? {
        None if item.get(START).and_then(AttributeValue::as_s) == Some(AT_TIMESTAMP) => {
            Ok(Checkpoint::AtTimestamp)
        }
        None => Ok(Checkpoint::TrimHorizon),
        Some(text) if **text == *LATEST => Ok(Checkpoint::Latest),
        Some(text) => {
            let sequence = text.parse().map_err(|_| wrong(SEQUENCE, "a sequence number or LATEST", found))?;
            let sub = number(SUB, get(item, SUB))?.unwrap_or(0);
            Ok(Checkpoint::At(Position { sequence, sub }))
        }
    }
}

pub(super) fn condition(change: &Change) -> Condition {
    match change {
        Change::Create(_) => Condition::NotExists(KEY.into()),
        Change::Take { counter, from, named, .. } => {
            // Only its key tells a never written row from a missing row.
            let mut all = vec![Condition::Exists(KEY.into()), written_at(*counter), owned_by(from.as_ref())];
            if *counter == 0 {
                // A row without a time may have had a time before, and its shard may have ended since the scan.
                all.push(nothing(FINISHED));
            }
            all.extend(still_names(STREAM, named.as_ref()));
            Condition::All(all)
        }
        Change::Renew { guard, .. }
        | Change::Checkpoint { guard, .. }
        | Change::End { guard, .. }
        | Change::Release { guard, .. } => held(guard),
        Change::Reset { counter, owner, checkpoint, .. } => Condition::All(vec![
            Condition::Exists(KEY.into()),
            written_at(*counter),
            owned_by(owner.as_ref()),
            still(*checkpoint),
        ]),
        Change::Name(renaming) => {
            let mut all = vec![written_at(renaming.counter), still(renaming.checkpoint)];
            all.extend(still_names(STREAM, Some(&renaming.named)));
            Condition::All(all)
        }
        Change::Delete { counter, .. } => {
            Condition::All(vec![written_at(*counter), Condition::Exists(FINISHED.into())])
        }
        // No worker is asked for a lease here, no leader assigns any, rows hold no ranges, and a table is of one
        // stream: these changes never take place.
        Change::Forget { .. }
        | Change::Claim { .. }
        | Change::Assign { .. }
        | Change::Offer { .. }
        | Change::HandOver { .. }
        | Change::Weigh { .. }
        | Change::SetRange { .. } => {
            Condition::All(vec![Condition::Exists(KEY.into()), Condition::NotExists(KEY.into())])
        }
    }
}

fn held(guard: &Guard) -> Condition {
    Condition::All(vec![written_at(guard.counter), owned_by(Some(&guard.holder))])
}

/// The row names this owner, or none.
fn owned_by(owner: Option<&WorkerId>) -> Condition {
    owner.map_or_else(|| nothing(OWNER), |owner| is(OWNER, AttributeValue::s(owner.clone())))
}

/// The checkpoint is unchanged since the read.
fn still(checkpoint: Checkpoint) -> Condition {
    let sequence = match checkpoint {
        Checkpoint::ShardEnd => return Condition::Exists(FINISHED.into()),
        Checkpoint::At(position) => is(SEQUENCE, AttributeValue::s(position.sequence.to_string())),
        Checkpoint::Latest => is(SEQUENCE, AttributeValue::s(LATEST)),
        Checkpoint::TrimHorizon | Checkpoint::AtTimestamp => nothing(SEQUENCE),
    };
    Condition::All(vec![sequence, nothing(FINISHED)])
}

/// The same update, but the row is also left at a checkpoint.
fn placed(update: Update, to: Checkpoint) -> Update {
    let update = update.remove(BEGAN);
    let sequence = match to {
        Checkpoint::At(position) => AttributeValue::s(position.sequence.to_string()),
        // The end of a shard without a known number: kinsumer's programs find no record after the tip of a closed
        // shard.
        Checkpoint::Latest | Checkpoint::ShardEnd => AttributeValue::s(LATEST),
        Checkpoint::TrimHorizon | Checkpoint::AtTimestamp => AttributeValue::Null,
    };
    let update = update.set(SEQUENCE, sequence);
    let update = match to {
        Checkpoint::AtTimestamp => update.set(START, AttributeValue::s(AT_TIMESTAMP)),
        _ => update.remove(START),
    };
    match to.position().map_or(0, |position| position.sub) {
        0 => update.remove(SUB),
        sub => update.set(SUB, AttributeValue::n(sub)),
    }
}

pub(super) fn action(change: &Change) -> Action {
    Action::Update(match change {
        Change::Create(row) => return Action::Put(item(row)),
        Change::Delete { .. } => return Action::Delete,
        Change::Take { next, to, checkpoint, began, stream, .. } => {
            let update = stamped(*next)
                .set(OWNER, AttributeValue::s(to.clone()))
                .set(OWNER_NAME, AttributeValue::s(to.clone()))
                .set_some(STREAM, naming(stream.as_ref()));
            match began::is_of(*checkpoint) {
                true => update.set_some(BEGAN, dated(*began)),
                false => update.remove(BEGAN),
            }
        }
        Change::Renew { guard, began, .. } => stamped(guard.next).set_some(BEGAN, dated(*began)),
        Change::Checkpoint { guard, position, .. } => placed(stamped(guard.next), Checkpoint::At(*position)),
        // A finished shard stays finished: no other change ever resets a row to an end.
        Change::Reset { next, to, .. } if to.is_end() => {
            stamped(*next).remove(OWNER).remove(OWNER_NAME).remove(BEGAN)
        }
        Change::Reset { next, to, .. } => {
            placed(stamped(*next), *to).remove(OWNER).remove(OWNER_NAME).remove(FINISHED).remove(FINISHED_RFC)
        }
        Change::Name(renaming) => Update::default().set(STREAM, AttributeValue::s(renaming.stream.text())),
        // Its programs read a finished shard, too, until the list of shards lacks the shard: from here on.
        Change::End { guard, last, .. } => {
            placed(stamped(guard.next), last.map_or(Checkpoint::ShardEnd, Checkpoint::At))
                .set(FINISHED, AttributeValue::n(guard.next))
                .set(FINISHED_RFC, AttributeValue::s(spell_rfc1123(guard.next)))
                .remove(OWNER)
                .remove(OWNER_NAME)
        }
        Change::Release { guard, .. } => stamped(guard.next).remove(OWNER).remove(OWNER_NAME),
        Change::Forget { .. }
        | Change::Claim { .. }
        | Change::Assign { .. }
        | Change::Offer { .. }
        | Change::HandOver { .. }
        | Change::Weigh { .. }
        | Change::SetRange { .. } => Update::default().remove(START),
    })
}

fn item(row: &LeaseRow) -> Item {
    let mut item = Item::from([(KEY.into(), AttributeValue::s(row.key.clone()))]);
    for (name, value) in stamped(row.counter).set {
        item.insert(name, value);
    }
    let owner = row.owner.clone().map(AttributeValue::s);
    let known = [
        (OWNER, owner.clone()),
        (OWNER_NAME, owner),
        (BEGAN, dated(row.began)),
        (STREAM, naming(row.stream.as_ref())),
    ];
    item.extend(known.into_iter().filter_map(|(name, value)| Some((name.into(), value?))));
    let mut set = |name: &'static str, value: AttributeValue| item.insert(name.into(), value);
    let sequence = match row.checkpoint {
        Checkpoint::At(position) => AttributeValue::s(position.sequence.to_string()),
        Checkpoint::Latest | Checkpoint::ShardEnd => AttributeValue::s(LATEST),
        Checkpoint::TrimHorizon | Checkpoint::AtTimestamp => AttributeValue::Null,
    };
    set(SEQUENCE, sequence);
    match row.checkpoint {
        Checkpoint::At(position) if position.sub > 0 => {
            set(SUB, AttributeValue::n(position.sub));
        }
        Checkpoint::AtTimestamp => {
            set(START, AttributeValue::s(AT_TIMESTAMP));
        }
        Checkpoint::ShardEnd => {
            set(FINISHED, AttributeValue::n(row.counter.max(1)));
            set(FINISHED_RFC, AttributeValue::s(spell_rfc1123(row.counter)));
        }
        _ => {}
    }
    item
}
