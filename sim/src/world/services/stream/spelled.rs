//! Answers of the in-memory Kinesis in the engine's terms.

use super::{Carry, ReadOn};
use crate::names::{Names, sequence};
use crate::oracles::ShardNo;
use leasehold_engine::input::{Cause, Fetched, Outcome, Refusal, Reply, Why};
use leasehold_engine::shard::{ChildShard, HashKey, HashRange, Shard};
use leasehold_local_aws::kinesis::{ApiError, ShardInfo, ShardIterator};

/// A child in its parent's last answer.
pub(super) fn child(child: leasehold_local_aws::kinesis::ChildShard, names: &mut Names) -> ChildShard {
    ChildShard {
        id: names.id(child.shard).clone(),
        parents: child.parents.iter().map(|parent| names.id(*parent).clone()).collect(),
        range: range(child.hash_range),
    }
}

fn range(range: leasehold_local_aws::kinesis::HashRange) -> HashRange {
    HashRange { start: HashKey(range.start), end: HashKey(range.end) }
}

pub(super) fn shard(info: ShardInfo, names: &mut Names) -> Shard {
    Shard {
        id: names.id(info.shard).clone(),
        parent: info.parent.map(|parent| names.id(parent).clone()),
        adjacent_parent: info.adjacent_parent.map(|parent| names.id(parent).clone()),
        range: range(info.hash_range),
        starting: sequence(info.starting_sequence),
        ending: info.ending_sequence.map(sequence),
    }
}

/// The service's message about a sequence number of another stream.
const OF_ANOTHER_STREAM: &str = "did not come from this stream";

pub(super) fn failure(error: ApiError) -> Outcome {
    let why = match error.code {
        "ResourceNotFoundException" => Why::NotFound,
        "ResourceInUseException" => Why::InUse,
        "ExpiredIteratorException" | "ExpiredNextTokenException" => Why::Expired,
        "ProvisionedThroughputExceededException" | "LimitExceededException" => {
            return Outcome::NotSent(Cause::Throttled);
        }
        _ if error.message.contains(OF_ANOTHER_STREAM) => Why::OfAnotherStream,
        _ => Why::Invalid,
    };
    Outcome::Refused(Refusal { why, current: None, detail: error.message })
}

/// An answer without records from a shard with records.
pub(super) fn nothing_yet(shard: ShardNo, next: ShardIterator) -> (Outcome, Carry) {
    let fetched = Fetched { behind_ms: 1_000, ..Fetched::default() };
    let carry = Carry::Batch { shard, first: 1, last: 0, next: Some(ReadOn::Iterator(next)), low: None };
    (Outcome::Applied(Reply::Records(fetched)), carry)
}
