//! A fleet with a leader, as in version 3 of the Java KCL: the leader assigns leases, and followers leave leases to the
//! leader.
//!
//! * `one-leader`: a worker that assigns or moves leases has the leader's lock, or is stopping and passes its own
//!   leases on.
//! * `fair-shares`: a follower takes leases assigned to the follower, and otherwise only leases unread for long. A
//!   leader leaves owners the time to find their assigned leases.
//! * `requests-on-time`: a live worker reports its life. A leader of ours renews its lock (`beats`).
//! * `leases-owned`: a live worker soon takes each lease assigned to the worker; a long dead worker receives no lease.
//!   The leases of a dead worker get another owner: from a leader of ours within a lease duration, and otherwise within
//!   three (`heirs`).
//! * `leases-owned`, too: the report of a renewing worker stays, or leaders assign no lease to the worker.
//! * `stops-cleanly`: a stopped worker leaves neither a report nor a lock, or leaders would assign leases to the
//!   stopped worker.
//!
//! A fleet on its way from version 2 has a leader from the end of the migration, as soon as each worker can know, until
//! the fleet goes back. The rules about leases and leaders hold in this time only; the rule for stopped workers holds
//! always. The worker that ends the migration has waited for the configured time, while every owner reported
//! (`leases-owned`): leaders assign no lease to a worker without a report.

mod acts;
mod beats;
mod heirs;

use super::fact::{Ask, How, Mark, Owner, Row};
use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time,
    Verdict,
};
use leasehold_engine::fleet::{MIGRATION_NOTICED, REPORT_INTERVAL, WORKER_EXPIRY};
use std::collections::{BTreeMap, BTreeSet};

/// The true state of a lease.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    row: Option<Row>,
    /// The time of the counter's last growth, and the beginning of the present owners.
    renewed: Time,
    named: Time,
    /// The lease was assigned to this life and not yet taken.
    assigned: Option<LifeNo>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// The start of the life.
    born: Time,
    /// The start, or the end of the last standstill.
    since: Time,
    /// The wall clock of the life's worker is wrong for a while.
    is_misled: bool,
    over: Option<Time>,
    stopping: bool,
    stands: bool,
    /// No handler can run: the life may want no lease, and report no life sign.
    blocked: bool,
    /// The life reaches no table any more, and so cannot remove its report or lock.
    cut_off: bool,
    /// The last unconfirmed write of the life about itself: the write may be executed late.
    unheard: Option<Time>,
    /// The last failed request to the table: the life's work takes longer.
    hindered: Option<Time>,
    /// The beginning of the present report, and its last write.
    reports: Option<(Time, Time)>,
    /// The last write of the report, though another worker may have removed the report since.
    reported: Time,
    /// The time in the report.
    told: Time,
    /// The end of the life's last whole scan.
    scanned: Time,
    /// The last time with a lease unrenewed for long: other workers may count the life as dead until its next report.
    idle: Option<Time>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Led {
    is_on: bool,
    wall_steps: bool,
    /// The workers with a wall clock that is wrong for a while.
    wrong_walls: BTreeSet<u32>,
    lease: Time,
    /// The time allowed for the leader to assign a lease, with a leader and without; and for the owner to finish a
    /// hand-over.
    patience: Time,
    leaderless: Time,
    overdue: Time,
    /// The limit for our leader to end a hand-over.
    ends_by: Time,
    /// The time for which a leader counts an owner as alive without a renewal.
    silence: Time,
    /// After this long, each worker knows an event, and has ended its earlier work.
    doubt: Time,
    /// A decision is executed within this time.
    answer: Time,
    /// The time of reports from all owners before the fleet's step to version 3.
    wait: Time,
    /// Since when all workers follow the leader; none: the fleet has not reached version 3, or went back.
    led_from: Option<Time>,
    /// Since when a migrating fleet has followed the rules of version 2.
    migrates_since: Option<Time>,
    rows: PerShard<Truth>,
    /// The lives that have taken a shard's lease. The row may keep the mark of such a take: no worker of KCL removes
    /// the mark, and the mark names the life anew after a later assignment.
    takers: BTreeSet<(ShardNo, LifeNo)>,
    lives: BTreeMap<LifeNo, Life>,
    lock: Option<LifeNo>,
    /// The last write of the lock, and the beginning of its present holder's time.
    beaten: Time,
    locked: Time,
    /// The former holder of the lock, and the time of its loss.
    before: Option<(LifeNo, Time)>,
}

