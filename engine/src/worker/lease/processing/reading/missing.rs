//! The evidence of listings about a shard that was not found, or whose children were not named.

use crate::ids::{LeaseKey, OpId, ShardId};
use crate::notice::{Notice, Stall};
use crate::reader::Reader;
use crate::shard::{ChildShard, Shard};
use crate::sync;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease::processing::shard_end::names as names_of;

/// A list of all shards, as a lease sees it.
pub(in crate::worker::lease) struct View<'a> {
    asked: Mono,
    shards: &'a [Shard],
    /// The shard of the lease, if it is listed.
    own: Option<&'a Shard>,
    /// A listed shard that proves the list late, though the list does not show the held shard.
    against: Option<ShardId>,
}

impl<'a> View<'a> {
    /// A list that was requested at `asked`. `own`: the shard of the lease, if it is listed. `against`: a listed shard
    /// that proves the list late.
    pub(in crate::worker::lease) fn new(
        asked: Mono, shards: &'a [Shard], own: Option<&'a Shard>, against: Option<ShardId>,
    ) -> Self {
        Self { asked, shards, own, against }
    }

    /// When the list was requested.
    pub(in crate::worker::lease::processing) fn asked(&self) -> Mono {
        self.asked
    }

    /// Whether the list is older than the end of the shard.
    pub(in crate::worker::lease::processing) fn is_behind(&self) -> bool {
        self.own.is_some_and(Shard::is_open) || self.against.is_some()
    }
}

/// An end that an answer asserts, without children, while listings show the shard open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct DeniedEnd {
    /// The read whose answer asserted the end last.
    read: Option<OpId>,
    /// How many such ends were denied in a row.
    times: u32,
}

/// The search for a shard that was not found, or for the children of a shard whose end was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Search {
    /// The next look for children, if the end was read and none were named.
    look_at: Mono,
    /// Listings without the shard: each shows exactly these children.
    gone: Evidence<Vec<ShardId>>,
    /// A shard proving the last listing without our shard late.
    against: Option<ShardId>,
    /// The shard is known to have no children.
    childless: bool,
    /// Ends without children that a listing denied.
    denied: DeniedEnd,
    /// An answer has named a child, or a listing has shown the shard closed or all of its children: an answer `stream_lag`
    /// after this listing confirms the end.
    closed: bool,
    /// Answers proved the end, a listing has shown the shard closed, and one more answer is awaited.
    confirming: bool,
}

/// How long until a shard that was not found is asked for again.
fn pause(cx: &Context) -> Span {
    cx.config().scan_interval.min(cx.config().retry_max)
}

impl Search {
    /// Whether listings do not show the shard, and are not enough to say that it is forgotten.
    pub(super) fn is_doubted(&self) -> bool {
        self.gone.answers() > 0 || self.against.is_some()
    }

    /// Whether listings denied the last ends without children.
    pub(super) fn is_end_denied(&self) -> bool {
        self.denied.times > 0
    }

    /// Whether the shard is known to have no children.
    pub(super) fn is_childless(&self) -> bool {
        self.childless
    }

    /// Why the shard stands still while a listing is to show its fate.
    pub(super) fn why(&self) -> Stall {
        match self.is_doubted() {
            true => Stall::Unproven { listings: self.gone.answers(), against: self.against.clone() },
            false if self.is_end_denied() => Stall::EndDenied { times: self.denied.times },
            false => Stall::Missing,
        }
    }

    /// The shard was found, or shown.
    pub(super) fn found(&mut self) {
        self.gone.contradicted();
        self.against = None;
    }

    /// The next look for children.
    pub(super) fn next_look(&self) -> Mono {
        self.look_at
    }

    /// The next look for children comes at this moment.
    pub(super) fn look_at(&mut self, at: Mono) {
        self.look_at = at;
    }

    /// The answer of this read asserts the end, and does not name all children. A shard with a child is closed, and an
    /// answer with a child knows all records of the shard.
    pub(super) fn end_claimed(&mut self, read: OpId, children: &[ChildShard]) {
        self.denied.read = Some(read);
        self.closed |= !children.is_empty();
    }

    /// An answer asserts no end, or names the children.
    pub(super) fn end_not_claimed(&mut self) {
        self.denied = DeniedEnd::default();
        self.confirming = false;
    }

