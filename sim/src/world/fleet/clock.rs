//! The clocks of a worker: a monotonic clock with a rate error, and a wall clock. The monotonic clock may stand while
//! the machine is suspended; the wall clock may jump or stand still.

use crate::oracles::Time;
use crate::swarm::EPOCH_MS;
use leasehold_engine::time::{Mono, Wall};

/// A worker's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    started: Time,
    offset: u64,
    ppm: i64,
    wall_offset_ms: i64,
    frozen: Option<Wall>,
    /// The beginning of the monotonic clock's standstill, together with the machine's.
    stands: Option<Time>,
    /// The delay of the wall clock since suspensions, in ms.
    behind_ms: i64,
    /// The lead over true time at which the wall clock shows the time missed by the monotonic clock, in ms.
    unshown: Option<i64>,
    was_suspended: bool,
}

impl Clock {
    /// The clocks of a process that starts at `started` with `offset` on its monotonic clock.
    pub(crate) fn new(started: Time, offset: u64, ppm: i64) -> Self {
        Self { started, offset, ppm, ..Self::default() }
    }

    /// A new process on the same machine: the monotonic clock begins anew.
    pub(crate) fn restart(&mut self, started: Time, offset: u64) {
        (self.started, self.offset) = (started, offset);
        (self.stands, self.unshown) = (None, None);
    }

    /// The machine is suspended, and its monotonic clock stands.
    pub(crate) fn stand(&mut self, now: Time) {
        let ahead = self.ahead_ms(now);
        self.stands = Some(now);
        self.unshown = Some(self.unshown.map_or(ahead, |before| before.max(ahead)));
    }

    /// The machine continues after this many µs. `wrong`: its wall clock shows nothing of that time.
    pub(crate) fn go_on(&mut self, now: Time, stood: u64, wrong: bool) {
        self.was_suspended = true;
        if self.stands.take().is_some() {
            self.started = self.started.saturating_add(stood).min(now);
        }
        if wrong {
            let behind = (stood / 1_000) as i64;
            self.behind_ms += behind;
            self.wall_offset_ms -= behind;
        }
    }

    /// The wall clock is set right after suspensions.
    pub(crate) fn set_right(&mut self) {
        self.wall_offset_ms += std::mem::take(&mut self.behind_ms);
    }

    pub(crate) fn was_suspended(&self) -> bool {
        self.was_suspended
    }

    /// Whether, since the last look, time has passed that neither clock shows.
    pub(crate) fn is_adrift(&self, now: Time) -> bool {
        self.unshown.is_some_and(|ahead| self.stands.is_some() || self.ahead_ms(now) + 2 < ahead)
    }

    /// A look at both clocks. Returns whether the clocks now show time that earlier looks missed.
    pub(crate) fn look(&mut self, now: Time) -> bool {
        let shown = self.unshown.is_some() && !self.is_adrift(now);
        if shown {
            self.unshown = None;
        }
        shown
    }

    fn ahead_ms(&self, now: Time) -> i64 {
        self.wall(now).0 - EPOCH_MS - (now / 1_000) as i64
    }

