//! The processing of a held shard: stage, application and reader of the shard, and the resulting wishes to the lane.
//!
//! ```mermaid
#![doc = include_str!("stage.mmd")]
//! ```
//!
//! | file | what |
//! |---|---|
//! | `stage` | the stages, and the legal transitions |
//! | `application` | the commands to the application, and their time limits |
//! | `waiting` | before a shard is opened |
//! | `running`, `reading` | while the shard is read |
//! | `share` | the part of a lease of what the reads of all shards share |
//! | `shard_end` | the children's leases, before a shard's end is written |
//! | `leaving` | letting go of a lease: the conditions, and the close |
//! | `stall` | the reason why a lease does not move |
//!
//! # Pauses
//!
//! The application may pause a shard: its batches are not handed over, while its lease is kept. Only the hand-over
//! rests. The lease is renewed, a running handler finishes, its processed records are written, and the shard is read
//! until the reader's buffer is full. A fully processed shard ends, unless its application must permit the end: then
//! the application is asked after the pause. The pause is part of the ownership: a lease that is given up, lost and
//! taken again is not paused.
//!
//! # Invariants
//!
//! * Nothing is handed over unless the belief in the lease holds at that moment.
//! * Every `Open` is followed by exactly one `Close`, and nothing is handed over after it.
//! * At most one command to the application is in flight, but for `Abort` and `TimeOut`.

mod application;
mod leaving;
mod reading;
mod running;
mod shard_end;
mod share;
mod stage;
mod stall;
mod waiting;

pub(super) use reading::View;
pub(super) use shard_end::Prospects;
pub(super) use stall::why as why_stalled;

use super::Said;
use super::lane::{Lane, Wish};
use super::lent::Lent;
use super::ownership::Ownership;
use crate::ids::{OpId, ShardId};
use crate::input::Outcome;
use crate::notice::Notice;
use crate::output::EndReason;
use crate::shard::Shard;
use crate::time::Mono;
use crate::worker::context::Context;
use application::{AppCommand, AppLane};
use share::Share;
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use waiting::Waiting;

/// The processing of a shard under one ownership.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Processing {
    stage: Stage,
    app: AppLane,
    /// Its part of what the reads of all shards share.
    share: Share,
    /// The shard, or another shard that this shard waits for, was not found, and a listing is to say why.
    missing: bool,
    /// The application wants nothing to be handed over.
    paused: bool,
    /// The children of the shard, sorted, after the shard was processed to its end: a written end may become known when
    /// the shard is closed already.
    children: Vec<ShardId>,
}

impl Processing {
    /// A lease that was just taken. Its shard waits for these parents.
    pub(super) fn new(parents: Vec<ShardId>) -> Self {
        Self {
            stage: Stage::Waiting(Box::new(Waiting::of(parents))),
            app: AppLane::NEW,
            share: Share::default(),
            missing: false,
            paused: false,
            children: Vec::new(),
        }
    }

    /// Whether the application has been asked to open the shard and not yet let go.
    pub(super) fn is_open(&self) -> bool {
        self.stage.is_open()
    }

