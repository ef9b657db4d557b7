//! The rows, and what a write makes of them.

use leasehold_engine::format::LeaseFormat;
use leasehold_engine::ids::*;
use leasehold_engine::input::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use std::collections::BTreeMap;

pub fn refused(why: Why, current: Option<LeaseRow>) -> Outcome {
    let current = current.map(|row| Box::new(RowRead::Lease(row)));
    Outcome::Refused(Refusal {
        why,
        current,
        detail: String::new(),
    })
}

fn guarded(row: &LeaseRow, guard: &Guard) -> bool {
    row.counter == guard.counter
        && match &guard.next_owner {
            None => row.owner.as_ref() == Some(&guard.holder) && row.handing_over.is_none(),
            Some(next) => {
                row.owner.as_ref() == Some(next) && row.handing_over.as_ref() == Some(&guard.holder)
            }
        }
}

/// One guarded change of a row as an item.
pub(super) fn write_through(
    format: &dyn LeaseFormat,
    rows: &mut BTreeMap<LeaseKey, LeaseRow>,
    change: &Change,
) -> Outcome {
    let current = rows.get(change.key()).cloned();
    let mut item = None;
    if let Some(row) = &current {
        let put = format.encode(&Change::Create(Box::new(row.clone())));
        put.carry_out(&mut item).unwrap();
    }
    if format.encode(change).carry_out(&mut item).is_err() {
        return refused(Why::ConditionFailed, current);
    }
    match item.map(|item| format.decode(&item)) {
        Some(RowRead::Lease(row)) => {
            rows.insert(row.key.clone(), row);
        }
        None => {
            rows.remove(change.key());
        }
        Some(other) => panic!("{other:?}"),
    }
    Outcome::Applied(Reply::Done)
}

/// One guarded change of the rows.
pub fn write(rows: &mut BTreeMap<LeaseKey, LeaseRow>, change: &Change) -> Outcome {
    let current = rows.get(change.key()).cloned();
    let holds = match (change, &current) {
        (Change::Create(_), None) => true,
        (Change::Create(_), Some(_)) | (_, None) => false,
        (Change::Take { counter, from, .. }, Some(row)) => row.counter == *counter && row.owner == *from,
        (Change::Claim { counter, from, .. }, Some(row)) => {
            row.counter == *counter && row.owner.as_ref() == Some(from) && row.handing_over.is_none()
        }
        (Change::Delete { counter, .. }, Some(row)) => row.counter == *counter && row.checkpoint.is_end(),
        (Change::SetRange { .. }, Some(row)) => row.range.is_none(),
        (
            Change::Renew { guard, .. }
            | Change::Checkpoint { guard, .. }
            | Change::End { guard, .. }
            | Change::Release { guard, .. }
            | Change::HandOver { guard, .. },
            Some(row),
        ) => guarded(row, guard),
    };
    if !holds {
        return refused(Why::ConditionFailed, current);
    }
    if let Change::Create(row) = change {
        rows.insert(row.key.clone(), (**row).clone());
        return Outcome::Applied(Reply::Done);
    }
    if let Change::Delete { key, .. } = change {
        rows.remove(key);
        return Outcome::Applied(Reply::Done);
    }
    let row = rows.get_mut(change.key()).unwrap();
    match change {
        Change::SetRange { range, .. } => {
            row.range = Some(*range);
            return Outcome::Applied(Reply::Done);
        }
        Change::Claim { by, .. } => {
            row.handing_over = row.owner.replace(by.clone());
            return Outcome::Applied(Reply::Done);
        }
        Change::Take { to, .. } => {
            row.owner = Some(to.clone());
            row.handing_over = None;
        }
        Change::Checkpoint { position, .. } => row.checkpoint = Checkpoint::At(*position),
        Change::End { children, .. } => {
            row.checkpoint = Checkpoint::ShardEnd;
            row.children = children.clone();
            row.owner = None;
            row.handing_over = None;
        }
        Change::Release { .. } => row.owner = None,
        Change::HandOver { .. } => row.handing_over = None,
        _ => {}
    }
    row.counter = change.leaves().unwrap_or(row.counter);
    Outcome::Applied(Reply::Done)
}
