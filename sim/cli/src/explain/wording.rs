//! Decisions about a shard as sentences.

use leasehold_engine::config::Config;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::notice::{Choice, LossReason, Notice, TakeReason};
use leasehold_engine::output::EndReason;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow, Renaming};
use leasehold_engine::time::Span;
use leasehold_sim::timeline::words::{self, shorten};
use std::fmt::Write as _;

/// A worker's name without the number of its life.
fn short(worker: &WorkerId) -> &str {
    words::worker(worker.as_str())
}

/// The grounds of a choice of leases, if the shard was a candidate.
pub(super) fn choice(choice: &Choice, name: &str, is_me: impl Fn(&LeaseKey) -> bool) -> Option<String> {
    let place = choice.chosen.iter().position(&is_me);
    let left = choice.left.iter().any(&is_me);
    if place.is_none() && !left {
        return None;
    }
    let mut text = match place {
        Some(_) => format!("Decides to take {name}: "),
        None => format!("Leaves {name} to others for now: "),
    };
    let _ = write!(
        text,
        "{} unfinished leases and {} live workers make {} a fair share, and this worker has {} ({}).",
        choice.unfinished,
        choice.workers,
        choice.target,
        choice.ours,
        counts(choice),
    );
    let _ = match &choice.victim {
        Some(victim) => write!(
            text,
            " Nothing is free, so it takes {} of the {} leases of {}, who has the most",
            choice.taken,
            choice.candidates,
            short(victim)
        ),
        None => write!(text, " Of {} free leases, it takes {} now", choice.candidates, choice.taken),
    };
    let others = |leases: &[LeaseKey]| -> Vec<String> {
        let others = leases.iter().filter(|lease| !is_me(lease));
        others.map(|lease| shorten(lease.as_str())).collect()
    };
    let (with, lost) = (others(&choice.chosen), others(&choice.left));
    if !with.is_empty() {
        let _ = write!(text, "; drawn {}: {}", if left { "instead" } else { "with it" }, with.join(", "));
    }
    if !lost.is_empty() {
        let _ = write!(text, "; the draw put {} after them", lost.join(", "));
    }
    text.push('.');
    Some(text)
}

/// A notice about the shard, with its reason and its meaning.
pub(super) fn notice(notice: &Notice, name: &str, config: Option<&Config>) -> String {
    let lasts = config.map_or(Span::ZERO, |config| config.lease_duration());
    match notice {
        Notice::Took { token, why, .. } => {
            let why = match why {
                TakeReason::Unowned => "it had no owner, so no other worker can still count on it".to_owned(),
                TakeReason::Expired { owner, idle } => format!(
                    "the row of {} had not changed for {idle}, and a lease lasts {lasts}",
                    short(owner)
                ),
                TakeReason::Stolen { owner, theirs, ours, target } => {
                    let settles = config.is_some_and(|config| config.steal_cooldown());
                    let wait = match settles {
                        true => {
                            format!("; that one lives, so the shard rests for {lasts} until it must know")
                        }
                        false => "; that one lives, and may go on for a moment".to_owned(),
                    };
                    let owner = short(owner);
                    format!("{owner} had {theirs}, this worker {ours}, and {target} is a fair share{wait}")
                }
                TakeReason::Ours => "its row names this worker already".to_owned(),
                TakeReason::Given => "its owner handed it over, as it was asked to".to_owned(),
                TakeReason::LeftLying { owner, idle } => format!(
                    "it was handed over to {}, which asked for it and did not take it for {idle}",
                    short(owner)
                ),
                TakeReason::FormerLife { owner } => format!(
                    "{} was a former process of this worker, and `unique_names` says that it has ended",
                    short(owner)
                ),
                _ => "for a reason that has no words here".to_owned(),
            };
            format!("It took {name} (token {}): {why}.", token.0)
        }
        Notice::MissedTake { owner, .. } => match owner {
            Some(owner) => format!("Did not get {name}: its row names {}.", short(owner)),
            None => format!("Did not get {name}, which it tried to take."),
        },
        Notice::Claimed { owner, .. } => {
            format!("It asked {} for {name}, which has more than its share.", short(owner))
        }
        Notice::Yields { .. } => format!("It is another member's turn to have {name}: it will be given up."),
        Notice::Adopted { counter, .. } => format!(
            "The row shows counter {counter} and this worker: its own write of unknown outcome had been applied. \
             It is not taken for a loss."
        ),
        Notice::Fenced { .. } => format!(
            "No renewal was acknowledged for too long: others may take {name} for expired soon, so nothing more is \
             handed over and a running handler is asked to stop. The lease is not given up: if the next renewal's \
             guard holds, no other worker had it meanwhile."
        ),
        Notice::Resumed { .. } => {
            format!("A renewal's guard held, so no other worker had {name} meanwhile: it goes on.")
        }
        Notice::Lost { why, .. } => format!("It lost {name}: {}.", lost(why)),
        Notice::Released { .. } => {
            format!("It released {name}; a worker that sees this may take it at once.")
        }
        Notice::Restoring { .. } => {
            format!(
                "Somebody removed the row of {name}. It is put back, as this worker holds it and knows its checkpoint."
            )
        }
        Notice::Mending { .. } => {
            format!(
                "Somebody removed the counter from the row of {name}. The row still names this worker, whose belief in the lease \
                 has not ended, so no other worker had it meanwhile: the next write puts a counter back that is greater than the last one."
            )
        }
        Notice::Blocked { parents, .. } => {
            let parents: Vec<String> = parents.iter().map(|parent| shorten(parent.as_str())).collect();
            format!(
                "{name} waits for {}: a child begins after its parents' end is durable, and a shard ends after its \
                 children have leases.",
                parents.join(" and ")
            )
        }
        Notice::Opened { from, since, token, .. } => {
            let since = since.map_or_else(String::new, |since| format!(", that is {since}"));
            format!("It started processing {name} from {from}{since} (token {}).", token.0)
        }
        Notice::Closed { reason, .. } => {
            let reason = match reason {
                EndReason::ShardEnded => "all of it was processed",
                EndReason::LeaseLost => "another worker has the lease, or may have it",
                EndReason::Shutdown => "this worker shuts down",
                EndReason::HandedOver => "it is handed over",
                EndReason::SourceGone => "it cannot go on with its stream and table",
                EndReason::StreamRemoved => "its stream is read no more",
                _ => "for a reason that has no words here",
            };
            format!("It stopped processing {name}: {reason}.")
        }
        Notice::Ended { children, .. } => {
            let children: Vec<String> = children.iter().map(|child| shorten(child.as_str())).collect();
            match children.as_slice() {
                [] => format!("The end of {name} is durable. It has no children."),
                children => format!(
                    "The end of {name} is durable, and so are the leases of {}.",
                    children.join(" and ")
                ),
            }
        }
        Notice::Created { checkpoint, why, .. } => {
            format!("It created the lease of {name} at {checkpoint}: {}.", shorten(why))
        }
        other => {
            let text = shorten(&other.to_string());
            format!("It says: {text}.")
        }
    }
}

