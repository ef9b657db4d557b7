//! A lease owned by this worker: the four parts of the lease, and the steps across several parts.
//!
//! | part | what |
//! |---|---|
//! | [`Ownership`] | which lease, under which token |
//! | [`Lane`] | the writes on the row, one at a time, and the belief |
//! | [`Processing`] | the shard: its stage, its application, its reader |
//! | [`Watch`] | movement and flow, for notices and reports |

use super::lane::{Answer, From, Lane, Wish, WriteKind};
use super::lent::Lent;
use super::ownership::Ownership;
use super::processing::{Processing, Prospects, View, why_stalled};
use super::watch::Watch;
use super::{Follows, Said};
use crate::held::Held;
use crate::ids::{FencingToken, OpId, ShardId};
use crate::input::Outcome;
use crate::notice::{Left, LossReason, Notice, Stall};
use crate::reader::EVENT_PAUSE;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{HeldNow, LeaseTable, OnLane};
use crate::worker::table_turns::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// Our ownership of a lease, from the take until the application let go of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub(super) struct HeldLease {
    processing: Processing,
    lane: Lane,
    own: Ownership,
    watch: Watch,
}

impl HeldLease {
    /// A lease that was just taken. The shard waits for these parents.
    pub(super) fn new(own: Ownership, lane: Lane, parents: Vec<ShardId>, now: Mono) -> Self {
        Self { processing: Processing::new(parents), lane, own, watch: Watch::new(now) }
    }

