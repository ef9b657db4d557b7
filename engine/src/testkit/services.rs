//! A table and a stream for one engine.

use super::{Carry, LeaseTable, Reading, Stream};
use crate::input::Outcome;
use crate::output::{Command, Effect};

/// Carries out every command of one engine at once: operations on the table, on the stream, and on an application that
/// processes every batch.
#[derive(Clone, Debug)]
pub struct Services {
    /// The lease table.
    pub table: LeaseTable,
    /// The stream.
    pub stream: Stream,
    /// What the engine reads of it.
    pub reading: Reading,
}

impl Services {
    /// A stream of so many shards without records, and a table with a free lease for each.
    pub fn with_shards(shards: u32) -> Self {
        let stream = Stream::of(shards);
        Self {
            table: LeaseTable::covering(&stream),
            stream,
            reading: Reading::default(),
        }
    }

    /// Carries out a command, and gives its outcome.
    pub fn perform(&mut self, command: &Command) -> Outcome {
        match &command.effect {
            Effect::Table(op) => self.table.execute(op),
            Effect::Stream(op) => self.stream.execute(&mut self.reading, command.op, op),
            Effect::Consumer(op) => self.reading.execute(&self.stream, op),
        }
    }
}

impl Carry for Services {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        Some(self.perform(&command))
    }
}
