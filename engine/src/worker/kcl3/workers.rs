//! The fleet of KCL 3.x, as its rows show the fleet: the live workers, the leader, and the version whose rules all
//! workers follow.
//!
//! The rows lie in the lease table, or in two tables beside the lease table. During a move between the two places,
//! workers report in either. For the leader's lock and for the version, the tables beside decide, for as long as they
//! are in use.
//!
//! A worker lives if its row changes, by our own clock. A row seen for the first time is judged by the time in the row,
//! and is as old as that time says: a dead worker must not count for longer than its report, and a live worker must not
//! be overlooked. The same is true of a row that changed while this worker did not look, because this worker stood
//! still or its scans failed: the other worker may have reported, and died, long before the scan that shows the row.
//! But the row is no older than the last look.

use super::standing::Standing;
use crate::fleet::{
    FORGET_AFTER, FleetLeader, FleetRow, FleetState, FleetTable, FleetVersion, FleetWorker,
    MIGRATION_NOTICED, TableMigration, WORKER_EXPIRY, seconds,
};
use crate::ids::WorkerId;
use crate::leader_assignment::{Rules, age_of, is_fresh, rules, whole_seconds};
use crate::row::{HandsOver, LeaseRow};
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenWorker {
    row: FleetWorker,
    /// Until when the worker of this row counts as alive.
    until: Mono,
    /// When the last scan with this row requested the row.
    asked: Mono,
    /// All leases of its own have expired since. KCL's leader takes it for alive for a minute more, and goes on to assign leases to it.
    dead: bool,
    /// A lease of its own is not expired. A clock that is wrong, ours or the worker's, makes a report look old.
    owns: bool,
    /// A renewal of one of these leases was seen. A row that is new to us may be of a dead worker.
    renews: bool,
    /// Since when rows have named this worker of ours, and no row shows a take by the worker.
    untaken_since: Option<Mono>,
    seen_by: u64,
}

impl SeenWorker {
    /// Whether the worker lives for certain: a report or a renewal of its own was seen lately.
    fn surely_lives(&self, now: Mono) -> bool {
        !self.dead && (now < self.until || self.owns && self.renews)
    }

    fn lives(&self, now: Mono) -> bool {
        !self.dead && (now < self.until || self.owns)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenLeader {
    row: FleetLeader,
    since: Mono,
    /// When the last scan with this row requested the row.
    asked: Mono,
    seen_by: u64,
}

/// The rows of one place: of the lease table, or of the two tables beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Rows {
    workers: BTreeMap<WorkerId, SeenWorker>,
    leader: Option<SeenLeader>,
    state: Option<(FleetState, u64)>,
    migration: Option<(TableMigration, u64)>,
}

/// What the scans have shown of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Kcl3Workers {
    here: Rows,
    /// The rows of the tables beside the lease table. `None`: the tables do not exist, or are used no more.
    beside: Option<Rows>,
    /// When the last whole look at these was begun.
    looked_at: Mono,
    /// When a migration was seen to end. `None`: the migration ended before this worker looked, or has not ended.
    migrated_at: Option<Mono>,
    /// Since when no leader has had a lock. `NEVER` while a leader has a lock, or before the first look for a lock.
    leaderless_since: Option<Mono>,
    rules: Rules,
    /// A question about the tables beside was answered.
    looked: bool,
}

/// Whether this worker looks at the tables beside the lease table at all.
pub(super) fn looks_beside(cx: &Context) -> bool {
    let config = cx.config();
    let fits = |table| config.fleet_table_length(table) <= 255;
    config.fleet_tables && config.policies.are_kcls() && FleetTable::ALL.into_iter().all(fits)
}

/// How long a row must have stood still before its owner counts as dead, where a leader assigns leases.
///
/// A worker of KCL looks for its assignments once in a lease duration (half of the interval of assignment). It renews
/// an assigned lease for the first time a third of a lease duration later. One and a half durations are not enough on a
/// busy machine.
pub(in crate::worker) fn silence(cx: &Context) -> Span {
    cx.config().lease_duration.scaled(5, 2)
}

/// The same for the owner in this row. An owner whose row says that it hands the lease over is a worker of this
/// library, and has taken the lease: it renews the lease.
pub(in crate::worker) fn silence_of(cx: &Context, row: &LeaseRow) -> Span {
    match row.hands_over {
        HandsOver::Yes => cx.config().lease_duration,
        HandsOver::No | HandsOver::Later => silence(cx),
    }
}

