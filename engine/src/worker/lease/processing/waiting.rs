//! Before a shard is opened: its parents must have ended, and the belief must hold.

use super::Processing;
use super::application::AppCommand;
use super::reading::{Flush, Reading};
use super::stage::Stage;
use crate::ids::{OpId, ShardId};
use crate::input::{Cause, Outcome, Reply};
use crate::notice::{ListReason, Notice};
use crate::output::{ConsumerOp, TableOp};
use crate::reader::Start;
use crate::row::RowRead;
use crate::shard::Shard;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::lease::lane::Lane;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::ownership::Ownership;
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

/// The conditions for opening a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    /// Parents not yet known to have ended.
    parents: Vec<ShardId>,
    /// A read of a parent's row is in flight.
    reading: Option<OpId>,
    /// The next look at the parents, or the next try to open.
    look_at: Mono,
    /// How often in a row a look showed a parent that has not ended.
    looks: u32,
    /// How often in a row it could not be opened.
    failures: u32,
    /// A notice has told of the wait for the parents.
    told: bool,
    /// The parents of the row that listings deny.
    denied: Evidence<BTreeSet<ShardId>>,
    /// When the shards are listed, to compare the parents of the row with the parents of the shard.
    list_at: Mono,
    /// The number of such listings that denied nothing.
    lists: u32,
}

impl Waiting {
    /// The shard waits for these parents.
    pub(super) fn of(parents: Vec<ShardId>) -> Self {
        Self { parents, ..Self::default() }
    }

    /// The parents have ended. The next try to open comes at `look_at`.
    fn again(look_at: Mono, failures: u32) -> Self {
        Self { look_at, failures, ..Self::default() }
    }

    /// Parents not yet known to have ended.
    pub(super) fn parents(&self) -> &[ShardId] {
        &self.parents
    }

    /// How often in a row the shard could not be opened.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the shard may be opened: its parents have ended, and the belief holds. Asks about a parent that has not
    /// ended.
    pub(super) fn step(&mut self, lent: &mut Lent<'_>) -> bool {
        let (own, now) = (lent.own, lent.now());
        if !lent.believes() || now < own.open_after() || now < self.look_at || self.reading.is_some() {
            return false;
        }
        self.parents.retain(|parent| {
            let row = lent.rows.row(parent.as_str());
            !row.is_some_and(|row| row.checkpoint.is_end())
        });
        let Some(parent) = self.parents.first() else {
            return true;
        };
        // The view may be stale or lack the row: only a consistent read shows that a parent's lease is gone.
        if lent.cx.takes_turn(own.ix(), Turn::Begin) {
            let op = TableOp::Read { key: parent.to_lease() };
            self.reading = Some(lent.cx.table_in_turn(Turn::Begin, Waiter::Relative(own.ix()), op));
        }
        false
    }

    /// When the parents are looked at again.
    pub(super) fn wake_at(&self, own: &Ownership, lane: &Lane, cx: &Context) -> Mono {
        let waits = self.reading.is_some() || cx.turns().waits(own.ix(), Turn::Begin);
        match waits || !lane.believes(cx.now()) {
            true => Mono::NEVER,
            false => self.look_at.max(own.open_after()),
        }
    }

    /// Something has changed: the parents are looked at now.
    pub(super) fn look_at(&mut self, now: Mono) {
        self.look_at = now;
    }

    /// A consistent read of the row of a parent came back.
    pub(super) fn on_relative(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: Outcome) {
        if self.reading != Some(op) {
            return;
        }
        self.reading = None;
        // A parent whose end became known meanwhile is not asked about any more.
        if !self.parents.is_empty() {
            self.on_parent(lent, outcome);
        }
    }

    fn on_parent(&mut self, lent: &mut Lent<'_>, outcome: Outcome) {
        let (now, cx) = (lent.now(), &mut *lent.cx);
        let Outcome::Applied(Reply::Row(row)) = outcome else {
            let pause = cx.config().retry_max.min(cx.config().renew_interval);
            self.look_at = now + pause;
            return;
        };
        let unfinished = match row.as_deref() {
            Some(row) => RowRead::lease(row).is_none_or(|row| !row.checkpoint.is_end()),
            None => lent.rows.lineage().is_unread(cx, &self.parents[0]),
        };
        if !unfinished {
            self.parents.remove(0);
            self.look_at = now;
            return;
        }
        self.look_at = now + look_pause(cx, &mut self.looks);
        self.parents.rotate_left(1);
        let first = !std::mem::replace(&mut self.told, true);
        if first {
            self.list_at = now + cx.config().scan_interval;
        } else if now >= self.list_at {
            self.list_at = now + cx.config().scan_interval;
            cx.request(Request::ListShards(lent.own.stream(), ListReason::ParentUnfinished));
        }
        if first {
            cx.notify(Notice::Blocked { lease: lent.own.lease(), parents: self.parents.clone() });
        }
    }

