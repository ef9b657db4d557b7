//! A shard that is read: the answers of the stream, and the progress that the application reports.
//!
//! | file | what |
//! |---|---|
//! | `fetch` | the requests of the reader, within the share of the shard |
//! | `delivery` | handing batches over |
//! | `failure` | the treatment of a record that the handler cannot process |
//! | `set_aside` | handing a failed record to the application's store, or stopping its shard |
//! | `kept` | batches that the application keeps and acknowledges later |
//! | `strange` | a checkpoint that did not come from this stream |
//! | `why` | why the shard stands still |
//! | `missing` | the evidence of listings about a shard not found, or children not named |

mod delivery;
mod failure;
mod fetch;
mod kept;
mod missing;
mod set_aside;
mod strange;
mod why;

pub(super) use failure::Poison;
pub(super) use kept::{Flush, dropped};
pub(in crate::worker::lease) use missing::View;
pub(super) use set_aside::kept_alone;
pub(super) use why::{why, why_failing, why_flushed, why_kept, why_missing};

use super::application::AppLane;
use super::share::Share;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::notice::{ListReason, Notice};
use crate::position::Position;
use crate::reader::{Buffer, Doubtful, Event, How, Reader, Start};
use crate::shard::{ChildShard, names_all};
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::describe;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::ownership::Ownership;
use failure::{Failure, Next};
use missing::Search;
use strange::Strange;

/// A shard that is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    reader: Reader,
    /// The attempts at the front batch, and the next step when the attempts fail.
    failure: Failure,
    /// The search for the shard, or for its children, in listings.
    search: Search,
    /// The commands to flush that the application has received, and the permission of the end.
    flush: Flush,
    /// The service's answers about the place from which the shard is to be read.
    strange: Strange,
}

impl Reading {
    /// Begins to read at this place.
    pub(super) fn begin(start: Start, flush: Flush, now: Mono) -> Self {
        Self {
            reader: Reader::new(start, now),
            failure: Failure::NEW,
            search: Search::default(),
            flush,
            strange: Strange::default(),
        }
    }

    /// The children of the shard, once its end was read and every batch processed.
    pub(super) fn finished(&self) -> Option<&[ChildShard]> {
        self.reader.finished()
    }

    /// The bytes of memory that wait to be processed, or are being processed.
    pub(super) fn held_bytes(&self) -> u64 {
        self.reader.held_bytes()
    }

    fn batches(&self) -> &Buffer {
        self.reader.batches()
    }

    fn batches_mut(&mut self) -> &mut Buffer {
        self.reader.batches_mut()
    }

    /// When acknowledgements are not waited for any longer.
    pub(super) fn flushes_until(&self) -> Option<Mono> {
        self.flush.until()
    }

    /// Whether the shard is known to have no children.
    pub(super) fn is_childless(&self) -> bool {
        self.search.is_childless()
    }

    /// The next look for children.
    pub(super) fn next_look(&self) -> Mono {
        self.search.next_look()
    }

    /// Requests what the reader wants.
    pub(super) fn request(&mut self, share: &mut Share, lent: &mut Lent<'_>) {
        fetch::request(&mut self.reader, share, lent.own, lent.lane, lent.cx);
    }

    /// Hands over what comes next, or tells the application to flush. The application has no other command.
    pub(super) fn hand_over(&mut self, lent: &mut Lent<'_>, app: &mut AppLane) {
        if lent.now() < self.failure.not_before() {
            return;
        }
        let full = self.batches().keeps_enough(&lent.cx.config().reader);
        let next = self.failure.next();
        match next {
            _ if full || self.batches().front().is_none() => self.flush_if_stuck(lent, app),
            Next::Whole | Next::OneRecord => self.deliver(lent, app, next == Next::OneRecord),
            Next::SetAside(poison, detail) => self.set_aside(lent, app, poison, detail),
            Next::Nothing => self.flush_if_stuck(lent, app),
        }
    }

    /// When something is due. `idle`: the application has no command. `missing`: a listing is waited for.
    pub(super) fn wake_at(&self, cx: &Context, idle: bool, missing: bool) -> Mono {
        let mut at = self.reader.wake_at(&cx.config().reader);
        if at <= cx.now() {
            // It was to be done in this step: the answer of the lane is waited for, or memory.
            at = Mono::NEVER;
        }
        if !idle {
            return at;
        }
        let awaits_permission = self.awaits_permission();
        let waits = self.batches().front().is_some() || self.keeps_batches() || awaits_permission;
        let not_before = self.failure.not_before();
        if not_before > cx.now() && waits {
            at = at.min(not_before);
        }
        if !missing && !awaits_permission && self.finished().is_some() {
            at = at.min(self.next_look());
        }
        at
    }

