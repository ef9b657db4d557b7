//! `requests-bounded`: requests stay within a formula in every schedule.
//!
//! In any window of `W` (20 s, counted from the first request of its kind), one life of a worker sends no more than
//!
//! | kind | requests |
//! |---|---|
//! | writes and reads of one lease | 2·(`W/renew_interval` + `W/checkpoint_interval`) + 2·`c` + `R` + 12; and `W`/250 ms if workers request the lease, and `W/d` while the index names the lease and its row does not |
//! | GetRecords of one shard | `W/min_interval` + 4 |
//! | iterators of one shard | `W/min_interval` + `R` + 4 |
//! | scan pages | (8·`W/s` + 3)·(`rows`/`page` + 2)·3/2 + `R`·2: an event may bring a scan forward, up to eight times an interval, and the pause after a failure is the least again with the next page |
//! | ListShards pages, for each stream | `l`·(`shards`/`page` + 2) + `R`·2, where `l` is twice `W/scan_interval` + `m` + 3, or this sum and `W`/2 s: workers list shards at this rate while a shard is not found. An expired token starts a listing anew |
//! | looks in the index of owners | (`W/d` + 1)·(`rows`/`page` + 2) + `R`·2 |
//! | about members | (10 + `lives`/`page`)·`m` + `R`·2 + 30: every check reads the list of members, in pages |
//! | descriptions, of the table and of each stream | `W`/1 s·2 + `R` + 20 |
//!
//! where `c` counts the application's requests for a checkpoint, `s` = `quick_scan_interval` if workers request leases
//! and `scan_interval` otherwise, `d` = `fleet.discovery_interval`, `m` = `W/check_interval` if leases are assigned by
//! rank, and `R` = 2·(log2(`retry_max/retry_min`) + `W/retry_max`) + 4 allows for doubling pauses after failures.
//! Constants are generous; the growth counts.
//!
//! A worker must not spin, either: thousands of inputs in no time would leave its machine no time for other work.

use super::fact::{Ask, Verb};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::config::Config;
use leasehold_engine::policy::{Assign, Steal};
use leasehold_engine::time::Span;
use std::collections::BTreeMap;

const WINDOW_US: u64 = 20_000_000;
/// While a shard is not found, this is the shortest time between listings.
const NOT_FOUND_US: u64 = 2_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Lease(ShardNo),
    Records(ShardNo),
    Iterators(ShardNo),
    Scan,
    List,
    Members,
    Owned,
    Setup,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    since: Time,
    requests: u64,
    allowed_more: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Cost {
    renewals: u64,
    fetches: u64,
    scans: u64,
    rounds: u64,
    looks: u64,
    checks: u64,
    discoveries: u64,
    retries: u64,
    page: u64,
    rows: u64,
    lives: u64,
    streams: u64,
    counts: BTreeMap<(LifeNo, Kind), Count>,
}

impl Cost {
    pub(super) const SEES: Sees = Sees::all(REQUESTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let window = terms.at_most(Span(WINDOW_US)) + 1_000_000;
        let times = |every: u64| window / every.max(1) + 1;
        let retries = |config: &Config| {
            let growth = (config.retry_max().0 / config.retry_min().0.max(1)).max(1).ilog2();
            2 * (u64::from(growth) + times(config.retry_max().0)) + 4
        };
        let renewals = |config: &Config| {
            let renew = config.renew_interval().0;
            times(renew) + times(config.checkpoint_interval().0.max(renew / 8))
        };
        let asks = terms.config.policies().steal == Steal::Ask;
        Self {
            renewals: terms.most(renewals),
            fetches: terms.most(|config| times(config.reader().min_interval().0)),
            scans: terms.most(|config| match asks {
                true => times(config.quick_scan_interval().min(config.scan_interval()).0),
                false => times(config.scan_interval().0),
            }),
            rounds: terms.most(|config| times(config.scan_interval().0)),
            looks: match asks {
                true => terms.most(|config| times((config.renew_interval().0 / 2).min(250_000))),
                false => 0,
            },
            checks: match terms.config.policies().assign {
                Assign::Rank => times(terms.config.members().check_interval().0),
                _ => 0,
            },
            discoveries: terms.most(|config| match config.fleet().discovery_interval() {
                Span::ZERO => 0,
                interval => times(interval.0),
            }),
            retries: terms.most(retries),
            page: 1,
            rows: 0,
            lives: 0,
            streams: u64::from(terms.streams),
            counts: BTreeMap::new(),
        }
    }

