//! The way to the first scan: stream there, table there and ours. Also the watch over both while running.
//!
//! The stream comes first: a worker with a wrong stream, account or region then ends before it has created a table.

use super::backoff::Backoff;
use super::context::{Context, Request, Waiter};
use super::describe;
use crate::config::TABLE_PATIENCE;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Reply, StreamState, TableState, Why};
use crate::notice::{Fatal, ListReason, Notice};
use crate::output::{StreamOp, TableOp};
use crate::time::{Mono, Span, Wall};

#[cfg(test)]
mod tests;

/// The least time between two looks at the stream while running.
const STREAM_PAUSE: Span = Span::from_secs(2);
/// After a listing that many times as long passes before the stream is listed because of a missing shard again.
const LISTING_REST: u64 = 4;
/// A running worker makes sure after so many lease durations, times the workers of the fleet, that its stream is still the one
/// it began with: a stream that was made anew while nothing was read of the old one is not noticed otherwise. The fleet then
/// asks about once a minute, whatever its size, up to so many workers; DescribeStreamSummary allows an account 20 calls a second.
const WATCH_LEASES: u64 = 6;
const WATCH_WORKERS: u32 = 10;
/// How often in a row credentials may be missing, or the client unable to make a request, at start-up before the worker gives up.
const CLIENT_PATIENCE: u32 = 5;

/// How far start-up is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Step {
    /// What is with the stream?
    #[default]
    Stream,
    /// What is with the table?
    Table,
    /// It is missing: create it.
    Create,
    /// All is there.
    Done,
}

/// Start-up; afterwards, the watch over table and stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Startup {
    step: Step,
    in_flight: bool,
    /// Failures in a row, and when the next question is asked.
    backoff: Backoff,
    /// Since when the table is in a passing state.
    table_since: Mono,
    created: bool,
    /// When the stream was created: tells it from a later one of the same name.
    stream_created: Option<Wall>,
    /// Running: some operation did not find the table, and this many descriptions agree.
    table_doubts: u32,
    /// Running: a shard was not found; first the stream is looked at, then its shards are listed.
    stream_doubt: bool,
    /// Running: the stream is looked at, though nothing is missing; and when that was last begun.
    watching: bool,
    watched_at: Mono,
    /// The stream is not doubted before this.
    rest_until: Mono,
}

impl Startup {
    /// When it wants to be woken.
    pub(super) fn wake_at(&self) -> Mono {
        let waits = self.step != Step::Done || self.table_doubts > 0 || self.stream_doubt || self.watching;
        if waits && !self.in_flight {
            self.backoff.until()
        } else {
            Mono::NEVER
        }
    }

