//! Worlds of several streams.

use super::Plan;
use crate::draws::Draws;
use crate::streams::Streams;
use leasehold_engine::time::Span;

impl Plan {
    /// The same world with this number of streams.
    pub(crate) fn of_streams(mut self, streams: u32) -> Self {
        self.streams = streams;
        let streams = self.streams();
        self.configure(|config| streams.configured(config));
        self
    }

    /// The streams of the world.
    pub(crate) fn streams(&self) -> Streams {
        Streams::new(self.streams)
    }

    /// The same world with one stream, if the world has several.
    pub(super) fn of_one_stream(self) -> Self {
        let (workers, shards, length_us) = (self.workers, self.shards, self.fault_us);
        match self.streams {
            1 => self,
            _ => self.of_streams(1).resized(workers, shards, length_us),
        }
    }

    /// In half of the worlds of several streams, rows of unread streams are removed. A worker lacks a stream for six
    /// lease durations at most. So no stream but a deleted stream lacks all its readers for long enough.
    pub(super) fn forgetful(mut self) -> Self {
        let drawn = self.streams > 1 && Draws::new(self.seed).coin("stream-cleanup", 0);
        let forgets = drawn && !self.faults.several.any_is_deleted();
        self.configure(|config| {
            let delay = match forgets {
                true => config.lease_duration().times(10),
                false => Span::ZERO,
            };
            config.with_stream_cleanup_delay(delay)
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::format::Format;

    #[test]
    fn some_worlds_have_several_streams_with_as_many_shards_each() {
        let mut counts = [0; 5];
        for seed in 0..1_000 {
            let plan = Plan::draw(seed);
            counts[plan.streams as usize] += 1;
            assert!(plan.shards.is_multiple_of(plan.streams), "seed {seed}");
            let read = plan.config.streams().len() as u32;
            assert_eq!(read, if plan.streams == 1 { 0 } else { plan.streams }, "seed {seed}");
        }
        assert!(counts[2] > 90 && counts[4] > 40 && counts[1] > 750, "{counts:?}");
    }

    #[test]
    fn other_tables_and_mixed_fleets_have_one_stream() {
        for seed in 0..200 {
            let of_kinsumer = Plan::draw(seed).with_format(Format::Kinsumer);
            let mixed = Plan::draw(seed).mixed();
            for plan in [of_kinsumer, mixed] {
                assert_eq!((plan.streams, plan.config.stream()), (1, "orders"), "seed {seed}");
                assert_eq!(plan.faults.several, Default::default(), "seed {seed}");
            }
        }
    }
}
