//! The deterministic simulator: fleets of workers over in-memory Kinesis and DynamoDB, faults, oracles and replay.

pub mod cheap;
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
