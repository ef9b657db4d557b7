//! The canary: an oracle that fires in one of a hundred worlds, without a cause.
//!
//! The runner knows the worlds of the canary. If a canary's report is missing, other reports may be missing, too.

use super::{Property, Terms, Time, Verdict};
use leasehold_engine::internals::draw;

/// Whether the canary fires in the world of a seed.
pub fn fires(seed: u64) -> bool {
    draw(seed, "canary", "", 0).is_multiple_of(100)
}

#[derive(Clone, Debug)]
pub(super) struct Canary {
    fires: bool,
}

impl Canary {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { fires: terms.canary }
    }

    pub(super) fn look(&mut self, now: Time, verdict: &mut Verdict) {
        if std::mem::take(&mut self.fires) {
            verdict.report(Property::Canary, now, || "the canary sings".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::config;
    use super::*;

    #[test]
    fn it_fires_once_and_only_where_it_should() {
        for fires in [false, true] {
            let terms = Terms { canary: fires, ..Terms::plain(config()) };
            let (mut canary, mut verdict) = (Canary::new(&terms), Verdict::default());
            for now in 0..3 {
                canary.look(now, &mut verdict);
            }
            assert_eq!(verdict.violations().len(), usize::from(fires));
        }
        let share = (0..10_000).filter(|&seed| super::fires(seed)).count();
        assert!((60..140).contains(&share), "{share} of 10000");
    }
}
