//! `requests-on-time`: a slow or hung write of one lease does not delay another lease's renewal, and failures delay in
//! proportion.
//!
//! Each held lease of a worker has a lane of its own, and scans have a lane, too. While a lane has no request under
//! way, its next request comes at the first of these times, whatever happens on other lanes:
//!
//! * a renewal, a renewal interval after the last request;
//! * a checkpoint, a checkpoint interval after the last checkpoint; or at once on the application's request; or at once
//!   if the worker is releasing the shard and knows of no running handler;
//! * a scan, a scan interval after the last scan;
//! * a failed look at a stream, or at the table itself;
//! * but after failures in a row no sooner than their pause, doubled with each failure.
//!
//! Leases of a worker slowed by a throttling table are not judged: their requests wait for each other.

mod bounds;
mod lane;

use super::fact::{Ask, How, Mark, Verb};
use super::{
    EVENTS, Fact, History, LifeNo, Property, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict,
};
use crate::streams::StreamNo;
use bounds::{Bounds, SLACK_US};
use lane::Lane;
use std::collections::{BTreeMap, BTreeSet};

/// The processed and not yet durable records of a shard.
#[derive(Clone, Debug, Default)]
struct Progress {
    token: u64,
    through: u64,
    /// Since when a checkpoint is owed without a request sent.
    owed: Option<Time>,
    /// The time of the application's request.
    asked: Option<Time>,
    /// The end of the belief in the lease.
    until: Time,
    /// A handler is running.
    handling: bool,
    /// The worker is releasing the lease: no request waits for an interval any more, but the release waits for the end
    /// of the shard.
    leaving: bool,
    closed: bool,
}

/// The lanes of one life.
#[derive(Clone, Debug, Default)]
struct Life {
    leases: BTreeMap<ShardNo, (Lane, Progress)>,
    scans: Lane,
    /// Looks at each stream and at the table itself: a look is due only after a failed look.
    setups: BTreeMap<Option<StreamNo>, Lane>,
    /// Streams no longer read: earlier requests about a left stream do not count, and need no repetition.
    left: BTreeSet<StreamNo>,
    /// The life has listed the shards, and may rest before a search for missing shards.
    listed: bool,
    stands: bool,
    stopping: bool,
    /// Commands to handlers wait, since no handler can run: the worker cannot know of a handler's end.
    blocked: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Isolation {
    bounds: Bounds,
    lives: Vec<Life>,
}

/// The stream of this request. Absent: the request looks at the table.
fn looked_at(ask: Ask) -> Option<StreamNo> {
    match ask {
        Ask::DescribeStream(stream) => Some(stream),
        _ => None,
    }
}

impl Life {
    /// The lane for looks at the same stream or table as this request's.
    fn setup(&mut self, ask: Ask) -> &mut Lane {
        self.setups.entry(looked_at(ask)).or_default()
    }

    /// A look at a stream or at the table was answered.
    fn set_up(&mut self, now: Time, op: u64, ask: Ask, how: How) {
        if looked_at(ask).is_some_and(|stream| self.left.contains(&stream)) {
            return;
        }
        let stopping = self.stopping;
        let lane = self.setup(ask);
        if ask == Ask::Setup && !lane.open.contains(&op) {
            // The application answered in place of the service: the request looked at no stream.
            return;
        }
        lane.answered(now, op, ask, how);
        lane.used = lane.failures > 0 && !stopping;
    }

    /// `of`: absent for all shards.
    fn expect_now(&mut self, now: Time, of: Option<ShardNo>) {
        let leases = self.leases.iter_mut().filter(|_| !self.blocked);
        let leases = leases.filter(|(shard, _)| of.is_none_or(|of| of == **shard));
        leases.for_each(|(_, (_, progress))| progress.expect_now(now));
    }

    /// Failed looks wait from now on.
    fn rest(&mut self, now: Time) {
        for lane in self.setups.values_mut() {
            lane.last = now;
        }
    }
}

impl Progress {
    /// The progress of a shard is saved at once during a release, if no handler is running.
    fn expect_now(&mut self, now: Time) {
        if self.leaving && !self.handling && !self.closed && self.owed.is_some() {
            self.asked.get_or_insert(now);
        }
    }

    /// Moves an owed checkpoint to now.
    fn put_off(&mut self, now: Time) {
        self.owed = self.owed.map(|_| now);
        self.asked = self.asked.map(|_| now);
    }

    /// The latest time for a checkpoint request.
    fn due(&self, now: Time, lane: &Lane, bounds: &Bounds) -> Time {
        let Some(owed) = self.owed.filter(|_| lane.used && lane.open.is_empty() && now < self.until) else {
            return Time::MAX;
        };
        let after = lane.last.saturating_add(bounds.pause(lane.failures));
        let asked = self.asked.map_or(Time::MAX, |at| at.saturating_add(SLACK_US));
        owed.saturating_add(bounds.checkpoint).min(asked).max(after)
    }
}

impl Isolation {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | ROWS | EVENTS).others(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { bounds: Bounds::new(terms), lives: Vec::new() }
    }

