//! The clocks of one worker: a monotonic one with a rate error, a wall clock that may jump or stand still.

use crate::oracles::Time;
use crate::swarm::EPOCH_MS;
use leasehold_engine::time::{Mono, Wall};

/// A worker's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Time,
    offset: u64,
    ppm: i64,
    wall_offset_ms: i64,
    frozen: Option<Wall>,
}

impl Clock {
    /// Clocks of a process that starts at `started`, whose monotonic clock shows `offset` then.
    pub fn new(started: Time, offset: u64, ppm: i64) -> Self {
        Self {
            started,
            offset,
            ppm,
            wall_offset_ms: 0,
            frozen: None,
        }
    }

    /// A new process on the same machine: the monotonic clock begins anew.
    pub fn restart(&mut self, started: Time, offset: u64) {
        (self.started, self.offset) = (started, offset);
    }

    /// What the monotonic clock shows.
    pub fn mono(&self, now: Time) -> Mono {
        let elapsed = now.saturating_sub(self.started);
        let error = elapsed as i64 * self.ppm / 1_000_000;
        Mono(self.offset + elapsed.saturating_add_signed(error))
    }

    /// The first moment at which the monotonic clock shows at least this.
    pub fn when(&self, mono: Mono) -> Time {
        if mono == Mono::NEVER {
            return Time::MAX;
        }
        let wanted = mono.0.saturating_sub(self.offset);
        let rate = 1_000_000 + self.ppm;
        // Months fit a word; what lies beyond takes a division of 128 bits.
        let guess = match (wanted.checked_mul(1_000_000), u64::try_from(rate)) {
            (Some(scaled), Ok(rate)) => scaled / rate,
            _ => (i128::from(wanted) * 1_000_000 / i128::from(rate)) as u64,
        };
        let mut time = self.started.saturating_add(guess.saturating_sub(2));
        while self.mono(time) < mono {
            time += 1;
        }
        time
    }

    /// What the wall clock shows.
    pub fn wall(&self, now: Time) -> Wall {
        self.frozen
            .unwrap_or(Wall(EPOCH_MS + (now / 1_000) as i64 + self.wall_offset_ms))
    }

    /// The wall clock jumps, and perhaps stands still from then on.
    pub fn step(&mut self, now: Time, by_ms: i64, freeze: bool) {
        self.wall_offset_ms += by_ms;
        self.frozen = None;
        if freeze {
            self.frozen = Some(self.wall(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_found_again_whatever_the_rate() {
        for ppm in [-200_000, -1, 0, 7, 50_000] {
            let clock = Clock::new(1_000, 77, ppm);
            for now in [1_000, 1_001, 5_000_000, 600_000_123] {
                let mono = clock.mono(now);
                let when = clock.when(mono);
                assert!(clock.mono(when) >= mono && when <= now, "{ppm} ppm at {now}");
                assert!(when == 1_000 || clock.mono(when - 1) < mono, "{ppm} ppm at {now}");
            }
        }
        assert_eq!(Clock::new(0, 0, 0).when(Mono::NEVER), Time::MAX);
    }

    #[test]
    fn a_frozen_wall_clock_stands_until_the_next_step() {
        let mut clock = Clock::new(0, 0, 0);
        clock.step(1_000_000, -500, true);
        assert_eq!(clock.wall(9_000_000), clock.wall(1_000_000));
        assert_eq!(clock.mono(9_000_000), Mono(9_000_000));
        clock.step(9_000_000, 500, false);
        assert_eq!(clock.wall(9_000_000), Wall(EPOCH_MS + 9_000));
    }
}
