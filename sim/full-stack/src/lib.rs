//! The full-stack tier: the worker of the crate `leasehold`, with the real AWS SDK clients, in a simulated world.
//!
//! The worker's own code runs unchanged on two simulated parts. madsim implements the worker's runtime port (virtual
//! time, tasks in random order, nodes that can be killed, paused and started again). The SDK's HTTP client is a
//! connector to the in-memory services, over a network with losses, delays and refusals. A world is a function of its
//! seed; `cargo sim-stack --seeds 0..300 --twice` runs many worlds, each in a process of its own.
//!
//! | room | content |
//! |---|---|
//! | [`connector`] | the SDK's HTTP client: requests out, answers and failures in |
//! | [`cloud`] | the services, and a digest of all requests and answers |
//! | [`plan`] | the seed's decisions: workers, options, events |
//! | [`fate`] | the fate of one request |
//! | [`app`] | the handler |
//! | [`stage`] | the shared parts of a world |
//! | [`ledger`] | the conditions at every step |
//! | [`ending`] | the conditions at the end, and the replay of every worker's trace |
//! | [`verdict`] | the report about a world |
//! | `runtime`, `network`, `world` | the parts that need madsim, with `--cfg madsim` only |
//!
//! madsim needs `--cfg madsim` for the whole build: madsim puts its own clock and entropy under the standard library. A
//! build without this flag has no worlds, and the command refuses to run.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "madsim stands in place of the clock, the timers, the tasks and the entropy of the process"
)]

pub mod app;
pub mod cloud;
pub mod connector;
pub mod ending;
pub mod fate;
pub mod ledger;
pub mod plan;
pub mod stage;
pub mod verdict;

#[cfg(madsim)]
mod network;
#[cfg(madsim)]
mod runtime;
#[cfg(madsim)]
mod world;
#[cfg(madsim)]
pub use world::{World, run};
