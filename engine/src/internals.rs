//! The one door to the pieces behind the contract, for the adapters, the simulator and the command line of this project.
//!
//! Nothing here is promised to stay as it is.

pub use crate::digest::Digest;
pub use crate::draw::{draw, draw_below};
pub use crate::migration::{Conflict, Step, copied, next};

/// One shard being read.
pub mod reader {
    pub use crate::reader::{BatchRef, Ctx, Event, How, Reader, Start, Want};
}

/// How a leader of KCL 3.x shares leases out.
pub mod share_out {
    pub use crate::share_out::{Candidate, LoadOptions, Move, Owner, Portion, by_count, by_load};
}

/// Which leases are missing.
pub mod sync {
    pub use crate::sync::{BadListing, Finding, Lineage, Plan, PlannedLease, holes, plan, unread};
}
