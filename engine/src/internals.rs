//! The one door to the pieces behind the contract, for the adapters, the simulator and the command line of this project.
//!
//! No part of this module is promised to stay unchanged.

pub use crate::digest::Digest;
pub use crate::draw::{draw, draw_below};
pub use crate::migration::{Conflict, Step, copied, next};
pub use crate::skew::{Missed, Skew, UNNOTICED};

/// The leases that a worker takes for itself.
pub mod self_assignment {
    pub use crate::self_assignment::{
        Balance, Counting, Ours, Standing, Stealing, Taking, Way, by_load, drawn, is_plainly_of,
        may_be_requested, next, number, request, steal, take,
    };
}

/// One shard being read.
pub mod reader {
    pub use crate::reader::{BatchRef, Ctx, Event, How, Reader, Start, Want};
}

/// How a leader of KCL 3.x shares leases out.
pub mod leader_assignment {
    pub use crate::leader_assignment::{
        Candidate, LoadOptions, Move, Owner, Portion, Rules, by_count, by_load, candidates, is_fresh,
        portion, rules,
    };
}

/// The missing leases.
pub mod sync {
    pub use crate::sync::{
        BadListing, Finding, Lineage, Plan, PlannedLease, holes, is_of_another, missing, plan,
    };
}
