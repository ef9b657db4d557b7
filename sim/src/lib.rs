//! The deterministic simulator: fleets of workers over in-memory Kinesis and DynamoDB, faults, oracles and replay.

pub mod cheap;
#[cfg(feature = "offline")]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands are the edge: they read the clock, the environment and files, and start threads"
)]
pub mod cli;
pub mod deliberate;
pub mod draws;
pub mod exhaust;
pub mod faults;
pub mod marks;
pub mod museum;
pub mod oracles;
pub mod originals;
pub mod report;
pub mod run;
pub mod scenario;
pub mod show;
pub mod shrink;
pub mod swarm;
pub mod whatif;
pub mod world;
