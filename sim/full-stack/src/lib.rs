//! The full-stack tier: the worker of the crate `leasehold`, with the real AWS SDK clients, in a simulated world.
//!
//! The worker's own code runs unchanged on two simulated parts. madsim implements the worker's runtime port (virtual
//! time, tasks in random order, nodes that can be killed, paused and started again). The SDK's HTTP client is a
//! connector to the in-memory services, over a network with losses, delays and refusals. A world is a function of its
//! seed; `cargo sim-stack --seeds 0..300 --twice` runs many worlds, each in a process of its own.
//!
//! The harness is that of `leasehold-testing`, which `chaos` runs on, too: the plan of a world, the fate of every
//! request, the starts and ends of workers, and the judge. This crate is the harness's host on madsim.
//!
//! | room | content |
//! |---|---|
//! | [`settings`] | the sizes and options of the worlds |
//! | [`carried`] | requests to the world, and answers on their way back |
//! | [`connector`] | the SDK's HTTP client: requests out, answers and failures in |
//! | `events` | the body of a subscription |
//! | [`cloud`] | the services, as the SDK reaches them |
//! | [`verdict`] | the report about a world |
//! | `app` | the handler |
//! | `world` | the host, from the beginning to the verdict, with the replay of every worker's trace |
//! | `runtime` | the clocks and tasks of a worker |
//!
//! The last three need madsim, and are there with `--cfg madsim` only.
//!
//! madsim needs `--cfg madsim` for the whole build: madsim puts its own clock and entropy under the standard library. A
//! build without this flag has no worlds, and the command refuses to run.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "madsim stands in place of the clock, the timers, the tasks and the entropy of the process"
)]

pub mod carried;
pub mod cloud;
pub mod connector;
mod events;
pub mod settings;
pub mod verdict;

#[cfg(madsim)]
mod app;
#[cfg(madsim)]
mod runtime;
#[cfg(madsim)]
mod world;
#[cfg(madsim)]
pub use world::{Ran, run};
