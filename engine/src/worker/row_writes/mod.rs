//! Rows that are created, filled in or removed beside the lanes of held leases: a queue with a bounded number in flight.
//! Requests for leases go through the same queue; the room of assignment decides what follows from their answers.

#[cfg(test)]
mod tests;

use super::backoff::Backoff;
use super::context::{Context, Request, RowWriteId, Waiter};
use super::describe;
use super::lease_request::{FollowUp, LeaseRequest};
use super::lease_table::{BesideLane, LeaseTable};
use crate::ids::{LeaseIx, LeaseKey, OpId};
use crate::input::{Outcome, Why};
use crate::notice::{Notice, StreamNews};
use crate::output::TableOp;
use crate::row::{Change, LeaseRow, RowRead};
use crate::time::Mono;
use std::collections::{BTreeSet, VecDeque};

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    /// A row. After the moment `expires`, the write is neither begun nor tried again: the facts behind the decision may
    /// not be true any more.
    Row { change: Change, why: String, expires: Mono },
    /// A request for a lease of a live owner.
    Request(Box<LeaseRequest>),
}

/// One row to be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RowWrite {
    what: What,
    /// The held lease whose end waits for this row.
    child_of: Option<LeaseIx>,
    /// Failures in a row, and when it is begun.
    backoff: Backoff,
    /// It is only looked at: a request that is in the row.
    watched: bool,
    flight: Option<OpId>,
}

impl RowWrite {
    fn new(what: What, child_of: Option<LeaseIx>, now: Mono) -> Self {
        let mut backoff = Backoff::default();
        backoff.wait_until(now);
        Self { what, child_of, backoff, watched: false, flight: None }
    }

    fn key(&self) -> &LeaseKey {
        match &self.what {
            What::Row { change, .. } => change.key(),
            What::Request(request) => request.key(),
        }
    }

    fn verb(&self) -> &'static str {
        match &self.what {
            What::Row { change, .. } => change.verb(),
            What::Request(request) => request.verb(),
        }
    }

    fn request(&self) -> Option<&LeaseRequest> {
        match &self.what {
            What::Row { .. } => None,
            What::Request(request) => Some(request),
        }
    }

    /// Whether a leader assigns or moves the lease.
    fn assigns(&self) -> bool {
        matches!(&self.what, What::Row { change: Change::Assign { .. } | Change::Offer { .. }, .. })
    }

    fn expires(&self) -> Mono {
        match &self.what {
            What::Row { expires, .. } => *expires,
            What::Request(request) => request.expires(),
        }
    }

    /// The next operation.
    fn op(&mut self) -> TableOp {
        match &mut self.what {
            What::Row { change, .. } => TableOp::Write(change.clone()),
            What::Request(request) => request.send(),
        }
    }
}

/// The queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RowWrites {
    slots: Vec<Option<RowWrite>>,
    free: Vec<RowWriteId>,
    waiting: VecDeque<RowWriteId>,
    /// The slots by the keys of their leases. A leader may have as many as there are leases.
    by_key: BTreeSet<(LeaseKey, RowWriteId)>,
    in_flight: u32,
    /// How many are only looked at.
    watched: u32,
}

impl RowWrites {
    /// Whether nothing is to be written any more.
    fn is_idle(&self) -> bool {
        self.by_key.len() == self.watched as usize
    }

    /// Whether a lease is still to be assigned to another worker.
    pub(super) fn assigns(&self) -> bool {
        let mut writes = self.slots.iter().flatten();
        writes.any(|write| matches!(write.what, What::Row { change: Change::Assign { .. }, .. }))
    }

    /// The open requests for leases, each request with its number. The waiting requests come first, in the order of the
    /// queue.
    pub(super) fn requests(&self) -> impl Iterator<Item = (RowWriteId, &LeaseRequest)> {
        let flying = self.ids().filter(|id| self.get(*id).is_some_and(|write| write.flight.is_some()));
        let ids = self.waiting.iter().copied().chain(flying);
        ids.filter_map(|id| Some((id, self.get(id)?.request()?)))
    }

    fn ids(&self) -> impl Iterator<Item = RowWriteId> + use<> {
        (0..self.slots.len() as u32).map(RowWriteId)
    }