    /// Whether the application has let go. Then only the lease itself may be left to give up.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed(_))
    }

    /// Whether the shard is let go of, so that the lease may be given up.
    pub(super) fn may_be_given_up(&self) -> bool {
        matches!(self.stage, Stage::Closed(_) | Stage::Closing(_) | Stage::Draining { .. })
    }

    /// Whether records are read and handed over.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running(_))
    }

    /// Whether the shard waits for its parents, or to be opened.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the shard is stopped because of a record.
    pub(super) fn is_stopped(&self) -> bool {
        self.stage.reading().is_some_and(|reading| reading.is_stopped())
    }

    /// Whether a listing is to show the fate of this shard, or of a shard that this shard waits for.
    pub(super) fn awaits_listing(&self) -> bool {
        self.missing
    }

    /// The children of the shard, sorted, after the shard was processed to its end.
    pub(super) fn children(&self) -> &[ShardId] {
        &self.children
    }

    /// Does all due work of the stage.
    pub(super) fn step(&mut self, lent: &mut Lent<'_>) {
        match (&mut self.stage, lent.exit()) {
            (Stage::Waiting(_), Some(reason)) => self.stage.go(|_| Stage::Closed(reason)),
            (Stage::Waiting(waiting), None) => {
                let may_open = waiting.step(lent);
                if may_open {
                    self.open(lent);
                }
            }
            (Stage::Opening { .. } | Stage::Running(_), Some(reason)) => {
                if reason == EndReason::HandedOver && lent.lane.next_owner().is_none() {
                    let lease = lent.own.lease();
                    lent.cx.notify(Notice::Yields { lease });
                }
                self.stage.go(|stage| stage.into_draining(reason));
            }
            // The end of the shard is worth waiting for, unless the lease is not ours any more, time is up, or others have to do
            // their part first: the next owner can wait for them as well.
            (Stage::Ending(ending), Some(reason))
                if lent.lane.is_lost()
                    || lent.cx.forced()
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
            self.run_step(lent);
        }
        if let Stage::Ending(ending) = &mut self.stage {
            ending.step(lent);
        }
        if let Stage::Draining { reason, .. } = self.stage {
            self.drain_step(lent, reason);
        }
        // A handler that does not come back from `close` must not keep a lease for ever.
        if let Stage::Closing(reason) = self.stage
            && lent.cx.out_of_patience()
        {
            self.app.give_up(lent.lane, lent.cx);
            self.stage.go(|_| Stage::Closed(reason));
        }
    }

    /// What the stage wants of the lane.
    pub(super) fn wish(&self, own: &Ownership, cx: &Context) -> Wish {
        match &self.stage {
            // A stolen lease is kept until its former owner must know of the steal. A worker that finds the lease
            // released, or its own, starts at once.
            Stage::Closed(_) if cx.now() < own.open_after() => Wish::KeepUntil(own.open_after()),
            Stage::Closed(reason) => Wish::GiveUp { handed: *reason == EndReason::HandedOver },
            Stage::Ending(ending) if ending.has_all_children() => Wish::End,
            // The application cannot answer, and the lease does not wait.
            Stage::Draining { .. } | Stage::Closing(_) if cx.standstill().lets_go() => Wish::LetGo,
            Stage::Draining { .. } if self.app.is_idle() => Wish::Save,
            _ => Wish::Keep,
        }
    }

    /// When work of the stage is due again, if nothing else happens.
    pub(super) fn wake_at(&self, own: &Ownership, lane: &Lane, cx: &Context) -> Mono {
        let stage = match &self.stage {
            Stage::Waiting(waiting) => waiting.wake_at(own, lane, cx),
            Stage::Ending(ending) => ending.wake_at(own, cx),
            Stage::Running(reading) => reading.wake_at(cx, self.app.is_idle(), self.missing),
            Stage::Draining { .. } => self.draining_wake_at(lane, cx),
            Stage::Opening { .. } | Stage::Closing(_) | Stage::Closed(_) => Mono::NEVER,
        };
        stage.min(self.app.late_at())
    }

    /// Tells a command to the application beyond its time limit to stop.
    pub(super) fn time_out(&mut self, own: &Ownership, cx: &mut Context) {
        self.app.time_out(own, cx);
    }

    /// The belief has run out: the running command to the application is stopped.
    pub(super) fn abort(&mut self, own: &Ownership, lane: &Lane, cx: &mut Context) {
        self.app.abort(own, lane, cx);
    }

    /// Says what is buffered, and leaves the line of reads when the shard is not read.
    pub(super) fn share_step(&mut self, own: &Ownership, cx: &mut Context) {
        let buffered = self.stage.reading().map_or(0, |reading| reading.held_bytes());
        self.share.buffers(buffered, cx);
        let is_read = matches!(&self.stage, Stage::Running(reading) if reading.finished().is_none());
        if !is_read {
            self.share.wait_no_more(own, cx);
        }
    }

    /// The application wants the shard to be paused, or to go on. Whether the call changes the pause.
    pub(super) fn on_pause_wanted(&mut self, lent: &mut Lent<'_>, paused: bool) -> bool {
        if lent.lane.is_lost() {
            return false;
        }
        let stopped = match &mut self.stage {
            Stage::Running(reading) if !paused => reading.resume(),
            _ => false,
        };
        if self.paused == paused && !stopped {
            return false;
        }
        self.paused = paused;
        let lease = lent.own.lease();
        if paused {
            lent.cx.notify(Notice::Paused { lease });
        } else {
            // The application wanted the standstill of the pause.
            lent.watch.count_from(lent.now());
            lent.cx.notify(Notice::PauseEnded { lease });
        }
        true
    }

    /// Whether the shard waits for the end of the pause. A running handler, the end of the belief and a shard not found
    /// are worth more attention.
    pub(super) fn rests(&self, lane: &Lane) -> bool {
        let runs = matches!(self.stage, Stage::Running(_)) && self.app.is_idle();
        self.paused && runs && !lane.is_fenced() && !self.missing
    }

    /// Whether all records were processed, and the next event of a subscription is awaited.
    pub(super) fn awaits_event(&self) -> bool {
        match &self.stage {
            Stage::Running(reading) => reading.awaits_event(),
            _ => false,
        }
    }

    /// The application says something of its records.
    pub(super) fn on_said(&mut self, lent: &mut Lent<'_>, said: Said) {
        if let Said::GivenBack(batch, _) = &said
            // A call of the application may overtake the answer of its handler.
            && self.app.give_back(*batch)
        {
            return;
        }
        let runs = self.is_running();
        let Some(reading) = self.stage.reading_mut() else {
            // The shard is not read yet, or not any more.
            return;
        };
        match said {
            Said::ProcessedThrough(through) => reading.on_processed_through(lent, through),
            Said::Acknowledged(batch) => reading.on_acknowledged(lent, batch),
            Said::GivenBack(batch, detail) => {
                reading.on_given_back(lent, &mut self.app, runs, batch, detail);
            }
        }
    }

    /// The end of the shard is durable: an open shard is closed.
    pub(super) fn on_ended(&mut self, lent: &mut Lent<'_>) {
        debug_assert!(self.app.has_opened(), "a shard that was read to its end had been opened");
        if matches!(self.stage, Stage::Ending(_)) {
            self.close(lent, EndReason::ShardEnded);
        }
    }

    /// A consistent read of the row of a parent, or of a child's other parent, came back.
    pub(super) fn on_relative(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: Outcome) {
        match &mut self.stage {
            Stage::Waiting(waiting) => waiting.on_relative(lent, op, outcome),
            Stage::Ending(ending) => self.missing |= ending.on_relative(lent, op, outcome),
            // The lease is let go of by now.
            _ => {}
        }
    }

    /// The lease of one more child is known to exist, or needs not.
    pub(super) fn on_child_written(&mut self) {
        if let Stage::Ending(ending) = &mut self.stage {
            ending.on_child_written();
        }
    }

    /// The end of a parent is known: nothing more needs to be waited for.
    pub(super) fn look_at_parents_now(&mut self, now: Mono) {
        match &mut self.stage {
            Stage::Waiting(waiting) => waiting.look_at(now),
            Stage::Running(reading) => reading.look_at(now),
            Stage::Ending(ending) => ending.look_at(now),
            _ => {}
        }
    }

    /// Whether the shard has ended, and children wait until their other parents have leases.
    pub(super) fn awaits_other_parents(&self) -> bool {
        matches!(&self.stage, Stage::Ending(ending) if ending.awaits_other_parents())
    }

    /// The shards were listed, and a listing was waited for. Whether the listing has an effect. `prospects`: present if
    /// the lease awaits other parents.
    pub(super) fn on_shards_listed(
        &mut self, lent: &mut Lent<'_>, view: View<'_>, prospects: Option<&Prospects<'_>>,
    ) -> bool {
        debug_assert!(self.missing, "a listing was waited for");
        self.missing = false;
        if let Some(prospects) = prospects {
            match self.stage.ending_mut() {
                Some(ending) => ending.judge_other_parents(lent.cx, &view, prospects),
                None => lent.cx.broken("other parents are judged while a shard ends"),
            }
            return true;
        }
        match self.stage.reading_mut() {
            Some(reading) => reading.on_shards_listed(lent, view),
            None => return false,
        }
        true
    }

    /// The awaited listing changes nothing.
    pub(super) fn try_again(&mut self, cx: &Context) {
        self.missing = false;
        if let Some(reading) = self.stage.reading_mut() {
            reading.try_again(cx);
        }
    }

    /// The shards were listed: compares the parents of a shard that waits. Returns the denied parents, if listings are
    /// enough.
    pub(super) fn compare_parents(
        &mut self, own: &Ownership, cx: &mut Context, asked: Mono, shards: &BTreeMap<&str, &Shard>,
    ) -> Option<BTreeSet<ShardId>> {
        match &mut self.stage {
            Stage::Waiting(waiting) => waiting.compare_parents(own, cx, asked, shards),
            _ => None,
        }
    }

    /// What holds in every stage.
    pub(super) fn check(&self, lane: &Lane) {
        let (app, opened) = (self.app.command(), self.app.has_opened());
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
            opened || !matches!(stage, Stage::Running(_) | Stage::Ending(_) | Stage::Closing(_)),
            "what is read, or was, had been opened"
        );
        debug_assert!(lane.processed().through().is_none() || opened, "only an open shard is processed");
    }
}
