//! Table formats: how lease rows and changes are spelled as items and writes.

mod kcl;

pub use kcl::Kcl;

use crate::ids::LeaseKey;
use crate::row::{Change, RowRead};
use crate::table::{Item, ItemWrite};

/// A table format. Pure: two of them never see each other's state, and none has any.
pub trait Dialect {
    /// The name of the table's hash key attribute, a string; there is no sort key.
    fn key_name(&self) -> &'static str;

    /// The primary key of a row.
    fn key(&self, key: &LeaseKey) -> Item;

    /// What an item is. Any item at all gets an answer.
    fn decode(&self, item: &Item) -> RowRead;

    /// The one conditional write that makes a change. It leaves alone every attribute that it does not name.
    fn encode(&self, change: &Change) -> ItemWrite;
}
