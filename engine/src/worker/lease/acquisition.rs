//! An attempt to become the owner of a lease, and the meaning of its writes' outcomes.
//!
//! All writes of an attempt carry the same guard until the row is seen to have moved on, so at most one of these writes
//! is ever applied.

use super::HeldLeases;
use super::held::HeldLease;
use super::lane::{Began, Lane};
use super::ownership::Ownership;
use crate::began;
use crate::ids::{FencingToken, LeaseIx, OpId, WorkerId};
use crate::input::{Cause, Outcome, Reply, Why};
use crate::notice::{Notice, TakeReason};
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow, RowRead};
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Span, Wall};
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::lease_table::{Lease, LeaseTable, OnLane};
use crate::worker::table_turns::Turn;
use crate::worker::{describe, unexplained};

/// The most retries of a take before the next scan decides.
pub(super) const MAX_TRIES: u32 = 5;
/// The most renewals by the owner that one steal follows before the next scan decides.
const MAX_CHASES: u32 = 5;

/// An attempt to become the owner of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Acquisition {
    /// The counter that must still be there.
    counter: u64,
    /// The counter that all attempts leave.
    next: u64,
    /// The owner as read.
    from: Option<WorkerId>,
    /// Whether its owner is to hand it over.
    handed: bool,
    /// The checkpoint as read. It is exact if the take succeeds: a checkpoint moves the counter, or is guarded itself.
    checkpoint: Checkpoint,
    /// The moment from which the row says that the shard is read, or will say by the take.
    began: Option<Wall>,
    /// No worker had the lease before, as far as rows tell.
    first: bool,
    /// The stream that the row named as read.
    named: Option<StreamIdentity>,
    /// Why we take it.
    why: TakeReason,
    /// When the first attempt was emitted: validity counts from here, whichever attempt was applied.
    first_emitted: Mono,
    /// Failed attempts in a row.
    failures: u32,
    /// The last attempt was refused.
    refused: bool,
    /// The last write without a known outcome, until the row is read.
    unknown: Option<(OpId, Cause)>,
    /// The news known when the attempt was last weighed.
    weighed: u64,
    /// How often the row was found renewed by its owner.
    chases: u32,
    flight: Flight,
}

/// What is in flight for an [`Acquisition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Flight {
    /// A pause until then: the write is to be tried again.
    Pause(Mono),
    /// The write.
    Write(OpId),
    /// A read, after an outcome that was not known.
    Read(OpId),
}

impl Acquisition {
    fn new(row: &LeaseRow, why: TakeReason, chases: u32, now: Mono, news: u64) -> Self {
        Self {
            counter: row.counter,
            next: row.counter,
            from: row.owner.clone(),
            handed: row.handing_over.is_some(),
            checkpoint: row.checkpoint,
            began: row.began.filter(|_| began::is_of(row.checkpoint)),
            first: row.never_owned(),
            named: row.stream.clone(),
            why,
            first_emitted: now,
            failures: 0,
            refused: false,
            unknown: None,
            weighed: news,
            chases,
            flight: Flight::Pause(now),
        }
    }

    /// Whether a live owner is to lose the lease by it.
    pub(super) fn steals(&self) -> bool {
        matches!(self.why, TakeReason::Stolen { .. })
    }

    /// Whether the row named us as its owner already: it did not count towards our share before.
    pub(super) fn is_of_ours(&self) -> bool {
        matches!(self.why, TakeReason::Ours | TakeReason::Given)
    }

    /// Whether a write or read of it has no outcome yet.
    pub(super) fn is_in_flight(&self) -> bool {
        !matches!(self.flight, Flight::Pause(_))
    }

    /// The monotonic clock did not count so much time.
    pub(super) fn missed(&mut self, by: Span) {
        self.first_emitted = self.first_emitted - by;
    }

    /// The guarded write.
    fn write(&mut self, cx: &mut Context, ix: LeaseIx, lease: &Lease) {
        let Some(row) = lease.row() else {
            return cx.broken("a lease is taken by its row");
        };
        debug_assert!(!self.is_in_flight(), "one attempt at a time");
        debug_assert!(!self.checkpoint.is_end(), "a finished lease is not taken");
        debug_assert!(
            cx.streams().of_key(row.key.as_str()).is_some_and(|stream| cx.streams().is_identified(stream)),
            "a lease is taken when it is known which stream is read"
        );
        if self.failures == 0 {
            self.first_emitted = cx.now();
            self.next = cx.next_counter(self.counter, lease.highest());
            if row.began.is_none() {
                // No worker can tell where an earlier owner began. All attempts write one moment.
                let initial = cx.streams().initial_position(lease.stream());
                self.began = began::given(self.checkpoint, initial, cx.wall());
                self.first = true;
            }
        }
        debug_assert!(self.next > self.counter || self.counter == u64::MAX, "guards grow");
        let change = Change::Take {
            key: row.key.clone(),
            counter: self.counter,
            next: self.next,
            from: self.from.clone(),
            checkpoint: self.checkpoint,
            to: cx.me().clone(),
            // Said again where the row says it already: the same.
            began: self.began,
            named: self.named.clone(),
            stream: cx.identity_of(&row.key),
        };
        let op = TableOp::Write(change);
        self.flight = Flight::Write(cx.table_in_turn(Turn::Begin, Waiter::Lane(ix), op));
    }
}

