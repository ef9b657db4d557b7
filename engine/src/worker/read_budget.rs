//! Resources shared by the reads of all shards: the memory for records, and the number of reads at a time.
//!
//! * **The memory** holds the records on their way, by expectation, and the fetched records that wait to be processed.
//!   A read begins if its expected records have room. No read gets more than a part of the memory left, less the memory
//!   of its shard. So many shards with handlers that do not come back leave room for other shards, and the more such
//!   shards exist, the less each gets.
//! * **A shard without buffered records** waits in line: the first in line reads first, and no other read begins
//!   before. It gets one record at least. A shard with buffered records reads ahead only if no shard waits. It tries
//!   again when its handler returns.
//! * **Nothing leaks.** The bytes expected of a read count until its outcome, and every command has exactly one
//!   outcome. Each lease reports its buffered bytes after each of its steps, as a sum.

use crate::config::Config;
use crate::ids::{LeaseIx, OpId};
use std::collections::{BTreeMap, VecDeque};

/// A read gets no more than this part of the memory that is left.
const PART: u64 = 8;

/// What a lease wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ask {
    lease: LeaseIx,
    /// No more than so many records. 0: an iterator.
    limit: u32,
    /// The bytes of one record, as far as known.
    one: u64,
    /// The bytes of an answer with all of them.
    all: u64,
    /// What is buffered of the shard, in bytes. 0: it waits in line.
    buffered: u64,
    /// The service pushes: the wait for an event takes no place among the reads.
    is_pushed: bool,
}

/// What may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grant {
    /// No more than so many records.
    limit: u32,
    /// The bytes that count until the outcome.
    bytes: u64,
    is_pushed: bool,
}

impl Ask {
    /// At most `limit` records. `one` and `all`: the expected bytes of one record, and of all. `buffered`: the buffered
    /// bytes of the shard.
    pub(super) fn new(lease: LeaseIx, limit: u32, (one, all): (u64, u64), buffered: u64) -> Self {
        Self { lease, limit, one, all, buffered, is_pushed: false }
    }

    /// The next event of a subscription, of so many bytes.
    pub(super) fn pushed(lease: LeaseIx, bytes: u64, buffered: u64) -> Self {
        Self { lease, limit: 0, one: bytes, all: bytes, buffered, is_pushed: true }
    }
}

impl Grant {
    /// No more than so many records.
    pub(super) fn limit(self) -> u32 {
        self.limit
    }
}

/// The memory and the number of reads, and the waiting leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct ReadBudget {
    bytes: u64,
    max_reads: usize,
    /// The reads under way, by number; the number of those that are no pushes, and the sum of the bytes expected.
    under_way: BTreeMap<u64, Grant>,
    reads: usize,
    expected: u64,
    buffered: u64,
    /// Who waits, the first one in front.
    line: VecDeque<Ask>,
}

impl ReadBudget {
    pub(super) fn new(config: &Config) -> Self {
        Self { bytes: config.memory(), max_reads: config.max_reads as usize, ..Self::default() }
    }

    /// The reads granted to this lease now. `None`: no read. Then the lease waits in line, if no record of its shard is
    /// buffered.
    pub(super) fn ask(&mut self, ask: Ask) -> Option<Grant> {
        let place = self.line.iter().position(|other| other.lease == ask.lease);
        let is_first = match place {
            Some(place) => place == 0,
            None => self.line.is_empty(),
        };
        let grant = self.grant(&ask).filter(|_| is_first);
        match (grant, place) {
            (Some(_), Some(place)) => drop(self.line.remove(place)),
            (None, Some(place)) => self.line[place] = ask,
            (None, None) if ask.buffered == 0 => self.line.push_back(ask),
            _ => {}
        }
        grant
    }

    /// What may be read, in or out of turn.
    fn grant(&self, ask: &Ask) -> Option<Grant> {
        if !ask.is_pushed && self.reads >= self.max_reads {
            return None;
        }
        let used = self.expected.saturating_add(self.buffered);
        let left = self.bytes.saturating_sub(used);
        // What the lease has just got is not reported yet.
        let free = left.saturating_sub(ask.buffered);
        if ask.is_pushed && free == 0 && (used > 0 || ask.buffered > 0) {
            // An event at the tip reserves no memory, and none is awaited while memory is full.
            return None;
        }
        let part = free / PART;
        if ask.all <= part {
            let (limit, bytes) = (ask.limit, ask.all);
            return Some(Grant { limit, bytes, is_pushed: ask.is_pushed });
        }
        // With empty memory, any record has room, however large.
        let fits = ask.one <= left || used == 0;
        if part < ask.one && !(ask.buffered == 0 && fits) {
            return None;
        }
        let records = (part / ask.one.max(1)).clamp(1, u64::from(ask.limit.max(1)));
        let bytes = ask.one.saturating_mul(records).min(ask.all);
        Some(Grant { limit: records as u32, bytes, is_pushed: ask.is_pushed })
    }

