//! The leases to be created by a list of all shards, and when their absence is certain.

use super::{Listed, ShardSync, orphans};
use crate::began;
use crate::ids::LeaseKey;
use crate::notice::Notice;
use crate::position::Checkpoint;
use crate::row::Change;
use crate::shard::Shard;
use crate::sync::{self, Plan, PlannedLease};
use crate::time::{Mono, Wall};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{self, LeaseTable};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

/// What the last listing made us plan to create, and was not certain yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Planned {
    leases: BTreeMap<LeaseKey, Since>,
    /// Leases have been missing for long enough, but the rows known at the last listing were too old: a scan and another
    /// listing decide.
    view_was_old: bool,
}

/// Since when a lease is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Since {
    at: Mono,
    /// The last scan to have begun then.
    scan: u64,
    /// From where its shard is to be read.
    start: Checkpoint,
    /// The moment from which the shard is read, if its start is a moment.
    began: Option<Wall>,
    /// It is the next one to be read: it need not be missing for `stream_lag`.
    due: bool,
}

impl Planned {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether another listing must follow the scan that has just ended, since the last listing found old rows. The
    /// answer is given once.
    pub(super) fn takes_old_view(&mut self) -> bool {
        std::mem::take(&mut self.view_was_old)
    }

    /// The due leases for which a listing must follow the whole scan `complete`, or an earlier scan; and since when
    /// each lease is planned.
    pub(super) fn due(&self, complete: u64) -> impl Iterator<Item = (&LeaseKey, Mono)> {
        let ready = move |since: &Since| since.due && complete > since.scan;
        let leases = self.leases.iter().filter(move |(_, since)| ready(since));
        leases.map(|(key, since)| (key, since.at))
    }
}

impl ShardSync {
    /// Creates the leases of an empty table.
    pub(super) fn create_all(&mut self, cx: &mut Context, leases: &LeaseTable, shards: &[Shard]) {
        let Some(plan) = self.plan(cx, leases, shards, true) else {
            // The list contradicts itself, and is begun anew.
            return;
        };
        debug_assert!(
            leases.of(self.stream).all(|lease| lease.row().is_none()),
            "only an empty table is filled"
        );
        // Leases made in an empty table are of this stream.
        cx.set_recognised(self.stream);
        // The filling of an empty table is right for a moment only: a worker that lists a little later may see children
        // where this listing shows their parents. Writes that do not succeed at once are decided anew.
        let expires = cx.now() + cx.config().table_timeout;
        self.planned.clear();
        self.contradicted.filled(cx, &plan);
        for mut planned in plan.create {
            planned.row.began = self.begins(cx, planned.row.checkpoint);
            create(cx, planned, expires);
        }
    }

    /// Creates the leases that a table with rows lacks. `deputy`: how much longer than the leader we wait.
    pub(in crate::worker) fn create_missing(
        &mut self, cx: &mut Context, leases: &LeaseTable, listed: &Listed, deputy: u32,
    ) {
        debug_assert!(cx.has_recognised(self.stream), "leases are created in a table of this stream");
        let Some(plan) = self.plan(cx, leases, &listed.shards, false) else {
            // The list contradicts itself, and is begun anew.
            return;
        };
        let left_out = self.contradicted.left_out(cx, leases, &listed.shards);
        let left_out: BTreeSet<LeaseKey> = left_out.into_iter().map(|planned| planned.row.key).collect();
        let now = cx.now();
        let expires = now + cx.config().lease_duration.times(2);
        // A single listing may lag, and show a child without its parent. A lease created beside existing leases must
        // have been missing for `stream_lag`; scans with the hole bring further listings. A due lease waits less. And
        // the view without the lease must be about as new as the listing: other workers may have created the lease,
        // or leases above the lease. From such leases another plan follows.
        let lag = cx.config().stream_lag;
        let fresh = leases.scans().is_as_new_as(listed.first_page_at, cx.poll_pause());
        let before = std::mem::take(&mut self.planned).leases;
        let stream = self.stream;
        let known = LazyCell::new(|| lease_table::known(leases, stream));
        let mut again_at = Mono::NEVER;
        // Where rows cover everything, a lease is missing only if the shards of some rows do not exist, or if it was left out.
        let possible =
            cx.absence_is_unread() || self.contradicted.denies_cover() || !self.is_covered(cx, leases);
        for mut planned in plan.create {
            let key = planned.row.key.clone();
            let since = Since {
                due: possible && orphans::is_due(&known, &listed.shards, &planned.row),
                ..self.planned_since(cx, leases, before.get(&key), planned.row.checkpoint)
            };
            let seen = leases.scans().complete() > since.scan;
            let possible = possible || left_out.contains(&planned.row.key);
            let patience = if since.due { orphans::patience(cx) } else { lag };
            let old = possible && now.since(since.at) >= patience;
            if old && seen && fresh {
                planned.row.began = since.began;
                create(cx, planned, expires);
                self.contradicted.wrote_rows(cx);
                continue;
            }
            if since.due {
                again_at = again_at.min(orphans::look_at(cx, since.at, deputy).max(now));
            }
            if old && !fresh {
                self.planned.view_was_old = true;
                again_at = now;
            }
            self.planned.leases.insert(key, since);
        }
        if again_at < Mono::NEVER {
            cx.request(Request::Rescan(again_at));
        }
        match self.planned.leases.is_empty() {
            true => self.contradicted.settled(),
            false => self.contradicted.waits(cx, !left_out.is_empty()),
        }
    }

