//! Answers of a replica (late or partial): the replica does not find a shard, and its listings and descriptions of the
//! same moment agree. And single wrong answers about the table, the stream or a permission.
//!
//! A replica is wrong for no longer than three quarters of a scan interval, and about one shard once to one worker. The
//! engine assumes no more: the agreement of several answers, a scan interval apart, is true.

use super::{Chance, Deed, Setting, Site, rate};
use crate::draws::{Draws, Roll};
use crate::oracles::ShardNo;
use serde::{Deserialize, Serialize};

/// How many times as long as a replica is wrong, answers may claim the end of a shard that listings show open.
const LONG: u64 = 8;

/// The contents of a replica's listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// All shards.
    All,
    /// The stream as it was before the shard began.
    Before,
    /// All shards but the forgotten shard.
    Without,
    /// The children of the forgotten shard, and the open shards beside it.
    Later,
    /// No shard.
    Nothing,
}

/// The contents of descriptions of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// The truth.
    Truth,
    /// The stream or the table does not exist.
    Missing,
    /// The stream or the table is being deleted.
    Deleting,
    /// The stream was created at another time, and the table has another key.
    Another,
    /// The worker has no permission.
    Denied,
}

impl Says {
    /// The family of the single wrong answer, for marks.
    pub(super) fn family(self) -> &'static str {
        match self {
            Says::Truth | Says::Missing => "said-missing",
            Says::Deleting => "said-deleting",
            Says::Another => "said-another",
            Says::Denied => "said-denied",
        }
    }
}

impl Shows {
    /// The family of the replica, for marks.
    pub(super) fn family(self) -> &'static str {
        match self {
            Shows::All => "replica-lacks-shard",
            Shows::Before => "replica-behind",
            Shows::Without | Shows::Later => "replica-partial",
            Shows::Nothing => "replica-empty",
        }
    }
}

/// A replica without knowledge of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The unknown shard.
    pub shard: ShardNo,
    /// The contents of listings.
    pub shows: Shows,
    /// The contents of descriptions of the stream.
    pub says: Says,
}

impl Replica {
    /// A replica that has forgotten a shard too early: the shard has ended, and its records still exist.
    pub(crate) fn that_forgot(shard: ShardNo) -> Self {
        let (shows, says) = (Shows::Later, Says::Truth);
        Self { shard, shows, says }
    }
}

/// The rate of wrong answers, in one of a thousand requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplicaFaults {
    /// Reads of a shard by a replica without knowledge of the shard. The rate for iterators and for reads of a shard
    /// that began or ended lately; other reads have a tenth of this rate.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub not_found: u32,
    /// Single wrong answers of DescribeTable, CreateTable and DescribeStreamSummary.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub wrong: u32,
    /// Reads of a shard whose answer claims the end: either a single answer with the true children, or answers without
    /// children for as long as a replica may be wrong; of an open shard, for up to eight times as long. Once for each worker and
    /// shard. The rate is per read.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub end_claimed: u32,
}

impl ReplicaFaults {
    pub(super) fn draw(draws: Draws, _: Setting) -> Self {
        Self {
            not_found: rate(draws, "replica", 250),
            wrong: rate(draws, "said", 300),
            end_claimed: rate(draws, "end-claimed", 100),
        }
    }

    /// The fault drawn for a read of a shard. `turns`: the shard began or ended lately. `most_us`: the longest time for
    /// which a replica is wrong.
    pub(crate) fn chance_of_not_found(
        &self, site: Site, turns: bool, most_us: u64, roll: &mut Roll,
    ) -> Option<Chance> {
        let per_mille = match site.deed {
            Deed::Iterator => self.not_found,
            Deed::Fetch if turns => self.not_found,
            Deed::Fetch => self.not_found / 10,
            _ => 0,
        };
        if !roll.happens(per_mille) {
            return None;
        }
        let shows = match roll.below(10) {
            0 => Shows::All,
            1..4 => Shows::Before,
            4 | 5 => Shows::Without,
            6..9 => Shows::Later,
            _ => Shows::Nothing,
        };
        let says = match roll.below(8) {
            0 => Says::Missing,
            1 => Says::Deleting,
            2 => Says::Another,
            _ => Says::Truth,
        };
        let for_us = roll.magnitude(most_us.div_ceil(20).max(1), most_us.max(2));
        Some(Chance::Replica { for_us, shows, says })
    }

