//! Answers of replicas (late or partial), and single wrong answers.

use super::{Carry, Source};
use crate::draws::Roll;
use crate::faults::{Replica, Says, Shows};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::streams::StreamNo;
use leasehold_engine::input::{Outcome, Refusal, Reply, StreamState, TableState, Why};
use leasehold_engine::output::{ShardFilter, TableOp};
use leasehold_engine::time::Wall;
use leasehold_local_aws::kinesis::{ShardIndex, ShardInfo};

/// The error of a wrong creation time in a description, in ms. No row of a world names a stream with this time.
const OTHER_MS: i64 = 43_200_000;

/// The circumstances of an answer besides the truth: the delay of a listing, and the replica.
pub(crate) struct Sight<'a> {
    pub(super) roll: &'a mut Roll,
    pub(super) replica: Option<Replica>,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(roll: &'a mut Roll, replica: Option<Replica>) -> Self {
        Self { roll, replica }
    }

    /// The filter of a listing. A replica considers a shard forgotten; all later shards were then open at the horizon,
    /// for this replica.
    pub(super) fn filter(&self, filter: ShardFilter) -> ShardFilter {
        match self.replica.map(|replica| replica.shows) {
            Some(Shows::Later) => ShardFilter::All,
            _ => filter,
        }
    }

    /// The replica that answers, if late or partial.
    pub(crate) fn replica(&self) -> Option<Replica> {
        self.replica
    }
}

/// A read of a shard unknown to the replica.
pub(crate) fn not_found(replica: Replica, shard: ShardNo) -> Option<(Outcome, Carry)> {
    let detail = format!("Shard {shard} does not exist.");
    (shard == replica.shard).then(|| (refused(Why::NotFound, detail), Carry::Nothing))
}

/// The oracles' fact about an answer that claims the end of a shard without children.
pub(crate) fn claimed_end(life: LifeNo, about: Option<ShardNo>, outcome: &Outcome) -> Option<Fact> {
    match (about, outcome) {
        (Some(shard), Outcome::Applied(Reply::Records(answer))) => {
            let weak = answer.end.as_ref().is_some_and(Vec::is_empty);
            weak.then_some(Fact::EndClaimed { life, shard })
        }
        _ => None,
    }
}

/// A wrong answer to this operation on the table, if any exists of this kind.
pub(crate) fn of_table(op: &TableOp, says: Says) -> Option<Outcome> {
    match (op, says) {
        (TableOp::Describe | TableOp::Create, Says::Denied) => Some(denied()),
        (TableOp::Describe, says) => Some(Outcome::Applied(Reply::Table(match says {
            Says::Missing => TableState::Missing,
            Says::Deleting => TableState::Deleting,
            Says::Another => TableState::Incompatible,
            Says::Truth | Says::Denied => return None,
        }))),
        _ => None,
    }
}

impl Source {
    /// A replica's description of a stream.
    pub(crate) fn describe_as(&mut self, now: Time, stream: StreamNo, says: Says) -> Outcome {
        let truth = self.describe(now, stream);
        let Outcome::Applied(Reply::Stream(StreamState { readable, created, arn })) = truth else {
            return truth;
        };
        let state =
            |readable, created| Outcome::Applied(Reply::Stream(StreamState { readable, created, arn }));
        match says {
            Says::Truth => state(readable, created),
            Says::Deleting => state(false, created),
            Says::Another => state(readable, Wall(created.0 - OTHER_MS)),
            Says::Missing => refused(Why::NotFound, "Stream does not exist.".to_owned()),
            Says::Denied => denied(),
        }
    }

    /// A shard in a replica's listing.
    pub(super) fn seen_by(
        &self, replica: Replica, stream: StreamNo, mut info: ShardInfo,
    ) -> Option<ShardInfo> {
        let (of, unknown) = self.streams.place(replica.shard);
        if of != stream {
            return Some(info);
        }
        let truth = self.truth(stream)?;
        let began_ms = truth.shard(unknown)?.opened_ms();
        let shard = truth.shard(info.shard)?;
        match replica.shows {
            Shows::All => {}
            Shows::Nothing => return None,
            Shows::Without if info.shard == unknown => return None,
            Shows::Without => {}
            Shows::Later if info.shard == unknown || !shard.is_open() => return None,
            Shows::Later => {}
            Shows::Before if shard.opened_ms() >= began_ms => return None,
            Shows::Before => {
                if shard.closed_ms().is_some_and(|closed| closed >= began_ms) {
                    info.ending_sequence = None;
                }
            }
        }
        Some(info)
    }

    /// An ended and listed shard of a stream: the youngest.
    pub(crate) fn some_ended(&self, stream: StreamNo) -> Option<ShardNo> {
        let indexes = (0..self.truth(stream)?.shards().len() as u32).rev();
        let mut shards = indexes.map(|index| self.streams.shard(stream, ShardIndex(index)));
        shards.find(|shard| self.shard(*shard).is_some_and(|shard| !shard.is_open()))
    }

    /// Whether a shard has ended.
    pub(crate) fn has_ended(&self, shard: ShardNo) -> bool {
        self.shard(shard).is_some_and(|shard| !shard.is_open())
    }

    /// Whether a shard began or ended in the last this many ms.
    pub(crate) fn is_turning(&self, now_ms: i64, shard: ShardNo, within_ms: i64) -> bool {
        let lately = |at: i64| now_ms - at < within_ms;
        self.shard(shard)
            .is_some_and(|shard| lately(shard.opened_ms()) || shard.closed_ms().is_some_and(lately))
    }
}

fn denied() -> Outcome {
    refused(Why::Denied, "is not authorized to perform this operation".to_owned())
}

fn refused(why: Why, detail: String) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail })
}
