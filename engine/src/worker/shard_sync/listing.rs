//! Listing the shards of the stream, page by page.

use super::Listed;
use crate::config::InitialPosition;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::notice::{ListReason, Notice};
use crate::output::{ShardFilter, StreamOp};
use crate::shard::Shard;
use crate::sync::BadListing;
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::stream_set::StreamIx;

/// Pages are kept for no longer than this: a token for the next one lasts five minutes.
const OLDEST_PAGE: Span = Span::from_secs(240);

/// What a listing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// The table is empty: a lease for each shard at the initial position.
    Fill,
    /// Something is missing, or not understood.
    Repair,
}

/// The present listing, if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Listing {
    stream: StreamIx,
    purpose: Option<Purpose>,
    in_flight: bool,
    began: Mono,
    /// When the first of the coherent pages was requested.
    first_page_at: Mono,
    /// All pages came; what follows from them is not decided yet.
    whole: bool,
    after: Option<OpId>,
    shards: Vec<Shard>,
    /// Failures, and when the next page is asked for.
    backoff: Backoff,
    /// How often the listing was begun anew because its pages were too old.
    restarts: u32,
}

impl Listing {
    /// None.
    pub(super) fn new(stream: StreamIx) -> Self {
        Self { stream, ..Self::default() }
    }

    /// Whether one may be under way.
    fn may_list(&self, cx: &Context) -> bool {
        cx.is_running() && cx.streams().reads(self.stream)
    }

    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.purpose
    }

    pub(super) fn wake_at(&self) -> Mono {
        if self.purpose.is_some() && !self.in_flight && !self.whole {
            self.backoff.until()
        } else {
            Mono::NEVER
        }
    }

    /// Begins a listing, unless one is under way.
    pub(super) fn begin(&mut self, cx: &mut Context, purpose: Purpose, why: ListReason) {
        if self.purpose.is_some() || self.in_flight || !self.may_list(cx) {
            return;
        }
        debug_assert!(!self.whole, "the last listing is over");
        cx.notify(Notice::Listing { why });
        *self = Listing {
            purpose: Some(purpose),
            began: cx.now(),
            first_page_at: cx.now(),
            ..Listing::new(self.stream)
        };
        self.step(cx);
    }

    /// It is over, or given up.
    pub(super) fn end(&mut self) {
        debug_assert!(!self.in_flight, "a listing ends with an answer");
        *self = Listing::new(self.stream);
    }

    /// Gives the listing up, in any state. The answer of a requested page is awaited, and ignored.
    pub(super) fn give_up(&mut self) {
        *self = Listing { in_flight: self.in_flight, ..Listing::new(self.stream) };
    }

    /// Ends a listing that was to fill the table and has no request in flight.
    pub(super) fn end_fill(&mut self) {
        if self.purpose == Some(Purpose::Fill) && !self.in_flight {
            self.end();
        }
    }

    /// Asks for the next page, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() < self.wake_at() {
            return;
        }
        let Some(purpose) = self.purpose else {
            return cx.broken("pages are asked for while a listing is under way");
        };
        debug_assert!(!self.in_flight, "one page at a time");
        debug_assert!(
            self.after.is_some() || self.shards.is_empty(),
            "the first page is asked for when no shard is known"
        );
        if !self.may_list(cx) {
            return self.end();
        }
        let filter = match (purpose, cx.streams().initial_position(self.stream)) {
            (Purpose::Repair, _) => ShardFilter::All,
            (Purpose::Fill, InitialPosition::TrimHorizon) => ShardFilter::AtTrimHorizon,
            (Purpose::Fill, InitialPosition::Latest) => ShardFilter::AtLatest,
            (Purpose::Fill, InitialPosition::AtTimestamp(at)) => ShardFilter::AtTimestamp(at),
        };
        let after = self.after;
        cx.stream(Waiter::List(self.stream), self.stream, StreamOp::ListShards { filter, after });
        self.in_flight = true;
    }

    /// A page came, or did not. Returns the list when it is whole.
    pub(super) fn on_page(
        &mut self, cx: &mut Context, op: OpId, outcome: Outcome,
    ) -> Option<(Purpose, Listed)> {
        debug_assert!(self.in_flight, "a page was asked for");
        debug_assert!(!self.whole, "nothing is asked for after the last page");
        debug_assert!(
            self.first_page_at >= self.began,
            "the pages that are kept came after the listing began"
        );
        self.in_flight = false;
        if !cx.streams().reads(self.stream) {
            self.end();
            return None;
        }
        let Some(purpose) = self.purpose else {
            // It was given up. What was refused meanwhile for the sake of this page is decided on by the next scan.
            cx.request(Request::Rescan(cx.now()));
            return None;
        };
        let page = match outcome {
            Outcome::Applied(Reply::Shards(page)) => page,
            other => {
                self.on_failure(cx, op, &other);
                return None;
            }
        };
        self.shards.extend(page.shards);
        if page.more {
            self.after = Some(op);
            self.backoff.wait_until(cx.now());
            self.step(cx);
            return None;
        }
        self.whole = true;
        cx.request(Request::StreamListed(self.stream, cx.now().since(self.began)));
        let listed = Listed {
            shards: std::mem::take(&mut self.shards),
            asked_at: self.began,
            first_page_at: self.first_page_at,
            sound: true,
        };
        Some((purpose, listed))
    }

    /// The same page after a pause, or, if it was refused or the others are old, all from the beginning.
    fn on_failure(&mut self, cx: &mut Context, op: OpId, outcome: &Outcome) {
        if matches!(outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            self.end();
            return cx.request(Request::DoubtStream(self.stream));
        }
        let now = cx.now();
        let refused = matches!(outcome, Outcome::Refused(_) | Outcome::Applied(_));
        // Pages of one moment are best. But if many workers list a stream of many pages, none may ever get them so fast.
        let patience = cx.config().scan_interval.times(1 << self.restarts.min(16));
        let young = now.since(self.first_page_at) < patience.min(OLDEST_PAGE);
        let again_in = if !refused && young {
            self.backoff.failed(cx, "list", "")
        } else {
            self.restarts += u32::from(!young);
            self.begin_anew(cx)
        };
        cx.trouble(op, None, "list shards", describe(outcome), again_in);
    }

    /// A contradictory listing proves no fact: the listing is begun anew after a pause. A notice comes the first time,
    /// and then at growing intervals.
    pub(super) fn is_bad(&mut self, cx: &mut Context, error: &BadListing) {
        let pause = self.begin_anew(cx);
        if self.backoff.failures().is_power_of_two() {
            cx.notify(Notice::BadListing { detail: format!("{error}; trying again in {pause}") });
        }
    }

    /// Begins at the first page again, after a pause.
    fn begin_anew(&mut self, cx: &Context) -> Span {
        debug_assert!(self.purpose.is_some(), "only what is under way is begun anew");
        let pause = self.backoff.failed(cx, "list", "");
        self.first_page_at = cx.now() + pause;
        self.whole = false;
        self.after = None;
        self.shards.clear();
        pause
    }
}
