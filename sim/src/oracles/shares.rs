//! `fair-shares`: a worker requests no more leases than its share.
//!
//! Answers shown to the worker bound the share from above: all leases possibly unfinished in its view, over all workers
//! possibly alive in its view. The worker's own leases and requests are counted from below. For answers received while
//! a write waited, the oracle allows both states, before and after.
//!
//! Where owners hand leases over on request, workers may take a dead worker's leases beyond the share, too: other
//! workers request the surplus then. An owner without a renewal seen by the worker may be dead, and receives no
//! request.

use super::fact::{Ask, How, Owner, Row, Verb};
use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, REPORTS, REQUESTS, ROWS, SHOWN, Sees, ShardNo, Terms,
    Time, Verdict,
};
use leasehold_engine::config::Config;
use leasehold_engine::policy::{Assign, Steal};
use std::collections::BTreeSet;

/// A row as last shown to a worker.
#[derive(Clone, Copy, Debug)]
struct Seen {
    row: Row,
    owner_since: Time,
    counter_since: Time,
    /// The time between this counter and the counter before, in µs.
    gap: u64,
    /// The row was removed since, or was shown with other content beside scans: until the next scan, the worker may
    /// believe in the row or not.
    disputed: bool,
    /// A counter first shown beside scans, and the time.
    early: Option<(u64, Time)>,
    /// An older row was shown since, by a stale read or after the row was made anew.
    older: bool,
    /// The row was shown since the end of the last whole scan.
    fresh: bool,
}

impl Seen {
    /// Whether the row's reader may count the shard as unfinished.
    fn may_be_open(&self) -> bool {
        self.older || self.row.is_open()
    }
}

/// The state between a life and a lease.
#[derive(Clone, Copy, Debug, Default)]
struct Stake {
    seen: Option<Seen>,
    held: bool,
    /// Unanswered writes to gain the lease.
    takes: u32,
    claims: u32,
    /// The owner and the next owner seen at the time of the request.
    asked_of: (Option<Owner>, Option<Owner>),
    /// The row names this life as the requester, and the life knows.
    claimed: bool,
    /// The time of the last request.
    asked: Option<Time>,
    /// The life holds the lease, and an answer beside scans showed a promise to another worker. A holder believes in no
    /// other answer about its leases: the next guarded write decides about news from scans.
    gives: bool,
    /// The owners and counters of the row in the last two different answers to this life. Either answer may be a stale
    /// read.
    owned: [Option<(Owner, u64)>; 2],
    /// The lease was requested as a part of the share; otherwise the life had the lease before, or received the lease.
    chosen: bool,
    since: Time,
}

impl Stake {
    /// Whether a take of the lease is under way with a chance of success, by the facts shown to its life.
    fn may_be_taken(&self) -> bool {
        let (owner, next) = self.asked_of;
        // A release is a change of hands, too: the write expects the former owner.
        let has_changed_hands = |seen: Seen| seen.row.owner != owner;
        let is_promised = |seen: Seen| seen.row.next != next && seen.row.next.is_some();
        // The owner has cancelled the hand-over: the row differs from the row to be taken.
        let is_taken_back = |seen: Seen| next.is_some() && seen.row.next.is_none() && seen.row.owner == owner;
        let is_lost = |seen| has_changed_hands(seen) || is_promised(seen) || is_taken_back(seen);
        self.takes > 0 && !self.seen.is_some_and(is_lost)
    }

    fn is_idle(&self) -> bool {
        !self.held && !self.claimed && self.takes + self.claims == 0
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    /// Whether leases are shared out by count, and clocks keep their promised rate error.
    counted: bool,
    /// Whether workers request leases from owners, or a leader moves leases.
    asks: bool,
    /// Whether a leader may assign leases.
    led: bool,
    /// The greatest number of leases; 0: no limit.
    most: usize,
    /// A row renewed within this time belongs to its owner, in µs.
    alive: u64,
    /// A lease requested again within this time was not given up meanwhile, in µs.
    pursuit: u64,
    /// The longest time between a write's decision and its emission, in µs: the worker need not have known changes
    /// within this time.
    doubt: u64,
    lives: PerShard<PerShard<Stake>>,
    /// The leader of a fleet has a share by load, not by count.
    leader: Option<LifeNo>,
    /// Lives that were shown an owner's renewal, each with the owner.
    renewing: BTreeSet<(LifeNo, Owner)>,
}

impl Shares {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | SHOWN | ROWS | EVENTS).others(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let pursuit = 2 * terms.longest(|config| config.table_timeout() + config.retry_max());
        let quota = |config: &Config| config.max_leases();
        let most = match terms.least(quota) {
            0 => 0,
            _ => terms.most(quota) as usize,
        };
        Self {
            counted: terms.config.policies().assign == Assign::Count && !terms.clocks_beyond,
            asks: terms.config.policies().steal == Steal::Ask || terms.led,
            led: terms.led,
            most,
            alive: terms.least(|config| config.lease_duration().0) / 5 * 4,
            pursuit,
            doubt: terms.longest(|config| config.table_timeout()),
            ..Self::default()
        }
    }

