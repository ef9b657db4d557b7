//! A world as a text that people read, edit and commit.
//!
//! A scenario says everything a world begins with: how workers are configured, what is written, and every fault. What is
//! not said is as it should be. The format is TOML; lengths of time are texts such as `"1.25 s"`.

mod limits;
mod text;

pub use text::BadScenario;

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::swarm::Plan;
use crate::world::Found;

/// A world, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// The property that is violated; none: everything must come right.
    pub violates: Option<Property>,
    /// The deliberate bug that is needed for that.
    pub bug: Option<Bug>,
    /// The world.
    pub plan: Plan,
}

impl Scenario {
    /// Whether what was found is what the scenario says; if not, the difference as a sentence. `has_bug`: the bug it names
    /// was there.
    ///
    /// # Errors
    /// If a property was violated that should not have been, or the other way round.
    pub fn judge(&self, found: &Found, has_bug: bool) -> Result<(), String> {
        // A bug that was found and mended leaves a scenario in which nothing goes wrong any more.
        let expected = self.violates.filter(|_| has_bug || self.bug.is_none());
        let violated = |property| found.violations.iter().find(|violation| violation.property == property);
        // What programs of others are known to do beside ours says nothing against the world.
        let first = match expected {
            Some(_) => found.violations.first(),
            None => found.violations.iter().find(|violation| !violation.of_others),
        };
        match (expected, first) {
            (Some(property), _) if violated(property).is_some() => Ok(()),
            (Some(property), None) => Err(format!("expected a violation of {property}, found none")),
            (Some(property), Some(other)) => Err(format!(
                "expected a violation of {property}, found one of {}: {}",
                other.property, other.summary
            )),
            (None, None) => Ok(()),
            (None, Some(found)) => Err(format!(
                "expected no violation, found one of {} after {} ms: {}",
                found.property,
                found.at / 1_000,
                found.summary
            )),
        }
    }
}
