//! The fleet of KCL 3.x, as its rows in the table show it: which workers live, which one leads, and by the rules of which version
//! all work.
//!
//! Whether a worker lives is judged by whether its row changes, on our own clock. A row that is seen for the first time is
//! judged by the time in it, and is as old as that says: a worker that died must not count for longer than its report, and a
//! live one must not be overlooked. The same is true of a row that has changed while this worker did not look, because it stood still or its
//! scans failed: its worker may have reported, and died, long before the scan that shows it. But it is no older than the last
//! look.

use crate::fleet::{
    FORGET_AFTER, FleetLeader, FleetRow, FleetState, FleetVersion, FleetWorker, MIGRATION_NOTICED,
    WORKER_EXPIRY, seconds,
};
use crate::ids::WorkerId;
use crate::share_out::{Rules, age_of, rules, whole_seconds};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenWorker {
    row: FleetWorker,
    /// Until when its worker counts as one that lives.
    until: Mono,
    /// When the last scan that showed the row asked for it.
    asked: Mono,
    /// A lease of its own has expired since. KCL's leader takes it for alive for a minute more, and goes on to assign leases to it.
    dead: bool,
    seen_by: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenLeader {
    row: FleetLeader,
    since: Mono,
    seen_by: u64,
}

/// What the scans have shown of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Fleet {
    workers: BTreeMap<WorkerId, SeenWorker>,
    leader: Option<SeenLeader>,
    state: Option<(FleetState, u64)>,
    /// When a migration was seen to have ended; none: it had before this worker looked, or has not.
    migrated_at: Option<Mono>,
    /// Since when there has been no lock of a leader; `NEVER` while there is one, or none was looked for.
    leaderless_since: Option<Mono>,
    rules: Rules,
}

/// How long a row must have stood still so that its owner counts as dead where a leader assigns leases. A worker of KCL looks for what was
/// assigned to it once in a lease duration (half of the interval of assignment), and renews it for the first time a third of one
/// later. One and a half are not enough on a busy machine.
pub(in crate::worker) fn silence(cx: &Context) -> Span {
    cx.config().lease_duration.scaled(5, 2)
}

impl Fleet {
    /// Takes note of a row that the scan of this number showed. `asked`: when it asked for it.
    pub(in crate::worker) fn observe(&mut self, cx: &Context, scan: u64, asked: Mono, row: FleetRow) {
        match row {
            FleetRow::Worker(row) => self.see_worker(cx, scan, asked, row),
            FleetRow::Leader(row) => {
                let same = self.leader.as_ref().filter(|seen| seen.row == row);
                let since = same.map_or(cx.now(), |seen| seen.since);
                self.leader = Some(SeenLeader {
                    row,
                    since,
                    seen_by: scan,
                });
            }
            FleetRow::Version(state) => self.see_state(cx, scan, state),
        }
    }

    fn see_worker(&mut self, cx: &Context, scan: u64, asked: Mono, row: FleetWorker) {
        let known = self.workers.get(&row.id);
        let same = known.filter(|seen| seen.row.at == row.at);
        let seen = SeenWorker {
            until: same.map_or_else(|| counts_until(cx, known, &row), |seen| seen.until),
            dead: same.is_some_and(|seen| seen.dead),
            asked: known.map_or(asked, |seen| seen.asked.max(asked)),
            seen_by: scan,
            row,
        };
        self.workers.insert(seen.row.id.clone(), seen);
    }

    fn see_state(&mut self, cx: &Context, scan: u64, state: FleetState) {
        if self.version() == Some(&FleetVersion::UpgradeFrom2x)
            && state.version != FleetVersion::UpgradeFrom2x
        {
            self.migrated_at = Some(cx.now());
        }
        self.state = Some((state, scan));
    }

    /// A lease of this worker has expired: it is dead, until it reports again.
    pub(super) fn let_expire(&mut self, id: &WorkerId) {
        if let Some(seen) = self.workers.get_mut(id) {
            seen.dead = true;
        }
    }

