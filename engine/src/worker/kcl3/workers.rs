//! The fleet of KCL 3.x, as its rows show it: which workers live, which one leads, and by the rules of which version
//! all work.
//!
//! The rows lie in the lease table, or in two tables beside it, or are on their way from there: then workers report in either. What
//! holds of the leader's lock and of the version is what the tables beside say, for as long as they are in use.
//!
//! Whether a worker lives is judged by whether its row changes, on our own clock. A row that is seen for the first time is
//! judged by the time in it, and is as old as that says: a worker that died must not count for longer than its report, and a
//! live one must not be overlooked. The same is true of a row that has changed while this worker did not look, because it stood still or its
//! scans failed: its worker may have reported, and died, long before the scan that shows it. But it is no older than the last
//! look.

use crate::fleet::{
    FORGET_AFTER, FleetLeader, FleetRow, FleetState, FleetTable, FleetVersion, FleetWorker,
    MIGRATION_NOTICED, TableMigration, WORKER_EXPIRY, seconds,
};
use crate::ids::WorkerId;
use crate::row::{HandsOver, LeaseRow};
use crate::share_out::{Rules, age_of, is_fresh, rules, whole_seconds};
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenWorker {
    row: FleetWorker,
    /// Until when its worker counts as one that lives.
    until: Mono,
    /// When the last scan that showed the row asked for it.
    asked: Mono,
    /// All leases of its own have expired since. KCL's leader takes it for alive for a minute more, and goes on to assign leases to it.
    dead: bool,
    /// A lease of its own is not expired. A clock that is wrong, ours or the worker's, makes a report look old.
    owns: bool,
    /// Since when rows have named this worker of ours, and no row shows a take by the worker.
    untaken_since: Option<Mono>,
    seen_by: u64,
}

impl SeenWorker {
    fn lives(&self, now: Mono) -> bool {
        !self.dead && (now < self.until || self.owns)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeenLeader {
    row: FleetLeader,
    since: Mono,
    /// When the last scan that showed the row asked for it.
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

/// What the rows of its leases tell of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::worker) struct Standing {
    /// It has renewed a lease lately.
    owns: bool,
    /// The row of a fresh lease shows a take by the worker.
    takes: bool,
    /// A lease of its own has expired.
    silent: bool,
}

impl Standing {
    /// Of leases that are plainly its own.
    pub(in crate::worker) fn of_plain(takes: bool) -> Self {
        Self { owns: true, takes, silent: false }
    }

    /// Of leases that have all expired.
    #[cfg(test)]
    pub(in crate::worker) fn of_silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// A row that names it. `renewed`: by it, as far as is known. `lately`: the row has changed.
    pub(in crate::worker) fn add(&mut self, row: &LeaseRow, renewed: bool, lately: bool) {
        let takes = !row.hands_over.is_no();
        self.owns |= lately && (renewed || takes);
        self.takes |= lately && takes;
        self.silent |= !lately;
    }

    /// Whether the worker has let all of its leases expire, and so is dead. One lease alone may be late where the table throttles.
    fn is_dead(self) -> bool {
        self.silent && !self.owns
    }
}

/// What the scans have shown of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Kcl3Workers {
    here: Rows,
    /// What the tables beside the lease table show; absent: there are none, or they are used no more.
    beside: Option<Rows>,
    /// When the last whole look at these was begun.
    looked_at: Mono,
    /// When a migration was seen to have ended; none: it had before this worker looked, or has not.
    migrated_at: Option<Mono>,
    /// Since when there has been no lock of a leader; `NEVER` while there is one, or none was looked for.
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

/// How long a row must have stood still so that its owner counts as dead where a leader assigns leases.
///
/// A worker of KCL looks for what was assigned to it once in a lease duration (half of the interval of assignment), and renews it for the
/// first time a third of one later. One and a half are not enough on a busy machine.
pub(in crate::worker) fn silence(cx: &Context) -> Span {
    cx.config().lease_duration.scaled(5, 2)
}

/// The same for the owner that this row names. An owner that has written that it hands the lease over is a worker of ours that has taken
/// the lease: it renews it.
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
            untaken_since: same.and_then(|seen| seen.untaken_since),
            asked: known.map_or(asked, |seen| seen.asked.max(asked)),
            seen_by: number,
            row,
        };
        self.workers.insert(seen.row.id.clone(), seen);
    }

    /// What the look of this number did not show is gone.
    fn forget_before(&mut self, number: u64) {
        self.workers.retain(|_, seen| seen.seen_by >= number);
        self.leader.take_if(|seen| seen.seen_by < number);
        self.state.take_if(|(_, seen_by)| *seen_by < number);
        self.migration.take_if(|(_, seen_by)| *seen_by < number);
    }

    fn stale(&self, now: Mono, oldest: i64) -> Option<&FleetWorker> {
        // A clock may be wrong by a day. That a report changes from scan to scan shows that its worker lives.
        let dead = |seen: &&SeenWorker| !seen.lives(now) && seen.until <= now && seen.row.at < oldest;
        self.workers.values().find(dead).map(|seen| &seen.row)
    }

    /// A report of a worker of ours that is dead, and by which the worker counts as one that lives: by when the report changed, or by the time
    /// in it, which may lie far ahead.
    fn misleading(&self, now: Mono, wall: Wall) -> Option<&FleetWorker> {
        let counts = |seen: &&SeenWorker| now < seen.until || is_fresh(&seen.row, wall);
        let mut dead = self.workers.values().filter(|seen| seen.dead && seen.row.ours);
        dead.find(counts).map(|seen| &seen.row)
    }
}