    /// The processing, and what it borrows for a step.
    fn lend<'a>(&'a mut self, cx: &'a mut Context, rows: &'a LeaseTable) -> (&'a mut Processing, Lent<'a>) {
        let Self { processing, lane, own, watch } = self;
        (processing, Lent { own, lane, watch, rows, cx })
    }

    /// Whether it is not ours any more. Then only the application is left to be closed.
    pub(super) fn is_lost(&self) -> bool {
        self.lane.is_lost()
    }

    /// What the lease table is told of the lease.
    pub(super) fn note(&self) -> HeldNow<'_> {
        self.lane.note(self.processing.awaits_listing())
    }

    /// Whether a listing is to show the fate of this shard, or of a shard that this shard waits for.
    pub(super) fn is_missing(&self) -> bool {
        self.processing.awaits_listing()
    }

    /// Whether the shard waits for its parents, or to be opened.
    pub(super) fn is_waiting(&self) -> bool {
        self.processing.is_waiting()
    }

    /// Whether the shard has ended, and children wait until their other parents have leases.
    pub(super) fn awaits_other_parents(&self) -> bool {
        self.processing.awaits_other_parents()
    }

    pub(super) fn token(&self) -> FencingToken {
        self.own.token()
    }

    /// What we say we hold.
    pub(super) fn described(&self) -> Held<'_> {
        let processed = self.lane.processed();
        Held {
            lease: self.own.key(),
            token: self.own.token(),
            counter: self.lane.counter(),
            checkpoint: processed.durable(),
            valid_until: self.lane.valid_until(),
            open: self.processing.is_open(),
            stalled: self.watch.is_stalled(),
            paused: self.processing.is_paused(),
            stopped: self.processing.is_stopped(),
            processed: processed.through(),
        }
    }

    /// Why the lease was not given up by now.
    pub(super) fn left_because(&self, now: Mono) -> Left {
        match self.processing.is_closed() {
            _ if self.lane.is_giving_up() => Left::Unanswered,
            true if now < self.own.open_after() => Left::Settling,
            true => Left::Failed { times: self.lane.failures() },
            false => Left::Busy,
        }
    }

    /// Why the lease does not move, however short the time.
    pub(super) fn why_stalled(&self, now: Mono, rows: &LeaseTable) -> Stall {
        why_stalled(&self.processing, &self.own, &self.lane, now, rows)
    }

    /// A row of this lease was shown, and contradicts our state: the next write is made at once, and its guard settles
    /// the contradiction.
    pub(super) fn renew_now(&mut self, now: Mono) {
        self.lane.renew_now(now);
    }

    /// Does all due work, and returns when work is due again. `None` when the lease is over.
    pub(super) fn step(&mut self, cx: &mut Context, rows: &mut LeaseTable) -> Option<Mono> {
        self.fence(cx);
        self.processing.time_out(&self.own, cx);
        let (processing, mut lent) = self.lend(cx, rows);
        processing.step(&mut lent);
        if let Some(kind) = self.lane.next_write(self.wish(cx), cx.now())
            && cx.takes_turn(self.own.ix(), Turn::Keep)
        {
            if kind.gives_up() && self.processing.is_open() {
                // Another worker may begin as soon as the release is applied.
                self.lane.doubt(cx.now());
            }
            self.emit(cx, rows, kind);
        }
        self.watch_step(cx, rows);
        self.processing.share_step(&self.own, cx);
        self.processing.check(&self.lane);
        // Without its table, nothing can be given up.
        let over = self.processing.is_closed() && (self.lane.is_lost() || cx.phase().table_gone());
        (!over).then(|| self.wake_at(cx))
    }

    /// When the belief runs out, the hand-over of records ends, and the running command is stopped.
    fn fence(&mut self, cx: &mut Context) {
        if self.lane.fence(cx.now()) {
            let lease = self.own.lease();
            cx.notify(Notice::Fenced { lease });
            self.processing.abort(&self.own, &self.lane, cx);
        }
    }

    /// When the lease counts as stalled if nothing moves until then.
    fn stall_at(&self, cx: &Context) -> Mono {
        if self.is_lost() || self.processing.rests(&self.lane) {
            return Mono::NEVER;
        }
        let is_idle = self.watch.is_at_tip() && self.processing.awaits_event();
        self.watch.stall_at(cx, if is_idle { EVENT_PAUSE } else { Span::ZERO })
    }

    /// Reports what is noticed of the lease.
    fn watch_step(&mut self, cx: &mut Context, rows: &LeaseTable) {
        self.watch.tell_moving(&self.own, cx);
        if cx.now() >= self.stall_at(cx) {
            let why = self.why_stalled(cx.now(), rows);
            self.watch.tell_stalled(&self.own, cx, why);
        }
        let reads = self.processing.is_running() && self.lane.believes(cx.now());
        if reads && self.lane.next_owner().is_none() {
            self.watch.tell_flow(&self.own, rows, cx);
        }
    }

    fn emit(&mut self, cx: &mut Context, rows: &LeaseTable, kind: WriteKind) {
        self.lane.emit(cx, rows, self.own.ix(), kind, self.processing.children());
    }

    fn wish(&self, cx: &Context) -> Wish {
        self.processing.wish(&self.own, cx)
    }

    fn wake_at(&self, cx: &Context) -> Mono {
        let mut at = self.stall_at(cx);
        if !cx.turns().waits(self.own.ix(), Turn::Keep) {
            at = at.min(self.lane.write_at(self.wish(cx)));
        }
        at = at.min(self.lane.belief_wake_at(cx));
        at = at.min(self.processing.wake_at(&self.own, &self.lane, cx));
        // Work due now was done in this step. The rest waits for an outcome.
        at.max(Mono(cx.now().0.saturating_add(1)))
    }

    /// A consistent read of the row of a parent, or of a child's other parent, came back.
    pub(super) fn on_relative(&mut self, cx: &mut Context, rows: &LeaseTable, op: OpId, outcome: Outcome) {
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_relative(&mut lent, op, outcome);
    }

    /// A stream command of the reader ended.
    pub(super) fn on_read(&mut self, cx: &mut Context, rows: &LeaseTable, op: OpId, outcome: Outcome) {
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_read(&mut lent, op, &outcome);
    }

    /// An application command ended.
    pub(super) fn on_app(&mut self, cx: &mut Context, rows: &LeaseTable, op: OpId, outcome: Outcome) {
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_app(&mut lent, op, outcome);
    }

    /// The application says something of its records.
    pub(super) fn on_said(&mut self, cx: &mut Context, rows: &LeaseTable, said: Said) {
        let before = self.lane.processed().through();
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_said(&mut lent, said);
        if self.lane.processed().through() > before {
            let now = cx.now();
            cx.standstill_mut().progressed(now);
        }
    }

    /// The application requests a checkpoint of the processed records. Whether a position is still to be written.
    pub(super) fn on_checkpoint_wanted(&mut self) -> bool {
        self.lane.processed_mut().want_durable()
    }

    /// The application wants the shard to be paused, or to go on. Whether the call changes the pause.
    pub(super) fn on_pause_wanted(&mut self, cx: &mut Context, rows: &LeaseTable, paused: bool) -> bool {
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_pause_wanted(&mut lent, paused)
    }

    /// The lease of one more child is known to exist, or needs not.
    pub(super) fn on_child_written(&mut self) {
        self.processing.on_child_written();
    }

    /// The end of a parent is known: nothing more needs to be waited for.
    pub(super) fn look_at_parents_now(&mut self, now: Mono) {
        self.processing.look_at_parents_now(now);
    }

    /// A listing that was waited for: whether it has an effect. `prospects`: present if the lease awaits other parents.
    pub(super) fn on_shards_listed(
        &mut self, cx: &mut Context, rows: &LeaseTable, view: View<'_>, prospects: Option<&Prospects<'_>>,
    ) -> bool {
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_shards_listed(&mut lent, view, prospects)
    }

    /// Nothing follows from a listing that was waited for.
    pub(super) fn try_again(&mut self, cx: &Context) {
        self.processing.try_again(cx);
    }

    /// The shards were listed: compares the parents of a shard that waits.
    pub(super) fn compare_parents(
        &mut self, cx: &mut Context, asked: Mono, shards: &BTreeMap<&str, &Shard>,
    ) -> Option<BTreeSet<ShardId>> {
        self.processing.compare_parents(&self.own, cx, asked, shards)
    }

    /// The monotonic clock did not count so much time.
    pub(super) fn missed(&mut self, by: Span) {
        self.lane.missed(by);
    }

    /// The answer of an operation on the lane.
    pub(super) fn on_lane(
        &mut self, cx: &mut Context, rows: &mut LeaseTable, op: OpId, emitted: Mono, outcome: Outcome,
    ) -> Follows {
        let Some(kind) = self.lane.settle(op) else {
            cx.broken("an answer of the lane is of what is in flight");
            return Follows::Nothing;
        };
        if self.lane.is_lost() {
            return Follows::Nothing;
        }
        let key = self.own.lease();
        let from = From { key: &key, kind, emitted };
        match self.lane.on_answer(cx, &from, op, outcome) {
            Answer::Nothing => {}
            Answer::StillOurs => self.is_still_ours(cx, rows),
            Answer::Saved(position) => {
                self.is_still_ours(cx, rows);
                cx.notify(Notice::Checkpointed { lease: key, position });
            }
            Answer::Ended => return self.on_ended(cx, rows),
            Answer::GivenUp => self.on_given_up(cx, rows),
            Answer::Lost(why, row) => return self.on_lost(cx, rows, why, row),
            Answer::Restore => cx.notify(Notice::Restoring { lease: key }),
            Answer::LookAtRow => self.emit(cx, rows, WriteKind::Read),
        }
        Follows::Nothing
    }

    fn is_still_ours(&self, cx: &Context, rows: &mut LeaseTable) {
        rows.wrote(cx, self.own.ix(), OnLane::Kept(self.lane.says()));
    }

    /// The lease is another worker's, or not to be had any more.
    fn on_lost(
        &mut self, cx: &mut Context, rows: &mut LeaseTable, why: LossReason, row: Option<Box<LeaseRow>>,
    ) -> Follows {
        if let Some(counter) = self.lane.end(cx.now()) {
            rows.wrote(cx, self.own.ix(), OnLane::Perhaps { counter });
        }
        cx.request(Request::DropRowWrites(self.own.ix()));
        let lease = self.own.lease();
        cx.notify(Notice::Lost { lease, why });
        row.map_or(Follows::Nothing, Follows::Row)
    }

    /// The end of the shard is durable.
    fn on_ended(&mut self, cx: &mut Context, rows: &mut LeaseTable) -> Follows {
        let now = cx.now();
        self.lane.end(now);
        self.lane.processed_mut().end();
        let children = self.processing.children().to_vec();
        let counter = self.lane.counter();
        rows.wrote(cx, self.own.ix(), OnLane::Ended { counter, children: &children });
        cx.notify(Notice::Ended { lease: self.own.lease(), children: children.clone() });
        let (processing, mut lent) = self.lend(cx, rows);
        processing.on_ended(&mut lent);
        // No worker owns the children yet.
        if !children.is_empty() {
            cx.request(Request::Rescan(now));
        }
        Follows::Children(children)
    }

    /// We own the lease no more, by our own will.
    fn on_given_up(&mut self, cx: &mut Context, rows: &mut LeaseTable) {
        debug_assert!(self.processing.may_be_given_up(), "a lease is given up when its shard is let go of");
        self.lane.end(cx.now());
        cx.request(Request::DropRowWrites(self.own.ix()));
        let (counter, next_owner) = (self.lane.counter(), self.lane.next_owner().cloned());
        rows.wrote(cx, self.own.ix(), OnLane::GivenUp { counter, next_owner });
        cx.request(Request::GivenUp(self.own.ix()));
        cx.phase_mut().count_released();
        let lease = self.own.lease();
        cx.notify(Notice::Released { lease });
    }

    #[cfg(test)]
    pub(super) fn processing(&self) -> &Processing {
        &self.processing
    }

    /// When work of the stage is due again, if nothing else happens.
    #[cfg(test)]
    pub(super) fn stage_wake_at(&self, cx: &Context) -> Mono {
        self.processing.wake_at(&self.own, &self.lane, cx)
    }
}
