//! The known facts of a world: the only input of oracles.

mod ask;
mod row;

pub use ask::Ask;
pub use row::{Mark, Owner, Row, Whose, begins, owner, rewrites};

use crate::streams::StreamNo;
use leasehold_engine::input::Outcome;
use leasehold_engine::output::EndReason;
use leasehold_engine::time::Mono;

/// True time in µs since the beginning of the world.
pub type Time = u64;

/// One life of a worker, numbered over the whole world.
pub type LifeNo = u32;

/// A shard, by the number in its name.
pub type ShardNo = u32;

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Verb {
    Create,
    Renew,
    Take,
    /// A worker requests the lease from its owner.
    Claim,
    /// A leader makes another worker the owner of a free lease.
    Assign,
    Checkpoint,
    End,
    Release,
    /// A leader names the next owner.
    BeginHandOver,
    HandOver,
    SetRange,
    Delete,
}

/// The result of a request, as told to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum How {
    Applied,
    Refused,
    NotSent,
    Unknown,
}

impl How {
    /// The result in an outcome.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Applied(_) => How::Applied,
            Outcome::Refused(_) => How::Refused,
            Outcome::NotSent(_) => How::NotSent,
            Outcome::Unknown(_) => How::Unknown,
        }
    }

    /// The result in words.
    pub(crate) fn said(self) -> &'static str {
        match self {
            How::Applied => "applied",
            How::Refused => "refused",
            How::NotSent => "not sent",
            How::Unknown => "outcome unknown",
        }
    }
}

