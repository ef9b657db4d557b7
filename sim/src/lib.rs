//! The deterministic simulator: in-memory Kinesis and DynamoDB, faults, oracles and replay.

pub mod fakes;
#[cfg(feature = "cli")]
pub mod local;