    fn stake(&mut self, life: LifeNo, shard: ShardNo) -> &mut Stake {
        self.lives.of(life).of(shard)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        if self.counted {
            self.count(now, fact, history, verdict);
        }
    }

    fn count(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        let pursuit = self.pursuit;
        match *fact {
            Fact::RowChanged { shard, by, after, .. } => {
                self.changed(shard, after, history);
                if let (Some(life), Some(row)) = (by, after) {
                    self.shown(now, life, shard, row, true);
                }
            }
            Fact::Shown { life, shard, row, scanned } => {
                let me = Some(Owner::Life(life));
                if !scanned && row.owner == me {
                    self.stake(life, shard).gives = row.next.is_some_and(|next| Some(next) != me);
                }
                self.shown(now, life, shard, row, scanned);
            }
            Fact::ScanEnded { life } => self.scanned(life),
            Fact::Asked {
                life,
                ask: Ask::Write(verb @ (Verb::Take | Verb::Claim)),
                about: Some(shard),
                ..
            } if !history.partial.has(life) => self.asked(now, (life, shard), verb, history, verdict),
            Fact::Answered {
                life,
                ask: Ask::Write(verb @ (Verb::Take | Verb::Claim)),
                about: Some(shard),
                how,
                ..
            } => {
                let asked_for = history.shard(shard).row.and_then(|row| row.next);
                let stake = self.stake(life, shard);
                if verb == Verb::Claim {
                    stake.claims = stake.claims.saturating_sub(1);
                    stake.claimed |= how == How::Applied && asked_for == Some(Owner::Life(life));
                } else {
                    stake.takes = stake.takes.saturating_sub(1);
                }
            }
            Fact::Holds { life, shard, .. } => {
                let stake = self.stake(life, shard);
                if stake.is_idle() {
                    let answered = stake.asked.is_some_and(|last| now < last + pursuit);
                    (stake.since, stake.chosen) = (now, stake.chosen && answered);
                }
                stake.gives &= stake.held;
                stake.held = true;
            }
            Fact::HoldsNoMore { life, shard } => {
                let stake = self.stake(life, shard);
                (stake.held, stake.chosen, stake.asked) = (false, false, None);
            }
            Fact::Leads { life } => self.leader = life,
            Fact::Died { life } | Fact::Stopped { life, .. } => *self.lives.of(life) = PerShard::default(),
            _ => {}
        }
    }

    fn changed(&mut self, shard: ShardNo, after: Option<Row>, history: &History) {
        let asked_before = history.shard(shard).before.and_then(|row| row.next);
        if let Some(Owner::Life(life)) = asked_before
            && after.and_then(|row| row.next) != asked_before
        {
            self.stake(life, shard).claimed = false;
        }
        if after.is_none() {
            let stakes = self.lives.iter_mut().filter_map(|life| life.get_mut(shard as usize));
            for seen in stakes.filter_map(|stake| stake.seen.as_mut()) {
                seen.disputed = true;
            }
        }
    }

    /// A whole scan has ended. A row missing from the scan is forgotten, though the row may exist: a stale page lacks
    /// recent rows.
    fn scanned(&mut self, life: LifeNo) {
        for stake in self.lives.of(life).iter_mut() {
            if let Some(seen) = &mut stake.seen {
                seen.disputed |= !seen.fresh;
                seen.fresh = false;
            }
        }
    }

