//! What workers tell, in words.

use leasehold_engine::ids::WorkerId;
use leasehold_engine::notice::{LossReason, Notice, TakeReason};
use leasehold_engine::output::EndReason;
use std::fmt::Display;

/// A shard's id without the zeros that make all of them look alike.
pub(super) fn short(shard: &str) -> String {
    match shard.strip_prefix("shardId-") {
        Some(number) if number.bytes().all(|b| b.is_ascii_digit()) && !number.is_empty() => {
            let digits = number.trim_start_matches('0');
            format!("shard-{}", if digits.is_empty() { "0" } else { digits })
        }
        _ => shard.to_owned(),
    }
}

/// A worker's name without the number of its life.
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

fn list<T: Display>(shards: &[T]) -> String {
    let names: Vec<String> = shards.iter().map(|shard| short(&shard.to_string())).collect();
    match names.as_slice() {
        [] => "no shard".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whether a notice is a turn of the story rather than the daily round.
#[cfg(feature = "cli")]
pub(super) fn is_a_turn(notice: &Notice) -> bool {
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
            | Notice::Chose(_)
            | Notice::Trouble { .. }
            | Notice::Opened { .. }
            | Notice::Closed {
                reason: EndReason::ShardEnded | EndReason::LeaseLost,
                ..
            }
            | Notice::Stopped
    )
}

/// A notice as a sentence without its subject, the worker.
pub(super) fn tell(notice: &Notice) -> String {
    match notice {
        Notice::Booted { worker, hold } => format!("begins as {worker}, believing in a lease for {hold}"),
        Notice::TableReady { created: true } => "created the lease table".to_owned(),
        Notice::TableReady { created: false } => "found the lease table".to_owned(),
        Notice::Scanned {
            leases,
            unfinished,
            workers,
            pages,
            ..
        } => format!(
            "saw {leases} leases, {unfinished} of them unfinished, of {workers} workers ({pages} pages)"
        ),
        Notice::Unreadable { key, detail } => {
            format!("cannot read the row of {}: {detail}", short(key.as_str()))
        }
        Notice::Rank { rank: 0, workers } => format!("leads {workers} workers"),
        Notice::Rank { rank, workers } => format!("is number {} of {workers} workers to lead", rank + 1),
        Notice::Chose(choice) => choice.to_string(),
        Notice::Took { lease, why, .. } => format!("took {}{}", short(lease.as_str()), why_taken(why)),
        Notice::MissedTake { lease, owner } => format!(
            "wanted {}, but {} has it",
            short(lease.as_str()),
            owner.as_ref().map_or("somebody", name)
        ),
        Notice::Adopted { lease, .. } => format!(
            "found that its own write to {} had been applied after all",
            short(lease.as_str())
        ),
        Notice::Fenced { lease } => format!(
            "is not sure any more to own {}, and pauses it",
            short(lease.as_str())
        ),
        Notice::Resumed { lease } => format!("is sure again to own {}", short(lease.as_str())),
        Notice::Lost { lease, why } => format!("lost {}{}", short(lease.as_str()), why_lost(why)),
        Notice::Released { lease } => format!("released {}", short(lease.as_str())),
        Notice::Restoring { lease } => format!("puts back the removed row of {}", short(lease.as_str())),
        Notice::Blocked { lease, parents } => {
            format!(
                "holds {} back until {} ended",
                short(lease.as_str()),
                list(parents)
            )
        }
        Notice::Opened { lease, from, .. } => format!("processes {} from {from}", short(lease.as_str())),
        Notice::Closed { lease, reason, .. } => format!(
            "stopped processing {}: {}",
            short(lease.as_str()),
            match reason {
                EndReason::ShardEnded => "the shard has ended",
                EndReason::LeaseLost => "the lease was lost",
                EndReason::Shutdown => "shutdown",
                EndReason::HandedOver => "handed over",
                EndReason::SourceGone => "the stream is gone",
            }
        ),
        Notice::Checkpointed { lease, position } => format!("is at {position} of {}", short(lease.as_str())),
        Notice::Ended { lease, children } => {
            format!("finished {}; {} can begin", short(lease.as_str()), list(children))
        }
        Notice::Hole { seen, needed, .. } => {
            format!("sees a part of the hash space without a lease ({seen} of {needed} times)")
        }
        Notice::Listing { why } => format!("lists the shards: {why}"),
        Notice::BadListing { detail } => format!("cannot use the list of shards: {detail}"),
        Notice::Planned { create, shards } => format!("plans {create} new leases for {shards} shards"),
        Notice::Created {
            lease, checkpoint, ..
        } => format!("created the lease of {} at {checkpoint}", short(lease.as_str())),
        Notice::Removed { lease } => format!("removed the finished lease of {}", short(lease.as_str())),
        Notice::HandlerFailed {
            lease,
            attempt,
            again_in,
            detail,
        } => format!(
            "will hand over the batch of {} again in {again_in}, as attempt {attempt} failed: {detail}",
            short(lease.as_str())
        ),
        Notice::Trimmed { lease, detail } => {
            format!(
                "found records of {} trimmed before they were read: {detail}",
                short(lease.as_str())
            )
        }
        Notice::Trouble {
            what, how, again_in, ..
        } => format!("has trouble to {what}: {how}; again in {again_in}"),
        Notice::Stray { what } => format!("ignores {what}"),
        Notice::Fatal(fatal) => format!("cannot go on: {fatal}"),
        Notice::ShuttingDown { held: 1 } => "shuts down with 1 lease".to_owned(),
        Notice::ShuttingDown { held } => format!("shuts down with {held} leases"),
        Notice::Stopped => "has stopped".to_owned(),
    }
}

fn why_taken(why: &TakeReason) -> String {
    match why {
        TakeReason::Unowned => String::new(),
        TakeReason::Expired { owner, idle } => format!(": {} has shown no life for {idle}", name(owner)),
        TakeReason::Stolen {
            owner,
            theirs,
            ours,
            target,
        } => format!(
            " from {}, who had {theirs} to its {ours}; {target} is fair",
            name(owner)
        ),
        TakeReason::Ours => ", which names it already".to_owned(),
    }
}

fn why_lost(why: &LossReason) -> String {
    match why {
        LossReason::Taken { by: Some(by), .. } => format!(" to {}", name(by)),
        LossReason::Taken { by: None, .. } => ": its row names nobody".to_owned(),
        LossReason::RowGone => ": its row is gone".to_owned(),
        LossReason::Unreadable => ": its row is no lease any more".to_owned(),
        LossReason::AlreadyEnded => ": it had ended already".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "took shard-3 from worker-1, who had 4 to its 1; 2 is fair"
        );
    }
}
