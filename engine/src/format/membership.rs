//! How a format spells the workers' messages to each other beside the lease table: operations on items of the format's
//! own tables. Adapters and the simulator need no further knowledge.

use crate::ids::WorkerId;
use crate::input::Reply;
use crate::members::{Member, MembersOp, MembersPage, Side};
use crate::table::{Item, ItemWrite};

/// The part of a format whose workers know each other from tables beside the lease table.
pub trait Membership: Sync {
    /// The name of the lease table of an application.
    fn leases(&self, application: &str) -> String;

    /// The name of a table beside it.
    fn side(&self, application: &str, side: Side) -> String;

    /// The name of the table's hash key attribute, a string; the table has no sort key.
    fn key_name(&self, side: Side) -> &'static str;

    /// The operation, spelled on the items of a table. Reads are strongly consistent.
    fn spell(&self, op: &MembersOp) -> (Side, ItemOp);

    /// What the answer to a read says.
    ///
    /// # Errors
    /// Reads the reply from the item; the error tells the expected and the found value.
    fn read(&self, op: &MembersOp, found: SideRead<'_>) -> Result<Reply, String>;
}

/// An operation on a table or on its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOp {
    /// The table's state.
    Describe,
    /// Create the table.
    Create,
    /// One page of items, after this key.
    Scan {
        /// Absent: from the beginning.
        after: Option<Item>,
    },
    /// The item with this key.
    Get(Item),
    /// A write.
    Write(ItemWrite),
}

/// The result of a read.
#[derive(Clone, Copy, Debug)]
pub enum SideRead<'a> {
    /// One item, or a missing item.
    Item(Option<&'a Item>),
    /// A page.
    Page {
        /// The items, in the table's order.
        items: &'a [Item],
        /// The key of the last one looked at; absent on the last page.
        last: Option<&'a Item>,
    },
}

/// A page of members, without the items that are no members: people may keep items of their own in the table.
pub(super) fn read_page(
    items: &[Item], next: Option<WorkerId>, read: impl Fn(&Item) -> Result<Member, String>,
) -> MembersPage {
    let members = items.iter().filter_map(|item| read(item).ok()).collect();
    MembersPage { members, next }
}
