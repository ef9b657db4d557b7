//! Worlds whose workers read by subscription.

use super::Plan;
use crate::draws::Draws;
use crate::faults::FanOutFaults;
use leasehold_engine::config::ReadMode;
use leasehold_engine::format::Format;

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

/// In two thirds of the mixed worlds on the tables of the Java KCL, processes of KCL read by subscription: all of them, or
/// half. In a third of the worlds our workers subscribe under a consumer of their own, else under KCL's.
///
/// An operator deregisters our own consumer only: a subscriber of KCL takes a deregistered consumer for the end of its
/// shard.
pub(super) fn fanned_beside(mut plan: Plan) -> Plan {
    if plan.format != Format::Kcl {
        return plan;
    }
    let draws = Draws::new(plan.seed);
    plan.fleet.fan_out = match draws.below("fan-out-beside", 0, 6) {
        0 | 1 => 0,
        2 => 500,
        _ => 1_000,
    };
    let is_apart = draws.below("fan-out-beside", 1, 3) == 0;
    if is_apart {
        plan.configure(|config| {
            let reader = config.reader().clone().with_consumer("ours");
            config.with_reader(reader)
        });
    }
    let of_ours = plan.configs().any(|config| !config.reader().mode().is_polling());
    if of_ours || plan.fleet.fan_out > 0 {
        plan.faults.fan_out = FanOutFaults::draw(draws, plan.setting());
    }
    if plan.fleet.fan_out > 0 && !is_apart {
        plan.faults.fan_out.deregistered.clear();
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kcl_subscribes_in_two_thirds_of_the_mixed_worlds() {
        let plans: Vec<Plan> =
            (0..600).map(|seed| Plan::draw(seed).with_format(Format::Kcl).mixed()).collect();
        let percent = |of: fn(&&Plan) -> bool| plans.iter().filter(of).count() * 100 / plans.len();
        let is_apart = |plan: &&Plan| plan.config.consumer() != plan.config.table();
        let ours = |plan: &&Plan| plan.configs().any(|config| !config.reader().mode().is_polling());
        for (share, least) in [
            (percent(|plan| plan.fleet.fan_out > 0), 60),
            (percent(|plan| plan.fleet.fan_out == 500), 12),
            (percent(is_apart), 28),
            (plans.iter().filter(|plan| plan.fleet.fan_out > 0 && ours(plan)).count() * 100 / 600, 28),
        ] {
            assert!((least..least + 14).contains(&share), "{share} %, expected {least} % or a little more");
        }
        let gone = |plan: &&Plan| !plan.faults.fan_out.deregistered.is_empty();
        assert!(plans.iter().filter(gone).all(|plan| is_apart(&plan) || plan.fleet.fan_out == 0));
        assert!(plans.iter().filter(gone).any(|plan| is_apart(&plan) && plan.fleet.fan_out > 0));
    }
}
