//! The record of inputs and outputs: a digest of all, to compare two runs of one seed, and the inputs themselves.

use crate::options::Options;
use crate::oracles::{LifeNo, Time};
use crate::world::found::Found;
use leasehold_engine::input::{Body, Input};
use leasehold_engine::internals::Digest;
use leasehold_engine::output::Output;
use leasehold_engine::time::Mono;
use serde::Serialize;

/// The digest, and its companions.
#[derive(Debug)]
pub(in crate::world) struct Transcript {
    digest: Digest,
    inputs: u64,
    check_every: u64,
    checks: Vec<u64>,
    trace: Option<Vec<(LifeNo, Input)>>,
}

impl Transcript {
    pub(in crate::world) fn new(options: &Options) -> Self {
        Self {
            digest: Digest::new(),
            inputs: 0,
            check_every: options.check_every,
            checks: Vec::new(),
            trace: options.trace.then(Vec::new),
        }
    }

    /// Adds the results at the world's end.
    pub(super) fn add_to(self, found: &mut Found) {
        found.inputs = self.inputs;
        found.digest = self.digest.value();
        found.checks = self.checks;
        found.trace = self.trace.unwrap_or_default();
    }

    /// The number of inputs.
    #[cfg(debug_assertions)]
    pub(super) fn count(&self) -> u64 {
        self.inputs
    }

    /// An engine takes an input. Returns a copy for the trace, if requested.
    pub(super) fn input(&mut self, now: Time, w: usize, input: &Input) -> Option<Input> {
        self.inputs += 1;
        self.digest.absorb(&(now, w as u16, input));
        self.trace.is_some().then(|| input.clone())
    }

    /// A foreign program takes an input.
    pub(super) fn input_of_other(&mut self, now: Time, w: usize, body: &Body) {
        self.inputs += 1;
        self.digest.absorb(&(now, w as u16, body));
    }

    /// A foreign program makes a request.
    pub(super) fn asked(&mut self, what: &impl Serialize) {
        self.digest.absorb(what);
    }

    /// An engine's outputs.
    pub(super) fn outputs(&mut self, wake_at: Mono, outputs: &[Output]) {
        self.digest.absorb(&wake_at);
        for output in outputs {
            self.digest.absorb(output);
        }
        if self.check_every > 0 && self.inputs.is_multiple_of(self.check_every) {
            self.checks.push(self.digest.value());
        }
    }

    /// Keeps an input of a life.
    pub(super) fn keep(&mut self, life: LifeNo, input: Option<Input>) {
        if let (Some(trace), Some(input)) = (&mut self.trace, input) {
            trace.push((life, input));
        }
    }
}
