//! The report about a failed world.

use super::fault::Secs;
use super::stage::Failure;
use std::fmt;

/// The number of lines in the story of a failure.
const STORY: usize = 40;

/// A failed world, with the faults without which the world succeeds.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// What does not hold.
    pub failure: Failure,
    /// The needed faults, with their numbers.
    pub needed: Vec<(usize, String)>,
    /// The number of drawn faults.
    pub drawn: usize,
    /// What happened.
    pub story: Vec<String>,
    /// The command that repeats exactly this run.
    pub repeat: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { property, what, at } = &self.failure;
        writeln!(f, "the world of seed {} fails at {}: {property}: {what}", self.seed, Secs(*at))?;
        match self.needed.len() {
            0 => writeln!(f, "it fails without any fault")?,
            count => writeln!(f, "it needs {count} of its {} faults:", self.drawn)?,
        }
        for (number, fault) in &self.needed {
            writeln!(f, "  {number}: {fault}")?;
        }
        writeln!(f, "what happened, at the end:")?;
        for happened in self.story.iter().skip(self.story.len().saturating_sub(STORY)) {
            writeln!(f, "  {happened}")?;
        }
        write!(f, "to repeat it: {}", self.repeat)
    }
}