impl HeldLeases {
    /// Begins to take a lease, by its last known row. Has no effect during another action on the lease.
    pub(in crate::worker) fn take(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, why: TakeReason,
    ) {
        self.chase(cx, leases, ix, why, 0);
    }

    fn chase(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, why: TakeReason, chases: u32,
    ) {
        let free = leases.get(ix).filter(|lease| !lease.busy() && lease.may_be_taken(cx));
        let Some(row) = free.and_then(|lease| lease.unfinished_row()) else {
            // The lease is busy, may not be taken, or is finished.
            return;
        };
        let acquisition = Acquisition::new(row, why, chases, cx.now(), leases.news());
        let (from, counter) = (acquisition.from.clone(), acquisition.counter);
        leases.begin_taking(ix, from, counter, acquisition.is_of_ours());
        self.actions.take(ix, acquisition);
        self.take_step(cx, leases, ix);
    }

    /// Emits what an attempt needs next.
    pub(super) fn take_step(&mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx) {
        let Some(acquisition) = self.actions.acquisition(ix) else {
            // The lease is not being taken, or the attempt was given up.
            return;
        };
        let Flight::Pause(until) = acquisition.flight else {
            // A write or a read is under way.
            return;
        };
        if cx.now() < until {
            return leases.wake(ix, until);
        }
        let stream = leases.get(ix).map(Lease::stream);
        // A stream may be read no more, or again since this was decided on: then it is not known yet.
        if stream.is_none_or(|stream| cx.leaves(stream).is_some() || !cx.may_take(stream)) {
            return self.give_up(leases, ix);
        }
        if is_of_another(cx, leases, ix) {
            return self.give_up(leases, ix);
        }
        if !self.is_still_wanted(cx, leases, ix) || !cx.takes_turn(ix, Turn::Begin) {
            return;
        }
        if let (Some(acquisition), Some(lease)) = (self.actions.acquisition_mut(ix), leases.get(ix)) {
            acquisition.write(cx, ix, lease);
        }
    }

    /// Gives an attempt up. An attempt to steal may have been applied all the same: a refusal that shows another owner in
    /// the row may come from a second execution.
    pub(super) fn give_up(&mut self, leases: &mut LeaseTable, ix: LeaseIx) {
        let steals = self.actions.acquisition(ix).is_some_and(Acquisition::steals);
        self.actions.clear(ix);
        leases.let_go(ix, steals);
    }

    /// Weighs an attempt anew if news came since the decision. Gives the attempt up if it cannot succeed any more or our
    /// share is full by now. An earlier write of the attempt may have been applied: then a scan shows the row as ours.
    fn is_still_wanted(&mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx) -> bool {
        let news = leases.news();
        let Some(acquisition) = self.actions.acquisition_mut(ix) else {
            debug_assert!(false, "an attempt that is weighed is under way");
            return false;
        };
        let known = std::mem::replace(&mut acquisition.weighed, news) == news;
        if known {
            return true;
        }
        let is_of_ours = acquisition.is_of_ours();
        let Some(lease) = leases.get(ix) else {
            debug_assert!(false, "a lease that is being taken is known");
            return false;
        };
        let key = lease.key().clone();
        if !lease.may_come_to(cx.me()) {
            let owner = lease.row().and_then(|row| row.actual_owner().cloned());
            self.give_up(leases, ix);
            cx.notify(Notice::MissedTake { lease: key, owner });
            return false;
        }
        // A lease handed over or assigned to us counts as ours until we have it: no other worker takes the lease before
        // it expires.
        let led = leases.kcl3().is_led();
        let comes_to_us = (cx.hands_over() || led) && is_of_ours;
        // A leader's own portion is measured by load, not by count.
        let wanted = cx.ranks() || comes_to_us || led || leases.shares(cx).has_room(0);
        if !wanted {
            self.give_up(leases, ix);
            cx.notify(Notice::Spared { lease: key });
        }
        wanted
    }

