//! The coordination of a Kinesis consumer fleet as one pure state machine.

pub mod config;
pub mod dialect;
pub mod digest;
pub mod draw;
pub mod engine;
pub mod ids;
pub mod input;
pub mod leader;
mod machine;
pub mod notice;
pub mod output;
pub mod position;
pub mod reader;
pub mod row;
pub mod shard;
pub mod sync;
pub mod table;
pub mod time;

pub use engine::{Engine, Held, Outbox};
