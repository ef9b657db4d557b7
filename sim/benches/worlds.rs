//! How fast worlds run: inputs of engines per second, and one big world for an hour.
#![allow(missing_docs, reason = "criterion's macros generate it")]
#![allow(clippy::disallowed_methods, reason = "what is measured is time")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use leasehold_sim::run::{Options, run_seed};
use leasehold_sim::swarm::{Load, Plan};
use leasehold_sim::world::World;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

/// Enough to have worlds of every size and every family of faults among them.
const SEEDS: Range<u64> = 0..48;

fn many_small(criterion: &mut Criterion) {
    let options = Options::default();
    let all = || -> u64 { SEEDS.map(|seed| run_seed(seed, &options).found.inputs).sum() };
    let mut group = criterion.benchmark_group("worlds");
    group.sample_size(10);
    group.throughput(Throughput::Elements(all()));
    group.bench_function("drawn, by inputs", |bencher| {
        bencher.iter(|| black_box(all()));
    });
    group.finish();
}

/// In this world, answers are lost, late, garbled and repeated, scans are stale, handlers are slow and workers stand
/// still all the time.
const BIG_SEED: u64 = 0;

/// 8 workers on 64 shards for an hour, with the faults of a drawn world.
fn big() -> Plan {
    Plan {
        workers: 8,
        shards: 64,
        fault_us: 3_600_000_000,
        load: Load { before: 0, every_us: 1_000_000, burst: 10, bytes: 500 },
        ..Plan::draw(BIG_SEED)
    }
}

/// Too long to be repeated: it is timed once.
fn one_big(_: &mut Criterion) {
    let world = World::new(big(), &Options::default());
    let began = Instant::now();
    let found = world.run();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "8 workers, 64 shards, one hour: {seconds:.1} s for {} inputs, {:.0} inputs/s; {} simulated s, {} violations",
        found.inputs,
        found.inputs as f64 / seconds,
        found.simulated / 1_000_000,
        found.violations.len()
    );
}

criterion_group!(benches, many_small, one_big);
criterion_main!(benches);
