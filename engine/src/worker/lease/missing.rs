//! The evidence of a list of all shards about a held lease whose shard was not found, or whose children were not named.

use super::held::HeldLease;
use super::shard_end::{self, Prospects};
use super::stage::Stage;
use crate::ids::{LeaseIx, LeaseKey, ShardId};
use crate::notice::Notice;
use crate::shard::{ChildShard, Shard};
use crate::sync::{self, Unlisted};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::evidence::Needed;
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeMap;

/// The shards of a stream were listed: resolves all of the stream's held leases that wait for a listing. `asked`: when
/// the listing was requested.
pub(in crate::worker) fn on_shards_listed(
    cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx, asked: Mono, shards: &[Shard],
) {
    for ix in missing(leases, stream) {
        let row = leases.get(ix).and_then(Lease::row);
        let Some(key) = leases.get(ix).map(|lease| lease.key().clone()) else {
            continue;
        };
        let listed = shards.iter().find(|shard| shard.id.as_str() == key.as_str());
        let by_name = Unlisted { id: key.as_str(), parents: &[], range: None };
        let against = match listed {
            Some(_) => None,
            None => sync::stands_against(row.map_or(by_name, Unlisted::of), shards),
        };
        let view = View { asked, shards, own: listed, against };
        let held = leases.get(ix).and_then(Lease::held);
        let prospects =
            held.is_some_and(HeldLease::awaits_other_parents).then(|| Prospects::new(leases, shards, ix));
        let follows = leases.with_held(ix, |held, _| held.on_shards_listed(cx, view, prospects.as_ref()));
        if follows == Some(true) {
            leases.wake(ix, cx.now());
        }
    }
    let waiting = waiting(leases, stream);
    if waiting.is_empty() {
        return;
    }
    let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    for ix in waiting {
        let denied = leases.with_held(ix, |held, _| held.compare_parents(cx, asked, &by_id)).flatten();
        if let Some(denied) = denied {
            leases.deny_parents(ix, &denied);
            leases.wake(ix, cx.now());
        }
    }
}

/// The shards of a stream were listed, and the list contradicts itself. No decision follows, and shards not found are
/// requested again.
pub(in crate::worker) fn on_bad_listing(cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx) {
    for ix in missing(leases, stream) {
        leases.with_held(ix, |held, _| held.try_again(cx));
        leases.wake(ix, cx.now());
    }
}

/// The held leases of a stream that wait for a listing.
fn missing(leases: &LeaseTable, stream: StreamIx) -> Vec<LeaseIx> {
    let of_stream = |lease: &&Lease| lease.stream() == stream;
    let waits = |ix: &LeaseIx| {
        let lease = leases.get(*ix).filter(of_stream);
        lease.and_then(Lease::held).is_some_and(HeldLease::is_missing)
    };
    leases.all().into_iter().filter(waits).collect()
}

/// The held leases of a stream whose shards wait for their parents.
fn waiting(leases: &LeaseTable, stream: StreamIx) -> Vec<LeaseIx> {
    let waits = |ix: &LeaseIx| {
        let lease = leases.get(*ix).filter(|lease| lease.stream() == stream);
        lease.and_then(Lease::held).is_some_and(|held| matches!(held.stage, Stage::Waiting(_)))
    };
    leases.all().into_iter().filter(waits).collect()
}

/// A list of all shards, as a lease sees it.
struct View<'a> {
    asked: Mono,
    shards: &'a [Shard],
    /// The shard of the lease, if it is listed.
    own: Option<&'a Shard>,
    /// A listed shard that proves the list late, though the list does not show the held shard.
    against: Option<ShardId>,
}

/// How long until a shard that was not found is asked for again.
fn pause(cx: &Context) -> Span {
    cx.config().scan_interval.min(cx.config().retry_max)
}

impl HeldLease {
    /// Whether the shard has ended, and children wait until their other parents have leases.
    fn awaits_other_parents(&self) -> bool {
        matches!(&self.stage, Stage::Ending(ending) if !ending.pending_children.is_empty())
    }

