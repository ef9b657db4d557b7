#![doc = include_str!("overview.md")]

// Links of all chapters are looked up here.
#[cfg(doc)]
use crate::*;

#[doc = include_str!("start.md")]
pub mod start {}

#[doc = include_str!("configuration.md")]
#[doc = include_str!("../../OPTIONS.md")]
pub mod configuration {}

#[doc = include_str!("acknowledging.md")]
pub mod acknowledging {}

#[doc = include_str!("failures.md")]
pub mod failures {}

#[doc = include_str!("metrics.md")]
#[doc = include_str!("../../METRICS.md")]
pub mod metrics {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("operations.md")]
pub mod operations {}

#[doc = include_str!("fleets.md")]
pub mod fleets {}

#[doc = include_str!("fan_out.md")]
pub mod fan_out {}

#[doc = include_str!("streams.md")]
pub mod streams {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("upgrades.md")]
pub mod upgrades {}
