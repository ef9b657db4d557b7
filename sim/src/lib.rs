//! The deterministic simulator: in-memory Kinesis and DynamoDB, faults, oracles and replay.

pub mod cheap;
#[cfg(feature = "offline")]
pub mod cli;
pub mod deliberate;
mod draws;
pub mod exhaust;
pub mod fakes;
pub mod faults;
#[cfg(feature = "cli")]
pub mod local;
pub mod marks;
pub mod museum;
pub mod oracles;
pub mod originals;
pub mod report;
pub mod run;
pub mod scenario;
pub mod show;
pub mod shrink;
#[cfg(feature = "stack")]
pub mod stack;
pub mod swarm;
pub mod whatif;
pub mod world;
