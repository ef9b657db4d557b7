//! Whole-system tests: real workers, real SDKs, and independent servers.

mod admin;
mod aggregates;
mod bad_input;
mod blocked;
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
mod rewind;
mod sdk_rust;
mod setup;
mod several_streams;
mod shards;
mod spans;
mod starts;
mod stream_search;
mod subscribers;
mod telemetry;
mod two_streams;
