//! `set-aside-after-attempts`: a worker gives up a record only after the configured number of failures, each alone and
//! in a row, under this ownership. A shard stopped because of a record receives no batch until the application resumes
//! the shard.
//!
//! `every-record-delivered` judges skipped records: a record counts as processed only if the record is safe in the
//! application's store for such records.

use super::{EVENTS, Fact, History, LifeNo, Property, Sees, ShardNo, Terms, Time, Verdict};
use std::collections::BTreeMap;

/// One ownership of a shard.
#[derive(Clone, Copy, Debug, Default)]
struct Owned {
    token: u64,
    /// The last record to fail alone; 0: no record. Then the number of its failures in a row.
    record: u64,
    failed: u32,
    stopped: bool,
}

#[derive(Clone, Debug)]
pub(super) struct FailurePolicy {
    /// The least number of attempts of any worker; 0: a worker without a limit.
    attempts: u32,
    owned: BTreeMap<(LifeNo, ShardNo), Owned>,
}

impl Owned {
    fn fail(&mut self, record: u64) {
        self.failed = match self.record == record {
            true => self.failed.saturating_add(1),
            false => 1,
        };
        self.record = record;
    }
}

impl FailurePolicy {
    pub(super) const SEES: Sees = Sees::ours(EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        // A worker without a limit has the greatest patience.
        let least = terms.least(|config| config.failure_attempts().wrapping_sub(1));
        Self { attempts: least.wrapping_add(1), owned: BTreeMap::new() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::OpenBegun { life, shard, token } => {
                let owned = Owned { token, ..Owned::default() };
                self.owned.insert((life, shard), owned);
            }
            Fact::Closed { life, shard, .. } => {
                self.owned.remove(&(life, shard));
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => self.owned.retain(|(of, _), _| *of != life),
            Fact::RecordFailed { life, shard, token, record } => {
                let owned = self.owned.get_mut(&(life, shard));
                if let Some(owned) = owned.filter(|known| known.token == token) {
                    owned.fail(record);
                }
            }
            Fact::Processed { life, shard, through, .. } => {
                let owned = self.owned.get_mut(&(life, shard));
                if let Some(owned) = owned.filter(|owned| owned.record <= through) {
                    (owned.record, owned.failed) = (0, 0);
                }
            }
            Fact::SetAsideBegun { life, shard, record, .. } => {
                self.judge(now, (life, shard), record, "set aside", verdict)
            }
            Fact::ShardStopped { life, shard, record } => {
                self.judge(now, (life, shard), record, "given as the reason of a stop", verdict);
                if let Some(owned) = self.owned.get_mut(&(life, shard)) {
                    owned.stopped = true;
                }
            }
            Fact::ResumeAsked { life, shard } => {
                if let Some(owned) = self.owned.get_mut(&(life, shard)).filter(|known| known.stopped) {
                    (owned.stopped, owned.record, owned.failed) = (false, 0, 0);
                }
            }
            Fact::Delivered { life, shard, first, last, .. }
                if self.owned.get(&(life, shard)).is_some_and(|owned| owned.stopped) =>
            {
                verdict.report(Property::SetAsideAfterAttempts, now, || {
                    format!(
                        "life {life} handed over records {first} to {last} of shard {shard}, which is stopped because of a record"
                    )
                });
            }
            _ => {}
        }
    }

    fn judge(&self, now: Time, of: (LifeNo, ShardNo), record: u64, what: &str, verdict: &mut Verdict) {
        let owned = self.owned.get(&of).copied().unwrap_or_default();
        let failed = match owned.record == record {
            true => owned.failed,
            false => 0,
        };
        if self.attempts == 0 || failed < self.attempts {
            let (attempts, (life, shard)) = (self.attempts, of);
            verdict.report(Property::SetAsideAfterAttempts, now, || {
                format!(
                    "record {record} of shard {shard} was {what} by life {life} after {failed} failures in a row alone, \
                     {attempts} are configured (0: never)"
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at_once, config, count_under, delivered, processed};
    use super::*;

    const OPENED: Fact = Fact::OpenBegun { life: 0, shard: 1, token: 1 };

    fn failed(record: u64) -> Fact {
        Fact::RecordFailed { life: 0, shard: 1, token: 1, record }
    }

    fn set_aside(record: u64) -> Fact {
        Fact::SetAsideBegun { life: 0, shard: 1, token: 1, record }
    }

    fn judged_with(attempts: u32, facts: &[Fact]) -> usize {
        let terms = Terms::plain(config().with_failure_attempts(attempts));
        count_under(&terms, Property::SetAsideAfterAttempts, at_once(facts))
    }

    fn judged(facts: &[Fact]) -> usize {
        judged_with(2, facts)
    }

    #[test]
    fn a_record_is_set_aside_when_it_failed_so_often_in_a_row_alone() {
        assert_eq!(judged(&[OPENED, failed(3), failed(3), set_aside(3)]), 0);
        assert_eq!(judged(&[OPENED, failed(3), set_aside(3)]), 1);
        assert_eq!(judged(&[OPENED, failed(3), failed(4), set_aside(4)]), 1, "another one");
        assert_eq!(judged(&[OPENED, failed(3), failed(3), set_aside(4)]), 1, "the next one");
        assert_eq!(judged(&[OPENED, failed(3), failed(3), OPENED, set_aside(3)]), 1);
    }

    #[test]
    fn a_processed_record_is_counted_anew() {
        let facts = [OPENED, failed(3), processed(0, 1, 3), failed(3), set_aside(3)];
        assert_eq!(judged(&facts), 1);
        let before = [OPENED, failed(3), processed(0, 1, 2), failed(3), set_aside(3)];
        assert_eq!(judged(&before), 0);
    }

    #[test]
    fn a_worker_without_a_limit_gives_no_record_up() {
        assert_eq!(judged_with(0, &[OPENED, failed(3), failed(3), set_aside(3)]), 1);
    }

    #[test]
    fn a_stopped_shard_is_handed_nothing_until_it_is_resumed() {
        let stopped = Fact::ShardStopped { life: 0, shard: 1, record: 3 };
        let delivered = delivered(0, 1, 3, 5);
        let resumed = Fact::ResumeAsked { life: 0, shard: 1 };
        let begun = [OPENED, failed(3), failed(3), stopped.clone()];
        let and = |then: &[Fact]| judged(&[&begun, then].concat());
        assert_eq!(and(std::slice::from_ref(&delivered)), 1);
        assert_eq!(and(&[resumed, delivered]), 0);
        assert_eq!(judged(&[OPENED, failed(3), stopped]), 1, "too early");
    }
}
