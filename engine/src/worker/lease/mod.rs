//! Leases taken and held by this worker, and the shards behind these leases.
//!
//! | file | what |
//! |---|---|
//! | `acquisition` | becoming an owner |
//! | `actions` | this worker's actions on leases, by number, and the note of each action in the lease table |
//! | `held` | a held lease: its four parts, and one step that does all due work |
//! | `ownership` | which lease, and since when its shard may be opened |
//! | `lane` | renewals, checkpoints, ends, releases: one write in flight, and the meaning of its answer |
//! | `processing` | the shard: its stage, its application, its reader |
//! | `watch` | noticing leases that do not move, and how much is read of a shard, for leaders of KCL 3.x |
//! | `lent` | what processing borrows for a step |
//! | `listings` | lists of all shards, for the leases that wait for one |
//!
//! Every lease has a step function that may be called at any time and does all due work. The lease table keeps the rows.
//! Of each action here, the table has a note (`lease_table/note.rs`), written whenever the action may have changed.

mod acquisition;
mod actions;
mod held;
mod lane;
mod lent;
mod listings;
mod ownership;
mod processing;
#[cfg(test)]
mod tests;
mod watch;

use super::context::Context;
use super::lease_table::LeaseTable;
use crate::held::Held;
use crate::ids::{FencingToken, LeaseIx, LeaseKey, OpId, ShardId};
use crate::input::Outcome;
use crate::notice::{Left, Notice, Stall};
use crate::position::Position;
use crate::row::LeaseRow;
use crate::time::{Mono, Span};
use actions::Actions;
use held::HeldLease;

/// The room: the leases that this worker takes and holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HeldLeases {
    actions: Actions,
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

/// What follows from an answer on the lane of a held lease, beside the lease itself.
enum Follows {
    Nothing,
    /// The lease is lost, and this is its row.
    Row(Box<LeaseRow>),
    /// The shard has ended with these children. A child of ours may have waited for just this.
    Children(Vec<ShardId>),
}