    /// The fault drawn for a listing of a stream with an ended shard. Few worlds have an ended shard before the table
    /// is filled. So in a world with late replicas, a quarter of these listings come from a late replica.
    pub(crate) fn chance_of_partial_list(
        &self, shard: ShardNo, most_us: u64, roll: &mut Roll,
    ) -> Option<Chance> {
        if self.not_found == 0 || roll.below(4) > 0 {
            return None;
        }
        let for_us = roll.magnitude(most_us.div_ceil(20).max(1), most_us.max(2));
        Some(Chance::PartialList { shard, for_us })
    }

    /// The fault drawn for an answer about a shard. `most_us`: the longest time for which a replica is wrong.
    pub(crate) fn chance_of_claimed_end(
        &self, has_ended: bool, most_us: u64, roll: &mut Roll,
    ) -> Option<Chance> {
        // Few reads are of an ended shard.
        let per_mille = self.end_claimed.saturating_mul(if has_ended { 3 } else { 1 });
        if !roll.happens(per_mille.min(1_000)) {
            return None;
        }
        let named = has_ended && roll.below(2) == 0;
        let (least_us, most_us) = (most_us.div_ceil(20).max(1), most_us.max(2));
        let for_us = match named || roll.below(2) == 0 {
            true => 0,
            // Listings deny the end of an open shard, however long answers claim the end.
            false if !has_ended && roll.below(2) == 0 => roll.magnitude(most_us, LONG * most_us),
            false => roll.magnitude(least_us, most_us),
        };
        Some(Chance::EndClaimed { named, for_us })
    }

    /// The fault drawn for an answer about the table or the stream. `first`: no answer came before, so no answer can
    /// name another stream or table.
    pub(crate) fn chance_of_wrong(&self, first: bool, roll: &mut Roll) -> Option<Chance> {
        if !roll.happens(self.wrong) {
            return None;
        }
        let says = match roll.below(4) {
            0 => Says::Missing,
            1 => Says::Denied,
            2 => Says::Deleting,
            _ if first => Says::Denied,
            _ => Says::Another,
        };
        Some(Chance::Wrong { says })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(deed: Deed) -> Site {
        Site { worker: 0, life: 0, deed, shard: Some(0), nth: 0 }
    }

    #[test]
    fn only_reads_miss_a_shard_and_no_replica_is_wrong_too_long() {
        let faults = ReplicaFaults { not_found: 500, wrong: 0, end_claimed: 0 };
        let mut kinds = std::collections::BTreeSet::new();
        for n in 0..500 {
            let mut roll = Draws::new(1).roll("t", n);
            let found = faults.chance_of_not_found(site(Deed::Iterator), false, 1_000_000, &mut roll);
            if let Some(Chance::Replica { for_us, shows, says }) = found {
                assert!((1..=1_000_000).contains(&for_us), "{for_us}");
                kinds.insert((Some(shows), None));
                kinds.insert((None, Some(says)));
            }
            let mut roll = Draws::new(1).roll("t", n);
            assert_eq!(faults.chance_of_not_found(site(Deed::List), true, 9, &mut roll), None);
        }
        assert_eq!(kinds.len(), 5 + 4, "{kinds:?}");
    }

    #[test]
    fn a_first_answer_says_nothing_of_another_stream() {
        let faults = ReplicaFaults { not_found: 0, wrong: 1_000, end_claimed: 0 };
        let another = Some(Chance::Wrong { says: Says::Another });
        let of = |first, n| faults.chance_of_wrong(first, &mut Draws::new(2).roll("t", n));
        assert!((0..200).all(|n| of(true, n) != another));
        assert!((0..200).any(|n| of(false, n) == another));
    }
}
