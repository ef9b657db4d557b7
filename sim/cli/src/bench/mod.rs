//! `leasehold bench`: how fast this machine runs the parts, in a few seconds each.
//!
//! The measurements are those of the criterion benchmarks, with less patience: medians of a few rounds.

use crate::exit::{self, Failure, Verdict};
use clap::Args;
use leasehold_engine::config::ReaderConfig;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Fetched, Outcome, Reply};
use leasehold_engine::internals::reader::{Ctx, Reader, Start, Want};
use leasehold_engine::position::Position;
use leasehold_engine::testkit::Holding;
use leasehold_engine::time::{Mono, Span};
use leasehold_sim::run::{Options, run_seed};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

/// Measure the engine, the simulator and the reader of a shard on this machine, on one core.
///
/// Each figure is the median of some rounds. Without an option, all are measured.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold bench --engine --json")]
pub(super) struct BenchArgs {
    /// The cost of a renewal or a tick for a worker with 1,000, 10,000 and 100,000 leases.
    #[arg(long)]
    engine: bool,
    /// Inputs of engines that the simulator takes in a second, with all oracles.
    #[arg(long)]
    sim: bool,
    /// Reads of a shard that the reader takes through in a second: asked for, answered, handed over, processed.
    #[arg(long)]
    reader: bool,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The number of rounds for each measurement. An odd number has a median.
const ROUNDS: usize = 5;
/// Inputs of one round of the engine.
const INPUTS: u32 = 200_000;
/// Reads of one round of the reader.
const READS: u32 = 400_000;
/// The worlds of one round of the simulator: every size, and every family of faults.
const SEEDS: Range<u64> = 0..16;

pub(super) fn run(args: &BenchArgs) -> Result<Verdict, Failure> {
    if cfg!(debug_assertions) {
        eprintln!("this program checks its assertions and is slower for it: build it with --release");
    }
    let all = !(args.engine || args.sim || args.reader);
    let mut figures: BTreeMap<String, f64> = BTreeMap::new();
    if all || args.engine {
        for leases in [1_000, 10_000, 100_000] {
            let name = format!("engine_ns_per_input_with_{leases}_leases");
            figures.insert(name, rounded(engine_ns(leases)));
        }
    }
    if all || args.reader {
        let ns = reader_ns();
        figures.insert("reader_ns_per_read".into(), rounded(ns));
        figures.insert("reader_reads_per_second".into(), (1e9 / ns).round());
    }
    if all || args.sim {
        figures.insert("sim_inputs_per_second_and_core".into(), sim_inputs_per_second().round());
    }
    exit::show(args.json, &figures, || {
        let lines = figures.iter().map(|(name, figure)| format!("{name:<42}{figure:>14}"));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Verdict::Fine)
}

/// A tenth is more than can be told from one run to the next.
fn rounded(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

fn median(mut figures: [f64; ROUNDS]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[ROUNDS / 2]
}

/// Nanoseconds for each of so many repetitions.
fn ns_each(count: u32, mut work: impl FnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..count {
        work();
    }
    began.elapsed().as_nanos() as f64 / f64::from(count)
}

fn engine_ns(leases: u32) -> f64 {
    let mut bench = Holding::leases(leases);
    median([(); ROUNDS].map(|()| ns_each(INPUTS, || bench.renew_or_tick())))
}

/// Every world once in each round. The same seeds are the same worlds on every machine.
fn sim_inputs_per_second() -> f64 {
    let options = Options::default();
    median([(); ROUNDS].map(|()| {
        let began = Instant::now();
        let inputs: u64 = SEEDS.map(|seed| run_seed(seed, &options).found.inputs).sum();
        black_box(inputs) as f64 / began.elapsed().as_secs_f64()
    }))
}

fn reader_ns() -> f64 {
    let mut bench = ReaderBench::new();
    median([(); ROUNDS].map(|()| ns_each(READS, || bench.read())))
}

/// A reader whose shard always has another hundred records, and whose clock is always at the next deadline.
struct ReaderBench {
    reader: Reader,
    config: ReaderConfig,
    now: Mono,
    ops: u64,
    records: u64,
}

impl ReaderBench {
    const BATCH: u32 = 100;

    fn new() -> Self {
        let now = Mono(1_000_000);
        let mut bench = Self {
            reader: Reader::new(Start::TrimHorizon, now),
            config: ReaderConfig::default(),
            now,
            ops: 0,
            records: 0,
        };
        bench.answer(Reply::Iterator);
        bench
    }

    /// Waits for the next command, and answers the command.
    fn answer(&mut self, reply: Reply) {
        self.now = self.now.max(self.reader.wake_at(&self.config));
        let want = black_box(self.reader.next(self.now, &self.config));
        self.ops += 1;
        let op = OpId { life: 1, n: self.ops };
        self.reader.sent(op, self.now, want.map_or(0, Want::limit));
        let ctx = Ctx {
            cfg: &self.config,
            retry_min: Span::from_millis(100),
            retry_max: Span::from_secs(5),
            stream_lag: Span::from_secs(20),
            stream_timeout: Span::from_secs(15),
            seed: 7,
            subject: "shard",
        };
        let outcome = Outcome::Applied(reply);
        black_box(self.reader.fetched(op, self.now, &outcome, &ctx));
    }

    fn read(&mut self) {
        let first = self.records + 1;
        self.records += u64::from(Self::BATCH);
        let position = |record: u64| Some(Position::of(record.into()));
        self.answer(Reply::Records(Fetched {
            count: Self::BATCH,
            bytes: 100 * u64::from(Self::BATCH),
            first: position(first),
            last: position(self.records),
            behind_ms: 1,
            ..Fetched::default()
        }));
        if let Some(batch) = self.reader.front() {
            self.reader.delivered();
            self.reader.processed(batch.batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_what_lies_in_the_middle() {
        assert_eq!(median([9.0, 1.0, 3.0, 100.0, 2.0]), 3.0);
    }

    #[test]
    fn every_read_is_processed_whole() {
        let mut bench = ReaderBench::new();
        for read in 1..=50 {
            bench.read();
            let through = Position::of((u64::from(ReaderBench::BATCH) * read).into());
            assert_eq!(bench.reader.watermark(), Some(through));
        }
        assert_eq!(bench.reader.buffered_batches(), 0);
    }

    #[test]
    fn the_engine_renews_all_along() {
        let mut bench = Holding::leases(50);
        assert!(ns_each(1_000, || bench.renew_or_tick()) > 0.0);
    }
}