const SLACK_US: Time = 5_000_000;

/// The length of a lock written by a worker of KCL, from the lock's last beat on.
const KCL_LOCK_US: Time = 120_000_000;

/// A write given up by its worker is executed within this many lease durations.
const LATE_LEASES: u64 = 5;

/// A report has its time in whole seconds, and may count for less by this time.
const REPORTED_US: Time = 1_000_000;

impl Led {
    pub(super) const SEES: Sees = Sees::all(REPORTS | REQUESTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let known = terms.longest(|config| config.scan_interval().scaled(21, 20))
            + terms.longest(|config| config.table_timeout())
            + terms.longest(|config| config.retry_max());
        // A worker reads the tables beside the lease table in turn, and then the lease table.
        let tables = if terms.config.fleet_tables() { 3 } else { 1 };
        let lease = terms.config.lease_duration();
        Self {
            is_on: terms.led && !terms.clocks_beyond,
            wall_steps: !terms.wrong_walls.is_empty(),
            wrong_walls: terms.wrong_walls.clone(),
            lease: terms.at_least(lease),
            patience: terms.at_least(lease.times(5)),
            leaderless: terms.at_least(lease.times(2)),
            silence: terms.at_least(lease.scaled(5, 2)),
            overdue: terms.shortest(|config| config.hand_over_timeout()),
            ends_by: terms.longest(|config| config.hand_over_timeout() + config.lease_duration().times(3)),
            doubt: 2 * tables * known + SLACK_US,
            answer: 2 * terms.longest(|config| config.table_timeout()) + SLACK_US,
            wait: terms.shortest(|config| config.fleet().migration_wait()),
            led_from: (!terms.migrates).then_some(0),
            ..Self::default()
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        if !self.is_on {
            return;
        }
        let others = &history.others;
        match *fact {
            Fact::RowChanged { shard, by, verb, before, after, .. } => {
                let ours = by.filter(|life| self.is_followed(now) && !others.contains(life));
                if let (Some(life), Some(verb)) = (ours, verb) {
                    self.judge(now, (life, shard, verb), (before, after), others, verdict);
                }
                self.changed(now, shard, by, after);
            }
            Fact::Leads { life } => {
                self.beaten = now;
                if life != self.lock {
                    self.before = self.lock.map(|life| (life, now));
                    (self.lock, self.locked) = (life, now);
                }
            }
            Fact::Reports { life, there, ahead_s } => {
                if !there && !others.contains(&life) && self.is_led(now, others) {
                    self.judge_removal(now, life, verdict);
                }
                let known = self.lives.entry(life).or_default();
                let since = known.reports.map_or(now, |(since, _)| since);
                known.reports = there.then_some((since, now));
                if there {
                    let told = i128::from(now) + i128::from(ahead_s) * 1_000_000;
                    (known.reported, known.told) = (now, told.max(0) as Time);
                }
            }
            Fact::Rules { by, led } => {
                self.goes_over(now, by.filter(|by| !others.contains(by)), led, verdict)
            }
            Fact::Stopped { life, fatal } => {
                self.lives.entry(life).or_default().over = Some(now);
                if !fatal && !others.contains(&life) {
                    self.judge_stop(now, life, verdict);
                }
            }
            _ => self.note_life(now, fact),
        }
    }

    /// Notes the events of a worker's life.
    fn note_life(&mut self, now: Time, fact: &Fact) {
        match *fact {
            Fact::Booted { life, worker } => {
                let life = self.lives.entry(life).or_default();
                (life.born, life.since) = (now, now);
                life.is_misled = self.wrong_walls.contains(&worker);
            }
            Fact::ScanEnded { life } => self.lives.entry(life).or_default().scanned = now,
            Fact::Paused { life } => self.lives.entry(life).or_default().stands = true,
            Fact::Blocked { life } => self.lives.entry(life).or_default().blocked = true,
            Fact::Unblocked { life } => {
                let life = self.lives.entry(life).or_default();
                (life.blocked, life.since) = (false, now);
            }
            Fact::CutOff { life } => self.lives.entry(life).or_default().cut_off = true,
            Fact::Resumed { life, .. } => {
                let life = self.lives.entry(life).or_default();
                (life.stands, life.since) = (false, now);
            }
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => {
                self.lives.entry(life).or_default().stopping = true;
            }
            Fact::Answered { life, ask, how: How::NotSent | How::Unknown, .. } => {
                let known = self.lives.entry(life).or_default();
                match ask {
                    Ask::Members => (known.unheard, known.hindered) = (Some(now), Some(now)),
                    Ask::ScanPage | Ask::Owned | Ask::Read | Ask::Write(_) => known.hindered = Some(now),
                    _ => {}
                }
            }
            Fact::Died { life } => self.lives.entry(life).or_default().over = Some(now),
            _ => {}
        }
    }

    fn changed(&mut self, now: Time, shard: ShardNo, by: Option<LifeNo>, after: Option<Row>) {
        let truth = self.rows.of(shard);
        let names = |row: Option<Row>| row.map(|row| (row.owner, row.next));
        if names(truth.row) != names(after) {
            truth.named = now;
            // An owner that has not taken its lease may be asked to hand the lease over.
            let stays = |row: Row| row.next.is_some() && row.owner == truth.assigned.map(Owner::Life);
            truth.assigned = truth.assigned.filter(|_| after.filter(is_open).is_some_and(stays));
            if let Some(Row { owner: Some(Owner::Life(owner)), next: None, .. }) = after.filter(is_open) {
                truth.assigned = Some(owner).filter(|owner| by != Some(*owner));
            }
        }
        if truth.row.map(|row| row.counter) != after.map(|row| row.counter) {
            truth.renewed = now;
        }
        if let Some(Row { owner: Some(Owner::Life(owner)), .. }) = after
            && by == Some(owner)
        {
            self.takers.insert((shard, owner));
        }
        if by.is_some() && by == truth.assigned || !after.is_some_and(|row| is_open(&row)) {
            truth.assigned = None;
        }
        truth.row = after;
    }

    /// Whether all workers follow the rules of version 3.
    fn is_followed(&self, now: Time) -> bool {
        self.led_from.is_some_and(|from| from <= now)
    }

    /// The row of the version was written, by a worker of ours if `ours` is given.
    fn goes_over(&mut self, now: Time, ours: Option<LifeNo>, led: bool, verdict: &mut Verdict) {
        if !led {
            self.led_from = None;
            self.migrates_since.get_or_insert(now);
            return;
        }
        let begun = self.migrates_since.take();
        if let (Some(life), Some(begun)) = (ours, begun) {
            self.judge_end(now, life, begun, verdict);
        }
        let noticed = now + MIGRATION_NOTICED.0 + self.doubt;
        self.led_from.get_or_insert(noticed);
    }

    /// A worker of ours has ended the migration begun at `begun`.
    fn judge_end(&self, now: Time, life: LifeNo, begun: Time, verdict: &mut Verdict) {
        let waited = now - begun;
        if waited < self.wait {
            verdict.report(Property::LeasesOwned, now, || {
                format!(
                    "life {life} ended the migration {} ms after it began: owners had {} ms to report",
                    waited / 1_000,
                    self.wait / 1_000
                )
            });
        }
        let silent = |owner: LifeNo| {
            let reports = self.lives.get(&owner).and_then(|life| life.reports);
            reports.is_none_or(|(_, last)| last + WORKER_EXPIRY.0 + self.doubt < now)
        };
        let renews = |truth: &&Truth| now < truth.renewed + self.lease && truth.named + self.doubt < now;
        let owners = self.rows.iter().filter(renews).filter_map(|truth| truth.row?.owner);
        for owner in owners {
            if let Owner::Life(owner) = owner
                && silent(owner)
            {
                return verdict.report(Property::LeasesOwned, now, || {
                    format!("life {life} ended the migration, and the owner {owner} does not report: nothing will be assigned to it")
                });
            }
        }
    }

    /// Whether each worker has known another program's live worker for a while, so that a leader assigns.
    fn is_led(&self, now: Time, others: &BTreeSet<LifeNo>) -> bool {
        let unsure = self.doubt + REPORT_INTERVAL.0;
        let known = others.iter().filter_map(|life| Some((*life, self.lives.get(life)?)));
        // Where clocks are set, a report is no proof of life.
        let mut known = known.filter(|(life, _)| !self.wall_steps || self.owns(now, *life));
        known.any(|(_, life)| {
            // A worker cut off sends no more reports.
            let lives =
                |(since, last)| since + self.doubt <= now && now + REPORTED_US < last + WORKER_EXPIRY.0;
            let known = life.reports.is_some_and(lives);
            let idle = life.idle.is_some_and(|last| last + unsure > now);
            known && life.over.is_none() && !idle
        })
    }

    /// Whether each worker knows a lease of the life, and the lease has not yet expired for any worker.
    fn owns(&self, now: Time, life: LifeNo) -> bool {
        let is_of = |row: Row| is_open(&row) && row.is_of(life);
        let known = |truth: &Truth| truth.named + self.doubt <= now;
        let lately = |truth: &Truth| known(truth) && now < truth.renewed.max(truth.named) + self.silence;
        self.rows.iter().any(|truth| truth.row.is_some_and(is_of) && lately(truth))
    }

    /// Whether a life has the lock, or had the lock at the time of its decision.
    fn leads(&self, now: Time, life: LifeNo) -> bool {
        let had = |(before, until): (LifeNo, Time)| before == life && now <= until + self.doubt;
        self.lock == Some(life) || self.before.is_some_and(had)
    }

    /// A missing take is found only by a look.
    pub(super) fn look(&mut self, now: Time, others: &BTreeSet<LifeNo>, verdict: &mut Verdict) {
        if !self.is_on {
            return;
        }
        let followed = self.is_followed(now);
        if followed {
            self.look_for_silent(now, others, verdict);
            self.look_for_heirs(now, others, verdict);
            self.look_for_beats(now, others, verdict);
        }
        let from = self.led_from.unwrap_or(now);
        for (shard, truth) in self.rows.iter_mut().enumerate() {
            let Some(Row { owner: Some(Owner::Life(owner)), next, .. }) = truth.row.filter(is_open) else {
                continue;
            };
            let Some(life) = self.lives.get_mut(&owner) else {
                continue;
            };
            if truth.renewed + 2 * self.lease < now {
                life.idle = Some(now);
            }
            let lives = life.over.is_none()
                && !life.stopping
                && !life.stands
                && !life.blocked
                && !others.contains(&owner);
            let due = truth.named.max(life.since).max(from) + self.doubt;
            let hindered = life.hindered.is_some_and(|at| due <= at + self.doubt);
            let to_take = followed && next.is_none();
            if to_take && lives && !hindered && truth.assigned == Some(owner) && due < life.scanned {
                truth.assigned = None;
                verdict.report(Property::LeasesOwned, now, || {
                    format!(
                        "life {owner} was assigned shard {shard} {} ms ago, and has not taken it",
                        (now - truth.named) / 1_000
                    )
                });
            }
        }
    }
}

impl Led {
    fn look_for_silent(&mut self, now: Time, others: &BTreeSet<LifeNo>, verdict: &mut Verdict) {
        let (led, period) = (self.is_led(now, others), REPORT_INTERVAL.0 + self.doubt);
        let ours = self.lives.iter_mut().filter(|(life, _)| led && !others.contains(life));
        for (life, known) in ours {
            let lives = known.over.is_none() && !known.stopping && !known.stands && !known.blocked;
            let last =
                known.reports.map_or(known.since, |(_, last)| last.max(known.since)).max(known.reported);
            let hindered = known.hindered.is_some_and(|at| last + period <= at + self.doubt);
            if lives && !hindered && last + period < known.scanned {
                known.reports = known.reports.map(|(since, _)| (since, now));
                verdict.report(Property::RequestsOnTime, now, || {
                    let ms = (now - last) / 1_000;
                    format!("life {life} has not said for {ms} ms that it lives: a leader takes it for dead")
                });
            }
        }
    }
}

fn is_open(row: &Row) -> bool {
    row.checkpoint != Mark::End
}

#[cfg(test)]
mod tests;
