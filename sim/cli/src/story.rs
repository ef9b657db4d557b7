//! What workers tell, in the engine's words and with short names.

use leasehold_engine::ids::WorkerId;
use leasehold_engine::notice::Notice;

/// The common beginning of shard ids.
const SHARD: &str = "shardId-";

/// A shard's id without its leading zeros.
pub(super) fn short(shard: &str) -> String {
    match shard.strip_prefix(SHARD) {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) && !number.is_empty() => {
            let digits = number.trim_start_matches('0');
            format!("shard-{}", if digits.is_empty() { "0" } else { digits })
        }
        _ => shard.to_owned(),
    }
}

/// A worker's name without the suffix of its life.
fn name(worker: &WorkerId) -> &str {
    match worker.as_str().rsplit_once(':') {
        Some((name, life))
            if (8..=16).contains(&life.len()) && life.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => worker.as_str(),
    }
}

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
    let sentence = notice.to_string();
    let mut told = String::with_capacity(sentence.len());
    let mut rest = sentence.as_str();
    while let Some(at) = rest.find(SHARD) {
        let digits = rest[at + SHARD.len()..].bytes();
        let end = at + SHARD.len() + digits.take_while(u8::is_ascii_digit).count();
        told.push_str(&rest[..at]);
        told.push_str(&short(&rest[at..end]));
        rest = &rest[end..];
    }
    told.push_str(rest);
    match notice.other_worker() {
        Some(worker) => told.replacen(worker.as_str(), name(worker), 1),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::notice::{LossReason, TakeReason};

    #[test]
    fn shard_ids_are_shortened_only_if_they_look_like_it() {
        assert_eq!(short("shardId-000000000000"), "shard-0");
        assert_eq!(short("shardId-000000000120"), "shard-120");
        assert_eq!(short("shardId-"), "shardId-");
        assert_eq!(short("orders:1"), "orders:1");
    }

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