    /// A whole scan of this number has ended: what it did not show is gone.
    pub(in crate::worker) fn scanned(&mut self, cx: &Context, scan: u64) {
        self.workers.retain(|_, seen| seen.seen_by >= scan);
        self.leader.take_if(|seen| seen.seen_by < scan);
        self.state.take_if(|(_, seen_by)| *seen_by < scan);
        self.leaderless_since = match &self.leader {
            Some(seen) if !seen.row.released => None,
            _ => Some(self.leaderless_since.unwrap_or(cx.now())),
        };
        let others_live = self.others(cx.now()).next().is_some();
        self.rules = rules(self.version(), others_live);
    }

    /// How this worker comes by leases.
    pub(in crate::worker) fn rules(&self) -> Rules {
        self.rules
    }

    /// Whether a leader assigns leases.
    pub(in crate::worker) fn is_led(&self) -> bool {
        self.rules == Rules::Led
    }

    /// The version by whose rules the fleet works.
    pub(in crate::worker) fn version(&self) -> Option<&FleetVersion> {
        self.state().map(|state| &state.version)
    }

    /// The same, and how the fleet came to it.
    pub(in crate::worker) fn state(&self) -> Option<&FleetState> {
        self.state.as_ref().map(|(state, _)| state)
    }

    /// Whether a migration has ended just now: there may be workers of KCL that have not noticed it, and do not look for what a leader
    /// assigns to them.
    pub(in crate::worker) fn is_migrating(&self, now: Mono) -> bool {
        self.migrated_at
            .is_some_and(|at| now.since(at) < MIGRATION_NOTICED)
    }

    /// Whether this worker has reported lately.
    pub(in crate::worker) fn reports(&self, id: &WorkerId, now: Mono) -> bool {
        let seen = self.workers.get(id);
        seen.is_some_and(|seen| now < seen.until)
    }

    /// The lock of a leader, and since when it has been as it is.
    pub(in crate::worker) fn leader(&self) -> Option<(&FleetLeader, Mono)> {
        self.leader.as_ref().map(|seen| (&seen.row, seen.since))
    }

    /// Since when there has been no lock of a leader.
    pub(in crate::worker) fn leaderless_since(&self) -> Option<Mono> {
        self.leaderless_since
    }

    /// The reports of workers that live.
    pub(in crate::worker) fn live(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        let lives = move |seen: &&SeenWorker| !seen.dead && now < seen.until;
        self.workers.values().filter(lives).map(|seen| &seen.row)
    }

    /// Those of workers of other libraries.
    fn others(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        self.live(now).filter(|worker| !worker.ours)
    }

    /// Whether workers of other libraries report what they measure of their hosts.
    pub(in crate::worker) fn measures(&self, now: Mono) -> bool {
        self.others(now).any(|worker| !worker.metrics.is_empty())
    }

    /// A report that is so old that it is removed.
    pub(in crate::worker) fn stale(&self, cx: &Context) -> Option<&FleetWorker> {
        let oldest = seconds(cx.wall()).saturating_sub(whole_seconds(FORGET_AFTER));
        // A clock may be wrong by a day. That a report changes from scan to scan shows that its worker lives.
        let dead = |seen: &&SeenWorker| seen.until <= cx.now() && seen.row.at < oldest;
        self.workers.values().find(dead).map(|seen| &seen.row)
    }
}

/// Until when a worker counts as one that lives, by a report that is new to us.
fn counts_until(cx: &Context, before: Option<&SeenWorker>, report: &FleetWorker) -> Mono {
    let told = age_of(report, cx.wall());
    let age = before.map_or(told, |before| {
        // While scans follow each other as they should, the change alone counts, whatever the clock of its worker shows.
        let unseen = cx.now().since(before.asked).0;
        told.min(Span(unseen.saturating_sub(cx.config().scan_interval.0)))
    });
    cx.now() + Span(WORKER_EXPIRY.0.saturating_sub(age.0))
}
