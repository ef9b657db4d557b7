//! How fast a worker writes to a lease table that throttles.
//!
//! Each lease pauses after its own failures. With many leases these pauses bound nothing: a table that refuses all writes gets ten times as many writes
//! as at rest, and the leases of live owners lapse.
//!
//! * **Many refusals make the worker slow**: eight for the rate within a second, and no fewer than applied writes. Then the worker's requests about
//!   leases follow one another no faster than renewals at rest, and up to four times more slowly while refusals go on.
//! * **It gets faster again** step by step, each after half a second without a refusal.
//! * **Live owners come first.** A row that stands still while the table throttles says nothing of the owner, as the owner cannot renew the lease. So no
//!   lease of another worker is taken while the table throttles, nor until each owner has had the time to renew once.

use crate::config::Config;
use crate::input::{Cause, Outcome};
use crate::time::{Mono, Span};

/// The refusals within a second that show a throttling table.
const MANY: u32 = 8;
/// The slowest: four times as slow as at rest.
const SLOWEST: u32 = 3;
/// The time without a refusal after which the worker gets faster.
const QUIET: Span = Span::from_millis(500);
/// The time without requests after which the worker does not know whether the table still throttles.
const LASTS: Span = Span::from_secs(5);
/// Requests about leases lie no further apart than this, times how slow the worker is.
const APART: Span = Span::from_millis(100);

/// The recent answers of the table, and the pace of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TablePace {
    /// 0: as fast as requests are due. Each step more is half as fast.
    slowness: u32,
    /// When that changed last, or the table refused a request.
    since: Mono,
    /// When the counted second began, and the refusals and applied writes since.
    second: Mono,
    refused: u32,
    applied: u32,
    /// The time between two requests.
    every: Span,
    next_at: Mono,
}

impl TablePace {
    /// A request about a lease has its outcome. `leases`: how many the worker is about.
    pub(super) fn learn(&mut self, now: Mono, config: &Config, leases: u32, outcome: &Outcome) {
        if now.since(self.second) >= Span::from_secs(1) {
            (self.second, self.refused, self.applied) = (now, 0, 0);
        }
        match outcome {
            Outcome::NotSent(Cause::Throttled) => self.refuse(now),
            Outcome::Applied(_) | Outcome::Refused(_) => self.apply(now),
            _ => {}
        }
        if !self.is_slow(now) {
            self.slowness = 0;
        }
        let rest = config.renew_interval.per(leases.max(1).into()).min(APART);
        self.every = match self.slowness {
            0 => Span::ZERO,
            steps => rest.times(1 << (steps - 1)),
        };
    }

    fn refuse(&mut self, now: Mono) {
        if !self.is_slow(now) {
            self.slowness = 0;
        }
        self.refused += 1;
        let many = self.refused >= MANY && self.refused >= self.applied;
        if many && self.slowness < SLOWEST {
            self.slowness += 1;
            // It takes as many refusals again to make the worker slower still.
            (self.second, self.refused, self.applied) = (now, 0, 0);
        }
        if self.slowness > 0 {
            self.since = now;
        }
    }

    fn apply(&mut self, now: Mono) {
        self.applied += 1;
        if self.is_slow(now) && now.since(self.since) >= QUIET {
            self.slowness -= 1;
            self.since = now;
        }
    }

    fn is_slow(&self, now: Mono) -> bool {
        self.slowness > 0 && now.since(self.since) < LASTS
    }

    /// Whether a request may be made now.
    pub(super) fn allows(&self, now: Mono) -> bool {
        !self.is_slow(now) || now >= self.next_at
    }

    /// When the next request may be made, if none may be made now.
    pub(super) fn next_at(&self) -> Mono {
        self.next_at
    }

    /// A request is made.
    pub(super) fn begun(&mut self, now: Mono) {
        if self.is_slow(now) {
            self.next_at = now + self.every;
        }
    }

    /// Whether a row may have stood still because the table throttled: its owner has not had the time to renew since.
    pub(super) fn spares_owners(&self, now: Mono, config: &Config) -> bool {
        let again = config.renew_interval.scaled(3, 2);
        self.is_slow(now) || self.since > Mono(0) && now.since(self.since) < again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Reply;

    const REFUSED: Outcome = Outcome::NotSent(Cause::Throttled);
    const APPLIED: Outcome = Outcome::Applied(Reply::Done);

    struct Table {
        pace: TablePace,
        now: Mono,
        config: Config,
    }

    impl Table {
        fn of() -> Self {
            Self { pace: TablePace::default(), now: Mono(1_000_000_000), config: Config::default() }
        }

        /// `wanted` requests a second get this outcome, from a worker of fifty leases. Returns the number of requests
        /// made.
        fn answers(&mut self, outcome: &Outcome, wanted: u64, time: Span) -> u64 {
            let until = self.now + time;
            let mut made = 0;
            while self.now < until {
                if self.pace.allows(self.now) {
                    self.pace.begun(self.now);
                    self.pace.learn(self.now, &self.config, 50, outcome);
                    made += 1;
                }
                self.now = (self.now + Span::from_secs(1).per(wanted)).max(self.pace.next_at());
            }
            made
        }
    }

    #[test]
    fn a_table_that_refuses_all_is_asked_less_than_one_at_rest() {
        let mut table = Table::of();
        table.answers(&REFUSED, 200, Span::from_secs(3));
        let made = table.answers(&REFUSED, 200, Span::from_secs(10));
        assert!((30..=50).contains(&made), "{made} in ten seconds, where 150 are made at rest");
        assert!(table.pace.spares_owners(table.now, &table.config));
        table.answers(&APPLIED, 200, Span::from_secs(3));
        assert!(!table.pace.is_slow(table.now), "{:?}", table.pace);
        let made = table.answers(&APPLIED, 200, Span::from_secs(10));
        assert_eq!(made, 2_000);
        assert!(!table.pace.spares_owners(table.now, &table.config));
    }

    /// The worker takes no lease while the table throttles, so it makes no request.
    #[test]
    fn a_worker_without_requests_is_slow_for_a_while_only() {
        let mut table = Table::of();
        table.answers(&REFUSED, 200, Span::from_secs(3));
        table.now += LASTS + table.config.renew_interval.times(2);
        assert!(!table.pace.spares_owners(table.now, &table.config));
        assert!(table.pace.allows(table.now));
        table.answers(&APPLIED, 200, Span::from_millis(20));
        assert_eq!(table.pace.slowness, 0);
    }

    #[test]
    fn single_refusals_make_nobody_slow() {
        let mut table = Table::of();
        for _ in 0..20 {
            table.answers(&REFUSED, 7, Span::from_secs(1));
            table.answers(&APPLIED, 7, Span::from_secs(1));
        }
        assert_eq!(table.pace.slowness, 0);
        assert!(!table.pace.spares_owners(table.now, &table.config));
    }

    #[test]
    fn a_table_that_takes_most_is_written_to_as_before() {
        let mut table = Table::of();
        for _ in 0..200 {
            table.answers(&APPLIED, 100, Span::from_millis(60));
            table.answers(&REFUSED, 100, Span::from_millis(40));
        }
        assert_eq!(table.pace.slowness, 0);
    }
}
