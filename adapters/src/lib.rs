//! A Kinesis consumer with decisions open to simulation and replay: a thin async shell around [`leasehold_engine`].
//!
//! An application builds a [`Worker`] and gives it a [`Handler`], a closure that is called with every [`Batch`], or a task for
//! each shard:
//!
//! ```no_run
//! # #[cfg(feature = "aws")]
//! # async fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client)
//! # -> Result<(), leasehold::Error> {
//! use leasehold::{Batch, Worker};
//! use std::time::Duration;
//!
//! let worker = Worker::builder()
//!     .kinesis(kinesis)
//!     .dynamodb(dynamodb)
//!     .stream("orders")
//!     .application("billing")
//!     .config(|config| config.with_lease_duration(Duration::from_secs(20)))
//!     .build()?;
//! worker
//!     .run_fn(|batch: Batch| async move {
//!         for record in batch {
//!             println!("{} {:?}", record.partition_key, record.data);
//!         }
//!         Ok::<(), std::io::Error>(())
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide] goes on from here, chapter by chapter: configuration, acknowledging, failures, metrics, errors, operations, moving over
//! from the KCL, testing, limits.
//!
//! | for | see |
//! |---|---|
//! | building and running a worker | [`Worker`] and its [`Builder`] |
//! | input of your code | [`Batch`] of [`Record`]s |
//! | a value of your own for all shards; a task for each; a value for each | [`Handler`]; [`ShardStream`]; [`ShardHandler`] |
//! | asking and stopping a running worker | [`Control`] |
//! | options of a worker | [`Config`] |
//! | records that cannot be processed | [`FailurePolicy`] |
//! | a worker's end | [`Report`], [`Error`] |

// The modules behind the facade are private. `driver` is the loop around the engine; `ports` is the receiver of the
// driver's commands; `aws` binds the ports to the SDK, with a table of the meaning of each error; `consumer`, `store`
// and `kpl` open, feed and close handlers; `shards` and `per_shard` are handlers with a task, or a handler, for each
// shard; `own_thread` and `pulse` keep leases apart from blocking handlers; `recorder` and `trace` record and replay
// a life; `observe`, `troubles`, `waits`, `requests`, `handovers`, `attempt` and `gauges` write logs, spans and
// metrics; `board` holds the answers for a [`Control`].
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have a runtime of their own"))]

pub mod admin;
mod asks;
mod attempt;
#[cfg(feature = "aws")]
pub mod aws;
mod batch;
mod board;
mod by_key;
mod catch;
mod clocks;
mod consumer;
mod dead_letter;
mod driver;
mod error;
mod fence;
mod gauges;
pub mod guide;
mod handler;
mod handovers;
mod health;
#[doc(hidden)]
pub mod internals;
mod kit;
mod kpl;
mod machine;
mod memory;
pub mod metrics;
mod migrate;
mod misplaced;
mod observe;
#[cfg(feature = "tokio-runtime")]
mod own_thread;
mod page_watch;
mod patient;
mod per_shard;
mod ports;
mod private;
mod pulse;
mod receipt;
mod record;
mod recorder;
mod report;
mod requests;
pub mod runtime;
mod shards;
#[cfg(feature = "signal")]
mod signal;
mod status;
mod store;
mod together;
mod trace;
mod troubles;
mod waits;
mod worker;

#[cfg(feature = "aws")]
pub use aws::stream_ref::{BadStream, StreamRef};
pub use batch::{Batch, BatchIter, ShardInfo};
pub use bytes::Bytes;
#[cfg(feature = "aws")]
pub use dead_letter::DeadLetterStream;
pub use dead_letter::{
    DeadLetter, DeadLetterChannel, DeadLetterFile, FailurePolicy, Letter, NotStored, dead_letter_channel,
};
pub use error::Error;
pub use fence::{Fence, NotDurable};
pub use handler::{Ack, Flush, Handler, HandlerFn};
pub use health::Health;
/// The engine, for lease formats missing in this crate.
pub use leasehold_engine as engine;
pub use leasehold_engine::aggregate::Misplaced;
pub use leasehold_engine::config::{
    AssignBy, BadConfig, BadOption, Config, FailureAction, FleetConfig, InitialPosition, MembersConfig,
    OptionInfo, ReadMode, ReaderConfig,
};
pub use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId, WorkerId};
pub use leasehold_engine::notice::{
    Choice, Fatal, Left, ListReason, LossReason, MigrationNews, Notice, RuntimeNews, Severity, Stall,
    StopSummary, StreamNews, TakeReason,
};
pub use leasehold_engine::output::{EndReason, FlushReason};
pub use leasehold_engine::position::{BadSequenceNumber, Checkpoint, Position, SequenceNumber};
pub use leasehold_engine::row::LeaseRow;
pub use leasehold_engine::shard::{HashKey, HashRange};
pub use leasehold_engine::stream_id::{BadStreamId, StreamId};
pub use leasehold_engine::time::{Mono, Span, Wall};
pub use per_shard::ShardHandler;
pub use receipt::Receipt;
pub use record::Record;
pub use recorder::{NotTaken, Sink as TraceSink, TraceFolder};
pub use report::Report;
pub use shards::ShardStream;
#[cfg(feature = "signal")]
pub use signal::{on_signal, shutdown_on_signal};
pub use status::{LeaseStatus, Phase, Stalled, Status};
#[cfg(feature = "aws")]
pub use worker::Rewind;
pub use worker::{Builder, CompleteBuilder, Control, Worker, parts};

/// The formats of lease tables, for [`Builder::format`].
///
/// A new lease format implements [`LeaseFormat`](format::LeaseFormat), with the types of [`engine`].
pub mod format {
    pub use leasehold_engine::format::{Format, Kcl, Kinsumer, LeaseFormat};
    pub use leasehold_engine::policy::{Assign, Finished, Life, Lineage, Policies, Steal};
}

#[doc = include_str!("../GLOSSARY.md")]
pub mod glossary {}

#[cfg(test)]
#[cfg_attr(not(feature = "tokio-runtime"), allow(dead_code, reason = "most tests need the runtime"))]
mod testing;
