#![doc = include_str!("../README.md")]

mod constraint;
pub mod dynamo;
#[cfg(feature = "http")]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server is the edge: it reads the clock, which the services are given, and starts tasks"
)]
pub mod http;
pub mod kinesis;
