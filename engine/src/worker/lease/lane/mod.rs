//! The lane of writes of a held lease: the next write, and the end of the belief in the lease.
//!
//! At most one operation of a lane is in flight. All writes between two acknowledged writes carry the same guard, so at
//! most one of them is ever applied. The guard of the next write resolves a write of unknown outcome; no outcome is
//! ever assumed.
//!
//! | file | what |
//! |---|---|
//! | `answers` | the meaning of answers |
//! | `processed` | the progress of the shard, and its durable part |
//! | `state` | questions of the remaining parts of the lease, and the end of the ownership |

mod answers;
mod processed;
mod state;
#[cfg(test)]
mod tests;

pub(super) use answers::{Answer, From};

use crate::began;
use crate::ids::{LeaseIx, LeaseKey, OpId, ShardId, WorkerId};
use crate::output::TableOp;
use crate::policy::AtEnd;
use crate::position::{Checkpoint, Position};
use crate::row::{Change, Guard, LeaseRow};
use crate::time::{Mono, Span, Wall};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Waiter};
use crate::worker::lease_table::{LeaseTable, Says};
use crate::worker::table_turns::Turn;
use processed::Processed;

/// A write on a held lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::worker::lease) enum WriteKind {
    Renew,
    /// A renewal that writes an earlier beginning of the shard into the row.
    Begin(Wall),
    Checkpoint(Position),
    End,
    Release,
    HandOver,
    /// The row was removed by somebody and is put back.
    Restore,
    /// Not a write: how is the row?
    Read,
}

impl WriteKind {
    fn verb(self) -> &'static str {
        match self {
            WriteKind::Renew | WriteKind::Begin(_) => "renew",
            WriteKind::Checkpoint(_) => "checkpoint",
            WriteKind::End => "end",
            WriteKind::Release => "release",
            WriteKind::HandOver => "hand over",
            WriteKind::Restore => "restore",
            WriteKind::Read => "read",
        }
    }

    pub(in crate::worker::lease) fn gives_up(self) -> bool {
        matches!(self, WriteKind::Release | WriteKind::HandOver)
    }
}

/// A wish of the stage of a lease for its lane. Renewals and due checkpoints come beside the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker::lease) enum Wish {
    /// Nothing but to keep the lease.
    Keep,
    /// Keep the lease until this moment, and then give the lease up.
    KeepUntil(Mono),
    /// To save what was processed at once.
    Save,
    /// To write the end of the shard.
    End,
    /// Give the lease up, to the next owner if the row names one.
    GiveUp { handed: bool },
    /// Save the processed records, and then give the lease up.
    LetGo,
}

/// The writes of unknown outcome since the last acknowledged write. All have the same guard, so at most one of these
/// writes was or will be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unresolved {
    /// When the earliest of them was emitted: the safe moment to count validity from.
    since: Mono,
    /// One of these writes was `End`.
    end: bool,
    /// One of them was `Release` or `HandOver`.
    release: bool,
}

/// The lane. What every renewal looks at lies in front.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::worker::lease) struct Lane {
    /// The row is another worker's, or not to be had any more. Only the application is left to be closed.
    lost: bool,
    /// The belief ran out, and this was told.
    fenced: bool,
    /// Writes that failed in a row.
    backoff: Backoff,
    /// Refused writes since the last write known to be durable.
    refusals: u32,
    /// The row was removed by somebody and is to be put back.
    restoring: bool,
    /// We believe before this moment.
    valid_until: Mono,
    /// The next renewal.
    renew_at: Mono,
    /// The next checkpoint that the application need not ask for.
    checkpoint_at: Mono,
    /// The counter of the last write known to be durable.
    counter: u64,
    /// The counter left by our next write, and equally by the writes of unknown outcome since the last acknowledged
    /// write.
    next: u64,
    unresolved: Option<Unresolved>,
    /// What is in flight.
    flight: Option<(OpId, WriteKind)>,
    /// The progress of the shard.
    processed: Processed,
    /// Set while the row is being handed over from us.
    next_owner: Option<WorkerId>,
    /// Since when we know that it is.
    handing_since: Mono,
    /// The beginning of the shard, by the row.
    began: Option<Wall>,
    /// Where we begin, if the shard is read from a moment.
    begins: Option<Wall>,
}

