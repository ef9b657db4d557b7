//! `fair-shares`: free leases are requested at once, up to the share.
//!
//! The bound: at the end of a whole scan, the worker requests all free leases of the scan within its room. Scans follow
//! each other within a scan interval and a twentieth (`requests-on-time`). So a free lease is requested within this
//! time and the time of a scan. A lease is free without an owner, or with a row unchanged for a lease duration. For the
//! time [`Config::meeting`](leasehold_engine::config::Config::meeting) after its first take, a worker may leave leases
//! without an owner to workers just starting.
//!
//! Where owners hand leases over on request, a second bound holds. The leases of a dead worker are requested after a
//! second whole scan has shown the leases, even beyond the worker's share. Two workers request all leases; more workers
//! request twice their part each. So a dead worker's leases are read a lease duration and a few scans after its last
//! renewal, whatever workers start meanwhile.
//!
//! A lease handed over and not accepted for a moment (`given`) is free, too: its next owner has died or stopped since
//! the request.
//!
//! Free leases surely known to the worker, and its share, are counted from below, by the answers shown to the worker.
//! Other workers possibly alive in its view, and its own leases, are counted from above. Rows changed by people are not
//! judged.

use super::fact::{Ask, Owner, Row, Verb};
use super::history::Shard;
use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, REPORTS, REQUESTS, ROWS, SHOWN, Sees, ShardNo, Terms,
    Time, Verdict,
};
use crate::streams::StreamNo;
use leasehold_engine::policy::{Assign, Lineage, Steal};
use std::collections::{BTreeMap, BTreeSet};

/// A row as shown to a worker by scans.
#[derive(Clone, Copy, Debug)]
struct Seen {
    row: Row,
    /// The first and the last scan with the row in this state.
    since: Time,
    last: Time,
    /// The row was shown with other content since, beside scans or by a stale read: the worker may believe in either.
    beside: Option<Row>,
    /// The number of older rows shown in a row.
    older: u32,
}

/// The state between a life and a lease.
#[derive(Clone, Copy, Debug, Default)]
struct Stake {
    seen: Option<Seen>,
    /// The counter of the row known to the life by its own writes, or by answers beside scans.
    known: u64,
    /// The last answer with the row showed a promise to this life. The answer may be the same answer that told the life
    /// of its lost lease.
    promised: bool,
    held: bool,
    /// The application has the shard open.
    open: bool,
    /// Unanswered requests about the lease.
    asked: u32,
    /// Since when the lease is neither held nor open, without requests.
    quiet: Time,
}

impl Stake {
    fn is_busy(&self) -> bool {
        self.held || self.open || self.asked > 0
    }
}

#[derive(Clone, Debug, Default)]
struct Life {
    booted: Time,
    stopping: bool,
    /// The machine is suspended, and its clock stands.
    stands: bool,
    /// No handler of the life can run: the life may want no lease.
    blocked: bool,
    /// The first take of a lease in each stream: by then the life knows the stream's leases.
    first: BTreeMap<StreamNo, Time>,
    /// The start of the scan under way, and of the whole scan before.
    scan: Option<Time>,
    before: Option<Time>,
    /// After a scan's end: the number of leases to request, and the number requested.
    due: Option<usize>,
    takes: usize,
    leases: PerShard<Stake>,
}

