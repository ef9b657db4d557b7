//! The coordination of a Kinesis consumer fleet as one pure state machine.
//!
//! A fleet of workers agrees, through rows of a DynamoDB table, on the reader of each shard of a stream and on the
//! reader's progress. This crate is the part of one worker in the agreement: [`Engine`] takes an
//! [`Input`](input::Input) and gives [`Output`](output::Output)s. The engine knows no clock, no network, no threads and
//! no randomness but a seed, so the same inputs give the same outputs, bit for bit: in production, in a simulator, and
//! in a replay of either.
//!
//! # The contract
//! * Feed one input, drain the [`Outbox`], and only then feed the next; the borrow checker sees to it.
//! * Carry out every [`Command`](output::Command), and answer each with exactly one [`Done`](input::Body::Done), at its
//!   `give_up` time at the latest.
//! * An outcome has four values ([`Outcome`](input::Outcome)); when in doubt, it is
//!   [`Unknown`](input::Outcome::Unknown).
//! * Send a [`Tick`](input::Body::Tick) at [`Outbox::wake_at`]. Early and late ones do no harm.
//!
//! # Where to read on
//! In forty minutes: [`input`], [`output`] and [`row`] are the whole vocabulary; [`config`] holds a worker's options,
//! and the rule by which two workers never believe in the same lease. Then the pure pieces: [`mod@format`] (rows as
//! table items), and the private modules `sync` (the missing leases), `leader` (the order of leaders), `rank` (the turn
//! of each shard), `self_assignment` (the leases a worker takes for itself), `leader_assignment` (the new owner of each
//! lease, as a leader of KCL 3.x decides it) and `reader` (reading one shard). The private module `worker` ties these
//! pieces together; begin with its table of rooms.
//!
//! The feature `testkit` adds the module `testkit`: it carries out an engine's commands in memory, for tests and benchmarks.
//!
//! # What may grow
//! Notices and their reasons, formats and options are added without notice: the enums are `#[non_exhaustive]`, and
//! options have setters. Inputs, commands and outcomes are not: a host must carry out every command and answer in every
//! form, so its compiler has to show a new command or form.

pub mod admin;
pub mod aggregate;
mod began;
mod calendar;
pub mod config;
mod digest;
mod draw;
mod end_reason;
pub mod engine;
pub mod fleet;
pub mod format;
mod held;
pub mod ids;
pub mod input;
#[doc(hidden)]
pub mod internals;
pub mod known_range;
mod leader;
mod leader_assignment;
pub mod members;
mod migration;
pub mod notice;
pub mod output;
pub mod policy;
pub mod position;
mod rank;
mod reader;
pub mod row;
mod self_assignment;
pub mod shard;
pub mod shown;
mod skew;
pub mod stream_id;
pub mod stream_identity;
mod sync;
pub mod table;
#[doc = include_str!("../docs/table-formats.md")]
pub mod table_formats {}
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod time;
mod worker;

pub use engine::{Engine, Held, Outbox};
