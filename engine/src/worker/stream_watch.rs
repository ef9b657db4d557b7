//! Finding a stream at the start of its reading, and the watch over the stream afterwards.

use super::backoff::Backoff;
use super::context::{Context, Request, Waiter};
use super::describe;
use super::evidence::{Evidence, Needed};
use super::hopeless::hopeless;
use super::lease_table::LeaseTable;
use super::stream_set::StreamIx;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, StreamState, Why};
use crate::notice::{Fatal, ListReason};
use crate::output::StreamOp;
use crate::time::{Mono, Span, Wall};
use identity::Identification;
use successor::Successor;

mod identity;
mod successor;
#[cfg(test)]
mod tests;

/// The least time between two looks at the stream because of a shard that was not found.
const STREAM_PAUSE: Span = Span::from_secs(2);
/// After a listing that many times as long passes before the stream is listed because of a missing shard again.
const LISTING_REST: u64 = 4;
/// A running worker makes sure, each time after this many lease durations, times the workers of the fleet, that its
/// stream is still the same. Otherwise a stream made anew would go unnoticed while nothing was read of the old stream.
/// The fleet then asks about once a minute, up to `WATCH_WORKERS` workers, whatever its size; DescribeStreamSummary
/// allows an account 20 calls a second.
const WATCH_LEASES: u64 = 6;
const WATCH_WORKERS: u32 = 10;

/// A claim of a description that would end the reading of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Claim {
    /// The stream does not exist.
    Missing,
    /// The stream was created at another time.
    Another(Wall),
    /// This worker may not describe the stream.
    Denied,
}

/// The watch over one stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct StreamWatch {
    stream: StreamIx,
    in_flight: bool,
    /// When the last question was asked.
    asked: Mono,
    /// What descriptions in a row say against it.
    claims: Evidence<Claim>,
    /// Failures in a row, and when the next question is asked.
    backoff: Backoff,
    /// When the stream was created: tells the stream from a later stream of the same name. `None`: not found yet.
    created: Option<Wall>,
    /// Evidence for and against the stream being the stream of the rows.
    identification: Identification,
    /// A shard was not found; first the stream is looked at, then its shards are listed.
    doubted: bool,
    /// The stream is looked at, though nothing is missing; and when that was last begun.
    watching: bool,
    watched_at: Mono,
    /// The stream is not doubted before this.
    rest_until: Mono,
    /// The stream is lost: a new stream may be made under its name.
    successor: Option<Successor>,
}

impl StreamWatch {
    pub(super) fn new(stream: StreamIx) -> Self {
        Self { stream, ..Self::default() }
    }

