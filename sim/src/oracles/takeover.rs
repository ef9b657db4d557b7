//! `fair-shares`: free leases are asked for at once, up to the share.
//!
//! The bound: what a whole scan showed to be free is asked for when that scan ends, all of it that the worker has room for. Scans
//! follow each other within a scan interval and a twentieth (`requests-on-time`), so a free lease is asked for within that and the time of a
//! scan. Free is a lease without an owner, and one whose row stood still for a lease duration. For so long as
//! [`Config::meeting`](leasehold_engine::config::Config::meeting) after its first take, a worker may leave leases without an
//! owner to others that may be starting.
//!
//! Where owners hand over what they are asked for, one bound more: what a dead worker left is asked for when a second whole scan has shown it,
//! though it be beyond the worker's share. Two workers ask for all of it; of more, each asks for twice its part. So what a dead worker had is
//! read a lease duration and a few scans after its last renewal, whatever starts meanwhile.
//!
//! Free is also what was handed over, and was not taken for a moment (`given`): its next owner has died or stopped since it asked.
//!
//! What the worker must know to be free, and its share, are counted from below, by what was shown to it; the other workers that
//! it may take for living, and what it has, from above. Rows that people changed are not judged.

use super::denial::Denials;
use super::fact::{Ask, Mark, Owner, Row, Verb};
use super::given::Given;
use super::partial::Partial;
use super::throttling::Throttling;
use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use crate::streams::{StreamNo, Streams};
use leasehold_engine::policy::{Assign, Lineage, Steal};
use std::collections::{BTreeMap, BTreeSet};

/// A row as it is, and the shard it is of.
#[derive(Clone, Debug, Default)]
struct Truth {
    row: Option<Row>,
    changed: Time,
    edited: bool,
    /// Until when a worker may be shown the row of a hand-over that a person began: the row need not say of its owner that it hands leases over.
    mute_until: Time,
    born: Time,
    has_parents: bool,
}

/// A row as scans showed it to a worker.
#[derive(Clone, Copy, Debug)]
struct Seen {
    row: Row,
    /// Since when it was shown like this, and when last.
    since: Time,
    last: Time,
    /// It was shown otherwise since, beside scans or by a stale read: the worker believes either.
    beside: Option<Row>,
    /// How often in a row an older one was shown.
    older: u32,
}

/// What there is between a life and a lease.
#[derive(Clone, Copy, Debug, Default)]
struct Stake {
    seen: Option<Seen>,
    /// The counter that the life knows of the row by its own writes, or that answers beside scans showed.
    known: u64,
    /// The last answer that showed the row said that it is promised to this life. It may have been the answer that told the life that
    /// it had lost the lease.
    promised: bool,
    held: bool,
    /// The application has the shard.
    open: bool,
    /// Requests about it that are not answered.
    asked: u32,
    /// Since when none of these was so.
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
    /// It is suspended, and its clock stands.
    stands: bool,
    /// No handler of its can run: it may want no lease.
    blocked: bool,
    /// When it first asked for a lease of each stream: it knows by then that these leases are of that stream.
    first: BTreeMap<StreamNo, Time>,
    /// When the scan began that is under way, and when the whole one before it did.
    scan: Option<Time>,
    before: Option<Time>,
    /// A scan has just ended: so many leases are to be asked for, and so many were.
    due: Option<usize>,
    takes: usize,
    leases: Vec<Stake>,
}