    /// The monotonic clock's time; after the last possible moment, that moment.
    pub(crate) fn mono(&self, now: Time) -> Mono {
        let elapsed = self.stands.unwrap_or(now).saturating_sub(self.started);
        // Months fit a word; longer times take 128 bits.
        let scaled = i64::try_from(elapsed).ok().and_then(|elapsed| elapsed.checked_mul(self.ppm));
        let error = match scaled {
            Some(scaled) => i128::from(scaled / 1_000_000),
            None => i128::from(elapsed) * i128::from(self.ppm) / 1_000_000,
        };
        let shown = i128::from(self.offset) + i128::from(elapsed) + error;
        Mono(shown.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// The first moment at which the monotonic clock shows at least this time; the end of time if no moment does.
    pub(crate) fn when(&self, mono: Mono) -> Time {
        if mono == Mono::NEVER {
            return Time::MAX;
        }
        if mono.0 <= self.offset {
            return self.started;
        }
        let wanted = mono.0 - self.offset;
        let Ok(rate @ 1..) = u64::try_from(self.ppm.saturating_add(1_000_000)) else {
            // The clock stands still, or runs backwards.
            return Time::MAX;
        };
        // Months fit a word; longer times take a division of 128 bits.
        let guess = match wanted.checked_mul(1_000_000) {
            Some(scaled) => scaled / rate,
            None => u64::try_from(u128::from(wanted) * 1_000_000 / u128::from(rate)).unwrap_or(u64::MAX),
        };
        // The rounding error is less than this.
        let first = self.started.saturating_add(guess.saturating_sub(2));
        (first..=first.saturating_add(4)).find(|&time| self.mono(time) >= mono).unwrap_or(Time::MAX)
    }

    /// The wall clock's time.
    pub(crate) fn wall(&self, now: Time) -> Wall {
        self.frozen.unwrap_or(Wall(EPOCH_MS + (now / 1_000) as i64 + self.wall_offset_ms))
    }

    /// The wall clock jumps, and perhaps stands still from then on.
    pub(crate) fn step(&mut self, now: Time, by_ms: i64, freeze: bool) {
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
    use leasehold_engine::time::Span;

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

    /// Signed microseconds end in the year 292278; unsigned microseconds end at twice that.
    #[test]
    fn a_moment_beyond_all_years_is_found_or_never_comes() {
        let ends = [
            i64::MAX as u64 - 1,
            i64::MAX as u64,
            i64::MAX as u64 + 1,
            u64::MAX / 2,
            u64::MAX - 2,
            u64::MAX - 1,
        ];
        for ppm in [i64::MIN, -2_000_000, -1_000_000, -999_999, -200_000, -1, 0, 1, 200_000, i64::MAX] {
            for (started, offset) in [(0, 0), (1_000, 77), (77, u64::MAX / 3), (u64::MAX / 3, 0)] {
                let clock = Clock::new(started, offset, ppm);
                for mono in ends.map(Mono) {
                    let when = clock.when(mono);
                    assert!(when >= started, "{ppm} ppm, {mono:?}");
                    if when < Time::MAX {
                        assert!(clock.mono(when) >= mono, "{ppm} ppm, {mono:?} at {when}");
                        assert!(
                            when == started || clock.mono(when - 1) < mono,
                            "{ppm} ppm, {mono:?} at {when}"
                        );
                    } else if ppm > -1_000_000 {
                        assert!(clock.mono(Time::MAX - 1) < mono, "{ppm} ppm, {mono:?} is found");
                    }
                }
            }
        }
        assert_eq!(Clock::new(5, 0, 0).when(Mono(u64::MAX - 10)), u64::MAX - 5);
        assert_eq!(Clock::new(20, 0, 0).when(Mono(u64::MAX - 10)), Time::MAX);
    }

    #[test]
    fn a_clock_that_stood_goes_on_and_the_wall_clock_shows_it() {
        for (wrong, ppm) in [(false, 0), (true, 0), (false, 50_000), (true, -50_000)] {
            let mut clock = Clock::new(1_000, 77, ppm);
            let before = clock.mono(5_000_000);
            clock.stand(5_000_000);
            assert!(clock.is_adrift(9_000_000));
            assert_eq!(clock.mono(9_000_000), before);
            clock.go_on(25_000_000, 20_000_000, wrong);
            assert_eq!(clock.mono(25_000_000), before);
            let when = clock.when(before + Span::from_secs(1));
            assert!(when.abs_diff(26_000_000) <= 53_000, "{when}");
            assert_eq!(clock.is_adrift(25_000_000), wrong);
            assert_eq!(clock.look(25_000_000), !wrong);
            clock.set_right();
            assert_eq!(clock.wall(30_000_000), Wall(EPOCH_MS + 30_000));
            assert_eq!(clock.look(30_000_000), wrong);
            assert!(!clock.look(30_000_001), "it is seen once");
        }
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
