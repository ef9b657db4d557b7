//! The coordination of a Kinesis consumer fleet as one pure state machine.
//!
//! A fleet of workers agrees, through rows of a DynamoDB table, on who reads which shard of a stream and how far it has
//! been read. This crate is one worker's part in that: [`Engine`] takes an [`Input`](input::Input) and gives
//! [`Output`](output::Output)s. It knows no clock, no network, no threads and no randomness but a seed, so that the same
//! inputs give the same outputs, bit for bit: in production, in a simulator, and in a replay of either.
//!
//! # The contract
//! * Feed one input, drain the [`Outbox`], and only then feed the next; the borrow checker sees to it.
//! * Carry out every [`Command`](output::Command), and answer each with exactly one [`Done`](input::Body::Done), at its
//!   `give_up` time at the latest.
//! * An outcome is one of four ([`Outcome`](input::Outcome)); when in doubt, it is
//!   [`Unknown`](input::Outcome::Unknown).
//! * Send a [`Tick`](input::Body::Tick) at [`Outbox::wake_at`]. Early and late ones do no harm.
//!
//! # Where to read on
//! In forty minutes: [`input`], [`output`] and [`row`] are all there is to say; [`config`] is how a worker is told to
//! behave, and holds the rule by which two workers never believe in the same lease. Then the pure pieces: [`mod@format`] (rows as
//! table items), and the private modules `sync` (which leases are missing), `leader` (who acts first), `rank` (whose turn a shard
//! is), `own_share` (what a worker takes for itself), `share_out` (who gets which lease, as a leader of KCL 3.x decides it) and `reader` (one shard being read). What ties
//! them together is the private module `worker`; begin with its table of rooms.
//!
//! The feature `testkit` adds the module `testkit`: it carries out an engine's commands in memory, for tests and benchmarks.
//!
//! # What may grow
//! Notices and their reasons, formats and options are added without notice: the enums are `#[non_exhaustive]`, and options have
//! setters. Inputs, commands and outcomes are not: a host must carry out every command and answer in every form, so a new one is
//! a change that its compiler has to show.

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
pub mod members;
mod migration;
pub mod notice;
pub mod output;
mod own_share;
pub mod policy;
pub mod position;
mod rank;
mod reader;
pub mod row;
pub mod shard;
mod share_out;
pub mod shown;
mod skew;
pub mod stream_id;
pub mod stream_identity;
mod sync;
pub mod table;
#[doc = include_str!("../docs/table-formats.md")]
pub mod table_formats {}
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod time;
mod worker;

pub use engine::{Engine, Held, Outbox};
