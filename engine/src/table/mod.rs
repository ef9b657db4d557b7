//! The small typed algebra between the engine and a DynamoDB table.

mod value;

pub use value::{AttributeName, AttributeValue, Item};
