//! A table and a stream for one engine.

use super::{Carry, LeaseTable, Reading, Stream, refused};
use crate::input::{Outcome, Why};
use crate::output::{Command, Effect};
use crate::stream_id::{StreamId, split_key};
use std::collections::BTreeMap;

/// Carries out every command of one engine at once: operations on the table, on the stream, and on an application that
/// processes every batch.
#[derive(Clone, Debug)]
pub struct Services {
    /// The lease table.
    pub table: LeaseTable,
    /// The stream.
    pub stream: Stream,
    /// The engine's reading of the stream.
    pub reading: Reading,
    /// Further streams, by their identifiers, and what the engine reads of each.
    pub several: BTreeMap<StreamId, (Stream, Reading)>,
}

impl Services {
    /// A stream of so many shards without records, and a table with a free lease for each.
    pub fn with_shards(shards: u32) -> Self {
        let stream = Stream::of(shards);
        Self {
            table: LeaseTable::covering(&stream),
            stream,
            reading: Reading::default(),
            several: BTreeMap::new(),
        }
    }

    /// Several streams, each of so many shards without records, and an empty table.
    pub fn with_streams<'a>(streams: impl IntoIterator<Item = (&'a StreamId, u32)>) -> Self {
        let each = streams.into_iter();
        let each = each.map(|(id, shards)| (id.clone(), (Stream::of(shards), Reading::default())));
        Self {
            table: LeaseTable::empty(super::Plain),
            stream: Stream::default(),
            reading: Reading::default(),
            several: each.collect(),
        }
    }

    /// Carries out a command, and gives its outcome.
    pub fn perform(&mut self, command: &Command) -> Outcome {
        match &command.effect {
            Effect::Table(op) => self.table.execute(op),
            Effect::Stream(op) => self.stream.execute(&mut self.reading, command.op, op),
            Effect::StreamOf(id, op) => match self.several.get_mut(id) {
                Some((stream, reading)) => stream.execute(reading, command.op, op),
                None => refused(Why::NotFound, None),
            },
            Effect::Consumer(op) => {
                let of = split_key(op.lease().as_str()).and_then(|(id, _)| self.several.get_mut(id));
                match of {
                    Some((stream, reading)) => reading.execute(stream, op),
                    None => self.reading.execute(&self.stream, op),
                }
            }
        }
    }
}

impl Carry for Services {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        Some(self.perform(&command))
    }
}