impl Life {
    /// The clock stood: states seen before have lasted less in the life's view.
    fn slept(&mut self, stood: Time) {
        self.first.values_mut().for_each(|first| *first += stood);
        for seen in self.leases.iter_mut().filter_map(|stake| stake.seen.as_mut()) {
            seen.since += stood;
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Takeover {
    /// Whether leases are shared out by count, and clocks keep their promised rate error.
    counted: bool,
    /// Whether workers request leases from owners, and whether all workers are ours.
    asks: bool,
    alone: bool,
    /// Whether only lists of shards show a shard's parents.
    listed: bool,
    /// The greatest number of leases; 0: no limit.
    most: usize,
    /// In true time, from above, in µs: a lease; a scan interval; the time to meet other workers; a pause between two
    /// attempts.
    lease: u64,
    interval: u64,
    meeting: u64,
    pause: u64,
    /// The end of the time in which a worker may see the row of a hand-over begun by a person: the row need not show
    /// that its owner hands leases over.
    mute_until: PerShard<Time>,
    lives: BTreeMap<LifeNo, Life>,
}

/// A clock shows whole microseconds.
const SLACK_US: u64 = 10;

impl Takeover {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | SHOWN | ROWS | EVENTS).others(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let policies = &terms.config.policies();
        let quota = match terms.least(|config| config.max_leases()) {
            0 => terms.most(|config| config.max_leases()),
            least => least,
        };
        Self {
            // Free leases are left to a leader, if the fleet has a leader.
            counted: policies.assign == Assign::Count && !terms.clocks_beyond && !terms.led,
            asks: policies.steal == Steal::Ask,
            alone: !terms.mixed,
            listed: policies.lineage == Lineage::Listed,
            most: quota as usize,
            lease: terms.longest(|config| config.lease_duration()) + SLACK_US,
            interval: terms.longest(|config| config.scan_interval().scaled(21, 20)),
            meeting: terms.longest(|config| config.meeting()) + SLACK_US,
            pause: terms.longest(|config| config.retry_max()) + SLACK_US,
            mute_until: PerShard::default(),
            lives: BTreeMap::new(),
        }
    }

    fn stake(&mut self, life: LifeNo, shard: ShardNo) -> &mut Stake {
        self.lives.entry(life).or_default().leases.of(shard)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        // A worker that refuses a table takes no lease.
        self.counted &= !matches!(fact, Fact::Foreign);
        if !self.counted {
            return;
        }
        match *fact {
            Fact::RowChanged { shard, by, verb, after, .. } => {
                let mute_until = self.mute_until.of(shard);
                match verb {
                    Some(Verb::BeginHandOver) => *mute_until = Time::MAX,
                    Some(Verb::Take) => *mute_until = now.min(*mute_until),
                    _ => {}
                }
                // The writer of the row may know the row.
                if let (Some(life), Some(row)) = (by, after) {
                    self.stake(life, shard).shown(now, row, false);
                }
            }
            Fact::Shown { life, shard, row, scanned } => {
                let stake = self.stake(life, shard);
                stake.promised = row.next == Some(Owner::Life(life));
                stake.shown(now, row, scanned);
            }
            Fact::Booted { life, .. } => self.lives.entry(life).or_default().booted = now,
            Fact::Died { life } | Fact::Stopped { life, .. } => drop(self.lives.remove(&life)),
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => {
                self.lives.entry(life).or_default().stopping = true;
            }
            // Work under way goes on from here.
            Fact::Resumed { life, stood } => {
                let life = self.lives.entry(life).or_default();
                life.leases.iter_mut().for_each(|stake| stake.quiet = now);
                if std::mem::take(&mut life.stands) {
                    life.slept(stood);
                }
            }
            Fact::Blocked { life } => self.lives.entry(life).or_default().blocked = true,
            Fact::Unblocked { life } => self.lives.entry(life).or_default().blocked = false,
            Fact::ClockStands { life } => self.lives.entry(life).or_default().stands = true,
            Fact::Holds { life, shard, .. } => self.stake(life, shard).held = true,
            Fact::HoldsNoMore { life, shard } => {
                let stake = self.stake(life, shard);
                // Answers from the time of the holding do not count.
                (stake.held, stake.quiet, stake.seen) = (false, now, None);
            }
            Fact::OpenBegun { life, shard, .. } => self.stake(life, shard).open = true,
            Fact::Closed { life, shard, .. } => {
                let stake = self.stake(life, shard);
                (stake.open, stake.quiet) = (false, now);
            }
            Fact::Asked { life, ask: Ask::ScanPage, .. } => {
                self.lives.entry(life).or_default().scan.get_or_insert(now);
            }
            Fact::Asked { life, ask: ask @ (Ask::Write(_) | Ask::Read), about: Some(shard), .. } => {
                self.stake(life, shard).asked += 1;
                if ask == Ask::Write(Verb::Take) {
                    let life = self.lives.entry(life).or_default();
                    life.first.entry(history.streams.of(shard)).or_insert(now);
                    life.takes += 1;
                }
            }
            Fact::Answered { life, ask: Ask::Write(_) | Ask::Read, about: Some(shard), .. } => {
                let stake = self.stake(life, shard);
                (stake.asked, stake.quiet) = (stake.asked.saturating_sub(1), now);
            }
            // The worker looks at the stream anew.
            Fact::StreamLeft { life, stream, .. } => {
                self.lives.entry(life).or_default().first.remove(&stream);
            }
            // Earlier answers about the stream do not count.
            Fact::StreamBack { life, stream } => {
                let leases = &mut self.lives.entry(life).or_default().leases;
                let of = leases.iter_mut().enumerate();
                let of = of.filter(|(shard, _)| history.streams.of(*shard as ShardNo) == stream);
                of.for_each(|(_, stake)| (stake.seen, stake.known) = (None, 0));
            }
            Fact::ScanEnded { life } => {
                let due = self.due(now, life, history);
                let life = self.lives.entry(life).or_default();
                (life.due, life.takes) = (due, 0);
                if let Some(began) = life.scan.take() {
                    life.before = Some(began);
                    life.leases.iter_mut().for_each(|stake| stake.missed(began));
                }
            }
            Fact::Said { life } => self.judge(now, life, verdict),
            _ => {}
        }
    }

    fn judge(&mut self, now: Time, no: LifeNo, verdict: &mut Verdict) {
        let Some(life) = self.lives.get_mut(&no) else {
            return;
        };
        let (takes, interval) = (life.takes, self.interval);
        let Some(due) = life.due.take().filter(|due| takes < *due) else {
            return;
        };
        verdict.report(Property::FairShares, now, || {
            format!(
                "life {no} was shown free leases, has room for {due} of them, and asks for {takes} now that the \
                 scan has ended: they are to be asked for within {} ms and the time of a scan",
                interval / 1_000
            )
        });
    }

    /// The least number of leases to be requested at the end of the life's scan. Absent: the life need not know the
    /// free leases.
    fn due(&self, now: Time, no: LifeNo, history: &History) -> Option<usize> {
        let life = self.lives.get(&no).filter(|life| !life.stopping && !life.blocked)?;
        // A worker slowed by a throttling table leaves leases to owners unable to renew.
        let spares = history.throttling.slows(now, no);
        if spares || history.partial.has(no) || history.denials.has_any(no) || life.first.is_empty() {
            return None;
        }
        let began = life.scan?;
        let (mut unfinished, mut mine, mut free, mut left) = (0, 0, 0, 0);
        // Rows with an unknown owner.
        let mut unknown = 0;
        let mut owners = BTreeSet::new();
        for (shard, stake) in life.leases.iter().enumerate() {
            let truth = history.shard(shard as ShardNo);
            // Between two attempts to take the lease, the worker makes no request.
            let busy = stake.is_busy() || stake.quiet + self.pause > now && stake.quiet > 0;
            let promised = |row: Row| row.next == Some(Owner::Life(no));
            let promised = self.asks && (stake.promised || stake.seen.is_some_and(|seen| promised(seen.row)));
            mine += usize::from(busy || promised);
            let is_open_row = truth.row.is_some_and(Row::is_open);
            // Where workers request leases, a promised lease counts for the next owner.
            let shown = stake.seen.map(|seen| seen.row);
            unknown += self.count_next(no, [truth.row, shown], &mut owners);
            let Some(seen) = stake.seen else {
                unfinished += usize::from(stake.held && is_open_row);
                unknown += usize::from(!stake.held && is_open_row);
                continue;
            };
            let surely_open = seen.last >= began && seen.beside.is_none() && seen.row.is_open();
            unfinished += usize::from(is_open_row && (stake.held || surely_open));
            let expired = began >= seen.since + self.lease && seen.beside.is_none();
            let may_live = [Some(seen.row).filter(|_| !expired), seen.beside];
            for owner in may_live.into_iter().flatten().filter_map(|row| row.owner) {
                match owner {
                    Owner::Stranger => unknown += 1,
                    // The row is older than the worker's last act on the lease: another worker may be the owner by now.
                    Owner::Life(other) if other == no && !stake.is_busy() => unknown += 1,
                    Owner::Life(other) if other == no => {}
                    Owner::Life(other) => drop(owners.insert(other)),
                }
            }
            let is_known = surely_open && !busy && stake.quiet < began && self.is_known(life, truth);
            let as_it_is = truth.row == Some(seen.row) && truth.changed < began && !truth.edited;
            let Some(first) = life.first.get(&history.streams.of(shard as ShardNo)) else {
                continue;
            };
            let is_free = match seen.row.owner {
                None => now >= first + self.meeting,
                Some(owner) => {
                    let lies = is_left_lying(shard as ShardNo, began, &seen, history);
                    (expired || lies) && owner != Owner::Life(no)
                }
            };
            let is_sure = is_known && as_it_is && seen.row.next.is_none();
            free += usize::from(is_sure && is_free);
            let is_old = life.before.is_some_and(|at| at >= seen.since + self.lease);
            left += usize::from(is_sure && is_free && is_old && seen.row.owner.is_some());
        }
        let mut share = usize::div_ceil(unfinished, 1 + owners.len() + unknown);
        if self.most > 0 {
            share = share.min(self.most);
        }
        let within = free.min(share.saturating_sub(mine));
        let edited = history.shards().any(|(_, truth)| truth.edited);
        let left = if self.has_mute(life) || edited { 0 } else { left };
        Some(within.max(self.beyond(left, 1 + owners.len() + unknown, mine)))
    }

    /// Whether some owner may look like a worker of another program.
    fn has_mute(&self, life: &Life) -> bool {
        let before = life.before.unwrap_or(0);
        self.mute_until.iter().any(|until| *until > before)
    }

    /// Adds the next owners of a lease to the owners. Returns the number of unknown next owners.
    fn count_next(&self, no: LifeNo, rows: [Option<Row>; 2], owners: &mut BTreeSet<LifeNo>) -> usize {
        let nexts = rows.into_iter().flatten().filter_map(|row| row.next);
        let mut unknown = 0;
        for next in nexts.filter(|_| self.asks) {
            match next {
                Owner::Life(next) if next == no => {}
                Owner::Life(next) => drop(owners.insert(next)),
                Owner::Stranger => unknown += 1,
            }
        }
        unknown
    }

    /// The number of dead workers' leases (`left`) to be requested by a life, even beyond its share.
    fn beyond(&self, left: usize, workers: usize, mine: usize) -> usize {
        if !self.asks || !self.alone {
            return 0;
        }
        let room = match self.most {
            0 => usize::MAX,
            most => most.saturating_sub(mine),
        };
        (2 * left).div_ceil(workers).min(left).min(room)
    }

    /// Whether a life knows a shard's parents.
    fn is_known(&self, life: &Life, truth: &Shard) -> bool {
        // A list may lag by a scan interval.
        !self.listed || truth.parents[0].is_none() && truth.born + self.interval <= life.booted
    }
}

/// Whether a lease was handed over to a worker and not accepted in time.
fn is_left_lying(shard: ShardNo, began: Time, seen: &Seen, history: &History) -> bool {
    let given = &history.given;
    given.has(shard) && began >= seen.since + given.most() && seen.beside.is_none()
}

impl Stake {
    /// A whole scan begun at `began` has ended. A worker forgets a row missing from the scan, and observes the row anew
    /// later. A stale read from before the row's creation lacks the row, for example.
    fn missed(&mut self, began: Time) {
        if self.seen.is_some_and(|seen| seen.last < began && seen.older == 0) {
            (self.seen, self.known) = (None, 0);
        }
    }

    fn shown(&mut self, now: Time, row: Row, scanned: bool) {
        let anew = Seen { row, since: now, last: now, beside: None, older: 0 };
        if !scanned {
            self.known = row.counter;
        }
        let Some(seen) = &mut self.seen else {
            // The row may be a stale read of a lease given up since by the life, and is not believed at first.
            let is_older = row.counter < self.known;
            self.known = if is_older { 0 } else { self.known };
            self.seen = (scanned && !is_older).then_some(anew);
            return;
        };
        let life = |row: Row| (row.owner, row.counter, row.checkpoint);
        let same = life(seen.row) == life(row);
        if !scanned {
            if seen.row != row {
                seen.beside = Some(row);
            }
        } else if let Some(beside) = seen.beside.filter(|beside| row.counter < beside.counter)
            && seen.older == 0
        {
            // A stale read: the row shown beside scans since is believed.
            (seen.older, seen.beside) = (1, Some(beside));
        } else if row.counter < seen.row.counter && seen.older == 0 {
            // Most likely a stale read, and not believed at first.
            (seen.older, seen.beside) = (1, Some(row));
        } else if same && seen.beside.is_none() {
            (seen.row, seen.last, seen.older) = (row, now, 0);
        } else {
            *seen = anew;
        }
    }
}

#[cfg(test)]
mod tests;
