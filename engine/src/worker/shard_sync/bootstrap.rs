//! Filling an empty table: done by a worker that finds the table still empty after a random wait.

use super::listing::Purpose;
use super::{Listed, ShardSync};
use crate::config::InitialPosition;
use crate::ids::ShardId;
use crate::notice::{ListReason, Notice};
use crate::shard::Shard;
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::lease_table::LeaseTable;
use std::collections::BTreeSet;

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bootstrap {
    /// An empty table was seen, and the wait before filling it is over.
    waited: bool,
    /// The shards were listed, but slowly: whether the table is still empty must be seen first.
    slow_list: Option<Vec<Shard>>,
    /// The parents that listings name and do not show. If enough listings lack the same parents, the stream has forgotten these parents.
    unlisted: Evidence<BTreeSet<ShardId>>,
}

/// The parents that a listing names and does not show.
fn unlisted_parents(shards: &[Shard]) -> BTreeSet<ShardId> {
    let listed: BTreeSet<&ShardId> = shards.iter().map(|shard| &shard.id).collect();
    let named = shards.iter().flat_map(Shard::parents);
    named.filter(|parent| !listed.contains(parent)).cloned().collect()
}

impl ShardSync {
    /// A whole scan showed no lease of the stream: for it, the table is empty.
    pub(in crate::worker) fn on_empty_table(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        if let Some(shards) = self.bootstrap.slow_list.take() {
            return self.create_all(cx, leases, &shards);
        }
        if self.bootstrap.waited {
            let due = self.bootstrap.unlisted.ask_again_at(Needed::to_forget(cx));
            if self.bootstrap.unlisted.claim().is_some() && cx.now() < due {
                return cx.request(Request::Rescan(due));
            }
            return self.listing.begin(cx, Purpose::Fill, ListReason::TableIsEmpty);
        }
        self.bootstrap.waited = true;
        let most = cx.config().bootstrap_delay.0 + 1;
        let wait = cx.draw_below("bootstrap", leases.scans().number(), most);
        cx.request(Request::Rescan(cx.now() + Span(wait)));
    }

    /// A whole scan showed leases: another worker was faster, and the next scan shows the remaining holes.
    pub(in crate::worker) fn on_filled_table(&mut self) {
        self.bootstrap = Bootstrap::default();
        self.listing.end_fill();
    }

    /// Whether the listing shows every parent still to be read. A parent named but not shown may be forgotten, or the
    /// listing is partial. With the leases of its children in the table, a parent counts as read: so the second case is
    /// ruled out first.
    fn shows_all(&mut self, cx: &mut Context, listed: &Listed) -> bool {
        let unlisted = match cx.streams().initial_position(self.stream) {
            // Only open shards are read.
            InitialPosition::Latest => BTreeSet::new(),
            _ => unlisted_parents(&listed.shards),
        };
        if unlisted.is_empty() {
            return true;
        }
        let needed = Needed::to_forget(cx);
        let (first, asked) = (unlisted.first().cloned(), listed.first_page_at);
        if self.bootstrap.unlisted.says(cx, asked, unlisted, needed) {
            return true;
        }
        let again_at = self.bootstrap.unlisted.ask_again_at(needed);
        if let Some(parent) = first {
            let again_in = again_at.since(cx.now());
            cx.notify(Notice::ParentUnlisted { parent, again_in });
        }
        cx.request(Request::Rescan(again_at));
        false
    }

    /// The shards were listed, to fill the table.
    pub(super) fn fill(&mut self, cx: &mut Context, leases: &LeaseTable, listed: Listed) {
        if leases.of(self.stream).any(|lease| lease.row().is_some()) {
            return self.listing.end_fill();
        }
        if !self.shows_all(cx, &listed) {
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