    /// Whether the listing has an effect. `prospects`: present if the lease awaits other parents.
    fn on_shards_listed(
        &mut self, cx: &mut Context, view: View<'_>, prospects: Option<&Prospects<'_>>,
    ) -> bool {
        debug_assert!(self.missing, "a listing was waited for");
        if let Some(prospects) = prospects {
            let is_behind = view.own.is_some_and(Shard::is_open) || view.against.is_some();
            self.judge_other_parents(cx, (view.asked, is_behind), prospects);
            return true;
        }
        self.missing = false;
        match self.stage.reading().map(|reading| reading.reader.finished().is_some()) {
            Some(true) => self.resolve_children(cx, view),
            Some(false) => self.resolve_shard(cx, view),
            None => return false,
        }
        true
    }

    /// Nothing follows from a listing.
    fn try_again(&mut self, cx: &Context) {
        self.missing = false;
        let at = cx.now() + pause(cx);
        if let Some(reading) = self.stage.reading_mut() {
            reading.look_at = at;
            reading.reader.resume(at);
        }
    }

    /// The shard was not found at a read. Only lists of the living stream tell the meaning: KCL takes the answer for
    /// the end of the shard, and loses the rest of the shard if that is wrong. The same replica may have given both
    /// answers. So a shard not read to its end is forgotten by several lists, apart in time, and never by a late list.
    fn resolve_shard(&mut self, cx: &mut Context, view: View<'_>) {
        let (now, needed) = (cx.now(), Needed::to_forget(cx));
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a shard that was not found is read");
        };
        if view.own.is_some() {
            reading.found();
            return reading.reader.resume(now);
        }
        let children = children_of(self.own.key(), view.shards);
        let stands = view.against.is_some();
        reading.against = view.against;
        let named = shard_end::names(&children);
        let enough = reading.gone.says(cx, view.asked, named, needed);
        let forgotten = enough && !stands;
        if !forgotten {
            if stands {
                reading.gone.contradicted();
            }
            return reading.reader.resume(now + pause(cx));
        }
        debug_assert!(
            reading.gone.answers() >= 2,
            "a shard that was not read to its end is not forgotten by one listing"
        );
        reading.found();
        reading.childless = true;
        let (listings, following) = (needed.answers(), children.len());
        let detail = format!(
            "the shard was trimmed before it was read to its end: {listings} listings, apart in time, do not show the shard any \
             more; {following} children follow"
        );
        reading.reader.trimmed(children);
        let lease = self.own.lease();
        cx.notify(Notice::Trimmed { lease, detail });
    }

    /// The shard was read to its end, and only its children were not named. A list of all of its children is always
    /// true. A late list may show one child of two, or be older than the end. So fewer children are believed only when
    /// several lists agree.
    fn resolve_children(&mut self, cx: &mut Context, view: View<'_>) {
        let (now, needed) = (cx.now(), Needed::to_forget(cx));
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("the children of a shard are looked for while it is read, or let go of");
        };
        let children = children_of(self.own.key(), view.shards);
        let all = sync::shows_all_children(view.shards, &self.own.key().to_shard());
        let is_behind = view.own.is_some_and(Shard::is_open) || view.against.is_some();
        reading.against = view.against;
        if !all {
            // A listed shard may get some yet.
            if is_behind || (view.own.is_some() && children.is_empty()) {
                reading.gone.contradicted();
                if view.own.is_some_and(Shard::is_open) {
                    self.read_on(cx);
                }
                return;
            }
            let named = shard_end::names(&children);
            if !reading.gone.says(cx, view.asked, named, needed) {
                reading.look_at = reading.look_at.max(now + pause(cx));
                return;
            }
        }
        reading.found();
        reading.childless = view.own.is_none();
        reading.reader.trimmed(children);
    }

    /// An answer asserted the end, and a listing shows the shard open. One of the two is behind. If the listing is, the end is read again,
    /// and costs two requests; if the answer was wrong, records follow. So reading goes on. The next denial comes `retry_max` later.
    fn read_on(&mut self, cx: &mut Context) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a shard is read on while it is read, or let go of");
        };
        reading.denied.times = reading.denied.times.saturating_add(1);
        reading.reader.read_on(cx.now());
        if let Some(op) = reading.denied.read
            && reading.denied.times.is_power_of_two()
        {
            let times = reading.denied.times;
            cx.notify(Notice::Trouble {
                op,
                what: format!("read {}", self.own.key()),
                lease: Some(self.own.lease()),
                how: format!(
                    "expected an iterator or children, found an answer with neither ({times} in a row), and a listing shows the shard \
                     open; one of the two is behind, and a new iterator is taken after the last record"
                ),
                again_in: Span::ZERO,
            });
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