impl Kcl3Workers {
    /// Takes note of a row of the lease table that the scan of this number showed. `asked`: when it asked for it.
    pub(in crate::worker) fn observe(&mut self, cx: &Context, scan: u64, asked: Mono, row: FleetRow) {
        let before = self.version().cloned();
        self.here.observe(cx, scan, asked, row);
        self.note_migration(cx, before.as_ref());
    }

    /// Takes note of what the look of this number at the tables beside showed. Whether something is new of who leads, by which rules, or
    /// which workers live. `asked`: when it asked for them.
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

    /// Whether the lease table may be scanned: a worker that looks at the tables beside has looked there first.
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

    /// What the rows of its leases tell of each worker.
    ///
    /// A worker of ours soon takes an assigned lease, and the row shows the take. A leader of KCL that goes by the report of a dead worker assigns a
    /// lease to it again and again, so that the row never stands still for long: the worker is dead if rows have named it for `silence`, and
    /// none shows a take.
    pub(in crate::worker) fn note_owners(&mut self, cx: &Context, standings: &BTreeMap<WorkerId, Standing>) {
        let now = cx.now();
        for rows in [Some(&mut self.here), self.beside.as_mut()].into_iter().flatten() {
            for (id, seen) in &mut rows.workers {
                let standing = standings.get(id);
                // A take or a renewal of ours leaves in the row that it was ours. KCL's leader may have written any other change.
                seen.owns = standing.is_some_and(|standing| match seen.row.ours {
                    true => standing.takes,
                    false => standing.owns,
                });
                let takes_none = standing.is_some_and(|standing| !standing.takes);
                let waits = seen.row.ours && id != cx.me() && takes_none;
                seen.untaken_since = waits.then(|| seen.untaken_since.unwrap_or(now));
                let waits_long = seen.untaken_since.is_some_and(|since| now.since(since) >= silence(cx));
                let silent = standing.is_some_and(|standing| standing.is_dead());
                // Who renews again lives.
                seen.dead = !seen.owns && (seen.dead || waits_long || silent);
            }
        }
    }

