//! What is known to have happened in a world: the only thing an oracle may look at.

mod ask;
mod row;

pub use ask::Ask;
pub use row::{Mark, Owner, Row, Whose, rewrites};

use crate::streams::StreamNo;
use leasehold_engine::output::EndReason;
use leasehold_engine::time::Mono;

/// True time in µs since the beginning of the world.
pub type Time = u64;

/// One life of a worker, numbered over the whole world.
pub type LifeNo = u32;

/// A shard, by the number in its name.
pub type ShardNo = u32;

/// What a write was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Verb {
    Create,
    Renew,
    Take,
    /// The owner is asked for the lease.
    Claim,
    /// A worker that leads makes another one the owner of a free lease.
    Assign,
    Checkpoint,
    End,
    Release,
    /// Somebody who leads names the next owner.
    BeginHandOver,
    HandOver,
    SetRange,
    Delete,
}

/// How a request ended, as its sender was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum How {
    Applied,
    Refused,
    NotSent,
    Unknown,
}

/// Something that happened.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Fact {
    /// A worker began a life.
    Booted { life: LifeNo, worker: u32 },
    /// A worker died without a word.
    Died { life: LifeNo },
    /// A worker was told to stop.
    ShutdownAsked { life: LifeNo },
    /// A worker says that nothing will follow. `fatal`: it could not go on.
    Stopped { life: LifeNo, fatal: bool },
    /// A worker found that it cannot go on, and lets go of everything.
    GivesUp { life: LifeNo },
    /// A worker was at work so often in so short a time that it does nothing else any more.
    Spins { life: LifeNo, inputs: u32, within_us: u64 },
    /// A worker stands still from now on.
    Paused { life: LifeNo },
    /// A worker stood still, and goes on.
    Resumed { life: LifeNo, stood: u64 },
    /// The handlers of a worker block every thread of their runtime from now on.
    Blocked { life: LifeNo },
    /// They run again, and the worker knows.
    Unblocked { life: LifeNo },
    /// A worker says that it lets go of all its leases because no handler can run.
    LetsGo { life: LifeNo },
    /// The machine of a worker is suspended, and its monotonic clock stands: until `ClockRight`, no clock may show that time.
    ClockStands { life: LifeNo },
    /// A worker has looked at its clocks, and they show the time for which its machine was suspended.
    ClockRight { life: LifeNo },
    /// A handler asked its fence. `adrift`: no clock of the machine shows that it was suspended.
    FenceAsked { life: LifeNo, shard: ShardNo, token: u64, valid: bool, adrift: bool },
    /// A worker reaches no service any more.
    CutOff { life: LifeNo },
    /// A shard began to exist.
    ShardBorn { shard: ShardNo, parents: [Option<ShardNo>; 2] },
    /// A shard takes no more records; it has this many, and these children.
    ShardClosed { shard: ShardNo, records: u64, children: Vec<ShardNo> },

    /// Parts of aggregated records that went to a shard. Their producer counts these as stored, and does not send them again.
    Stored { shard: ShardNo, parts: Vec<u64> },
    /// What was in a shard before this record is gone, processed or not.
    Trimmed { shard: ShardNo, before: u64 },
    /// The service knows nothing of a closed shard any more.
    Forgotten { shard: ShardNo },
    /// The stream or the table is gone for good, or not what it was.
    LostForGood,
    /// From now on the table is not of the stream.
    Foreign,
    /// A worker took a lease, or made its row: whose the row said that it was, and says now.
    Named { life: LifeNo, shard: ShardNo, before: Whose, after: Whose },
    /// What went before the world: records up to this one were processed. `ended`: its lease has no end to come, or lies below the trim horizon.
    Given { shard: ShardNo, through: u64, ended: bool },

    /// At LATEST or a timestamp, the service gave a worker of ours a place in a shard. `from`: the record there. `due`: what arrived since the
    /// application began there is from this one on. `floor`: what is before this one had arrived long before the start.
    /// `born`: what is before this one had arrived when the row was created or first taken.
    Placed { life: LifeNo, shard: ShardNo, from: u64, due: u64, floor: u64, born: u64 },

    /// A row changed in the table. `from_record`: the record at which the timestamp of the row begins.
    RowChanged {
        shard: ShardNo,
        by: Option<LifeNo>,
        verb: Option<Verb>,
        before: Option<Row>,
        after: Option<Row>,
        from_record: u64,
    },

    /// Answers gave a child of a shard a wrong name, and so many of them that a worker may believe it.
    ChildrenMisread { shard: ShardNo },

    /// A worker sent a request. `about`: the lease it is about; `guard`: the counter a write relies on; `leaves`: the
    /// counter it leaves behind if it is applied.
    Asked {
        life: LifeNo,
        ask: Ask,
        about: Option<ShardNo>,
        op: u64,
        guard: Option<u64>,
        leaves: Option<u64>,
        local: Mono,
    },
    /// A worker was told how a request ended.
    Answered { life: LifeNo, ask: Ask, about: Option<ShardNo>, op: u64, how: How },
    /// An answer to a read is on its way to a worker, over a narrow line, with so many bytes of records.
    OnItsWay { life: LifeNo, op: u64, bytes: u64 },
    /// An answer brought records, and they are kept: from the first to the last, so many bytes.
    Fetched { life: LifeNo, shard: ShardNo, first: u64, last: u64, bytes: u64 },
    /// An answer claimed the end of a shard, and named no children.
    EndClaimed { life: LifeNo, shard: ShardNo },
    /// An answer showed a row to a worker. `scanned`: a page of a scan did.
    Shown { life: LifeNo, shard: ShardNo, row: Row, scanned: bool },

    /// A program that others wrote reads a row: the table shows it as it is now.
    Looked { life: LifeNo, shard: ShardNo },

    /// A worker was shown the last page of a scan.
    ScanEnded { life: LifeNo },

    /// A worker was told to begin with a shard.
    OpenBegun { life: LifeNo, shard: ShardNo, token: u64 },
    /// The application is ready for it.
    OpenDone { life: LifeNo, shard: ShardNo, token: u64 },
    /// The application was stopped before it was ready, or could not be.
    OpenFailed { life: LifeNo, shard: ShardNo, token: u64 },
    /// Records were handed to a handler: from the first to the last, nothing left out between them.
    Delivered {
        life: LifeNo,
        shard: ShardNo,
        token: u64,
        first: u64,
        last: u64,
        local: Mono,
        valid_until: Mono,
    },
    /// These are in a batch that was handed over, and the handler is not given them: they belong to other shards.
    LeftOut { life: LifeNo, shard: ShardNo, token: u64, parts: Vec<u64> },
    /// A handler is done with everything up to and including this record, and has told the worker.
    Processed { life: LifeNo, shard: ShardNo, token: u64, through: u64 },
    /// A handler keeps a batch, to acknowledge it later: from the first record to the last.
    Kept { life: LifeNo, shard: ShardNo, token: u64, first: u64, last: u64 },
    /// A handler gave a kept batch back: nothing that it keeps counts any more.
    GivenBack { life: LifeNo, shard: ShardNo, token: u64 },
    /// A handler was told to acknowledge what it keeps.
    FlushBegun { life: LifeNo, shard: ShardNo, token: u64 },
    /// It returned.
    FlushEnded { life: LifeNo, shard: ShardNo, token: u64 },
    /// The application has opened a shard, and wants to permit its end before that is written.
    ConfirmsEnd { life: LifeNo, shard: ShardNo, token: u64 },
    /// It has answered that the end may be written.
    EndPermitted { life: LifeNo, shard: ShardNo, token: u64 },
    /// A handler was given this record alone, and failed.
    RecordFailed { life: LifeNo, shard: ShardNo, token: u64, record: u64 },
    /// A record is to be given to where the application keeps those that no handler can process.
    SetAsideBegun { life: LifeNo, shard: ShardNo, token: u64, record: u64 },
    /// It is safe there.
    SetAside { life: LifeNo, shard: ShardNo, token: u64, record: u64 },
    /// That ended, one way or another.
    SetAsideEnded { life: LifeNo, shard: ShardNo, token: u64 },
    /// A worker hands nothing more of a shard over because of this record, until the application resumes the shard.
    ShardStopped { life: LifeNo, shard: ShardNo, record: u64 },
    /// A handler asked for what was processed to be made durable.
    CheckpointAsked { life: LifeNo, shard: ShardNo, token: u64 },
    /// A handler returned, one way or another.
    HandlerEnded { life: LifeNo, shard: ShardNo, token: u64 },
    /// A worker asked a handler to stop.
    Aborted { life: LifeNo, shard: ShardNo, token: u64 },
    /// A worker told a call of a handler that it has taken too long.
    TimedOut { life: LifeNo, shard: ShardNo, token: u64 },
    /// A worker ended a shard.
    Closed { life: LifeNo, shard: ShardNo, token: u64, reason: EndReason, local: Mono },

    /// The application of a life wants nothing more of a shard.
    PauseAsked { life: LifeNo, shard: ShardNo },
    /// It wants the shard to go on.
    ResumeAsked { life: LifeNo, shard: ShardNo },

    /// A life says that it holds this, the row agrees, and there are records that nobody has processed, or an end that was
    /// not written. Said whenever one looks.
    Behind { life: LifeNo, shard: ShardNo },
    /// A worker reported that a shard does not move.
    Stalled { life: LifeNo, shard: ShardNo },
    /// A worker reported that it moves again.
    Moving { life: LifeNo, shard: ShardNo },

    /// What a worker says that it holds, when it says so first or says something else than before; compared with the
    /// truth. `until`: the end of its belief in true time.
    Holds { life: LifeNo, shard: ShardNo, counter: u64, checkpoint: Mark, open: bool, until: Time },
    /// A worker got the description of a stream. `right`: the description names the stream whose leases the table holds.
    Described { life: LifeNo, stream: StreamNo, right: bool },
    /// A worker of several streams was shown the last page of a stream's shards.
    ShardsListed { life: LifeNo, stream: StreamNo },
    /// A stream of several was deleted, and does not come back.
    StreamGone { stream: StreamNo },
    /// The application takes a stream away from a worker of several.
    StreamTakenAway { life: LifeNo, stream: StreamNo },
    /// A worker reads a stream of several no more. `lost`: not because its application took it away.
    StreamLeft { life: LifeNo, stream: StreamNo, lost: bool },
    /// A worker reads a stream again that it read no more.
    StreamBack { life: LifeNo, stream: StreamNo },

    /// A worker says no more that it holds this.
    HoldsNoMore { life: LifeNo, shard: ShardNo },
    /// A worker lets go of a shard that it still holds: it is another's turn.
    Yields { life: LifeNo, shard: ShardNo },
    /// A worker has said what it holds: all that it said and did not take back.
    Said { life: LifeNo },

    /// The lock of the leader of a fleet was written, and is this life's from now on, or still.
    Leads { life: Option<LifeNo> },
    /// A life says to a fleet that it lives, or takes that back.
    Reports { life: LifeNo, there: bool },
    /// Somebody wrote by which rules a fleet works that goes over to version 3 of the Java KCL: those of version 3, under a leader, or of 2.
    Rules { by: Option<LifeNo>, led: bool },
}