    /// A read was begun.
    pub(super) fn begun(&mut self, op: OpId, grant: Grant) {
        let before = self.under_way.insert(op.n, grant);
        debug_assert!(before.is_none(), "a read is begun once");
        self.reads += usize::from(!grant.is_pushed);
        debug_assert!(self.reads <= self.max_reads, "no more reads are begun than may be under way");
        self.expected += grant.bytes;
    }

    /// A read has its outcome.
    pub(super) fn ended(&mut self, op: OpId) {
        let grant = self.under_way.remove(&op.n);
        debug_assert!(grant.is_some(), "a read that ends was begun");
        if let Some(grant) = grant {
            self.expected -= grant.bytes;
            self.reads -= usize::from(!grant.is_pushed);
        }
    }

    /// A shard has `now` bytes buffered, and had `before`.
    pub(super) fn buffers(&mut self, before: u64, now: u64) {
        debug_assert!(before <= self.buffered, "what is buffered was counted");
        self.buffered = self.buffered.saturating_sub(before).saturating_add(now);
    }

    /// This lease waits no more.
    pub(super) fn leave(&mut self, lease: LeaseIx) {
        self.line.retain(|ask| ask.lease != lease);
    }

    /// The lease that waits and may read now.
    pub(super) fn next(&self) -> Option<LeaseIx> {
        let first = self.line.front()?;
        self.grant(first).map(|_| first.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn budget(bytes: u64, max_reads: u32) -> ReadBudget {
        ReadBudget::new(&Config::default().with_memory_budget(bytes).with_max_reads(max_reads))
    }

    fn lease(n: usize) -> LeaseIx {
        LeaseIx::from_index(n)
    }

    fn ask(n: usize, limit: u32, one: u64) -> Ask {
        Ask { lease: lease(n), limit, one, all: one * u64::from(limit), buffered: 0, is_pushed: false }
    }

    fn op(n: u64) -> OpId {
        OpId { life: 1, n }
    }

    /// Asks, begins, and says how many records may come.
    fn read(budget: &mut ReadBudget, n: u64, ask: Ask) -> Option<u32> {
        let grant = budget.ask(ask)?;
        budget.begun(op(n), grant);
        Some(grant.limit)
    }

    #[test]
    fn a_read_gets_a_part_of_what_is_left() {
        let mut budget = budget(64 * MIB, 100);
        assert_eq!(read(&mut budget, 1, ask(1, 4, MIB)), Some(4));
        assert_eq!(read(&mut budget, 2, ask(2, 100, MIB)), Some(7), "an eighth of 60 MiB");
        budget.ended(op(1));
        budget.ended(op(2));
        assert_eq!(read(&mut budget, 3, ask(1, 100, MIB)), Some(8));
        budget.ended(op(3));
        assert_eq!(budget, self::budget(64 * MIB, 100), "nothing is left of them");
    }

    #[test]
    fn without_room_a_shard_waits_and_who_came_first_reads_first() {
        let mut budget = budget(2 * MIB, 100);
        assert_eq!(read(&mut budget, 1, ask(1, 1, MIB)), Some(1));
        assert_eq!(read(&mut budget, 2, ask(2, 1, 3 * MIB / 2)), None);
        assert_eq!(read(&mut budget, 3, ask(3, 1, 1)), None, "it has room, and another one came first");
        assert_eq!(budget.next(), None);
        budget.buffers(0, MIB / 4);
        budget.ended(op(1));
        assert_eq!(budget.next(), Some(lease(2)));
        assert_eq!(read(&mut budget, 4, ask(3, 1, 1)), None, "it is not its turn");
        assert_eq!(read(&mut budget, 5, ask(2, 1, 3 * MIB / 2)), Some(1));
        assert_eq!(budget.next(), Some(lease(3)));
        budget.leave(lease(3));
        assert_eq!(budget.next(), None);
    }

    #[test]
    fn awaited_events_of_idle_shards_leave_memory_to_others() {
        let mut budget = budget(2 * MIB, 100);
        for n in 1..=100 {
            let grant = budget.ask(Ask::pushed(lease(n as usize), 0, 0)).expect("a wait without end");
            budget.begun(op(n), grant);
        }
        assert_eq!(read(&mut budget, 101, ask(101, 1, MIB)), Some(1));
        budget.buffers(0, 3 * MIB);
        assert!(budget.ask(Ask::pushed(lease(102), 0, 0)).is_none(), "memory is full");
        budget.buffers(3 * MIB, 0);
        budget.ended(op(101));
        assert_eq!(budget.next(), Some(lease(102)));
    }

    #[test]
    fn a_record_larger_than_memory_comes_when_memory_is_empty() {
        let mut budget = budget(2 * MIB, 100);
        budget.buffers(0, 1);
        assert_eq!(read(&mut budget, 1, ask(1, 1, 10 * MIB)), None);
        budget.buffers(1, 0);
        assert_eq!(budget.next(), Some(lease(1)));
        assert_eq!(read(&mut budget, 1, ask(1, 5, 10 * MIB)), Some(1));
    }

    #[test]
    fn no_more_reads_are_under_way_than_may_be_and_iterators_count() {
        let mut budget = budget(0, 2);
        assert_eq!(read(&mut budget, 1, ask(1, 0, 0)), Some(0));
        assert_eq!(read(&mut budget, 2, ask(2, 10, 1)), Some(10));
        assert_eq!(read(&mut budget, 3, ask(3, 10, 1)), None);
        budget.ended(op(1));
        assert_eq!(budget.next(), Some(lease(3)));
    }

    #[test]
    fn reading_ahead_waits_for_nobody_and_stands_back_for_who_waits() {
        let mut budget = budget(64 * MIB, 1);
        let ahead = |n| Ask { buffered: 8 * MIB, ..ask(n, 100, MIB) };
        budget.buffers(0, 8 * MIB);
        assert_eq!(read(&mut budget, 1, ahead(1)), Some(6), "an eighth of 56 - 8 MiB");
        assert_eq!(read(&mut budget, 2, ahead(2)), None);
        budget.ended(op(1));
        assert_eq!(budget.next(), None, "nobody waits in line");
        assert_eq!(read(&mut budget, 3, ahead(2)), Some(6));
        assert_eq!(read(&mut budget, 4, ask(3, 1, 1)), None);
        budget.ended(op(3));
        assert_eq!(read(&mut budget, 5, ahead(2)), None, "a shard with nothing waits");
    }

    /// Shards whose batches are never processed leave room for other shards.
    #[test]
    fn shards_that_do_not_move_leave_room_for_others() {
        let mut budget = budget(256 * MIB, 100);
        for stuck in 0..40 {
            let all = 10 * MIB;
            let grant = budget.ask(Ask { all, ..ask(stuck, 10_000, 1_000) });
            budget.buffers(0, grant.unwrap().bytes);
        }
        assert!(read(&mut budget, 1, ask(40, 1_000, 1_000)) >= Some(500));
    }

    #[derive(Clone, Debug)]
    enum Deed {
        Ask { lease: usize, limit: u32, one: u64 },
        End { of: usize, buffers: bool },
        Process { of: usize },
        Leave { lease: usize },
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let deed = prop_oneof![
            4 => (0..8usize, 0..50u32, 1..100_000u64)
                .prop_map(|(lease, limit, one)| Deed::Ask { lease, limit, one }),
            3 => (any::<usize>(), any::<bool>()).prop_map(|(of, buffers)| Deed::End { of, buffers }),
            2 => any::<usize>().prop_map(|of| Deed::Process { of }),
            1 => (0..8usize).prop_map(|lease| Deed::Leave { lease }),
        ];
        proptest::collection::vec(deed, 0..200)
    }

    proptest! {
        /// Whatever is asked for, and however it ends: the memory and the number of reads are kept, and who waits reads when all is over.
        #[test]
        fn granted_reads_fit_and_nobody_waits_for_ever(deeds in deeds(), most in 1..6u32) {
            let bytes = 2 * MIB;
            let mut budget = budget(bytes, most);
            let mut under_way: Vec<(u64, u64)> = Vec::new();
            let mut buffered: Vec<u64> = Vec::new();
            for (n, deed) in deeds.into_iter().enumerate() {
                let n = n as u64;
                match deed {
                    Deed::Ask { lease, limit, one } => {
                        if let Some(grant) = budget.ask(ask(lease, limit, one)) {
                            prop_assert!(grant.limit <= limit.max(1));
                            budget.begun(op(n), grant);
                            under_way.push((n, grant.bytes));
                        }
                    }
                    Deed::End { of, buffers } if !under_way.is_empty() => {
                        let (n, bytes) = under_way.swap_remove(of % under_way.len());
                        budget.ended(op(n));
                        if buffers {
                            budget.buffers(0, bytes);
                            buffered.push(bytes);
                        }
                    }
                    Deed::Process { of } if !buffered.is_empty() => {
                        let bytes = buffered.swap_remove(of % buffered.len());
                        budget.buffers(bytes, 0);
                    }
                    Deed::Leave { lease: n } => budget.leave(lease(n)),
                    _ => {}
                }
                let used: u64 = under_way.iter().map(|(_, bytes)| bytes).chain(&buffered).sum();
                prop_assert!(used <= bytes && under_way.len() <= most as usize);
            }
            for (n, _) in under_way {
                budget.ended(op(n));
            }
            for bytes in buffered {
                budget.buffers(bytes, 0);
            }
            while let Some(first) = budget.line.front().copied() {
                prop_assert_eq!(budget.next(), Some(first.lease));
                prop_assert!(budget.ask(first).is_some());
            }
            prop_assert_eq!(budget, self::budget(bytes, most));
        }
    }
}
