#![doc = include_str!("../README.md")]
//! # Where to read on
//!
//! Each module uses only the modules above. The test `tests/tidy/tests/circles.rs` checks the order.
//!
//! | module | content |
//! |---|---|
//! | [`draws`], `named`, [`span`], `streams` | keyed randomness; values with names; lengths of time as texts; the names of several streams |
//! | [`oracles`] | facts about a world, and their judges |
//! | [`report`], [`recording`], [`marks`] | records of a world, for counts, displays and comparisons |
//! | [`faults`] | all faults |
//! | [`peers`] | programs of other libraries, as workers of a world |
//! | [`start`], [`swarm`] | the beginning of a world; how plans of worlds are drawn |
//! | [`what_if`] | a beginning from a real stream and its lease table |
//! | [`world`] | one world: workers, services, network and operators in one virtual time |
//! | [`run`] | one world or many |
//! | [`scenario`], [`shrink`] | a world as a text, and the search for a smaller world |
//! | [`exhaust`] | every order of events of a small scope |
//! | [`deliberate`], [`hunt`] | bugs put into a copy of the sources, and the search for each |
//! | [`hazards`] | known hazards of other libraries, and ours beside them |
//! | [`timeline`] | timelines and diagrams |

pub mod deliberate;
pub mod draws;
pub mod exhaust;
pub mod faults;
pub mod hazards;
pub mod hunt;
pub mod marks;
mod named;
mod names;
pub mod options;
pub mod oracles;
mod parts;
pub mod peers;
pub mod quick;
pub mod recording;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod span;
pub mod start;
mod streams;
pub mod swarm;
pub mod timeline;
pub mod what_if;
pub mod world;
