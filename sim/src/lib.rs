//! The deterministic simulator: in-memory Kinesis and DynamoDB, faults, oracles and replay.

mod draws;
pub mod fakes;
#[cfg(feature = "cli")]
pub mod local;
#[cfg(feature = "stack")]
pub mod stack;