    fn allowed(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Lease(_) => 2 * self.renewals + self.looks + self.discoveries + self.retries + 12,
            Kind::Records(_) => self.fetches + 4,
            Kind::Iterators(_) => self.fetches + self.retries + 4,
            Kind::Scan => (8 * self.scans + 3) * (self.rows / self.page + 2) * 3 / 2 + 2 * self.retries,
            Kind::List => {
                let (pages, due) = (self.rows / self.page + 2, self.rounds + self.checks + 3);
                let listings = (2 * due).max(due + WINDOW_US / NOT_FOUND_US);
                self.streams * (listings * pages + 2 * self.retries)
            }
            Kind::Members => (10 + self.lives / self.page) * self.checks + 2 * self.retries + 30,
            Kind::Owned => match self.discoveries {
                0 => 0,
                looks => (looks + 1) * (self.rows / self.page + 2) + 2 * self.retries,
            },
            Kind::Setup => self.streams * (2 * WINDOW_US / 1_000_000 + self.retries + 20),
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { before: None, after: Some(_), .. } | Fact::ShardBorn { .. } => self.rows += 1,
            Fact::Booted { .. } => self.lives += 1,
            Fact::Spins { life, inputs, within_us } => verdict.report(Property::RequestsBounded, now, || {
                format!(
                    "life {life} took {inputs} inputs within {} ms, and asks to be woken at once again",
                    within_us / 1_000
                )
            }),
            Fact::Processed { life, shard, .. } => {
                // Each newly processed record may be checkpointed at once, if the application requests a checkpoint.
                if let Some(count) = self.counts.get_mut(&(life, Kind::Lease(shard))) {
                    count.allowed_more += 2;
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                let keys: Vec<_> = self
                    .counts
                    .range((life, Kind::Lease(0))..=(life, Kind::Setup))
                    .map(|(key, _)| *key)
                    .collect();
                for key in keys {
                    self.counts.remove(&key);
                }
            }
            Fact::Asked { life, ask, about, .. } => {
                let kind = match (ask, about) {
                    (Ask::Write(Verb::Create), _) => return,
                    (Ask::Write(_) | Ask::Read, Some(shard)) => Kind::Lease(shard),
                    (Ask::GetRecords, Some(shard)) => Kind::Records(shard),
                    (Ask::GetIterator, Some(shard)) => Kind::Iterators(shard),
                    // Another oracle looks at subscriptions.
                    (Ask::Subscribe | Ask::NextEvent, _) => return,
                    (Ask::ScanPage, _) => Kind::Scan,
                    (Ask::ListShards | Ask::ListMore, _) => Kind::List,
                    (Ask::Members, _) => Kind::Members,
                    (Ask::Owned, _) => Kind::Owned,
                    _ => Kind::Setup,
                };
                let allowed = self.allowed(kind);
                let count = self.counts.entry((life, kind)).or_default();
                if now >= count.since + WINDOW_US || count.requests == 0 {
                    *count = Count { since: now, requests: 0, allowed_more: 0 };
                }
                count.requests += 1;
                if count.requests > allowed + count.allowed_more {
                    let (requests, since) = (count.requests, count.since);
                    // One report a window is enough.
                    count.allowed_more = u64::MAX / 2;
                    verdict.report(Property::RequestsBounded, now, || {
                        format!(
                            "life {life} sent {requests} requests of kind {kind:?} within {} ms, {allowed} are allowed in {} s",
                            (now - since) / 1_000,
                            WINDOW_US / 1_000_000
                        )
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::How;
    use super::super::testing::{answered, asked, count, judge};
    use super::*;

    fn reads(every_us: u64) -> usize {
        let read = |n| {
            let ask = asked(0, Ask::GetRecords, 1, n, 0, 0);
            [ask, answered(0, Ask::GetRecords, 1, n, How::Applied)].map(|fact| (n * every_us, fact))
        };
        let facts = (0..200u64).flat_map(read);
        count(Property::RequestsBounded, facts)
    }

    #[test]
    fn a_steady_pace_is_fine_and_a_storm_is_found() {
        assert_eq!(reads(250_000), 0);
        assert_eq!(reads(100_000), 1);
    }

    #[test]
    fn who_is_woken_all_the_time_is_found() {
        let spins = Fact::Spins { life: 0, inputs: 10_000, within_us: 10 };
        assert_eq!(judge([(7, spins)]), [Property::RequestsBounded]);
    }
}
