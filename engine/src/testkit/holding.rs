//! An engine that holds many leases and only renews leases.

use super::{Carry, Driven, Services};
use crate::Engine;
use crate::config::Config;
use crate::ids::OpId;
use crate::input::{Body, Boot, Input, Outcome, Reply};
use crate::notice::Notice;
use crate::output::{Command, Effect, TableOp};
use crate::row::Change;
use crate::time::{Mono, Span, Wall};
use std::collections::VecDeque;

/// An engine and the renewals it waits for.
#[derive(Clone, Debug)]
pub struct Holding {
    driven: Driven,
    renewals: Renewals,
}

/// Keeps renewals, and answers other commands while leases are taken.
#[derive(Clone, Debug)]
struct Renewals {
    /// Absent when all leases are taken: later commands other than renewals get no answer.
    services: Option<Services>,
    open: VecDeque<OpId>,
    taken: u32,
}

impl Carry for Renewals {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        match &command.effect {
            Effect::Table(TableOp::Write(Change::Renew { .. })) => {
                self.open.push_back(command.op);
                None
            }
            // The handlers never finish opening, so only renewals remain.
            Effect::Consumer(_) => None,
            _ => Some(self.services.as_mut()?.perform(&command)),
        }
    }

    fn told(&mut self, notice: Notice) {
        self.taken += u32::from(matches!(notice, Notice::Took { .. }));
    }
}

/// Inputs for each lease until every buffer of the engine has its size.
const WARM_UP: u64 = 12;

impl Holding {
    /// Boots an engine, lets it take this many leases, and renews each lease several times.
    pub fn leases(count: u32) -> Self {
        let config = Config::default()
            .with_table("app")
            .with_stream("orders")
            .with_scan_interval(Span::from_secs(80_000))
            .with_cleanup_delay(Span::ZERO);
        let boot = Boot { worker: "w".into(), incarnation: 1, seed: 1, config };
        let mut driven = Driven::default();
        let mut renewals =
            Renewals { services: Some(Services::with_shards(count)), open: VecDeque::new(), taken: 0 };
        let input = Input { at: Mono(1_000_000), wall: Wall(1_000), body: Body::Boot(Box::new(boot)) };
        driven.tell(input, &mut renewals);
        while renewals.taken < count && !driven.engine().is_stopped() {
            driven.sleep(&mut renewals);
        }
        renewals.services = None;
        let mut holding = Self { driven, renewals };
        for _ in 0..u64::from(count) * WARM_UP {
            holding.renew_or_tick();
        }
        holding
    }

    /// Feeds one input: the answer to the oldest renewal without an answer; if every renewal is answered, a tick at the
    /// next deadline.
    pub fn renew_or_tick(&mut self) {
        match self.renewals.open.pop_front() {
            Some(op) => self.driven.answer(op, Outcome::Applied(Reply::Done), &mut self.renewals),
            None => self.driven.sleep(&mut self.renewals),
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.driven.engine()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leases_are_held_and_renewed_all_along() {
        let mut holding = Holding::leases(20);
        let counters =
            |holding: &Holding| -> Vec<u64> { holding.engine().held().map(|held| held.counter).collect() };
        let before = counters(&holding);
        assert_eq!(before.len(), 20);
        for _ in 0..20 * 6 {
            holding.renew_or_tick();
        }
        for (before, after) in before.into_iter().zip(counters(&holding)) {
            assert!(after > before + 1, "{before} {after}");
        }
    }
}
