//! What can be seen of a worker from outside: logs, metrics, an observer of one's own, and the fences of handlers.

use crate::fence::Fences;
use crate::ports::Kind;
use leasehold_engine::ids::{FencingToken, LeaseKey, WorkerId};
use leasehold_engine::input::Outcome;
use leasehold_engine::notice::Notice;
use leasehold_engine::time::Mono;
use std::collections::BTreeSet;
use std::fmt;
use tracing::Level;

/// Called with everything the engine tells.
pub type NoticeFn = Box<dyn FnMut(&Notice) + Send>;

/// Turns notices into logs and metrics, and passes them on.
pub struct Observer {
    each: Option<NoticeFn>,
    fences: Fences,
    held: u64,
    /// Leases that were said not to move, and not yet to move again.
    stalled: BTreeSet<LeaseKey>,
    /// The name of this life, once it is told.
    worker: Option<WorkerId>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// Shows notices to `each` as well, if it is given. It runs within the worker's loop and must not block.
    pub fn new(fences: Fences, each: Option<NoticeFn>) -> Self {
        Self {
            each,
            fences,
            held: 0,
            stalled: BTreeSet::new(),
            worker: None,
        }
    }

    pub(crate) fn notice(&mut self, notice: &Notice) {
        let (kind, level) = describe(notice);
        metrics::counter!("leasehold_notices_total", "kind" => kind).increment(1);
        if let Notice::Booted { worker, .. } = notice {
            self.worker = Some(worker.clone());
        }
        self.log(kind, level, notice);
        let stalled = match notice {
            Notice::Stalled { lease, .. } => self.stalled.insert(lease.clone()),
            Notice::Moving { lease, .. } | Notice::Lost { lease, .. } | Notice::Released { lease } => {
                self.stalled.remove(lease)
            }
            _ => false,
        };
        if stalled {
            metrics::gauge!("leasehold_leases_stalled").set(self.stalled.len() as f64);
        }
        match notice {
            Notice::Took { .. } => self.count_held(self.held.saturating_add(1)),
            Notice::Lost { lease, .. } | Notice::Released { lease } => {
                self.fences.revoke(lease);
                self.count_held(self.held.saturating_sub(1));
            }
            Notice::Fenced { lease } => self.fences.revoke(lease),
            _ => {}
        }
        if let Some(each) = &mut self.each {
            each(notice);
        }
    }

    fn log(&self, kind: &str, level: Level, notice: &Notice) {
        // A level is fixed where it is written, so that it can be filtered out cheaply.
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

    pub(crate) fn outcome(&self, kind: Kind, outcome: &Outcome) {
        let result = match outcome {
            Outcome::Applied(_) => "applied",
            Outcome::Refused(_) => "refused",
            Outcome::NotSent(_) => "not-sent",
            Outcome::Unknown(_) => "unknown",
        };
        metrics::counter!("leasehold_outcomes_total", "kind" => kind.name(), "result" => result).increment(1);
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.fences.is_empty()
    }

    pub(crate) fn believe(&self, lease: &LeaseKey, token: FencingToken, valid_until: Mono) {
        self.fences.believe(lease, token, valid_until);
    }

    pub(crate) fn stopped(&mut self) {
        self.count_held(0);
        self.stalled.clear();
        metrics::gauge!("leasehold_leases_stalled").set(0.0);
    }

    fn count_held(&mut self, held: u64) {
        self.held = held;
        metrics::gauge!("leasehold_leases_held").set(held as f64);
    }
}

/// A short name for metrics, and how loud it is in the log.
fn describe(notice: &Notice) -> (&'static str, Level) {
    match notice {
        Notice::Booted { .. } => ("booted", Level::INFO),
        Notice::TableReady { .. } => ("table-ready", Level::INFO),
        Notice::Scanned { .. } => ("scanned", Level::DEBUG),
        Notice::Unreadable { .. } => ("unreadable", Level::WARN),
        Notice::Rank { .. } => ("rank", Level::INFO),
        Notice::Chose(_) => ("chose", Level::DEBUG),
        Notice::Took { .. } => ("took", Level::INFO),
        Notice::MissedTake { .. } => ("missed-take", Level::DEBUG),
        Notice::Claimed { .. } => ("claimed", Level::INFO),
        Notice::Yields { .. } => ("yields", Level::INFO),
        Notice::Adopted { .. } => ("adopted", Level::INFO),
        Notice::Fenced { .. } => ("fenced", Level::WARN),
        Notice::Resumed { .. } => ("resumed", Level::INFO),
        Notice::Lost { .. } => ("lost", Level::WARN),
        Notice::Released { .. } => ("released", Level::INFO),
        Notice::Restoring { .. } => ("restoring", Level::WARN),
        Notice::Blocked { .. } => ("blocked", Level::DEBUG),
        Notice::Opened { .. } => ("opened", Level::INFO),
        Notice::Closed { .. } => ("closed", Level::INFO),
        Notice::Checkpointed { .. } => ("checkpointed", Level::DEBUG),
        Notice::Ended { .. } => ("ended", Level::INFO),
        Notice::Hole { .. } => ("hole", Level::INFO),
        Notice::Listing { .. } => ("listing", Level::DEBUG),
        Notice::BadListing { .. } => ("bad-listing", Level::WARN),
        Notice::Planned { .. } => ("planned", Level::INFO),
        Notice::Created { .. } => ("created", Level::INFO),
        Notice::Removed { .. } => ("removed", Level::INFO),
        Notice::HandlerFailed { .. } => ("handler-failed", Level::WARN),
        Notice::Stalled { .. } => ("stalled", Level::WARN),
        Notice::Moving { .. } => ("moving", Level::INFO),
        Notice::Trimmed { .. } => ("trimmed", Level::ERROR),
        Notice::Trouble { .. } => ("trouble", Level::WARN),
        Notice::Stray { .. } => ("stray", Level::WARN),
        Notice::Fatal(_) => ("fatal", Level::ERROR),
        Notice::ShuttingDown { .. } => ("shutting-down", Level::INFO),
        Notice::Stopped => ("stopped", Level::INFO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::notice::LossReason;
    use leasehold_engine::time::Span;
    use std::sync::{Arc, Mutex};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::subscriber::{Subscriber, with_default};
    use tracing::{Event, Metadata};

    /// Keeps each event as its fields.
    #[derive(Clone, Default)]
    struct Events(Arc<Mutex<Vec<String>>>);

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0 += &format!("{field}={value:?} ");
        }
    }

    impl Subscriber for Events {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let mut line = Line(format!("{} ", event.metadata().level()));
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_notice_is_logged_as_a_sentence_with_its_subject_and_lease_beside_it() {
        let events = Events::default();
        with_default(events.clone(), || {
            let mut observer = Observer::new(Fences::default(), None);
            observer.notice(&Notice::Booted {
                worker: "w:1f".into(),
                hold: Span::from_secs(9),
            });
            observer.notice(&Notice::Lost {
                lease: "shardId-000000000001".into(),
                why: LossReason::RowGone,
            });
        });
        assert_eq!(
            *events.0.lock().unwrap(),
            [
                "INFO message=begins as w:1f, believing in a lease for 9.000s kind=\"booted\" worker=w:1f ",
                "WARN message=lost shardId-000000000001: its row is gone kind=\"lost\" worker=w:1f \
                 lease=shardId-000000000001 ",
            ]
        );
    }
}
