//! Chance faults, each bound to its request.
//!
//! A world either draws the faults while the world runs, or receives a list of faults. The name of a fault's request
//! depends neither on time nor on the number of other requests, so removing a fault leaves all other faults in place.

use super::{Misread, Says, Shows};
use crate::oracles::ShardNo;
use crate::span::micros;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A worker's act that a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Deed {
    /// DescribeTable, CreateTable, DescribeStreamSummary.
    Setup,
    /// A page of a scan.
    Scan,
    /// A read of a row.
    Read,
    Create,
    Renew,
    Take,
    Checkpoint,
    End,
    Release,
    HandOver,
    SetRange,
    Delete,
    /// A page of shards.
    List,
    /// GetShardIterator.
    Iterator,
    /// GetRecords.
    Fetch,
    /// A batch handed to the application.
    Batch,
    /// An operation on the tables of members.
    Members,
}

impl Deed {
    /// All deeds in their order.
    pub const ALL: [(Deed, &'static str); 17] = [
        (Deed::Setup, "setup"),
        (Deed::Scan, "scan"),
        (Deed::Read, "read"),
        (Deed::Create, "create"),
        (Deed::Renew, "renew"),
        (Deed::Take, "take"),
        (Deed::Checkpoint, "checkpoint"),
        (Deed::End, "end"),
        (Deed::Release, "release"),
        (Deed::HandOver, "hand-over"),
        (Deed::SetRange, "set-range"),
        (Deed::Delete, "delete"),
        (Deed::List, "list"),
        (Deed::Iterator, "iterator"),
        (Deed::Fetch, "fetch"),
        (Deed::Batch, "batch"),
        (Deed::Members, "members"),
    ];

    /// Whether the deed changes the lease table.
    pub fn is_write(self) -> bool {
        (Deed::Create..=Deed::Delete).contains(&self)
    }

    /// Whether the deed goes to the lease table, or to a table beside it.
    pub fn is_of_table(self) -> bool {
        self.is_write() || matches!(self, Deed::Scan | Deed::Read | Deed::Members)
    }
}

/// One deed: the `nth` of its kind about a shard, in one life of one worker. Counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The number of the worker.
    pub worker: u16,
    /// The number of the worker's life.
    pub life: u32,
    /// The kind of the deed.
    pub deed: Deed,
    /// The shard of the deed, if any.
    pub shard: Option<ShardNo>,
    /// The number among deeds of the same kind.
    pub nth: u32,
}

impl Site {
    /// The key of the site's draws.
    pub fn key(self) -> u64 {
        let who = u64::from(self.worker) << 40 ^ u64::from(self.life) << 8 ^ self.deed as u64;
        let what = self.shard.map_or(u64::MAX, u64::from) << 32 ^ u64::from(self.nth);
        who.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ what.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, deed) = Deed::ALL[self.deed as usize];
        write!(f, "w{}.{} {deed}", self.worker, self.life)?;
        if let Some(shard) = self.shard {
            write!(f, " shard {shard}")?;
        }
        write!(f, " #{}", self.nth)
    }
}

impl FromStr for Site {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let mut words = text.split_whitespace();
            let (worker, life) = words.next()?.strip_prefix('w')?.split_once('.')?;
            let name = words.next()?;
            let (deed, _) = Deed::ALL.into_iter().find(|(_, known)| *known == name)?;
            let mut next = words.next()?;
            let mut shard = None;
            if next == "shard" {
                shard = Some(words.next()?.parse().ok()?);
                next = words.next()?;
            }
            let nth = next.strip_prefix('#')?.parse().ok()?;
            let site = Site { worker: worker.parse().ok()?, life: life.parse().ok()?, deed, shard, nth };
            words.next().is_none().then_some(site)
        };
        parse().ok_or_else(|| {
            let deeds: Vec<&str> = Deed::ALL.iter().map(|(_, name)| *name).collect();
            format!(
                "expected what a fault hits, such as \"w1.0 renew shard 3 #2\" (worker.life, one of {}, the shard if it \
                 is about one, which of these from 0), found {:?}",
                deeds.join(", "),
                text.chars().take(60).collect::<String>()
            )
        })
    }
}

