//! Looking for what has no lease, after a whole scan: then the shards are listed.

use super::{ShardSync, orphans};
use crate::notice::ListReason;
use crate::policy::Finished;
use crate::shard::HashRange;
use crate::sync;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Aside, Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Audit {
    /// Scans in a row that showed a hole.
    hole_seen: u32,
    /// When a listing last ended.
    listed_at: Mono,
    /// The table had no hole when this was [`LeaseTable::cover`].
    whole: Aside<Option<u64>>,
}

impl Audit {
    /// A listing has ended.
    pub(super) fn listed(&mut self, now: Mono) {
        self.listed_at = now;
    }

    /// When a listing last ended.
    pub(super) fn listed_at(&self) -> Mono {
        self.listed_at
    }

    /// Whether the shards were listed less than half a scan interval ago.
    fn listed_lately(&self, cx: &Context) -> bool {
        let since = cx.now().since(self.listed_at);
        self.listed_at > Mono::default() && since < cx.config().scan_interval.per(2)
    }
}

/// The parts of the hash space without an unfinished lease, and the number of unfinished leases with unknown ranges.
fn uncovered(cx: &Context, leases: &LeaseTable, stream: StreamIx) -> (Vec<HashRange>, u32) {
    let mut unknown = 0u32;
    let mut ranges: Vec<HashRange> = Vec::new();
    for row in leases.of(stream).filter_map(Lease::unfinished_row) {
        match row.range {
            Some(range) => ranges.push(range),
            None => unknown += u32::from(!cx.needs_listings()),
        }
    }
    (sync::holes(ranges.into_iter()), unknown)
}

impl ShardSync {
    /// Whether unfinished leases cover every hash key, as far as rows tell.
    pub(super) fn is_covered(&self, cx: &Context, leases: &LeaseTable) -> bool {
        uncovered(cx, leases, self.stream) == (Vec::new(), 0)
    }

    /// Looks for parts of the hash space that no unfinished lease covers. `deputy`: how much longer than the leader we wait.
    pub(in crate::worker) fn look_for_holes(&mut self, cx: &mut Context, leases: &LeaseTable, deputy: u32) {
        let whole = Some(leases.cover());
        let (holes, unknown) = match self.audit.whole.0 == whole {
            true => (Vec::new(), 0),
            false => uncovered(cx, leases, self.stream),
        };
        debug_assert!(
            leases.len() > 64 || (holes.clone(), unknown) == uncovered(cx, leases, self.stream),
            "without a change there is no new hole"
        );
        if holes.is_empty() && unknown == 0 {
            self.audit.whole.0 = whole;
            self.audit.hole_seen = 0;
            // Without a hole nothing is missing, unless every listed shard is to have a row, or listings contradict the rows.
            if !cx.absence_is_unread()
                && !self.contradicted.doubts_cover()
                && !self.contradicted.doubts_filling()
            {
                self.planned.clear();
            }
            return;
        }
        self.audit.hole_seen += 1;
        let seen = self.audit.hole_seen;
        let needed = self.scans_needed(cx, leases, &holes, deputy);
        debug_assert!(needed > 0, "a hole is seen before it is believed in");
        if let Some(range) = holes.first().copied() {
            cx.notify(crate::notice::Notice::Hole { range, seen, needed });
        }
        if seen >= needed {
            // The shards are listed again after another scan with the hole. Hurried scans show nothing new after the
            // listing just before.
            self.audit.hole_seen = needed - 1;
            if self.audit.listed_lately(cx) {
                return;
            }
            let why = match holes.is_empty() {
                false => ListReason::Hole,
                true => ListReason::RangesUnknown,
            };
            cx.request(Request::ListShards(self.stream, why));
        }
    }

    /// In how many scans in a row these holes must be seen. Beside a finished lease the leader needs one scan. Any
    /// other worker needs a second scan, after the time that the leader needs to create the missing leases.
    fn scans_needed(&self, cx: &mut Context, leases: &LeaseTable, holes: &[HashRange], deputy: u32) -> u32 {
        if !orphans::beside_finished(leases, self.stream, holes) {
            return cx.config().audit_confidence.saturating_mul(1 + deputy);
        }
        if deputy > 0 && self.audit.hole_seen == 1 {
            let at = orphans::look_at(cx, cx.now(), deputy);
            cx.request(Request::Rescan(at));
        }
        1 + u32::from(deputy > 0)
    }

    /// Lists the shards if a lease cannot be taken because its parents are not known, and, as the leader, now and then to
    /// learn which finished shards the stream forgot.
    pub(in crate::worker) fn look_for_lineage(&self, cx: &mut Context, leases: &LeaseTable, deputy: u32) {
        if !cx.needs_listings() {
            return;
        }
        let unknown = |lease: &Lease| {
            let row = lease.unfinished_row();
            row.is_some_and(|row| !leases.lineage().knows(row))
        };
        if leases.of(self.stream).any(unknown) {
            return cx.request(Request::ListShards(self.stream, ListReason::ParentsUnknown));
        }
        let (now, delay) = (cx.now(), cx.config().cleanup_delay);
        let waits = |lease: &Lease| {
            lease.ended_at() != Mono::NEVER
                && now.since(lease.ended_at()) >= delay
                && (leases.lineage().still_listed(lease.key(), now - delay).is_none()
                    || leases.lineage().needs_next_list(cx, lease.key()))
        };
        let leads = cx.config().policies.finished == Finished::WhenForgotten && deputy == 0;
        if leads && delay > Span::ZERO && leases.of(self.stream).any(waits) {
            cx.request(Request::ListShards(self.stream, ListReason::MayBeForgotten));
        }
    }
}
