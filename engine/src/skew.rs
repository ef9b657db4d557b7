//! Time that the monotonic clock did not count, as the wall clock shows it.
//!
//! The monotonic clock of a machine may stand while the machine is suspended: a virtual machine during a snapshot, or a
//! laptop asleep. Other workers take the machine's leases meanwhile. When the wall clock is set right afterwards, it is
//! further ahead of the monotonic clock than before. A wall clock corrected by an operator is ahead, too: the two cases
//! look the same, and the reaction to them is cheap.
//!
//! Only differences count. A wall clock that is wrong, runs backwards or stands tells nothing.

use crate::config::Config;
use crate::time::{Mono, Span, Wall};

/// A difference up to this span is not noticed: the clocks are read one after the other, and a wall clock is corrected
/// in small steps.
pub const UNNOTICED: Span = Span::from_millis(250);

/// Of a wall clock that jumps forward again and again, this many holds are believed at once. Later jumps are believed
/// up to one hold in each hold of time.
const PATIENCE: u64 = 16;

/// The two clocks, as of the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skew {
    /// The reading of the monotonic clock.
    at: Mono,
    /// How far the wall clock was ahead of the monotonic clock, in µs; less the later loss.
    ahead: i128,
    /// How far the two may part in a second, in µs.
    drift_ppm: u64,
    /// The most that counts at once: no belief lasts longer.
    hold: Span,
    /// How much more of the wall clock is believed.
    patience: Span,
    /// A notice has said that the wall clock is not believed.
    told: bool,
}

/// The wall clock went further than the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// By this span. Beliefs end earlier by the same span.
    Time(Span),
    /// By this span, and too often lately: the wall clock is at fault. `again`: an earlier notice has said this.
    Ignored {
        /// By how much.
        by: Span,
        /// Not for the first time since the wall clock was last believed.
        again: bool,
    },
}

impl Skew {
    /// The clocks at a first look.
    pub fn new(config: &Config, at: Mono, wall: Wall) -> Self {
        let hold = config.hold();
        Self {
            at,
            ahead: ahead(at, wall),
            drift_ppm: u64::from(config.clock_rate_error_ppm).saturating_mul(2),
            hold,
            patience: hold.times(PATIENCE),
            told: false,
        }
    }

    /// How much time the monotonic clock has not counted since the last look; none if the wall clock does not show more than
    /// [`UNNOTICED`], or is not believed.
    pub fn missed(&self, at: Mono, wall: Wall) -> Span {
        match self.clone().look(at, wall) {
            Some(Missed::Time(span)) => span,
            _ => Span::ZERO,
        }
    }

    /// Looks at the clocks.
    pub fn look(&mut self, at: Mono, wall: Wall) -> Option<Missed> {
        let passed = at.since(self.at);
        self.at = self.at.max(at);
        self.patience = (self.patience + passed).min(self.hold.times(PATIENCE));
        let drift = i128::from(passed.scaled(self.drift_ppm, 1_000_000).0);
        let now = ahead(self.at, wall);
        let grown = now - self.ahead;
        if grown <= drift + i128::from(UNNOTICED.0) {
            self.ahead = now.min(self.ahead + drift);
            return None;
        }
        self.ahead = now;
        let by = Span(u64::try_from(grown).unwrap_or(u64::MAX));
        let cost = by.min(self.hold);
        if cost > self.patience {
            let again = std::mem::replace(&mut self.told, true);
            return Some(Missed::Ignored { by, again });
        }
        self.patience = Span(self.patience.0 - cost.0);
        self.told = false;
        Some(Missed::Time(by))
    }
}

