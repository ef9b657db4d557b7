//! The cost of one input, by the number of leases held.
#![allow(missing_docs)] // what criterion's macros generate

// Shared with `leasehold bench`, which is packaged, as benchmarks are not.
#[path = "../../sim/src/cli/bench/rig.rs"]
mod rig;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold_engine::Engine;
use rig::Bench;
use std::hint::black_box;

fn renew_or_tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("renew or tick, per input");
    for leases in [1_000, 10_000, 100_000] {
        let mut bench = Bench::holding(leases);
        let allocated = allocation_counter::measure(|| {
            for _ in 0..leases * 2 {
                bench.renew_or_tick();
            }
        });
        println!(
            "{leases} leases: {} allocations in {} inputs",
            allocated.count_total,
            leases * 2
        );
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
            || Scanned::new(rows as u32),
            |(mut engine, input)| {
                let outputs = engine.handle(input).count();
                black_box((engine, outputs))
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// An engine that waits for the first page of a scan, and that page.
struct Scanned;

impl Scanned {
    #[allow(clippy::new_ret_no_self)]
    fn new(count: u32) -> (Engine, leasehold_engine::input::Input) {
        use leasehold_engine::config::Config;
        use leasehold_engine::input::*;
        use leasehold_engine::output::*;
        use leasehold_engine::time::{Mono, Wall};
        let config = Config {
            table: "app".into(),
            stream: "orders".into(),
            max_leases: 1,
            ..Config::default()
        };
        let mut engine = Engine::new();
        let mut body = Body::Boot(Box::new(Boot {
            worker: "w".into(),
            incarnation: 1,
            seed: 1,
            config,
        }));
        loop {
            let outputs: Vec<_> = engine
                .handle(Input {
                    at: Mono(1),
                    wall: Wall(0),
                    body,
                })
                .collect();
            let Some(command) = outputs.into_iter().find_map(|output| match output {
                Output::Do(command) => Some(command),
                Output::Tell(_) => None,
            }) else {
                unreachable!("boot asks for one thing after the other");
            };
            let reply = match command.effect {
                Effect::Table(TableOp::Describe) => Reply::Table(TableState::Usable),
                Effect::Stream(StreamOp::Describe) => Reply::Stream(StreamState {
                    readable: true,
                    created: Wall(1),
                }),
                _ => Reply::Page(ScanPage {
                    rows: rig::rows(count),
                    next: None,
                }),
            };
            let done = matches!(reply, Reply::Page(_));
            body = Body::Done {
                op: command.op,
                outcome: Outcome::Applied(reply),
            };
            if done {
                return (
                    engine,
                    Input {
                        at: Mono(2),
                        wall: Wall(0),
                        body,
                    },
                );
            }
        }
    }
}

criterion_group!(benches, renew_or_tick, scan_page);
criterion_main!(benches);
