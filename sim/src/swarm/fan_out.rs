//! Worlds whose workers read by subscription.

use super::Plan;
use crate::draws::Draws;
use crate::faults::FanOutFaults;
use leasehold_engine::config::ReadMode;

/// In half of the worlds, workers read by subscription: alone, or by polling, too. Workers of different configurations may differ.
pub(super) fn fanned(mut plan: Plan) -> Plan {
    let draws = Draws::new(plan.seed);
    let configs = std::iter::once(&mut plan.config).chain(&mut plan.upgraded);
    for (n, config) in (0..).zip(configs) {
        let mode = match draws.below("fan-out", n, 4) {
            0 => ReadMode::FanOut,
            1 => ReadMode::Auto,
            _ => ReadMode::Polling,
        };
        let reader = config.reader().clone().with_mode(mode);
        *config = std::mem::take(config).with_reader(reader);
    }
    if plan.configs().any(|config| !config.reader().mode().is_polling()) {
        plan.faults.fan_out = FanOutFaults::draw(draws, plan.setting());
    }
    plan
}
