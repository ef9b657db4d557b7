//! The deterministic simulator: in-memory Kinesis and DynamoDB, faults, oracles and replay.

#[cfg(feature = "offline")]
pub mod cli;
mod draws;
pub mod exhaust;
pub mod fakes;
pub mod faults;
#[cfg(feature = "cli")]
pub mod local;
pub mod oracles;
pub mod report;
pub mod run;
#[cfg(feature = "stack")]
pub mod stack;
pub mod swarm;
pub mod world;
