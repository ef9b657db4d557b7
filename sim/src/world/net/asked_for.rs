//! The checkpoints in workers' requests for iterators. An answer that begins with another record is not of the place;
//! neither is an answer with unordered records.
//!
//! A worker takes no record of such an answer until three answers in a row agree over `stream_lag`.

use crate::oracles::{LifeNo, ShardNo};
use leasehold_engine::ids::FencingToken;
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::output::IteratorFrom;
use leasehold_engine::position::Position;
use leasehold_engine::time::{Mono, Span};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// For each shard that a life reads, the checkpoint in the last request for an iterator.
#[derive(Debug, Default)]
pub(super) struct AskedFor(BTreeMap<(LifeNo, ShardNo), Asked>);

#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Position,
    token: Option<FencingToken>,
    /// The answers that began with a later record. Answers that are doubtful for another reason neither confirm nor
    /// deny the gap.
    gap: Option<Other>,
    /// The last answers, if they are doubtful for another reason.
    other: Option<Other>,
    /// The life has taken records from this place. The life remembers these answers until a later answer follows on the
    /// records.
    taken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Other {
    /// The side of the checkpoint; and whether the answer had no record at all.
    side: (Ordering, bool),
    /// The first record of the last answer.
    first: Option<Position>,
    since: Mono,
    answers: u32,
    believed: bool,
}

/// The worker that receives an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) life: LifeNo,
    pub(super) about: Option<ShardNo>,
    /// The ownership of the request: a later ownership begins anew.
    pub(super) token: Option<FencingToken>,
    /// The place, in a request for an iterator.
    pub(super) place: Option<IteratorFrom>,
    /// The worker's iterator belongs to another shard.
    pub(super) misled: bool,
    /// The time by the worker's own clock.
    pub(super) now: Mono,
    /// The longest time for which answers may be stale.
    pub(super) lag: Span,
}

impl AskedFor {
    /// Whether the worker may take the records of an answer.
    pub(super) fn is_answered(&mut self, asker: Asker, outcome: &Outcome) -> bool {
        let Some(shard) = asker.about else {
            return true;
        };
        let key = (asker.life, shard);
        let answer = match (outcome, asker.place) {
            (Outcome::Applied(Reply::Iterator | Reply::Subscribed), Some(IteratorFrom::At(at))) => {
                let token = asker.token;
                let same = |asked: &&Asked| (asked.at, asked.token) == (at, token);
                let known = self.0.get(&key).filter(same);
                let asked = Asked {
                    at,
                    token,
                    gap: known.and_then(|asked| asked.gap),
                    other: known.and_then(|asked| asked.other),
                    taken: false,
                };
                self.0.insert(key, asked);
                return true;
            }
            (Outcome::Applied(Reply::Iterator | Reply::Subscribed), _) => {
                self.0.remove(&key);
                return true;
            }
            (Outcome::Applied(Reply::Records(answer)), _) => answer,
            _ => return true,
        };
        let Some(asked) = self.0.get_mut(&key) else {
            return !answer.unordered;
        };
        if asked.taken && !answer.unordered {
            if answer.count > 0 || answer.behind_ms == 0 {
                (asked.gap, asked.other) = (None, None);
            }
            return true;
        }
        if (asker.misled || answer.unordered) && answer.count > 0 {
            asked.other = None;
            return false;
        }
        let at_the_tip = answer.count == 0 && (answer.behind_ms == 0 || answer.end.is_some());
        let side = match answer.first {
            Some(first) => (first.sequence.cmp(&asked.at.sequence), false),
            None if at_the_tip => (Ordering::Greater, true),
            None => return true,
        };
        let taken = side.0 == Ordering::Equal || asked.is_believed(side, answer.first, asker);
        if side.0 == Ordering::Equal {
            (asked.gap, asked.other) = (None, None);
        }
        asked.taken = taken && answer.count > 0;
        taken
    }
}

impl Asked {
    /// Whether enough answers were on this side for long enough.
    fn is_believed(&mut self, side: (Ordering, bool), first: Option<Position>, asker: Asker) -> bool {
        let is_gap = side == (Ordering::Greater, false);
        let tip = |other: &Other| other.side == (Ordering::Greater, true) && other.believed;
        let same = match is_gap {
            true if self.gap.is_some_and(|gap| gap.believed && gap.first != first) => None,
            true => self.gap.or(self.other.filter(tip)),
            false => self.other.filter(|other| other.side == side),
        };
        let (since, before) = same.map_or((asker.now, 0), |other| (other.since, other.answers));
        let answers = before.saturating_add(1);
        let times = match same {
            Some(before) if is_gap && before.first != first => 2,
            _ => 1,
        };
        let agree = !is_gap || same.is_some_and(|before| before.first.is_some() && before.first <= first);
        let long = asker.now.since(since) >= asker.lag.times(u64::from(times));
        let believed = answers >= 3 * times && agree && long;
        let other = Other { side, first, since, answers, believed };
        (self.gap, self.other) = match is_gap {
            true => (Some(other), None),
            false => (self.gap.filter(|_| !believed), Some(other)),
        };
        believed
    }
}