    /// A whole scan of this number has ended: what it did not show is gone. `others_own`: whether workers of other libraries own leases.
    pub(in crate::worker) fn scanned(&mut self, cx: &Context, scan: u64, others_own: bool) {
        self.here.forget_before(scan);
        self.note_leader(cx);
        // After a look that is long ago, as when the worker stood still, it is the leases that tell.
        let unsure =
            self.beside.is_some() && cx.now().since(self.looked_at) > cx.config().scan_interval.times(2);
        let others_live = self.others(cx.now()).next().is_some() || unsure && others_own;
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

    /// The version by whose rules the fleet works. On its way from three tables to one, the row is in either.
    pub(in crate::worker) fn version(&self) -> Option<&FleetVersion> {
        self.state().map(|state| &state.version)
    }

    /// The same, and how the fleet came to it.
    pub(in crate::worker) fn state(&self) -> Option<&FleetState> {
        let beside = self.beside.as_ref().and_then(|rows| rows.state.as_ref());
        let state = beside.or(self.here.state.as_ref());
        state.map(|(state, _)| state)
    }

    /// The table with that row, if that is not the lease table.
    pub(in crate::worker) fn state_table(&self) -> Option<FleetTable> {
        let beside = self.beside.as_ref().and_then(|rows| rows.state.as_ref());
        beside.map(|_| FleetTable::Coordinator)
    }

    /// Whether a migration has ended just now: there may be workers of KCL that have not noticed it, and do not look for what a leader
    /// assigns to them.
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

    /// Whether there is no report of this worker, not even an old one: it has taken it back, as a worker of ours does that stops.
    pub(in crate::worker) fn has_left(&self, id: &WorkerId) -> bool {
        let mut places = [Some(&self.here), self.beside.as_ref()].into_iter().flatten();
        places.all(|rows| !rows.workers.contains_key(id))
    }

    /// Whether all rows by which workers say that they live were asked for at this moment or later. `scanned`: when the scan began that
    /// is compared with them.
    pub(in crate::worker) fn is_as_new_as(&self, scanned: Mono) -> bool {
        self.beside.is_none() || self.looked_at >= scanned
    }

    /// Whether the lease table has such a row.
    pub(in crate::worker) fn has_version_here(&self) -> bool {
        self.here.state.is_some()
    }

    /// How far the fleet is on its way from three tables to one, if it has three.
    fn migration(&self) -> Option<&TableMigration> {
        let row = self.beside.as_ref()?.migration.as_ref();
        row.map(|(migration, _)| migration)
    }

    /// The table with the leader's lock, if that is not the lease table.
    pub(in crate::worker) fn lock_table(&self) -> Option<FleetTable> {
        self.beside.is_some().then_some(FleetTable::Coordinator)
    }

    /// The table that this worker reports in, if that is not the lease table: one that every worker reads that may lead.
    pub(in crate::worker) fn report_table(&self, now: Mono) -> Option<FleetTable> {
        let all_read_all = self.others(now).all(|worker| worker.one_table);
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
                live.next().is_none() && self.others(now).next().is_some()
            }
        };
        (self.beside.is_some() && !here).then_some(FleetTable::Workers)
    }

    /// Whether a worker of ours may lead. The way from three tables to one is led by workers that know it: it would end with ours.
    pub(in crate::worker) fn may_be_led_by_us(&self, now: Mono) -> bool {
        let moves = self.beside.is_some() && self.others(now).any(|worker| worker.one_table);
        !moves && !matches!(self.migration(), Some(TableMigration::Unknown(_)))
    }

    /// The lock of a leader, and for how long it is known to have stood still.
    pub(in crate::worker) fn leader(&self) -> Option<(&FleetLeader, Span)> {
        let rows = self.beside.as_ref().unwrap_or(&self.here);
        let leader = rows.leader.as_ref();
        leader.map(|seen| (&seen.row, seen.asked.since(seen.since)))
    }

    /// Whether nobody leads, as far as is known: there is no lock, it has run out, or the worker that has it is dead. By the rules of a
    /// version that is not known, there may be a leader without a lock. A leader that has just begun may not have reported yet: a lock that has
    /// changed within `silence` is of a worker that lives.
    pub(in crate::worker) fn is_leaderless(&self, now: Mono, silence: Span) -> bool {
        if matches!(self.version(), Some(FleetVersion::Unknown(_))) {
            return false;
        }
        let Some((lock, stood)) = self.leader().filter(|(lock, _)| !lock.released) else {
            return true;
        };
        // That the tables beside cannot be read says nothing of who lives.
        let looked_at = now.min(self.looked_at);
        let mut live = self.live_as_of(now, looked_at);
        stood > lock.lasts() || stood >= silence && !live.any(|worker| worker.id == lock.id)
    }

    /// Since when there has been no lock of a leader.
    pub(in crate::worker) fn leaderless_since(&self) -> Option<Mono> {
        self.leaderless_since
    }

    /// The reports of workers that live, one of each.
    pub(in crate::worker) fn live(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        self.live_as_of(now, now)
    }

    /// Those that live here at one moment, and beside at another.
    fn live_as_of(&self, now: Mono, looked_at: Mono) -> impl Iterator<Item = &FleetWorker> {
        let here = move |id: &WorkerId| self.here.workers.get(id).is_some_and(|seen| seen.lives(now));
        let beside = self.beside.iter().flat_map(|rows| rows.workers.values());
        let beside = beside.filter(move |seen| seen.lives(looked_at) && !here(&seen.row.id));
        let all = self.here.workers.values().filter(move |seen| seen.lives(now));
        all.chain(beside).map(|seen| &seen.row)
    }

    /// The reports of workers of other libraries that live, or lived when the tables beside could last be read: that they cannot be read
    /// makes no fleet one without a leader.
    fn others(&self, now: Mono) -> impl Iterator<Item = &FleetWorker> {
        let live = self.live_as_of(now, now.min(self.looked_at));
        live.filter(|worker| !worker.ours)
    }

    /// Whether workers of other libraries report what they measure of their hosts.
    pub(in crate::worker) fn measures(&self, now: Mono) -> bool {
        self.others(now).any(|worker| !worker.metrics.is_empty())
    }

    /// A report of a worker of ours that is dead, with its table. KCL's leader would go by the report for a minute, and assign leases to the
    /// worker.
    pub(in crate::worker) fn misleading(&self, cx: &Context) -> Option<(Option<FleetTable>, &FleetWorker)> {
        let (now, wall) = (cx.now(), cx.wall());
        let here = self.here.misleading(now, wall).map(|worker| (None, worker));
        let beside = || self.beside.as_ref()?.misleading(now, wall);
        here.or_else(|| beside().map(|worker| (Some(FleetTable::Workers), worker)))
    }

    /// A report that is so old that it is removed, with the table that it is in, if that is not the lease table.
    pub(in crate::worker) fn stale(&self, cx: &Context) -> Option<(Option<FleetTable>, &FleetWorker)> {
        let oldest = seconds(cx.wall()).saturating_sub(whole_seconds(FORGET_AFTER));
        let now = cx.now();
        let here = self.here.stale(now, oldest).map(|worker| (None, worker));
        let beside = || self.beside.as_ref()?.stale(now, oldest);
        here.or_else(|| beside().map(|worker| (Some(FleetTable::Workers), worker)))
    }
}

/// Until when a worker counts as one that lives, by a report that is new to us.
fn counts_until(cx: &Context, before: Option<&SeenWorker>, report: &FleetWorker) -> Mono {
    let told = age_of(report, cx.wall()).max(ahead_of(report, cx.wall()));
    let age = before.map_or(told, |before| {
        // While scans follow each other as they should, the change alone counts, whatever the clock of its worker shows.
        let unseen = cx.now().since(before.asked).0;
        told.min(Span(unseen.saturating_sub(cx.config().scan_interval.0)))
    });
    cx.now() + Span(WORKER_EXPIRY.0.saturating_sub(age.0))
}

/// By how much the time in a report lies ahead of our clock. Of a report that is seen for the first time nothing tells which of the two clocks is
/// wrong: the report may be as old as that.
fn ahead_of(report: &FleetWorker, now: Wall) -> Span {
    let ahead = report.at.saturating_sub(seconds(now)).max(0);
    Span(ahead.unsigned_abs().saturating_mul(1_000_000))
}
