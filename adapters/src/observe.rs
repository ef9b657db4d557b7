//! The outside view of a worker: logs, metrics, the application's own observer, and the fences of handlers.

use crate::attempt::count_processed;
use crate::board::{Board, BoardWriter};
use crate::clocks::Clocks;
use crate::fence::Fences;
use crate::gauges::Gauges;
use crate::handovers::Handovers;
use crate::machine::Machine;
use crate::metrics::{self, Meter};
use crate::misplaced::show_misplaced;
use crate::page_watch::PageWatch;
use crate::ports::{Consumed, Failure, Kind};
use crate::pulse::Polls;
use crate::requests::{Requests, show_consumed};
use crate::store::Store;
use crate::together::Together;
use crate::troubles::{Trouble, Troubles};
use crate::waits::Waits;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId, WorkerId};
use leasehold_engine::input::{Fetched, Outcome};
use leasehold_engine::notice::{Notice, RuntimeNews, Severity, Stall};
use leasehold_engine::output::Effect;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::shown::Shown;
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;
use std::fmt;
use tracing::Level;

/// Called with everything the engine tells.
pub(crate) type NoticeFn = Box<dyn FnMut(&Notice) + Send>;

/// Turns notices into logs and metrics, and passes the notices on.
pub(crate) struct Observer {
    each: Option<NoticeFn>,
    fences: Fences,
    store: Store,
    meter: Meter,
    /// Absent once the worker has stopped.
    gauges: Option<Gauges>,
    /// The worker's name in this life, once known.
    worker: Option<WorkerId>,
    troubles: Troubles,
    together: Together,
    /// How the last request for each lease failed, until its shard moves again.
    said: BTreeMap<LeaseKey, String>,
    waits: Waits,
    pages: PageWatch,
    requests: Requests,
    handovers: Handovers,
    board: BoardWriter,
    /// The calls of handlers that run; absent in tests of parts that have none.
    polls: Option<Polls>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl Observer {
    /// Also passes notices to `each`. The function runs within the worker's loop and must not block.
    pub(crate) fn new(fences: Fences, each: Option<NoticeFn>) -> Self {
        Self {
            each,
            fences,
            store: Store::default(),
            meter: Meter::default(),
            gauges: None,
            worker: None,
            troubles: Troubles::default(),
            together: Together::default(),
            said: BTreeMap::new(),
            waits: Waits::default(),
            pages: PageWatch::default(),
            requests: Requests::default(),
            handovers: Handovers::default(),
            board: BoardWriter::default(),
            polls: None,
        }
    }

    /// Gives the observer the handlers' polls: warnings then name the handlers blocking the runtime.
    #[must_use]
    pub(crate) fn with_polls(mut self, polls: Polls) -> Self {
        self.polls = Some(polls);
        self
    }

    /// Writes the worker's state and leases to this board.
    #[must_use]
    pub(crate) fn with_board(mut self, board: Board) -> Self {
        self.board = BoardWriter::new(board);
        self
    }

    /// Sets metrics with this meter; the store gives the number of waiting records.
    #[must_use]
    pub(crate) fn with_metrics(mut self, meter: Meter, store: Store) -> Self {
        meter.begin();
        self.gauges = Some(Gauges::new(meter.clone(), store.clone()));
        (self.meter, self.store) = (meter, store);
        self
    }

    /// A notice with what only a port knows.
    pub(crate) fn in_full(&self, notice: Notice) -> Notice {
        match notice {
            Notice::Fatal(fatal) => Notice::Fatal(self.troubles.in_full(fatal)),
            Notice::Trouble { op, lease, what, how, again_in } => {
                Notice::Trouble { op, lease, what, how: self.troubles.how_in_full(op, how), again_in }
            }
            Notice::Stalled { lease, idle, why, .. } => {
                let said = self.said.get(&lease).filter(|_| waits_for_services(&why)).cloned();
                Notice::Stalled { lease, idle, why, said }
            }
            Notice::Runtime(RuntimeNews::Blocked { idle, let_go_in, .. }) => {
                let said = self.polls.as_ref().map(|polls| polls.who_blocks(idle));
                Notice::Runtime(RuntimeNews::Blocked { idle, let_go_in, said })
            }
            other => other,
        }
    }

    pub(crate) fn notice(&mut self, at: Mono, notice: &Notice) {
        let (kind, level) = (notice.name(), level(notice.severity()));
        let due = match notice {
            Notice::Stopped(_) => self.together.rest(),
            _ => self.together.due(at),
        };
        self.warn_together(&due);
        self.meter.count(&metrics::NOTICES, [kind.into()], 1);
        match notice {
            Notice::Booted { worker, hold } => {
                self.worker = Some(worker.clone());
                self.troubles.begin(*hold);
                if let Some(gauges) = &mut self.gauges {
                    gauges.begin(*hold);
                }
            }
            Notice::Took { lease, .. } => self.troubles.took(lease),
            Notice::Lost { lease, .. } | Notice::Released { lease } | Notice::Ended { lease, .. } => {
                self.troubles.gave_up(lease);
                self.said.remove(lease);
            }
            Notice::Moving { lease, .. } => {
                self.said.remove(lease);
            }
            Notice::Trouble { op, lease, how, .. } => {
                self.requests.again(&self.meter, *op);
                if let Some(lease) = lease {
                    self.said.insert(lease.clone(), how.clone());
                }
            }
            _ => {}
        }
        self.handovers.notice(at, notice);
        match self.grouped(at, notice) {
            Some(Some(line)) => tracing::warn!(
                target: "leasehold",
                kind,
                worker = self.worker.as_ref().map(display),
                "{}", Shown(&line)
            ),
            Some(None) => self.log(kind, Level::DEBUG, notice),
            None if self.together.counts(at, notice) => self.log(kind, Level::DEBUG, notice),
            None => self.log(kind, level, notice),
        }
        match notice {
            Notice::Checkpointed { lease, position } => self.fences.durable(lease, Some(*position)),
            Notice::Ended { lease, .. } => self.fences.durable(lease, None),
            _ => {}
        }
        if let Notice::Lost { lease, .. } | Notice::Released { lease } | Notice::Fenced { lease } = notice {
            self.fences.revoke(lease);
        }
        self.board.notice(at, notice);
        if let Some(each) = &mut self.each {
            each(notice);
        }
    }

    /// Tells in a line each of the warnings that hit many leases.
    fn warn_together(&self, lines: &[(&'static str, String)]) {
        for (kind, line) in lines {
            tracing::warn!(
                target: "leasehold",
                kind,
                worker = self.worker.as_ref().map(display),
                "{}", Shown(line)
            );
        }
    }

    /// For a notice of trouble: the log line of its cause, if a line is due.
    fn grouped(&mut self, at: Mono, notice: &Notice) -> Option<Option<String>> {
        let Notice::Trouble { op, lease, what, how, .. } = notice else {
            return None;
        };
        let trouble = Trouble { op: *op, lease: lease.as_ref(), what, how };
        Some(self.troubles.trouble(at, &trouble))
    }

    fn log(&self, kind: &str, level: Level, notice: &Notice) {
        // A call site has a fixed level: the log can filter events out cheaply.
        macro_rules! log_at {
            ($level:expr) => {
                tracing::event!(
                    target: "leasehold",
                    $level,
                    kind,
                    worker = self.worker.as_ref().map(display),
                    lease = notice.lease().map(display),
                    token = notice.token().map(|token| token.0),
                    "{notice}"
                )
            };
        }
        match level {
            Level::ERROR => log_at!(Level::ERROR),
            Level::WARN => log_at!(Level::WARN),
            Level::INFO => log_at!(Level::INFO),
            _ => log_at!(Level::DEBUG),
        }
    }

    /// How a command went, and why it failed, if the port knows. It is told before the engine is.
    pub(crate) fn outcome(
        &mut self, at: Mono, kind: Kind, op: OpId, outcome: &Outcome, failure: Option<Failure>,
    ) {
        let result = match outcome {
            Outcome::Applied(_) => "applied",
            Outcome::Refused(_) => "refused",
            Outcome::NotSent(_) => "not-sent",
            Outcome::Unknown(_) => "unknown",
        };
        let labels = [kind.name().into(), result.into()];
        self.meter.count(&metrics::OUTCOMES, labels, 1);
        self.requests.end(&self.meter, at, op, outcome);
        self.handovers.outcome(&self.meter, at, op, outcome);
        if kind == Kind::Table {
            self.board.board().table(at, outcome);
        }
        if kind == Kind::Consumer {
            return;
        }
        if let Some(line) = self.waits.outcome(at, op, outcome, &self.meter) {
            self.warn_of_waiting(&line);
        }
        if let Some(line) = self.pages.outcome(at, op, outcome) {
            self.warn_of_waiting(&line);
        }
        for line in self.troubles.outcome(at, kind, op, outcome, failure) {
            tracing::info!(
                target: "leasehold",
                kind = "trouble-over",
                worker = self.worker.as_ref().map(display),
                "{}", Shown(&line)
            );
        }
    }

    /// The engine is given an input.
    pub(crate) fn input(&self) {
        self.meter.count(&metrics::INPUTS, [], 1);
    }

    /// The loop runs.
    pub(crate) fn turned(&mut self, now: Mono) {
        let due = self.together.due(now);
        self.warn_together(&due);
        self.board.board().turned(now);
    }

    /// Called after each input and its notices.
    pub(crate) fn follow(&mut self, now: Mono, engine: &mut impl Machine) {
        let meter = &self.meter;
        self.board.follow(now, engine, |until| {
            meter.observe(&metrics::RENEWAL_LEFT, [], until.since(now));
        });
    }

    /// How far each shard that was held during a stop was processed, durably.
    pub(crate) fn durable(&mut self) -> BTreeMap<ShardId, Checkpoint> {
        self.board.durable()
    }

    /// A command is carried out.
    pub(crate) fn command(&mut self, now: Mono, op: OpId, effect: &Effect) {
        let kind = Kind::of(effect);
        self.meter.count(&metrics::COMMANDS, [kind.name().into()], 1);
        self.requests.begin(now, op, effect);
        self.waits.command(op, effect);
        self.pages.command(now, op, effect);
        self.handovers.command(&self.meter, now, op, effect);
    }

    /// A command was not answered in time.
    pub(crate) fn given_up(&self, kind: Kind) {
        self.meter.count(&metrics::GIVEN_UP, [kind.name().into()], 1);
    }

    /// A read was answered.
    pub(crate) fn fetched(&self, fetched: &Fetched) {
        self.meter.count(&metrics::FETCHED_RECORDS, [], u64::from(fetched.count));
        self.meter.count(&metrics::FETCHED_BYTES, [], fetched.bytes);
    }

    /// The application has processed a shard up to a position.
    pub(crate) fn processed(&self, lease: &LeaseKey, through: Position) {
        self.store.processed_through(&lease.to_shard(), through);
    }

    /// The application has processed a kept batch.
    pub(crate) fn acknowledged(&self, lease: &LeaseKey, batch: OpId) {
        if let Some(batch) = self.store.processed(&lease.to_shard(), batch) {
            count_processed(&self.meter, &batch.records);
        }
    }

    /// The kept batches of a shard are read again.
    pub(crate) fn given_back(&self, lease: &LeaseKey) {
        self.store.forget_kept(&lease.to_shard());
    }

    /// Sets what is not counted as it happens.
    pub(crate) fn state(&mut self, now: Mono, engine: &impl Machine, consumed: Consumed, trace_gaps: u64) {
        if let Some(gauges) = &mut self.gauges {
            gauges.set(now, engine);
            show_misplaced(&self.meter, self.store.misplaced());
            self.meter.count_to(&metrics::TRACE_GAPS, [], trace_gaps);
            show_consumed(&self.meter, consumed);
        }
        if let Some(line) = self.requests.waits(now) {
            self.warn_of_waiting(&line);
        }
    }

    fn warn_of_waiting(&self, line: &str) {
        tracing::warn!(
            target: "leasehold",
            kind = "waits",
            worker = self.worker.as_ref().map(display),
            "{line}"
        );
    }

    /// The clocks that fences compare.
    pub(crate) fn clocks(&self) -> &Clocks {
        self.fences.clocks()
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.fences.is_empty()
    }

    pub(crate) fn believe(&self, lease: &LeaseKey, token: FencingToken, valid_until: Mono) {
        self.fences.believe(lease, token, valid_until);
    }

    /// Nothing follows.
    pub(crate) fn stopped(&mut self) {
        self.gauges = None;
    }
}

/// Whether a shard stands still because requests fail: only then does the reason of the last failure help.
fn waits_for_services(why: &Stall) -> bool {
    use Stall::{Children, Fenced, Missing, ReadsFail, Writing};
    matches!(why, Children { .. } | Fenced | Missing | ReadsFail { .. } | Writing)
}

/// The level at which a notice is logged.
fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARN,
        Severity::Info => Level::INFO,
        _ => Level::DEBUG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Events;
    use leasehold_engine::notice::LossReason;
    use leasehold_engine::time::Span;
    use tracing::subscriber::with_default;

    #[test]
    fn a_notice_is_logged_as_a_sentence_beside_subject_and_lease() {
        let events = Events::default();
        with_default(events.clone(), || {
            let mut observer = Observer::new(Fences::default(), None);
            observer.notice(Mono(0), &Notice::Booted { worker: "w:1f".into(), hold: Span::from_secs(9) });
            observer.notice(
                Mono(0),
                &Notice::Lost { lease: "shardId-000000000001".into(), why: LossReason::RowGone },
            );
        });
        assert_eq!(
            events.lines(),
            [
                "INFO message=started as w:1f; a lease is valid for 9.000s after its last confirmed renewal was sent kind=\"booted\" worker=w:1f ",
                "WARN message=lost shardId-000000000001: its row was removed, and could not be put back kind=\"lost\" worker=w:1f \
                 lease=shardId-000000000001 ",
            ]
        );
    }
}
