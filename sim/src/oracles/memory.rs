//! `memory-bounded`: a shard's records in a worker's memory stay within the budget, however long the application
//! stalls.
//!
//! A worker reads records only while no batch waits, or while the waiting batches are within the budget (in bytes and
//! in batches). So a shard never keeps more than the budget and one answer.
//!
//! All shards of a worker together have no more records in memory or on their way than `memory_budget` and a tenth.
//! A burst in a subscription may bring one event a shard more. Records kept by a handler do not count. If records vary in size, no worker knows the size of an answer, and this
//! rule is not judged.

use super::fact::Ask;
use super::{EVENTS, Fact, History, LifeNo, Property, READS, REQUESTS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::config::Config;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The batches of one shard not yet processed: their last record, and their bytes.
type Waiting = VecDeque<(u64, u64)>;

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    batches: usize,
    bytes: u64,
    kept_batches: usize,
    kept_bytes: u64,
    waiting: BTreeMap<(LifeNo, ShardNo), Waiting>,
    /// The records kept by the application.
    kept: BTreeMap<(LifeNo, ShardNo), Waiting>,
    /// The last read of each open shard: an answer to a read before the opening is dropped.
    reading: BTreeMap<(LifeNo, ShardNo), u64>,
    /// The records of the answer under way: the life, the shard, the first and last record, and the bytes.
    brought: Option<(LifeNo, ShardNo, [u64; 3])>,
    /// The records on their way to a life, by their read.
    on_its_way: BTreeMap<(LifeNo, u64), u64>,
    /// The memory budget of a life; absent: not judged.
    budget: Option<u64>,
    /// The shards whose last read was the wait for an event.
    pushed: BTreeSet<(LifeNo, ShardNo)>,
}

/// The bytes that a burst may bring beyond the budget, for each shard that is read by subscription.
const BURST: u64 = 1 << 20;