impl Fact {
    /// Whose deed or fate it is.
    pub fn life(&self) -> Option<LifeNo> {
        match *self {
            Fact::ShardBorn { .. }
            | Fact::ShardClosed { .. }
            | Fact::Stored { .. }
            | Fact::Trimmed { .. }
            | Fact::Forgotten { .. }
            | Fact::ChildrenMisread { .. }
            | Fact::LostForGood
            | Fact::Foreign
            | Fact::StreamGone { .. }
            | Fact::Given { .. } => None,
            Fact::RowChanged { by, .. } | Fact::Rules { by, .. } => by,
            Fact::Leads { life } => life,
            Fact::Booted { life, .. }
            | Fact::Named { life, .. }
            | Fact::Died { life }
            | Fact::ShutdownAsked { life }
            | Fact::Stopped { life, .. }
            | Fact::GivesUp { life }
            | Fact::Spins { life, .. }
            | Fact::Paused { life }
            | Fact::Resumed { life, .. }
            | Fact::Blocked { life }
            | Fact::Unblocked { life }
            | Fact::LetsGo { life }
            | Fact::ClockStands { life }
            | Fact::ClockRight { life }
            | Fact::FenceAsked { life, .. }
            | Fact::CutOff { life }
            | Fact::Asked { life, .. }
            | Fact::Answered { life, .. }
            | Fact::Fetched { life, .. }
            | Fact::EndClaimed { life, .. }
            | Fact::OnItsWay { life, .. }
            | Fact::Placed { life, .. }
            | Fact::Shown { life, .. }
            | Fact::Looked { life, .. }
            | Fact::ScanEnded { life }
            | Fact::Behind { life, .. }
            | Fact::Stalled { life, .. }
            | Fact::Moving { life, .. }
            | Fact::Holds { life, .. }
            | Fact::HoldsNoMore { life, .. }
            | Fact::Yields { life, .. }
            | Fact::Described { life, .. }
            | Fact::ShardsListed { life, .. }
            | Fact::StreamTakenAway { life, .. }
            | Fact::StreamLeft { life, .. }
            | Fact::StreamBack { life, .. }
            | Fact::Said { life }
            | Fact::Reports { life, .. } => Some(life),
            _ => self.life_of_application(),
        }
    }

