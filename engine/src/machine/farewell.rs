//! What a stopping worker has given up so far, and what it leaves behind.

use super::Core;
use super::stage::Stage;
use super::tenure::{TakeFlight, Tenure, WriteKind};
use crate::notice::{Left, StopSummary};
use crate::time::Mono;

/// What is counted while a worker stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Farewell {
    /// Leases that were given up.
    released: u32,
    /// Handlers that were stopped before they had finished.
    cut_off: u32,
}

impl Core {
    /// A lease was given up.
    pub(crate) fn count_released(&mut self) {
        if self.stopping().is_some() {
            self.farewell.released += 1;
        }
    }

    /// A handler is stopped. That the handler of a lost lease is stopped belongs to the loss.
    pub(crate) fn count_cut_off(&mut self, tenure: &Tenure) {
        if self.stopping().is_some() && !tenure.lost {
            self.farewell.cut_off += 1;
        }
    }

    /// What to say at the end of a stop.
    pub(crate) fn stop_summary(&self) -> StopSummary {
        let now = self.ctx.now;
        let mut left = 0;
        let mut named = Vec::new();
        for (_, lease) in self.view.iter() {
            let why = match (&lease.tenure, &lease.taking) {
                (Some(tenure), _) if !tenure.lost => tenure.left(now),
                (None, Some(taking)) if !matches!(taking.flight, TakeFlight::Pause(_)) => Left::Taking,
                _ => continue,
            };
            left += 1;
            if named.len() < StopSummary::MOST {
                named.push((lease.key.clone(), why));
            }
        }
        StopSummary {
            released: self.farewell.released,
            left,
            named,
            aborted: self.farewell.cut_off,
            lease_duration: self.ctx.config.lease_duration,
        }
    }
}

impl Tenure {
    /// Why the lease was not given up by now.
    fn left(&self, now: Mono) -> Left {
        let releases = |kind| matches!(kind, WriteKind::Release | WriteKind::HandOver);
        let under_way = self.flight.is_some_and(|(_, kind)| releases(kind));
        let unresolved = self.unresolved.is_some_and(|unresolved| unresolved.release);
        match self.stage {
            _ if under_way || unresolved => Left::Unanswered,
            Stage::Closed(_) if now < self.open_after => Left::Settling,
            Stage::Closed(_) => Left::Failed { times: self.failures },
            _ => Left::Busy,
        }
    }
}
