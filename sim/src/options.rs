//! Options of runs: records to keep, parts to leave out, and reasons to stop a world early.

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::what_if::Given;
use leasehold_engine::format::Format;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request from outside to stop worlds early. Running worlds look for the request every few thousand events. Until
/// then, the request has no effect on a world. The default has no request.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// Worlds stop early after this flag is set.
    pub fn when(asked: Arc<AtomicBool>) -> Self {
        Self(Some(asked))
    }

    /// Whether worlds are to stop early.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed))
    }
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep a column log (for single worlds).
    pub log: bool,
    /// Keep every input (for single worlds).
    pub trace: bool,
    /// Keep every event for display (for single worlds).
    pub record: bool,
    /// Keep the random faults of requests.
    pub request_faults: bool,
    /// End at the first violation.
    pub stop: bool,
    /// Violations of these properties alone end a world; if empty, every violation does.
    pub only: Vec<Property>,
    /// Keep the digest after each run of this many inputs; 0: never.
    pub check_every: u64,
    /// Run without faults.
    pub no_faults: bool,
    /// The world ends with its faults, like a cancelled world, and no final look checks its state.
    pub faults_only: bool,
    /// Worlds are drawn from these formats; if empty, from KCL's.
    pub formats: Vec<Format>,
    /// Workers of other programs run beside ours, where possible.
    pub mixed: bool,
    /// Worlds begin with this stream and table.
    pub given: Option<Given>,
    /// The deliberate bug switched on. If absent, all bugs are off. Only a program built from the copy has bugs.
    pub bug: Option<Bug>,
    /// The request to stop early.
    pub cancel: Cancel,
}
