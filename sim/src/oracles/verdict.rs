//! What oracles find.

use super::{Property, Time};
use serde::Serialize;

/// Something that should not have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which property.
    pub property: Property,
    /// When, in µs of true time.
    pub at: Time,
    /// What went wrong, in a sentence.
    pub summary: String,
    /// Another library's program caused the violation, by a known habit of that program: the program checkpoints what it did not process, begins children early,
    /// writes old checkpoints, keeps from its application that a shard was lost, and processes beside another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_others: bool,
}

/// Where oracles report to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    violations: Vec<Violation>,
    /// What is looked at was done by a program that others wrote.
    pub(super) of_others: bool,
}

/// A world reports no more violations than this number: further violations tell nothing new.
const MOST_VIOLATIONS: usize = 20;

impl Verdict {
    /// Records a violation. The sentence is only made if it is kept.
    pub fn report(&mut self, property: Property, at: Time, summary: impl FnOnce() -> String) {
        let of_others = self.of_others
            && matches!(
                property,
                Property::EveryRecordDelivered
                    | Property::ParentsFirst
                    | Property::ProgressDurable
                    | Property::StopsCleanly
                    | Property::DoubleProcessingBounded
            );
        self.add(property, at, of_others, summary);
    }

    /// Records what counts against programs of others, too.
    pub fn report_of_anybody(&mut self, property: Property, at: Time, summary: impl FnOnce() -> String) {
        self.add(property, at, false, summary);
    }

    fn add(&mut self, property: Property, at: Time, of_others: bool, summary: impl FnOnce() -> String) {
        let of_its_kind = self
            .violations
            .iter()
            .filter(|known| known.property == property && known.of_others == of_others)
            .count();
        if of_its_kind < 3 && self.violations.len() < MOST_VIOLATIONS {
            self.violations.push(Violation { property, at, summary: summary(), of_others });
        }
    }

    /// The violations, in the order in which the oracles reported them.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Whether one of these properties is violated; without any named property, whether a worker of ours broke a promise.
    pub fn is_bad(&self, only: &[Property]) -> bool {
        let wrong = |violation: &Violation| match only {
            [] => violation.property != Property::Canary && !violation.of_others,
            only => only.contains(&violation.property),
        };
        self.violations.iter().any(wrong)
    }

    /// What is wrong, and whether the canary was heard.
    pub fn into_parts(mut self) -> (Vec<Violation>, bool) {
        let all = self.violations.len();
        self.violations.retain(|violation| violation.property != Property::Canary);
        let heard = self.violations.len() < all;
        (self.violations, heard)
    }
}