    /// Rows shown beside scans may count only for requested leases: the worker may believe in the earlier row, or in
    /// the row as shown.
    fn shown(&mut self, now: Time, life: LifeNo, shard: ShardNo, row: Row, scanned: bool) {
        self.note_renewal(life, shard, row);
        let seen = &mut self.stake(life, shard).seen;
        match seen {
            Some(seen) if !scanned => {
                seen.disputed |= seen.row.owner != row.owner || !row.is_open();
                if seen.early.is_none_or(|(counter, _)| counter != row.counter) {
                    seen.early = Some((row.counter, now));
                }
            }
            None if !scanned => {}
            Some(seen) if seen.row.owner == row.owner && seen.row.counter <= row.counter => {
                if seen.row.counter < row.counter {
                    let early = seen.early.filter(|(counter, _)| *counter == row.counter);
                    let since = early.map_or(now, |(_, since)| since);
                    (seen.gap, seen.counter_since) = (since.saturating_sub(seen.counter_since), since);
                }
                (seen.row, seen.disputed, seen.older, seen.fresh) = (row, false, false, true);
            }
            // A stale read; or the row was made anew, and its reader has forgotten the former row.
            Some(seen) if row.counter < seen.row.counter && !seen.older => {
                (seen.disputed, seen.older, seen.fresh) = (true, true, true);
                seen.early = Some((row.counter, now));
            }
            _ => {
                let early = seen.and_then(|seen| seen.early);
                let since = early.filter(|(counter, _)| *counter == row.counter);
                *seen = Some(Seen {
                    row,
                    // The row shown beside scans may be newer than this row.
                    early: early.filter(|(counter, _)| *counter > row.counter),
                    older: false,
                    fresh: true,
                    owner_since: now,
                    counter_since: since.map_or(now, |(_, since)| since),
                    gap: 0,
                    disputed: false,
                });
            }
        }
    }

    fn note_renewal(&mut self, life: LifeNo, shard: ShardNo, row: Row) {
        let owned = row.owner.map(|owner| (owner, row.counter));
        let last = &mut self.stake(life, shard).owned;
        let before = *last;
        if before[0] != owned {
            *last = [owned, before[0]];
        }
        let Some((owner, is)) = owned else { return };
        let renewed = |(before, was): (Owner, u64)| before == owner && was != is;
        if before.into_iter().flatten().any(renewed) {
            self.renewing.insert((life, owner));
        }
    }

    /// A dead worker receives no request.
    fn judge_owner(&self, now: Time, life: LifeNo, shard: ShardNo, history: &History, verdict: &mut Verdict) {
        let row = history.shard(shard).row;
        let stakes = self.lives.get(life as usize);
        let seen = stakes.and_then(|stakes| stakes.get(shard as usize)?.seen);
        // Only if the true row and the shown row agree, the owner asked is certain.
        let owner = row.and_then(|row| row.owner).filter(|owner| {
            let shown = seen.is_some_and(|seen| seen.row.owner == Some(*owner) && !seen.disputed);
            shown && *owner != Owner::Stranger
        });
        if let Some(owner) = owner.filter(|owner| !self.renewing.contains(&(life, *owner))) {
            verdict.report(Property::FairShares, now, || {
                format!("life {life} asks {owner:?} for the lease of shard {shard}, and has not seen that owner renew any")
            });
        }
    }

    fn asked(
        &mut self, now: Time, (life, shard): (LifeNo, ShardNo), verb: Verb, history: &History,
        verdict: &mut Verdict,
    ) {
        let (me, pursuit) = (Some(Owner::Life(life)), self.pursuit);
        let of_mine = |row: Row| row.owner == me || row.next == me;
        let given = history.shard(shard).row.is_some_and(of_mine);
        let stake = self.stake(life, shard);
        let goes_on = stake.asked.is_some_and(|last| now < last + pursuit);
        let given = given || stake.seen.is_some_and(|seen| of_mine(seen.row));
        if stake.is_idle() && !goes_on {
            (stake.since, stake.chosen) = (now, false);
        }
        stake.asked = Some(now);
        stake.asked_of = stake.seen.map_or((None, None), |seen| (seen.row.owner, seen.row.next));
        match verb {
            Verb::Claim => stake.claims += 1,
            _ => stake.takes += 1,
        }
        // A claim follows a renewing owner. A failed take is weighed anew before its repetition. But where workers
        // request leases, a worker has perhaps taken a dead worker's leases beyond its share since.
        let follows = goes_on && (verb == Verb::Claim || self.asks);
        let leads = self.leader == Some(life);
        // The request was decided before the throttling began, and has waited for its turn since.
        let waited = history.throttling.slows(now, life);
        if follows || given || leads || waited || !is_open(shard, history) {
            return;
        }
        self.stake(life, shard).chosen = true;
        if self.asks && verb == Verb::Claim {
            self.judge_owner(now, life, shard, history, verdict);
        }
        let others = self.has(now, (life, shard), verb, history);
        let others_alive = self.others_alive(now, life, history);
        let (leases, workers) = (self.unfinished(now, life, history), 1 + others_alive.len());
        let mut share = match self.asks && verb == Verb::Take && self.was_left(now, life, shard) {
            true => leases,
            false => leases.div_ceil(workers),
        };
        if self.most > 0 {
            share = share.min(self.most);
        }
        if others + 1 > share {
            verdict.report(Property::FairShares, now, || {
                format!(
                    "life {life} asks for the lease of shard {shard} while it has or asks for {others}; {leases} leases \
                     among {workers} workers make {share} for each; other owners, each with a lease: {others_alive:?}"
                )
            });
        }
    }

