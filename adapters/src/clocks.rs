//! Both clocks of the machine, compared: time that the monotonic clock did not count.
//!
//! The engine compares both clocks with every input. Until the engine's next input, each call of a fence compares the
//! clocks too.

use crate::runtime::Runtime;
use leasehold_engine::config::Config;
use leasehold_engine::internals::Skew;
use leasehold_engine::time::{Mono, Span, Wall};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Both clocks are read again if a reading took longer than this: the two times must belong to one moment.
const APART: Span = Span::from_millis(10);
/// But no more often than this.
const MOST_READS: u32 = 4;

/// What the engine's last input showed. The driver and all fences share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(Arc<Mutex<Option<Skew>>>);

impl Clocks {
    fn skew(&self) -> MutexGuard<'_, Option<Skew>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine is given its boot record.
    pub(crate) fn begin(&self, config: &Config, at: Mono, wall: Wall) {
        *self.skew() = Some(Skew::new(config, at, wall));
    }

    /// The engine was given an input of this time, and the driver has updated the fences.
    pub(crate) fn told(&self, at: Mono, wall: Wall) {
        if let Some(skew) = &mut *self.skew() {
            skew.look(at, wall);
        }
    }

    /// How much time the monotonic clock has not counted since the engine's last input.
    pub(crate) fn missed(&self, at: Mono, wall: Wall) -> Span {
        self.skew().as_ref().map_or(Span::ZERO, |skew| skew.missed(at, wall))
    }
}

/// Both clocks at one moment, as nearly as possible.
pub(crate) fn read(runtime: &dyn Runtime) -> (Mono, Wall) {
    let mut before = runtime.now();
    for _ in 1..MOST_READS {
        let wall = runtime.wall();
        let after = runtime.now();
        if after.since(before) <= APART {
            return (after, wall);
        }
        before = after;
    }
    let wall = runtime.wall();
    (runtime.now(), wall)
}