    /// A request whose answer came.
    pub(super) fn request_mut(&mut self, id: RowWriteId) -> Option<&mut LeaseRequest> {
        match &mut self.get_mut(id)?.what {
            What::Row { .. } => None,
            What::Request(request) => Some(request),
        }
    }

    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        if self.in_flight >= cx.config().max_creates {
            return Mono::NEVER;
        }
        let waiting = self.waiting.iter().filter_map(|id| self.get(*id));
        waiting.map(|write| write.backoff.until()).min().unwrap_or(Mono::NEVER)
    }

    fn get(&self, id: RowWriteId) -> Option<&RowWrite> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: RowWriteId) -> Option<&mut RowWrite> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// What is to be written of this lease.
    fn of(&self, key: &LeaseKey) -> impl Iterator<Item = &RowWrite> {
        let ids = self.by_key.range((key.clone(), RowWriteId(0))..=(key.clone(), RowWriteId(u32::MAX)));
        ids.filter_map(|(_, id)| self.get(*id))
    }

    /// Queues a row to be written, unless the same one is for the same lease.
    pub(super) fn add(
        &mut self, cx: &Context, change: Change, why: String, child_of: Option<LeaseIx>, expires: Mono,
    ) {
        debug_assert!(
            child_of.is_none() || matches!(change, Change::Create(_)),
            "a held lease waits for rows that are created, and for no others"
        );
        self.queue(RowWrite::new(What::Row { change, why, expires }, child_of, cx.now()));
    }

    /// Queues a request for a lease, unless a write for the same lease is there.
    pub(super) fn add_request(&mut self, cx: &Context, request: Box<LeaseRequest>) {
        self.queue(RowWrite::new(What::Request(request), None, cx.now()));
    }

    fn queue(&mut self, write: RowWrite) {
        let key = write.key().clone();
        if self.of(&key).any(|other| other.child_of == write.child_of) {
            return;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            RowWriteId(self.slots.len() as u32 - 1)
        });
        debug_assert!(self.get(id).is_none(), "a free slot is empty");
        self.slots[id.0 as usize] = Some(write);
        self.by_key.insert((key, id));
        self.waiting.push_back(id);
    }

    /// Checks that the counts beside the slots match the slots.
    fn check(&self) {
        // A look at all of them would make many rows slow.
        if !cfg!(debug_assertions) || self.slots.len() > 64 {
            return;
        }
        debug_assert!(
            self.waiting.iter().all(|id| self.get(*id).is_some_and(|write| write.flight.is_none())),
            "what waits is there, and not in flight"
        );
        let flying = |write: &&RowWrite| write.flight.is_some();
        debug_assert!(
            self.in_flight as usize == self.slots.iter().flatten().filter(flying).count(),
            "what is in flight is counted"
        );
        debug_assert!(
            self.by_key.len() == self.slots.iter().flatten().count(),
            "each write is found by its key"
        );
        let watched = |write: &&RowWrite| write.watched;
        debug_assert!(
            self.watched as usize == self.slots.iter().flatten().filter(watched).count(),
            "what is only looked at is counted"
        );
    }

    /// Begins what may be begun.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        self.check();
        for _ in 0..self.waiting.len() {
            if self.in_flight >= cx.config().max_creates {
                return;
            }
            if let Some(id) = self.waiting.pop_front() {
                self.begin(cx, leases, id);
            }
        }
    }

    fn begin(&mut self, cx: &mut Context, leases: &LeaseTable, id: RowWriteId) {
        let now = cx.now();
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a row write that waits is there");
        };
        debug_assert!(write.flight.is_none(), "what waits is not in flight");
        if now < write.backoff.until() {
            return self.waiting.push_back(id);
        }
        // A stream may be read no more, or again since the request was decided on: then it is not known yet.
        let known = |key: &LeaseKey| cx.streams().of_key(key.as_str()).is_some_and(|of| cx.may_take(of));
        let requests = || cx.wants_leases() && known(write.key());
        if now >= write.expires() || (write.request().is_some() && !requests()) {
            // The table takes no more assignments in this time: the leader decides the rest after a scan that comes
            // soon.
            if write.assigns() {
                cx.request(Request::Rescan(now));
            }
            self.drop(id);
            return;
        }
        // After the end of the belief, other workers may have ended the shard, processed its children and removed them.
        let parent = write.child_of.and_then(|parent| leases.get(parent)?.believes(now));
        if parent == Some(false) {
            write.backoff.wait_until(now + cx.config().renew_interval);
            return self.waiting.push_back(id);
        }
        let op = write.op();
        write.flight = Some(cx.table(Waiter::RowWrite(id), op));
        self.in_flight += 1;
        debug_assert!(self.in_flight <= cx.config().max_creates, "no more are in flight than configured");
    }

    fn drop(&mut self, id: RowWriteId) -> Option<RowWrite> {
        let write = self.slots.get_mut(id.0 as usize)?.take();
        debug_assert!(write.is_some(), "a row is dropped once");
        if let Some(write) = &write {
            self.free.push(id);
            self.by_key.remove(&(write.key().clone(), id));
            self.watched -= u32::from(write.watched);
        }
        write
    }

    /// Forgets the children to be created for a lease. The lease is not ours any more, and its new owner creates the
    /// children.
    pub(super) fn drop_children_of(&mut self, lease: LeaseIx) {
        for at in 0..self.slots.len() {
            let id = RowWriteId(at as u32);
            let Some(write) = self.get_mut(id).filter(|write| write.child_of == Some(lease)) else {
                continue;
            };
            if write.flight.is_some() {
                write.child_of = None;
                if let What::Row { expires, .. } = &mut write.what {
                    *expires = Mono(0);
                }
            } else {
                self.waiting.retain(|waiting| *waiting != id);
                self.drop(id);
            }
        }
    }

    /// The outcome of a write or read. Returns the outcome of a request for a lease: the hand-over decides the next
    /// step, and the worker tells the step to [`follow`](Self::follow).
    pub(super) fn on_outcome(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, id: RowWriteId, op: OpId, outcome: Outcome,
    ) -> Option<Outcome> {
        let Some(write) = self.get_mut(id) else {
            cx.broken("a row write that is in flight is there");
            return None;
        };
        debug_assert_eq!(write.flight, Some(op), "an outcome is of what is in flight");
        write.flight = None;
        let requests = write.request().is_some();
        debug_assert!(self.in_flight > 0, "what comes back was in flight");
        self.in_flight = self.in_flight.saturating_sub(1);
        if requests {
            return Some(outcome);
        }
        let settled = match &outcome {
            Outcome::Applied(_) => true,
            // The row to be created exists already, or the row to be removed or filled in has changed by now.
            Outcome::Refused(refusal) => refusal.why == Why::ConditionFailed,
            Outcome::Unknown(_) => false,
            Outcome::NotSent(_) => false,
        };
        match settled {
            true => self.on_settled(cx, leases, id, &outcome),
            false => self.on_failure(cx, id, op, &outcome),
        }
        None
    }

    /// This follows from the answer to a request.
    pub(super) fn follow(&mut self, cx: &mut Context, id: RowWriteId, op: OpId, next: FollowUp) {
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a request that was answered is there");
        };
        debug_assert!(write.flight.is_none(), "what was answered is not in flight");
        let in_row = write.request().is_some_and(LeaseRequest::is_in_row);
        let first = in_row && !std::mem::replace(&mut write.watched, in_row);
        match next {
            FollowUp::Over => {
                self.watched += u32::from(first);
                self.drop(id);
                return;
            }
            FollowUp::Failed(outcome) => return self.on_failure(cx, id, op, &outcome),
            FollowUp::Now => {}
            FollowUp::AfterFailure => {
                let key = write.key().clone();
                write.backoff.failed(cx, "chore", key.as_str());
            }
            FollowUp::LookAt(at) => {
                if first {
                    write.backoff.answered();
                }
                write.backoff.wait_until(at);
            }
        }
        self.watched += u32::from(first);
        self.waiting.push_back(id);
    }

    /// Drops requests that wait for their turn: our share has no room for them.
    pub(super) fn spare(&mut self, cx: &mut Context, spared: &BTreeSet<RowWriteId>) {
        self.waiting.retain(|waiting| !spared.contains(waiting));
        for id in spared {
            if let Some(write) = self.drop(*id) {
                let lease = write.key().clone();
                cx.notify(Notice::Spared { lease });
            }
        }
    }

    fn on_failure(&mut self, cx: &mut Context, id: RowWriteId, op: OpId, outcome: &Outcome) {
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a row write that failed is there");
        };
        let lease = write.key().clone();
        let again_in = write.backoff.failed(cx, "chore", lease.as_str());
        let what = format!("{} {lease}", write.verb());
        self.waiting.push_back(id);
        if matches!(outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            cx.request(Request::DoubtTable);
        }
        cx.trouble(op, Some(lease), what, describe(outcome), again_in);
    }

    fn on_settled(&mut self, cx: &mut Context, leases: &mut LeaseTable, id: RowWriteId, outcome: &Outcome) {
        let Some(write) = self.drop(id) else {
            return cx.broken("a row write that is settled is there");
        };
        debug_assert!(write.flight.is_none(), "what is settled is not in flight");
        let What::Row { change, why, .. } = write.what else {
            return cx.broken("a request for a lease is not settled like a row");
        };
        let applied = matches!(outcome, Outcome::Applied(_));
        let lease = change.key().clone();
        let weighs = matches!(change, Change::Weigh { .. });
        match change {
            Change::Create(row) if applied => {
                cx.notify(Notice::Created { lease, checkpoint: row.checkpoint, why });
                leases.observe_now(cx, *row);
            }
            Change::SetRange { range, .. } => {
                let is = current_row(outcome).map_or(Some(range), |row| row.range);
                leases.wrote_beside(cx, lease.as_str(), BesideLane::Range(is));
            }
            Change::Weigh { throughput, .. } if applied => {
                leases.wrote_beside(cx, lease.as_str(), BesideLane::Weighed(throughput));
            }
            Change::Forget { .. } if applied => cx.notify(Notice::Stream(StreamNews::Forgot { lease })),
            Change::Delete { .. } if applied => {
                leases.wrote_beside(cx, lease.as_str(), BesideLane::Removed);
                cx.notify(Notice::Removed { lease });
            }
            _ => {}
        }
        if let Some(parent) = write.child_of {
            cx.request(Request::ChildWritten(parent));
        } else if self.is_idle() && !weighs {
            // What was just created has no owner yet.
            cx.request(Request::Rescan(cx.now()));
        }
    }
}

/// The row met by a refused write, if the service gave the row.
fn current_row(outcome: &Outcome) -> Option<&LeaseRow> {
    match outcome {
        Outcome::Refused(refusal) => refusal.current.as_deref().and_then(RowRead::lease),
        _ => None,
    }
}