    /// The outcome of the write, or of the read after it.
    pub(super) fn on_take_outcome(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: Outcome,
    ) {
        let Some(acquisition) = self.actions.acquisition_mut(ix) else {
            // It was given up with the worker's stop.
            return;
        };
        let reading = match acquisition.flight {
            Flight::Write(expected) if expected == op => false,
            Flight::Read(expected) if expected == op => true,
            // An answer to an attempt that was given up.
            _ => return,
        };
        match outcome {
            Outcome::Applied(Reply::Row(row)) if reading => {
                self.on_row(cx, leases, ix, op, row.map(|row| *row))
            }
            Outcome::Applied(_) if !reading => self.become_owner(cx, leases, ix),
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed && !reading => {
                acquisition.refused = true;
                match refusal.current {
                    Some(row) => {
                        acquisition.failures += 1;
                        self.on_row(cx, leases, ix, op, Some(*row));
                    }
                    // Without the row, a refusal may mean that an earlier attempt of ours was applied.
                    None => self.read_row(cx, leases, ix),
                }
            }
            // A read says whether a write of unknown outcome was applied.
            Outcome::Unknown(cause) if !reading => {
                acquisition.refused = false;
                acquisition.unknown = Some((op, cause));
                self.read_row(cx, leases, ix);
            }
            other => {
                if matches!(&other, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
                    cx.request(Request::DoubtTable);
                }
                self.on_take_failure(cx, leases, ix, op, &other);
            }
        }
    }

    fn read_row(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        if let (Some(acquisition), Some(lease)) = (self.actions.acquisition_mut(ix), leases.get(ix)) {
            acquisition.failures += 1;
            let op = TableOp::Read { key: lease.key().clone() };
            acquisition.flight = Flight::Read(cx.table_in_turn(Turn::Begin, Waiter::Lane(ix), op));
        }
    }

    fn on_take_failure(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, outcome: &Outcome,
    ) {
        let (Some(acquisition), Some(lease)) = (self.actions.acquisition_mut(ix), leases.get(ix)) else {
            return cx.broken("an attempt that failed is under way");
        };
        acquisition.failures += 1;
        if acquisition.failures >= MAX_TRIES {
            // If one of the attempts was or will be applied, the next scan shows the row as ours.
            return self.give_up(leases, ix);
        }
        let key = lease.key().clone();
        let again_in = cx.pause("take", key.as_str(), acquisition.failures);
        acquisition.flight = Flight::Pause(cx.now() + again_in);
        cx.trouble(op, Some(key.clone()), format!("take {key}"), describe(outcome), again_in);
        self.take_step(cx, leases, ix);
    }
}

/// What the row says of our attempts.
enum Verdict {
    /// One of our writes was applied.
    Applied,
    /// The row is ours, but it may have been handed over to us after all, and earlier, which leaves a row like ours.
    HandedToUs,
    /// The row is as the guard expects the row: no write was applied, or not yet. The same guard makes a second attempt safe
    /// beside a late first one.
    InVain,
    /// The row has moved on: its owner has renewed the lease since the scan, and may do so during every scan.
    Renewed,
    /// The row has moved on.
    MovedOn,
}

impl Acquisition {
    fn judge(&self, row: &LeaseRow, me: &WorkerId) -> Verdict {
        if row.owner.as_ref() == Some(me) && row.handing_over.is_none() && row.counter == self.next {
            return match self.handed {
                true => Verdict::HandedToUs,
                false => Verdict::Applied,
            };
        }
        let same = row.owner == self.from && row.checkpoint == self.checkpoint && row.stream == self.named;
        if row.counter == self.counter && same {
            return Verdict::InVain;
        }
        let renewed =
            self.steals() && row.owner == self.from && row.handing_over.is_none() && !row.checkpoint.is_end();
        if renewed && self.chases < MAX_CHASES {
            return Verdict::Renewed;
        }
        Verdict::MovedOn
    }
}