    /// Nothing follows from a listing.
    pub(super) fn try_again(&mut self, reader: &mut Reader, cx: &Context) {
        self.look_at = cx.now() + pause(cx);
        reader.resume(self.look_at);
    }

    /// The shard was not found at a read. Only lists of the living stream tell the meaning: KCL takes the answer for
    /// the end of the shard, and loses the rest of the shard if that is wrong. The same replica may have given both
    /// answers. So a shard not read to its end is forgotten by several lists, apart in time, and never by a late list. The
    /// stream may forget the shard while the end is asked for once more: then lists may show the shard still.
    pub(super) fn resolve_shard(
        &mut self, reader: &mut Reader, own: &Ownership, cx: &mut Context, view: View<'_>,
    ) {
        let (now, needed) = (cx.now(), Needed::to_forget(cx));
        let confirms = self.confirming && sync::shows_all_children(view.shards, &own.key().to_shard());
        if view.own.is_some_and(|shard| shard.is_open() || !confirms) {
            self.found();
            return reader.resume(now);
        }
        let children = children_of(own.key(), view.shards);
        let stands = view.against.is_some();
        self.against = view.against;
        let named = names_of(&children);
        let enough = self.gone.says(cx, view.asked, named, needed);
        let forgotten = enough && !stands;
        if !forgotten {
            if stands {
                self.gone.contradicted();
            }
            return reader.resume(now + pause(cx));
        }
        debug_assert!(
            self.gone.answers() >= 2,
            "a shard that was not read to its end is not forgotten by one listing"
        );
        self.found();
        self.childless = view.own.is_none();
        let (listings, following) = (needed.answers(), children.len());
        if std::mem::take(&mut self.confirming) {
            // The answers before proved the end: no record is lost.
            return reader.end_with(children);
        }
        let detail = format!(
            "the shard was trimmed before it was read to its end: {listings} listings, apart in time, do not show the shard any \
             more; {following} children follow"
        );
        reader.end_with(children);
        let lease = own.lease();
        cx.notify(Notice::Trimmed { lease, detail });
    }

    /// The shard was read to its end, and only its children were not named. A list of all of its children is always
    /// true. A late list may show one child of two, or be older than the end. So fewer children are believed only when
    /// several lists agree. The answers that asserted the end may be older than the last records: `stream_lag` after the
    /// first list with the shard closed, one more answer must assert the end.
    pub(super) fn resolve_children(
        &mut self, reader: &mut Reader, own: &Ownership, cx: &mut Context, view: View<'_>,
    ) {
        let (now, needed) = (cx.now(), Needed::to_forget(cx));
        let children = children_of(own.key(), view.shards);
        let all = sync::shows_all_children(view.shards, &own.key().to_shard());
        let is_behind = view.is_behind();
        self.against = view.against;
        if !all {
            // A listed shard may get some yet.
            if is_behind || (view.own.is_some() && children.is_empty()) {
                self.gone.contradicted();
                if view.own.is_some_and(Shard::is_open) {
                    self.read_on(reader, own, cx);
                }
                return;
            }
            let named = names_of(&children);
            if !self.gone.says(cx, view.asked, named, needed) {
                self.look_at = self.look_at.max(now + pause(cx));
                return;
            }
        }
        self.found();
        // A list may lack the shard although the stream has not forgotten it. Several lists without the shard and its
        // children leave nothing to ask.
        if (all || view.own.is_some()) && !std::mem::replace(&mut self.closed, true) {
            (self.look_at, self.confirming) = (now, true);
            return reader.confirm_end(now);
        }
        self.childless = view.own.is_none();
        reader.end_with(children);
    }

    /// An answer asserted the end, and a listing shows the shard open. One of the two is behind. If the listing is, the end is read again,
    /// and costs two requests; if the answer was wrong, records follow. So reading goes on. The next denial comes `retry_max` later.
    fn read_on(&mut self, reader: &mut Reader, own: &Ownership, cx: &mut Context) {
        self.denied.times = self.denied.times.saturating_add(1);
        reader.read_on(cx.now());
        if let Some(op) = self.denied.read
            && self.denied.times.is_power_of_two()
        {
            let times = self.denied.times;
            cx.notify(Notice::Trouble {
                op,
                what: format!("read {}", own.key()),
                lease: Some(own.lease()),
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