    /// Since when a lease with this start has been planned. An earlier plan from another start does not count: the
    /// table had another shape.
    fn planned_since(
        &self, cx: &Context, leases: &LeaseTable, before: Option<&Since>, start: Checkpoint,
    ) -> Since {
        before.filter(|since| since.start == start).copied().unwrap_or_else(|| Since {
            at: cx.now(),
            // A scan under way has passed some keys already.
            scan: leases.scans().number(),
            start,
            began: self.begins_beside(cx, leases, start),
            due: false,
        })
    }

    /// The moment in a new row beside existing rows. A row in the place of denied rows gets the earliest moment of the denied rows.
    fn begins_beside(&self, cx: &Context, leases: &LeaseTable, start: Checkpoint) -> Option<Wall> {
        let now = self.begins(cx, start)?;
        let earlier = (start == Checkpoint::Latest).then(|| self.contradicted.began(leases)).flatten();
        Some(earlier.map_or(now, |earlier| earlier.min(now)))
    }

    /// The moment given to a row created now.
    fn begins(&self, cx: &Context, start: Checkpoint) -> Option<Wall> {
        began::given(start, cx.streams().initial_position(self.stream), cx.wall())
    }

    /// What is missing by a list of all shards. `None`: the list contradicts itself, and is begun anew.
    fn plan(&mut self, cx: &mut Context, leases: &LeaseTable, shards: &[Shard], empty: bool) -> Option<Plan> {
        let known = lease_table::known(leases, self.stream);
        let mut idle = leases.scans().occupied().clone();
        idle.extend(self.contradicted.hopeless().iter().cloned());
        let initial = cx.streams().initial_position(self.stream);
        let finished = cx.config().policies.finished;
        let mut plan = match sync::missing(&known, &idle, shards, initial, empty, finished) {
            Ok(plan) => plan,
            Err(error) => {
                self.listing.is_bad(cx, &error);
                return None;
            }
        };
        let left_out = match empty {
            true => Vec::new(),
            false => self.contradicted.left_out(cx, leases, shards),
        };
        for planned in left_out {
            if plan.create.iter().all(|known| known.row.key != planned.row.key) {
                plan.create.push(planned);
            }
        }
        self.listing.end();
        cx.notify(Notice::Planned { create: plan.create.len() as u32, shards: shards.len() as u32 });
        Some(plan)
    }
}

fn create(cx: &mut Context, planned: PlannedLease, expires: Mono) {
    debug_assert!(planned.row.owner.is_none(), "a row is created without an owner");
    debug_assert!(!planned.row.checkpoint.is_end(), "a row is created for a shard that is to be read");
    let change = Change::Create(Box::new(planned.row));
    cx.write_row(change, planned.reason, None, expires);
}
