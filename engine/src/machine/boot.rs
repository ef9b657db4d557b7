//! The way to the first scan: table there and ours, stream there. Also the watch over both while running.

use super::Core;
use super::ctx::{Request, Waiter};
use crate::config::TABLE_PATIENCE;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Reply, TableState, Why};
use crate::notice::{Fatal, Notice};
use crate::output::{StreamOp, TableOp};
use crate::time::{Mono, Span, Wall};

/// The least time between two looks at the stream while running.
const STREAM_PAUSE: Span = Span::from_secs(2);
/// After a listing that many times as long passes before the stream is listed because of a missing shard again.
const LISTING_REST: u64 = 4;
/// A running worker makes sure after so many lease durations, times the workers of the fleet, that its stream is still the one
/// it began with: a stream that was made anew while nothing was read of the old one is not noticed otherwise. The fleet then
/// asks about once a minute, whatever its size, up to so many workers; DescribeStreamSummary allows an account 20 calls a second.
const WATCH_LEASES: u64 = 6;
const WATCH_WORKERS: u32 = 10;
/// How often in a row credentials may be missing at boot before the worker gives up.
const CREDENTIAL_PATIENCE: u32 = 5;

/// Where the boot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// What is with the table?
    #[default]
    Table,
    /// It is missing: create it.
    Create,
    /// What is with the stream?
    Stream,
    /// All is there.
    Done,
}

/// The boot machine; after boot, the watch over table and stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Boot {
    pub(crate) step: Step,
    in_flight: bool,
    again_at: Mono,
    failures: u32,
    table_since: Mono,
    created: bool,
    /// When the stream was created: tells it from a later one of the same name.
    stream_created: Option<Wall>,
    /// Running: the table was not found by some operation, and this many descriptions agree.
    table_doubts: u32,
    /// Running: a shard was not found; first the stream is looked at, then its shards are listed.
    stream_doubt: bool,
    /// Running: the stream is looked at, though nothing is missing; and when that was last begun.
    watching: bool,
    watched_at: Mono,
    /// The stream is not doubted before this.
    rest_until: Mono,
    pub(crate) table_gone: bool,
}

impl Boot {
    /// When it wants to be woken.
    pub(crate) fn wake_at(&self) -> Mono {
        let waits = self.step != Step::Done || self.table_doubts > 0 || self.stream_doubt || self.watching;
        if waits && !self.in_flight {
            self.again_at
        } else {
            Mono::NEVER
        }
    }
}

impl Core {
    /// Asks the next question, if it is time.
    pub(crate) fn boot_step(&mut self) {
        if self.ctx.now < self.boot.wake_at() {
            return;
        }
        match self.boot.step {
            Step::Table => self.ctx.table(Waiter::TableState, TableOp::Describe),
            Step::Create => self.ctx.table(Waiter::TableCreate, TableOp::Create),
            Step::Stream => self.ctx.stream(Waiter::StreamState, StreamOp::Describe),
            Step::Done if self.boot.table_doubts > 0 => self.ctx.table(Waiter::TableState, TableOp::Describe),
            Step::Done => self.ctx.stream(Waiter::StreamState, StreamOp::Describe),
        };
        self.boot.in_flight = true;
    }

    /// An operation did not find the lease table.
    pub(crate) fn doubt_table(&mut self) {
        if self.boot.step == Step::Done && self.boot.table_doubts == 0 {
            self.boot.table_doubts = 1;
            self.boot.again_at = self.ctx.now;
            self.boot_step();
        }
    }

    /// A shard was not found.
    pub(crate) fn doubt_stream(&mut self) {
        if self.boot.step == Step::Done && !self.boot.stream_doubt {
            self.boot.stream_doubt = true;
            // The table comes first, and does not wait for this.
            if self.boot.table_doubts == 0 {
                self.boot.again_at = self.boot.rest_until.max(self.ctx.now);
            }
            self.boot_step();
        }
    }

    /// Looks at the stream now and then, though nothing is missing.
    pub(crate) fn watch_stream(&mut self, workers: u32) {
        let every = WATCH_LEASES * u64::from(workers.clamp(1, WATCH_WORKERS));
        let now = self.ctx.now;
        if now.since(self.boot.watched_at) < self.ctx.config.lease_duration.times(every) {
            return;
        }
        self.boot.watched_at = now;
        // What is doubted is looked at anyway.
        if !self.boot.stream_doubt && !self.boot.watching {
            self.boot.watching = true;
            if self.boot.table_doubts == 0 {
                self.boot.again_at = now;
            }
            self.boot_step();
        }
    }

    /// The shards were listed, which took so long. A stream of many pages is not listed most of the time, or its limits are
    /// used up for the sake of shards that are found missing one after the other.
    pub(crate) fn stream_listed(&mut self, took: Span) {
        let rest = took.times(LISTING_REST).min(self.ctx.config.scan_interval);
        self.boot.rest_until = self.boot.rest_until.max(self.ctx.now + rest);
    }

    fn boot_goes(&mut self, step: Step) {
        self.boot.step = step;
        self.boot.failures = 0;
        self.boot.again_at = self.ctx.now;
        self.boot_step();
    }

    fn boot_waits(&mut self, op: OpId, what: &str, how: String) {
        self.boot.failures += 1;
        let pause = self.ctx.backoff("boot", what, self.boot.failures);
        self.boot.again_at = self.ctx.now + pause;
        self.ctx.tell(Notice::Trouble {
            op,
            lease: None,
            what: what.into(),
            how,
            again_in: pause,
        });
    }

