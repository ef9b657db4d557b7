//! What is to happen, in the order of true time; what is due at the same moment, in the order in which it was planned.

use crate::oracles::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Something that is to happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A worker asked to be woken.
    Wake { worker: u16, generation: u32 },
    /// A service executes a request.
    Execute { flight: u32, second: bool },
    /// Something happens to the line over which records come to a worker.
    Line(Moment),
    /// A worker learns how a request ended.
    Answer { flight: u32 },
    /// A handler has come to the next step of what it does.
    Handler { worker: u16, generation: u32, shard: u32, run: u32 },
    /// The application lets a shard that it paused go on.
    PauseEnds { worker: u16, generation: u32, shard: u32 },
    /// The application has processed a batch that it kept, or gives it back.
    Kept { worker: u16, generation: u32, shard: u32, batch: u64 },
    /// The application took note of a close or an abort.
    Noted { worker: u16, generation: u32, op: u64 },
    /// A worker looks whether the runtime of its handlers runs anything.
    Beat { worker: u16, generation: u32, block: u32 },
    /// The handlers of a worker no longer block every thread of their runtime.
    Unblock { worker: u16, generation: u32, block: u32 },
    /// A worker that stood still goes on.
    Resume { worker: u16, pause: u32 },
    /// The wall clock of a machine that was suspended is set right.
    WallRight { worker: u16 },
    /// A worker dies.
    Crash { worker: u16, generation: u32, down_us: u64, loops: u32 },
    /// A worker is told to stop.
    Stop { worker: u16, generation: u32, gap_us: u64 },
    /// A worker is started again.
    Start { worker: u16, generation: u32, loops: u32 },
    /// The application takes a stream away from a worker, or gives it back.
    ReadStream { worker: u16, generation: u32, stream: u32, reads: bool },
    /// Records are put.
    Produce,
    /// The next entry of the script.
    Script { entry: u32 },
    /// Somebody who leads begins to hand a lease over.
    HandOver { shard: u32, to: u32 },
    /// A reshard that could not be done yet is tried again.
    Reshard { kind: u8, pick: u64, tries: u8 },
    /// Another stream takes the name of one that was deleted.
    Remake,
    /// A fleet that reads another stream fills the table.
    Beside,
    /// Oracles look for what is overdue.
    Look,
}

/// What happens to the line over which records come to a worker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// The first byte of an answer is there.
    Begins { flight: u32 },
    /// The next answer has come, unless the line has changed since.
    Comes { worker: u16, version: u64 },
    /// An answer is not waited for any longer.
    Expires { worker: u16, ticket: u64 },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

/// No two have the same number, so what is to happen need not be compared.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    count: u64,
    what: What,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.count).cmp(&(other.at, other.count))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Heap {
    pub(super) fn push(&mut self, at: Time, what: What) {
        self.count += 1;
        let count = self.count;
        self.heap.push(Reverse(Entry { at, count, what }));
    }

    /// All that is to happen, in no order.
    pub(super) fn planned(&self) -> impl Iterator<Item = &What> {
        self.heap.iter().map(|Reverse(entry)| &entry.what)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, What)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_keep_their_order() {
        let mut heap = Heap::default();
        for (at, entry) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            heap.push(at, What::Script { entry });
        }
        let order: Vec<_> = std::iter::from_fn(|| heap.pop())
            .map(|(at, what)| match what {
                What::Script { entry } => (at, entry),
                _ => (at, 0),
            })
            .collect();
        assert_eq!(order, [(3, 2), (3, 4), (5, 1), (5, 3)]);
    }
}
