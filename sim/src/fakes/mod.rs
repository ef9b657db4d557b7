//! In-memory AWS services as pure, latency-free, `Clone` state machines.
//!
//! A fake never waits, never draws entropy and never reads a clock: every call is given the time.
//! Delay, loss, lateness and skew are put around it by whoever drives it.

pub mod dynamo;
pub mod kinesis;