impl Serialize for Site {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Site {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A chance fault of one deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Chance {
    /// The request and the answer take longer.
    Slow {
        /// The delay of the request, in µs.
        #[serde(rename = "request", with = "micros")]
        request_us: u64,
        /// The delay of the answer, in µs.
        #[serde(rename = "answer", with = "micros")]
        answer_us: u64,
    },
    /// The request never arrives.
    LostRequest {
        /// Whether the sender sees the connection break; else silence.
        broken: bool,
    },
    /// The service executes the request, and the answer is lost.
    LostAnswer {
        /// Whether the sender sees the connection break; else silence.
        broken: bool,
    },
    /// The service executes the request after its sender gave up.
    Late {
        /// The time since the sender gave up, in µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
        /// Whether the sender sees the connection break; else silence.
        broken: bool,
    },
    /// The service throttles the request.
    Throttled,
    /// Answered with a 5xx.
    ServerError {
        /// Whether the service executed the request.
        executed: bool,
    },
    /// The service executes the request twice.
    Twice {
        /// The time between the executions, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// Whether the second answer arrives, instead of the first.
        second: bool,
    },
    /// No connection: certainly not executed.
    NotSent,
    /// An unreadable answer.
    Garbled,
    /// The request is never answered.
    Hung {
        /// Whether the service executes the request.
        executed: bool,
    },
    /// The service says that the condition does not hold, whatever the row is.
    Refused,
    /// The service shows rows in an old state.
    Stale {
        /// The age of the state, in µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
    },
    /// The read brings no records although the shard has records.
    Empty,
    /// The answer has no iterator, as if the reader had come to the end of the shard.
    EndClaimed {
        /// The answer brings no records, and names the children of the shard, an ended shard.
        named: bool,
        /// The time for which the next answers claim the end too, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The answer about a shard is wrong.
    Misread {
        /// The error.
        what: Misread,
    },
    /// The shard is not found. For a while, the worker is answered by a replica that does not know the shard.
    Replica {
        /// The length of the while, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
        /// The contents of listings meanwhile.
        shows: Shows,
        /// The contents of descriptions of the stream meanwhile.
        says: Says,
    },
    /// A replica lists the stream, and lacks an ended shard as if forgotten. For a while, the same replica answers the
    /// worker.
    PartialList {
        /// The shard.
        shard: ShardNo,
        /// The length of the while, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// This single answer about the table or the stream is wrong.
    Wrong {
        /// The claim of the answer.
        says: Says,
    },
    /// The first description of the stream in a life has a wrong creation time.
    WrongFirstLook,
    /// The worker stands still exactly when the answer arrives.
    Pause {
        /// The length of the pause, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The worker dies while the request is under way.
    Crash {
        /// The time until the crash, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// The time until the restart, in µs.
        #[serde(rename = "down", with = "micros")]
        down_us: u64,
    },
    /// The worker receives a request to stop.
    Stop {
        /// The time until the request to stop, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// The time until its replacement starts, in µs.
        #[serde(rename = "gap", with = "micros")]
        gap_us: u64,
    },
    /// A foreign program receives a request to stop, and starts again.
    OtherMoves {
        /// The time until the request to stop, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// The time until the restart, in µs.
        #[serde(rename = "gap", with = "micros")]
        gap_us: u64,
        /// The number of the program, modulo the number of foreign programs.
        pick: u32,
    },
    /// The foreign program that asks stands still exactly when the answer arrives.
    OtherDawdles {
        /// The length of the standstill, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// A leader names the next owner of the lease, once the lease has an owner: a hand-over is about to begin.
    HandOver {
        /// The time until the hand-over, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// The time for which the previous owner does not reach the table, in µs.
        #[serde(rename = "cut", with = "micros")]
        cut_us: u64,
        /// The next owner's number, modulo the number of other workers and one worker that died just then.
        to: u32,
    },
    /// From now on the worker does not reach the lease table.
    Cut {
        /// The length of the cut, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler takes longer.
    HandlerSlow {
        /// The delay, in µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
    },
    /// The handler takes longer, and is deaf to an abort.
    HandlerHangs {
        /// The delay, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler waits for an event that never comes, and stops on an abort.
    HandlerWaits {
        /// The length of the wait, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler takes longer, ignores an abort, and ends well.
    HandlerDeaf {
        /// The delay, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler returns an error, somewhere in the batch.
    HandlerFails,
    /// The handler reports progress before the end of the batch.
    Partial,
    /// The handler requests a checkpoint then.
    Checkpoint,
    /// The handler reports outdated progress, or progress of a former ownership.
    StaleCall,
    /// The handler reports the progress at the beginning of the batch twice more, under its own ownership.
    SaysAgain,
    /// The application pauses the shard, and resumes the shard later.
    ShardPaused {
        /// The length of the pause, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler keeps the batch for this time, and acknowledges the batch then.
    Keeps {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler gives a kept batch back instead of acknowledging the batch.
    GivesBack,
}

impl Chance {
    /// The family's name, for marks.
    pub fn family(self) -> &'static str {
        match self {
            Chance::Slow { .. } => "slow",
            Chance::LostRequest { .. } => "lost-request",
            Chance::LostAnswer { .. } => "lost-answer",
            Chance::Late { .. } => "late",
            Chance::Throttled => "throttled",
            Chance::ServerError { .. } => "server-error",
            Chance::Twice { .. } => "twice",
            Chance::NotSent => "not-sent",
            Chance::Garbled => "garbled",
            Chance::Hung { .. } => "hung-lease",
            Chance::Refused => "refused-lease",
            Chance::Stale { .. } => "stale",
            Chance::Empty => "empty-read",
            Chance::EndClaimed { named: true, .. } => "end-claimed-named",
            Chance::EndClaimed { for_us: 0, .. } => "end-claimed",
            Chance::EndClaimed { .. } => "end-claimed-again",
            Chance::Misread { what } => what.family(),
            Chance::Replica { shows, .. } => shows.family(),
            Chance::PartialList { .. } => "list-partial",
            Chance::Wrong { says } => says.family(),
            Chance::WrongFirstLook => "first-look-wrong",
            Chance::Pause { .. } => "pause-on-answer",
            Chance::Crash { .. } => "crash-on-write",
            Chance::Stop { .. } => "stop-on-take",
            Chance::OtherMoves { .. } => "other-moves",
            Chance::OtherDawdles { .. } => "other-dawdles",
            Chance::HandOver { .. } => "hand-over-on-take",
            Chance::Cut { .. } => "outage-now",
            Chance::HandlerSlow { .. } => "handler-slow",
            Chance::HandlerHangs { .. } => "handler-hangs",
            Chance::HandlerWaits { .. } => "handler-waits",
            Chance::HandlerFails => "handler-fails",
            Chance::Partial => "partial-ack",
            Chance::Checkpoint => "explicit-checkpoint",
            Chance::StaleCall => "stale-call",
            Chance::HandlerDeaf { .. } => "handler-deaf",
            Chance::SaysAgain => "says-again",
            Chance::ShardPaused { .. } => "shard-paused",
            Chance::Keeps { .. } => "keeps-batch",
            Chance::GivesBack => "gives-batch-back",
        }
    }
}

/// A chance fault and its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFault {
    /// The deed that the fault hits.
    pub on: Site,
    /// The effect of the fault.
    pub fault: Chance,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_site_is_read_as_it_is_shown(worker: u16, life: u32, deed in 0..16usize, shard: Option<u32>, nth: u32) {
            let site = Site { worker, life, deed: Deed::ALL[deed].0, shard, nth };
            prop_assert_eq!(site.to_string().parse(), Ok(site));
        }

        #[test]
        fn any_text_is_a_site_or_refused(text in ".{0,40}") {
            let _ = text.parse::<Site>();
        }
    }

    #[test]
    fn deeds_are_listed_in_their_order() {
        for (n, (deed, _)) in Deed::ALL.into_iter().enumerate() {
            assert_eq!(deed as usize, n);
        }
        assert!(Deed::Renew.is_write() && !Deed::Scan.is_write() && !Deed::List.is_of_table());
    }

    #[test]
    fn neighbouring_sites_have_different_keys() {
        let mut keys = std::collections::BTreeSet::new();
        for worker in 0..8 {
            for (deed, _) in Deed::ALL {
                for shard in [None, Some(0), Some(1), Some(2)] {
                    for nth in 0..20 {
                        let site = Site { worker, life: 1, deed, shard, nth };
                        assert!(keys.insert(site.key()), "{site}");
                    }
                }
            }
        }
    }
}
