//! Holding a lease: which write comes next on its lane, and what every outcome means.
//!
//! There is at most one write in flight per lease. All writes between two acknowledged ones carry the same guard, so at
//! most one of them is ever applied; a write of unknown outcome is resolved by the next one's guard, never assumed.

use super::Core;
use super::ctx::{Request, Waiter};
use super::stage::Stage;
use super::tenure::{Tenure, Unresolved, WriteKind};
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::{LossReason, Notice};
use crate::output::{EndReason, TableOp};
use crate::position::Checkpoint;
use crate::row::{Change, Guard, LeaseRow, RowRead};
use crate::time::Mono;

impl Tenure {
    /// What this lease's lane should do now.
    fn next_write(&self, now: Mono) -> Option<WriteKind> {
        if self.lost || self.flight.is_some() || now < self.retry_at {
            return None;
        }
        match self.stage {
            // A stolen lease is kept until its former owner must know: whoever finds it released, or its own, starts at
            // once.
            Stage::Closed(_) if now < self.open_after => {}
            Stage::Closed(EndReason::HandedOver) if self.next_owner.is_some() => {
                return Some(WriteKind::HandOver);
            }
            Stage::Closed(_) => return Some(WriteKind::Release),
            Stage::Ending if self.children_left == 0 => return Some(WriteKind::End),
            Stage::Draining(_) if self.app.is_none() && !self.is_durable() => return self.checkpoint_write(),
            _ => {}
        }
        if !self.is_durable() && (self.flush || now >= self.checkpoint_at) {
            return self.checkpoint_write();
        }
        (now >= self.renew_at).then_some(WriteKind::Renew)
    }

    fn checkpoint_write(&self) -> Option<WriteKind> {
        self.processed.map(WriteKind::Checkpoint)
    }

    /// When [`next_write`](Self::next_write) can first answer something, if nothing else happens.
    pub(crate) fn write_at(&self) -> Mono {
        if self.lost || self.flight.is_some() {
            return Mono::NEVER;
        }
        let mut at = self.renew_at;
        if !self.is_durable() {
            at = at.min(if self.flush { Mono(0) } else { self.checkpoint_at });
        }
        match self.stage {
            Stage::Closed(_) => at = at.min(self.open_after),
            Stage::Ending if self.children_left == 0 => at = Mono(0),
            Stage::Draining(_) if self.app.is_none() && !self.is_durable() => at = Mono(0),
            _ => {}
        }
        at.max(self.retry_at)
    }
}

impl Core {
    /// Emits the next write, if there is one to make.
    pub(crate) fn write_step(&mut self, ix: u32, tenure: &mut Tenure) {
        let Some(mut kind) = tenure.next_write(self.ctx.now) else {
            return;
        };
        if kind == WriteKind::HandOver && self.ctx.planted.is(Mutant::HandOverUnfinished) {
            kind = WriteKind::Renew;
        }
        self.emit(ix, tenure, kind);
    }

    fn emit(&mut self, ix: u32, tenure: &mut Tenure, kind: WriteKind) {
        let Some(lease) = self.view.get(ix) else { return };
        let key = lease.key.clone();
        if kind != WriteKind::Read && tenure.unresolved.is_none() {
            tenure.next = self.ctx.next_counter(tenure.counter, lease.highest);
        }
        let guard = Guard {
            counter: tenure.counter,
            next: tenure.next,
            holder: self.ctx.me.clone(),
            next_owner: tenure.next_owner.clone(),
        };
        let op = match kind {
            WriteKind::Read => TableOp::Read { key },
            WriteKind::Renew => TableOp::Write(Change::Renew { key, guard }),
            WriteKind::Checkpoint(position) => TableOp::Write(Change::Checkpoint { key, guard, position }),
            WriteKind::End => TableOp::Write(Change::End {
                key,
                guard,
                children: match self.ctx.planted.is(Mutant::ChildrenUnnamed) {
                    true => Vec::new(),
                    false => tenure.children.clone(),
                },
            }),
            WriteKind::Release => TableOp::Write(Change::Release { key, guard }),
            WriteKind::HandOver => TableOp::Write(Change::HandOver { key, guard }),
            WriteKind::Restore => {
                let known = lease
                    .row
                    .clone()
                    .unwrap_or_else(|| LeaseRow::new(key, tenure.durable));
                TableOp::Write(Change::Create(Box::new(LeaseRow {
                    owner: Some(self.ctx.me.clone()),
                    handing_over: None,
                    counter: tenure.next,
                    checkpoint: tenure.durable,
                    ..known
                })))
            }
        };
        if matches!(kind, WriteKind::Checkpoint(_)) {
            tenure.checkpoint_at = self.ctx.now + self.ctx.config.checkpoint_interval;
            if self.ctx.planted.is(Mutant::CheckpointSeldom) {
                tenure.checkpoint_at += self.ctx.config.checkpoint_interval;
            }
        }
        tenure.flight = Some((self.ctx.table(Waiter::Lane(ix), op), kind));
    }

