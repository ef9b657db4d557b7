//! A lease owned by this worker, and the life of its shard, driven one step at a time.
//!
//! ```mermaid
#![doc = include_str!("stage.mmd")]
//! ```
//!
//! # Invariants
//!
//! * Nothing is handed over unless the belief in the lease holds at that moment.
//! * Every `Open` is followed by exactly one `Close`, and nothing is handed over after it.
//! * At most one command to the application is in flight, but for `Abort` and `TimeOut`.

use super::application::{AppCommand, Application};
use super::fetch::Share;
use super::lane::{Answer, From, Lane, Wish, WriteKind};
use super::ownership::Ownership;
use super::stage::{Stage, Waiting};
use super::watch::Watch;
use crate::held::Held;
use crate::ids::{FencingToken, LeaseKey, OpId, ShardId, WorkerId};
use crate::input::Outcome;
use crate::notice::{Left, LossReason, Notice};
use crate::output::EndReason;
use crate::position::Position;
use crate::row::LeaseRow;
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::table_turns::Turn;

/// Our ownership of a lease, from the take until the application let go of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub(in crate::worker) struct HeldLease {
    pub(super) stage: Stage,
    pub(super) lane: Lane,
    pub(super) app: Application,
    /// The shard, or another shard that this shard waits for, was not found, and a listing is to say why.
    pub(super) missing: bool,
    /// The application wants nothing to be handed over.
    pub(super) paused: bool,
    pub(super) own: Ownership,
    pub(super) watch: Watch,
    pub(super) share: Share,
    /// The children of the shard, sorted, after the shard was processed to its end: a written end may become known when
    /// the shard is closed already.
    pub(super) children: Vec<ShardId>,
}

impl HeldLease {
    /// A lease that was just taken. The shard waits for these parents.
    pub(super) fn new(own: Ownership, lane: Lane, parents: Vec<ShardId>, now: Mono) -> Self {
        Self {
            stage: Stage::Waiting(Box::new(Waiting { parents, ..Waiting::default() })),
            lane,
            app: Application::NEW,
            missing: false,
            paused: false,
            own,
            watch: Watch::new(now),
            share: Share::default(),
            children: Vec::new(),
        }
    }

    /// Whether it is not ours any more. Then only the application is left to be closed.
    pub(in crate::worker) fn is_lost(&self) -> bool {
        self.lane.is_lost()
    }

    /// The next owner in a hand-over.
    pub(in crate::worker) fn next_owner(&self) -> Option<&WorkerId> {
        self.lane.next_owner()
    }

    /// Whether we may act as the owner now.
    pub(in crate::worker) fn believes(&self, now: Mono) -> bool {
        self.lane.believes(now)
    }

    /// Whether a listing is to show the fate of this shard, or of a shard that this shard waits for.
    pub(in crate::worker) fn is_missing(&self) -> bool {
        self.missing
    }

    pub(in crate::worker) fn token(&self) -> FencingToken {
        self.own.token()
    }

    /// Everything up to here was processed under this ownership.
    pub(super) fn processed(&self) -> Option<Position> {
        self.lane.processed().through()
    }

