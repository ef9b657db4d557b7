//! A world as a text that people read, edit and commit.
//!
//! A scenario says everything a world begins with: how workers are configured, what is written, and every fault. What is
//! not said is as it should be. The format is TOML; lengths of time are texts such as `"1.25 s"`.

mod limits;
pub mod span;
mod text;

pub use text::BadScenario;

use crate::oracles::Property;
use crate::swarm::Plan;

/// A world, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// The property that is violated; none: everything must come right.
    pub violates: Option<Property>,
    /// The deliberate bug that is needed for that, by its name.
    pub mutant: Option<String>,
    /// The world.
    pub plan: Plan,
}