    /// The stream is read again, after it was read no more.
    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            // An answer still to come counts as much as the answer to a new question.
            in_flight: self.in_flight,
            asked: self.asked,
            ..Self::new(self.stream)
        };
    }

    /// Whether the stream was found, and is watched from then on.
    pub(super) fn is_found(&self) -> bool {
        self.created.is_some()
    }

    /// Whether the identity of the found stream is known. Rows with the name of that very stream bear the service out.
    fn is_identified(&mut self, cx: &mut Context, leases: &LeaseTable) -> bool {
        let Some(said) = cx.streams().said(self.stream) else {
            return self.is_found();
        };
        if leases.named().said_of(self.stream, said).same() {
            cx.set_identified(self.stream);
        }
        self.is_found() && cx.streams().is_identified(self.stream)
    }

    /// Whether all rows of a whole scan may be of the stream. After a row that names another stream, the stream is
    /// described and the table scanned once more, and until then no lease is taken.
    pub(super) fn recognises(&mut self, cx: &mut Context, leases: &LeaseTable) -> bool {
        let identified = self.is_identified(cx, leases);
        let scan = leases.scans().complete();
        let said = cx.streams().said(self.stream);
        let another = said.and_then(|said| leases.named().said_of(self.stream, said).another());
        let Some((lease, named)) = another else {
            self.identification.forget();
            return identified;
        };
        if self.identification.weigh(lease, named, scan) {
            if let Some(why) = self.identification.proof(cx, self.stream) {
                self.lose(cx, why);
            }
            return false;
        }
        self.look_again(cx);
        cx.request(Request::Rescan(cx.now() + identity::APART));
        false
    }

    /// Has the stream described again, if its identity is not certain.
    fn look_again(&mut self, cx: &mut Context) {
        let Some(at) = self.identification.next_at(cx, self.stream) else {
            // The identity is certain, or no description of the stream has come yet.
            return;
        };
        if !self.watching && !self.doubted {
            self.watching = true;
            self.backoff.wait_until(at.max(cx.now()));
            self.step(cx);
        }
    }

    /// When it wants to be woken.
    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        if let Some(successor) = self.successor.as_ref().filter(|_| !self.in_flight) {
            return successor.wake_at();
        }
        let waits = !self.is_found() || self.doubted || self.watching || self.claims.claim().is_some();
        if waits && !self.in_flight && cx.streams().reads(self.stream) {
            self.backoff.until()
        } else {
            Mono::NEVER
        }
    }

    /// Asks the next question, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() < self.wake_at(cx) {
            return;
        }
        debug_assert!(!self.in_flight, "one question at a time");
        cx.stream(Waiter::StreamState(self.stream), self.stream, StreamOp::Describe);
        self.in_flight = true;
        self.asked = cx.now();
    }

    /// A shard was not found.
    pub(super) fn doubt(&mut self, cx: &mut Context) {
        if self.is_found() && !self.doubted {
            self.doubted = true;
            self.backoff.wait_until(self.rest_until.max(cx.now()));
            self.step(cx);
        }
    }

    /// Looks at the stream now and then, though nothing is missing.
    pub(super) fn watch(&mut self, cx: &mut Context, workers: u32) {
        let every = WATCH_LEASES * u64::from(workers.clamp(1, WATCH_WORKERS));
        let now = cx.now();
        if !self.is_found() || now.since(self.watched_at) < cx.config().lease_duration.times(every) {
            return;
        }
        self.watched_at = now;
        // What is doubted is looked at anyway.
        if !self.doubted && !self.watching {
            self.watching = true;
            self.backoff.wait_until(now);
            self.step(cx);
        }
    }

    /// The shards were listed, with the listing's duration `took`. A stream of many pages must not be listed most of
    /// the time: otherwise shards found missing one after another would use up the stream's limits.
    pub(super) fn listed(&mut self, cx: &Context, took: Span) {
        let rest = took.times(LISTING_REST).min(cx.config().scan_interval);
        self.rest_until = self.rest_until.max(cx.now() + rest);
    }

    pub(super) fn on_state(&mut self, cx: &mut Context, op: OpId, outcome: Outcome) {
        let describes = match &outcome {
            Outcome::Applied(_) => true,
            Outcome::Refused(refusal) => refusal.why == Why::NotFound,
            _ => false,
        };
        self.judge_state(cx, op, outcome);
        // Only a description takes a denial back: a list of shards may be of a stream that was made anew.
        if describes {
            cx.set_denied(self.stream, self.is_found() && self.claims.claim().is_some());
        }
    }

    fn judge_state(&mut self, cx: &mut Context, op: OpId, outcome: Outcome) {
        debug_assert!(self.in_flight, "an answer comes after the question");
        self.in_flight = false;
        if !cx.streams().reads(self.stream) {
            let asked = self.asked;
            self.successor.take_if(|successor| successor.on_state(cx, self.stream, asked, &outcome));
            return;
        }
        match outcome {
            Outcome::Applied(Reply::Stream(state)) => {
                self.backoff.answered();
                self.on_stream(cx, state);
            }
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => {
                if !self.is_proven(cx, Claim::Missing) {
                    return;
                }
                let stream = cx.stream_name(self.stream);
                self.lose(
                    cx,
                    match self.is_found() {
                        true => Fatal::StreamGone { stream },
                        false => Fatal::StreamMissing { stream, detail: refusal.detail },
                    },
                );
            }
            other => self.failed(cx, op, &other),
        }
    }

    /// Whether answers in a row say this, and are enough by now. If not, the stream is looked at again, without a word.
    fn is_proven(&mut self, cx: &Context, claim: Claim) -> bool {
        // Until the stream is identified, no lease is taken: the next description is not waited for long.
        let unsure = self.identification.next_at(cx, self.stream).is_some();
        let needed = match (self.is_found(), unsure) {
            (true, false) => Needed::to_lose_stream(cx),
            (true, true) => Needed::to_lose_unsure_stream(cx),
            // A stream of several is given up while the worker goes on: no restart finds it.
            (false, _) if cx.streams().read().len() > 1 => Needed::to_lose_stream(cx),
            (false, _) => Needed::to_give_up(cx),
        };
        let proven = self.claims.says(cx, self.asked, claim, needed);
        if !proven {
            let again = self.claims.ask_again_at(needed);
            // A wrong answer is found out soon: until then, no lease of the stream is taken.
            let soon = cx.now() + cx.poll_pause();
            let is_first = self.claims.since() == self.asked;
            self.backoff.wait_until(if is_first { again.min(soon) } else { again });
        }
        proven
    }

    /// A listing, or a read of a shard, that was asked for at that moment was answered: then the stream was there.
    pub(super) fn answered(&mut self, asked: Mono) {
        if self.claims.claim() == Some(&Claim::Missing) && asked > self.claims.since() {
            self.claims.contradicted();
        }
    }

    fn lose(&mut self, cx: &mut Context, why: Fatal) {
        self.claims.contradicted();
        (self.doubted, self.watching) = (false, false);
        // A worker without its only stream stops.
        let goes_on = cx.streams().read().len() > 1;
        let created = self.created.filter(|_| goes_on && matches!(why, Fatal::StreamGone { .. }));
        self.successor = created.map(|created| Successor::new(cx, created));
        cx.request(Request::LoseStream(self.stream, why));
    }

    fn on_stream(&mut self, cx: &mut Context, state: StreamState) {
        // A fact from a single answer is believed only after a second answer agrees.
        let sure = cx.streams().is_identified(self.stream);
        if sure && self.created.is_some_and(|created| created != state.created) {
            if self.is_proven(cx, Claim::Another(state.created)) {
                let stream = cx.stream_name(self.stream);
                self.lose(cx, Fatal::StreamGone { stream });
            }
            return;
        }
        self.claims.contradicted();
        cx.set_described(self.stream, self.asked);
        if !state.readable {
            // What is in a passing state is looked at again.
            return self.backoff.wait_until(cx.now() + cx.poll_pause());
        }
        let identity = state.identity();
        let first = self.created.replace(state.created).is_none();
        self.watching = false;
        self.identification.said(cx, self.stream, identity);
        if first {
            self.watched_at = cx.now();
            self.backoff.succeeded();
            cx.request(Request::StreamFound(self.stream));
        } else if std::mem::take(&mut self.doubted) {
            // Many shards may end at once; a single listing in a while answers for all of these.
            self.rest_until = cx.now() + STREAM_PAUSE;
            cx.request(Request::ListShards(self.stream, ListReason::ShardNotFound));
        }
        self.look_again(cx);
    }

    fn failed(&mut self, cx: &mut Context, op: OpId, outcome: &Outcome) {
        let what = match cx.streams().id(self.stream) {
            Some(id) => format!("describe the stream {id}"),
            None => "describe the stream".to_owned(),
        };
        // One stream of several may be forbidden for a while: the others are read meanwhile.
        let denied = !cx.streams().are_several();
        let is_denial = matches!(outcome, Outcome::Refused(refusal) if refusal.why.is_denial());
        if denied && is_denial && !self.is_found() && !self.is_proven(cx, Claim::Denied) {
            return;
        }
        if !self.is_found()
            && let Some(fatal) = hopeless(&what, outcome, self.backoff.failures(), denied)
        {
            return cx.request(Request::Stop(fatal));
        }
        let again_in = self.backoff.failed(cx, "boot", &what);
        cx.trouble(op, None, what, describe(outcome), again_in);
    }
}