    /// Whether another worker had the lease, and is dead by the facts shown to this life.
    fn was_left(&self, now: Time, life: LifeNo, shard: ShardNo) -> bool {
        let stakes = self.lives.get(life as usize);
        let seen = stakes.and_then(|stakes| stakes.get(shard as usize)?.seen);
        seen.is_some_and(|seen| {
            let owner = seen.row.owner.filter(|owner| *owner != Owner::Life(life));
            owner.is_some() && seen.counter_since + self.alive <= now
        })
    }

    /// The number of other unfinished leases surely known to the life as its own. A life with a take from a dead owner
    /// need not wait for leases requested from live owners.
    fn has(&self, now: Time, (life, but): (LifeNo, ShardNo), verb: Verb, history: &History) -> usize {
        let stakes = self.lives.get(life as usize).into_iter().flat_map(|stakes| stakes.iter()).enumerate();
        let counts = |(shard, stake): &(usize, &Stake)| {
            let asks = verb == Verb::Claim && (stake.claims > 0 || stake.claimed);
            let known = stake.chosen || stake.since + self.doubt <= now;
            // Where workers request leases, a promised lease counts for the next owner.
            let row = history.shard(*shard as ShardNo).row;
            // A lease handed over, and perhaps returned since, need not be known yet.
            let stays = |row: Row| row.is_of(life) && row.next.is_none_or(|next| Some(next) == row.owner);
            let gives = self.asks && stake.held && (stake.gives || !row.is_some_and(stays));
            *shard != but as usize
                && !gives
                && (stake.held || stake.may_be_taken() || asks)
                && known
                && is_open(*shard as ShardNo, history)
                && stake.seen.is_none_or(|seen| seen.row.is_open())
        };
        stakes.filter(counts).count()
    }

    /// The greatest number of leases possibly unfinished in the life's view.
    fn unfinished(&self, now: Time, life: LifeNo, history: &History) -> usize {
        let stakes = self.lives.get(life as usize);
        let open = |shard: &usize| {
            let over = history.shard(*shard as ShardNo).over.filter(|over| *over > 0);
            let ended_lately = over.is_some_and(|over| over + self.doubt > now);
            let stake = stakes.and_then(|stakes| stakes.get(*shard));
            let believed = stake
                .is_some_and(|stake| !stake.is_idle() || stake.seen.is_some_and(|seen| seen.may_be_open()));
            is_open(*shard as ShardNo, history) || ended_lately || believed
        };
        let shards = history.shards.len().max(stakes.map_or(0, |stakes| stakes.len()));
        (0..shards).filter(open).count()
    }

    /// The other owners surely alive in the life's view, at least, each with a lease not wanted by the life. An owner
    /// that leaves a lease handed over untaken for too long may be dead.
    fn others_alive(&self, now: Time, life: LifeNo, history: &History) -> Vec<(Owner, ShardNo)> {
        let lately = |time: Time| time + self.alive > now;
        let alive = |(shard, stake): (usize, &Stake)| {
            let seen = stake.seen.filter(|_| !stake.held && stake.takes == 0)?;
            let renewed = lately(seen.counter_since)
                && (seen.counter_since + self.doubt <= now || seen.gap < self.alive)
                && seen.owner_since + self.doubt <= now;
            let owner = seen.row.owner.filter(|_| renewed && !seen.disputed && seen.row.is_open());
            let lies = history.given.is(shard as ShardNo, seen.row)
                && seen.counter_since + history.given.least() <= now;
            // A leader assigns leases to a dead worker, too: a counter that the leader wrote proves nothing.
            let by = history.shard(shard as ShardNo).by.map(Owner::Life);
            let proved = !self.led || by == seen.row.owner;
            let owner = owner.filter(|_| proved);
            let owner = owner
                .filter(|owner| *owner != Owner::Life(life) && !lies && !history.former.has_ended(*owner))?;
            Some((owner, shard as ShardNo))
        };
        let stakes = self.lives.get(life as usize).into_iter().flat_map(|stakes| stakes.iter());
        let mut owners: Vec<_> = stakes.enumerate().filter_map(alive).collect();
        owners.sort_unstable();
        owners.dedup_by_key(|(owner, _)| *owner);
        owners
    }
}

/// Whether the row of the shard is unfinished.
fn is_open(shard: ShardNo, history: &History) -> bool {
    history.shard(shard).row.is_some_and(Row::is_open)
}

#[cfg(test)]
mod tests;
