//! Planned events in the order of true time; events of the same moment follow the order of their planning.

use crate::oracles::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A planned event.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// An event of a worker's process.
    Of { worker: u16, generation: u32, event: WorkerEvent },
    /// A service executes a request.
    Execute { flight: u32, second: bool },
    /// An event of the line over which records come to a worker.
    Line(Moment),
    /// A worker learns the outcome of a request.
    Answer { flight: u32 },
    /// A worker continues after a standstill.
    Resume { worker: u16, pause: u32 },
    /// The wall clock of a machine is set right after a suspension.
    WallRight { worker: u16 },
    /// A worker dies.
    Crash { worker: u16, generation: u32, down_us: u64, loops: u32 },
    /// A worker receives a request to stop.
    Stop { worker: u16, generation: u32, gap_us: u64 },
    /// A worker starts again.
    Start { worker: u16, generation: u32, loops: u32 },
    /// Records are put.
    Produce,
    /// The next entry of the script.
    Script { entry: u32 },
    /// A leader begins to hand a lease over.
    HandOver { shard: u32, to: u32 },
    /// Another attempt of a reshard, impossible before.
    Reshard { kind: u8, pick: u64, tries: u8 },
    /// Another stream takes the name of a deleted stream.
    Remake,
    /// A fleet of another stream fills the table.
    Beside,
    /// Oracles look for overdue events.
    Look,
}

/// Events of a worker's process. They wait while the worker stands still, and end with the process.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkerEvent {
    /// The requested wake-up.
    Wake,
    /// A handler reaches the next step of its work.
    Handler { shard: u32, run: u32 },
    /// The application resumes a paused shard.
    PauseEnds { shard: u32 },
    /// The application has processed a kept batch, or gives a kept batch back.
    Kept { shard: u32, batch: u64 },
    /// The application took note of a close or an abort.
    Noted { op: u64 },
    /// The worker looks whether the runtime of its handlers runs any task.
    Beat { block: u32 },
    /// The handlers no longer block every thread of their runtime.
    Unblock { block: u32 },
    /// The application takes a stream away from the worker, or gives the stream back.
    ReadStream { stream: u32, reads: bool },
}

/// Events of the line over which records come to a worker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// The first byte of an answer is there.
    Begins { flight: u32 },
    /// The next answer arrives complete, unless the line has changed since.
    Comes { worker: u16, version: u64 },
    /// The worker's wait for an answer ends.
    Expires { worker: u16, ticket: u64 },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

/// Each entry has its own number, so events need no comparison.
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

    /// All planned events, in no order.
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
