//! What a list of all shards says of a held lease whose shard was not found, or whose children were not named.

use super::held::HeldLease;
use super::shard_end::Prospects;
use crate::ids::LeaseKey;
use crate::notice::Notice;
use crate::shard::{ChildShard, Shard};
use crate::sync;
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;

/// The shards of a stream were listed: resolves all of its held leases that wait for that.
pub(in crate::worker) fn on_shards_listed(
    cx: &mut Context,
    leases: &mut LeaseTable,
    stream: StreamIx,
    shards: &[Shard],
) {
    for ix in leases.all() {
        let lease = leases.get(ix).filter(|lease| lease.stream() == stream);
        if !lease.and_then(Lease::held).is_some_and(HeldLease::is_missing) {
            continue;
        }
        let prospects = Prospects::new(leases, shards, ix);
        if leases.with_held(ix, |held, _| held.on_shards_listed(cx, shards, &prospects)) == Some(true) {
            leases.wake(ix, cx.now());
        }
    }
}

impl HeldLease {
    /// Whether something follows.
    fn on_shards_listed(&mut self, cx: &mut Context, shards: &[Shard], prospects: &Prospects<'_>) -> bool {
        debug_assert!(self.missing, "a listing was waited for");
        let own = shards.iter().find(|shard| shard.id.as_str() == self.key.as_str());
        let waits = self
            .stage
            .ending_mut()
            .is_some_and(|ending| !ending.pending_children.is_empty());
        if waits {
            let shown_open = own.is_some_and(Shard::is_open);
            self.judge_other_parents(cx, shown_open, prospects);
            return true;
        }
        self.missing = false;
        let read = self.stage.reading().is_some();
        if read {
            self.resolve_shard(cx, own, shards);
        }
        read
    }

    /// The shard was not found when it was read. Only the list of the living stream says what that meant: KCL takes it
    /// for the end of the shard, and loses what follows if it was not.
    fn resolve_shard(&mut self, cx: &mut Context, own: Option<&Shard>, shards: &[Shard]) {
        let now = cx.now();
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a shard that was not found is read");
        };
        let children = children_of(&self.key, shards);
        // A listing that lags may show one of two children, or be older than a shard that was read to its end already. Another
        // one is asked for, a scan interval later, unless several have shown no more: the rest may be forgotten.
        let ended = reading.reader.finished().is_some();
        let doubtful = match children.is_empty() {
            true => ended && own.is_none(),
            false => (ended || own.is_none()) && !sync::shows_all_children(shards, &self.key.to_shard()),
        };
        if doubtful {
            reading.doubtful_listings += 1;
            if reading.doubtful_listings < cx.config().audit_confidence.max(2) {
                reading.look_at = now + cx.config().scan_interval;
                if !ended {
                    reading.reader.resume(reading.look_at);
                }
                return;
            }
        }
        reading.doubtful_listings = 0;
        if ended {
            // Its end was read, and only its children were not named. A listed shard may get some yet.
            reading.childless = own.is_none();
            reading.reader.trimmed(children);
        } else if own.is_some() {
            reading.reader.resume(now);
        } else {
            reading.childless = true;
            let detail = format!(
                "the shard is not listed any more; {} children follow",
                children.len()
            );
            reading.reader.trimmed(children);
            let lease = self.key.clone();
            cx.notify(Notice::Trimmed { lease, detail });
        }
    }
}

fn children_of(lease: &LeaseKey, shards: &[Shard]) -> Vec<ChildShard> {
    shards
        .iter()
        .filter(|shard| shard.parents().any(|parent| parent.as_str() == lease.as_str()))
        .map(|shard| ChildShard {
            id: shard.id.clone(),
            parents: shard.parents().cloned().collect(),
            range: shard.range,
        })
        .collect()
}
