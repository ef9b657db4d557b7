//! What the requests to DynamoDB have cost so far, in its request units.
//!
//! DynamoDB says of each request what it cost. It does not say that of a write whose condition failed, though such a write costs as
//! much as another: at least one unit, which is what is counted. The same is counted where a server does not say.

use crate::ports::Consumed;
use aws_sdk_dynamodb::types::ConsumedCapacity;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The units of one port. Clones add to the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Bill(Arc<Mutex<Consumed>>);

impl Bill {
    /// A read was answered, which costs at least so much.
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
    fn what_the_service_says_is_added_and_the_least_where_it_does_not() {
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