    fn life(&mut self, life: LifeNo) -> &mut Life {
        let index = life as usize;
        if self.lives.len() <= index {
            self.lives.resize_with(index + 1, Life::default);
        }
        &mut self.lives[index]
    }

    fn lease(&mut self, life: LifeNo, shard: ShardNo) -> &mut (Lane, Progress) {
        self.life(life).leases.entry(shard).or_default()
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Asked { life, about: Some(shard), op, ask, .. } if is_of_lease(ask) => {
                self.compare_lease(now, (life, shard), history, verdict);
                let (lane, progress) = self.lease(life, shard);
                lane.asked(now, op);
                if matches!(ask, Ask::Write(Verb::Checkpoint | Verb::End)) {
                    progress.put_off(now);
                }
            }
            Fact::Answered { life, about: Some(shard), op, ask, how, .. } if is_of_lease(ask) => {
                if let Some((lane, _)) = self.life(life).leases.get_mut(&shard) {
                    lane.answered(now, op, ask, how);
                }
            }
            Fact::Asked { life, ask: Ask::ScanPage, op, .. } => {
                self.compare_scans(now, life, verdict);
                let scans = &mut self.life(life).scans;
                scans.used = true;
                scans.asked(now, op);
            }
            Fact::Answered { life, ask: ask @ Ask::ScanPage, op, how, .. } => {
                self.life(life).scans.answered(now, op, ask, how)
            }
            Fact::Asked { life, ask: Ask::ListShards, .. } => self.life(life).listed = true,
            // A rest counts from the end of the listing, and earlier failed looks wait, too.
            Fact::Answered { life, ask: Ask::ListShards | Ask::ListMore, .. } => self.life(life).rest(now),
            Fact::Asked { life, ask: ask @ (Ask::Setup | Ask::DescribeStream(_)), op, .. } => {
                self.compare_setups(now, life, verdict);
                self.life(life).setup(ask).asked(now, op);
            }
            Fact::Answered { life, ask: ask @ (Ask::Setup | Ask::DescribeStream(_)), op, how, .. } => {
                self.life(life).set_up(now, op, ask, how)
            }
            Fact::Holds { life, shard, until, .. } => {
                let (lane, progress) = self.lease(life, shard);
                if !lane.used {
                    (lane.used, lane.last, lane.failures) = (true, now, 0);
                }
                // A checkpoint owed at the belief's end is owed anew.
                if progress.until <= now {
                    progress.put_off(now);
                }
                progress.until = until;
            }
            Fact::HoldsNoMore { life, shard } => {
                let (lane, progress) = self.lease(life, shard);
                lane.used = false;
                (progress.owed, progress.asked) = (None, None);
            }
            Fact::OpenBegun { life, shard, token } => {
                let leaving = self.life(life).stopping;
                let closed = history.shard(shard).records.is_some();
                let until = self.lease(life, shard).1.until;
                self.lease(life, shard).1 = Progress { token, until, leaving, closed, ..Progress::default() };
            }
            Fact::Processed { life, shard, token, through } => {
                let durable = history.shard(shard).durable;
                let (_, progress) = self.lease(life, shard);
                if progress.token == token && through > progress.through {
                    progress.through = through;
                    if durable < Some(Mark::At(through)) {
                        progress.owed.get_or_insert(now);
                    }
                }
            }
            Fact::CheckpointAsked { life, shard, token } => {
                let (_, progress) = self.lease(life, shard);
                if progress.token == token && progress.owed.is_some() {
                    progress.asked.get_or_insert(now);
                }
            }
            Fact::Closed { life, shard, .. } => {
                let (_, progress) = self.lease(life, shard);
                (progress.owed, progress.asked) = (None, None);
            }
            Fact::RowChanged { shard, before, after: Some(row), .. }
                if before.is_none_or(|before| before.checkpoint != row.checkpoint) =>
            {
                let durable = history.shard(shard).durable;
                for life in &mut self.lives {
                    if let Some((_, progress)) = life.leases.get_mut(&shard)
                        && durable >= Some(Mark::At(progress.through))
                    {
                        (progress.owed, progress.asked) = (None, None);
                    }
                }
            }
            Fact::ShardClosed { shard, .. } => {
                for life in &mut self.lives {
                    if let Some((_, progress)) = life.leases.get_mut(&shard) {
                        (progress.closed, progress.asked) = (true, None);
                    }
                }
            }
            Fact::Delivered { life, shard, .. } => self.lease(life, shard).1.handling = true,
            Fact::HandlerEnded { life, shard, .. } => {
                self.lease(life, shard).1.handling = false;
                self.life(life).expect_now(now, Some(shard));
            }
            Fact::Yields { life, shard } => {
                self.lease(life, shard).1.leaving = true;
                self.life(life).expect_now(now, Some(shard));
            }
            Fact::Blocked { life } => self.life(life).blocked = true,
            Fact::Unblocked { life } => {
                let life = self.life(life);
                life.blocked = false;
                life.expect_now(now, None);
            }
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => {
                let life = self.life(life);
                (life.scans.used, life.stopping) = (false, true);
                life.setups.clear();
                let leases = life.leases.values_mut();
                leases.for_each(|(_, progress)| progress.leaving = true);
                life.expect_now(now, None);
            }
            Fact::StreamLeft { life, stream, .. } => {
                let life = self.life(life);
                life.setups.remove(&Some(stream));
                life.left.insert(stream);
            }
            Fact::StreamBack { life, stream } => drop(self.life(life).left.remove(&stream)),
            Fact::Paused { life } => self.life(life).stands = true,
            Fact::Resumed { life, .. } => {
                let life = self.life(life);
                life.stands = false;
                life.scans.last = now;
                life.rest(now);
                for (lane, progress) in life.leases.values_mut() {
                    lane.last = now;
                    progress.put_off(now);
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => *self.life(life) = Life::default(),
            _ => {}
        }
    }

    /// A missing request is found only by a look.
    pub(super) fn look(&mut self, now: Time, history: &History, verdict: &mut Verdict) {
        for life in 0..self.lives.len() as LifeNo {
            if self.lives[life as usize].stands {
                continue;
            }
            let shards: Vec<ShardNo> = self.lives[life as usize].leases.keys().copied().collect();
            for shard in shards {
                self.compare_lease(now, (life, shard), history, verdict);
            }
            self.compare_scans(now, life, verdict);
            self.compare_setups(now, life, verdict);
        }
    }

    fn compare_lease(
        &mut self, now: Time, (life, shard): (LifeNo, ShardNo), history: &History, verdict: &mut Verdict,
    ) {
        let bounds = &self.bounds;
        let Some((lane, progress)) =
            self.lives.get_mut(life as usize).and_then(|life| life.leases.get_mut(&shard))
        else {
            return;
        };
        if history.throttling.slows(now, life) {
            lane.last = now;
            progress.put_off(now);
            return;
        }
        if now > lane.due(bounds.renewal, bounds) {
            let idle = now - lane.last;
            lane.last = now;
            verdict.report(Property::RequestsOnTime, now, || {
                format!(
                    "life {life} holds shard {shard} and let it alone for {} ms after {} failures, {} ms are allowed",
                    idle / 1_000,
                    lane.failures,
                    bounds.renewal.max(bounds.pause(lane.failures)) / 1_000
                )
            });
        }
        if now > progress.due(now, lane, bounds) {
            let owed = progress.owed.unwrap_or(now);
            let asked = progress.asked;
            progress.put_off(now);
            let (since, through) = (asked.unwrap_or(owed), progress.through);
            verdict.report(Property::RequestsOnTime, now, || {
                let why = if asked.is_some() { "was asked to write" } else { "owes" };
                format!(
                    "life {life} {why} the checkpoint of shard {shard} at record {through} for {} ms, and has nothing under way",
                    (now - since) / 1_000
                )
            });
        }
    }

    fn compare_scans(&mut self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let bounds = &self.bounds;
        let Some(scans) = self.lives.get_mut(life as usize).map(|life| &mut life.scans) else {
            return;
        };
        if now > scans.due(bounds.scan, bounds) {
            let idle = now - scans.last;
            scans.last = now;
            verdict.report(Property::RequestsOnTime, now, || {
                format!(
                    "life {life} has not looked at the table for {} ms after {} failures, {} ms are allowed",
                    idle / 1_000,
                    scans.failures,
                    bounds.scan.max(bounds.pause(scans.failures)) / 1_000
                )
            });
        }
    }

    fn compare_setups(&mut self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let bounds = &self.bounds;
        let Some(life_of) = self.lives.get_mut(life as usize) else {
            return;
        };
        let every = match life_of.listed {
            true => bounds.setup.max(bounds.rest),
            false => bounds.setup,
        };
        for (of, lane) in &mut life_of.setups {
            if now > lane.due(every, bounds) {
                let idle = now - lane.last;
                lane.last = now;
                verdict.report(Property::RequestsOnTime, now, || {
                    let what = of.map_or("the table".to_owned(), |stream| format!("stream {stream}"));
                    let allowed = every.max(bounds.pause(lane.failures)) / 1_000;
                    let (idle, failures) = (idle / 1_000, lane.failures);
                    format!("life {life} did not look at {what} for {idle} ms after {failures} failures, {allowed} ms are allowed")
                });
            }
        }
    }
}

/// Hash keys are written beside the lanes: such a write delays no renewal, and its success proves no renewal.
fn is_of_lease(ask: Ask) -> bool {
    match ask {
        Ask::Write(verb) => verb != Verb::SetRange,
        _ => ask == Ask::Read,
    }
}

#[cfg(test)]
mod tests;
