//! What if workers were started on this table today? Worlds that begin with a real stream and lease table.
//!
//! The shards of a real stream have large and sparse numbers, and trimmed shards are not listed. The simulator numbers
//! shards from 0 without gaps. So `reading.rs` renames all shards once. The result is a [`Start`]: a value like the
//! rest of a world's plan, ready for a scenario.

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

/// The common beginning of many worlds, each under faults of its own.
#[derive(Clone, Debug)]
pub struct Given {
    /// The stream and the table.
    pub start: Arc<Start>,
    /// The format of the table.
    pub format: Format,
    /// The start position of shards without a checkpoint. A time is any time of the stream's life, since worlds have a
    /// time of their own.
    pub from: InitialPosition,
    /// The flags of `leasehold sim`, besides a seed, for the same beginning.
    pub flags: String,
}

impl Given {
    /// The world of a seed with this beginning: its fleet, configuration and load, and faults for a stream of this
    /// size.
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
        // The aggregation of a given stream's records is not known.
        plan.faults.aggregates = AggregateFaults::default();
        plan.start = Some(self.start.clone());
        plan
    }
}

#[cfg(test)]
mod tests;
