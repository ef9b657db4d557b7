//! The way to the first scan: the table there and ours. Also the watch over the table while running.
//!
//! A stream comes first: a worker with a wrong stream, account or region then ends before it has created a table.

use super::backoff::Backoff;
use super::context::{Context, Request, Waiter};
use super::describe;
use super::evidence::{Evidence, Needed};
use super::hopeless::hopeless;
use crate::config::TABLE_PATIENCE;
use crate::ids::OpId;
use crate::input::{Outcome, Reply, TableState, Why};
use crate::notice::{Fatal, Notice};
use crate::output::TableOp;
use crate::time::Mono;

#[cfg(test)]
mod tests;

/// A claim of an answer that would stop the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Claim {
    /// The table has another key.
    Incompatible,
    /// This worker may not describe or create it.
    Denied,
    /// It was there, and is not any more.
    Gone,
}

/// How far start-up is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Step {
    /// No stream was found yet.
    #[default]
    Stream,
    /// What is with the table?
    Table,
    /// The table is missing: create it.
    Create,
    /// The stream and the table were found.
    Done,
}

/// Start-up; afterwards, the watch over the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Startup {
    step: Step,
    in_flight: bool,
    /// When the last question was asked.
    asked: Mono,
    /// What answers in a row say against the table.
    claims: Evidence<Claim>,
    /// Failures in a row, and when the next question is asked.
    backoff: Backoff,
    /// Creations without a known outcome, and when the next creation is asked for.
    creations: Backoff,
    /// Since when the table is in a passing state.
    table_since: Mono,
    created: bool,
    /// Running: some operation did not find the table.
    doubted: bool,
}

impl Startup {
    /// When it wants to be woken.
    pub(super) fn wake_at(&self) -> Mono {
        let waits = match self.step {
            Step::Stream => false,
            Step::Table | Step::Create => true,
            Step::Done => self.doubted,
        };
        if waits && !self.in_flight { self.backoff.until() } else { Mono::NEVER }
    }

    /// Asks the next question, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context) {
        if cx.now() < self.wake_at() {
            return;
        }
        debug_assert!(!self.in_flight, "one question at a time");
        match self.step {
            Step::Create => cx.table(Waiter::TableCreate, TableOp::Create),
            Step::Stream | Step::Table | Step::Done => cx.table(Waiter::TableState, TableOp::Describe),
        };
        self.in_flight = true;
        self.asked = cx.now();
    }

    /// A stream was found: the table is looked at, if it was not yet.
    pub(super) fn on_stream_found(&mut self, cx: &mut Context) {
        if self.step == Step::Stream {
            self.go(cx, Step::Table);
        }
    }

    /// An operation did not find the lease table. A worker that stops because the table is gone asks no more.
    pub(super) fn doubt_table(&mut self, cx: &mut Context) {
        if self.step == Step::Done && !self.doubted && !cx.phase().table_gone() {
            self.doubted = true;
            self.backoff.wait_until(cx.now());
            self.step(cx);
        }
    }

    fn go(&mut self, cx: &mut Context, step: Step) {
        self.go_at(cx, step, cx.now());
    }

    fn go_at(&mut self, cx: &mut Context, step: Step, at: Mono) {
        debug_assert_ne!(self.step, Step::Done, "start-up ends once");
        self.step = step;
        self.backoff.succeeded();
        self.backoff.wait_until(at.max(cx.now()));
        self.step(cx);
    }

    /// Polls what is in a passing state.
    fn poll(&mut self, cx: &Context) {
        self.backoff.wait_until(cx.now() + cx.poll_pause());
    }

    /// Whether answers in a row say this, and are enough by now. If not, the same is asked again.
    fn is_proven(&mut self, cx: &Context, claim: Claim) -> bool {
        let needed = match claim {
            Claim::Gone => Needed::to_lose_table(cx),
            Claim::Incompatible | Claim::Denied => Needed::to_give_up(cx),
        };
        let proven = self.claims.says(cx, self.asked, claim, needed);
        if !proven {
            self.backoff.wait_until(self.claims.ask_again_at(needed));
        }
        proven
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
        if state != TableState::Incompatible {
            self.claims.contradicted();
        }
        match state {
            TableState::Usable => {
                let created = self.created;
                cx.notify(Notice::TableReady { created });
                self.step = Step::Done;
                self.backoff.succeeded();
                cx.set_booted();
                cx.request(Request::Rescan(cx.now()));
            }
            TableState::Missing if !self.created => self.go_at(cx, Step::Create, self.creations.until()),
            TableState::Incompatible => {
                if self.is_proven(cx, Claim::Incompatible) {
                    cx.request(Request::Stop(Fatal::TableIncompatible { table }));
                }
            }
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

    /// While running: is the table really gone? One answer may come from a lagging replica.
    fn on_table_watched(&mut self, cx: &mut Context, outcome: &Outcome) {
        debug_assert!(self.doubted, "a running worker looks at a table that it doubts");
        match outcome {
            Outcome::Applied(Reply::Table(TableState::Missing | TableState::Deleting)) => {
                if self.is_proven(cx, Claim::Gone) {
                    self.doubted = false;
                    let table = cx.config().table.clone();
                    cx.request(Request::TableGone(Fatal::TableGone { table }));
                }
            }
            Outcome::Applied(_) => {
                self.doubted = false;
                self.claims.contradicted();
            }
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
            // The table says whether the creation was executed.
            Outcome::Unknown(_) => {
                let what = "create the lease table";
                let again_in = self.creations.failed(cx, "boot", what);
                cx.trouble(op, None, what, describe(&outcome), again_in);
                self.go(cx, Step::Table);
            }
            other => self.failed(cx, op, "create the lease table", &other),
        }
    }

    fn failed(&mut self, cx: &mut Context, op: OpId, what: &str, outcome: &Outcome) {
        let starting = self.step != Step::Done;
        let is_denial = matches!(outcome, Outcome::Refused(refusal) if refusal.why.is_denial());
        if starting && is_denial && !self.is_proven(cx, Claim::Denied) {
            return;
        }
        if starting && let Some(fatal) = hopeless(what, outcome, self.backoff.failures(), true) {
            return cx.request(Request::Stop(fatal));
        }
        let again_in = self.backoff.failed(cx, "boot", what);
        cx.trouble(op, None, what, describe(outcome), again_in);
    }
}
