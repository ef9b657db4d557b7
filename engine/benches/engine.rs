//! The cost of one input, by the number of leases held.
#![allow(missing_docs, reason = "criterion's macros generate it")]
#![allow(clippy::disallowed_macros, reason = "a benchmark prints what it counts")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::input::{Body, Boot, Input};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::testkit::{Driven, Holding, Services};
use leasehold_engine::time::{Mono, Wall};
use std::hint::black_box;

fn renew_or_tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("renew or tick, per input");
    for leases in [1_000, 10_000, 100_000] {
        let mut bench = Holding::leases(leases);
        let allocated = allocation_counter::measure(|| {
            for _ in 0..leases * 2 {
                bench.renew_or_tick();
            }
        });
        println!("{leases} leases: {} allocations in {} inputs", allocated.count_total, leases * 2);
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(leases), |bencher| {
            bencher.iter(|| bench.renew_or_tick());
        });
    }
    group.finish();
}

fn scan_page(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan page");
    let rows = 3_000;
    group.throughput(Throughput::Elements(rows));
    group.bench_function(BenchmarkId::new("rows", rows), |bencher| {
        bencher.iter_batched(
            || scanned(rows as u32),
            |(mut engine, input)| {
                let outputs = engine.handle(input).count();
                black_box((engine, outputs))
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// An engine that waits for the first page of a scan, and an input with this many rows.
fn scanned(rows: u32) -> (Engine, Input) {
    let (mut driven, mut services) = (Driven::default(), Services::with_shards(rows));
    let mut scan = None;
    let mut carry = |command: Command| match &command.effect {
        Effect::Table(TableOp::Scan { .. }) => {
            scan = Some((command.op, services.perform(&command)));
            None
        }
        _ => Some(services.perform(&command)),
    };
    let boot = Boot {
        worker: "w".into(),
        incarnation: 1,
        seed: 1,
        config: Config::default().with_table("app").with_stream("orders").with_max_leases(1),
    };
    let body = Body::Boot(Box::new(boot));
    let wall = Wall(0);
    driven.tell(Input { at: Mono(1), wall, body }, &mut carry);
    let (op, outcome) = scan.expect("a worker scans its table at once");
    let body = Body::Done { op, outcome };
    (driven.engine().clone(), Input { at: Mono(2), wall, body })
}

/// A plan over a stream in which each shard follows the shard before: linear but for the logarithm of lookups.
fn plan(criterion: &mut Criterion) {
    use leasehold_engine::config::InitialPosition;
    use leasehold_engine::ids::LeaseKey;
    use leasehold_engine::internals::sync;
    use leasehold_engine::position::Checkpoint;
    use leasehold_engine::shard::{HashRange, Shard};
    use std::collections::{BTreeMap, BTreeSet};

    let mut group = criterion.benchmark_group("plan, per listing");
    for count in [5_000u64, 50_000] {
        let id = |n: u64| format!("shardId-{n:012}").as_str().into();
        let shards: Vec<Shard> = (count..2 * count)
            .map(|n| Shard {
                id: id(n),
                parent: Some(id(n - 1)),
                adjacent_parent: Some(id(n - count)),
                range: HashRange::ALL,
                starting: n.into(),
                ending: (n + 1 < 2 * count).then(|| (n + 1).into()),
            })
            .collect();
        // Unfinished leases of unlisted shards with listed children.
        let forgotten = (0..count).map(|n| format!("shardId-{n:012}").as_str().into());
        let leases: BTreeMap<LeaseKey, Checkpoint> =
            forgotten.map(|key| (key, Checkpoint::TrimHorizon)).collect();
        group.throughput(Throughput::Elements(count));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let initial = InitialPosition::TrimHorizon;
                let unreadable = BTreeSet::new();
                black_box(sync::plan(&leases, &unreadable, &shards, initial, false)).is_ok()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, renew_or_tick, scan_page, plan);
criterion_main!(benches);