impl Life {
    /// Its clock stood: what it saw has lasted for that much less, as far as it knows.
    fn slept(&mut self, stood: Time) {
        self.first.values_mut().for_each(|first| *first += stood);
        for seen in self.leases.iter_mut().filter_map(|stake| stake.seen.as_mut()) {
            seen.since += stood;
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Takeover {
    /// Whether leases are shared out by count, and clocks are as promised.
    counted: bool,
    /// Whether owners are asked for leases, and whether they are all workers of ours.
    asks: bool,
    alone: bool,
    /// Whether what a shard came from is known from lists of the shards only.
    listed: bool,
    /// 0: as many as there are.
    most: usize,
    /// In true time, from above, in µs: a lease; a scan interval; the time to meet others; a pause between two attempts.
    lease: u64,
    interval: u64,
    meeting: u64,
    pause: u64,
    rows: Vec<Truth>,
    given: Given,
    lives: BTreeMap<LifeNo, Life>,
    streams: Streams,
    /// Lives that do not read all streams, or have not seen again the leases of one that they read anew: for them other leases count.
    partial: Partial,
    denials: Denials,
    throttling: Throttling,
}

/// A clock tells whole microseconds.
const SLACK_US: u64 = 10;

fn is_open(row: Row) -> bool {
    row.checkpoint != Mark::End
}

fn at<T: Clone + Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

impl Takeover {
    pub(super) fn new(terms: &Terms) -> Self {
        let policies = &terms.config.policies();
        let quota = match terms.least(|config| config.max_leases()) {
            0 => terms.most(|config| config.max_leases()),
            least => least,
        };
        Self {
            // What is free is left to a leader, if there is one.
            counted: policies.assign == Assign::Count && !terms.clocks_beyond && !terms.led,
            asks: policies.steal == Steal::Ask,
            alone: !terms.mixed,
            listed: policies.lineage == Lineage::Listed,
            most: quota as usize,
            lease: terms.at_most(terms.most(|config| config.lease_duration())) + SLACK_US,
            interval: terms.at_most(terms.most(|config| config.scan_interval().scaled(21, 20))),
            meeting: terms.at_most(terms.most(|config| config.meeting())) + SLACK_US,
            pause: terms.at_most(terms.most(|config| config.retry_max())) + SLACK_US,
            rows: Vec::new(),
            given: Given::new(terms),
            lives: BTreeMap::new(),
            streams: Streams::new(terms.streams),
            partial: Partial::default(),
            denials: Denials::default(),
            throttling: Throttling::default(),
        }
    }

    fn stake(&mut self, life: LifeNo, shard: ShardNo) -> &mut Stake {
        at(&mut self.lives.entry(life).or_default().leases, shard)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, verdict: &mut Verdict) {
        // Who refuses a table takes nothing.
        self.counted &= !matches!(fact, Fact::Foreign);
        if !self.counted {
            return;
        }
        self.given.observe(fact);
        self.denials.observe(fact);
        self.throttling.observe(now, fact);
        match *fact {
            Fact::ShardBorn { shard, parents } => {
                let truth = at(&mut self.rows, shard);
                (truth.born, truth.has_parents) = (now, parents[0].is_some());
            }
            Fact::RowChanged { shard, by, verb, after, .. } => {
                let truth = at(&mut self.rows, shard);
                truth.edited |= verb.is_none();
                truth.mute_until = match verb {
                    Some(Verb::BeginHandOver) => Time::MAX,
                    Some(Verb::Take) => truth.mute_until.min(now),
                    _ => truth.mute_until,
                };
                (truth.row, truth.changed) = (after, now);
                // Who wrote it may know.
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
            // Whatever it was at goes on from here.
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
                // What was shown while it had the lease counts for nothing.
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
                let streams = self.streams;
                if ask == Ask::Write(Verb::Take) {
                    let life = self.lives.entry(life).or_default();
                    life.first.entry(streams.of(shard)).or_insert(now);
                    life.takes += 1;
                }
            }
            Fact::Answered { life, ask: Ask::Write(_) | Ask::Read, about: Some(shard), .. } => {
                let stake = self.stake(life, shard);
                (stake.asked, stake.quiet) = (stake.asked.saturating_sub(1), now);
            }
            // It looks at the stream anew.
            Fact::StreamLeft { life, stream, .. } => {
                self.partial.observe(fact);
                self.lives.entry(life).or_default().first.remove(&stream);
            }
            // What it was shown of the stream before counts for nothing.
            Fact::StreamBack { life, stream } => {
                self.partial.observe(fact);
                let streams = self.streams;
                let leases = &mut self.lives.entry(life).or_default().leases;
                let of = leases.iter_mut().enumerate();
                let of = of.filter(|(shard, _)| streams.of(*shard as ShardNo) == stream);
                of.for_each(|(_, stake)| (stake.seen, stake.known) = (None, 0));
            }
            Fact::ScanEnded { life } => {
                self.partial.observe(fact);
                let due = self.due(now, life);
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

    /// How many leases a life must ask for as its scan ends, at least. Absent: it need not know what is free.
    fn due(&self, now: Time, no: LifeNo) -> Option<usize> {
        let life = self.lives.get(&no).filter(|life| !life.stopping && !life.blocked)?;
        // A worker that a throttling table makes slow leaves leases to owners that could not renew them either.
        let spares = self.throttling.slows(now, no);
        if spares || self.partial.has(no) || self.denials.has_any(no) || life.first.is_empty() {
            return None;
        }
        let began = life.scan?;
        let (mut unfinished, mut mine, mut free, mut left) = (0, 0, 0, 0);
        // Rows of which it is not known whose they are.
        let mut unknown = 0;
        let mut owners = BTreeSet::new();
        let no_row = Truth::default();
        for (shard, stake) in life.leases.iter().enumerate() {
            let truth = self.rows.get(shard).unwrap_or(&no_row);
            // Between two attempts to take it, nothing is asked.
            let busy = stake.is_busy() || stake.quiet + self.pause > now && stake.quiet > 0;
            let promised = |row: Row| row.next == Some(Owner::Life(no));
            let promised = self.asks && (stake.promised || stake.seen.is_some_and(|seen| promised(seen.row)));
            mine += usize::from(busy || promised);
            let is_open_row = truth.row.is_some_and(is_open);
            // Where leases are asked for, what is promised counts for the worker that it is promised to.
            let shown = stake.seen.map(|seen| seen.row);
            unknown += self.count_next(no, [truth.row, shown], &mut owners);
            let Some(seen) = stake.seen else {
                unfinished += usize::from(stake.held && is_open_row);
                unknown += usize::from(!stake.held && is_open_row);
                continue;
            };
            let surely_open = seen.last >= began && seen.beside.is_none() && is_open(seen.row);
            unfinished += usize::from(is_open_row && (stake.held || surely_open));
            let expired = began >= seen.since + self.lease && seen.beside.is_none();
            let may_live = [Some(seen.row).filter(|_| !expired), seen.beside];
            for owner in may_live.into_iter().flatten().filter_map(|row| row.owner) {
                match owner {
                    Owner::Stranger => unknown += 1,
                    // The row is older than what the worker did with the lease since: another may have it by now.
                    Owner::Life(other) if other == no && !stake.is_busy() => unknown += 1,
                    Owner::Life(other) if other == no => {}
                    Owner::Life(other) => drop(owners.insert(other)),
                }
            }
            let is_known = surely_open && !busy && stake.quiet < began && self.is_known(life, truth);
            let as_it_is = truth.row == Some(seen.row) && truth.changed < began && !truth.edited;
            let Some(first) = life.first.get(&self.streams.of(shard as ShardNo)) else {
                continue;
            };
            let is_free = match seen.row.owner {
                None => now >= first + self.meeting,
                Some(owner) => {
                    let shard = shard as ShardNo;
                    (expired || self.is_left_lying(shard, began, &seen)) && owner != Owner::Life(no)
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
        let left = if self.has_mute(life) { 0 } else { left };
        Some(within.max(self.beyond(left, 1 + owners.len() + unknown, mine)))
    }

    /// Whether some owner may look like a worker of another program.
    fn has_mute(&self, life: &Life) -> bool {
        let before = life.before.unwrap_or(0);
        self.rows.iter().any(|truth| truth.mute_until > before)
    }

    /// The workers that a lease is promised to count as owners. Returns how many of them are not known.
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

    /// Whether a lease was handed over to a worker that has not taken it in time.
    fn is_left_lying(&self, shard: ShardNo, began: Time, seen: &Seen) -> bool {
        self.given.has(shard) && began >= seen.since + self.given.most() && seen.beside.is_none()
    }

    /// How many of the leases that dead workers `left` a life must ask for, though they be beyond its share.
    fn beyond(&self, left: usize, workers: usize, mine: usize) -> usize {
        if !self.asks || !self.alone || self.rows.iter().any(|truth| truth.edited) {
            return 0;
        }
        let room = match self.most {
            0 => usize::MAX,
            most => most.saturating_sub(mine),
        };
        (2 * left).div_ceil(workers).min(left).min(room)
    }

    /// Whether a life knows what a shard came from.
    fn is_known(&self, life: &Life, truth: &Truth) -> bool {
        // A list may lag by a scan interval.
        !self.listed || !truth.has_parents && truth.born + self.interval <= life.booted
    }
}

impl Stake {
    /// A whole scan has ended that began then. A worker forgets a row that was not in it, such as by a stale read of the table as
    /// it was before the row was created, and observes it anew when it is shown again.
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
            // It may be a stale read of a lease that the life has let go of since, so it is not believed at first.
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
            // A stale read: what was shown beside scans since is believed.
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
