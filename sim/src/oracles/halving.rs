//! `requests-bounded`, in records: a read of a shard that failed on its way is not repeated with as many records. The
//! next read of the shard asks for half as many at most, or for one record.
//!
//! A fresh reader of a shard begins with an iterator, and knows nothing of reads before.

use super::fact::Ask;
use super::{EVENTS, Fact, History, LifeNo, Property, READS, REQUESTS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Read {
    op: u64,
    limit: u32,
    failed: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Halving {
    last: BTreeMap<(LifeNo, ShardNo), Read>,
}

impl Halving {
    pub(super) const SEES: Sees = Sees::ours(READS | REQUESTS | EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Asked { life, ask: Ask::GetIterator, about: Some(shard), .. } => {
                self.last.remove(&(life, shard));
            }
            Fact::ReadSent { life, shard, op, limit } => {
                let before = self.last.insert((life, shard), Read { op, limit, failed: false });
                let Some(before) = before.filter(|read| read.failed) else {
                    // The read before was answered.
                    return;
                };
                let most = (before.limit / 2).max(1);
                if limit > most {
                    verdict.report(Property::RequestsBounded, now, || {
                        format!(
                            "life {life} reads {limit} records of shard {shard}, right after a read of {} \
                             records failed on its way; it may ask for {most}",
                            before.limit
                        )
                    });
                }
            }
            Fact::ReadCut { life, shard, op } => {
                let read = self.last.get_mut(&(life, shard));
                if let Some(read) = read.filter(|read| read.op == op) {
                    read.failed = true;
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.last.retain(|(of, _), _| *of != life);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asked, at_once, count};
    use super::*;

    fn found(facts: &[Fact]) -> usize {
        count(Property::RequestsBounded, at_once(facts))
    }

    #[test]
    fn a_read_that_failed_on_its_way_is_halved() {
        let read = |limit| Fact::ReadSent { life: 0, shard: 0, op: 1, limit };
        let cut = Fact::ReadCut { life: 0, shard: 0, op: 1 };
        assert_eq!(found(&[read(100), cut.clone(), read(50), cut.clone(), read(25)]), 0);
        assert_eq!(found(&[read(100), cut.clone(), read(100)]), 1);
        assert_eq!(found(&[read(100), cut.clone(), read(51)]), 1);
        assert_eq!(found(&[read(1), cut.clone(), read(1)]), 0, "no read is smaller");
        assert_eq!(found(&[read(100), read(100)]), 0, "an answer came");
        let anew = asked(0, Ask::GetIterator, 0, 7, 0, 0);
        assert_eq!(found(&[read(4), cut.clone(), anew, read(10)]), 0, "a reader that knows nothing");
        let other = Fact::ReadSent { life: 1, shard: 0, op: 1, limit: 100 };
        assert_eq!(found(&[read(100), cut, other]), 0);
        let late = Fact::ReadCut { life: 0, shard: 0, op: 0 };
        assert_eq!(found(&[read(100), late, read(100)]), 0, "an answer to a reader before");
    }
}
