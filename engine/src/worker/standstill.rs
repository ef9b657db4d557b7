//! The runtime of the handlers: whether it runs tasks, and when a worker lets its leases go because its handlers cannot
//! run.
//!
//! A worker whose handlers block every thread of their runtime renews its leases all the same, and no worker reads
//! their shards. So the worker lets go of all leases after `give_up_after`, and wants none until the runtime runs
//! again. One slow shard is no reason: then the runtime runs other tasks. A handler that blocks its thread and reports
//! progress is no reason either.
//!
//! The records of a blocked handler come again. If their processing takes longer than `give_up_after` each time, they
//! would never be done. So the time doubles each time when the worker, within its life, lets go of all leases.

use crate::time::{Mono, Span};

/// The time doubles so often at most: 30 s come to an hour.
const MOST_DOUBLINGS: u32 = 7;

/// The known state of the handlers' runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Standstill {
    /// Since when the runtime runs nothing, by the last report.
    since: Option<Mono>,
    /// The leases are let go of.
    lets_go: bool,
    /// How often they were, in this life.
    times: u32,
    /// When a handler last reported progress.
    progress: Mono,
}

/// The effect of a report that the runtime runs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    /// It was not known before: when the leases will be let go of. Absent within: never.
    news: Option<Option<Span>>,
    /// From now on, the leases are let go of.
    lets_go: bool,
}

impl Blocked {
    /// If it was not known before: when the leases will be let go of. Absent within: never.
    pub(super) fn news(self) -> Option<Option<Span>> {
        self.news
    }

    /// Whether the leases are let go of from now on.
    pub(super) fn lets_go(self) -> bool {
        self.lets_go
    }
}

impl Standstill {
    /// Whether the leases are let go of, and no other is wanted.
    pub(super) fn lets_go(&self) -> bool {
        self.lets_go
    }

    /// The runtime has run nothing for so long. The leases are let go of after `limit`; 0: never.
    pub(super) fn blocked(&mut self, now: Mono, so_far: Span, limit: Span) -> Blocked {
        let limit = limit.times(1 << self.times.min(MOST_DOUBLINGS));
        let news = self.since.is_none().then(|| {
            let left = limit.0.saturating_sub(so_far.0);
            (limit > Span::ZERO).then_some(Span(left))
        });
        self.since = Some(now - so_far);
        let idle = so_far.min(now.since(self.progress));
        let lets_go = limit > Span::ZERO && !self.lets_go && idle >= limit;
        if lets_go {
            self.lets_go = true;
            self.times = self.times.saturating_add(1);
        }
        Blocked { news, lets_go }
    }

    /// The runtime runs. For how long it did not, and whether leases were let go of; absent: that was not known.
    pub(super) fn runs(&mut self, now: Mono) -> Option<(Span, bool)> {
        let since = self.since.take()?;
        Some((now.since(since), std::mem::take(&mut self.lets_go)))
    }

    /// A handler has processed something.
    pub(super) fn progressed(&mut self, now: Mono) {
        self.progress = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Span = Span::from_secs(30);

    fn at(second: u64) -> Mono {
        Mono(0) + Span::from_secs(second)
    }

    /// At `second`, the runtime has run nothing for `so_far`. Returns when leases will be let go of, if that is news,
    /// and whether they are.
    fn blocked(standstill: &mut Standstill, second: u64, so_far: u64) -> (Option<u64>, bool) {
        let found = standstill.blocked(at(second), Span::from_secs(so_far), LIMIT);
        let news = found.news.map(|left| left.map_or(0, |left| left.0 / 1_000_000));
        (news, found.lets_go)
    }

    #[test]
    fn it_is_news_once_and_leases_are_let_go_of_once() {
        let mut known = Standstill::default();
        assert_eq!(known.runs(at(90)), None);
        assert_eq!(blocked(&mut known, 105, 5), (Some(25), false));
        assert_eq!(blocked(&mut known, 129, 29), (None, false));
        assert!(!known.lets_go());
        assert_eq!(blocked(&mut known, 130, 30), (None, true));
        assert_eq!(blocked(&mut known, 131, 31), (None, false));
        assert!(known.lets_go());
        assert_eq!(known.runs(at(140)), Some((Span::from_secs(40), true)));
        assert!(!known.lets_go());
        assert_eq!(known.runs(at(141)), None);
    }

    #[test]
    fn the_time_doubles_with_each_time_that_leases_were_let_go_of() {
        let mut known = Standstill::default();
        let mut second = 0;
        for limit in [30, 60, 120, 240, 480, 960, 1_920, 3_840, 3_840, 3_840] {
            second += 10_000;
            assert_eq!(blocked(&mut known, second, limit - 1), (Some(1), false));
            assert_eq!(blocked(&mut known, second + 1, limit), (None, true));
            known.runs(at(second + 2));
        }
    }

    #[test]
    fn a_handler_that_says_what_it_has_processed_puts_it_off() {
        let mut known = Standstill::default();
        known.progressed(at(120));
        assert_eq!(blocked(&mut known, 149, 60), (Some(0), false));
        assert_eq!(blocked(&mut known, 150, 61), (None, true));
    }

    #[test]
    fn without_a_limit_no_lease_is_let_go_of() {
        let mut known = Standstill::default();
        let found = known.blocked(at(90_000), Span::from_secs(80_000), Span::ZERO);
        let expected = Blocked { news: Some(None), lets_go: false };
        assert_eq!(found, expected);
    }
}
