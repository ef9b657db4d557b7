//! What the answers on the lane of a held lease mean.

use super::{Lane, Unresolved, WriteKind};
use crate::ids::{LeaseKey, OpId, WorkerId};
use crate::input::{Outcome, Reply, Why};
use crate::notice::{LossReason, Notice};
use crate::position::Position;
use crate::row::{LeaseRow, RowRead};
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::{describe, unexplained};

/// What an answer means for the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker::lease) enum Answer {
    /// Nothing has changed.
    Nothing,
    /// The row is ours with our counter.
    StillOurs,
    /// The same, and this checkpoint is durable.
    Saved(Position),
    /// The end of the shard is durable.
    Ended,
    /// The lease was given up.
    GivenUp,
    /// The lease is another worker's, or not to be had any more. With the row, if one was shown.
    Lost(LossReason, Option<Box<LeaseRow>>),
    /// The row was removed by somebody; it is to be put back.
    Restore,
    /// The row itself must say what was applied.
    LookAtRow,
}

/// Where an answer comes from.
pub(in crate::worker::lease) struct From<'a> {
    pub(in crate::worker::lease) key: &'a LeaseKey,
    pub(in crate::worker::lease) kind: WriteKind,
    /// When the operation was emitted.
    pub(in crate::worker::lease) emitted: Mono,
}

impl Lane {
    /// Takes the answer of the operation in flight. `None` for another operation.
    pub(in crate::worker::lease) fn settle(&mut self, op: OpId) -> Option<WriteKind> {
        let (_, kind) = self.flight.take_if(|(expected, _)| *expected == op)?;
        Some(kind)
    }

    /// What an answer means.
    pub(in crate::worker::lease) fn on_answer(
        &mut self, cx: &mut Context, from: &From<'_>, op: OpId, outcome: Outcome,
    ) -> Answer {
        debug_assert!(!self.lost, "answers to what was lost mean nothing");
        debug_assert!(from.emitted <= cx.now(), "an answer comes after the question");
        let read = from.kind == WriteKind::Read;
        match outcome {
            Outcome::Applied(Reply::Row(row)) if read => self.on_row(cx, from, row.map(|row| *row)),
            Outcome::Applied(_) if !read => self.on_applied(cx, from),
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed && !read => {
                self.on_refused(cx, from, op);
                match refusal.current {
                    Some(row) => self.on_row(cx, from, Some(*row)),
                    None => {
                        // The refused write may have been applied by an earlier attempt: the row itself decides.
                        self.mark_unknown(from);
                        Answer::LookAtRow
                    }
                }
            }
            other => {
                match &other {
                    Outcome::Unknown(_) if !read => self.mark_unknown(from),
                    Outcome::Refused(refusal) if refusal.why == Why::NotFound => {
                        cx.request(Request::DoubtTable)
                    }
                    _ => {}
                }
                self.on_failure(cx, from, op, &other);
                Answer::Nothing
            }
        }
    }

    /// A write was refused. The row may say why, and then the next write follows at once. After a second refusal in a
    /// row a pause follows, whatever the row says: a guard that fails against its own row would be tried all the time.
    fn on_refused(&mut self, cx: &mut Context, from: &From<'_>, op: OpId) {
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals < 2 {
            return;
        }
        self.failed(cx, from, op, unexplained(self.refusals));
    }

    fn on_failure(&mut self, cx: &mut Context, from: &From<'_>, op: OpId, outcome: &Outcome) {
        self.failed(cx, from, op, describe(outcome));
    }

    /// A write has failed, and is made again after a pause.
    fn failed(&mut self, cx: &mut Context, from: &From<'_>, op: OpId, how: String) {
        let again_in = self.backoff.failed(cx, "write", from.key.as_str());
        let what = format!("{} {}", from.kind.verb(), from.key);
        cx.trouble(op, Some(from.key.clone()), what, how, again_in);
    }

    /// Remembers that a write may have been applied.
    fn mark_unknown(&mut self, from: &From<'_>) {
        debug_assert!(from.kind != WriteKind::Read, "a read leaves nothing unknown behind");
        let before =
            self.unresolved.unwrap_or(Unresolved { since: from.emitted, end: false, release: false });
        self.unresolved = Some(Unresolved {
            since: before.since.min(from.emitted),
            end: before.end || from.kind == WriteKind::End,
            release: before.release || from.kind.gives_up(),
        });
    }

    /// A write was acknowledged. So no earlier write of the same guard was or will be applied.
    fn on_applied(&mut self, cx: &mut Context, from: &From<'_>) -> Answer {
        debug_assert!(from.kind != WriteKind::Read, "a read changes no row");
        debug_assert!(self.next > self.counter || self.counter == u64::MAX, "guards grow");
        self.counter = self.next;
        if from.kind.gives_up() {
            // From here on, a lease without an owner, or of another worker, is not believed in.
            self.unresolved = None;
            return Answer::GivenUp;
        }
        self.extend_validity(cx, from.key, from.emitted);
        match from.kind {
            WriteKind::Renew | WriteKind::Read => Answer::StillOurs,
            WriteKind::Begin(at) => {
                self.began = Some(at);
                Answer::StillOurs
            }
            WriteKind::Restore => {
                self.next_owner = None;
                Answer::StillOurs
            }
            WriteKind::Checkpoint(position) => {
                self.processed.saved(position);
                Answer::Saved(position)
            }
            WriteKind::End => Answer::Ended,
            WriteKind::Release | WriteKind::HandOver => Answer::GivenUp,
        }
    }

