//! The coordination of a Kinesis consumer fleet as one pure state machine.

pub mod table;
