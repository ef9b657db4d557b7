//! Places in a stream, for an operator: its shards, and the record before a time.

use super::classify::why;
use super::kinesis_stream::shard_from_sdk;
use super::named::NamedStream;
use super::values::wall_to_sdk;
use crate::runtime::Runtime;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::types::{Record, ShardIteratorType};
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::shard::Shard;
use leasehold_engine::stream_id::split_key;
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::time::{Span, Wall};
use std::sync::Arc;

/// Kinesis allows five reads a second of a shard, over all applications.
const PAUSE: Span = Span::from_millis(250);

/// The first search window before the time, in milliseconds; each further window is `GROWTH` times longer.
const FIRST_WINDOW: i64 = 1_000;
const GROWTH: i64 = 8;

/// No stream keeps records for longer than a year, in milliseconds.
const YEAR: i64 = 366 * 24 * 3_600_000;

/// All shards of a stream, named as in the lease table.
pub(crate) async fn shards(kinesis: &Client, stream: &NamedStream) -> Result<Vec<Shard>, String> {
    let kinesis = stream.client(kinesis);
    let mut shards = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let request = kinesis.list_shards();
        let request = match token {
            // A token stands for the stream, too, and may not be given together with it.
            Some(token) => request.next_token(token),
            None => request.set_stream_name(stream.name()).set_stream_arn(stream.arn()),
        };
        let answer = request.send().await.map_err(|error| why(&error))?;
        for shard in answer.shards() {
            let shard = shard_from_sdk(shard)
                .map_err(|found| format!("expected a shard with its ranges, found {found}"))?;
            shards.push(match stream.id() {
                Some(id) => id.qualify_shard(shard),
                None => shard,
            });
        }
        token = answer.next_token;
        if token.is_none() {
            return Ok(shards);
        }
    }
}

/// The identity of a stream, from its present description.
pub(crate) async fn identity(
    kinesis: &Client, stream: &NamedStream,
) -> Result<Option<StreamIdentity>, String> {
    let request = stream.client(kinesis).describe_stream_summary();
    let request = request.set_stream_name(stream.name()).set_stream_arn(stream.arn());
    let answer = request.send().await.map_err(|error| why(&error))?;
    let summary = answer
        .stream_description_summary()
        .ok_or_else(|| "expected a stream summary, found none".to_owned())?;
    Ok(super::kinesis_stream::state_from_sdk(summary).identity())
}

/// A shard that is searched.
pub(crate) struct Searched<'a> {
    pub(crate) kinesis: Client,
    pub(crate) stream: &'a NamedStream,
    pub(crate) shard: &'a str,
    pub(crate) runtime: &'a Arc<dyn Runtime>,
}

/// What lies around a time.
#[derive(Default)]
struct Around {
    before: Option<SequenceNumber>,
    /// A record at or after the time exists.
    after: bool,
    /// The shard has ended, and its last record was read.
    end: bool,
}

/// A record's arrival time, in milliseconds of the wall clock. A record without an arrival time cannot be placed
/// before or after a time.
fn arrival(record: &Record) -> Result<i64, String> {
    let arrival = record.approximate_arrival_timestamp();
    arrival.and_then(|at| at.to_millis().ok()).ok_or_else(|| {
        let number = record.sequence_number();
        format!("expected an arrival time of the record {number}, found none; try again, or name a sequence number in place of the time")
    })
}

impl Searched<'_> {
    /// The checkpoint just before the first record at or after a time.
    pub(crate) async fn before(&self, time: Wall) -> Result<Option<Checkpoint>, String> {
        let mut window = FIRST_WINDOW;
        loop {
            let from = (window < YEAR).then(|| Wall(time.0.saturating_sub(window)));
            let around = self.around(from, time).await?;
            if around.end && !around.after {
                return Ok(None);
            }
            if let Some(number) = around.before {
                return Ok(Some(Checkpoint::At(Position::of(number))));
            }
            if from.is_none() {
                return Ok(Some(Checkpoint::TrimHorizon));
            }
            window = window.saturating_mul(GROWTH);
        }
    }

    /// Reads from `from`, or from the oldest record, to the first record at or after `time`. An end is believed when a second answer in a row
    /// claims it, from a new iterator, and brings no record.
    async fn around(&self, from: Option<Wall>, time: Wall) -> Result<Around, String> {
        let mut around = Around::default();
        let mut claimed = false;
        let mut iterator = Some(self.begin(from, None).await?);
        while let Some(via) = iterator {
            let request = self.kinesis.get_records().shard_iterator(via);
            let answer = request.set_stream_arn(self.stream.arn()).send().await;
            let answer = answer.map_err(|error| why(&error))?;
            for record in &answer.records {
                if arrival(record)? >= time.0 {
                    around.after = true;
                    return Ok(around);
                }
                let number = record.sequence_number().parse();
                around.before = Some(number.map_err(|error| format!("{error}"))?);
            }
            let at_tip = answer.millis_behind_latest.unwrap_or_default() == 0;
            let quiet = answer.records.is_empty();
            let claims = answer.next_shard_iterator.is_none();
            let proven = claims && quiet && claimed;
            claimed = claims;
            iterator = answer.next_shard_iterator;
            if iterator.is_some() && quiet && at_tip {
                return Ok(around);
            }
            self.runtime.sleep(PAUSE).await;
            if claimed && !proven {
                iterator = Some(self.begin(from, around.before).await?);
            }
        }
        around.end = true;
        Ok(around)
    }

    /// An iterator after this record; without one, from this time; without a time, from the oldest record.
    async fn begin(&self, from: Option<Wall>, after: Option<SequenceNumber>) -> Result<String, String> {
        let request = self.iterator();
        let request = match (after, from) {
            (Some(number), _) => request
                .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
                .starting_sequence_number(number.to_string()),
            (None, Some(from)) => {
                request.shard_iterator_type(ShardIteratorType::AtTimestamp).timestamp(wall_to_sdk(from))
            }
            (None, None) => request.shard_iterator_type(ShardIteratorType::TrimHorizon),
        };
        let answer = request.send().await.map_err(|error| why(&error))?;
        answer.shard_iterator.ok_or_else(|| "expected a shard iterator, found none".to_owned())
    }

    /// Whether Kinesis gives an iterator for a number.
    pub(crate) async fn accepts(&self, number: SequenceNumber) -> Result<(), String> {
        self.iterator()
            .shard_iterator_type(ShardIteratorType::AtSequenceNumber)
            .starting_sequence_number(number.to_string())
            .send()
            .await
            .map(|_| ())
            .map_err(|error| why(&error))
    }

    fn iterator(
        &self,
    ) -> aws_sdk_kinesis::operation::get_shard_iterator::builders::GetShardIteratorFluentBuilder {
        let shard = split_key(self.shard).map_or(self.shard, |(_, shard)| shard);
        self.kinesis
            .get_shard_iterator()
            .set_stream_name(self.stream.name())
            .set_stream_arn(self.stream.arn())
            .shard_id(shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_kinesis::primitives::{Blob, DateTime};

    #[test]
    fn a_record_without_an_arrival_time_is_on_no_side_of_a_time() {
        let record = |at: Option<DateTime>| {
            let record = Record::builder().sequence_number("4959").partition_key("k");
            let record = record.data(Blob::new("data")).set_approximate_arrival_timestamp(at);
            record.build().expect("all that is needed is there")
        };
        assert_eq!(arrival(&record(Some(DateTime::from_millis(-5)))), Ok(-5));
        let told = arrival(&record(None)).expect_err("nothing tells when it came");
        assert!(told.contains("expected an arrival time of the record 4959, found none"), "{told}");
    }
}
