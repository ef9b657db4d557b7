//! What changes make of rows, said once more in terms of rows.

use crate::position::Checkpoint;
use crate::row::{Change, Guard, HandsOver, LeaseRow};

/// Whether a row is the row read before a reset.
fn is_as_read(row: &LeaseRow, change: &Change) -> bool {
    let Change::Reset { counter, owner, handing_over, checkpoint, .. } = change else {
        return false;
    };
    // A new hand-over names another owner, so the old owner is compared only for a lease in a hand-over.
    let old = handing_over.is_none() || row.handing_over == *handing_over;
    row.counter == *counter && row.owner == *owner && old && row.checkpoint == *checkpoint
}

/// Whether the owner hands the lease over after a change.
fn hands_over(row: &LeaseRow, change: &Change) -> HandsOver {
    let moves = row.handing_over.is_some() && row.handing_over != row.owner;
    match change {
        Change::Take { .. } => HandsOver::Yes,
        Change::End { .. } | Change::Reset { .. } | Change::Assign { .. } => HandsOver::No,
        Change::Offer { .. } if row.hands_over != HandsOver::Yes => HandsOver::No,
        Change::Claim { from, by, .. } if row.hands_over != HandsOver::Yes => match from == by {
            true => HandsOver::Later,
            false => HandsOver::No,
        },
        Change::Release { guard, .. } if guard.next_owner.is_none() => HandsOver::No,
        Change::Release { .. } | Change::HandOver { .. } if row.hands_over == HandsOver::Yes && moves => {
            HandsOver::Later
        }
        _ => row.hands_over,
    }
}

/// Whether the guard of an owner's change holds.
fn held(row: &LeaseRow, guard: &Guard) -> bool {
    row.counter == guard.counter
        && match &guard.next_owner {
            None => row.owner.as_ref() == Some(&guard.holder) && row.handing_over.is_none(),
            Some(next) => {
                row.owner.as_ref() == Some(next) && row.handing_over.as_ref() == Some(&guard.holder)
            }
        }
}

/// What a change makes of a row, said once more in terms of rows; `None` if its guard does not hold.
pub(super) fn after(row: &LeaseRow, change: &Change) -> Option<Option<LeaseRow>> {
    let mut new = row.clone();
    new.hands_over = hands_over(row, change);
    let allowed = match change {
        Change::Create(_) => false,
        Change::Renew { guard, began, .. } => {
            new.began = began.or(row.began);
            held(row, guard)
        }
        Change::Take { from, to, began, stream, .. } => {
            new.began = began.or(row.began);
            new.owner = Some(to.clone());
            new.handing_over = None;
            new.stream = stream.clone().or(new.stream);
            new.switches += u64::from(from.as_ref().is_some_and(|from| from != to));
            super::streams::is_taken(row, change)
        }
        Change::Claim { from, by, .. } => {
            (new.owner, new.handing_over) = (Some(by.clone()), Some(from.clone()));
            let free = row.handing_over.is_none() && row.owner.as_ref() == Some(from);
            return free.then_some(Some(new));
        }
        Change::Assign { .. } | Change::Offer { .. } | Change::Weigh { .. } => {
            return super::fleet::after(row, new, change).map(Some);
        }
        Change::Checkpoint { guard, position, .. } => {
            (new.checkpoint, new.switches, new.began) = (Checkpoint::At(*position), 0, None);
            held(row, guard)
        }
        Change::End { guard, children, .. } => {
            (new.checkpoint, new.switches, new.began) = (Checkpoint::ShardEnd, 0, None);
            (new.owner, new.handing_over) = (None, None);
            if !children.is_empty() {
                new.children = children.clone();
            }
            held(row, guard)
        }
        Change::Release { guard, .. } | Change::HandOver { guard, .. } => {
            if guard.next_owner.is_none() && matches!(change, Change::Release { .. }) {
                new.owner = None;
            }
            new.handing_over = None;
            held(row, guard)
        }
        Change::SetRange { range, was, .. } => {
            new.range = Some(*range);
            return (row.range == *was).then_some(Some(new));
        }
        Change::Reset { to, .. } => {
            (new.checkpoint, new.switches, new.began) = (*to, 0, None);
            (new.owner, new.handing_over) = (None, None);
            is_as_read(row, change)
        }
        Change::Name(renaming) => return super::streams::renamed(new, renaming).map(Some),
        Change::Delete { counter, .. } => {
            return (row.counter == *counter && row.checkpoint.is_end()).then_some(None);
        }
        Change::Forget { .. } => return super::streams::forgets(row, change).then_some(None),
    };
    new.counter = row.counter.wrapping_add(1);
    allowed.then_some(Some(new))
}
