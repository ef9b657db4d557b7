//! The small typed algebra between the engine and a DynamoDB table.
//!
//! A guarded write is a value, [`ItemWrite`]. The same value is rendered to DynamoDB's expressions ([`render`]), and
//! carried out on an item directly, as an in-memory table does ([`ItemWrite::carry_out`]): the two ways cannot drift
//! apart.

mod algebra;
mod eval;
mod number;
mod render;
mod value;

pub use algebra::{Action, Condition, ItemWrite, Update};
pub use eval::{WriteError, holds};
pub(crate) use number::to_u64;
pub use render::{Rendered, render};
pub use value::{AttributeName, AttributeValue, Item};
