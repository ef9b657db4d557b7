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

/// An entry: the meaning, the deed and its name.
macro_rules! deeds {
    ($($(#[doc = $about:literal])* $Deed:ident = $name:literal,)+) => {
        /// A worker's act that a fault can hit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the names of the fields say it")]
        pub enum Deed {
            $($(#[doc = $about])* $Deed,)+
        }

        impl Deed {
            /// All deeds in their order.
            pub const ALL: [(Deed, &'static str); 17] = [$((Deed::$Deed, $name)),+];
        }
    };
}

deeds! {
    /// DescribeTable, CreateTable, DescribeStreamSummary.
    Setup = "setup",
    /// A page of a scan.
    Scan = "scan",
    /// A read of a row.
    Read = "read",
    Create = "create",
    Renew = "renew",
    Take = "take",
    Checkpoint = "checkpoint",
    End = "end",
    Release = "release",
    HandOver = "hand-over",
    SetRange = "set-range",
    Delete = "delete",
    /// A page of shards.
    List = "list",
    /// GetShardIterator.
    Iterator = "iterator",
    /// GetRecords.
    Fetch = "fetch",
    /// A batch handed to the application.
    Batch = "batch",
    /// An operation on the tables of members.
    Members = "members",
}

impl Deed {
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

/// An entry: the meaning, the fault with its fields, and its family for marks. Times are in µs; their names in files
/// follow after `as`.
macro_rules! chances {
    ($(
        $(#[doc = $about:literal])+
        $Chance:ident $({$($field:ident $(as $name:literal)?: $Type:ty),+})? => $family:expr;
    )+) => {
        /// A chance fault of one deed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        #[allow(missing_docs, reason = "the meaning of a fault names its fields")]
        pub enum Chance {$(
            $(#[doc = $about])+
            $Chance $({$(
                $(#[serde(rename = $name, with = "micros")])?
                $field: $Type,
            )+})?,
        )+}

        impl Chance {
            /// The family's name, for marks.
            #[allow(unused_variables, reason = "few families depend on a field")]
            pub fn family(self) -> &'static str {
                match self {
                    $(Chance::$Chance $({ $($field),+ })? => $family,)+
                }
            }
        }
    };
}

chances! {
    /// The request and the answer take longer.
    Slow { request_us as "request": u64, answer_us as "answer": u64 } => "slow";
    /// The request never arrives. `broken`: the sender sees the connection break; else silence.
    LostRequest { broken: bool } => "lost-request";
    /// The service executes the request, and the answer is lost. `broken`: the sender sees the connection break; else
    /// silence.
    LostAnswer { broken: bool } => "lost-answer";
    /// The service executes the request this time after its sender gave up. `broken`: the sender sees the connection
    /// break; else silence.
    Late { by_us as "by": u64, broken: bool } => "late";
    /// The service throttles the request.
    Throttled => "throttled";
    /// Answered with a 5xx, although the service may have executed the request.
    ServerError { executed: bool } => "server-error";
    /// The service executes the request twice, with this time between. `second`: the second answer arrives, instead of
    /// the first.
    Twice { after_us as "after": u64, second: bool } => "twice";
    /// No connection: certainly not executed.
    NotSent => "not-sent";
    /// An unreadable answer.
    Garbled => "garbled";
    /// The request is never answered, although the service may execute the request.
    Hung { executed: bool } => "hung-lease";
    /// The service says that the condition does not hold, whatever the row is.
    Refused => "refused-lease";
    /// The service shows rows in a state of this age.
    Stale { by_us as "by": u64 } => "stale";
    /// The read brings no records although the shard has records.
    Empty => "empty-read";
    /// The answer has no iterator, as if the reader had come to the end of the shard. `named`: the answer brings no
    /// records, and names the children of the shard, an ended shard. For this time, the next answers claim the end too.
    EndClaimed { named: bool, for_us as "for": u64 } => match (named, for_us) {
        (true, _) => "end-claimed-named",
        (false, 0) => "end-claimed",
        (false, _) => "end-claimed-again",
    };
    /// The answer about a shard is wrong.
    Misread { what: Misread } => what.family();
    /// The shard is not found. For a while, the worker is answered by a replica that does not know the shard: `shows`
    /// is the content of listings meanwhile, and `says` the content of descriptions of the stream.
    Replica { for_us as "for": u64, shows: Shows, says: Says } => shows.family();
    /// A replica lists the stream, and lacks an ended shard as if forgotten. For a while, the same replica answers the
    /// worker.
    PartialList { shard: ShardNo, for_us as "for": u64 } => "list-partial";
    /// This single answer about the table or the stream is wrong, and claims this.
    Wrong { says: Says } => says.family();
    /// The first description of the stream in a life has a wrong creation time.
    WrongFirstLook => "first-look-wrong";
    /// The worker stands still exactly when the answer arrives.
    Pause { for_us as "for": u64 } => "pause-on-answer";
    /// The worker dies while the request is under way, after this time, and restarts after the time `down`.
    Crash { after_us as "after": u64, down_us as "down": u64 } => "crash-on-write";
    /// The worker receives a request to stop after this time, and its replacement starts after the time `gap`.
    Stop { after_us as "after": u64, gap_us as "gap": u64 } => "stop-on-take";
    /// A foreign program receives a request to stop after this time, and starts again after the time `gap`. `pick`: the
    /// number of the program, modulo the number of foreign programs.
    OtherMoves { after_us as "after": u64, gap_us as "gap": u64, pick: u32 } => "other-moves";
    /// The foreign program that asks stands still exactly when the answer arrives.
    OtherDawdles { for_us as "for": u64 } => "other-dawdles";
    /// A leader names the next owner of the lease this time after the lease has an owner: a hand-over is about to
    /// begin. For the time `cut`, the previous owner does not reach the table. `to`: the next owner's number, modulo the
    /// number of other workers and one worker that died just then.
    HandOver { after_us as "after": u64, cut_us as "cut": u64, to: u32 } => "hand-over-on-take";
    /// From now on the worker does not reach the lease table, for this time.
    Cut { for_us as "for": u64 } => "outage-now";
    /// The handler takes longer.
    HandlerSlow { by_us as "by": u64 } => "handler-slow";
    /// The handler takes longer, and is deaf to an abort.
    HandlerHangs { for_us as "for": u64 } => "handler-hangs";
    /// The handler waits for an event that never comes, and stops on an abort.
    HandlerWaits { for_us as "for": u64 } => "handler-waits";
    /// The handler takes longer, ignores an abort, and ends well.
    HandlerDeaf { for_us as "for": u64 } => "handler-deaf";
    /// The handler returns an error, somewhere in the batch.
    HandlerFails => "handler-fails";
    /// The handler reports progress before the end of the batch.
    Partial => "partial-ack";
    /// The handler requests a checkpoint then.
    Checkpoint => "explicit-checkpoint";
    /// The handler reports outdated progress, or progress of a former ownership.
    StaleCall => "stale-call";
    /// The handler reports the progress at the beginning of the batch twice more, under its own ownership.
    SaysAgain => "says-again";
    /// The application pauses the shard, and resumes the shard after this time.
    ShardPaused { for_us as "for": u64 } => "shard-paused";
    /// The handler keeps the batch for this time, and acknowledges the batch then.
    Keeps { for_us as "for": u64 } => "keeps-batch";
    /// The handler gives a kept batch back instead of acknowledging the batch.
    GivesBack => "gives-batch-back";
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