    /// What we say we hold.
    pub(in crate::worker) fn described<'a>(&self, key: &'a LeaseKey) -> Held<'a> {
        Held {
            lease: key,
            token: self.own.token(),
            counter: self.lane.counter(),
            checkpoint: self.lane.processed().durable(),
            valid_until: self.lane.valid_until(),
            open: self.stage.is_open(),
            stalled: self.watch.is_stalled(),
            paused: self.paused,
            stopped: self.stage.reading().is_some_and(|reading| reading.failure.is_stopped()),
            processed: self.processed(),
        }
    }

    /// Why the lease was not given up by now.
    pub(in crate::worker) fn left_because(&self, now: Mono) -> Left {
        match self.stage {
            _ if self.lane.is_giving_up() => Left::Unanswered,
            Stage::Closed(_) if now < self.own.open_after() => Left::Settling,
            Stage::Closed(_) => Left::Failed { times: self.lane.failures() },
            _ => Left::Busy,
        }
    }

    /// A row of this lease was shown. Whether the row contradicts our state.
    pub(in crate::worker) fn is_contradicted_by(&mut self, cx: &Context, row: &LeaseRow) -> bool {
        self.lane.is_contradicted_by(cx, row)
    }

    /// Does all due work, and returns when work is due again. `None` when the lease is over.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &mut LeaseTable) -> Option<Mono> {
        self.fence(cx);
        self.app.time_out(&self.own, cx);
        self.stage_step(cx, leases);
        if let Some(kind) = self.lane.next_write(self.wish(cx), cx.now())
            && cx.takes_turn(self.own.ix(), Turn::Keep)
        {
            if kind.gives_up() && self.stage.is_open() {
                // Another worker may begin as soon as the release is applied.
                self.lane.doubt(cx.now());
            }
            self.emit(cx, leases, kind);
        }
        self.watch_step(cx, leases);
        self.share_step(cx);
        self.check();
        let closed = matches!(self.stage, Stage::Closed(_));
        // Without its table, nothing can be given up.
        let over = closed && (self.lane.is_lost() || cx.phase().table_gone());
        (!over).then(|| self.wake_at(cx))
    }

    /// What holds in every stage.
    fn check(&self) {
        let app = self.app.command();
        let open = matches!(app, Some(AppCommand::Open));
        let deliver = matches!(app, Some(AppCommand::Deliver { .. } | AppCommand::SetAside { .. }));
        let close = matches!(app, Some(AppCommand::Close));
        let flush = matches!(app, Some(AppCommand::Flush(_)));
        let stage = &self.stage;
        debug_assert_eq!(
            close,
            matches!(stage, Stage::Closing(_)),
            "a shard is being closed while its close is in flight"
        );
        debug_assert!(
            !open || matches!(stage, Stage::Opening { .. } | Stage::Draining { .. }),
            "a shard is opened before anything else"
        );
        debug_assert!(
            !(deliver || flush) || matches!(stage, Stage::Running(_) | Stage::Draining { .. }),
            "a batch is processed, and what is kept is flushed, while its shard is read, or let go of"
        );
        debug_assert!(
            self.app.has_opened()
                || !matches!(stage, Stage::Running(_) | Stage::Ending(_) | Stage::Closing(_)),
            "what is read, or was, had been opened"
        );
        debug_assert!(self.processed().is_none() || self.app.has_opened(), "only an open shard is processed");
    }

    /// When the belief runs out, the hand-over of records ends, and the running command is stopped.
    fn fence(&mut self, cx: &mut Context) {
        if self.lane.fence(cx.now()) {
            let lease = self.own.lease();
            cx.notify(Notice::Fenced { lease });
            self.app.abort(&self.own, &self.lane, cx);
        }
    }

    /// When the lease counts as stalled if nothing moves until then.
    fn stall_at(&self, cx: &Context) -> Mono {
        match self.is_lost() || self.rests() {
            true => Mono::NEVER,
            false => self.watch.stall_at(cx),
        }
    }

    /// Reports what is noticed of the lease.
    fn watch_step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        self.watch.tell_moving(&self.own, cx);
        if cx.now() >= self.stall_at(cx) {
            let why = self.why_stalled(cx.now(), leases);
            self.watch.tell_stalled(&self.own, cx, why);
        }
        let reads = matches!(self.stage, Stage::Running(_)) && self.believes(cx.now());
        if reads && self.next_owner().is_none() {
            self.watch.tell_flow(&self.own, leases, cx);
        }
    }

    fn emit(&mut self, cx: &mut Context, leases: &LeaseTable, kind: WriteKind) {
        self.lane.emit(cx, leases, self.own.ix(), kind, &self.children);
    }

    /// What the stage wants of the lane.
    fn wish(&self, cx: &Context) -> Wish {
        let now = cx.now();
        match &self.stage {
            // A stolen lease is kept until its former owner must know of the steal. A worker that finds the lease
            // released, or its own, starts at once.
            Stage::Closed(_) if now < self.own.open_after() => Wish::KeepUntil(self.own.open_after()),
            Stage::Closed(reason) => Wish::GiveUp { handed: *reason == EndReason::HandedOver },
            Stage::Ending(ending) if ending.children_left == 0 => Wish::End,
            // The application cannot answer, and the lease does not wait.
            Stage::Draining { .. } | Stage::Closing(_) if cx.standstill().lets_go() => Wish::LetGo,
            Stage::Draining { .. } if self.app.is_idle() => Wish::Save,
            _ => Wish::Keep,
        }
    }

    fn wake_at(&self, cx: &Context) -> Mono {
        let now = cx.now();
        let mut at = self.app.late_at().min(self.stall_at(cx));
        if !cx.turns().waits(self.own.ix(), Turn::Keep) {
            at = at.min(self.lane.write_at(self.wish(cx)));
        }
        at = at.min(self.lane.belief_wake_at(cx));
        match &self.stage {
            Stage::Waiting(waiting)
                if waiting.reading.is_none()
                    && !cx.turns().waits(self.own.ix(), Turn::Begin)
                    && self.believes(now) =>
            {
                at = at.min(waiting.look_at.max(self.own.open_after()));
            }
            Stage::Ending(ending)
                if !ending.pending_children.is_empty()
                    && ending.reading.is_none()
                    && !cx.turns().waits(self.own.ix(), Turn::Begin) =>
            {
                at = at.min(ending.look_at);
            }
            Stage::Running(reading) => at = at.min(self.reading_wake_at(cx, reading)),
            Stage::Draining { .. } => at = at.min(self.draining_wake_at(cx)),
            _ => {}
        }
        // Work due now was done in this step. The rest waits for an outcome.
        at.max(Mono(now.0.saturating_add(1)))
    }

    fn stage_step(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        let exit = self.exit(cx, leases);
        match (&mut self.stage, exit) {
            (Stage::Waiting(_), Some(reason)) => self.stage.go(|_| Stage::Closed(reason)),
            (Stage::Waiting(_), None) => self.wait_step(cx, leases),
            (Stage::Opening { .. } | Stage::Running(_), Some(reason)) => {
                if reason == EndReason::HandedOver && self.lane.next_owner().is_none() {
                    let lease = self.own.lease();
                    cx.notify(Notice::Yields { lease });
                }
                self.stage.go(|stage| stage.into_draining(reason));
            }
            // The end of the shard is worth waiting for, unless the lease is not ours any more, time is up, or others have to do
            // their part first: the next owner can wait for them as well.
            (Stage::Ending(ending), Some(reason))
                if self.lane.is_lost()
                    || cx.forced()
                    || ending.waits_for_others()
                    || matches!(
                        reason,
                        EndReason::SourceGone | EndReason::StreamRemoved | EndReason::HandlersBlocked
                    ) =>
            {
                self.stage.go(|stage| stage.into_draining(reason));
            }
            (Stage::Draining { reason, .. }, Some(EndReason::LeaseLost)) => *reason = EndReason::LeaseLost,
            _ => {}
        }
        if matches!(self.stage, Stage::Running(_)) {
            self.run_step(cx);
        }
        if matches!(self.stage, Stage::Ending(_)) {
            self.end_step(cx, leases);
        }
        if let Stage::Draining { reason, .. } = self.stage {
            self.drain_step(cx, reason);
        }
        // A handler that does not come back from `close` must not keep a lease for ever.
        if let Stage::Closing(reason) = self.stage
            && cx.out_of_patience()
        {
            self.app.give_up(&self.lane, cx);
            self.stage.go(|_| Stage::Closed(reason));
        }
    }

    /// The answer of an operation on the lane.
    pub(super) fn on_lane(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, emitted: Mono, outcome: Outcome,
    ) {
        let Some(kind) = self.lane.settle(op) else {
            return cx.broken("an answer of the lane is of what is in flight");
        };
        if self.lane.is_lost() {
            return;
        }
        let key = self.own.lease();
        let from = From { key: &key, kind, emitted };
        match self.lane.on_answer(cx, &from, op, outcome) {
            Answer::Nothing => {}
            Answer::StillOurs => self.is_still_ours(cx, leases),
            Answer::Saved(position) => {
                self.is_still_ours(cx, leases);
                cx.notify(Notice::Checkpointed { lease: key, position });
            }
            Answer::Ended => self.on_ended(cx, leases),
            Answer::GivenUp => self.on_given_up(cx, leases),
            Answer::Lost(why, row) => self.on_lost(cx, leases, why, row),
            Answer::Restore => cx.notify(Notice::Restoring { lease: key }),
            Answer::LookAtRow => self.emit(cx, leases, WriteKind::Read),
        }
    }

    fn is_still_ours(&self, cx: &Context, leases: &mut LeaseTable) {
        leases.is_still_ours(self.own.ix(), &self.lane.says(), cx.now());
    }

    /// The lease is another worker's, or not to be had any more.
    fn on_lost(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, why: LossReason, row: Option<Box<LeaseRow>>,
    ) {
        if let Some(counter) = self.lane.end(cx.now()) {
            leases.may_have_had(self.own.ix(), counter);
        }
        cx.request(Request::DropRowWrites(self.own.ix()));
        let lease = self.own.lease();
        cx.notify(Notice::Lost { lease, why });
        if let Some(row) = row {
            leases.observe_now(cx, *row);
        }
    }

    /// The end of the shard is durable.
    fn on_ended(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        let now = cx.now();
        debug_assert!(self.app.has_opened(), "a shard that was read to its end had been opened");
        self.lane.end_shard(now);
        let children = self.children.clone();
        leases.ended(self.own.ix(), self.lane.counter(), &children, now);
        cx.notify(Notice::Ended { lease: self.own.lease(), children: children.clone() });
        if matches!(self.stage, Stage::Ending(_)) {
            self.close(cx, EndReason::ShardEnded);
        }
        // A child of ours may have waited for just this.
        for child in &children {
            if let Some(child) = leases.find(child.as_str()) {
                leases.with_held(child, |held, _| held.look_at_parents_now(now));
                leases.wake(child, now);
            }
        }
        // And no worker owns the children yet.
        if !children.is_empty() {
            cx.request(Request::Rescan(now));
        }
    }
}
