//! The worlds of this tier: longer than those of `chaos`, and with faults of requests by chance.

use leasehold::{Config, ReadMode, ReaderConfig, Span};
use leasehold_local_aws::kinesis::KinesisConfig;
use leasehold_testing::harness::{Done, Draws, Scale, World};

/// The world of a seed, without a handler.
pub fn world(seed: u64) -> World {
    let draws = Draws::new(seed);
    let mut world = World::new(seed);
    world
        .scale(Scale {
            healed: healed(draws),
            rest: 150_000,
            calm: Some(|config| config.lease_duration().times(2) + config.scan_interval().times(3)),
            way: |draws, way, key| draws.between(way, key, 200, 12_000),
            // The stream must be there first.
            opens: 1_000,
            lease: 3_000..=8_000,
            weather: true,
            kinesis: KinesisConfig::default(),
            done: Done::Processed,
            shares: !settles(draws),
        })
        .workers(2..=4)
        .shards(1..=5)
        .records(800..=1_600)
        .keys(4..=24)
        .config(move |config| options(draws, config));
    world
}

/// When the last fault is over.
pub(crate) fn healed(draws: Draws) -> u64 {
    draws.between("heal", 0, 40_000, 70_000)
}

/// Whether stolen leases are left to settle.
fn settles(draws: Draws) -> bool {
    !draws.percent("settle", 0, 25)
}

fn options(draws: Draws, config: Config) -> Config {
    let ms = |name, low, high| Span::from_millis(draws.between(name, 0, low, high));
    let (lease_ms, scan) = (config.lease_duration().0 / 1_000, ms("scan", 500, 4_000));
    // Fewer than the producer writes would not be read to the end in time.
    let max_records = draws.magnitude("records-read", 0, 16, 400) as u32;
    let mode = [ReadMode::Polling, ReadMode::FanOut, ReadMode::Auto][draws.between("mode", 0, 0, 2) as usize];
    let reader = ReaderConfig::default()
        .with_mode(mode)
        .with_max_records(max_records)
        .with_min_interval(ms("read-interval", 200, 500))
        .with_idle_interval(ms("idle", 200, 1_000))
        .with_buffer_batches(draws.between("buffer", 0, 1, 4) as u32);
    config
        .with_renew_interval(Span::from_millis(lease_ms / draws.between("renew", 0, 3, 5)))
        .with_scan_interval(scan)
        .with_scan_page_limit([0, 1, 3][draws.between("page", 0, 0, 2) as usize])
        .with_table_timeout(Span::from_millis(lease_ms / draws.between("table-timeout", 0, 2, 6)))
        .with_stream_lag(scan)
        .with_stream_timeout(ms("stream-timeout", 1_000, 5_000))
        .with_retry_min(ms("retry-min", 10, 200))
        .with_retry_max(ms("retry-max", 300, 2_000))
        .with_checkpoint_interval(ms("checkpoint", 200, 3_000))
        .with_max_steals(draws.between("steals", 0, 1, 3) as u32)
        .with_steal_cooldown(settles(draws))
        .with_cleanup_delay([Span::ZERO, Span::from_secs(28)][draws.between("cleanup", 0, 0, 1) as usize])
        .with_bootstrap_delay(ms("bootstrap", 0, 1_500))
        .with_max_creates(draws.between("creates", 0, 1, 8) as u32)
        .with_shutdown_timeout(Span::from_secs(12))
        .with_handler_backoff(ms("backoff", 50, 500))
        .with_audit_confidence(Config::default().audit_confidence())
        .with_reader(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_can_work_and_none_is_empty() {
        for seed in 0..2_000 {
            let plan = world(seed).plan();
            for kind in ["split", "merge"] {
                assert!(plan.faults.iter().any(|fault| fault.kind() == kind), "seed {seed}: {kind}");
            }
        }
    }
}