impl HeldLeases {
    /// Does everything that is due for a lease, and asks to be woken for the rest.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx) {
        cx.turns_mut().look();
        self.take_step(cx, leases, ix);
        if let Some(held) = self.actions.held_mut(ix) {
            if leases.take_doubt(ix) {
                held.renew_now(cx.now());
            }
            match held.step(cx, leases) {
                Some(at) => {
                    leases.note_held(ix, held.note());
                    leases.wake(ix, at);
                }
                None => {
                    self.actions.clear(ix);
                    leases.let_go(ix, false);
                }
            }
        }
        cx.turns_mut().looked_at(ix);
        wake_waiting(cx, leases);
    }

    /// The outcome of a write or read on a lease's own lane.
    pub(super) fn on_lane(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, emitted: Mono,
        outcome: Outcome,
    ) {
        match self.actions.held_mut(ix) {
            Some(held) => {
                let follows = held.on_lane(cx, leases, op, emitted, outcome);
                if !matches!(follows, Follows::Nothing) {
                    leases.note_held(ix, held.note());
                    self.follow(cx, leases, follows);
                }
            }
            None if leases.get(ix).is_some() => {
                self.on_take_outcome(cx, leases, ix, op, outcome);
                return wake_waiting(cx, leases);
            }
            None => {}
        }
        self.step(cx, leases, ix);
    }

    fn follow(&mut self, cx: &Context, leases: &mut LeaseTable, follows: Follows) {
        match follows {
            Follows::Nothing => {}
            Follows::Row(row) => leases.observe_now(cx, *row),
            Follows::Children(children) => {
                for child in &children {
                    if let Some(child) = leases.find(child.as_str()) {
                        if let Some(held) = self.actions.held_mut(child) {
                            held.look_at_parents_now(cx.now());
                        }
                        leases.wake(child, cx.now());
                    }
                }
            }
        }
    }

    /// A consistent read of the row of a shard that a lease waits for.
    pub(super) fn on_relative(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome,
    ) {
        if let Some(held) = self.actions.held_mut(ix) {
            held.on_relative(cx, leases, op, outcome);
        }
        self.step(cx, leases, ix);
    }

    /// A stream command of a lease's reader ended.
    pub(super) fn on_read(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome,
    ) {
        if let Some(held) = self.actions.held_mut(ix) {
            held.on_read(cx, leases, op, outcome);
        }
        self.step(cx, leases, ix);
    }

    /// An application command of a lease ended.
    pub(super) fn on_app(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome,
    ) {
        if let Some(held) = self.actions.held_mut(ix) {
            held.on_app(cx, leases, op, outcome);
        }
        self.step(cx, leases, ix);
    }

    /// Takes in a message of the application about its records. A message about another ownership is of no use.
    pub(super) fn on_said(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, token: FencingToken, said: Said,
    ) {
        if let Some(held) = self.actions.held_mut(ix).filter(|held| held.token() == token) {
            held.on_said(cx, leases, said);
            self.step(cx, leases, ix);
        }
    }

    /// The application requests, under this token, a checkpoint of the processed records.
    pub(super) fn on_checkpoint_wanted(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, token: FencingToken,
    ) {
        let held = self.actions.held_mut(ix).filter(|held| held.token() == token);
        if held.is_some_and(HeldLease::on_checkpoint_wanted) {
            self.step(cx, leases, ix);
        }
    }

    /// The application wants a shard to be paused, or to go on.
    pub(super) fn on_pause_wanted(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, paused: bool,
    ) {
        let held = self.actions.held_mut(ix);
        if held.is_some_and(|held| held.on_pause_wanted(cx, leases, paused)) {
            self.step(cx, leases, ix);
        }
    }

    /// The lease of one more child of a held lease is known to exist, or needs not.
    pub(super) fn on_child_written(&mut self, cx: &Context, leases: &mut LeaseTable, parent: LeaseIx) {
        if let Some(held) = self.actions.held_mut(parent) {
            held.on_child_written();
        }
        leases.wake(parent, cx.now());
    }

    /// The monotonic clock did not count so much time: beliefs in leases end earlier by this time, and renewals are due
    /// sooner by it. The next step of each lease tells its handler, and renews. If no other worker took the lease
    /// meanwhile, its shard goes on as before.
    pub(super) fn on_missed(&mut self, cx: &mut Context, leases: &mut LeaseTable, by: Span) {
        cx.backdate_beliefs(by);
        let mut held = 0;
        self.actions.acquisitions_mut().for_each(|acquisition| acquisition.missed(by));
        for (ix, lease) in self.actions.all_held_mut() {
            lease.missed(by);
            leases.note_held(ix, lease.note());
            held += 1;
            leases.wake(ix, cx.now());
        }
        cx.notify(Notice::TimeMissed { by, leases: held });
    }

    /// The reason for which a held lease waits, however short the wait. `None`: the lease waits for new records, or is
    /// not held.
    pub(super) fn waits_for(&self, cx: &Context, leases: &LeaseTable, ix: LeaseIx) -> Option<Stall> {
        let held = self.actions.held(ix).filter(|held| !held.is_lost())?;
        let why = held.why_stalled(cx.now(), leases);
        (!matches!(why, Stall::ReadsEmpty | Stall::AwaitsEvent)).then_some(why)
    }

    /// The lease as described to a host, if this worker owns the lease.
    pub(super) fn described(&self, ix: LeaseIx) -> Option<Held<'_>> {
        let held = self.actions.held(ix).filter(|held| !held.is_lost())?;
        Some(held.described())
    }

    /// All leases that this worker owns, by their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = Held<'_>> {
        self.actions.all_held().filter(|held| !held.is_lost()).map(HeldLease::described)
    }

    /// The leases that name this worker at the end of a stop, or may name it, each with the reason.
    pub(super) fn left_behind<'a>(
        &'a self, leases: &'a LeaseTable, now: Mono,
    ) -> impl Iterator<Item = (&'a LeaseKey, Left)> {
        leases.iter().filter_map(move |(ix, lease)| {
            let why = match (self.actions.held(ix), self.actions.acquisition(ix)) {
                (Some(held), _) if !held.is_lost() => held.left_because(now),
                (None, Some(acquisition)) if acquisition.is_in_flight() => Left::Taking,
                _ => return None,
            };
            Some((lease.key(), why))
        })
    }
}

/// Wakes leases waiting for room or for turns freed by another lease.
pub(super) fn wake_waiting(cx: &Context, leases: &mut LeaseTable) {
    for next in [cx.reads().next(), cx.turns().next(cx.now())].into_iter().flatten() {
        leases.wake(next, cx.now());
    }
}
