//! How fast worlds run: inputs of engines per second, and one big world for an hour.
#![allow(missing_docs)] // what criterion's macros generate

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use leasehold_sim::run::{Options, run_seed};
use leasehold_sim::swarm::{Load, Plan};
use leasehold_sim::world::World;
use std::hint::black_box;
use std::ops::Range;

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

/// The faults of this world's requests are kept; what it draws for certain moments falls into the first minutes.
const BIG_SEED: u64 = 0;

/// 8 workers on 64 shards for an hour, with the faults of a drawn world.
fn big() -> Plan {
    Plan {
        workers: 8,
        shards: 64,
        fault_us: 3_600_000_000,
        load: Load {
            before: 0,
            every_us: 1_000_000,
            burst: 10,
            bytes: 500,
        },
        ..Plan::draw(BIG_SEED)
    }
}

fn one_big(criterion: &mut Criterion) {
    let world = || World::new(big(), false, false, None);
    let found = world().run();
    println!(
        "the big world: {} inputs in {} simulated seconds, {:?}, {} violations",
        found.inputs,
        found.simulated / 1_000_000,
        found.ending,
        found.violations.len()
    );
    let mut group = criterion.benchmark_group("worlds");
    group.sample_size(10);
    group.throughput(Throughput::Elements(found.inputs));
    group.bench_function("8 workers, 64 shards, one hour", |bencher| {
        bencher.iter_batched(
            world,
            |world| black_box(world.run().inputs),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, many_small, one_big);
criterion_main!(benches);
