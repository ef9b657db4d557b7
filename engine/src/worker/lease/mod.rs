//! Leases taken and held by this worker, and the shards behind these leases.
//!
//! | file | what |
//! |---|---|
//! | `acquisition` | becoming an owner |
//! | `held` | a held lease: its four parts, and one step that does all due work |
//! | `ownership` | which lease, and since when its shard may be opened |
//! | `lane` | renewals, checkpoints, ends, releases: one write in flight, and the meaning of its answer |
//! | `processing` | the shard: its stage, its application, its reader |
//! | `watch` | noticing leases that do not move, and how much is read of a shard, for leaders of KCL 3.x |
//! | `lent` | what processing borrows for a step |
//! | `listings` | lists of all shards, for the leases that wait for one |
//! | `missed` | time that the monotonic clock did not count: beliefs end earlier |
//!
//! Every lease has a step function that may be called at any time and does all due work.

mod acquisition;
mod held;
mod lane;
mod lent;
mod listings;
mod missed;
mod ownership;
mod processing;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use acquisition::{Acquisition, begin as begin_acquisition};
pub(super) use held::HeldLease;
pub(super) use listings::{on_bad_listing, on_shards_listed};
pub(super) use missed::on_missed;

use super::context::Context;
use super::lease_table::LeaseTable;
use crate::ids::{FencingToken, LeaseIx, OpId};
use crate::input::Outcome;
use crate::notice::Stall;
use crate::position::Position;
use crate::time::Mono;

/// Does everything that is due for a lease, and asks to be woken for the rest.
pub(super) fn step(cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx) {
    cx.turns_mut().look();
    acquisition::step(cx, leases, ix);
    match leases.with_held(ix, |held, leases| held.step(cx, leases)) {
        Some(Some(at)) => leases.wake(ix, at),
        Some(None) => leases.drop_held(ix),
        None => {}
    }
    cx.turns_mut().looked_at(ix);
    wake_waiting(cx, leases);
}

/// Wakes leases waiting for room or for turns freed by another lease.
pub(super) fn wake_waiting(cx: &Context, leases: &mut LeaseTable) {
    for next in [cx.reads().next(), cx.turns().next(cx.now())].into_iter().flatten() {
        leases.wake(next, cx.now());
    }
}

/// The outcome of a write or read on a lease's own lane.
pub(super) fn on_lane(
    cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, emitted: Mono, outcome: Outcome,
) {
    if leases.get(ix).is_some_and(|lease| lease.held().is_none()) {
        acquisition::on_outcome(cx, leases, ix, op, outcome);
        return wake_waiting(cx, leases);
    }
    leases.with_held(ix, |held, leases| held.on_lane(cx, leases, op, emitted, outcome));
    step(cx, leases, ix);
}

/// A consistent read of the row of a shard that a lease waits for.
pub(super) fn on_relative(
    cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome,
) {
    leases.with_held(ix, |held, leases| held.on_relative(cx, leases, op, outcome));
    step(cx, leases, ix);
}

/// A stream command of a lease's reader ended.
pub(super) fn on_read(cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome) {
    leases.with_held(ix, |held, leases| held.on_read(cx, leases, op, outcome));
    step(cx, leases, ix);
}

/// An application command of a lease ended.
pub(super) fn on_app(cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome) {
    leases.with_held(ix, |held, leases| held.on_app(cx, leases, op, outcome));
    step(cx, leases, ix);
}

/// A message of the application about the records handed over under this token.
pub(super) enum Said {
    /// Everything up to here was processed.
    ProcessedThrough(Position),
    /// All of a kept batch was processed.
    Acknowledged(OpId),
    /// A kept batch will not be processed.
    GivenBack(OpId, String),
}

/// Takes in a message of the application about its records. A message about another ownership is of no use.
pub(super) fn on_said(
    cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, token: FencingToken, said: Said,
) {
    let ours = leases.with_held(ix, |held, leases| {
        let ours = held.token() == token;
        if ours {
            held.on_said(cx, leases, said);
        }
        ours
    });
    if ours == Some(true) {
        step(cx, leases, ix);
    }
}

/// The application requests, under this token, a checkpoint of the processed records.
pub(super) fn on_checkpoint_wanted(
    cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, token: FencingToken,
) {
    let wanted = leases.with_held(ix, |held, _| held.token() == token && held.on_checkpoint_wanted());
    if wanted == Some(true) {
        step(cx, leases, ix);
    }
}

/// The application wants a shard to be paused, or to go on.
pub(super) fn on_pause_wanted(cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, paused: bool) {
    let changed = leases.with_held(ix, |held, leases| held.on_pause_wanted(cx, leases, paused));
    if changed == Some(true) {
        step(cx, leases, ix);
    }
}

/// The reason for which a held lease waits, however short the wait. `None`: the lease waits for new records, or is not
/// held.
pub(super) fn waits_for(cx: &Context, leases: &LeaseTable, ix: LeaseIx) -> Option<Stall> {
    let held = leases.get(ix)?.held().filter(|held| !held.is_lost())?;
    let why = held.why_stalled(cx.now(), leases);
    (why != Stall::ReadsEmpty).then_some(why)
}