    /// The life of the application, for a deed of an application with a shard.
    fn life_of_application(&self) -> Option<LifeNo> {
        match *self {
            Fact::OpenBegun { life, .. }
            | Fact::OpenDone { life, .. }
            | Fact::OpenFailed { life, .. }
            | Fact::Delivered { life, .. }
            | Fact::LeftOut { life, .. }
            | Fact::Processed { life, .. }
            | Fact::Kept { life, .. }
            | Fact::GivenBack { life, .. }
            | Fact::FlushBegun { life, .. }
            | Fact::FlushEnded { life, .. }
            | Fact::ConfirmsEnd { life, .. }
            | Fact::EndPermitted { life, .. }
            | Fact::RecordFailed { life, .. }
            | Fact::SetAsideBegun { life, .. }
            | Fact::SetAside { life, .. }
            | Fact::SetAsideEnded { life, .. }
            | Fact::ShardStopped { life, .. }
            | Fact::CheckpointAsked { life, .. }
            | Fact::HandlerEnded { life, .. }
            | Fact::PauseAsked { life, .. }
            | Fact::ResumeAsked { life, .. }
            | Fact::Aborted { life, .. }
            | Fact::TimedOut { life, .. }
            | Fact::Closed { life, .. } => Some(life),
            _ => None,
        }
    }
}
