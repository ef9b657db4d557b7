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
//! behave, and holds the rule by which two workers never believe in the same lease. Then the pure pieces: [`sync`] (which
//! leases are missing), [`leader`] (who acts first), [`rank`] (whose turn a shard is), [`reader`] (one shard being read), [`dialect`] (rows as table items).
//! What ties them together is the private module `machine`; begin with its table of files.

mod calendar;
pub mod config;
pub mod dialect;
pub mod digest;
pub mod draw;
pub mod engine;
pub mod ids;
pub mod input;
pub mod leader;
mod machine;
pub mod members;
pub mod migration;
pub mod mutant;
pub mod notice;
pub mod output;
pub mod policy;
pub mod position;
pub mod rank;
pub mod reader;
pub mod row;
pub mod shard;
pub mod sync;
pub mod table;
pub mod time;

pub use engine::{Engine, Held, Outbox};
