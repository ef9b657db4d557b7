//! Any bytes as a scenario: refused with a sentence, or read, shown and read again as the same scenario. A small
//! scenario is also run.
#![no_main]

use leasehold_sim::run::{Options, run_plan};
use leasehold_sim::scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// A world with an early end, whatever its content.
fn is_small(scenario: &Scenario) -> bool {
    let plan = &scenario.plan;
    let load =
        u64::from(plan.load.before) + plan.fault_us / plan.load.every_us.max(1) * u64::from(plan.load.burst);
    plan.workers <= 3 && plan.shards <= 4 && plan.fault_us <= 5_000_000 && load <= 100
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let scenario: Scenario = match text.parse() {
        Ok(scenario) => scenario,
        Err(refused) => {
            let sentence = refused.to_string();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence:?}");
            return;
        }
    };
    let shown = scenario.to_string();
    let again: Result<Scenario, _> = shown.parse();
    assert_eq!(again.as_ref(), Ok(&scenario), "{shown}");
    if is_small(&scenario) {
        let stop = Options { stop: true, ..Options::default() };
        if let Err(panic) = run_plan(scenario.plan, &stop) {
            panic!("{panic} in {shown}");
        }
    }
});