    /// The shards were listed. A parent named by the row alone is no parent: a person or a program wrote the row, and the
    /// shard would wait for ever. Listings apart in time must agree. The shard waits for its listed parents instead.
    /// Returns the denied parents, if listings are enough.
    ///
    /// Listings deny a parent that is listed although the shard does not name the parent. They also deny a listed parent
    /// of a shard that is listed no more, since the stream forgets a parent before its child.
    pub(super) fn compare_parents(
        &mut self, own: &Ownership, cx: &mut Context, asked: Mono, shards: &BTreeMap<&str, &Shard>,
    ) -> Option<BTreeSet<ShardId>> {
        if !self.told {
            return None;
        }
        let key = own.key().as_str();
        let listed = shards.get(key).copied();
        let is_listed = |id: &ShardId| shards.contains_key(id.as_str());
        let names = |id: &ShardId| listed.is_some_and(|own| own.parents().any(|parent| parent == id));
        let is_denied = |id: &&ShardId| id.as_str() == key || is_listed(id) && !names(id);
        let denied: BTreeSet<ShardId> = self.parents.iter().filter(is_denied).cloned().collect();
        if denied.is_empty() {
            self.denied.contradicted();
            // All waiting shards were compared with this listing. A single later listing therefore serves all waiting
            // shards.
            self.lists = self.lists.saturating_add(1).min(MOST_LISTS);
            self.list_at = cx.now() + cx.config().scan_interval.times(1 << self.lists);
            return None;
        }
        let needed = Needed::to_forget(cx);
        if !self.denied.says(cx, asked, denied.clone(), needed) {
            self.list_at = self.denied.ask_again_at(needed);
            return None;
        }
        self.parents.retain(|parent| !denied.contains(parent));
        let listed = listed.into_iter().flat_map(Shard::parents);
        let more: Vec<ShardId> = listed.filter(|id| !self.parents.contains(id)).cloned().collect();
        self.parents.extend(more);
        self.look_at = cx.now();
        let (lease, parents) = (own.lease(), denied.iter().cloned().collect());
        cx.notify(Notice::NotParents { lease, parents, listings: needed.answers() });
        Some(denied)
    }
}

impl Processing {
    pub(super) fn open(&mut self, lent: &mut Lent<'_>) {
        debug_assert!(lent.believes(), "only an owner that believes opens a shard");
        self.stage.go(|stage| Stage::Opening {
            failures: match stage {
                Stage::Waiting(waiting) => waiting.failures(),
                _ => 0,
            },
        });
        let op = ConsumerOp::Open {
            lease: lent.own.lease(),
            token: lent.own.token(),
            from: lent.lane.processed().durable(),
            since: lent.lane.begins(),
        };
        self.app.ask(lent.own, lent.cx, op, AppCommand::Open);
    }

    /// The application has opened the shard, or could not.
    pub(super) fn on_opened(&mut self, lent: &mut Lent<'_>, outcome: Outcome) {
        let (now, own) = (lent.now(), lent.own);
        let (from, since) = (lent.lane.processed().durable(), lent.lane.begins());
        let applied = matches!(outcome, Outcome::Applied(_));
        if applied {
            self.app.opened();
            let (lease, token) = (own.lease(), own.token());
            lent.cx.notify(Notice::Opened { lease, token, from, since });
        }
        let Stage::Opening { failures } = self.stage else {
            // The lease was let go of while the application opened the shard.
            return;
        };
        if applied {
            lent.watch.moved(now);
            let start = Start::from(from, since);
            debug_assert!(start.is_some(), "a shard that was read to its end is not opened");
            // Too much rather than too little.
            let flush = Flush::new(matches!(outcome, Outcome::Applied(Reply::ConfirmsEnd)));
            let reading = Reading::begin(start.unwrap_or(Start::TrimHorizon), flush, now);
            return self.stage.go(|_| Stage::Running(Box::new(reading)));
        }
        if let Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) = outcome {
            // The engine stopped the call, or the adapter never began it: the handler did not fail.
            return self.stage.go(|_| Stage::Waiting(Box::new(Waiting::again(now, failures))));
        }
        let failures = failures.saturating_add(1);
        let pause = lent.cx.pause("open", own.key().as_str(), failures).max(lent.cx.config().handler_backoff);
        self.stage.go(|_| Stage::Waiting(Box::new(Waiting::again(now + pause, failures))));
        let again = lent.exit().is_none();
        lent.cx.notify(Notice::HandlerFailed {
            lease: own.lease(),
            attempt: failures,
            again_in: again.then_some(pause),
            detail: describe(&outcome),
        });
    }
}
