//! The oracles' facts about an application's calls.

use crate::names::shard_of;
use crate::oracles::{Fact, LifeNo};
use leasehold_engine::input::Call;

/// The oracles' fact about an application's call, if any.
pub(super) fn asked(call: &Call, life: LifeNo) -> Option<Fact> {
    Some(match call {
        Call::Checkpoint { lease, token } => {
            Fact::CheckpointAsked { life, shard: shard_of(lease)?, token: token.0 }
        }
        Call::Pause { lease } => Fact::PauseAsked { life, shard: shard_of(lease)? },
        Call::Resume { lease } => Fact::ResumeAsked { life, shard: shard_of(lease)? },
        _ => return None,
    })
}