/// The condition of a write.
pub(super) fn condition(change: &Change) -> String {
    match change {
        Change::Claim { counter, from, .. } => {
            format!(" if the row still names {} with counter {counter}", short(from))
        }
        Change::Take { counter, from, .. } | Change::Assign { counter, from, .. } => {
            let from = from.as_ref().map_or("no worker", short);
            format!(" if the row still names {from} with counter {counter}")
        }
        Change::Offer { from, .. } => {
            format!(" if the row still names {} and is not being handed over", short(from))
        }
        Change::Renew { guard, .. }
        | Change::Checkpoint { guard, .. }
        | Change::End { guard, .. }
        | Change::Release { guard, .. }
        | Change::HandOver { guard, .. } => {
            format!(" if the row still names this worker with counter {}", guard.counter)
        }
        Change::Create(_) => " if there is no row yet".to_owned(),
        Change::Reset { counter, .. } | Change::Forget { counter, .. } => {
            format!(" if the row still has counter {counter}")
        }
        Change::Name(renaming) => {
            let Renaming { named, counter, .. } = &**renaming;
            format!(" if the row still names {named} and has counter {counter}")
        }
        Change::Delete { counter, .. } => format!(" if the row is finished and still has counter {counter}"),
        Change::SetRange { .. } | Change::Weigh { .. } => String::new(),
    }
}

/// The meaning of a row for a worker without the lease.
pub(super) fn outlook(row: &LeaseRow, held: bool, config: Option<&Config>) -> String {
    let Some(config) = config.filter(|_| !held) else {
        return String::new();
    };
    match (row.checkpoint, row.actual_owner()) {
        (Checkpoint::ShardEnd, _) => " It is finished, so no worker takes it.".to_owned(),
        (_, None) => " It is free: a worker with less than its fair share may take it.".to_owned(),
        (_, Some(_)) => format!(
            " It is taken for expired if this stays so for {}; until then it can only be stolen.",
            config.lease_duration()
        ),
    }
}

fn counts(choice: &Choice) -> String {
    let mut said: Vec<String> =
        choice.counts.iter().map(|(worker, count)| format!("{}: {count}", short(worker))).collect();
    let more = (choice.workers as usize).saturating_sub(said.len());
    if more > 0 {
        said.push(format!("{more} more workers"));
    }
    said.join(", ")
}

fn lost(why: &LossReason) -> String {
    match why {
        LossReason::Taken { by: Some(by), row } => {
            format!("its row names {} with counter {}", short(by), row.counter)
        }
        LossReason::Taken { by: None, row } => {
            format!("its row names no owner any more, with counter {}", row.counter)
        }
        LossReason::RowGone => "its row is gone, and could not be put back".to_owned(),
        LossReason::Unreadable => "its row became something that is no lease".to_owned(),
        LossReason::AlreadyEnded => "its row says that the shard has ended".to_owned(),
        other => format!("it is lost{other}"),
    }
}
