//! Filling an empty table: a worker does it that finds the table still empty after a random wait.

use super::listing::Purpose;
use super::{Listed, ShardSync};
use crate::notice::ListReason;
use crate::shard::Shard;
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bootstrap {
    /// An empty table was seen, and the wait before filling it is over.
    waited: bool,
    /// The shards were listed, but slowly: whether the table is still empty must be seen first.
    slow_list: Option<Vec<Shard>>,
}

impl ShardSync {
    /// A whole scan showed no lease of the stream: for it, the table is empty.
    pub(in crate::worker) fn on_empty_table(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        if let Some(shards) = self.bootstrap.slow_list.take() {
            return self.create_all(cx, leases, &shards);
        }
        if self.bootstrap.waited {
            return self.listing.begin(cx, Purpose::Fill, ListReason::TableIsEmpty);
        }
        self.bootstrap.waited = true;
        let most = cx.config().bootstrap_delay.0 + 1;
        let wait = cx.draw_below("bootstrap", leases.scans().number(), most);
        cx.request(Request::Rescan(cx.now() + Span(wait)));
    }

    /// A whole scan showed leases: another worker was faster, and the next scan shows what is still missing.
    pub(in crate::worker) fn on_filled_table(&mut self) {
        self.bootstrap = Bootstrap::default();
        self.listing.end_fill();
    }

    /// The shards were listed, to fill the table.
    pub(super) fn fill(&mut self, cx: &mut Context, leases: &LeaseTable, listed: Listed) {
        if leases.of(self.stream).any(|lease| lease.row().is_some()) {
            return self.listing.end_fill();
        }
        // Another worker may have filled the table meanwhile, from a list of other shards.
        if cx.now().since(listed.asked_at) > cx.config().table_timeout.per(4) {
            self.bootstrap.slow_list = Some(listed.shards);
            return cx.request(Request::Rescan(cx.now()));
        }
        self.create_all(cx, leases, &listed.shards);
    }
}
