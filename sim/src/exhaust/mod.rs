//! Small scopes are exhausted, not sampled: every order of events of a few workers, with a few faults, over the shipped
//! engine and the in-memory services.
//!
//! A state is a `World`: engines, services, requests under way, faults left. From each, every choice that
//! `step` offers is taken, unless the state was visited before. Every path is judged by the simulator's own oracles, and
//! at its end the world must come right by itself (`settle`).

mod request;
mod scope;
mod search;
mod settle;
mod step;
mod world;

pub use scope::Scope;
pub use search::{Counterexample, Report, exhaust};
