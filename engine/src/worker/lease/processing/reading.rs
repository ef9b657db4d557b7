//! A shard that is read: the answers of the stream, and the progress that the application reports.

use super::failure::Failure;
use super::kept::Flush;
use super::missing::Search;
use super::strange::Strange;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::notice::{ListReason, Notice};
use crate::position::Position;
use crate::reader::{self, Doubtful, Event, Reader};
use crate::shard::{ChildShard, names_all};
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::describe;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::ownership::Ownership;

/// A shard that is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    pub(super) reader: Reader,
    /// The attempts at the front batch, and the next step when the attempts fail.
    pub(super) failure: Failure,
    /// The search for the shard, or for its children, in listings.
    pub(super) search: Search,
    /// The commands to flush that the application has received, and the permission of the end.
    pub(super) flush: Flush,
    /// The service's answers about the place from which the shard is to be read.
    strange: Strange,
}

impl Reading {
    pub(super) fn new(reader: Reader, flush: Flush) -> Self {
        Self { reader, failure: Failure::NEW, search: Search::default(), flush, strange: Strange::default() }
    }

    /// The children of the shard, once its end was read and every batch processed.
    pub(super) fn finished(&self) -> Option<&[ChildShard]> {
        self.reader.finished()
    }

    /// The bytes of memory that wait to be processed, or are being processed.
    pub(super) fn held_bytes(&self) -> u64 {
        self.reader.held_bytes()
    }

    pub(super) fn flush(&self) -> &Flush {
        &self.flush
    }

    /// Whether everything was processed, and the application has not let the end be written yet.
    pub(super) fn awaits_permission(&self) -> bool {
        self.finished().is_some() && self.flush.awaits_permission()
    }

    /// Whether the shard is stopped because of a record.
    pub(super) fn is_stopped(&self) -> bool {
        self.failure.is_stopped()
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
        self.reader.processed_through(through);
        self.take_watermark(lent);
    }

    /// More may have been processed without a gap.
    pub(super) fn take_watermark(&mut self, lent: &mut Lent<'_>) {
        if lent.lane.processed_mut().go_to(self.reader.watermark()) {
            self.failure.progressed();
            lent.watch.moved(lent.cx.now());
        }
        if self.failure.is_watched() {
            self.failure.reached(self.reader.reached());
        }
    }

    /// A stream command of the reader ended. Whether a listing is to say why the shard was not found.
    pub(super) fn on_read(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: &Outcome) -> bool {
        let (own, now) = (lent.own, lent.now());
        let config = lent.cx.config();
        let context = reader::Ctx {
            cfg: &config.reader,
            retry_min: config.retry_min,
            retry_max: config.retry_max,
            stream_lag: config.stream_lag,
            stream_timeout: config.stream_timeout,
            seed: lent.cx.seed(),
            subject: own.key().as_str(),
        };
        let event = self.reader.fetched(op, now, outcome, &context);
        lent.lane.begin_at(self.reader.began_earlier());
        if matches!(outcome, Outcome::Applied(_)) && self.search.is_doubted() && self.finished().is_none() {
            self.search.found();
        }
        self.strange.note(outcome, now);
        let doubted = matches!(event, Some(Event::Doubted { .. }));
        if let Outcome::Applied(Reply::Records(answer)) = outcome
            && !doubted
        {
            let waiting = self.reader.buffered_batches();
            match answer.end.as_deref() {
                // A listing decides whether the shard has ended. Until then, no evidence shows that the tip was
                // reached.
                Some(children) if !names_all(children) => self.search.end_claimed(op),
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
        match event {
            Some(Event::ShardMissing) => {
                lent.cx.request(Request::DoubtStream(own.stream()));
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

/// The failure of a read, in words, and the pause of its reader.
fn trouble(event: &Event, outcome: &Outcome) -> (String, Span) {
    match event {
        Event::Trouble { how, again_in } => (how.to_string(), *again_in),
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
