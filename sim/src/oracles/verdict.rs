//! The findings of oracles.

use super::{Property, Time};
use serde::Serialize;

/// A violation of a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The time, in µs of true time.
    pub at: Time,
    /// The violation in a sentence.
    pub summary: String,
    /// Another library's program caused the violation, by a known habit of the program: the program checkpoints
    /// unprocessed records, begins children early, writes old checkpoints, hides a lost shard from its application, or
    /// processes beside another worker.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_others: bool,
}

/// The collector of the oracles' reports.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    violations: Vec<Violation>,
    /// The present fact is the act of another program.
    pub(super) of_others: bool,
}

/// A world reports no more violations than this number: further violations bring no news.
const MOST_VIOLATIONS: usize = 20;

impl Verdict {
    /// Records a violation. The sentence is built only if the violation is kept.
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

    /// Records a violation that counts against other programs, too.
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

    /// The violations, in the order of the reports.
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

    /// The violations, and whether the canary was heard.
    pub fn into_parts(mut self) -> (Vec<Violation>, bool) {
        let all = self.violations.len();
        self.violations.retain(|violation| violation.property != Property::Canary);
        let heard = self.violations.len() < all;
        (self.violations, heard)
    }
}
