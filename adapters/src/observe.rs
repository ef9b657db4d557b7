//! What can be seen of a worker from outside: logs, metrics, an observer of one's own, and the fences of handlers.

use crate::fence::Fences;
use crate::ports::Kind;
use leasehold_engine::ids::{FencingToken, LeaseKey};
use leasehold_engine::input::Outcome;
use leasehold_engine::notice::Notice;
use leasehold_engine::time::Mono;
use std::fmt;
use tracing::Level;

/// Called with everything the engine tells.
pub type NoticeFn = Box<dyn FnMut(&Notice) + Send>;

/// Turns notices into logs and metrics, and passes them on.
pub struct Observer {
    each: Option<NoticeFn>,
    fences: Fences,
    held: u64,
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
        }
    }

    pub(crate) fn notice(&mut self, notice: &Notice) {
        let (kind, level) = describe(notice);
        metrics::counter!("leasehold_notices_total", "kind" => kind).increment(1);
        match level {
            Level::ERROR => tracing::error!(target: "leasehold", kind, ?notice),
            Level::WARN => tracing::warn!(target: "leasehold", kind, ?notice),
            Level::INFO => tracing::info!(target: "leasehold", kind, ?notice),
            _ => tracing::debug!(target: "leasehold", kind, ?notice),
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
        Notice::Trimmed { .. } => ("trimmed", Level::ERROR),
        Notice::Trouble { .. } => ("trouble", Level::WARN),
        Notice::Stray { .. } => ("stray", Level::WARN),
        Notice::Fatal(_) => ("fatal", Level::ERROR),
        Notice::ShuttingDown { .. } => ("shutting-down", Level::INFO),
        Notice::Stopped => ("stopped", Level::INFO),
    }
}
