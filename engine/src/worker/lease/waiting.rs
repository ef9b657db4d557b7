//! Before a shard is opened: its parents must have ended, and the belief must hold.

use super::application::AppCommand;
use super::held::HeldLease;
use super::kept::Flush;
use super::stage::{Reading, Stage, Waiting};
use crate::ids::{OpId, ShardId};
use crate::input::{Cause, Outcome, Reply};
use crate::notice::{ListReason, Notice};
use crate::output::{ConsumerOp, TableOp};
use crate::reader::{Reader, Start};
use crate::row::RowRead;
use crate::shard::Shard;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::evidence::Needed;
use crate::worker::lease_table::LeaseTable;
use crate::worker::table_turns::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// The pause before the second look at a relative's row. Each pause is twice the one before, up to a renewal interval.
const FIRST_PAUSE: Span = Span::from_millis(250);
/// With so many, the pause is more than four hours.
const MOST_DOUBLINGS: u32 = 16;

/// The longest pause between two listings for a shard that waits for its parents is this power of two, in scan intervals.
const MOST_LISTS: u32 = 6;

/// The pause after a look at the row of a relative, after `looks` earlier looks; counts the look. The parents of a
/// merged child are closed at the same moment, and often end within moments of each other.
pub(super) fn look_pause(cx: &Context, looks: &mut u32) -> Span {
    let doubled = FIRST_PAUSE.times(1 << *looks);
    // More looks change nothing.
    *looks = (*looks + 1).min(MOST_DOUBLINGS);
    doubled.min(cx.config().renew_interval)
}

