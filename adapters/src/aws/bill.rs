//! The total cost of the requests to DynamoDB, in request units.
//!
//! DynamoDB reports the cost of each request, except for a write with a failed condition. A refused write also costs
//! units: at least one unit, and the bill counts one unit. The bill also counts the least cost if a server reports no
//! cost.

use crate::ports::Consumed;
use aws_sdk_dynamodb::types::ConsumedCapacity;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The units of one port. Clones add to the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Bill(Arc<Mutex<Consumed>>);

impl Bill {
    /// Adds an answered read, with at least `least` units.
    pub(super) fn read(&self, said: Option<&ConsumedCapacity>, least: f64) {
        self.sum().read += units(said, least);
    }

    /// A write was answered.
    pub(super) fn write(&self, said: Option<&ConsumedCapacity>) {
        self.sum().write += units(said, 1.0);
    }

    pub(super) fn total(&self) -> Consumed {
        *self.sum()
    }

    fn sum(&self) -> MutexGuard<'_, Consumed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn units(said: Option<&ConsumedCapacity>, least: f64) -> f64 {
    said.and_then(ConsumedCapacity::capacity_units).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_words_are_added_and_the_least_without_any() {
        let bill = Bill::default();
        let said = |units| ConsumedCapacity::builder().capacity_units(units).build();
        bill.read(Some(&said(2.5)), 0.5);
        bill.read(None, 0.5);
        bill.write(Some(&said(2.0)));
        bill.write(None);
        let total = Consumed { read: 3.0, write: 3.0 };
        assert_eq!(bill.clone().total(), total);
    }
}
