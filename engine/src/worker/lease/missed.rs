//! Time that the monotonic clock did not count: beliefs in leases end earlier by this time, and renewals are due sooner
//! by it.
//!
//! The next step of each lease tells its handler, and renews. If no other worker took the lease meanwhile, its shard
//! goes on as before.

use super::acquisition::Acquisition;
use crate::notice::Notice;
use crate::time::Span;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

/// So much time was not counted.
pub(in crate::worker) fn on_missed(cx: &mut Context, leases: &mut LeaseTable, by: Span) {
    cx.backdate_beliefs(by);
    let mut held = 0;
    for ix in leases.all() {
        leases.with_acquisition(ix, |acquisition, _| acquisition.missed(by));
        if leases.with_held(ix, |held, _| held.missed(by)).is_some() {
            held += 1;
            leases.wake(ix, cx.now());
        }
    }
    cx.notify(Notice::TimeMissed { by, leases: held });
}

impl Acquisition {
    fn missed(&mut self, by: Span) {
        self.first_emitted = self.first_emitted - by;
    }
}
