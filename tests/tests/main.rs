//! Whole-system tests: real workers, real SDKs, and servers that others wrote.

mod admin;
mod aggregates;
mod bad_input;
mod blocking;
mod boto3;
mod differential;
mod facade;
mod failure_policy;
mod independent;
mod interop;
mod metrics;
mod null_owner;
mod owner_index;
mod papers;
mod pauses;
mod rewind;
mod sdk_rust;
mod setup;
mod several_streams;
mod shards;
mod signals;
mod spans;
mod starts;
mod telemetry;
mod two_streams;
mod unreachable;
