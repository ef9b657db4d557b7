//! The life of a shard on its owner, driven one step at a time.
//!
//! ```mermaid
#![doc = include_str!("stage.mmd")]
//! ```
//!
//! Nothing is handed over unless the belief in the lease holds at that moment. Every `Open` is followed by exactly one
//! `Close`, and nothing is handed over after it.

use super::Core;
use super::ctx::{Request, Waiter};
use super::stage::Stage;
use super::tenure::{AppFlight, Tenure};
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::{ConsumerOp, EndReason, IteratorFrom, StreamOp, TableOp};
use crate::reader::Want;
use crate::time::Mono;

impl Core {
    pub(crate) fn key(&self, ix: u32) -> LeaseKey {
        self.view
            .get(ix)
            .map_or_else(|| LeaseKey::from(""), |lease| lease.key.clone())
    }

    /// Does everything that is due for a lease, and asks to be woken for the rest.
    pub(crate) fn step(&mut self, ix: u32) {
        self.take_step(ix);
        let Some(mut tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.take()) else {
            return;
        };
        self.fence(ix, &mut tenure);
        self.stage_step(ix, &mut tenure);
        self.write_step(ix, &mut tenure);
        self.stall_step(ix, &mut tenure);
        self.settle(ix, tenure);
    }

    /// Puts a tenure back, or drops it if it is over, and arms its next deadline.
    fn settle(&mut self, ix: u32, tenure: Box<Tenure>) {
        let over = tenure.lost && matches!(tenure.stage, Stage::Closed(_)) && tenure.app.is_none();
        let keeps = self.boot.table_gone || self.ctx.planted.is(Mutant::NoRelease);
        let abandoned = keeps && matches!(tenure.stage, Stage::Closed(_));
        if over || abandoned {
            self.busy -= 1;
            self.news += 1;
            return;
        }
        let wake_at = self.lease_wake_at(&tenure);
        if let Some(lease) = self.view.get_mut(ix) {
            lease.tenure = Some(tenure);
        }
        self.view.arm(ix, wake_at);
    }

    fn lease_wake_at(&self, tenure: &Tenure) -> Mono {
        let now = self.ctx.now;
        let mut at = tenure.write_at().min(self.stall_at(tenure));
        if !tenure.lost && !tenure.fenced {
            at = at.min(tenure.valid_until);
            if tenure.flight.is_some() {
                // When the next renewal is due once this write is answered: nothing needs to be armed anew then.
                at = at.min(now + self.ctx.config.renew_interval);
            }
        }
        match tenure.stage {
            Stage::Waiting if tenure.looking.is_none() && tenure.believes(now) => {
                at = at.min(tenure.look_at.max(tenure.open_after));
            }
            Stage::Ending if !tenure.heirs.is_empty() && tenure.looking.is_none() && !tenure.missing => {
                at = at.min(tenure.look_at);
            }
            Stage::Running => {
                if let Some(reader) = &tenure.reader {
                    if !self.reads_elsewhere() {
                        at = at.min(reader.wake_at(&self.ctx.config.reader));
                    }
                    if tenure.app.is_none() && tenure.deliver_after > now && reader.front().is_some() {
                        at = at.min(tenure.deliver_after);
                    }
                    if tenure.app.is_none() && !tenure.missing && reader.finished().is_some() {
                        at = at.min(tenure.look_at);
                    }
                }
            }
            _ => {}
        }
        // What is due already was done in this very step; what could not be done waits for an outcome.
        at.max(Mono(now.0.saturating_add(1)))
    }

    /// When the belief runs out, nothing more is handed over, and what runs is stopped.
    fn fence(&mut self, ix: u32, tenure: &mut Tenure) {
        if tenure.fenced
            || tenure.lost
            || self.ctx.now < tenure.valid_until
            || self.ctx.planted.is(Mutant::NoFence)
        {
            return;
        }
        tenure.fenced = true;
        let lease = self.key(ix);
        self.ctx.tell(Notice::Fenced { lease });
        if !self.ctx.planted.is(Mutant::NoAbort) {
            self.abort(ix, tenure);
        }
    }

    /// Tells the application to stop what it is at, once.
    fn abort(&mut self, ix: u32, tenure: &mut Tenure) {
        if tenure.aborted || !matches!(tenure.app, Some((_, AppFlight::Open | AppFlight::Deliver { .. }))) {
            return;
        }
        tenure.aborted = true;
        self.count_cut_off(tenure);
        let lease = self.key(ix);
        self.ctx.app(
            Waiter::App(ix),
            ConsumerOp::Abort {
                lease,
                token: tenure.token,
            },
        );
    }

    /// Why this lease should be let go of, if it should.
    pub(crate) fn exit(&self, ix: u32, tenure: &Tenure) -> Option<EndReason> {
        if tenure.lost {
            return Some(EndReason::LeaseLost);
        }
        if let Some(reason) = self.stopping() {
            return Some(reason);
        }
        (tenure.next_owner.is_some() || !self.keeps(ix)).then_some(EndReason::HandedOver)
    }

