//! Deadlines of leases: a binary heap with lazy deletion.
//!
//! A lease has at most one live entry, the one whose time equals the lease's `armed`; older entries are skipped when
//! they come up. Arming is O(log n) and allocates only while the heap grows.

use crate::time::Mono;

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
            let parent = (child - 1) / 2;
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
        self.heap.swap(0, last);
        let first = self.heap.pop();
        let mut parent = 0;
        loop {
            let left = 2 * parent + 1;
            let Some(mut least) = (left < self.heap.len()).then_some(left) else {
                break;
            };
            if left + 1 < self.heap.len() && self.heap[left + 1] < self.heap[left] {
                least = left + 1;
            }
            if self.heap[parent] <= self.heap[least] {
                break;
            }
            self.heap.swap(parent, least);
            parent = least;
        }
        first
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