    /// Whether the application keeps batches.
    pub(super) fn keeps_batches(&self) -> bool {
        self.batches().kept_batches() > 0
    }

    /// How often in a row the front batch was handed over.
    pub(super) fn attempts(&self) -> u32 {
        self.failure.attempts()
    }

    /// Whether everything was processed, and the application has not let the end be written yet.
    pub(super) fn awaits_permission(&self) -> bool {
        self.finished().is_some() && self.flush.awaits_permission()
    }

    /// Whether the shard is stopped because of a record.
    pub(super) fn is_stopped(&self) -> bool {
        self.failure.is_stopped()
    }

    /// Whether no batch waits, and the next event of a subscription is awaited.
    pub(super) fn awaits_event(&self) -> bool {
        self.reader.awaits_event()
    }

    /// The application resumes the shard. Whether it was stopped because of a record.
    pub(super) fn resume(&mut self) -> bool {
        self.failure.resume()
    }

    /// The next look for children, if the end was read and named none, comes now.
    pub(super) fn look_at(&mut self, now: Mono) {
        self.search.look_at(now);
    }

    /// A list of all shards shows the fate of the shard, or its children.
    pub(super) fn on_shards_listed(&mut self, lent: &mut Lent<'_>, view: super::View<'_>) {
        match self.finished() {
            Some(_) => self.search.resolve_children(&mut self.reader, lent.own, lent.cx, view),
            None => self.search.resolve_shard(&mut self.reader, lent.own, lent.cx, view),
        }
    }

    /// Nothing follows from a listing.
    pub(super) fn try_again(&mut self, cx: &Context) {
        self.search.try_again(&mut self.reader, cx);
    }

    /// The application says that everything up to here was processed.
    pub(super) fn on_processed_through(&mut self, lent: &mut Lent<'_>, through: Position) {
        self.batches_mut().processed_through(through);
        self.take_watermark(lent);
    }

    /// More may have been processed without a gap.
    pub(super) fn take_watermark(&mut self, lent: &mut Lent<'_>) {
        if lent.lane.processed_mut().go_to(self.batches().watermark()) {
            self.failure.progressed();
            lent.watch.moved(lent.cx.now());
        }
        if self.failure.is_watched() {
            self.failure.reached(self.batches().reached());
        }
    }

    /// A stream command of the reader ended. Whether a listing is to say why the shard was not found.
    pub(super) fn on_read(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: &Outcome) -> bool {
        let (own, now) = (lent.own, lent.now());
        let found_nothing = self.reader.found_nothing();
        let event = self.reader.fetched(op, now, outcome, &fetch::context(own, lent.cx));
        lent.lane.begin_at(self.reader.began_earlier());
        if matches!(outcome, Outcome::Applied(_)) && self.search.is_doubted() && self.finished().is_none() {
            self.search.found();
        }
        self.strange.note(outcome, now);
        let doubted = matches!(event, Some(Event::Doubted { .. }));
        if let Outcome::Applied(Reply::Records(answer)) = outcome
            && !doubted
        {
            let waiting = self.batches().len();
            match answer.end.as_deref() {
                // A listing decides whether the shard has ended. Until then, no evidence shows that the tip was
                // reached.
                Some(children) if !names_all(children) => self.search.end_claimed(op, children),
                _ => {
                    self.search.end_not_claimed();
                    lent.watch.fetched(answer, waiting, now);
                }
            }
            lent.watch.read(answer.bytes);
            if answer.range_unproven {
                lent.cx.request(Request::ListShards(own.stream(), ListReason::RangeUnproven));
            }
        }
        let is_refused =
            matches!(event, Some(Event::Unsubscribed { how: How::Refused(Why::InUse | Why::Invalid), .. }));
        if is_refused || (self.reader.found_nothing() && !found_nothing) {
            doubt_consumer(own, lent.cx);
        }
        match event {
            Some(Event::ShardMissing) => {
                lent.cx.request(Request::DoubtStream(own.stream()));
                doubt_consumer(own, lent.cx);
                return true;
            }
            Some(Event::Trimmed { at, first }) => {
                let detail = format!(
                    "expected the record {at} or the one after it, found {first} as the first: the stream has trimmed the records \
                     between, or no record has the number {at}, at which the shard was begun"
                );
                let lease = own.lease();
                lent.cx.notify(Notice::Trimmed { lease, detail });
            }
            Some(Event::EndOfShard) | None => {}
            // The next ones say the same, five times a second.
            Some(Event::Doubted { answers, .. }) if !answers.is_power_of_two() => {}
            Some(event) => {
                on_read_trouble(own, lent.cx, op, &event, outcome);
                if let Event::BadPosition { at, .. } = event {
                    self.strange.judge(lent, at, outcome);
                }
            }
        }
        false
    }
}

