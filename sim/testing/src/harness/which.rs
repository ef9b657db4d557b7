//! The worlds to run: the test's own worlds, or worlds named by the environment.

use std::env;
use std::fmt;
use std::ops::Range;

/// Runs one world instead of the test's worlds: `17`, or `17:2,5` with only these faults.
pub const SEED: &str = "LEASEHOLD_CHAOS_SEED";

/// One world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    pub seed: u64,
    /// The numbers of the remaining faults; absent: all.
    pub faults: Option<Vec<usize>>,
}

/// Runs the worlds of these seeds instead of the test's worlds: `0..5000`.
const SEEDS: &str = "LEASEHOLD_CHAOS_SEEDS";

/// The worlds to run.
pub fn worlds(seeds: impl IntoIterator<Item = u64>) -> Vec<Which> {
    let all = |seed| Which { seed, faults: None };
    if let Some(text) = asked(SEED) {
        match Which::parse(&text) {
            Some(which) => vec![which],
            None => panic!(
                "expected {SEED} to be a seed and numbers of faults, such as 17 or 17:2,5, found {text:?}; take it from the message \
                 of the test that failed"
            ),
        }
    } else if let Some(text) = asked(SEEDS) {
        match range(&text) {
            Some(range) => range.map(all).collect(),
            None => panic!("expected {SEEDS} to be a range of seeds, such as 0..5000, found {text:?}"),
        }
    } else {
        seeds.into_iter().map(all).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "what a person asks for, who looks for worlds or repeats one")]
fn asked(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

/// Reads a range of seeds, such as `0..5000`.
pub fn range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.trim().parse().ok()?..to.trim().parse().ok()?)
}

impl Which {
    /// The numbers of the faults that are left of all.
    pub fn left<T>(&self, all: &[T]) -> Vec<usize> {
        let is_left = |number: &usize| self.faults.as_ref().is_none_or(|some| some.contains(number));
        (0..all.len()).filter(is_left).collect()
    }

    /// Reads a world as `Display` shows it.
    pub fn parse(text: &str) -> Option<Self> {
        let (seed, faults) = match text.split_once(':') {
            Some((seed, faults)) => (seed, Some(faults)),
            None => (text, None),
        };
        let numbers = |text: &str| -> Option<Vec<usize>> {
            let parts = text.split(',').filter(|part| !part.is_empty());
            parts.map(|part| part.trim().parse().ok()).collect()
        };
        Some(Self {
            seed: seed.trim().parse().ok()?,
            faults: match faults {
                Some(text) => Some(numbers(text)?),
                None => None,
            },
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        let Some(faults) = &self.faults else {
            return Ok(());
        };
        let numbers: Vec<String> = faults.iter().map(ToString::to_string).collect();
        write!(f, ":{}", numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_world_that_is_run() {
        let which = |seed, faults| Some(Which { seed, faults });
        assert_eq!(Which::parse("17"), which(17, None));
        assert_eq!(Which::parse("17:"), which(17, Some(vec![])));
        assert_eq!(Which::parse("17:2,5"), which(17, Some(vec![2, 5])));
        for bad in ["", "x", "17:a", ":3", "-1"] {
            assert_eq!(Which::parse(bad), None, "{bad}");
        }
        assert_eq!((range("3..9"), range("3-9"), range("..9")), (Some(3..9), None, None));
    }
}