impl Rows {
    fn observe(&mut self, cx: &Context, number: u64, asked: Mono, row: FleetRow) {
        match row {
            FleetRow::Worker(row) => self.see_worker(cx, number, asked, row),
            FleetRow::Leader(row) => {
                let same = self.leader.as_ref().filter(|seen| seen.row == row);
                let since = same.map_or(cx.now(), |seen| seen.since);
                self.leader = Some(SeenLeader { row, since, asked, seen_by: number });
            }
            FleetRow::Version(state) => self.state = Some((state, number)),
            FleetRow::Tables(migration) => self.migration = Some((migration, number)),
        }
    }

    fn see_worker(&mut self, cx: &Context, number: u64, asked: Mono, row: FleetWorker) {
        let known = self.workers.get(&row.id);
        let same = known.filter(|seen| seen.row.at == row.at);
        let seen = SeenWorker {
            until: same.map_or_else(|| counts_until(cx, known, &row), |seen| seen.until),
            dead: same.is_some_and(|seen| seen.dead),
            owns: known.is_some_and(|seen| seen.owns),
            renews: known.is_some_and(|seen| seen.renews),
            untaken_since: same.and_then(|seen| seen.untaken_since),
            asked: known.map_or(asked, |seen| seen.asked.max(asked)),
            seen_by: number,
            row,
        };
        self.workers.insert(seen.row.id.clone(), seen);
    }

    /// Forgets the rows not shown by the look of this number.
    fn forget_before(&mut self, number: u64) {
        self.workers.retain(|_, seen| seen.seen_by >= number);
        self.leader.take_if(|seen| seen.seen_by < number);
        self.state.take_if(|(_, seen_by)| *seen_by < number);
        self.migration.take_if(|(_, seen_by)| *seen_by < number);
    }

    fn stale(&self, now: Mono, oldest: i64) -> Option<&FleetWorker> {
        // A clock may be wrong by a day. A report's changes from scan to scan show that its worker lives.
        let dead = |seen: &&SeenWorker| !seen.lives(now) && seen.until <= now && seen.row.at < oldest;
        self.workers.values().find(dead).map(|seen| &seen.row)
    }

    /// A report of a dead worker of this library, by which the worker still counts as alive: by the time of the
    /// report's last change, or by the time in the report, which may lie far ahead.
    fn misleading(&self, now: Mono, wall: Wall) -> Option<&FleetWorker> {
        let counts = |seen: &&SeenWorker| now < seen.until || is_fresh(&seen.row, wall);
        let mut dead = self.workers.values().filter(|seen| seen.dead && seen.row.ours);
        dead.find(counts).map(|seen| &seen.row)
    }
}

impl Kcl3Workers {
    /// Takes note of a row of the lease table, shown by the scan of this number. `asked`: when the scan requested the
    /// row.
    pub(in crate::worker) fn observe(&mut self, cx: &Context, scan: u64, asked: Mono, row: FleetRow) {
        let before = self.version().cloned();
        self.here.observe(cx, scan, asked, row);
        self.note_migration(cx, before.as_ref());
    }

    /// Takes note of the rows shown by the look of this number at the tables beside. Whether the leader, the rules or
    /// the live workers have changed. `asked`: when the look requested the rows.
    pub(in crate::worker) fn looked(
        &mut self, cx: &Context, look: u64, asked: Mono, rows: Vec<FleetRow>,
    ) -> bool {
        let before = self.told(cx.now());
        self.looked_at = asked;
        let beside = self.beside.get_or_insert_default();
        for row in rows {
            beside.observe(cx, look, asked, row);
        }
        beside.forget_before(look);
        self.note_leader(cx);
        self.note_migration(cx, before.0.as_ref());
        self.told(cx.now()) != before
    }

    /// The tables beside are not there, or are used no more.
    pub(in crate::worker) fn leave_tables_beside(&mut self, cx: &Context) {
        self.beside = None;
        self.leaderless_since = None;
        self.note_leader(cx);
    }

    /// Whether the lease table may be scanned: where tables beside are read, this worker has looked at these tables
    /// first.
    pub(in crate::worker) fn has_looked(&self, cx: &Context) -> bool {
        cx.is_booted() && (self.looked || !looks_beside(cx))
    }