    /// Asks the next question, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() < self.wake_at() {
            return;
        }
        debug_assert!(!self.in_flight, "one question at a time");
        debug_assert!(
            self.step == Step::Done || (self.table_doubts == 0 && !self.stream_doubt && !self.watching),
            "what is there is watched after start-up"
        );
        match self.step {
            Step::Table => cx.table(Waiter::TableState, TableOp::Describe),
            Step::Create => cx.table(Waiter::TableCreate, TableOp::Create),
            Step::Stream => cx.stream(Waiter::StreamState, StreamOp::Describe),
            Step::Done if self.table_doubts > 0 => cx.table(Waiter::TableState, TableOp::Describe),
            Step::Done => cx.stream(Waiter::StreamState, StreamOp::Describe),
        };
        self.in_flight = true;
    }

    /// An operation did not find the lease table.
    pub(super) fn doubt_table(&mut self, cx: &mut Context) {
        if self.step == Step::Done && self.table_doubts == 0 {
            self.table_doubts = 1;
            self.backoff.wait_until(cx.now());
            self.step(cx);
        }
    }

    /// A shard was not found.
    pub(super) fn doubt_stream(&mut self, cx: &mut Context) {
        if self.step == Step::Done && !self.stream_doubt {
            self.stream_doubt = true;
            // The table comes first, and does not wait for this.
            if self.table_doubts == 0 {
                self.backoff.wait_until(self.rest_until.max(cx.now()));
            }
            self.step(cx);
        }
    }

    /// Looks at the stream now and then, though nothing is missing.
    pub(super) fn watch_stream(&mut self, cx: &mut Context, workers: u32) {
        debug_assert_eq!(self.step, Step::Done, "a running worker watches");
        let every = WATCH_LEASES * u64::from(workers.clamp(1, WATCH_WORKERS));
        let now = cx.now();
        if now.since(self.watched_at) < cx.config().lease_duration.times(every) {
            return;
        }
        self.watched_at = now;
        // What is doubted is looked at anyway.
        if !self.stream_doubt && !self.watching {
            self.watching = true;
            if self.table_doubts == 0 {
                self.backoff.wait_until(now);
            }
            self.step(cx);
        }
    }

    /// The shards were listed, which took so long. A stream of many pages is not listed most of the time, or its limits are
    /// used up for the sake of shards that are found missing one after the other.
    pub(super) fn stream_listed(&mut self, cx: &Context, took: Span) {
        let rest = took.times(LISTING_REST).min(cx.config().scan_interval);
        self.rest_until = self.rest_until.max(cx.now() + rest);
    }

    fn go(&mut self, cx: &mut Context, step: Step) {
        debug_assert_ne!(self.step, Step::Done, "start-up ends once");
        self.step = step;
        self.backoff.succeeded();
        self.backoff.wait_until(cx.now());
        self.step(cx);
    }

    /// Polls what is in a passing state.
    fn poll(&mut self, cx: &Context) {
        self.backoff.wait_until(cx.now() + cx.poll_pause());
    }

    /// An answer came: pauses grow with failures in a row only.
    fn answered(&mut self, outcome: &Outcome) {
        debug_assert!(self.in_flight, "an answer comes after the question");
        self.in_flight = false;
        if matches!(outcome, Outcome::Applied(_)) {
            self.backoff.answered();
        }
    }

    pub(super) fn on_table_state(&mut self, cx: &mut Context, op: OpId, outcome: Outcome) {
        self.answered(&outcome);
        if self.step == Step::Done {
            return self.on_table_watched(cx, &outcome);
        }
        let table = cx.config().table.clone();
        let state = match outcome {
            Outcome::Applied(Reply::Table(state)) => state,
            other => return self.failed(cx, op, "describe the lease table", &other),
        };
        match state {
            TableState::Usable => {
                let created = self.created;
                cx.notify(Notice::TableReady { created });
                self.step = Step::Done;
                self.backoff.succeeded();
                cx.set_booted();
                cx.request(Request::Rescan(cx.now()));
            }
            TableState::Missing if !self.created => self.go(cx, Step::Create),
            TableState::Incompatible => cx.request(Request::Stop(Fatal::TableIncompatible { table })),
            TableState::Missing | TableState::Creating | TableState::Deleting => {
                if self.table_since == Mono::default() {
                    self.table_since = cx.now();
                }
                if cx.now().since(self.table_since) > TABLE_PATIENCE {
                    let state = match state {
                        TableState::Deleting => "a table that is being deleted",
                        TableState::Missing => "no table",
                        _ => "a table that is being created",
                    };
                    let detail = format!("{state}, for more than {TABLE_PATIENCE}");
                    return cx.request(Request::Stop(Fatal::TableUnusable { table, detail }));
                }
                self.poll(cx);
            }
        }
    }

    /// While running: is the table really gone? One answer may come from a lagging replica, two in a row do not.
    fn on_table_watched(&mut self, cx: &mut Context, outcome: &Outcome) {
        debug_assert!(
            self.table_doubts > 0,
            "a running worker looks at a table that it doubts"
        );
        match outcome {
            Outcome::Applied(Reply::Table(TableState::Missing | TableState::Deleting)) => {
                if self.table_doubts >= 2 {
                    self.table_doubts = 0;
                    let table = cx.config().table.clone();
                    return cx.request(Request::TableGone(Fatal::TableGone { table }));
                }
                self.table_doubts += 1;
                self.poll(cx);
            }
            Outcome::Applied(_) => self.table_doubts = 0,
            _ => self.poll(cx),
        }
    }

    pub(super) fn on_table_created(&mut self, cx: &mut Context, op: OpId, outcome: Outcome) {
        self.answered(&outcome);
        debug_assert_eq!(self.step, Step::Create, "a table is created at start-up");
        match outcome {
            Outcome::Applied(_) => {
                self.created = true;
                self.go(cx, Step::Table);
            }
            // Another worker was faster, or an earlier attempt of ours was applied.
            Outcome::Refused(refusal) if refusal.why == Why::InUse => self.go(cx, Step::Table),
            Outcome::Unknown(_) => self.go(cx, Step::Table),
            other => self.failed(cx, op, "create the lease table", &other),
        }
    }

    pub(super) fn on_stream_state(&mut self, cx: &mut Context, op: OpId, outcome: Outcome) {
        self.answered(&outcome);
        match outcome {
            Outcome::Applied(Reply::Stream(state)) => self.on_stream(cx, state),
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => {
                (self.stream_doubt, self.watching) = (false, false);
                let stream = cx.config().stream.clone();
                cx.request(Request::Stop(match self.step {
                    Step::Done => Fatal::StreamGone { stream },
                    _ => Fatal::StreamMissing {
                        stream,
                        detail: refusal.detail,
                    },
                }));
            }
            other => self.failed(cx, op, "describe the stream", &other),
        }
    }

    fn on_stream(&mut self, cx: &mut Context, state: StreamState) {
        if self
            .stream_created
            .is_some_and(|created| created != state.created)
        {
            (self.stream_doubt, self.watching) = (false, false);
            let stream = cx.config().stream.clone();
            return cx.request(Request::Stop(Fatal::StreamGone { stream }));
        }
        if !state.readable {
            return self.poll(cx);
        }
        self.stream_created = Some(state.created);
        self.watching = false;
        if self.step != Step::Done {
            debug_assert_eq!(
                self.step,
                Step::Stream,
                "the stream is looked at once at start-up"
            );
            self.watched_at = cx.now();
            self.go(cx, Step::Table);
        } else if std::mem::take(&mut self.stream_doubt) {
            // Many shards may end at once; one listing in a while answers for all of them.
            self.rest_until = cx.now() + STREAM_PAUSE;
            cx.request(Request::ListShards(ListReason::ShardNotFound));
        }
    }

    fn failed(&mut self, cx: &mut Context, op: OpId, what: &str, outcome: &Outcome) {
        let starting = self.step != Step::Done;
        match outcome {
            Outcome::Refused(refusal) if starting && refusal.why == Why::Denied => {
                cx.request(Request::Stop(Fatal::Denied {
                    what: what.into(),
                    detail: refusal.detail.clone(),
                }));
            }
            Outcome::NotSent(Cause::Credentials)
                if starting && self.backoff.failures() >= CLIENT_PATIENCE =>
            {
                cx.request(Request::Stop(Fatal::Denied {
                    what: what.into(),
                    detail: "no usable credentials were found".into(),
                }));
            }
            Outcome::NotSent(Cause::Client) if starting && self.backoff.failures() >= CLIENT_PATIENCE => {
                cx.request(Request::Stop(Fatal::Client {
                    what: what.into(),
                    detail: "see the warnings before this".into(),
                }));
            }
            outcome => {
                let again_in = self.backoff.failed(cx, "boot", what);
                cx.notify(Notice::Trouble {
                    op,
                    lease: None,
                    what: what.into(),
                    how: describe(outcome),
                    again_in,
                });
            }
        }
    }
}
