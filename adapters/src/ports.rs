//! The receivers of the driver's commands: the lease table, the stream, and the application.

use crate::runtime::BoxFuture;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::output::{Command, ConsumerOp, Effect, StreamOp, TableOp};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::Mono;
use std::fmt;
use std::sync::Arc;

/// The driver waits this many times longer for an answer arriving bit by bit than for a silent answer: five minutes
/// at the default of `stream_timeout`, the lifetime of an iterator.
pub(crate) const PROGRESS: u64 = 20;

/// Executes operations of one kind.
///
/// Data too large or too private for a trace stays behind the port, under the id of its command: record payloads,
/// shard iterators and page tokens.
pub trait Port<Op>: Send + Sync + 'static {
    /// Executes an operation. The future may be dropped at any time; a dropped one counts as `Unknown`.
    fn execute(&self, id: OpId, op: Op) -> BoxFuture<'static, Outcome>;

    /// The outcome of this command came too late and is unused: the port can free all data kept under the command's
    /// id. May be called more than once, and while the operation still runs.
    fn forget(&self, id: OpId) {
        let _ = id;
    }

    /// When the last byte of the answer to this command arrived, if the answer is arriving. The driver's waiting time
    /// then starts anew.
    fn heard(&self, id: OpId) -> Option<Mono> {
        let _ = id;
        None
    }

    /// The reason for this command's failure, in words, if the port knows more than the outcome says. The driver asks
    /// at most once, after the outcome. No decision depends on the reason.
    fn failure(&self, id: OpId) -> Option<Failure> {
        let _ = id;
        None
    }

    /// The request units consumed by now, if the port knows their number; by default zero.
    fn consumed(&self) -> Consumed {
        Consumed::default()
    }
}

/// Request units of DynamoDB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Consumed {
    /// Read request units: an eventually consistent read of 4 KiB costs half a unit.
    pub read: f64,
    /// Write request units.
    pub write: f64,
}

/// Why a command failed, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The address of the request, such as `http://127.0.0.1:4567`; absent: the request was not sent.
    pub at: Option<String>,
    /// What failed, in words.
    pub why: String,
}

/// A port to a lease table.
pub type TablePort = Arc<dyn Port<TableOp>>;

/// A port to a stream.
pub type StreamPort = Arc<dyn Port<StreamOp>>;

/// A port to several streams.
pub(crate) type StreamsPort = Arc<dyn Port<(StreamId, StreamOp)>>;

/// The ports of a worker.
#[derive(Clone)]
pub(crate) struct Ports {
    /// The lease table.
    pub table: TablePort,
    /// The stream.
    pub stream: StreamPort,
    /// The streams of a worker that reads several.
    pub streams: Option<StreamsPort>,
    /// The application.
    pub consumer: Arc<dyn Port<ConsumerOp>>,
}

impl Ports {
    pub(crate) fn execute(&self, command: Command) -> BoxFuture<'static, Outcome> {
        match command.effect {
            Effect::Table(op) => self.table.execute(command.op, op),
            Effect::Stream(op) => self.stream.execute(command.op, op),
            Effect::StreamOf(id, op) => match &self.streams {
                Some(streams) => streams.execute(command.op, (id, op)),
                // A worker of one stream never asks for another stream.
                None => Box::pin(std::future::ready(Outcome::NotSent(Cause::Client))),
            },
            Effect::Consumer(op) => self.consumer.execute(command.op, op),
        }
    }

    pub(crate) fn failure(&self, kind: Kind, id: OpId) -> Option<Failure> {
        match kind {
            Kind::Table => self.table.failure(id),
            Kind::Stream => match &self.streams {
                Some(streams) => streams.failure(id),
                None => self.stream.failure(id),
            },
            Kind::Consumer => self.consumer.failure(id),
        }
    }

    pub(crate) fn heard(&self, kind: Kind, id: OpId) -> Option<Mono> {
        match kind {
            Kind::Table => self.table.heard(id),
            Kind::Stream => match &self.streams {
                Some(streams) => streams.heard(id),
                None => self.stream.heard(id),
            },
            Kind::Consumer => None,
        }
    }

    pub(crate) fn forget(&self, kind: Kind, id: OpId) {
        match kind {
            Kind::Table => self.table.forget(id),
            Kind::Stream => match &self.streams {
                Some(streams) => streams.forget(id),
                None => self.stream.forget(id),
            },
            Kind::Consumer => self.consumer.forget(id),
        }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ports")
    }
}

/// Which port a command goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Table,
    Stream,
    Consumer,
}

impl Kind {
    pub(crate) fn of(effect: &Effect) -> Self {
        match effect {
            Effect::Table(_) => Kind::Table,
            Effect::Stream(_) | Effect::StreamOf(..) => Kind::Stream,
            Effect::Consumer(_) => Kind::Consumer,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::Stream => "stream",
            Kind::Consumer => "consumer",
        }
    }
}