    /// Takes note that a question about the tables beside was answered.
    pub(super) fn note_looked(&mut self) {
        self.looked = true;
    }

    /// Whether the tables beside the lease table are in use.
    pub(in crate::worker) fn has_tables_beside(&self) -> bool {
        self.beside.is_some()
    }

    /// What others are to be told at once.
    fn told(&self, now: Mono) -> (Option<FleetVersion>, Option<WorkerId>, Vec<WorkerId>) {
        let leader = self.leader().map(|(lock, _)| lock.id.clone());
        let live = self.live(now).map(|worker| worker.id.clone()).collect();
        (self.version().cloned(), leader, live)
    }

    fn note_leader(&mut self, cx: &Context) {
        self.leaderless_since = match self.leader() {
            Some((lock, _)) if !lock.released => None,
            _ => Some(self.leaderless_since.unwrap_or(cx.now())),
        };
    }

    /// Whether some worker reports, or has reported.
    pub(in crate::worker) fn has_reports(&self) -> bool {
        let places = [Some(&self.here), self.beside.as_ref()].into_iter().flatten();
        places.into_iter().any(|rows| !rows.workers.is_empty())
    }

    /// Takes note of the evidence about each worker in the rows of its leases.
    ///
    /// A worker of this library soon takes an assigned lease, and the row shows the take. A leader of KCL that goes by
    /// the report of a dead worker assigns a lease to that worker again and again, so that the row never stands still
    /// for long. The worker is dead if rows have named the worker for `silence`, and no row shows a take.
    pub(in crate::worker) fn note_owners(&mut self, cx: &Context, standings: &BTreeMap<WorkerId, Standing>) {
        let now = cx.now();
        for rows in [Some(&mut self.here), self.beside.as_mut()].into_iter().flatten() {
            for (id, seen) in &mut rows.workers {
                let standing = standings.get(id);
                // A take or a renewal by a worker of this library leaves a mark in the row. KCL's leader may have
                // written any other change.
                seen.owns = standing.is_some_and(|standing| match seen.row.ours {
                    true => standing.takes(),
                    false => standing.owns(),
                });
                seen.renews = standing.is_some_and(|standing| standing.renews());
                let takes_none = standing.is_some_and(|standing| !standing.takes());
                let waits = seen.row.ours && id != cx.me() && takes_none;
                seen.untaken_since = waits.then(|| seen.untaken_since.unwrap_or(now));
                let waits_long = seen.untaken_since.is_some_and(|since| now.since(since) >= silence(cx));
                let silent = standing.is_some_and(|standing| standing.is_dead());
                // Who renews again lives.
                seen.dead = !seen.owns && (seen.dead || waits_long || silent);
            }
        }
    }

