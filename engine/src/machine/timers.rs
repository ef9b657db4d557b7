//! Deadlines of leases: a heap of four children to a node, with lazy deletion.
//!
//! A lease has at most one live entry, the one whose time equals the lease's `armed`; older entries are skipped when
//! they come up. Arming is O(log n) and allocates only while the heap grows. Four children lie together in memory, and a
//! path has half as many nodes as in a binary heap: with many leases, cache misses are what a pop costs.

use crate::time::Mono;

const CHILDREN: usize = 4;

/// The heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Timers {
    heap: Vec<(Mono, u32)>,
}

impl Timers {
    /// The earliest entry, live or not.
    pub(crate) fn first(&self) -> Option<(Mono, u32)> {
        self.heap.first().copied()
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, at: Mono, lease: u32) {
        self.heap.push((at, lease));
        let mut child = self.heap.len() - 1;
        while child > 0 {
            let parent = (child - 1) / CHILDREN;
            if self.heap[parent] <= self.heap[child] {
                break;
            }
            self.heap.swap(parent, child);
            child = parent;
        }
    }

    /// Removes the earliest entry.
    pub(crate) fn pop(&mut self) -> Option<(Mono, u32)> {
        let last = self.heap.len().checked_sub(1)?;
        let first = self.heap.swap_remove(0);
        let mut parent = 0;
        loop {
            let from = CHILDREN * parent + 1;
            let Some(least) = (from..last.min(from + CHILDREN)).min_by_key(|child| self.heap[*child]) else {
                break;
            };
            if self.heap[parent] <= self.heap[least] {
                break;
            }
            self.heap.swap(parent, least);
            parent = least;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_out_in_order(entries in proptest::collection::vec((0u64..50, 0u32..50), 0..200)) {
            let mut timers = Timers::default();
            for (at, lease) in &entries {
                timers.push(Mono(*at), *lease);
            }
            let mut expected: Vec<_> = entries.iter().map(|(at, lease)| (Mono(*at), *lease)).collect();
            expected.sort();
            let popped: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
            prop_assert_eq!(popped, expected);
        }
    }
}
