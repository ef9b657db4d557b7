//! Evidence about a worker of a fleet, from the rows of its leases.

use crate::row::LeaseRow;

/// Evidence about a worker from the rows of its leases.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::worker) struct Standing {
    owns: bool,
    renews: bool,
    takes: bool,
    /// A lease of the worker has expired.
    silent: bool,
}

impl Standing {
    /// Of leases that are plainly its own.
    pub(in crate::worker) fn of_plain(takes: bool) -> Self {
        Self { owns: true, renews: true, takes, silent: false }
    }

    /// Of leases that have all expired.
    #[cfg(test)]
    pub(in crate::worker) fn of_silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// Of a fresh row that is new to us: nothing shows who wrote the row last.
    #[cfg(test)]
    pub(in crate::worker) fn of_new_row() -> Self {
        Self { owns: true, ..Self::default() }
    }

    /// Adds a row that names the worker. `renewed`: this worker was seen to renew the lease; `None`: the row is new to us.
    /// `lately`: the row has changed.
    pub(in crate::worker) fn add(&mut self, row: &LeaseRow, renewed: Option<bool>, lately: bool) {
        let takes = !row.hands_over.is_no();
        self.owns |= lately && (renewed.unwrap_or(true) || takes);
        self.renews |= lately && renewed == Some(true);
        self.takes |= lately && takes;
        self.silent |= !lately;
    }

    /// Whether a row of the worker is fresh, by a renewal or a take of the worker as far as rows tell.
    pub(super) fn owns(self) -> bool {
        self.owns
    }

    /// Whether the worker was seen to renew a lease lately.
    pub(super) fn renews(self) -> bool {
        self.renews
    }

    /// Whether the row of a fresh lease shows a take by the worker.
    pub(super) fn takes(self) -> bool {
        self.takes
    }

    /// Whether the worker has let all of its leases expire, and so is dead. One lease alone may be late where the table
    /// throttles.
    pub(super) fn is_dead(self) -> bool {
        self.silent && !self.owns
    }
}
