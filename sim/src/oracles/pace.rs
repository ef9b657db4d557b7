//! `requests-bounded`, towards the application: a failed call is not repeated at once.
//!
//! After a failure of a handler, or of its start, the next attempt under the same token comes no sooner than
//! `handler_backoff`. A handler told to stop did not fail.

use super::{EVENTS, Fact, History, LifeNo, Property, Sees, ShardNo, Terms, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    token: u64,
    /// The last record given to the handler, and the handler's reported progress.
    last: u64,
    through: u64,
    told: bool,
    /// The time of the last failed attempt.
    failed: Option<Time>,
}

impl Attempt {
    fn under(token: u64) -> Self {
        Self { token, ..Self::default() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// The least pause, in µs.
    pause: u64,
    attempts: BTreeMap<(LifeNo, ShardNo), Attempt>,
}

impl Pace {
    pub(super) const SEES: Sees = Sees::ours(EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let least = terms.least(|config| config.handler_backoff().0);
        let e = u64::from(terms.config.clock_rate_error_ppm().min(500_000));
        let pause = match terms.clocks_beyond {
            true => 0,
            false => least - (u128::from(least) * u128::from(e) / 1_000_000) as u64,
        };
        Self {
            // A clock shows whole microseconds.
            pause: pause.saturating_sub(2),
            attempts: BTreeMap::new(),
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::OpenBegun { life, shard, token } => {
                let before = self.attempts.insert((life, shard), Attempt::under(token));
                let failed = before.filter(|before| before.token == token).and_then(|before| before.failed);
                self.judge(now, life, shard, failed, "be opened", verdict);
            }
            Fact::Delivered { life, shard, token, last, .. } => {
                let Some(attempt) = self.of(life, shard, token) else {
                    return;
                };
                let failed = attempt.failed.take();
                (attempt.last, attempt.told) = (last, false);
                self.judge(now, life, shard, failed, "process a batch", verdict);
            }
            Fact::Processed { life, shard, token, through } => {
                if let Some(attempt) = self.of(life, shard, token) {
                    attempt.through = through.max(attempt.through);
                }
            }
            // A kept batch or a stopped shard is no failure. A batch given back is read again first.
            Fact::Kept { life, shard, token, .. }
            | Fact::GivenBack { life, shard, token }
            | Fact::Aborted { life, shard, token } => {
                if let Some(attempt) = self.of(life, shard, token) {
                    attempt.told = true;
                }
            }
            // The failed record is past, or the application decides when the shard goes on.
            Fact::SetAside { life, shard, .. } | Fact::ShardStopped { life, shard, .. } => {
                if let Some(attempt) = self.attempts.get_mut(&(life, shard)) {
                    attempt.failed = None;
                }
            }
            Fact::HandlerEnded { life, shard, token } => {
                if let Some(attempt) = self.of(life, shard, token) {
                    let failed = !attempt.told && attempt.through < attempt.last;
                    attempt.failed = failed.then_some(now);
                }
            }
            Fact::OpenFailed { life, shard, token } => {
                if let Some(attempt) = self.of(life, shard, token) {
                    attempt.failed = (!attempt.told).then_some(now);
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.attempts.retain(|(of, _), _| *of != life)
            }
            _ => {}
        }
    }

    fn of(&mut self, life: LifeNo, shard: ShardNo, token: u64) -> Option<&mut Attempt> {
        self.attempts.get_mut(&(life, shard)).filter(|attempt| attempt.token == token)
    }

    fn judge(
        &self, now: Time, life: LifeNo, shard: ShardNo, failed: Option<Time>, what: &str,
        verdict: &mut Verdict,
    ) {
        if let Some(failed) = failed
            && now - failed < self.pause
        {
            verdict.report(Property::RequestsBounded, now, || {
                format!(
                    "life {life} asked shard {shard}'s handler to {what} {} ms after it had failed to, the pause is {} ms at least",
                    (now - failed) / 1_000,
                    self.pause / 1_000
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, count, delivered, opened, processed};
    use super::*;

    fn ended(at: u64) -> (u64, Fact) {
        (at, testing::ended(0, 0))
    }

    fn judged(then: Vec<(u64, Fact)>) -> usize {
        let begun = [(0, opened(0, 0)), (1, delivered(0, 0, 1, 5))];
        count(Property::RequestsBounded, begun.into_iter().chain(then))
    }

    #[test]
    fn a_handler_that_failed_is_called_again_after_a_pause() {
        let again = |after: u64| judged(vec![ended(10), (10 + after, delivered(0, 0, 1, 5))]);
        assert_eq!((again(600_000), again(100_000)), (0, 1));
        let done = vec![(10, processed(0, 0, 5)), ended(10), (11, delivered(0, 0, 6, 9))];
        assert_eq!(judged(done), 0, "it did not fail");
        let told = Fact::Aborted { life: 0, shard: 0, token: 1 };
        let told = vec![(9, told), ended(10), (11, delivered(0, 0, 1, 5))];
        assert_eq!(judged(told), 0, "it was told to stop");
    }
}
