//! Ways to simplify a world besides its single faults.

use crate::faults::PeerFaults;
use crate::scenario::Scenario;
use crate::swarm::Plan;
use toml::{Table, Value};

/// Changes to a world: each makes the world smaller, or leaves the world as found.
pub(super) const CHANGES: &[fn(&mut Plan)] = &[
    |plan| plan.workers = plan.workers.min(2),
    |plan| plan.workers = (plan.workers - 1).max(1),
    |plan| *plan = plan.clone().of_streams(1),
    |plan| *plan = plan.clone().of_streams(plan.streams.min(2)),
    |plan| plan.shards = plan.shards.min(2),
    |plan| plan.shards = plan.shards.saturating_sub(plan.streams).max(1),
    |plan| plan.load.before = 0,
    |plan| plan.load.before /= 2,
    |plan| plan.load.burst = 1,
    |plan| plan.load.bytes = 100,
    |plan| plan.load.every_us = plan.load.every_us.max(1_000_000),
    |plan| plan.load.every_us = plan.load.every_us.max(60_000_000),
    no_rates,
    |plan| plan.faults.application.poison = 0,
    |plan| {
        if plan.faults.upgrade.turns.is_empty() {
            plan.upgraded = None;
        }
    },
];

/// With a list of request faults, rates have no effect on the run.
fn no_rates(plan: &mut Plan) {
    if plan.faults.request_faults.is_none() {
        return;
    }
    let call = &mut plan.faults.call;
    for rate in [
        &mut call.slow,
        &mut call.lost_request,
        &mut call.lost_answer,
        &mut call.late,
        &mut call.throttled,
        &mut call.server_error,
        &mut call.twice,
        &mut call.not_sent,
        &mut call.garbled,
    ] {
        *rate = 0;
    }
    (call.slow_us, call.late_us, call.weather_us) = (0, 0, 0);
    plan.faults.storm.storms.clear();
    plan.faults.storm.failing.clear();
    let process = &mut plan.faults.process;
    (process.crash_on_write, process.crash_on_write_most, process.crash_on_take) = (0, 0, 0);
    (process.pause_on_answer, process.pause_us, process.stop_on_take) = (0, 0, 0);
    plan.faults.peers = PeerFaults::default();
    let outage = &mut plan.faults.outage;
    (outage.now, outage.now_us) = (0, 0);
    let table = &mut plan.faults.table;
    (table.stale, table.stale_us, table.hung_lease) = (0, 0, None);
    table.refused_lease = None;
    table.hand_over_on_take = 0;
    let stream = &mut plan.faults.stream;
    (stream.read_throttled, stream.empty_read, stream.dry_shard) = (0, 0, None);
    let application = &mut plan.faults.application;
    (application.slow, application.fails, application.hangs) = (0, 0, 0);
    (application.slow_us, application.hang_us) = (0, 0);
    (application.waits, application.wait_us) = (0, 0);
    (application.deaf, application.deaf_us, application.says_again) = (0, 0, 0);
    (application.pauses, application.pause_us) = (0, 0);
    (application.keeps, application.keep_us, application.gives_back) = (0, 0, 0);
    (application.partial, application.checkpoint, application.stale_call) = (0, 0, 0);
}

/// The path of a scenario's option with an unusual value.
pub(super) type Path = Vec<String>;

/// All options of a scenario's world besides single faults and sizes.
pub(super) fn options(plan: &Plan) -> Vec<Path> {
    let Some(table) = table_of(plan) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    leaves(&table, &mut Vec::new(), &mut found);
    found.retain(|path| matches!(path[0].as_str(), "config" | "upgraded" | "faults"));
    found
}

fn leaves(table: &Table, path: &mut Path, found: &mut Vec<Path>) {
    for (name, value) in table {
        path.push(name.clone());
        match value {
            Value::Table(inner) => leaves(inner, path, found),
            // Lists of faults are taken apart elsewhere.
            Value::Array(list) if list.iter().any(Value::is_table) => {}
            _ => found.push(path.clone()),
        }
        path.pop();
    }
}

/// The world without an option; none if the world needs the option.
pub(super) fn without(plan: &Plan, option: &Path) -> Option<Plan> {
    let mut table = table_of(plan)?;
    let (last, folders) = option.split_last()?;
    let mut folder = &mut table;
    for name in folders {
        folder = folder.get_mut(name)?.as_table_mut()?;
    }
    folder.remove(last)?;
    let text = toml::to_string(&table).ok()?;
    Some(text.parse::<Scenario>().ok()?.plan)
}

fn table_of(plan: &Plan) -> Option<Table> {
    let scenario = Scenario { about: String::new(), violates: None, bug: None, plan: plan.clone() };
    scenario.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_can_be_left_out_and_then_it_is_gone() {
        for seed in 0..6 {
            let plan = Plan::draw(seed);
            for option in options(&plan) {
                if let Some(simpler) = without(&plan, &option) {
                    assert!(!options(&simpler).contains(&option), "{option:?} of seed {seed}");
                }
            }
        }
    }

    #[test]
    fn without_rates_a_world_with_a_list_is_the_same() {
        use crate::run::{Options, run_plan, run_seed};
        let recorded = Options { request_faults: true, ..Options::default() };
        for seed in 2..6 {
            let drawn = run_seed(seed, &recorded).found;
            let mut plan = Plan::draw(seed);
            plan.faults.request_faults = Some(drawn.request_faults);
            no_rates(&mut plan);
            let bare = run_plan(plan, &Options::default()).map(|found| found.digest);
            assert_eq!(bare, Ok(drawn.digest), "seed {seed}");
        }
    }
}
