//! The async Kinesis consumer: a thin shell around [`leasehold_engine`].
//!
//! An application builds a [`Worker`] and gives it a [`Handler`]. Everything that is decided is decided by the engine;
//! this crate feeds it inputs and carries out its commands:
//!
//! | room | what is in it |
//! |---|---|
//! | [`worker`] | the public API; [`handler`], [`batch`], [`record`] and [`fence`] are what a handler meets |
//! | [`driver`] | the loop around the engine |
//! | [`ports`], [`runtime`] | what the loop needs: a table, a stream, an application, a clock and tasks |
//! | `own_thread`, `pulse` | the loop's own thread; noticing handlers that block theirs |
//! | `aws` | the bindings to the AWS SDK, and the table that says what each of its errors means |
//! | `consumer`, [`store`], [`kpl`] | opening, feeding and closing handlers; fetched records; aggregated records |
//! | [`recorder`], [`trace`] | recording a worker's life, and replaying it |
//! | [`observe`], [`metrics`] | logs; the names of all metrics, and the way they are set |

pub mod asks;
#[cfg(feature = "aws")]
pub mod aws;
pub mod batch;
mod catch;
mod consumer;
pub mod driver;
pub mod error;
pub mod fence;
mod gauges;
pub mod handler;
pub mod kpl;
pub mod machine;
pub mod metrics;
pub mod migrate;
pub mod observe;
#[cfg(feature = "tokio-runtime")]
mod own_thread;
pub mod ports;
mod pulse;
pub mod record;
pub mod recorder;
pub mod runtime;
pub mod store;
pub mod trace;
mod troubles;
pub mod worker;

pub use batch::{Batch, ShardInfo};
pub use error::Error;
pub use fence::Fence;
pub use handler::{Handler, HandlerFn};
pub use kpl::Misplaced;
/// The engine, for what implements ports and for what reads traces.
pub use leasehold_engine as engine;
pub use leasehold_engine::config::{BadConfig, Config, InitialPosition, MembersConfig, ReaderConfig};
pub use leasehold_engine::dialect;
pub use leasehold_engine::ids::{FencingToken, LeaseKey, ShardId, WorkerId};
pub use leasehold_engine::notice::{Fatal, Left, Notice, Stall, StopSummary};
pub use leasehold_engine::output::EndReason;
pub use leasehold_engine::policy::Policies;
pub use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
pub use leasehold_engine::shard::{HashKey, HashRange};
pub use leasehold_engine::time::{Mono, Span, Wall};
pub use record::Record;
pub use worker::{Builder, Control, Worker};

#[cfg(test)]
#[cfg_attr(not(feature = "tokio-runtime"), allow(dead_code))]
mod testing;