/// The moment from which a shard is read: in the row after a take, and for its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker::lease) struct Began {
    pub(in crate::worker::lease) row: Option<Wall>,
    pub(in crate::worker::lease) owner: Option<Wall>,
}

impl Lane {
    /// The lane of a lease that was just taken. `proven_at`: when the take that was applied may have been emitted first.
    pub(in crate::worker::lease) fn new(
        cx: &Context, counter: u64, durable: Checkpoint, began: Began, proven_at: Mono, early: Span,
    ) -> Self {
        let config = cx.config();
        debug_assert!(proven_at <= cx.now(), "a take is emitted before its answer");
        debug_assert!(
            early <= config.renew_interval,
            "a first renewal is not early by more than its interval"
        );
        Self {
            lost: false,
            fenced: false,
            backoff: Backoff::default(),
            refusals: 0,
            restoring: false,
            valid_until: proven_at + cx.hold(),
            renew_at: proven_at + config.renew_interval - early,
            checkpoint_at: cx.now() + config.checkpoint_interval,
            counter,
            next: counter.saturating_add(1),
            unresolved: None,
            flight: None,
            processed: Processed::new(durable),
            next_owner: None,
            handing_since: Mono::NEVER,
            began: began.row,
            begins: began.owner,
        }
    }

    /// The moment still to be written into the row: we begin before the row's moment, and the next owner would begin
    /// after us. The reader waits until the row has this moment.
    pub(in crate::worker::lease) fn begins_earlier(&self) -> Option<Wall> {
        self.begins.filter(|begins| Some(*begins) < self.began)
    }

    /// The content of the row after the last write known to be durable. A checkpoint removes the moment.
    pub(in crate::worker::lease) fn says(&self) -> Says {
        let began = self.began.filter(|_| began::is_of(self.processed.durable));
        Says::new(self.counter, self.processed.durable, began)
    }

    /// Whether we may act as the owner now.
    pub(in crate::worker::lease) fn believes(&self, now: Mono) -> bool {
        !self.lost && now < self.valid_until
    }

    /// Whether the belief has run out since the last call. Other workers may have taken the lease by now, ended the
    /// shard and removed the row: the row is put back no more.
    pub(in crate::worker::lease) fn fence(&mut self, now: Mono) -> bool {
        if self.fenced || self.lost || now < self.valid_until {
            return false;
        }
        self.fenced = true;
        self.restoring = false;
        true
    }

    /// Nothing is handed over from now on, as when the belief has run out; but that is wanted.
    pub(in crate::worker::lease) fn doubt(&mut self, now: Mono) {
        self.fenced = true;
        self.valid_until = self.valid_until.min(now);
    }

    /// What the lane should do now.
    pub(in crate::worker::lease) fn next_write(&self, wish: Wish, now: Mono) -> Option<WriteKind> {
        if self.lost || self.flight.is_some() || now < self.backoff.until() {
            return None;
        }
        if self.restoring {
            return Some(WriteKind::Restore);
        }
        if let Some(begins) = self.begins_earlier() {
            return Some(WriteKind::Begin(begins));
        }
        match wish {
            Wish::GiveUp { handed } if handed && self.next_owner.is_some() => {
                return Some(WriteKind::HandOver);
            }
            Wish::GiveUp { .. } => return Some(WriteKind::Release),
            Wish::End => return Some(WriteKind::End),
            Wish::LetGo if self.processed.is_durable() => {
                return Some(match self.next_owner {
                    Some(_) => WriteKind::HandOver,
                    None => WriteKind::Release,
                });
            }
            Wish::LetGo => return self.processed.through.map(WriteKind::Checkpoint),
            Wish::Save if !self.processed.is_durable() => {
                return self.processed.through.map(WriteKind::Checkpoint);
            }
            Wish::Save | Wish::Keep | Wish::KeepUntil(_) => {}
        }
        // A checkpoint is a renewal, too, and costs no more: new progress goes with the write that is due anyway.
        let due = self.checkpoint_at.min(self.renew_at);
        if !self.processed.is_durable() && (self.processed.wanted || now >= due) {
            return self.processed.through.map(WriteKind::Checkpoint);
        }
        (now >= self.renew_at).then_some(WriteKind::Renew)
    }