impl HeldLeases {
    /// The present row decides whether one of our attempts was applied.
    fn on_row(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId, row: Option<RowRead>,
    ) {
        let (Some(acquisition), Some(lease)) = (self.actions.acquisition_mut(ix), leases.get(ix)) else {
            return cx.broken("an attempt that is judged by the row is under way");
        };
        let key = lease.key().clone();
        let Some(RowRead::Lease(row)) = row else {
            self.give_up(leases, ix);
            let owner = None;
            return cx.notify(Notice::MissedTake { lease: key, owner });
        };
        match acquisition.judge(&row, cx.me()) {
            Verdict::Applied => {
                let counter = row.counter;
                cx.notify(Notice::Adopted { lease: key, counter });
                self.become_owner(cx, leases, ix);
            }
            Verdict::HandedToUs => {
                self.give_up(leases, ix);
                leases.observe_now(cx, row);
                self.take(cx, leases, ix, TakeReason::Ours);
            }
            Verdict::InVain => self.on_vain_take(cx, leases, ix, op),
            Verdict::Renewed => {
                let (why, chases) = (acquisition.why.clone(), acquisition.chases);
                let owner = row.actual_owner().cloned();
                self.give_up(leases, ix);
                leases.observe_now(cx, row);
                if leases.shares(cx).has_room(1) {
                    return self.chase(cx, leases, ix, why, chases + 1);
                }
                cx.notify(Notice::MissedTake { lease: key, owner });
            }
            Verdict::MovedOn => {
                let owner = row.actual_owner().cloned();
                self.give_up(leases, ix);
                leases.observe_now(cx, row);
                cx.notify(Notice::MissedTake { lease: key, owner });
                if cx.hands_over() {
                    // Another worker was faster. Elsewhere, a lease for our share may be free.
                    cx.request(Request::Rescan(cx.now()));
                }
            }
        }
    }

    /// The row is as the guard expects the row after a write that was refused, or without a known outcome. A single write
    /// may have been lost on its way: the second write follows at once. Further writes come after growing pauses. The lease
    /// counts them, and the next attempt goes on with that count: an attempt ends whenever the worker's share changes.
    fn on_vain_take(&mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, op: OpId) {
        let counted = leases.count_vain_take(cx, ix);
        let (Some(acquisition), Some((key, pause, times))) = (self.actions.acquisition_mut(ix), counted)
        else {
            return cx.broken("a lease whose take had no effect is known and being taken");
        };
        let unknown = acquisition.unknown.take().filter(|_| !acquisition.refused);
        let at_once = unknown.is_some() && times == 1;
        let again_in = if at_once { Span::ZERO } else { pause };
        acquisition.refused = false;
        acquisition.flight = Flight::Pause(cx.now() + again_in);
        if times >= MAX_TRIES {
            self.give_up(leases, ix);
        }
        if !at_once {
            let (op, how) = match unknown {
                Some((write, cause)) => (write, describe(&Outcome::Unknown(cause))),
                None => (op, unexplained(times)),
            };
            cx.trouble(op, Some(key.clone()), format!("take {key}"), how, again_in);
        }
        self.take_step(cx, leases, ix);
    }

    /// The lease is ours from now on.
    fn become_owner(&mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx) {
        let (Some(acquisition), Some(lease)) = (self.actions.acquisition(ix), leases.get(ix)) else {
            return cx.broken("an attempt that was applied is under way");
        };
        let now = cx.now();
        let (counter, why) = (acquisition.next, acquisition.why.clone());
        debug_assert!(counter > acquisition.counter || counter == u64::MAX, "a take lets the counter grow");
        debug_assert!(!acquisition.checkpoint.is_end(), "a finished lease is not taken");
        // A former owner that may live believes until its next write is refused, at the latest for a lease duration
        // after the take was applied: ours, or an earlier one that was given up and made the row ours all the same.
        let believed = acquisition.steals() || lease.prior_owner_may_believe() && acquisition.is_of_ours();
        let settles = believed && cx.config().steal_cooldown;
        let open_after = if settles { now + cx.config().lease_duration } else { now };
        // Renewals of leases taken together are spread out.
        let early = cx.draw("first renewal", lease.key(), counter) % (cx.config().renew_interval.0 / 4 + 1);
        let began = Began {
            row: acquisition.began,
            owner: began::begins(acquisition.checkpoint, acquisition.began, acquisition.first),
        };
        let proven_at = acquisition.first_emitted;
        let lane = Lane::new(cx, counter, acquisition.checkpoint, began, proven_at, Span(early));
        let parents = lease.row().map_or_else(Vec::new, |row| row.parents.clone());
        let token = FencingToken(counter);
        let own = Ownership::new(ix, lease.stream(), lease.key().clone(), token, open_after);
        let (lease, says) = (own.lease(), lane.says());
        leases.wrote(cx, ix, OnLane::Took(says));
        let held = HeldLease::new(own, lane, parents, now);
        leases.note_held(ix, held.note());
        self.actions.hold(ix, held);
        cx.notify(Notice::Took { lease, token, why });
        self.step(cx, leases, ix);
    }
}

/// Whether the row names another stream. What follows from that is decided after scans; until then, nobody here takes the lease.
fn is_of_another(cx: &Context, leases: &LeaseTable, ix: LeaseIx) -> bool {
    let lease = leases.get(ix);
    let row = lease.and_then(|lease| Some((lease.stream(), lease.row()?)));
    row.is_some_and(|(stream, row)| cx.streams().is_of_another(stream, row))
}
