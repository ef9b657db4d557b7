//! Rows kept as they are, and the effect of each change on a row.

use super::Keeping;
use crate::began;
use crate::input::Why;
use crate::position::Checkpoint;
use crate::row::{Change, Guard, HandsOver, LeaseRow, RowRead};

/// Rows are kept as they are, and changed as [`Change`] says, without any format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Keeping for Plain {
    type Row = LeaseRow;

    fn read(&self, row: &LeaseRow) -> RowRead {
        RowRead::Lease(row.clone())
    }

    fn change(&self, row: &mut Option<LeaseRow>, change: &Change) -> Result<(), Why> {
        match (row.as_mut(), change) {
            (None, Change::Create(new)) => *row = Some((**new).clone()),
            (Some(known), change) if holds(known, change) => {
                if let Change::Delete { .. } | Change::Forget { .. } = change {
                    *row = None;
                } else {
                    apply(known, change);
                }
            }
            _ => return Err(Why::ConditionFailed),
        }
        Ok(())
    }
}

/// Whether an existing row meets the expectation of a change.
fn holds(row: &LeaseRow, change: &Change) -> bool {
    match change {
        Change::Create(_) => false,
        Change::Take { counter, from, named, .. } => {
            let still = named.is_none() || row.stream == *named;
            row.counter == *counter && row.owner == *from && still
        }
        Change::Claim { from, .. } => row.owner.as_ref() == Some(from) && row.handing_over.is_none(),
        Change::Offer { from, .. } | Change::Weigh { owner: from, .. } => {
            row.owner.as_ref() == Some(from) && row.handing_over.is_none()
        }
        Change::Assign { counter, from, handing_over, .. }
        | Change::Forget { counter, owner: from, handing_over, .. } => {
            row.counter == *counter && row.owner == *from && row.handing_over == *handing_over
        }
        Change::Delete { counter, .. } => row.counter == *counter && row.checkpoint.is_end(),
        Change::Reset { counter, owner, handing_over, checkpoint, .. } => {
            row.counter == *counter
                && row.owner == *owner
                && row.handing_over == *handing_over
                && row.checkpoint == *checkpoint
        }
        Change::Name(renaming) => {
            row.counter == renaming.counter
                && row.checkpoint == renaming.checkpoint
                && row.stream.as_ref() == Some(&renaming.named)
        }
        Change::SetRange { was, .. } => row.range == *was,
        Change::Renew { guard, .. }
        | Change::Checkpoint { guard, .. }
        | Change::End { guard, .. }
        | Change::Release { guard, .. }
        | Change::HandOver { guard, .. } => guarded(row, guard),
    }
}

fn guarded(row: &LeaseRow, guard: &Guard) -> bool {
    let (owner, old) = match &guard.next_owner {
        None => (&guard.holder, None),
        Some(next) => (next, Some(&guard.holder)),
    };
    row.counter == guard.counter && row.owner.as_ref() == Some(owner) && row.handing_over.as_ref() == old
}

/// Changes an existing row; the row stays in the table.
fn apply(row: &mut LeaseRow, change: &Change) {
    match change {
        Change::Create(_) | Change::Delete { .. } | Change::Forget { .. } => {}
        Change::Renew { began, .. } => row.began = began.or(row.began),
        Change::SetRange { range, .. } => row.range = Some(*range),
        Change::Name(renaming) => row.stream = Some(renaming.stream.clone()),
        Change::Weigh { throughput, .. } => row.throughput = Some(*throughput),
        Change::Claim { by, .. } => row.handing_over = row.owner.replace(by.clone()),
        Change::Offer { to, .. } => {
            row.handing_over = row.owner.replace(to.clone());
            if row.hands_over == HandsOver::Later {
                row.hands_over = HandsOver::No;
            }
        }
        Change::Assign { to, .. } => {
            row.owner = Some(to.clone());
            row.handing_over = None;
            row.hands_over = HandsOver::No;
        }
        Change::Take { to, began, stream, .. } => {
            row.began = began.or(row.began).filter(|_| began::is_of(row.checkpoint));
            row.owner = Some(to.clone());
            row.handing_over = None;
            row.hands_over = HandsOver::Yes;
            row.throughput = None;
            if stream.is_some() {
                row.stream.clone_from(stream);
            }
        }
        Change::Checkpoint { position, .. } => {
            row.checkpoint = Checkpoint::At(*position);
            row.began = None;
        }
        Change::Reset { to, .. } => {
            row.began = None;
            row.checkpoint = *to;
            row.owner = None;
            row.handing_over = None;
        }
        Change::End { children, .. } => {
            row.checkpoint = Checkpoint::ShardEnd;
            row.began = None;
            row.children.clone_from(children);
            row.owner = None;
            row.handing_over = None;
        }
        Change::Release { guard, .. } if guard.next_owner.is_none() => row.owner = None,
        // To give up a row that is being handed over is to complete the hand-over.
        Change::Release { .. } | Change::HandOver { .. } => {
            let moved = row.handing_over.take().is_some_and(|old| row.owner.as_ref() != Some(&old));
            if moved && row.hands_over == HandsOver::Yes {
                row.hands_over = HandsOver::Later;
            }
        }
    }
    if row.owner.is_none() {
        row.hands_over = HandsOver::No;
    }
    row.counter = change.leaves().unwrap_or(row.counter);
}