/// The facts: a fact of a life has the field `life` besides.
macro_rules! facts {
    (
        of a life {$($(#[doc = $about:literal])+ $Fact:ident $({ $($field:ident: $Type:ty),* $(,)? })?,)+}
        of the world {$($(#[doc = $all:literal])+ $World:ident $({ $($part:ident: $Part:ty),* $(,)? })?,)+}
    ) => {
        /// An event of a world.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the names of the fields say it")]
        pub enum Fact {
            $($(#[doc = $about])+ $Fact { life: LifeNo, $($($field: $Type,)*)? },)+
            $($(#[doc = $all])+ $World $({ $($part: $Part,)* })?,)+
        }

        impl Fact {
            /// The life concerned.
            pub fn life(&self) -> Option<LifeNo> {
                match *self {
                    $(Fact::$Fact { life, .. } => Some(life),)+
                    Fact::RowChanged { by, .. } | Fact::Rules { by, .. } => by,
                    Fact::Leads { life } => life,
                    _ => None,
                }
            }
        }
    };
}

facts! {
    of a life {
        /// A worker began a life.
        Booted { worker: u32 },
        /// A worker died without a word.
        Died,
        /// A worker was told to stop.
        ShutdownAsked,
        /// A worker reports its end. `fatal`: the worker could not go on.
        Stopped { fatal: bool },
        /// A worker found that it cannot go on, and releases all leases.
        GivesUp,
        /// A worker takes inputs at such a rate that no time is left for other work.
        Spins { inputs: u32, within_us: u64 },
        /// A worker stands still from now on.
        Paused,
        /// A worker stood still, and goes on.
        Resumed { stood: u64 },
        /// The handlers of a worker block every thread of their runtime from now on.
        Blocked,
        /// The handlers run again, and the worker knows.
        Unblocked,
        /// A worker reports the release of all its leases because no handler can run.
        LetsGo,
        /// The machine of a worker is suspended, and its monotonic clock stands. Until `ClockRight`, no clock may show the
        /// time of the suspension.
        ClockStands,
        /// A worker has looked at its clocks, and the clocks show the length of its machine's suspension.
        ClockRight,
        /// A handler checked its fence. `adrift`: no clock of the machine shows the machine's suspension.
        FenceAsked { shard: ShardNo, token: u64, valid: bool, adrift: bool },
        /// From now on, a worker reaches no service.
        CutOff,
        /// A worker took a lease, or created its row: the stream named in the row before and after.
        Named { shard: ShardNo, before: Whose, after: Whose },
        /// At LATEST or a timestamp, the service gave a worker of ours a place in a shard. `from`: the record there. `due`:
        /// the first record after the application's start in the shard. Records before `floor` had arrived long before the
        /// start. Records before `born` had arrived when the row was created or first taken.
        Placed { shard: ShardNo, from: u64, due: u64, floor: u64, born: u64 },
        /// A worker sent a request. `about`: the lease of the request; `guard`: the counter relied on by a write; `leaves`:
        /// the counter after an applied write.
        Asked {
            ask: Ask,
            about: Option<ShardNo>,
            op: u64,
            guard: Option<u64>,
            leaves: Option<u64>,
            local: Mono,
        },
        /// A worker received the result of a request.
        Answered { ask: Ask, about: Option<ShardNo>, op: u64, how: How },
        /// A worker sent a read of at most so many records.
        ReadSent { shard: ShardNo, op: u64, limit: u32 },
        /// A read of a shard failed on its way: its answer was late, broken off, or garbled.
        ReadCut { shard: ShardNo, op: u64 },
        /// An answer to a read is on its way to a worker, over a narrow line, with this many bytes of records.
        OnItsWay { op: u64, bytes: u64 },
        /// An answer brought records, and the worker keeps the records: from the first to the last, with this many bytes.
        Fetched { shard: ShardNo, first: u64, last: u64, bytes: u64 },
        /// An answer claimed the end of a shard, and named no children.
        EndClaimed { shard: ShardNo },
        /// An answer brought aggregated records of a shard whose hash keys no two answers have shown to the worker.
        RangeUnproven { shard: ShardNo },
        /// An answer showed a row to a worker. `scanned`: the answer is a page of a scan.
        Shown { shard: ShardNo, row: Row, scanned: bool },
        /// Another library's program reads a row: the table shows the row's present state.
        Looked { shard: ShardNo },
        /// A worker was shown the last page of a scan.
        ScanEnded,
        /// A worker was told to begin with a shard.
        OpenBegun { shard: ShardNo, token: u64 },
        /// The application is ready for the shard.
        OpenDone { shard: ShardNo, token: u64 },
        /// The application was stopped before it was ready, or could not be.
        OpenFailed { shard: ShardNo, token: u64 },
        /// Records were handed to a handler: from the first to the last, without gaps.
        Delivered {
            shard: ShardNo,
            token: u64,
            first: u64,
            last: u64,
            local: Mono,
            valid_until: Mono,
        },
        /// Parts of a delivered batch withheld from the handler: the parts belong to other shards.
        LeftOut { shard: ShardNo, token: u64, parts: Vec<u64> },
        /// A handler has processed all records up to and including this record, and has told the worker.
        Processed { shard: ShardNo, token: u64, through: u64 },
        /// A handler keeps a batch, to acknowledge it later: from the first record to the last.
        Kept { shard: ShardNo, token: u64, first: u64, last: u64 },
        /// A handler gave a kept batch back: no kept record counts any more.
        GivenBack { shard: ShardNo, token: u64 },
        /// A handler was told to acknowledge its kept batches.
        FlushBegun { shard: ShardNo, token: u64 },
        /// The flush returned.
        FlushEnded { shard: ShardNo, token: u64 },
        /// The application has opened a shard, and its permission is needed before the end is written.
        ConfirmsEnd { shard: ShardNo, token: u64 },
        /// The application has permitted the end.
        EndPermitted { shard: ShardNo, token: u64 },
        /// A handler received this record alone, and failed.
        RecordFailed { shard: ShardNo, token: u64, record: u64 },
        /// A record goes to the application's store for records that fail in every handler.
        SetAsideBegun { shard: ShardNo, token: u64, record: u64 },
        /// The record is safe in the store.
        SetAside { shard: ShardNo, token: u64, record: u64 },
        /// The hand-over to the store ended, with or without success.
        SetAsideEnded { shard: ShardNo, token: u64 },
        /// Because of this record, a worker hands over no more of a shard until the application resumes the shard.
        ShardStopped { shard: ShardNo, record: u64 },
        /// A handler requested a checkpoint of its processed records.
        CheckpointAsked { shard: ShardNo, token: u64 },
        /// A handler returned, with or without success.
        HandlerEnded { shard: ShardNo, token: u64 },
        /// A worker asked a handler to stop.
        Aborted { shard: ShardNo, token: u64 },
        /// A worker told a handler's call that its time is over.
        TimedOut { shard: ShardNo, token: u64 },
        /// A worker ended a shard.
        Closed { shard: ShardNo, token: u64, reason: EndReason, local: Mono },
        /// The application of a life pauses a shard.
        PauseAsked { shard: ShardNo },
        /// The application resumes the shard.
        ResumeAsked { shard: ShardNo },
        /// A life holds a lease, the row agrees, and the shard has unprocessed records or an unwritten end. Each look
        /// repeats this fact.
        Behind { shard: ShardNo },
        /// A worker reported that a shard is stalled.
        Stalled { shard: ShardNo },
        /// A worker reported that a shard moves again.
        Moving { shard: ShardNo },
        /// A lease held by a worker, reported at first and after each change, for comparison with the truth. `until`: the
        /// end of the belief in true time.
        Holds { shard: ShardNo, counter: u64, checkpoint: Mark, open: bool, until: Time },
        /// A worker received the description of a stream. `right`: the description names the stream of the table's leases.
        Described { stream: StreamNo, right: bool },
        /// A worker of several streams received the last page of a stream's shards.
        ShardsListed { stream: StreamNo },
        /// The application takes a stream away from a worker of several streams.
        StreamTakenAway { stream: StreamNo },
        /// A worker of several streams stops its reads of a stream. `lost`: for another reason than its application's wish.
        StreamLeft { stream: StreamNo, lost: bool },
        /// A worker reads a stream again after a break.
        StreamBack { stream: StreamNo },
        /// A worker no longer reports a lease as held.
        HoldsNoMore { shard: ShardNo },
        /// A worker releases a lease still held: the turn is another worker's.
        Yields { shard: ShardNo },
        /// A worker's report is complete: all its leases reported and not taken back are held.
        Said,
        /// A life reports to a fleet that it lives, or removes the report. The time in the report is ahead of the true
        /// time by so many seconds.
        Reports { there: bool, ahead_s: i64 },
    }
    of the world {
        /// A shard began to exist.
        ShardBorn { shard: ShardNo, parents: [Option<ShardNo>; 2] },
        /// A shard takes no more records. The fact has the number of its records, and its children.
        ShardClosed { shard: ShardNo, records: u64, children: Vec<ShardNo> },
        /// Parts of aggregated records written to a shard. Their producer counts the parts as stored, and does not send the
        /// parts again.
        Stored { shard: ShardNo, parts: Vec<u64> },
        /// The records of a shard before this record are gone, processed or not.
        Trimmed { shard: ShardNo, before: u64 },
        /// The service no longer knows a closed shard.
        Forgotten { shard: ShardNo },
        /// The stream or the table is gone for good, or has changed for good.
        LostForGood,
        /// From now on the table belongs to another stream.
        Foreign,
        /// The past before the world: records up to this record were processed. `ended`: the lease has no end to come, or
        /// lies below the trim horizon.
        Given { shard: ShardNo, through: u64, ended: bool },
        /// A row changed in the table. `from_record`: the first record at the row's timestamp.
        RowChanged {
            shard: ShardNo,
            by: Option<LifeNo>,
            verb: Option<Verb>,
            before: Option<Row>,
            after: Option<Row>,
            from_record: u64,
        },
        /// Answers gave a child of a shard a wrong name, often enough for a worker to believe the name.
        ChildrenMisread { shard: ShardNo },
        /// One of several streams was deleted, and does not come back.
        StreamGone { stream: StreamNo },
        /// The lock of a fleet's leader was written, and belongs to this life from now on, or still.
        Leads { life: Option<LifeNo> },
        /// The rules of a fleet on its way to version 3 of the Java KCL were written: the rules of version 3, under a
        /// leader, or of version 2.
        Rules { by: Option<LifeNo>, led: bool },
    }
}
