//! What varies between runs of the model.

use crate::config::ReaderConfig;
use crate::reader::Feeds;
use crate::time::Span;
use proptest::prelude::*;

/// What varies from case to case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) records: u64,
    pub(super) start: u64,
    /// Failures and losses per mille.
    pub(super) failures: u64,
    /// Between two records, in milliseconds at most.
    pub(super) spacing: u64,
    /// Of a batch's processing, in milliseconds at most.
    pub(super) work: u64,
    pub(super) feeds: Feeds,
    pub(super) cfg: ReaderConfig,
}

pub(super) fn cases() -> impl Strategy<Value = Case> {
    let cfg = (1u32..9, 200u64..400, 0u64..3_000, 100u64..20_000, 1u64..2_000, 1u32..5).prop_map(
        |(max_records, min, idle, bytes_per_second, buffer_bytes, buffer_batches)| ReaderConfig {
            max_records,
            min_interval: Span::from_millis(min),
            idle_interval: Span::from_millis(idle),
            bytes_per_second,
            buffer_bytes,
            buffer_batches,
            ..ReaderConfig::default()
        },
    );
    let spacing = prop_oneof![Just(0u64), 1u64..3_000];
    let work = prop_oneof![Just(0u64), 1u64..2_000, Just(400_000u64)];
    let feeds = prop_oneof![Just(Feeds::Iterators), Just(Feeds::Both), Just(Feeds::Subscriptions)];
    (any::<u64>(), 0u64..150, 0u64..4, 0u64..400, spacing, work, feeds, cfg).prop_map(
        |(seed, records, start, failures, spacing, work, feeds, cfg)| Case {
            seed,
            records,
            start,
            failures,
            spacing,
            work,
            feeds,
            cfg,
        },
    )
}
