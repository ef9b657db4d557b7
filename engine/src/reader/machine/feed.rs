//! The two feeds of a reader: iterators and subscriptions.
//!
//! An iterator is asked for records. Into a subscription (enhanced fan-out) the service pushes events: the reader asks for the next event, and
//! the answer comes when the service has one. A subscription lives five minutes, and only one subscriber of a consumer
//! holds the place at a shard.
//!
//! * **A subscription continues after the last record.** Whatever ends a subscription, the next one begins after the last record that was
//!   fetched, as the next iterator does. An end without a word loses nothing.
//! * **A refused place costs no standstill** where a shard may be read both ways: iterators read the shard meanwhile.
//!   The service keeps a place for five seconds after each successful call, also against the next owner of a lease.
//! * **One call a second**: the limit of the service for a consumer and a shard. An ended subscription is renewed at once
//!   if it has brought an event; without an event the pauses grow.
//! * **A silence ends a subscription.** An idle shard brings an empty event every few seconds. [`SILENCE`] is the deadline of
//!   each event.
//! * **Evidence comes by iterator.** A second answer must prove the end of a shard, or a doubtful answer; the service would refuse
//!   a second subscription for five seconds. A refused call proves no missing shard:
//!   the service also refuses calls of a deregistered consumer.

use super::{Cursor, Flight, Kind, Reader};
use crate::draw::draw_below;
use crate::input::{Outcome, Reply, Why};
use crate::reader::{Ctx, Event, How};
use crate::time::{Mono, Span};

/// A subscription without an event for this long is given up. The service sends an event, perhaps an empty one, every few
/// seconds; the SDK for Java gives a subscription up after 10 s.
pub(crate) const SILENCE: Span = Span::from_secs(20);

/// An idle shard brings an event after this time at the latest, as long as all is well: the service sends one every five seconds.
pub(crate) const EVENT_PAUSE: Span = Span::from_secs(6);

/// A subscription must begin within this time: the service answers at once.
pub(crate) const SUBSCRIBE_TIMEOUT: Span = Span::from_secs(5);

/// The least time between two calls for a shard, by the service's limit.
const CALL_PAUSE: Span = Span::from_secs(1);
/// After a successful call the service keeps the place for this long.
const PLACE_KEPT: Span = Span::from_secs(5);
/// The greatest pause before a further call.
const LONGEST_PAUSE: Span = Span::from_secs(60);
/// So many refusals of the place in a row are ordinary after a move of a lease, one a second.
const ORDINARY_REFUSALS: u32 = 7;

/// How a shard may be read now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Feeds {
    /// By iterators.
    #[default]
    Iterators,
    /// By subscriptions, and by iterators while the service refuses a subscription.
    Both,
    /// By subscriptions. Only evidence comes by iterator, where the service permits iterators.
    Subscriptions,
    /// Not now: a subscription needs a consumer, and the consumer is awaited.
    Nothing,
}

/// The feed of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FeedKind {
    Iterator,
    Subscription,
}

/// The calls for subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subscribing {
    feeds: Feeds,
    /// No call before this moment.
    at: Mono,
    /// Calls in a row that brought no event: refused, or without an event so far.
    fruitless: u32,
    /// The service permits no iterators.
    iterators_denied: bool,
    /// A call found no consumer, or no shard. An iterator shows which.
    found_nothing: bool,
}

impl Subscribing {
    pub(super) fn new(now: Mono) -> Self {
        Self { feeds: Feeds::default(), at: now, fruitless: 0, iterators_denied: false, found_nothing: false }
    }
}

impl Reader {
    /// Reads by these feeds from now on. A cursor of another feed is replaced with the next command.
    pub(crate) fn read_by(&mut self, feeds: Feeds) {
        self.subscribing.feeds = feeds;
    }

    /// Whether nothing is read for want of a consumer.
    pub fn awaits_consumer(&self) -> bool {
        self.subscribing.feeds == Feeds::Nothing
    }

    /// Whether the buffer is empty, and the next event of a subscription is awaited.
    pub fn awaits_event(&self) -> bool {
        self.buffer.len() == 0 && self.flight.is_some_and(|flight| flight.kind == Kind::Event)
    }

    /// Whether an iterator may be used now.
    fn polls(&self) -> bool {
        match self.subscribing.feeds {
            Feeds::Iterators => true,
            Feeds::Both => !(self.awaits_evidence() && self.subscribing.iterators_denied),
            Feeds::Subscriptions => self.awaits_evidence() && !self.subscribing.iterators_denied,
            Feeds::Nothing => false,
        }
    }

    /// Whether a subscription may be used now.
    fn subscribes(&self) -> bool {
        match self.subscribing.feeds {
            Feeds::Iterators | Feeds::Nothing => false,
            Feeds::Both | Feeds::Subscriptions => !(self.awaits_evidence() && self.polls()),
        }
    }

