//! The work of a worker of a large fleet after a whole scan, and the memory for each lease.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "only the end of a scan is measured, and not the scan before it"
)]
#![allow(missing_docs, reason = "criterion's macros generate it")]
#![allow(clippy::disallowed_macros, reason = "a benchmark prints what it counts")]

use criterion::{Criterion, criterion_group, criterion_main};
use leasehold_engine::testkit::{Fleet, Holding};
use std::hint::black_box;
use std::time::{Duration, Instant};

const LEASES: u32 = 100_000;
const WORKERS: u32 = 1_000;

/// The time is that of one input: the last page of a scan, without rows. This input leads to all work that a worker
/// does once in a scan interval: it counts the leases, takes or requests missing leases, works out the leader, and
/// looks for holes and for finished leases.
fn assignment_round(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("assignment round, 100,000 leases, 1,000 workers");
    group.sample_size(10);
    let mut rest = Fleet::at_rest(LEASES, WORKERS);

    // Other owners have renewed their leases between any two scans, as always.
    group.bench_function("nothing changed", |bencher| {
        bencher.iter_custom(|rounds| time_at_rest(&mut rest, rounds));
    });

    let half = WORKERS / 2;
    let mut dead = rest.clone();
    dead.die(half..WORKERS);
    let mut uneven = rest.clone();
    uneven.gather(1..half);
    let mut free = rest;
    free.free();
    let cases = [
        ("half of the workers died", dead),
        ("half of the workers gave all to the rest", uneven),
        ("all other workers left", free),
    ];
    for (name, mut fleet) in cases {
        fleet.come_to_last_page();
        println!("{name}: {} commands", fleet.clone().end_scan());
        group.bench_function(format!("much to move: {name}"), |bencher| {
            bencher.iter_custom(|rounds| time_with_much_to_move(&fleet, rounds));
        });
    }
    group.finish();
}

/// The same input for the leader of a fleet of KCL 3.x. The leader weighs all leases by their throughput, moves leases
/// until loads are even, and assigns free leases; the last page also has the reports of all other workers.
fn round_of_a_leader(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round of a leader, 100,000 leases, 1,000 workers");
    group.sample_size(10);
    let mut rest = Fleet::led(LEASES, WORKERS);
    group.bench_function("nothing to move", |bencher| {
        bencher.iter_custom(|rounds| time_at_rest(&mut rest, rounds));
    });
    rest.free();
    rest.come_to_last_page();
    println!("all is free: {} commands", rest.clone().end_scan());
    group.bench_function("all is free", |bencher| {
        bencher.iter_custom(|rounds| time_with_much_to_move(&rest, rounds));
    });
    group.finish();
}

/// Rounds one after another, each carried out.
fn time_at_rest(fleet: &mut Fleet, rounds: u64) -> Duration {
    let mut time = Duration::ZERO;
    for _ in 0..rounds {
        fleet.come_to_last_page();
        time += time_of_end(fleet);
        fleet.carry_out();
    }
    time
}

/// The same round so many times.
fn time_with_much_to_move(fleet: &Fleet, rounds: u64) -> Duration {
    let mut time = Duration::ZERO;
    for _ in 0..rounds {
        let mut fleet = fleet.clone();
        time += time_of_end(&mut fleet);
        black_box(fleet);
    }
    time
}

fn time_of_end(fleet: &mut Fleet) -> Duration {
    let begin = Instant::now();
    black_box(fleet.end_scan());
    begin.elapsed()
}

/// Bytes that stay allocated, by the number of known leases, and of held leases.
fn memory(_: &mut Criterion) {
    let mut kept: Option<Fleet> = None;
    let known = allocation_counter::measure(|| {
        let mut fleet = Fleet::at_rest(LEASES, WORKERS);
        fleet.drop_table();
        kept = Some(fleet);
    });
    println!("memory: {} bytes for a known lease", known.bytes_current / i64::from(LEASES));
    drop(kept);
    let mut kept: Option<Holding> = None;
    let held = allocation_counter::measure(|| {
        kept = Some(Holding::leases(LEASES));
    });
    println!("memory: {} bytes for a held lease", held.bytes_current / i64::from(LEASES));
    drop(kept);
}

criterion_group!(benches, memory, assignment_round, round_of_a_leader);
criterion_main!(benches);