    fn stage_step(&mut self, ix: u32, tenure: &mut Tenure) {
        let exit = self.exit(ix, tenure);
        match (tenure.stage, exit) {
            (Stage::Waiting, Some(reason)) => {
                let handed = reason == EndReason::HandedOver;
                if self.ctx.planted.is(Mutant::ReleaseWhileSettling)
                    || (handed && self.ctx.planted.is(Mutant::HandOverWhileSettling))
                {
                    tenure.open_after = Mono(0);
                }
                tenure.stage.go(Stage::Closed(reason));
            }
            (Stage::Waiting, None) => self.wait_step(ix, tenure),
            (Stage::Opening | Stage::Running, Some(reason)) => {
                if reason == EndReason::HandedOver && tenure.next_owner.is_none() {
                    let lease = self.key(ix);
                    self.ctx.tell(Notice::Yields { lease });
                }
                if self.ctx.planted.is(Mutant::DrainsSlowly) {
                    tenure.retry_at = tenure.retry_at.max(tenure.checkpoint_at);
                }
                tenure.stage.go(Stage::Draining(reason));
            }
            // The end of the shard is worth waiting for, unless the lease is not ours any more or time is up.
            (Stage::Ending, Some(reason))
                if tenure.lost || self.forced() || reason == EndReason::SourceGone =>
            {
                tenure.stage.go(Stage::Draining(reason));
            }
            (Stage::Draining(old), Some(EndReason::LeaseLost)) if old != EndReason::LeaseLost => {
                tenure.stage = Stage::Draining(EndReason::LeaseLost);
            }
            _ => {}
        }
        if tenure.stage == Stage::Running {
            self.run_step(ix, tenure);
        }
        if tenure.stage == Stage::Ending {
            self.end_step(ix, tenure);
        }
        if let Stage::Draining(reason) = tenure.stage {
            self.drain_step(ix, tenure, reason);
        }
        // A handler that does not come back from `close` must not keep a lease for ever.
        if let Stage::Closing(reason) = tenure.stage
            && self.out_of_patience()
        {
            if tenure.app.take().is_some() {
                self.count_cut_off(tenure);
            }
            tenure.stage.go(Stage::Closed(reason));
        }
    }

    /// Opens the shard as soon as its parents have ended and the belief holds.
    fn wait_step(&mut self, ix: u32, tenure: &mut Tenure) {
        let now = self.ctx.now;
        if !tenure.believes(now)
            || now < tenure.open_after
            || now < tenure.look_at
            || tenure.looking.is_some()
        {
            return;
        }
        if self.ctx.planted.is(Mutant::NoParentWait) {
            tenure.parents.clear();
        }
        let view = &self.view;
        tenure.parents.retain(|parent| {
            !view
                .row(parent.as_str())
                .is_some_and(|row| row.checkpoint.is_end())
        });
        let lease = self.key(ix);
        if let Some(parent) = tenure.parents.first() {
            // The view may be stale or lack the row: only a consistent read shows that a parent's lease is gone.
            let key = parent.to_lease();
            tenure.looking = Some(self.ctx.table(Waiter::Parent(ix), TableOp::Read { key }));
            return;
        }
        // A listing fills in what the row lacks.
        let range = view.get(ix).and_then(|lease| lease.row.as_ref()?.range);
        tenure.stage.go(Stage::Opening);
        tenure.aborted = false;
        let op = self.ctx.app(
            Waiter::App(ix),
            ConsumerOp::Open {
                lease,
                token: tenure.token,
                from: tenure.durable,
                range,
            },
        );
        tenure.app = Some((op, AppFlight::Open));
    }

    /// A consistent look at a parent's row came back.
    pub(crate) fn parent_seen(&mut self, ix: u32, op: OpId, outcome: Outcome) {
        let now = self.ctx.now;
        let Some(mut tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.take()) else {
            return;
        };
        if tenure.looking == Some(op) && tenure.stage == Stage::Ending {
            tenure.looking = None;
            self.co_parent_seen(&mut tenure, outcome);
        } else if tenure.looking == Some(op) && (tenure.stage != Stage::Waiting || tenure.parents.is_empty())
        {
            tenure.looking = None;
        } else if tenure.looking == Some(op) {
            tenure.looking = None;
            match outcome {
                Outcome::Applied(Reply::Row(row)) => {
                    let unfinished = match &row {
                        Some(row) => row.lease().is_none_or(|row| !row.checkpoint.is_end()),
                        None => self.is_unread(&tenure.parents[0]),
                    };
                    if unfinished {
                        tenure.look_at = now + self.ctx.config.renew_interval;
                        tenure.parents.rotate_left(1);
                        if !tenure.told_blocked {
                            tenure.told_blocked = true;
                            let lease = self.key(ix);
                            self.ctx.tell(Notice::Blocked {
                                lease,
                                parents: tenure.parents.clone(),
                            });
                        }
                    } else {
                        tenure.parents.remove(0);
                        tenure.look_at = now;
                    }
                }
                _ => tenure.look_at = now + self.ctx.config.retry_max.min(self.ctx.config.renew_interval),
            }
        }
        if let Some(lease) = self.view.get_mut(ix) {
            lease.tenure = Some(tenure);
        }
        self.step(ix);
    }

