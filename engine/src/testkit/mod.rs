//! Carries out an engine's commands in memory, for tests, benchmarks and fuzzing of code that drives an engine.
//!
//! With the feature `testkit` only. No part of this module is promised to stay unchanged, and no part belongs into a
//! production program.
//!
//! | file | what is in it |
//! |---|---|
//! | `drive` | [`Driven`]: an engine, and the answers that follow from an input at the same instant; [`Carry`] gives the answers |
//! | `table` | [`LeaseTable`]: carries out every [`TableOp`](crate::output::TableOp) but those of members |
//! | `stream` | [`Stream`]: shards with numbers as records; [`Reading`]: what one worker fetched and processed |
//! | `services` | [`Services`]: a table and a stream for one engine, of which every command succeeds |
//! | `fleet` | [`Fleet`]: an engine that is one worker of a large fleet, for benchmarks; the fleet's rows |
//! | `holding` | [`Holding`]: an engine that holds many leases and renews them, for benchmarks |
//!
//! ```
//! use leasehold_engine::config::Config;
//! use leasehold_engine::input::{Body, Boot, Input};
//! use leasehold_engine::testkit::{Driven, Services};
//! use leasehold_engine::time::{Mono, Wall};
//!
//! let config = Config::default().with_table("app").with_stream("orders");
//! let boot = Boot { worker: "w".into(), incarnation: 1, seed: 1, config };
//! let (mut driven, mut services) = (Driven::default(), Services::with_shards(4));
//! let body = Body::Boot(Box::new(boot));
//! driven.tell(Input { at: Mono(1), wall: Wall(0), body }, &mut services);
//! while driven.engine().held().count() < 4 {
//!     driven.sleep(&mut services);
//! }
//! ```
//!
//! # What has a loop of its own
//! `Driven` answers at the instant of the input and in the order of the commands. Code with a different order on
//! purpose does not use `Driven`: the simulator's `World` answers late, twice or never, and searches of every order
//! (`exhaust`) answer one command at a time. The lives of random inputs in `engine/tests/interpreter` also compare
//! every output of three engines. So these tests drive the engines themselves, against the table and the shards of this
//! module.

mod drive;
mod fleet;
mod holding;
mod plain;
mod services;
mod stream;
mod table;

pub use drive::{Carry, Driven, Kept};
pub use fleet::{Fleet, report, version};
pub use holding::Holding;
pub use plain::Plain;
pub use services::Services;
pub use stream::{Reading, Stream, no_records, shard, shard_id};
pub use table::{Items, Keeping, LeaseTable};

use crate::format::LeaseFormat;
use crate::input::{Outcome, Refusal, Why};
use crate::position::{Checkpoint, Position};
use crate::row::{Change, LeaseRow, Renaming, RowRead};
use crate::stream_identity::StreamIdentity;
use crate::table::Item;
use crate::time::Wall;

/// A refusal without a text. `current` is the row as it is, for a write whose condition failed.
pub fn refused(why: Why, current: Option<LeaseRow>) -> Outcome {
    refused_by(why, current.map(RowRead::Lease))
}

/// The checkpoint at the record with this number.
pub fn at(number: u64) -> Checkpoint {
    Checkpoint::At(Position::of(number.into()))
}

/// The take of a lease by a worker with this view of the row and without knowledge of the stream. The take writes the
/// counter `next`.
pub fn take_of(row: &LeaseRow, next: u64, to: &str) -> Change {
    Change::Take {
        key: row.key.clone(),
        counter: row.counter,
        next,
        from: row.owner.clone(),
        checkpoint: row.checkpoint,
        to: to.into(),
        began: None,
        named: None,
        stream: None,
    }
}

/// The reset of a lease to a checkpoint, by a person with this view of the row. The reset writes the counter `next`.
pub fn reset_of(row: &LeaseRow, next: u64, to: Checkpoint) -> Change {
    Change::Reset {
        key: row.key.clone(),
        counter: row.counter,
        next,
        owner: row.owner.clone(),
        handing_over: row.handing_over.clone(),
        checkpoint: row.checkpoint,
        to,
    }
}

/// The change of the name of a row's stream, as after the creation of another stream of the same name.
pub fn renaming_of(row: &LeaseRow) -> Change {
    let stream = |created| StreamIdentity::new("orders", Wall(created)).expect("the name of a stream");
    Change::Name(Box::new(Renaming {
        key: row.key.clone(),
        counter: row.counter,
        checkpoint: row.checkpoint,
        named: stream(7_000),
        stream: stream(8_000),
    }))
}

/// The item of a row as the format creates it.
///
/// # Panics
/// If the format refuses to create an item where none is.
pub fn item_of(format: &impl LeaseFormat, row: &LeaseRow) -> Item {
    let mut item = None;
    let created = format.encode(&Change::Create(Box::new(row.clone()))).carry_out(&mut item);
    assert_eq!(created, Ok(()), "{row:?}");
    item.expect("an item, as it was created")
}

fn refused_by(why: Why, current: Option<RowRead>) -> Outcome {
    Outcome::Refused(Refusal { why, current: current.map(Box::new), detail: String::new() })
}
