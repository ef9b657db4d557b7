//! How worlds are run: what is kept of them, what is left out, and when they are given up.

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::what_if::Given;
use leasehold_engine::format::Format;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A wish from outside to give worlds up, which running ones look for every few thousand events. What a world does up to then
/// does not depend on it. By default there is none.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// Worlds are given up once this is set.
    pub fn when(asked: Arc<AtomicBool>) -> Self {
        Self(Some(asked))
    }

    /// Whether worlds are to be given up.
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed))
    }
}

/// What to do besides running.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep a column log (for single worlds).
    pub log: bool,
    /// Keep every input (for single worlds).
    pub trace: bool,
    /// Keep everything that is to be shown (for single worlds).
    pub record: bool,
    /// Keep what chance did.
    pub request_faults: bool,
    /// End at the first violation.
    pub stop: bool,
    /// Violations of other properties than these end no world; none: all do.
    pub only: Vec<Property>,
    /// Keep the digest after every so many inputs; 0: never.
    pub check_every: u64,
    /// Nothing goes wrong.
    pub no_faults: bool,
    /// The world ends when the faults are over, as a cancelled one: no look tells whether all comes right.
    pub faults_only: bool,
    /// The formats that worlds are drawn of; none: KCL's.
    pub formats: Vec<Format>,
    /// Workers of other programs stand beside ours, where they can.
    pub mixed: bool,
    /// Worlds begin with this stream and table.
    pub given: Option<Given>,
    /// The deliberate bug that is on. Without one, all are off. Only a program that is built from the copy has them.
    pub bug: Option<Bug>,
    /// Whether to go on.
    pub cancel: Cancel,
}