    /// The outcome of a write or read on a held lease's lane. The caller puts the tenure back and steps it.
    pub(crate) fn write_done(
        &mut self,
        ix: u32,
        tenure: &mut Tenure,
        op: OpId,
        emitted: Mono,
        outcome: Outcome,
    ) {
        let Some((expected, kind)) = tenure.flight else {
            return;
        };
        if expected != op {
            return;
        }
        tenure.flight = None;
        if tenure.lost {
            return;
        }
        let outcome = match outcome {
            Outcome::Unknown(_) if self.ctx.planted.is(Mutant::UnknownIsSuccess) => {
                Outcome::Applied(Reply::Done)
            }
            Outcome::Unknown(cause) if self.ctx.planted.is(Mutant::UnknownIsFailure) => {
                tenure.never_adopt = true;
                Outcome::NotSent(cause)
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Applied(Reply::Row(row)) if kind == WriteKind::Read => {
                self.confronted(ix, tenure, kind, emitted, row.map(|row| *row));
            }
            Outcome::Applied(_) if kind != WriteKind::Read => self.applied(ix, tenure, kind, emitted),
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed && kind != WriteKind::Read => {
                match refusal.current {
                    Some(row) => self.confronted(ix, tenure, kind, emitted, Some(*row)),
                    None => {
                        // What was refused may have been applied by an attempt before it: the row itself says.
                        self.suspect(tenure, kind, emitted);
                        self.emit(ix, tenure, WriteKind::Read);
                    }
                }
            }
            other => {
                match &other {
                    Outcome::Unknown(_) if kind != WriteKind::Read => self.suspect(tenure, kind, emitted),
                    Outcome::Refused(refusal) if refusal.why == Why::NotFound => {
                        self.ctx.request(Request::DoubtTable)
                    }
                    _ => {}
                }
                tenure.failures += 1;
                let key = self.key(ix);
                let pause = self.ctx.backoff("write", key.as_str(), tenure.failures);
                tenure.retry_at = self.ctx.now + pause;
                if self.ctx.planted.is(Mutant::RenewGivesUp) {
                    tenure.retry_at = Mono::NEVER;
                }
                self.ctx.tell(Notice::Trouble {
                    op,
                    what: format!("{} {key}", kind.verb()),
                    lease: Some(key),
                    how: super::describe(&other),
                    again_in: pause,
                });
            }
        }
    }

    /// Remembers that a write may have been applied.
    fn suspect(&mut self, tenure: &mut Tenure, kind: WriteKind, emitted: Mono) {
        let before = tenure.unresolved.unwrap_or(Unresolved {
            since: emitted,
            end: false,
            release: false,
        });
        tenure.unresolved = Some(Unresolved {
            since: if self.ctx.planted.is(Mutant::LastUnknownCounts) {
                emitted
            } else {
                before.since.min(emitted)
            },
            end: before.end || kind == WriteKind::End,
            release: before.release || matches!(kind, WriteKind::Release | WriteKind::HandOver),
        });
    }

    /// A write was acknowledged. With it, no earlier one of the same guard was or will be applied.
    fn applied(&mut self, ix: u32, tenure: &mut Tenure, kind: WriteKind, emitted: Mono) {
        tenure.counter = tenure.next;
        self.proven(ix, tenure, emitted);
        match kind {
            WriteKind::Renew | WriteKind::Read => {
                if self.ctx.planted.is(Mutant::HandOverUnfinished)
                    && tenure.stage == Stage::Closed(EndReason::HandedOver)
                {
                    tenure.retry_at = tenure.renew_at;
                }
                self.own_row(ix, tenure);
            }
            WriteKind::Restore => {
                tenure.next_owner = None;
                self.own_row(ix, tenure);
            }
            WriteKind::Checkpoint(position) => {
                tenure.durable = tenure.durable.max(Checkpoint::At(position));
                if tenure.is_durable() {
                    tenure.flush = false;
                }
                self.own_row(ix, tenure);
                let lease = self.key(ix);
                self.ctx.tell(Notice::Checkpointed { lease, position });
            }
            WriteKind::End => self.ended(ix, tenure),
            WriteKind::Release | WriteKind::HandOver => self.released(ix, tenure),
        }
    }

    /// The row is known to have been ours by a write emitted at `emitted`: the belief is counted from there.
    fn proven(&mut self, ix: u32, tenure: &mut Tenure, emitted: Mono) {
        // Others may act on the time in the row, which was drawn for the first of these attempts.
        let emitted = match tenure.unresolved.take() {
            Some(maybe) if self.ctx.config.policies.life.tells_time() => maybe.since.min(emitted),
            _ => emitted,
        };
        if !self.ctx.planted.is(Mutant::FailuresStay) {
            tenure.failures = 0;
        }
        tenure.retry_at = Mono(0);
        let stamp = if self.ctx.planted.is(Mutant::StampAtReceipt) {
            self.ctx.now
        } else {
            emitted
        };
        tenure.valid_until = tenure.valid_until.max(stamp + self.ctx.hold);
        tenure.renew_at = emitted + self.ctx.config.renew_interval;
        if self.ctx.planted.is(Mutant::RenewLate) {
            tenure.renew_at = emitted + self.ctx.config.lease_duration;
        }
        if tenure.fenced && self.ctx.now < tenure.valid_until {
            tenure.fenced = false;
            let lease = self.key(ix);
            self.ctx.tell(Notice::Resumed { lease });
        }
    }

    /// Brings the view's row up to what our last acknowledged write made of it.
    fn own_row(&mut self, ix: u32, tenure: &Tenure) {
        let now = self.ctx.now;
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        lease.observed_at = now;
        lease.seen_by = self.scan.number;
        lease.highest = lease.highest.max(tenure.counter);
        if let Some(row) = &mut lease.row {
            row.counter = tenure.counter;
            row.checkpoint = tenure.durable;
        }
    }

    /// The row as it is now, after a refusal or a read: is it ours, and what was applied?
    fn confronted(
        &mut self,
        ix: u32,
        tenure: &mut Tenure,
        kind: WriteKind,
        emitted: Mono,
        row: Option<RowRead>,
    ) {
        let me = &self.ctx.me;
        let maybe = tenure.unresolved;
        let tried_end = kind == WriteKind::End || maybe.is_some_and(|maybe| maybe.end);
        let tried_release = matches!(kind, WriteKind::Release | WriteKind::HandOver)
            || maybe.is_some_and(|maybe| maybe.release);
        let since = match maybe {
            Some(maybe) if !self.ctx.planted.is(Mutant::LastUnknownCounts) => maybe.since.min(emitted),
            _ => emitted,
        };
        let row = match row {
            Some(RowRead::Lease(row)) => row,
            Some(_) => return self.lose(ix, tenure, LossReason::Unreadable),
            None if tried_end => return self.ended(ix, tenure),
            None if tried_release => return self.released(ix, tenure),
            // Once the belief has run out, others may have taken the lease, ended it and removed it.
            None if kind == WriteKind::Restore
                || (self.ctx.now >= tenure.valid_until
                    && !self.ctx.planted.is(Mutant::RestoreWhenFenced)) =>
            {
                return self.lose(ix, tenure, LossReason::RowGone);
            }
            None => {
                // Somebody removed the row of a live lease. What was processed is known only here.
                let lease = self.key(ix);
                self.ctx.tell(Notice::Restoring { lease });
                return self.emit(ix, tenure, WriteKind::Restore);
            }
        };
        let blind = self.ctx.planted.is(Mutant::NoAdoption) || tenure.never_adopt;
        let next = row.counter == tenure.next && !blind;
        if row.checkpoint.is_end() {
            if tried_end && (next || row.owner.is_none()) {
                return self.ended(ix, tenure);
            }
            self.lose(ix, tenure, LossReason::AlreadyEnded);
            return self.observe(row, false);
        }
        let was_handed = row.owner == tenure.next_owner && row.handing_over.is_none();
        if tried_release && next && (row.owner.is_none() || (tenure.next_owner.is_some() && was_handed)) {
            return self.released(ix, tenure);
        }
        let bare = !next && self.is_bare(tenure, &row);
        if row.actual_owner() == Some(me) && (next || bare || row.counter == tenure.counter) {
            if bare {
                tenure.counter = row.counter;
                // What was under way waits for a counter that will not be there again.
                tenure.unresolved = None;
                let lease = self.key(ix);
                self.ctx.tell(Notice::Mending { lease });
            }
            if next {
                // One of our own writes was applied after all. Which one, the row's checkpoint says.
                tenure.counter = row.counter;
                tenure.durable = tenure.durable.max(row.checkpoint);
                self.proven(ix, tenure, since);
                self.own_row(ix, tenure);
                let lease = self.key(ix);
                self.ctx.tell(Notice::Adopted {
                    lease,
                    counter: row.counter,
                });
            }
            let handed_to = row.handing_over.is_some().then_some(row.owner).flatten();
            if handed_to == tenure.next_owner && !next && !bare && kind != WriteKind::Read {
                // Nothing is wrong with the row, and yet the guard did not hold: it was so for a moment only.
                tenure.failures += 1;
                let pause = self.ctx.backoff("write", self.key(ix).as_str(), tenure.failures);
                tenure.retry_at = self.ctx.now + pause;
            }
            tenure.next_owner = handed_to;
            return;
        }
        let by = row.actual_owner().cloned();
        self.lose(
            ix,
            tenure,
            LossReason::Taken {
                by,
                row: Box::new(row.clone()),
            },
        );
        self.observe(row, false);
    }

    /// Whether a person's edit removed the counter of a row that is ours, and nothing else happened to it. No worker takes a lease
    /// while its owner believes, and the checkpoint is as it was.
    fn is_bare(&self, tenure: &Tenure, row: &LeaseRow) -> bool {
        row.counter == 0
            && tenure.counter > 0
            && tenure.believes(self.ctx.now)
            && row.actual_owner() == Some(&self.ctx.me)
            && row.checkpoint == tenure.durable
    }

    /// The lease is somebody else's, or not to be had any more.
    pub(crate) fn lose(&mut self, ix: u32, tenure: &mut Tenure, why: LossReason) {
        tenure.lost = true;
        tenure.unresolved = None;
        tenure.valid_until = tenure.valid_until.min(self.ctx.now);
        self.ctx.request(Request::DropRowWrites(ix));
        let lease = self.key(ix);
        self.ctx.tell(Notice::Lost { lease, why });
    }

    /// The end of the shard is durable.
    fn ended(&mut self, ix: u32, tenure: &mut Tenure) {
        let now = self.ctx.now;
        tenure.lost = true;
        tenure.unresolved = None;
        tenure.valid_until = now;
        tenure.durable = Checkpoint::ShardEnd;
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        lease.observed_at = now;
        lease.ended_at = now;
        lease.seen_by = self.scan.number;
        if let Some(row) = &mut lease.row {
            row.counter = tenure.counter;
            row.checkpoint = Checkpoint::ShardEnd;
            row.owner = None;
            row.handing_over = None;
            row.children = tenure.children.clone();
        }
        let lease = lease.key.clone();
        self.ctx.tell(Notice::Ended {
            lease,
            children: tenure.children.clone(),
        });
        if tenure.stage == Stage::Ending {
            self.close(ix, tenure, EndReason::ShardEnded);
        }
        // A child of ours may have waited for just this.
        for child in &tenure.children {
            if let Some(child) = self.view.find(child.as_str()) {
                if let Some(waiting) = self.view.get_mut(child).and_then(|lease| lease.tenure.as_mut()) {
                    waiting.look_at = now;
                }
                self.view.arm(child, now);
            }
        }
        // And nobody owns the children yet.
        if !tenure.children.is_empty() {
            self.ctx.request(Request::Rescan(now));
        }
    }

    /// We own the lease no more, by our own will.
    fn released(&mut self, ix: u32, tenure: &mut Tenure) {
        let now = self.ctx.now;
        self.ctx.request(Request::DropRowWrites(ix));
        tenure.lost = true;
        tenure.unresolved = None;
        tenure.valid_until = now;
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        lease.observed_at = now;
        if let Some(row) = &mut lease.row {
            row.counter = tenure.counter;
            row.owner = tenure.next_owner.clone();
            row.handing_over = None;
        }
        let lease = lease.key.clone();
        self.count_released();
        self.ctx.tell(Notice::Released { lease });
    }
}

impl WriteKind {
    fn verb(self) -> &'static str {
        match self {
            WriteKind::Renew => "renew",
            WriteKind::Checkpoint(_) => "checkpoint",
            WriteKind::End => "end",
            WriteKind::Release => "release",
            WriteKind::HandOver => "hand over",
            WriteKind::Restore => "restore",
            WriteKind::Read => "read",
        }
    }
}