    /// A whole scan of this number has ended: rows not shown by the scan are gone.
    pub(in crate::worker) fn scanned(&mut self, cx: &Context, scan: u64) {
        self.here.forget_before(scan);
        self.note_leader(cx);
        // If the last look is long ago, as after a standstill of this worker, workers of KCL may have come since.
        let unsure =
            self.beside.is_some() && cx.now().since(self.looked_at) > cx.config().scan_interval.times(2);
        let others_live = self.others().next().is_some() || unsure;
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

    /// The version whose rules the fleet follows. While the fleet moves from three tables to one, the row is in either.
    pub(in crate::worker) fn version(&self) -> Option<&FleetVersion> {
        self.state().map(|state| &state.version)
    }

    /// The same, and how the fleet came to it.
    pub(in crate::worker) fn state(&self) -> Option<&FleetState> {
        let beside = self.beside.as_ref().and_then(|rows| rows.state.as_ref());
        let state = beside.or(self.here.state.as_ref());
        state.map(|(state, _)| state)
    }

    /// The table with the row of the version, if not the lease table.
    pub(in crate::worker) fn state_table(&self) -> Option<FleetTable> {
        let beside = self.beside.as_ref().and_then(|rows| rows.state.as_ref());
        beside.map(|_| FleetTable::Coordinator)
    }

    /// Whether a migration has just ended: some workers of KCL may not have noticed the end yet, and so do not look for
    /// the leases assigned to them by a leader.
    pub(in crate::worker) fn is_migrating(&self, now: Mono) -> bool {
        self.migrated_at.is_some_and(|at| now.since(at) < MIGRATION_NOTICED)
    }

    /// Takes note of the moment at which a migration is seen to have ended.
    fn note_migration(&mut self, cx: &Context, before: Option<&FleetVersion>) {
        let migrates = |version| version == Some(&FleetVersion::UpgradeFrom2x);
        if migrates(before) && self.version().is_some() && !migrates(self.version()) {
            self.migrated_at = Some(cx.now());
        }
    }

    /// Whether this worker has reported lately.
    pub(in crate::worker) fn reports(&self, id: &WorkerId, now: Mono) -> bool {
        let places = [Some(&self.here), self.beside.as_ref()].into_iter().flatten();
        let mut seen = places.filter_map(|rows| rows.workers.get(id));
        seen.any(|seen| now < seen.until)
    }

    /// Whether no table has a report of this worker, not even an old report. A stopping worker of this library removes
    /// its report.
    pub(in crate::worker) fn has_left(&self, id: &WorkerId) -> bool {
        let mut places = [Some(&self.here), self.beside.as_ref()].into_iter().flatten();
        places.all(|rows| !rows.workers.contains_key(id))
    }

    /// Whether all reports of live workers were requested at this moment or later. `scanned`: the begin of the scan
    /// compared with these reports.
    pub(in crate::worker) fn is_as_new_as(&self, scanned: Mono) -> bool {
        self.beside.is_none() || self.looked_at >= scanned
    }

    /// Whether the lease table has such a row.
    pub(in crate::worker) fn has_version_here(&self) -> bool {
        self.here.state.is_some()
    }

    /// How far the fleet has moved from three tables to one, if the fleet has three.
    fn migration(&self) -> Option<&TableMigration> {
        let row = self.beside.as_ref()?.migration.as_ref();
        row.map(|(migration, _)| migration)
    }

    /// The table with the leader's lock, if that is not the lease table.
    pub(in crate::worker) fn lock_table(&self) -> Option<FleetTable> {
        self.beside.is_some().then_some(FleetTable::Coordinator)
    }

    /// This worker's table for reports, if not the lease table. Every worker that may lead reads this table.
    pub(in crate::worker) fn report_table(&self) -> Option<FleetTable> {
        let all_read_all = self.others().all(|worker| worker.one_table);
        let here = match self.migration() {
            None | Some(TableMigration::Init) => false,
            // A worker of KCL 3.0 to 3.4 may have come back.
            Some(TableMigration::Deployed | TableMigration::Pending | TableMigration::Complete) => {
                all_read_all
            }
            // Where the others do.
            Some(TableMigration::Unknown(_)) => {
                let beside = self.beside.iter().flat_map(|rows| rows.workers.values());
                let mut live = beside.filter(|seen| seen.lives(self.looked_at) && !seen.row.ours);
                live.next().is_none() && self.others().next().is_some()
            }
        };
        (self.beside.is_some() && !here).then_some(FleetTable::Workers)
    }

    /// Whether a worker of this library may lead. Only workers that know the move from three tables to one lead a fleet
    /// through the move: under a leader of this library the move would end.
    pub(in crate::worker) fn may_be_led_by_us(&self) -> bool {
        let moves = self.beside.is_some() && self.others().any(|worker| worker.one_table);
        !moves && !matches!(self.migration(), Some(TableMigration::Unknown(_)))
    }

    /// The lock of a leader, and for how long it is known to have stood still.
    pub(in crate::worker) fn leader(&self) -> Option<(&FleetLeader, Span)> {
        let rows = self.beside.as_ref().unwrap_or(&self.here);
        let leader = rows.leader.as_ref();
        leader.map(|seen| (&seen.row, seen.asked.since(seen.since)))
    }

    /// Whether no worker leads, as far as is known: no lock exists, the lock has run out, or its holder is dead. By the
    /// rules of an unknown version, a leader may lead without a lock. A leader that has just begun may not have
    /// reported yet: a lock that has changed within `silence` belongs to a live worker.
    pub(in crate::worker) fn is_leaderless(&self, silence: Span) -> bool {
        if matches!(self.version(), Some(FleetVersion::Unknown(_))) {
            return false;
        }
        let Some((lock, stood)) = self.leader().filter(|(lock, _)| !lock.released) else {
            return true;
        };
        // A failure to read the tables proves nothing about live workers.
        let mut live = self.live_when_read();
        stood > lock.lasts() || stood >= silence && !live.any(|worker| worker.id == lock.id)
    }

    /// Since when there has been no lock of a leader.
    pub(in crate::worker) fn leaderless_since(&self) -> Option<Mono> {
        self.leaderless_since
    }

    /// The reports of live workers, one report of each worker.
    pub(in crate::worker) fn live(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        self.live_as_of(move |_| now)
    }

    /// The reports of workers that live for certain: a leader assigns leases to no other worker.
    pub(in crate::worker) fn surely_live(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        let sure =
            move |rows: &Rows, id: &WorkerId| rows.workers.get(id).is_some_and(|seen| seen.surely_lives(now));
        let places = move |id: &WorkerId| {
            sure(&self.here, id) || self.beside.as_ref().is_some_and(|rows| sure(rows, id))
        };
        self.live(now).filter(move |worker| places(&worker.id))
    }

    /// The reports of workers that lived when the last look at each report was begun. A look may begin before a
    /// standstill of this worker and end after the standstill, and a table may be unreadable for a while.
    fn live_when_read(&self) -> impl Iterator<Item = &FleetWorker> {
        self.live_as_of(|seen| seen.asked)
    }

    /// The reports of workers alive at the moment that `at` names for each report.
    fn live_as_of(&self, at: impl Fn(&SeenWorker) -> Mono + Copy) -> impl Iterator<Item = &FleetWorker> {
        let lives = move |seen: &SeenWorker| seen.lives(at(seen));
        let here = move |id: &WorkerId| self.here.workers.get(id).is_some_and(lives);
        let beside = self.beside.iter().flat_map(|rows| rows.workers.values());
        let beside = beside.filter(move |seen| lives(seen) && !here(&seen.row.id));
        let all = self.here.workers.values().filter(move |seen| lives(seen));
        all.chain(beside).map(|seen| &seen.row)
    }

    /// The reports of workers of other libraries. These workers lived when their reports were last read: a failure to
    /// read the tables makes no fleet leaderless.
    fn others(&self) -> impl Iterator<Item = &FleetWorker> {
        self.live_when_read().filter(|worker| !worker.ours)
    }

    /// Whether workers of other libraries report metrics of their hosts.
    pub(in crate::worker) fn measures(&self) -> bool {
        self.others().any(|worker| !worker.metrics.is_empty())
    }

    /// A report of a dead worker of this library, with its table. KCL's leader would go by the report for a minute, and
    /// assign leases to the dead worker.
    pub(in crate::worker) fn misleading(&self, cx: &Context) -> Option<(Option<FleetTable>, &FleetWorker)> {
        let (now, wall) = (cx.now(), cx.wall());
        let here = self.here.misleading(now, wall).map(|worker| (None, worker));
        let beside = || self.beside.as_ref()?.misleading(now, wall);
        here.or_else(|| beside().map(|worker| (Some(FleetTable::Workers), worker)))
    }

    /// A report old enough to be removed, with its table, if not the lease table.
    pub(in crate::worker) fn stale(&self, cx: &Context) -> Option<(Option<FleetTable>, &FleetWorker)> {
        let oldest = seconds(cx.wall()).saturating_sub(whole_seconds(FORGET_AFTER));
        let now = cx.now();
        let here = self.here.stale(now, oldest).map(|worker| (None, worker));
        let beside = || self.beside.as_ref()?.stale(now, oldest);
        here.or_else(|| beside().map(|worker| (Some(FleetTable::Workers), worker)))
    }
}

/// Until when a worker counts as alive, by a report that is new to us.
fn counts_until(cx: &Context, before: Option<&SeenWorker>, report: &FleetWorker) -> Mono {
    let told = age_of(report, cx.wall()).max(ahead_of(report, cx.wall()));
    let age = before.map_or(told, |before| {
        // While scans follow each other in time, the change alone counts, whatever the clock of the report's worker
        // shows.
        let unseen = cx.now().since(before.asked).0;
        told.min(Span(unseen.saturating_sub(cx.config().scan_interval.0)))
    });
    cx.now() + Span(WORKER_EXPIRY.0.saturating_sub(age.0))
}

/// By how much the time in a report lies ahead of our clock. For a report seen for the first time, either of the two
/// clocks may be wrong: the report may be as old as this difference.
fn ahead_of(report: &FleetWorker, now: Wall) -> Span {
    let ahead = report.at.saturating_sub(seconds(now)).max(0);
    Span(ahead.unsigned_abs().saturating_mul(1_000_000))
}
