//! The longest waits of a worker's requests, by its configuration.

use super::super::Terms;
use leasehold_engine::config::Config;
use leasehold_engine::time::Span;

/// Events at a deadline take a moment, in µs.
pub(super) const SLACK_US: u64 = 250_000;

/// The longest time without a request on a lane, in µs.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) renewal: u64,
    pub(super) checkpoint: u64,
    pub(super) scan: u64,
    pub(super) setup: u64,
    pub(super) rest: u64,
    /// The longest pause after each number of failures in a row, less one.
    pub(super) pauses: Vec<u64>,
}

impl Bounds {
    pub(super) fn new(terms: &Terms) -> Self {
        let of = |span: &dyn Fn(&Config) -> Span| terms.longest(span) + SLACK_US;
        let pause = |failures: u32| {
            of(&move |config: &Config| config.retry_min().times(1 << failures).min(config.retry_max()))
        };
        Self {
            renewal: of(&|config| config.renew_interval()),
            checkpoint: of(&|config| config.checkpoint_interval()),
            scan: of(&|config| config.scan_interval() + config.scan_interval().per(20) + Span(1)),
            // A stream or table in a passing state is described once a second, or as often as allowed. With several
            // streams, a stream not found is given up only after answers over half of `stream_lag`.
            setup: of(&|config| {
                let apart = match config.streams() {
                    [_, _, ..] => config.stream_lag().per(2),
                    _ => Span::ZERO,
                };
                apart.max(config.retry_min()).max(Span::from_secs(1))
            }),
            rest: of(&|config| config.scan_interval().max(Span::from_secs(2))),
            pauses: (0..20).map(pause).collect(),
        }
    }

    /// The longest pause after this many failures.
    pub(super) fn pause(&self, failures: u32) -> u64 {
        let longest = self.pauses.len() - 1;
        match failures {
            0 => SLACK_US,
            _ => self.pauses[longest.min(failures as usize - 1)],
        }
    }
}
