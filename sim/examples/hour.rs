//! An hour of 8 workers and 64 shards with faults all along, and how long it takes: `hour [SEED]...`.
//!
//! The workers are configured as they are by default. Faults and load are drawn from the seed.
#![allow(clippy::disallowed_methods, reason = "what is measured is time")]

use leasehold_engine::config::Config;
use leasehold_sim::run::Options;
use leasehold_sim::swarm::Plan;
use leasehold_sim::world::World;
use std::process::ExitCode;
use std::time::Instant;

const WORKERS: u32 = 8;
const SHARDS: u32 = 64;
const HOUR_US: u64 = 3_600_000_000;

fn main() -> ExitCode {
    let seeds: Result<Vec<u64>, _> = std::env::args().skip(1).map(|seed| seed.parse()).collect();
    let Ok(seeds) = seeds else {
        eprintln!("expected seeds: whole numbers");
        return ExitCode::from(2);
    };
    let mut worst = ExitCode::SUCCESS;
    for seed in if seeds.is_empty() { vec![0] } else { seeds } {
        let mut plan = Plan::draw(seed);
        plan.config = Config::default().with_table(plan.config.table()).with_stream(plan.config.stream());
        let plan = plan.resized(WORKERS, SHARDS, HOUR_US);
        let what = plan.summary();
        let world = World::new(plan, &Options::default());
        let began = Instant::now();
        let found = world.run();
        let wall = began.elapsed().as_secs_f64();
        println!(
            "seed {seed}: {:.0} simulated s in {wall:.2} s, {} inputs, {:.0} inputs/s, {} violations ({what})",
            found.simulated as f64 / 1e6,
            found.inputs,
            found.inputs as f64 / wall,
            found.violations.len()
        );
        if !found.violations.is_empty() {
            worst = ExitCode::FAILURE;
        }
    }
    worst
}
