//! A world as a text, for people to read, edit and commit.
//!
//! A scenario describes the whole beginning of a world: the configuration of workers, the records written, and every
//! fault. Options left out have default values. The format is TOML; lengths of time are texts such as `"1.25 s"`.

mod limits;
mod text;

pub use text::BadScenario;

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::swarm::Plan;
use crate::world::Found;

/// A world, and its expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The scenario's point, in a sentence.
    pub about: String,
    /// The property violated; none: all must come right.
    pub violates: Option<Property>,
    /// The deliberate bug needed for the violation.
    pub bug: Option<Bug>,
    /// The world.
    pub plan: Plan,
}

impl Scenario {
    /// Judges a result against the scenario. `has_bug` tells whether the scenario's bug was switched on.
    ///
    /// # Errors
    /// The difference as a sentence, if a property was violated against the scenario, or a violation is missing.
    pub fn judge(&self, found: &Found, has_bug: bool) -> Result<(), String> {
        // After a bug is mended, its scenario runs without a violation.
        let expected = self.violates.filter(|_| has_bug || self.bug.is_none());
        let violated = |property| found.violations.iter().find(|violation| violation.property == property);
        // Known behaviour of other programs beside ours is no finding against the world.
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
