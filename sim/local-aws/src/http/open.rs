//! The open connections: their number, and their silence.

use super::held;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Connections, shared by their tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Counts events on all connections.
    clock: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    /// The count at the connection's last event.
    last: u64,
    /// Requests under way.
    busy: u32,
    /// Absent for a moment, until the connection's task starts.
    task: Option<AbortHandle>,
}

/// An open connection. A drop of the entry forgets the connection.
#[derive(Debug)]
pub(super) struct Entry {
    all: Connections,
    id: u64,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Busy(Arc<Entry>);

impl Connections {
    /// A new one.
    pub(super) fn enter(&self) -> Entry {
        let mut state = held(&self.0);
        state.clock += 1;
        let id = state.clock;
        let open = Open { last: id, busy: 0, task: None };
        state.open.insert(id, open);
        Entry { all: self.clone(), id }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        held(&self.0).open.len()
    }

    /// Notes the task of a connection.
    pub(super) fn serves(&self, id: u64, task: AbortHandle) {
        if let Some(open) = held(&self.0).open.get_mut(&id) {
            open.task = Some(task);
        }
    }

    /// Closes the connection with the longest silence among connections without a request under way. False if every
    /// connection has a request.
    pub(super) fn close_silent(&self) -> bool {
        let mut state = held(&self.0);
        let silent = state.open.iter().filter(|(_, open)| open.busy == 0);
        let Some((id, _)) = silent.min_by_key(|(_, open)| open.last) else {
            return false;
        };
        let id = *id;
        let task = state.open.remove(&id).and_then(|open| open.task);
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        true
    }

    fn happened(&self, id: u64, change: impl Fn(&mut u32)) {
        let mut state = held(&self.0);
        state.clock += 1;
        let now = state.clock;
        if let Some(open) = state.open.get_mut(&id) {
            open.last = now;
            change(&mut open.busy);
        }
    }
}

impl Entry {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// A request of this connection has come.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.all.happened(self.id, |busy| *busy += 1);
        Busy(self.clone())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        held(&self.all.0).open.remove(&self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.all.happened(self.0.id, |busy| *busy = busy.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silent_one_without_a_request_is_closed_first() {
        let all = Connections::default();
        let entries: Vec<Arc<Entry>> = (0..4).map(|_| Arc::new(all.enter())).collect();
        let busy = entries[0].begin();
        drop(entries[1].begin());
        let ids = || held(&all.0).open.keys().copied().collect::<Vec<_>>();
        let id = |n: usize| entries[n].id();
        assert!(all.close_silent());
        assert_eq!(ids(), [id(0), id(1), id(3)], "the third had never asked for anything");
        assert!(all.close_silent() && all.close_silent());
        assert_eq!((ids(), all.count()), (vec![id(0)], 1));
        assert!(!all.close_silent(), "a request is under way");
        drop(busy);
        assert!(all.close_silent());
        drop(entries);
        assert_eq!(all.count(), 0);
    }
}
