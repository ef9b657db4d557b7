//! Faults of chance, each bound to the request that it hits.
//!
//! A world either draws them while it runs, or is given a list of them. What a fault hits is named by what it is, not by
//! when or after how many others, so that taking one fault away leaves the others where they are.

use super::{Misread, Says, Shows};
use crate::oracles::ShardNo;
use crate::span::micros;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a worker does that a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Deed {
    /// DescribeTable, CreateTable, DescribeStreamSummary.
    Setup,
    /// A page of a scan.
    Scan,
    /// A row.
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
    /// All of them, in their order.
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

    /// Whether it changes the lease table.
    pub fn is_write(self) -> bool {
        (Deed::Create..=Deed::Delete).contains(&self)
    }

    /// Whether it goes to the lease table, or to one beside it.
    pub fn is_of_table(self) -> bool {
        self.is_write() || matches!(self, Deed::Scan | Deed::Read | Deed::Members)
    }
}

/// One deed: the `nth` of its kind about a shard, in one life of one worker. Counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Whose.
    pub worker: u16,
    /// In which of its lives.
    pub life: u32,
    /// What.
    pub deed: Deed,
    /// About which shard, if about one.
    pub shard: Option<ShardNo>,
    /// Which of these.
    pub nth: u32,
}

impl Site {
    /// A number for draws about it.
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

/// What chance does to one deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Chance {
    /// The request and the answer take this much longer.
    Slow {
        /// In µs.
        #[serde(rename = "request", with = "micros")]
        request_us: u64,
        /// In µs.
        #[serde(rename = "answer", with = "micros")]
        answer_us: u64,
    },
    /// The request never arrives.
    LostRequest {
        /// Whether the connection is seen to break; else there is silence.
        broken: bool,
    },
    /// It is executed, and nobody learns of it.
    LostAnswer {
        /// Whether the connection is seen to break; else there is silence.
        broken: bool,
    },
    /// It is executed this long after its sender gave up.
    Late {
        /// In µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
        /// Whether the connection is seen to break; else there is silence.
        broken: bool,
    },
    /// Turned away for there being too many.
    Throttled,
    /// Answered with a 5xx.
    ServerError {
        /// Whether it was executed.
        executed: bool,
    },
    /// Executed twice.
    Twice {
        /// How long after the first time, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// Whether the second answer is the one that arrives.
        second: bool,
    },
    /// No connection: certainly not executed.
    NotSent,
    /// An answer nobody can read.
    Garbled,
    /// Never answered.
    Hung {
        /// Whether it is executed.
        executed: bool,
    },
    /// The service says that the condition does not hold, whatever the row is.
    Refused,
    /// Rows are shown as they were this long ago.
    Stale {
        /// In µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
    },
    /// The read brings nothing although there is something.
    Empty,
    /// The answer has no iterator, as if the reader had come to the end of the shard.
    EndClaimed {
        /// The answer brings no records, and names the children of the shard, which has ended.
        named: bool,
        /// The next answers claim the same for so long, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The answer about a shard is wrong.
    Misread {
        /// What is wrong.
        what: Misread,
    },
    /// The shard is not found. For a while, the worker is answered by a replica that does not know the shard.
    Replica {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
        /// What listings show meanwhile.
        shows: Shows,
        /// What descriptions of the stream say meanwhile.
        says: Says,
    },
    /// The stream is listed by a replica that takes a shard which has ended for one that is forgotten. For a while, the worker is answered by
    /// that replica.
    PartialList {
        /// The shard.
        shard: ShardNo,
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// This one answer about the table or the stream is wrong.
    Wrong {
        /// What it says.
        says: Says,
    },
    /// The first description of the stream in a life says another creation time.
    WrongFirstLook,
    /// The worker stands still exactly when the answer arrives.
    Pause {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The worker dies while the request is under way.
    Crash {
        /// After how long, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// Until it is started again, in µs.
        #[serde(rename = "down", with = "micros")]
        down_us: u64,
    },
    /// The worker is told to stop.
    Stop {
        /// After how long, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// Until its replacement is started, in µs.
        #[serde(rename = "gap", with = "micros")]
        gap_us: u64,
    },
    /// A program of others is told to stop, and is started again.
    OtherMoves {
        /// After how long, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// Until it is started again, in µs.
        #[serde(rename = "gap", with = "micros")]
        gap_us: u64,
        /// Which of them, modulo how many there are.
        pick: u32,
    },
    /// The program of others that asks stands still exactly when the answer arrives.
    OtherDawdles {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The lease it is about is about to be handed over, once somebody owns it: its next owner is named.
    HandOver {
        /// After how long, in µs.
        #[serde(rename = "after", with = "micros")]
        after_us: u64,
        /// For how long the one it is taken from does not reach the table, in µs.
        #[serde(rename = "cut", with = "micros")]
        cut_us: u64,
        /// To which of the others, modulo how many there are and one more who died just then.
        to: u32,
    },
    /// From now on the worker does not reach the lease table.
    Cut {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler takes this much longer.
    HandlerSlow {
        /// In µs.
        #[serde(rename = "by", with = "micros")]
        by_us: u64,
    },
    /// The handler takes this much longer, and is deaf to an abort.
    HandlerHangs {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler waits for this long for something that does not come, and stops when it is told to.
    HandlerWaits {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler takes this much longer, takes no notice of an abort, and ends well.
    HandlerDeaf {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler returns an error, somewhere in the batch.
    HandlerFails,
    /// The handler says before the end of the batch how far it is.
    Partial,
    /// It asks for a checkpoint then.
    Checkpoint,
    /// It says what is old news, or of a former ownership.
    StaleCall,
    /// It says twice more, under its own ownership, how far it was at the beginning of the batch.
    SaysAgain,
    /// The application pauses the shard, and lets it go on later.
    ShardPaused {
        /// How much later, in µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// The handler keeps the batch for this long, and acknowledges it then.
    Keeps {
        /// In µs.
        #[serde(rename = "for", with = "micros")]
        for_us: u64,
    },
    /// A batch that it keeps it gives back instead.
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

/// A fault of chance and what it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFault {
    /// What it hits.
    pub on: Site,
    /// What it does.
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
