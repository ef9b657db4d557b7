//! The full-stack tier: the worker of the crate `leasehold`, with the real AWS SDK clients, in a simulated world.
//!
//! The worker's own code runs unchanged. Two things are put under it: its runtime port is implemented by madsim
//! (virtual time, tasks in random order, nodes that can be killed, paused and started again), and the SDK's HTTP client
//! is a connector to the in-memory services, over a network that loses, delays and refuses. A world is a function of
//! its seed; `cargo sim-stack --seeds 0..300 --twice` runs many, each in a process of its own.
//!
//! | room | what is in it |
//! |---|---|
//! | [`connector`] | the SDK's HTTP client: requests out, answers and failures in |
//! | [`cloud`] | the services, and a digest of everything they were asked |
//! | [`plan`] | what a seed decides: workers, options, what happens when |
//! | [`fate`] | what becomes of one request |
//! | [`app`] | the handler |
//! | [`stage`] | what all parts of a world share |
//! | [`ledger`] | what must hold at every step |
//! | [`ending`] | what must hold at the end, and the replay of every worker's trace |
//! | [`verdict`] | what is told about a world |
//! | `runtime`, `network`, `world` | the parts that need madsim, with `--cfg madsim` only |
//!
//! madsim needs `--cfg madsim` for the whole build: it puts its own clock and entropy under the standard library. A
//! build without it has no worlds, and the command refuses to run.

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