impl Memory {
    pub(super) const SEES: Sees = Sees::all(REQUESTS | READS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            batches: terms.most(|config| config.reader().buffer_batches()) as usize,
            bytes: terms.most(|config| config.reader().buffer_bytes()),
            kept_batches: terms.most(|config| config.reader().kept_batches()) as usize,
            kept_bytes: terms.most(|config| config.reader().kept_bytes()),
            budget: terms.even.then(|| terms.most(Config::memory)),
            ..Self::default()
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Fetched { life, shard, first, last, bytes } => {
                self.brought = Some((life, shard, [first, last, bytes]))
            }
            Fact::OnItsWay { life, op, bytes } => {
                self.on_its_way.insert((life, op), bytes);
                self.judge_worker(now, life, verdict);
            }
            Fact::Answered {
                life, ask: Ask::GetRecords | Ask::NextEvent, about: Some(shard), op, ..
            } => {
                self.on_its_way.remove(&(life, op));
                let Some((_, _, [first, last, bytes])) =
                    self.brought.take().filter(|(of, about, _)| (*of, *about) == (life, shard))
                else {
                    return;
                };
                if self.reading.get(&(life, shard)) != Some(&op) {
                    return;
                }
                let waiting = self.waiting.entry((life, shard)).or_default();
                // Records fetched before and fetched again were given up.
                if waiting.back().is_some_and(|(before, _)| *before >= first) {
                    waiting.clear();
                }
                // Records processed by any worker may be dropped at once.
                if last > history.shard(shard).done {
                    waiting.push_back((last, bytes));
                    self.judge_worker(now, life, verdict);
                }
            }
            Fact::Processed { life, shard, through, .. } => {
                if let Some(kept) = self.kept.get_mut(&(life, shard)) {
                    while kept.front().is_some_and(|(last, _)| *last <= through) {
                        kept.pop_front();
                    }
                }
                if let Some(waiting) = self.waiting.get_mut(&(life, shard)) {
                    while waiting.front().is_some_and(|(last, _)| *last <= through) {
                        waiting.pop_front();
                    }
                }
            }
            Fact::Kept { life, shard, last, .. } => {
                let waiting = self.waiting.entry((life, shard)).or_default();
                let kept = self.kept.entry((life, shard)).or_default();
                while let Some(batch) = waiting.pop_front_if(|(of, _)| *of <= last) {
                    kept.push_back(batch);
                }
            }
            Fact::GivenBack { life, shard, .. } => {
                self.waiting.remove(&(life, shard));
                self.kept.remove(&(life, shard));
                // The answer to a read under way is dropped.
                self.reading.remove(&(life, shard));
            }
            Fact::Delivered { life, shard, .. } => self.judge_kept(now, life, shard, verdict),
            Fact::OpenBegun { life, shard, .. } | Fact::Closed { life, shard, .. } => {
                self.kept.remove(&(life, shard));
                self.waiting.remove(&(life, shard));
                self.reading.remove(&(life, shard));
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.waiting.retain(|(of, _), _| *of != life);
                self.kept.retain(|(of, _), _| *of != life);
                self.reading.retain(|(of, _), _| *of != life);
                self.pushed.retain(|(of, _)| *of != life);
                self.on_its_way.retain(|(of, _), _| *of != life);
            }
            Fact::Asked {
                life,
                ask: ask @ (Ask::GetRecords | Ask::NextEvent),
                about: Some(shard),
                op,
                ..
            } => {
                match ask {
                    Ask::NextEvent => {
                        self.pushed.insert((life, shard));
                        self.judge_credit(now, life, verdict);
                    }
                    _ => drop(self.pushed.remove(&(life, shard))),
                }
                self.reading.insert((life, shard), op);
                let Some(waiting) = self.waiting.get(&(life, shard)).filter(|waiting| !waiting.is_empty())
                else {
                    return;
                };
                let bytes: u64 = waiting.iter().map(|(_, bytes)| bytes).sum();
                if waiting.len() >= self.batches.max(1) || bytes >= self.bytes {
                    let batches = waiting.len();
                    let budget = (self.batches, self.bytes);
                    verdict.report(Property::MemoryBounded, now, || {
                        format!(
                            "life {life} asked for more of shard {shard} with {batches} batches of {bytes} bytes waiting; its \
                             budget is {} batches and {} bytes",
                            budget.0, budget.1
                        )
                    });
                }
            }
            _ => {}
        }
    }

    /// Judges the memory of all shards of a worker.
    fn judge_worker(&self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let Some(budget) = self.budget else { return };
        let of_life = self.waiting.range((life, 0)..=(life, ShardNo::MAX));
        let waiting: u64 = of_life.flat_map(|(_, waiting)| waiting).map(|(_, bytes)| bytes).sum();
        let of_life = self.on_its_way.range((life, 0)..=(life, u64::MAX));
        let on_its_way: u64 = of_life.map(|(_, bytes)| bytes).sum();
        let shards = self.waiting.range((life, 0)..=(life, ShardNo::MAX));
        let pushed = shards.filter(|(key, waiting)| !waiting.is_empty() && self.pushed.contains(key));
        let bursts = pushed.count() as u64 * BURST;
        if waiting + on_its_way > budget + budget / 10 + bursts {
            verdict.report(Property::MemoryBounded, now, || {
                format!(
                    "life {life} has {waiting} bytes of all shards in memory, and {on_its_way} on their way; its budget is {budget} bytes"
                )
            });
        }
    }

    /// Judges the wait for one more event of some shard: an event that does not come takes no memory, and a worker with full memory
    /// waits for none.
    fn judge_credit(&self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let Some(budget) = self.budget else { return };
        let of_life = self.waiting.range((life, 0)..=(life, ShardNo::MAX));
        let waiting: u64 = of_life.flat_map(|(_, waiting)| waiting).map(|(_, bytes)| bytes).sum();
        if waiting > budget + budget / 10 {
            verdict.report(Property::MemoryBounded, now, || {
                format!(
                    "life {life} awaits one more event with {waiting} bytes of all shards in memory; its budget is {budget} bytes"
                )
            });
        }
    }

    /// Judges batches handed over to an application at its limit of kept records.
    fn judge_kept(&self, now: Time, life: LifeNo, shard: ShardNo, verdict: &mut Verdict) {
        let Some(kept) = self.kept.get(&(life, shard)).filter(|kept| !kept.is_empty()) else {
            return;
        };
        let bytes: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        if kept.len() >= self.kept_batches || bytes >= self.kept_bytes {
            let batches = kept.len();
            let (most, most_bytes) = (self.kept_batches, self.kept_bytes);
            verdict.report(Property::MemoryBounded, now, || {
                format!(
                    "life {life} handed over more of shard {shard} while its handler keeps {batches} batches of {bytes} bytes; it may \
                     keep {most} batches and {most_bytes} bytes"
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::{How, Mark, Verb};
    use super::super::testing::{answered, asked, at_once, changed, config, count_under, processed, row};
    use super::*;
    use leasehold_engine::config::ReaderConfig;

    /// An answer with records.
    fn answer(op: u64, first: u64, last: u64, bytes: u64) -> Vec<Fact> {
        let fetched = Fact::Fetched { life: 0, shard: 0, first, last, bytes };
        vec![fetched, answered(0, Ask::GetRecords, 0, op, How::Applied)]
    }

    /// A read that brings records.
    fn fetched(first: u64, last: u64, bytes: u64) -> Vec<Fact> {
        let mut facts = vec![asked(0, Ask::GetRecords, 0, first, 0, 0)];
        facts.extend(answer(first, first, last, bytes));
        facts
    }

    fn done(through: u64) -> Vec<Fact> {
        vec![processed(0, 0, through)]
    }

    fn judged(facts: impl IntoIterator<Item = Vec<Fact>>) -> usize {
        let reader = ReaderConfig::default().with_buffer_batches(2).with_buffer_bytes(1_000);
        let config = config().with_reader(reader);
        let mut facts: Vec<Fact> = facts.into_iter().flatten().collect();
        facts.push(asked(0, Ask::GetRecords, 0, 99, 0, 0));
        count_under(&Terms::plain(config), Property::MemoryBounded, at_once(facts))
    }

    #[test]
    fn within_the_budget_more_may_be_asked_for() {
        assert_eq!(judged([]), 0);
        assert_eq!(judged([fetched(1, 5, 900)]), 0);
        assert_eq!(judged([fetched(1, 5, 900), fetched(6, 9, 900), done(5)]), 0);
        assert_eq!(judged([fetched(1, 5, 5_000), done(5)]), 0);
        assert_eq!(judged([fetched(1, 5, 900), fetched(1, 5, 900)]), 0, "fetched again");
    }

    #[test]
    fn records_held_and_on_their_way_stay_within_the_workers_budget() {
        let on_its_way = |op, bytes| Fact::OnItsWay { life: 0, op, bytes };
        let found = |even, facts: Vec<Fact>| {
            let terms = Terms { even, ..Terms::plain(config().with_memory_budget(2 << 20)) };
            count_under(&terms, Property::MemoryBounded, at_once(facts))
        };
        let mut facts = fetched(1, 5, 1 << 20);
        facts.push(on_its_way(7, 1 << 20));
        assert_eq!(found(true, facts.clone()), 0);
        facts.push(on_its_way(8, 300_000));
        assert_eq!(found(true, facts.clone()), 1);
        assert_eq!(found(false, facts.clone()), 0, "records of all sizes");
        let among = |fact| {
            let mut facts = facts.clone();
            facts.insert(4, fact);
            found(true, facts)
        };
        let answer = answered(0, Ask::GetRecords, 1, 7, How::NotSent);
        assert_eq!(among(answer), 0, "it does not come any more");
        assert_eq!(among(Fact::Died { life: 0 }), 0);
        assert_eq!(among(Fact::Died { life: 1 }), 1);
    }

    #[test]
    fn records_that_a_checkpoint_covers_are_not_kept() {
        let at = |through| {
            let row = Some(row(Some(0), 2, Mark::At(through)));
            vec![changed(0, None, Verb::Checkpoint, None, row)]
        };
        assert_eq!(judged([at(5), fetched(1, 5, 1_000)]), 0);
        assert_eq!(judged([at(4), fetched(1, 5, 1_000)]), 1);
    }

    #[test]
    fn an_answer_from_before_a_new_opening_is_dropped() {
        let (life, shard, token) = (0, 0, 2);
        let opened = vec![Fact::OpenBegun { life, shard, token }];
        let ask = vec![asked(0, Ask::GetRecords, 0, 1, 0, 0)];
        assert_eq!(judged([ask.clone(), answer(1, 1, 5, 2_000)]), 1);
        assert_eq!(judged([ask, opened, answer(1, 1, 5, 2_000)]), 0);
    }

    #[test]
    fn beyond_it_that_is_found() {
        assert_eq!(judged([fetched(1, 5, 1_000)]), 1, "too many bytes");
        assert_eq!(judged([fetched(1, 5, 1), fetched(6, 9, 1)]), 1, "too many batches");
        assert_eq!(
            judged([fetched(1, 5, 1), fetched(6, 9, 1), done(4)]),
            1,
            "half a batch is in memory as a whole"
        );
    }
}