    /// The row is known to have been ours by a write emitted at `emitted`: the belief is counted from there.
    fn extend_validity(&mut self, cx: &mut Context, key: &LeaseKey, emitted: Mono) {
        // Other workers may act on the time in the row. The time was drawn for the first of these attempts.
        let emitted = match self.unresolved.take() {
            Some(maybe) if cx.config().policies.life.tells_time() => maybe.since.min(emitted),
            _ => emitted,
        };
        self.backoff.succeeded();
        self.refusals = 0;
        let before = self.valid_until;
        self.valid_until = before.max(emitted + cx.hold());
        debug_assert!(
            self.valid_until == before || self.valid_until <= emitted + cx.hold(),
            "nobody believes for longer than the hold after what proves it"
        );
        self.renew_at = emitted + cx.config().renew_interval;
        if self.fenced && cx.now() < self.valid_until {
            self.fenced = false;
            cx.notify(Notice::Resumed { lease: key.clone() });
        }
    }

    /// The row as it is now, after a refusal or a read: is it ours, and what was applied?
    fn on_row(&mut self, cx: &mut Context, from: &From<'_>, row: Option<RowRead>) -> Answer {
        let maybe = self.unresolved;
        let tried_end = from.kind == WriteKind::End || maybe.is_some_and(|maybe| maybe.end);
        let tried_release = from.kind.gives_up() || maybe.is_some_and(|maybe| maybe.release);
        let row = match row {
            Some(RowRead::Lease(row)) => row,
            Some(_) => return Answer::Lost(LossReason::Unreadable, None),
            None if tried_end => return Answer::Ended,
            None if tried_release => return Answer::GivenUp,
            // After the end of the belief, other workers may have taken the lease, ended the shard and removed the row.
            None if from.kind == WriteKind::Restore || cx.now() >= self.valid_until => {
                return Answer::Lost(LossReason::RowGone, None);
            }
            // Somebody removed the row of a live lease. What was processed is known only here.
            None => {
                self.restoring = true;
                return Answer::Restore;
            }
        };
        let next = row.counter == self.next;
        if row.checkpoint.is_end() {
            return match tried_end && (next || row.owner.is_none()) {
                true => Answer::Ended,
                false => Answer::Lost(LossReason::AlreadyEnded, Some(Box::new(row))),
            };
        }
        let was_handed = row.owner == self.next_owner && row.handing_over.is_none();
        if tried_release && next && (row.owner.is_none() || (self.next_owner.is_some() && was_handed)) {
            // The row has our last counter. A greater one is a sign of life of the next owner.
            self.counter = self.next;
            return Answer::GivenUp;
        }
        let bare = !next && self.is_bare(cx, &row);
        if row.actual_owner() == Some(cx.me()) && (next || bare || row.counter == self.counter) {
            return self.on_own_row(cx, from, row, next, bare);
        }
        let by = row.actual_owner().cloned();
        let reason = LossReason::Taken { by, row: Box::new(row.clone()) };
        Answer::Lost(reason, Some(Box::new(row)))
    }

    /// The row is ours, with our counter, with the counter of our last write, or without a counter.
    fn on_own_row(
        &mut self, cx: &mut Context, from: &From<'_>, row: LeaseRow, next: bool, bare: bool,
    ) -> Answer {
        debug_assert!(!(next && bare), "a row without a counter is not what a write of ours leaves");
        debug_assert!(row.actual_owner() == Some(cx.me()), "a row of ours names us");
        let lease = from.key.clone();
        let mut answer = Answer::Nothing;
        if bare {
            self.counter = row.counter;
            // The write under way waits for a counter that never comes back.
            self.unresolved = None;
            cx.notify(Notice::Mending { lease });
        } else if next {
            self.recognise_own_write(cx, from, &row);
            answer = Answer::StillOurs;
        }
        let handed_to: Option<WorkerId> = row.handing_over.is_some().then_some(row.owner).flatten();
        if handed_to == self.next_owner && !next && !bare && self.refusals == 1 {
            // The row is right, and yet the guard did not hold: for a moment only, or because no guard of ours matches
            // the row's spelling.
            self.backoff.failed(cx, "write", from.key.as_str());
        }
        if handed_to != self.next_owner {
            self.handing_since = handed_to.as_ref().map_or(Mono::NEVER, |_| cx.now());
        }
        self.next_owner = handed_to;
        answer
    }

    /// One of our own writes was applied after all. The row's checkpoint tells the write's kind.
    fn recognise_own_write(&mut self, cx: &mut Context, from: &From<'_>, row: &LeaseRow) {
        let since = self.unresolved.map_or(from.emitted, |maybe| maybe.since.min(from.emitted));
        debug_assert_eq!(self.next, row.counter, "our own write leaves the counter that it was given");
        self.counter = row.counter;
        self.processed.durable = self.processed.durable.max(row.checkpoint);
        self.began = row.began.or(self.began);
        self.extend_validity(cx, from.key, since);
        cx.notify(Notice::Adopted { lease: from.key.clone(), counter: row.counter });
    }

    /// Whether a person's edit removed the counter of a row of ours, and changed nothing more. No worker takes a lease
    /// while its owner believes, and the checkpoint is unchanged.
    fn is_bare(&self, cx: &Context, row: &LeaseRow) -> bool {
        row.counter == 0
            && self.counter > 0
            && self.believes(cx.now())
            && row.actual_owner() == Some(cx.me())
            && row.checkpoint == self.processed.durable
    }
}