/// A subscription was refused, and the consumer may be gone.
fn doubt_consumer(own: &Ownership, cx: &mut Context) {
    if cx.streams().consumer(own.stream()).is_some() {
        cx.request(Request::DoubtConsumer(own.stream()));
    }
}

fn on_read_trouble(own: &Ownership, cx: &mut Context, op: OpId, event: &Event, outcome: &Outcome) {
    // The position may be of an earlier stream of this name.
    if matches!(event, Event::BadPosition { tries, .. } if tries.is_power_of_two()) {
        cx.request(Request::DoubtStream(own.stream()));
    }
    let (how, again_in) = trouble(event, outcome);
    cx.notify(Notice::Trouble {
        op,
        what: format!("read {}", own.key()),
        lease: Some(own.lease()),
        how,
        again_in,
    });
}

fn position(position: Option<Position>) -> String {
    position.map_or_else(|| "no position".into(), |position| position.to_string())
}

/// What speaks against an answer, in words.
fn doubt(why: &Doubtful) -> String {
    match why {
        Doubtful::Foreign { of: Some(of) } => {
            format!("expected an answer about this shard, found sequence numbers of shard {of}")
        }
        Doubtful::Foreign { of: None } => {
            "expected an answer about this shard, found children of another shard".to_owned()
        }
        Doubtful::Disorder { first, last, inside: true, .. } => format!(
            "expected records in the order of their sequence numbers, found others between the first, {}, and the last, {}",
            position(*first),
            position(*last)
        ),
        Doubtful::Disorder { before, first, last, .. } => format!(
            "expected records after {}, found records from {} to {}",
            position(*before),
            position(*first),
            position(*last)
        ),
        Doubtful::Gap { at, first } => {
            let found = first.map_or("no record".into(), |first| format!("{first}"));
            format!("expected the record {at} first, found {found}")
        }
    }
}

/// The end of a subscription, in words.
fn unsubscribed(how: How, is_polled: bool) -> String {
    let meanwhile = if is_polled { "; the shard is read by polling meanwhile" } else { "" };
    format!("expected a subscription that brings events, found: {how}{meanwhile}")
}

/// The failure of a read, in words, and the pause of its reader.
fn trouble(event: &Event, outcome: &Outcome) -> (String, Span) {
    match event {
        Event::Trouble { how, again_in } => (how.to_string(), *again_in),
        Event::Unsubscribed { how, again_in, is_polled, .. } => (unsubscribed(*how, *is_polled), *again_in),
        Event::Denied { again_in } => {
            let said = describe(outcome);
            let remedy = match outcome {
                Outcome::Refused(refusal) if refusal.why == Why::WrongClock => {
                    "set the clock of this host right"
                }
                _ => "grant the permission or renew the credentials",
            };
            (format!("{said}; {remedy}"), *again_in)
        }
        Event::BadPosition { at, tries, again_in } => (
            format!(
                "the service calls position {at} invalid ({tries} times in a row); compare the checkpoint in the row of the lease with \
                 the stream"
            ),
            *again_in,
        ),
        Event::Early { at, again_in } => (
            format!(
                "the service calls {at} a time of its future: expected the clock of the worker that first took the lease to be right, and \
                 found it ahead; set that clock. An earlier moment is tried"
            ),
            *again_in,
        ),
        Event::Disorder {
            before,
            first,
            last,
            inside,
        } => {
            let why = doubt(&Doubtful::Disorder {
                before: *before,
                first: *first,
                last: *last,
                inside: *inside,
            });
            let waits = match inside {
                true => ", and no checkpoint is written before all of them are processed",
                false => "",
            };
            let how = format!("{why}, and so did later answers; all of them are handed over{waits}");
            (how, Span::ZERO)
        }
        Event::Doubted { why, .. } => {
            let how = format!(
                "{}; the answer is not used, and a new iterator is asked for",
                doubt(why)
            );
            (how, Span::ZERO)
        }
        Event::WeakEnd { again_in } => (
            "expected an answer at the end of the shard to name children, found an answer without an iterator and without children; the \
             end counts when an answer `stream_lag` later claims it, too"
                .to_owned(),
            *again_in,
        ),
        Event::ShardMissing | Event::Trimmed { .. } | Event::EndOfShard => {
            debug_assert!(false, "what is no trouble has a notice of its own");
            (String::new(), Span::ZERO)
        }
    }
}
