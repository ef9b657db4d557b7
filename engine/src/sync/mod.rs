//! Which leases a stream needs: the shards' family tree, the leases missing from the table, the holes left by a table.

mod audit;
mod identity;
mod lineage;
mod plan;

pub use audit::{first_hole, holes};
pub use identity::{Misfit, misfit, misfits};
pub use lineage::{BadListing, Children, Lineage, has_leased_descendant, shows_all_children, will_come};
pub use plan::{Finding, Plan, PlannedLease, plan, unread};