    /// When [`next_write`](Self::next_write) can first return a write, if nothing else happens.
    pub(in crate::worker::lease) fn write_at(&self, wish: Wish) -> Mono {
        if self.lost || self.flight.is_some() {
            return Mono::NEVER;
        }
        let mut at = match self.begins_earlier() {
            Some(_) => Mono(0),
            None if self.restoring => Mono(0),
            None => self.renew_at,
        };
        if !self.processed.is_durable() {
            at = at.min(if self.processed.wanted { Mono(0) } else { self.checkpoint_at });
        }
        let wished = match wish {
            Wish::KeepUntil(at) => at,
            Wish::GiveUp { .. } | Wish::End | Wish::LetGo => Mono(0),
            Wish::Save if !self.processed.is_durable() => Mono(0),
            Wish::Save | Wish::Keep => Mono::NEVER,
        };
        at.min(wished).max(self.backoff.until())
    }

    /// Emits a write, or the read that says how the row is.
    pub(in crate::worker::lease) fn emit(
        &mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx, kind: WriteKind, children: &[ShardId],
    ) {
        debug_assert!(self.flight.is_none(), "a lane has one operation in flight");
        debug_assert!(!self.lost, "nothing is written to a lease that was lost");
        let Some(lease) = leases.get(ix) else {
            return cx.broken("a held lease is known");
        };
        let key = lease.key().clone();
        self.restoring = false;
        if kind != WriteKind::Read && self.unresolved.is_none() {
            self.next = cx.next_counter(self.counter, lease.highest());
        }
        let op = match kind {
            WriteKind::Read => TableOp::Read { key },
            WriteKind::Restore => TableOp::Write(self.restored(cx, key, lease.row())),
            kind => TableOp::Write(self.change(cx, key, kind, children)),
        };
        if matches!(kind, WriteKind::Checkpoint(_)) {
            self.checkpoint_at = cx.now() + cx.config().checkpoint_interval;
        }
        self.flight = Some((cx.table_in_turn(Turn::Keep, Waiter::Lane(ix), op), kind));
    }

    fn change(&self, cx: &Context, key: LeaseKey, kind: WriteKind, children: &[ShardId]) -> Change {
        debug_assert!(self.next > self.counter || self.counter == u64::MAX, "guards grow");
        let guard = Guard {
            counter: self.counter,
            next: self.next,
            holder: cx.me().clone(),
            next_owner: self.next_owner.clone(),
        };
        match kind {
            WriteKind::Checkpoint(position) => {
                debug_assert!(!self.processed.durable.covers(position), "a checkpoint moves on");
                debug_assert!(
                    self.processed.through.is_some_and(|through| position <= through),
                    "no checkpoint is ahead of what was processed"
                );
                Change::Checkpoint { key, guard, position }
            }
            WriteKind::End => {
                let children = children.to_vec();
                let last = match cx.config().policies.at_end {
                    AtEnd::Alone => None,
                    // What a former owner processed, if nothing followed.
                    AtEnd::Position => self.processed.through.max(self.processed.durable.position()),
                };
                Change::End { key, guard, children, last }
            }
            WriteKind::Release => Change::Release { key, guard },
            WriteKind::HandOver => {
                debug_assert!(guard.next_owner.is_some(), "a lease is handed over to somebody");
                Change::HandOver { key, guard }
            }
            WriteKind::Begin(at) => Change::Renew { key, guard, began: Some(at) },
            WriteKind::Renew | WriteKind::Restore | WriteKind::Read => {
                Change::Renew { key, guard, began: None }
            }
        }
    }

    /// The row as it should be, to be put where none is.
    fn restored(&self, cx: &Context, key: LeaseKey, known: Option<&LeaseRow>) -> Change {
        let stream = cx.identity_of(&key);
        let known = known.cloned().unwrap_or_else(|| LeaseRow::new(key, self.processed.durable));
        Change::Create(Box::new(LeaseRow {
            owner: Some(cx.me().clone()),
            handing_over: None,
            stream,
            counter: self.next,
            checkpoint: self.processed.durable,
            began: self.says().began(),
            ..known
        }))
    }
}
