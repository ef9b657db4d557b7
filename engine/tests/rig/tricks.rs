//! What commands meet in place of an answer at once.

use super::acts::Wanted;
use super::refused;
use leasehold_engine::input::{Cause, Outcome, Reply, ShardPage, Why};
use leasehold_engine::output::Effect;
use leasehold_engine::shard::Shard;

/// What a worker's next matching command meets.
pub type Trap = Box<dyn FnMut(&Effect) -> Option<Trick>>;

#[derive(Clone)]
pub enum Trick {
    /// Executed, and answered with this instead.
    AppliedBut(Outcome),
    /// Not executed, and answered with this.
    Instead(Outcome),
    /// Not answered until released.
    Hang,
}

impl Trick {
    pub const THROTTLED: Self = Self::Instead(Outcome::NotSent(Cause::Throttled));
    /// Not executed, and nobody knows.
    pub const UNKNOWN: Self = Self::Instead(Outcome::Unknown(Cause::Timeout));
    /// Executed, and the answer is lost.
    pub const ANSWER_LOST: Self = Self::AppliedBut(Outcome::Unknown(Cause::Timeout));

    /// Not executed, and refused without the row.
    pub fn refused(why: Why) -> Self {
        Self::Instead(refused(why, None))
    }

    /// Not executed, and answered as if it was.
    pub fn reply(reply: Reply) -> Self {
        Self::Instead(Outcome::Applied(reply))
    }

    /// The only page of a listing.
    pub fn listed(shards: impl IntoIterator<Item = Shard>) -> Self {
        let shards = shards.into_iter().collect();
        Self::reply(Reply::Shards(ShardPage { shards, more: false }))
    }
}

/// Every such command hangs.
pub fn hangs(which: impl Wanted<Effect>) -> impl FnMut(&Effect) -> Option<Trick> {
    meets(which, Trick::Hang)
}

/// Every such command meets this trick.
pub fn meets(which: impl Wanted<Effect>, trick: Trick) -> impl FnMut(&Effect) -> Option<Trick> {
    move |effect| which.is(effect).then(|| trick.clone())
}

/// The first `times` such commands meet this trick.
pub fn first(times: u32, which: impl Wanted<Effect>, trick: Trick) -> impl FnMut(&Effect) -> Option<Trick> {
    let mut left = times;
    move |effect| {
        let met = left > 0 && which.is(effect);
        left -= u32::from(met);
        met.then(|| trick.clone())
    }
}