    /// Whether an answer must prove an earlier answer.
    fn awaits_evidence(&self) -> bool {
        self.end_claim.is_some() || self.doubts() || self.subscribing.found_nothing
    }

    /// When a cursor may be asked for. Absent: no feed may be used now.
    pub(super) fn opens_at(&self) -> Option<Mono> {
        match (self.polls(), self.subscribes()) {
            (true, true) => Some(self.iterator_at.min(self.subscribing.at)),
            (true, false) => Some(self.iterator_at),
            (false, true) => Some(self.subscribing.at),
            (false, false) => None,
        }
    }

    /// The feed of the cursor that is asked for now.
    pub(super) fn feed(&self, now: Mono) -> FeedKind {
        match self.subscribes() && self.subscribing.at <= now {
            true => FeedKind::Subscription,
            false => FeedKind::Iterator,
        }
    }

    /// Whether a cursor is replaced instead of used.
    pub(super) fn is_replaced(&self, cursor: Cursor, now: Mono) -> bool {
        match cursor.feed {
            FeedKind::Iterator => {
                let subscribes = self.feed(now) == FeedKind::Subscription;
                now.since(cursor.since) >= super::FRESH || subscribes || !self.polls()
            }
            FeedKind::Subscription => !self.subscribes(),
        }
    }

    /// A call for a subscription was answered: the next one waits.
    pub(super) fn called(&mut self, flight: &Flight) {
        self.subscribing.at = self.subscribing.at.max(flight.sent + CALL_PAUSE);
        self.subscribing.fruitless = self.subscribing.fruitless.saturating_add(1);
    }

    /// An event came, perhaps without records, or did not.
    pub(super) fn heard(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Applied(Reply::Records(_))) {
            self.subscribing.fruitless = 0;
        }
    }

    /// Whether a call found no consumer, or no shard, and no iterator has shown which.
    pub(crate) fn found_nothing(&self) -> bool {
        self.subscribing.found_nothing
    }

    /// An answer shows that the shard exists.
    pub(super) fn found(&mut self) {
        self.subscribing.found_nothing = false;
    }

    /// The service permits no iterators: evidence comes by subscription, too.
    pub(super) fn do_without_iterators(&mut self) {
        self.subscribing.iterators_denied = self.subscribing.feeds != Feeds::Iterators;
    }

    /// A call was refused, or a subscription has ended. Absent: nothing is worth telling.
    pub(super) fn unsubscribed(
        &mut self, flight: &Flight, now: Mono, how: How, ctx: &Ctx<'_>,
    ) -> Option<Event> {
        self.cursor = None;
        let tries = self.subscribing.fruitless;
        let ended = flight.kind == Kind::Event && tries == 0;
        let again_in = match how {
            How::Refused(Why::NotFound) if self.subscribing.iterators_denied => {
                self.paused = true;
                return Some(Event::ShardMissing);
            }
            // The five minutes are over, or the connection ended in good order.
            How::Refused(Why::Expired) if ended => return None,
            How::Refused(Why::InUse) if self.polls() => PLACE_KEPT,
            How::Refused(Why::InUse) => CALL_PAUSE,
            // Each refusal of a future moment is answered by an earlier one, and a day takes seventeen.
            How::Refused(Why::Invalid) if flight.kind == Kind::Subscribe && self.begins_at_a_moment() => {
                CALL_PAUSE
            }
            _ if ended => Span::ZERO,
            _ => growing(tries, flight, ctx),
        };
        self.subscribing.at = self.subscribing.at.max(now + again_in);
        let is_polled = self.polls();
        if !is_polled {
            self.failures = self.failures.saturating_add(1);
        }
        self.subscribing.found_nothing |= how == How::Refused(Why::NotFound);
        if flight.kind == Kind::Subscribe
            && let Some(event) = self.refused_place(how, tries, again_in)
        {
            return Some(event);
        }
        let is_ordinary = match how {
            How::Refused(Why::InUse) => tries < ORDINARY_REFUSALS,
            _ => tries > 1 && !tries.is_power_of_two(),
        };
        (!is_ordinary).then_some(Event::Unsubscribed { how, tries, again_in, is_polled })
    }

    /// The bytes that the next event may take in transit.
    pub fn expects_event(&self) -> u64 {
        self.size.event()
    }
}

/// A pause that doubles with each call without an event, its upper half drawn at random.
fn growing(tries: u32, flight: &Flight, ctx: &Ctx<'_>) -> Span {
    let high = CALL_PAUSE.times(1 << tries.min(6)).min(LONGEST_PAUSE);
    let low = high.per(2);
    low + Span(draw_below(ctx.seed, "subscribe", ctx.subject, flight.op.n, high.0 - low.0 + 1))
}