    /// Polls a resource that is in a passing state.
    fn boot_polls(&mut self) {
        let pause = self
            .ctx
            .config
            .retry_max
            .min(Span::from_secs(1))
            .max(self.ctx.config.retry_min);
        self.boot.again_at = self.ctx.now + pause;
    }

    /// An answer came: pauses grow with failures in a row only.
    fn boot_answered(&mut self, outcome: &Outcome) {
        self.boot.in_flight = false;
        if matches!(outcome, Outcome::Applied(_)) {
            self.boot.failures = 0;
        }
    }

    pub(crate) fn table_state(&mut self, op: OpId, outcome: Outcome) {
        self.boot_answered(&outcome);
        if self.boot.step == Step::Done {
            return self.table_watched(outcome);
        }
        let table = self.ctx.config.table.clone();
        match outcome {
            Outcome::Applied(Reply::Table(state)) => match state {
                TableState::Usable => {
                    self.ctx.tell(Notice::TableReady {
                        created: self.boot.created,
                    });
                    self.boot_goes(Step::Stream);
                }
                TableState::Missing if !self.boot.created => self.boot_goes(Step::Create),
                TableState::Incompatible => self
                    .ctx
                    .request(Request::Stop(Fatal::TableIncompatible { table })),
                TableState::Missing | TableState::Creating | TableState::Deleting => {
                    if self.boot.table_since == Mono::default() {
                        self.boot.table_since = self.ctx.now;
                    }
                    if self.ctx.now.since(self.boot.table_since) > TABLE_PATIENCE {
                        let detail = format!("{state:?} for more than {TABLE_PATIENCE}");
                        return self
                            .ctx
                            .request(Request::Stop(Fatal::TableUnusable { table, detail }));
                    }
                    self.boot_polls();
                }
            },
            other => self.boot_failed(op, "describe the lease table", other),
        }
    }

    /// While running: is the table really gone? One answer may come from a lagging replica, two in a row do not.
    fn table_watched(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Applied(Reply::Table(TableState::Missing | TableState::Deleting))
                if self.boot.table_doubts >= 2 =>
            {
                self.boot.table_gone = true;
                self.boot.table_doubts = 0;
                let table = self.ctx.config.table.clone();
                self.ctx.request(Request::Stop(Fatal::TableGone { table }));
            }
            Outcome::Applied(Reply::Table(TableState::Missing | TableState::Deleting)) => {
                self.boot.table_doubts += 1;
                self.boot_polls();
            }
            Outcome::Applied(_) => self.boot.table_doubts = 0,
            _ => self.boot_polls(),
        }
    }

    pub(crate) fn table_created(&mut self, op: OpId, outcome: Outcome) {
        self.boot_answered(&outcome);
        match outcome {
            Outcome::Applied(_) => {
                self.boot.created = true;
                self.boot_goes(Step::Table);
            }
            // Another worker was faster, or an earlier attempt of ours was applied.
            Outcome::Refused(refusal) if refusal.why == Why::InUse => self.boot_goes(Step::Table),
            Outcome::Unknown(_) => self.boot_goes(Step::Table),
            other => self.boot_failed(op, "create the lease table", other),
        }
    }

    pub(crate) fn stream_state(&mut self, op: OpId, outcome: Outcome) {
        self.boot_answered(&outcome);
        let stream = self.ctx.config.stream.clone();
        let running = self.boot.step == Step::Done;
        match outcome {
            Outcome::Applied(Reply::Stream(state)) => {
                if self
                    .boot
                    .stream_created
                    .is_some_and(|created| created != state.created)
                {
                    (self.boot.stream_doubt, self.boot.watching) = (false, false);
                    return self.ctx.request(Request::Stop(Fatal::StreamGone { stream }));
                }
                if !state.readable {
                    return self.boot_polls();
                }
                self.boot.stream_created = Some(state.created);
                self.boot.watching = false;
                if !running {
                    self.boot.step = Step::Done;
                    self.boot.watched_at = self.ctx.now;
                    self.ctx.request(Request::Rescan(self.ctx.now));
                } else if std::mem::take(&mut self.boot.stream_doubt) {
                    // Many shards may end at once; one listing in a while answers for all of them.
                    self.boot.rest_until = self.ctx.now + STREAM_PAUSE;
                    self.ctx.request(Request::ListShards("a shard was not found"));
                }
            }
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => {
                (self.boot.stream_doubt, self.boot.watching) = (false, false);
                self.ctx.request(Request::Stop(if running {
                    Fatal::StreamGone { stream }
                } else {
                    Fatal::StreamMissing { stream }
                }));
            }
            other => self.boot_failed(op, "describe the stream", other),
        }
    }

    fn boot_failed(&mut self, op: OpId, what: &str, outcome: Outcome) {
        let booting = self.boot.step != Step::Done;
        match &outcome {
            Outcome::Refused(refusal) if booting && refusal.why == Why::Denied => {
                self.ctx.request(Request::Stop(Fatal::Denied {
                    what: what.into(),
                    detail: refusal.detail.clone(),
                }));
            }
            Outcome::NotSent(Cause::Credentials) if booting && self.boot.failures >= CREDENTIAL_PATIENCE => {
                self.ctx.request(Request::Stop(Fatal::Denied {
                    what: what.into(),
                    detail: "no usable credentials were found".into(),
                }));
            }
            _ => self.boot_waits(op, what, super::describe(&outcome)),
        }
    }
}
