//! The order of worlds: most bugs show in quick worlds, and a few slow worlds take most of the time.

use crate::run::{Options, plan_of};
use crate::swarm::Plan;

/// Within a window of this many worlds, quick worlds come first.
const WINDOW: u64 = 128;

/// The seeds below `seeds`, in the best order for runs.
pub fn first(seeds: u64, options: &Options) -> impl Iterator<Item = u64> {
    (0..seeds).step_by(WINDOW as usize).flat_map(move |from| {
        let mut window: Vec<(u64, u64)> =
            (from..seeds.min(from + WINDOW)).map(|seed| (cost(&plan_of(seed, options)), seed)).collect();
        window.sort_unstable();
        window.into_iter().map(|(_, seed)| seed)
    })
}

/// The approximate number of commands in a world that never comes right.
fn cost(plan: &Plan) -> u64 {
    let config = &plan.config;
    let (lease, scan) = (config.lease_duration().0, config.scan_interval().0);
    let (workers, shards) = (u64::from(plan.workers), u64::from(plan.shards) + 20);
    let balance = shards * scan / u64::from(config.max_steals().max(1));
    let waits = plan.fault_us + 10 * lease + 20 * scan + balance;
    let reader = config.reader();
    let reads = waits / reader.idle_interval().max(reader.min_interval()).0.max(1);
    let renewals = waits / config.renew_interval().0.max(1);
    (reads + renewals) * shards + waits / scan.max(1) * workers
}
