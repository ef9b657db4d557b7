//! What if workers were started on this table today: worlds that begin with a stream and a lease table as they are.
//!
//! The shards of a real stream have large and sparse numbers, and those that were trimmed are not listed; the simulator's
//! are numbered from 0 without gaps. So everything is renamed once, in `reading.rs`, and from then on is a [`Start`]: a
//! value like the rest of a world's plan, that can be written into a scenario.

mod reading;

pub use reading::Unusable;

use crate::draws::Draws;
use crate::faults::AggregateFaults;
use crate::start::Start;
use crate::swarm::{EPOCH_MS, Plan, STREAM_AGE_MS};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::Format;
use leasehold_engine::time::Wall;
use std::sync::Arc;

/// What many worlds begin with, each under faults of its own.
#[derive(Clone, Debug)]
pub struct Given {
    /// The stream and the table.
    pub start: Arc<Start>,
    /// How leases are kept in the table.
    pub format: Format,
    /// Where shards without a checkpoint are started. A time is any time of the stream's life, since worlds have a time of
    /// their own.
    pub from: InitialPosition,
    /// What `leasehold sim` has to be given, besides a seed, to begin a world so.
    pub flags: String,
}

impl Given {
    /// The world of a seed that begins so: its fleet, configuration and load, and faults for a stream of this size.
    pub fn plan(&self, seed: u64) -> Plan {
        let drawn = Plan::draw(seed).with_format(self.format);
        let (workers, fault_us) = (drawn.workers, drawn.fault_us);
        // A given table is of one stream.
        let mut plan = drawn.of_streams(1).resized(workers, self.start.shards.len() as u32, fault_us);
        let from = match self.from {
            InitialPosition::AtTimestamp(_) => {
                let age_ms = Draws::new(seed).below("given-from", 0, STREAM_AGE_MS as u64);
                InitialPosition::AtTimestamp(Wall(EPOCH_MS - age_ms as i64))
            }
            named => named,
        };
        plan.start_at(from);
        // What the records of a given stream are made of is not known.
        plan.faults.aggregates = AggregateFaults::default();
        plan.start = Some(self.start.clone());
        plan
    }
}

#[cfg(test)]
mod tests;
