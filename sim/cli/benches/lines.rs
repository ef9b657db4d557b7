//! How fast `leasehold consume` makes lines of records.
#![allow(missing_docs, reason = "criterion's macros generate it")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold_cli::consume::line::{Line, Payload};
use leasehold_engine::time::Wall;
use std::hint::black_box;

fn lines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lines");
    for bytes in [100, 10 << 10] {
        // Text that needs an escape now and then, as JSON in JSON does.
        let data: Vec<u8> = (0..bytes).map(|n| b"{\"n\":1234567,\"s\":\"abcdefgh\"}"[n % 29]).collect();
        let line = Line {
            shard: "shardId-000000000000",
            token: 17,
            position: leasehold_engine::position::Position {
                sequence: "49590338271490256608559692538361571095921575989136588898"
                    .parse()
                    .expect("a sequence number"),
                sub: 0,
            },
            partition_key: "customer-4711",
            data: &data,
            arrival: Some(Wall(1_738_324_800_250)),
        };
        group.throughput(Throughput::Bytes(bytes as u64));
        for (name, payload) in [("base64", Payload::Base64), ("text", Payload::Text)] {
            let mut out = Vec::new();
            group.bench_function(BenchmarkId::new(name, bytes), |bencher| {
                bencher.iter(|| {
                    out.clear();
                    line.append_to(&mut out, payload);
                    black_box(out.len())
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, lines);
criterion_main!(benches);