impl HeldLease {
    /// Opens the shard as soon as its parents have ended and the belief holds.
    pub(super) fn wait_step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let now = cx.now();
        if !self.believes(now) || now < self.own.open_after() {
            return;
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            return cx.broken("parents are waited for before a shard is opened");
        };
        if now < waiting.look_at || waiting.reading.is_some() {
            return;
        }
        waiting.parents.retain(|parent| {
            let row = leases.row(parent.as_str());
            !row.is_some_and(|row| row.checkpoint.is_end())
        });
        if let Some(parent) = waiting.parents.first() {
            // The view may be stale or lack the row: only a consistent read shows that a parent's lease is gone.
            if cx.takes_turn(self.own.ix(), Turn::Begin) {
                let op = TableOp::Read { key: parent.to_lease() };
                waiting.reading = Some(cx.table_in_turn(Turn::Begin, Waiter::Relative(self.own.ix()), op));
            }
            return;
        }
        self.open(cx);
    }

    fn open(&mut self, cx: &mut Context) {
        debug_assert!(self.believes(cx.now()), "only an owner that believes opens a shard");
        self.stage.go(|stage| Stage::Opening {
            failures: match stage {
                Stage::Waiting(waiting) => waiting.failures,
                _ => 0,
            },
        });
        let op = ConsumerOp::Open {
            lease: self.own.lease(),
            token: self.own.token(),
            from: self.lane.processed().durable(),
            since: self.lane.begins(),
        };
        self.app.ask(&self.own, cx, op, AppCommand::Open);
    }

    /// The application has opened the shard, or could not.
    pub(super) fn on_opened(&mut self, cx: &mut Context, leases: &LeaseTable, outcome: Outcome) {
        let now = cx.now();
        let applied = matches!(outcome, Outcome::Applied(_));
        if applied {
            self.app.opened();
            let (lease, token, from) = (self.own.lease(), self.own.token(), self.lane.processed().durable());
            let since = self.lane.begins();
            cx.notify(Notice::Opened { lease, token, from, since });
        }
        let Stage::Opening { failures } = self.stage else {
            return;
        };
        if applied {
            self.watch.moved(now);
            let start = Start::from(self.lane.processed().durable(), self.lane.begins());
            debug_assert!(start.is_some(), "a shard that was read to its end is not opened");
            // Too much rather than too little.
            let flush = Flush::new(matches!(outcome, Outcome::Applied(Reply::ConfirmsEnd)));
            let reader = Reader::new(start.unwrap_or(Start::TrimHorizon), now);
            return self.stage.go(|_| Stage::Running(Box::new(Reading::new(reader, flush))));
        }
        if let Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) = outcome {
            // The engine stopped the call, or the adapter never began it: the handler did not fail.
            return self
                .stage
                .go(|_| Stage::Waiting(Box::new(Waiting { look_at: now, failures, ..Waiting::default() })));
        }
        let failures = failures.saturating_add(1);
        let pause = cx.pause("open", self.own.key().as_str(), failures).max(cx.config().handler_backoff);
        self.stage.go(|_| {
            Stage::Waiting(Box::new(Waiting { look_at: now + pause, failures, ..Waiting::default() }))
        });
        let again = self.exit(cx, leases).is_none();
        cx.notify(Notice::HandlerFailed {
            lease: self.own.lease(),
            attempt: failures,
            again_in: again.then_some(pause),
            detail: describe(&outcome),
        });
    }

    /// A consistent read of the row of a parent, or of a child's other parent, came back.
    pub(super) fn on_relative(&mut self, cx: &mut Context, leases: &LeaseTable, op: OpId, outcome: Outcome) {
        match &mut self.stage {
            Stage::Waiting(waiting) if waiting.reading == Some(op) => {
                waiting.reading = None;
                // A parent whose end became known meanwhile is not asked about any more.
                if !waiting.parents.is_empty() {
                    self.on_parent(cx, leases, outcome);
                }
            }
            Stage::Ending(ending) if ending.reading == Some(op) => {
                ending.reading = None;
                self.on_other_parent(cx, outcome);
            }
            // The lease is let go of by now.
            _ => {}
        }
    }

    fn on_parent(&mut self, cx: &mut Context, leases: &LeaseTable, outcome: Outcome) {
        let now = cx.now();
        let Stage::Waiting(waiting) = &mut self.stage else {
            return cx.broken("parents are asked about before a shard is opened");
        };
        let Outcome::Applied(Reply::Row(row)) = outcome else {
            let pause = cx.config().retry_max.min(cx.config().renew_interval);
            waiting.look_at = now + pause;
            return;
        };
        let unfinished = match row.as_deref() {
            Some(row) => RowRead::lease(row).is_none_or(|row| !row.checkpoint.is_end()),
            None => leases.is_unread(cx, &waiting.parents[0]),
        };
        if !unfinished {
            waiting.parents.remove(0);
            waiting.look_at = now;
            return;
        }
        waiting.look_at = now + look_pause(cx, &mut waiting.looks);
        waiting.parents.rotate_left(1);
        let first = !std::mem::replace(&mut waiting.told, true);
        if first {
            waiting.list_at = now + cx.config().scan_interval;
        } else if now >= waiting.list_at {
            waiting.list_at = now + cx.config().scan_interval;
            cx.request(Request::ListShards(self.own.stream(), ListReason::ParentUnfinished));
        }
        if first {
            cx.notify(Notice::Blocked { lease: self.own.lease(), parents: waiting.parents.clone() });
        }
    }

    /// The shards were listed. A parent named by the row alone is no parent: a person or a program wrote the row, and the
    /// shard would wait for ever. Listings apart in time must agree. The shard waits for its listed parents instead.
    /// Returns the denied parents, if listings are enough.
    ///
    /// Listings deny a parent that is listed although the shard does not name the parent. They also deny a listed parent
    /// of a shard that is listed no more, since the stream forgets a parent before its child.
    pub(super) fn compare_parents(
        &mut self, cx: &mut Context, asked: Mono, shards: &BTreeMap<&str, &Shard>,
    ) -> Option<BTreeSet<ShardId>> {
        let Stage::Waiting(waiting) = &mut self.stage else { return None };
        if !waiting.told {
            return None;
        }
        let key = self.own.key().as_str();
        let own = shards.get(key).copied();
        let is_listed = |id: &ShardId| shards.contains_key(id.as_str());
        let names = |id: &ShardId| own.is_some_and(|own| own.parents().any(|parent| parent == id));
        let is_denied = |id: &&ShardId| id.as_str() == key || is_listed(id) && !names(id);
        let denied: BTreeSet<ShardId> = waiting.parents.iter().filter(is_denied).cloned().collect();
        if denied.is_empty() {
            waiting.denied.contradicted();
            // All shards that wait were compared with this listing, so one later listing serves all of them.
            waiting.lists = waiting.lists.saturating_add(1).min(MOST_LISTS);
            waiting.list_at = cx.now() + cx.config().scan_interval.times(1 << waiting.lists);
            return None;
        }
        let needed = Needed::to_forget(cx);
        if !waiting.denied.says(cx, asked, denied.clone(), needed) {
            waiting.list_at = waiting.denied.ask_again_at(needed);
            return None;
        }
        waiting.parents.retain(|parent| !denied.contains(parent));
        let listed = own.into_iter().flat_map(Shard::parents);
        let more: Vec<ShardId> = listed.filter(|id| !waiting.parents.contains(id)).cloned().collect();
        waiting.parents.extend(more);
        waiting.look_at = cx.now();
        let (lease, parents) = (self.own.lease(), denied.iter().cloned().collect());
        cx.notify(Notice::NotParents { lease, parents, listings: needed.answers() });
        Some(denied)
    }

    /// The end of a parent is known: nothing more needs to be waited for.
    pub(super) fn look_at_parents_now(&mut self, now: Mono) {
        match &mut self.stage {
            Stage::Waiting(waiting) => waiting.look_at = now,
            Stage::Running(reading) => reading.look_at = now,
            Stage::Ending(ending) => ending.look_at = now,
            _ => {}
        }
    }
}
