//! Which leases a stream needs: the shards' family tree, the leases missing from the table, the holes left by a table.

mod audit;
mod identity;
mod left_out;
mod lineage;
mod plan;
mod stale;
mod unread;

pub(crate) use audit::first_hole;
pub use audit::holes;
pub use identity::is_of_another;
pub(crate) use identity::{Comparison, Judged, compare};
pub(crate) use left_out::left_out;
pub use lineage::{BadListing, Lineage};
pub(crate) use lineage::{Children, has_leased_descendant, shows_all_children, will_come};
pub use plan::{Finding, Plan, PlannedLease, plan};
pub(crate) use stale::{Unlisted, stands_against};
pub use unread::missing;
