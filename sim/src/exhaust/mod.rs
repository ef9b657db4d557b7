//! Small scopes are exhausted, not sampled: every order of events of a few workers, with a few faults, over the shipped
//! engine and the in-memory services.
//!
//! A state is a `World`: engines, services, requests under way, faults left. From each new state, the search takes each
//! choice of `step`. A state already visited ends the path. The simulator's own oracles judge every path. At the path's
//! end the world must come right by itself (`settle`).

mod request;
mod scope;
mod search;
mod settle;
mod step;
mod world;

pub use scope::Scope;
pub use search::{Counterexample, Report, exhaust};
