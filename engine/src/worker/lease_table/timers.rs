//! Deadlines of leases, in order, with lazy deletion.
//!
//! A lease has at most one live entry, at the time of the lease's `armed`; older entries are skipped when they come up.
//!
//! Deadlines of the same kind lie the same interval ahead, and are set in the order in which they come up. Each kind
//! makes a sorted run of its own, and a run is a queue. With many leases a heap costs a cache miss for every level, and
//! a queue a miss for many entries. An entry that fits no run goes into a heap. When as many entries did not fit as the
//! shortest run has, that run is moved into the heap and makes room. So stale deadlines close no run for long.

use crate::ids::LeaseIx;
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Renewals, checkpoints, reads, idle reads and stalls, and one to spare.
const RUNS: usize = 6;

type Entry = (Mono, LeaseIx);

/// The deadlines.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    runs: [VecDeque<Entry>; RUNS],
    heap: BinaryHeap<Reverse<Entry>>,
    /// How many entries fitted no run since one was moved into the heap.
    misfits: usize,
    /// The earliest entry and its run; no run if it is in the heap.
    earliest: Option<(Entry, Option<usize>)>,
}

impl Timers {
    /// The earliest entry, live or not.
    pub(super) fn first(&self) -> Option<Entry> {
        Some(self.earliest?.0)
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, at: Mono, lease: LeaseIx) {
        let entry = (at, lease);
        // The entry follows the latest last entry before it: so entries far ahead gather in one run and do not close
        // all runs.
        let fitting = (0..RUNS)
            .filter(|run| self.runs[*run].back().is_none_or(|last| *last <= entry))
            .max_by_key(|run| self.runs[*run].back());
        let run = fitting.or_else(|| self.make_room());
        match run {
            Some(run) => self.runs[run].push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
        if self.earliest.is_none_or(|(first, _)| entry < first) {
            self.earliest = Some((entry, run));
        }
    }

    /// An entry fits no run. Empties the shortest run if misfits are frequent enough to pay for the move.
    fn make_room(&mut self) -> Option<usize> {
        let shortest = (0..RUNS).min_by_key(|run| self.runs[*run].len())?;
        self.misfits += 1;
        if self.misfits <= self.runs[shortest].len() {
            return None;
        }
        self.misfits = 0;
        self.heap.extend(self.runs[shortest].drain(..).map(Reverse));
        self.earliest = self.find_earliest();
        Some(shortest)
    }

    /// Removes the earliest entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let (entry, run) = self.earliest?;
        match run {
            Some(run) => {
                self.runs[run].pop_front();
            }
            None => {
                self.heap.pop();
            }
        }
        self.earliest = self.find_earliest();
        Some(entry)
    }

    fn find_earliest(&self) -> Option<(Entry, Option<usize>)> {
        let fronts = (0..RUNS).filter_map(|run| Some((*self.runs[run].front()?, Some(run))));
        let top = self.heap.peek().map(|Reverse(entry)| (*entry, None));
        fronts.chain(top).min_by_key(|(entry, _)| *entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The operations on the timers: a new entry at a distance after the last entry that came up, or the removal of the
    /// earliest.
    fn doings() -> impl Strategy<Value = Vec<Option<(u64, u32)>>> {
        let ahead = prop_oneof![Just(1), Just(10), Just(1_000), 0u64..2_000];
        proptest::collection::vec(proptest::option::weighted(0.6, (ahead, 0u32..50)), 0..300)
    }

    proptest! {
        #[test]
        fn entries_come_out_in_order(doings in doings()) {
            let (mut timers, mut sorted, mut now) = (Timers::default(), Vec::new(), 0);
            for doing in doings {
                match doing {
                    Some((ahead, lease)) => {
                        timers.push(Mono(now + ahead), LeaseIx::from_index(lease as usize));
                        sorted.push((Mono(now + ahead), LeaseIx::from_index(lease as usize)));
                        sorted.sort_unstable_by(|a, b| b.cmp(a));
                    }
                    None => {
                        let expected = sorted.pop();
                        prop_assert_eq!(timers.first(), expected);
                        prop_assert_eq!(timers.pop(), expected);
                        now = expected.map_or(now, |(at, _)| at.0);
                    }
                }
            }
            let rest: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
            sorted.reverse();
            prop_assert_eq!(rest, sorted);
        }
    }
}
