//! Leases taken and held by this worker, and the shards behind these leases.
//!
//! | file | what |
//! |---|---|
//! | `acquisition` | becoming an owner |
//! | `held`, `stage` | the life of a shard on its owner: one step does all due work |
//! | `ownership` | which lease, and since when its shard may be opened |
//! | `lane` | renewals, checkpoints, ends, releases: one write in flight, and the meaning of its answer |
//! | `application` | the commands to the application, and their time limits |
//! | `waiting` | before a shard is opened |
//! | `running` | while the shard is read |
//! | `fetch` | reads of the stream, within the budget shared by the reads of all shards |
//! | `processed` | the progress of processing |
//! | `leaving` | letting go of a lease: the conditions, and the close |
//! | `failure` | the treatment of a record that the handler cannot process |
//! | `strange` | a checkpoint that did not come from this stream |
//! | `set_aside` | handing a failed record to the application's store, or stopping its shard |
//! | `kept` | batches that the application keeps and acknowledges later |
//! | `shard_end` | the children's leases, before a shard's end is written |
//! | `missing` | the evidence of a listing about a shard not found |
//! | `missed` | time that the monotonic clock did not count: beliefs end earlier |
//! | `paused` | shards without hand-over of records, paused by the application |
//! | `watch` | noticing leases that do not move, and how much is read of a shard, for leaders of KCL 3.x |
//! | `stall` | the reason why a lease does not move |
//!
//! Every lease has a step function that may be called at any time and does all due work.

mod acquisition;
mod application;
mod failure;
mod fetch;
mod held;
mod kept;
mod lane;
mod leaving;
mod missed;
mod missing;
mod ownership;
mod paused;
mod processed;
mod running;
mod set_aside;
mod shard_end;
mod stage;
mod stall;
mod strange;
#[cfg(test)]
mod tests;
mod waiting;
mod watch;

pub(super) use acquisition::{Acquisition, begin as begin_acquisition};
pub(super) use held::HeldLease;
pub(super) use missed::on_missed;
pub(super) use missing::{on_bad_listing, on_shards_listed};
pub(super) use paused::on_pause_wanted;
pub(super) use stall::waits_for;

use super::context::Context;
use super::lease_table::LeaseTable;
use crate::ids::{FencingToken, LeaseIx, OpId};
use crate::input::Outcome;
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
            let before = held.processed();
            match said {
                Said::ProcessedThrough(through) => held.on_processed_through(cx, through),
                Said::Acknowledged(batch) => held.on_acknowledged(cx, batch),
                Said::GivenBack(batch, detail) => held.on_given_back(cx, leases, batch, detail),
            }
            if held.processed() > before {
                let now = cx.now();
                cx.standstill_mut().progressed(now);
            }
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