fn ahead(at: Mono, wall: Wall) -> i128 {
    i128::from(wall.0) * 1_000 - i128::from(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Both clocks, in seconds.
    fn clocks(at: u64, wall: i64) -> (Mono, Wall) {
        (Mono(at * SECOND), Wall(wall * 1_000))
    }

    fn skew() -> Skew {
        let (at, wall) = clocks(100, 5_000);
        Skew::new(&Config::default(), at, wall)
    }

    fn look(skew: &mut Skew, at: u64, wall: i64) -> Option<Missed> {
        let (at, wall) = clocks(at, wall);
        let asked = skew.missed(at, wall);
        let seen = skew.look(at, wall);
        let expected = match seen {
            Some(Missed::Time(span)) => span,
            _ => Span::ZERO,
        };
        assert_eq!(asked, expected, "a question and a look agree");
        assert_eq!(skew.missed(at, wall), Span::ZERO, "what was seen is not seen again");
        seen
    }

    #[test]
    fn clocks_that_go_together_show_nothing() {
        let mut skew = skew();
        for second in 1..1_000 {
            assert_eq!(look(&mut skew, 100 + second, 5_000 + second as i64), None);
        }
    }

    #[test]
    fn uncounted_time_of_the_monotonic_clock_is_seen_once() {
        let mut skew = skew();
        assert_eq!(look(&mut skew, 101, 5_001), None);
        assert_eq!(look(&mut skew, 102, 5_062), Some(Missed::Time(Span::from_secs(60))));
        assert_eq!(look(&mut skew, 103, 5_063), None);
    }

    #[test]
    fn many_small_jumps_add_up() {
        let config = Config::default().with_clock_rate_error_ppm(0);
        let mut skew = Skew::new(&config, Mono(0), Wall(0));
        let mut missed = Span::ZERO;
        for n in 1..=100u64 {
            let (at, wall) = (Mono(n * SECOND), Wall(n as i64 * 1_100));
            if let Some(Missed::Time(span)) = skew.look(at, wall) {
                missed = missed + span;
            }
        }
        assert!(missed >= Span(9_750_000), "{missed} of 10 s");
    }

    #[test]
    fn a_rate_within_the_promise_is_no_jump() {
        // One clock is as slow as promised, the other clock as fast.
        let mut skew = Skew::new(&Config::default(), Mono(0), Wall(0));
        for n in 1..=10_000u64 {
            let (at, wall) = (Mono(n * 990_000), Wall(n as i64 * 1_009));
            assert_eq!(skew.look(at, wall), None, "after {n} s");
        }
    }

    #[test]
    fn a_wall_clock_going_back_tells_nothing_until_time_comes_after() {
        let mut skew = skew();
        assert_eq!(look(&mut skew, 101, 1_000), None);
        assert_eq!(look(&mut skew, 150, 1_000), None);
        let forward = look(&mut skew, 151, 5_051);
        assert_eq!(forward, Some(Missed::Time(Span::from_secs(4_050))));
    }

    #[test]
    fn a_jumping_wall_clock_is_believed_once_in_a_belief() {
        let mut skew = skew();
        let (mut believed, mut told) = (Vec::new(), 0);
        for second in 1..=300u64 {
            match look(&mut skew, 100 + second, 5_000 + second as i64 * 3_600) {
                Some(Missed::Time(_)) => believed.push(second),
                Some(Missed::Ignored { again, .. }) => told += u64::from(!again),
                None => panic!("each is seen"),
            }
        }
        let hold = Config::default().hold().0 / SECOND;
        let late = believed.iter().filter(|second| **second > 100).count() as u64;
        assert!(late <= 200 / hold + 1 && late >= 200 / (hold + 2), "{believed:?}");
        assert!(told <= believed.len() as u64, "each time of distrust is told once");
    }

    #[test]
    fn no_clock_overflows() {
        for wall in [i64::MIN, -1, 0, i64::MAX] {
            for at in [0, u64::MAX - 1] {
                let mut skew = Skew::new(&Config::default(), Mono(at), Wall(wall));
                for wall in [i64::MAX, i64::MIN, i64::MAX] {
                    skew.look(Mono(u64::MAX - 1), Wall(wall));
                    skew.look(Mono(0), Wall(wall));
                }
            }
        }
    }
}