    /// Reads, and hands over.
    fn run_step(&mut self, ix: u32, tenure: &mut Tenure) {
        let now = self.ctx.now;
        let held_back = self.reads_elsewhere();
        let Some(reader) = &mut tenure.reader else { return };
        if tenure.app.is_none()
            && let Some(children) = reader.finished()
        {
            if children.is_empty() && !tenure.childless {
                return self.look_for_children(tenure);
            }
            let children = children.to_vec();
            tenure.reader = None;
            tenure.movement.moved(now);
            tenure.stage.go(Stage::Ending);
            return self.begin_end(ix, tenure, children);
        }
        while !held_back && let Some(want) = reader.next(now, &self.ctx.config.reader) {
            let Some(lease) = self.view.get(ix) else { return };
            let shard = lease.key.to_shard();
            let op = match want {
                Want::GetIterator(IteratorFrom::After(_)) if self.ctx.planted.is(Mutant::ReadOnAtLatest) => {
                    let from = IteratorFrom::Latest;
                    StreamOp::GetIterator { shard, from }
                }
                Want::GetIterator(from) => StreamOp::GetIterator { shard, from },
                Want::GetRecords { via, limit } => StreamOp::GetRecords { shard, via, limit },
            };
            let op = self.ctx.stream(Waiter::Reader(ix), op);
            reader.sent(op, now);
        }
        let fenced = now >= tenure.valid_until && !self.ctx.planted.is(Mutant::NoFence);
        if tenure.app.is_some() || tenure.lost || fenced || now < tenure.deliver_after {
            return;
        }
        if self.ctx.planted.is(Mutant::OneHandlerAtATime) {
            let mut others = self.view.iter().filter_map(|(_, lease)| lease.tenure.as_ref());
            if others.any(|other| matches!(other.app, Some((_, AppFlight::Deliver { .. })))) {
                return;
            }
        }
        let Some(front) = reader.front() else { return };
        tenure.attempts += 1;
        tenure.aborted = false;
        let op = ConsumerOp::Deliver {
            lease: self.key(ix),
            token: tenure.token,
            batch: front.batch,
            after: front.after,
            attempt: tenure.attempts,
            valid_until: tenure.valid_until,
        };
        tenure.app = Some((
            self.ctx.app(Waiter::App(ix), op),
            AppFlight::Deliver { batch: front.batch },
        ));
        if let Some(reader) = &mut tenure.reader {
            reader.delivered();
            if self.ctx.planted.is(Mutant::CheckpointOnDelivery) {
                tenure.processed = tenure.processed.max(Some(front.last));
            }
        }
    }

    /// A planted bug: a read of one shard holds back those of all others.
    fn reads_elsewhere(&self) -> bool {
        let tenures = self.view.iter().filter_map(|(_, lease)| lease.tenure.as_ref());
        let mut readers = tenures.filter_map(|tenure| tenure.reader.as_ref());
        self.ctx.planted.is(Mutant::OneReadAtATime) && readers.any(|reader| reader.is_reading())
    }

    /// The shard ended and the answer named no children. They may exist all the same: the stream's shards are listed.
    fn look_for_children(&mut self, tenure: &mut Tenure) {
        if !tenure.missing && self.ctx.now >= tenure.look_at {
            tenure.missing = true;
            tenure.look_at = self.ctx.now + self.ctx.config.retry_max;
            self.ctx.request(Request::DoubtStream);
        }
    }

    fn drain_step(&mut self, ix: u32, tenure: &mut Tenure, reason: EndReason) {
        let lost = tenure.lost && !self.ctx.planted.is(Mutant::LostUntold);
        if lost || self.forced() || self.boot.table_gone {
            self.abort(ix, tenure);
        }
        if tenure.app.is_some() && !self.ctx.planted.is(Mutant::CloseTooEarly) {
            return;
        }
        if !tenure.opened || (tenure.lost && self.ctx.planted.is(Mutant::NoCloseWhenLost)) {
            return tenure.stage.go(Stage::Closed(reason));
        }
        let early = reason == EndReason::HandedOver && self.ctx.planted.is(Mutant::HandOverTooEarly);
        let early = early || (reason == EndReason::Shutdown && self.ctx.planted.is(Mutant::ClosesUnsaved));
        let hopeless = tenure.lost || self.forced() || self.boot.table_gone || early;
        if hopeless || (tenure.is_durable() && tenure.flight.is_none()) {
            self.close(ix, tenure, reason);
        }
    }

    pub(crate) fn close(&mut self, ix: u32, tenure: &mut Tenure, reason: EndReason) {
        tenure.stage.go(Stage::Closing(reason));
        tenure.reader = None;
        tenure.aborted = false;
        let op = ConsumerOp::Close {
            lease: self.key(ix),
            token: tenure.token,
            reason,
        };
        tenure.app = Some((self.ctx.app(Waiter::App(ix), op), AppFlight::Close));
    }
}
