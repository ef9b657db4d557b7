//! What workers tell, in the engine's words and with short names.

use leasehold_engine::notice::Notice;
use leasehold_sim::timeline::words::{shorten, worker};

/// Whether a notice is a turn of the story rather than the daily round.
#[cfg(feature = "aws")]
pub(super) fn is_a_turn(notice: &Notice) -> bool {
    use leasehold_engine::output::EndReason;
    !matches!(
        notice,
        Notice::Booted { .. }
            | Notice::Scanned { .. }
            | Notice::Checkpointed { .. }
            | Notice::Rank { .. }
            | Notice::Listing { .. }
            | Notice::Hole { .. }
            | Notice::Planned { .. }
            | Notice::Blocked { .. }
            | Notice::MissedTake { .. }
            | Notice::Spared { .. }
            | Notice::Chose(_)
            | Notice::Trouble { .. }
            | Notice::Opened { .. }
            | Notice::Closed { reason: EndReason::ShardEnded | EndReason::LeaseLost, .. }
            | Notice::Stopped(_)
    )
}

/// A notice as a sentence without its subject, the worker, and with names that can be told apart at a glance.
pub(super) fn tell(notice: &Notice) -> String {
    let told = shorten(&notice.to_string());
    match notice.other_worker() {
        Some(other) => told.replacen(other.as_str(), worker(other.as_str()), 1),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::notice::{LossReason, TakeReason};

    #[test]
    fn a_theft_says_why() {
        let notice = Notice::Took {
            lease: "shardId-000000000003".into(),
            token: leasehold_engine::ids::FencingToken(7),
            why: TakeReason::Stolen {
                owner: "worker-1:00c0ffee00c0ffee".into(),
                theirs: 4,
                ours: 1,
                target: 2,
            },
        };
        assert_eq!(
            tell(&notice),
            "stole shard-3 from worker-1, which had 4 leases: this worker had 1, and its fair share is 2"
        );
    }

    #[test]
    fn every_name_in_a_sentence_is_shortened() {
        let ended = Notice::Ended {
            lease: "shardId-000000000003".into(),
            children: ["shardId-000000000004", "orders", "shardId-000000000120"].map(Into::into).to_vec(),
        };
        assert_eq!(tell(&ended), "finished shard-3, whose children are shard-4, orders and shard-120");
        let missed =
            |owner: &str| Notice::MissedTake { lease: "shardId-0".into(), owner: Some(owner.into()) };
        assert_eq!(tell(&missed("w:00c0ffee00c0ffee")), "did not get shard-0: its row names w");
        assert_eq!(tell(&missed("w:8080")), "did not get shard-0: its row names w:8080");
        let lost = Notice::Lost { lease: "shardId-".into(), why: LossReason::RowGone };
        assert_eq!(tell(&lost), "lost shardId-: its row was removed, and could not be put back");
    }
}
