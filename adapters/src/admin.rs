//! An operator's view of a lease table, with or without a running fleet: look at the table, release leases, move
//! leases to other checkpoints, end the consumer of an application.
//!
//! [`Admin`] reads and writes. Pure functions ([`release`], [`rewind`]) make the plan of the writes, and a plan can
//! be shown before its writes begin. The command `leasehold admin` is this module with a command line. A program with
//! a running worker has a shorter way to rewind: [`Control::rewind`](crate::Control::rewind).
//!
//! ```no_run
//! # #[cfg(all(feature = "aws", feature = "tokio-runtime"))]
//! # async fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold::admin::{Admin, To, Which, rewind};
//! use leasehold::{Span, format::Kcl};
//!
//! let admin = Admin::new(&dynamodb, "billing", Kcl)?;
//! let shards = admin.shards(&kinesis, "orders").await?;
//! let (view, report) = admin.watch(Span::from_secs(5), Span::from_secs(10)).await?;
//! let which = Which::Shards(vec!["shardId-000000000003".into()]);
//! let place = admin.place(&kinesis, "orders", &shards, &view, &which, To::TrimHorizon).await?;
//! let plan = rewind(&view, &shards, &which, &place, &report.alive());
//! for step in &plan.steps {
//!     println!("{step}: {}", step.follows.join("; "));
//! }
//! admin.apply(&plan).await?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "aws")]
pub use crate::aws::consumers::RegisteredConsumer;
#[cfg(feature = "aws")]
pub use crate::aws::named::NamedStream;
#[cfg(feature = "aws")]
pub use consumer::Deregistered;
pub use leasehold_engine::admin::{
    Deed, Done, LeaseReport, LeftAlone, Misnamed, Naming, OwnerReport, Place, Plan, Standing, Step, Stepped,
    TableReport, View, Which, misnamed, release, report, rewind,
};
/// A shard as Kinesis lists it.
pub use leasehold_engine::shard::Shard;
pub use leasehold_engine::stream_identity::StreamIdentity;
pub use to::To;

#[cfg(feature = "aws")]
mod consumer;
#[cfg(feature = "aws")]
mod place;
mod to;

use crate::patient::{GaveUp, PatientTable};
use crate::ports::TablePort;
use crate::runtime::Runtime;
use leasehold_engine::input::{Outcome, TableState};
use leasehold_engine::output::TableOp;
use leasehold_engine::policy::Life;
use leasehold_engine::shown::Shown;
use leasehold_engine::time::{Span, Wall};
use std::fmt;
use std::sync::Arc;

/// How often a write is tried. A renewal by the owner between the read and the write makes the write fail.
const TRIES: u32 = 5;

/// A lease table in the hands of an operator. Clones are handles on the same.
#[derive(Clone)]
pub struct Admin {
    port: TablePort,
    runtime: Arc<dyn Runtime>,
    life: Life,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

/// An operation on a lease table failed: the name of the operation, and the reason.
/// The text may come from a service or a row.
#[derive(Debug, thiserror::Error)]
#[error("could not {}: {}", Shown(what), Shown(how))]
pub struct AdminError {
    what: String,
    how: String,
}

impl AdminError {
    pub(crate) fn new(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), how: how.into() }
    }
}

impl From<GaveUp> for AdminError {
    fn from(GaveUp { what, how }: GaveUp) -> Self {
        Self { what, how }
    }
}

impl Admin {
    /// The lease table of an application; see [`Builder::application`](crate::Builder::application) and
    /// [`Builder::format`](crate::Builder::format).
    ///
    /// # Errors
    /// Without a tokio runtime around the call.
    #[cfg(all(feature = "aws", feature = "tokio-runtime"))]
    pub fn new(
        dynamodb: &aws_sdk_dynamodb::Client, application: &str,
        format: impl leasehold_engine::format::LeaseFormat + Send + Sync + 'static,
    ) -> Result<Self, AdminError> {
        let runtime = crate::runtime::TokioRuntime::current()
            .map_err(|error| AdminError::new("use the lease table", error.to_string()))?;
        let runtime: Arc<dyn Runtime> = Arc::new(runtime);
        let config = leasehold_engine::config::Config::default().with_table(application);
        let life = format.policies().life;
        let table = crate::aws::DynamoTable::new(dynamodb, &runtime, &config).with_format(Arc::new(format));
        Ok(Self::over(Arc::new(table), runtime, life))
    }

    /// Something else than DynamoDB. For tests of this project: the types are in `internals`.
    #[doc(hidden)]
    pub fn over(port: TablePort, runtime: Arc<dyn Runtime>, life: Life) -> Self {
        Self { port, runtime, life }
    }

    /// The rows of the table, by one scan.
    ///
    /// # Errors
    /// If the table is missing, if its key is not the format's key, or if the table cannot be read after several
    /// tries.
    pub async fn view(&self) -> Result<View, AdminError> {
        let mut table = self.table();
        let how = match table.state("look at the lease table").await? {
            TableState::Usable => return Ok(table.rows("scan the lease table").await?),
            TableState::Missing => {
                "expected a table of that name in this account and region, found none; correct the name or the region"
            }
            TableState::Incompatible => {
                "expected the key of its format, found another; name the format that it has"
            }
            TableState::Creating | TableState::Deleting => {
                "expected a table that can be used, found one that is being created or deleted; try again later"
            }
        };
        Err(AdminError::new("use the lease table", how))
    }

    /// Watches the table for the time `watch`, and gives its rows at the end and a report of the changes.
    /// `lease_duration` is the fleet's: an owner whose row does not change for a lease duration has lost its lease.
    ///
    /// A live owner renews every `renew_interval` (3.3 s by default): watch for longer than that.
    ///
    /// # Errors
    /// As [`view`](Admin::view).
    pub async fn watch(&self, watch: Span, lease_duration: Span) -> Result<(View, TableReport), AdminError> {
        let before = self.view().await?;
        if watch == Span::ZERO {
            let told = report(&before, &before, watch, lease_duration);
            return Ok((before, told));
        }
        self.runtime.sleep(watch).await;
        let after = self.table().rows("scan the lease table").await?;
        let told = report(&before, &after, watch, lease_duration);
        Ok((after, told))
    }

    /// Carries out a plan, step by step. Each step reads its row again and makes one conditional write. A step leaves
    /// a row alone if the row now has another owner than in the plan, or has reached shard end since. A renewal or a
    /// checkpoint of the same owner is no hindrance.
    ///
    /// # Errors
    /// If the table cannot be read or written after several tries. Writes made before the failure stay; a new plan
    /// shows the steps left.
    pub async fn apply(&self, plan: &Plan) -> Result<Vec<Done>, AdminError> {
        let mut done = Vec::new();
        for step in &plan.steps {
            done.push(Done { lease: step.lease.clone(), how: self.carry_out(step).await? });
        }
        Ok(done)
    }

    async fn carry_out(&self, step: &Step) -> Result<Stepped, AdminError> {
        let mut table = self.table();
        let what = format!("read the row of {}", step.lease);
        for _ in 0..TRIES {
            let row = match table.read(&what, &step.lease).await? {
                Ok(row) => row,
                Err(detail) => return Ok(Stepped::Changed(detail)),
            };
            let wall = Wall(self.runtime.wall().0);
            let change = match step.change(row.as_ref(), self.life, wall) {
                Ok(change) => change,
                Err(why) => return Ok(Stepped::Changed(why)),
            };
            let write = format!("{} {}", change.verb(), step.lease);
            if let Outcome::Applied(_) = table.ask(&write, TableOp::Write(change.clone())).await? {
                return Ok(Stepped::Written);
            }
            // The write with a lost answer may have been applied. Then the next write is refused.
            let now = table.read(&what, &step.lease).await?.unwrap_or_default();
            if step.is_done(&change, now.as_ref()) {
                return Ok(Stepped::Written);
            }
        }
        Ok(Stepped::Changed(format!(
            "expected it to stand still between a read and a write, found it changed {TRIES} times in a row; try again, or stop its \
             owner"
        )))
    }

    fn table(&self) -> PatientTable<'_> {
        PatientTable::new(&self.port, &self.runtime)
    }
}

/// A plan's facts about the stream.
#[cfg(feature = "aws")]
impl Admin {
    /// All shards of a stream. Those of an application of several streams are named by the keys of their leases.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn shards(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>,
    ) -> Result<Vec<Shard>, AdminError> {
        let stream = stream.into();
        crate::aws::places::shards(kinesis, &stream)
            .await
            .map_err(|how| AdminError::new(format!("list the shards of {:?}", stream.to_string()), how))
    }

    /// The identity of a stream, as rows name the stream. One description says the ARN and the time of creation.
    /// Absent: the description has neither an ARN nor a name.
    ///
    /// Where a stream was just made anew, a description may be of the earlier stream. Before a write that follows from the identity, ask
    /// twice, at least a second apart.
    ///
    /// # Errors
    /// If the service does not describe the stream.
    pub async fn identity(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>,
    ) -> Result<Option<StreamIdentity>, AdminError> {
        let stream = stream.into();
        let answer = crate::aws::places::identity(kinesis, &stream).await;
        answer.map_err(|how| AdminError::new(format!("describe the stream {:?}", stream.to_string()), how))
    }

    /// The checkpoint just before the first record of a shard that arrived at or after a time in the past. Absent:
    /// the shard has ended, and all its records arrived before that time.
    ///
    /// Rows of other libraries cannot hold a time. The search finds the last record before the time by reading
    /// backwards in growing steps, at five requests a second at most.
    ///
    /// # Errors
    /// If the shard cannot be read.
    pub async fn place_at(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>,
        shard: &leasehold_engine::ids::ShardId, time: Wall,
    ) -> Result<Option<leasehold_engine::position::Checkpoint>, AdminError> {
        let stream = stream.into();
        let shard = crate::aws::places::Searched {
            kinesis: stream.client(kinesis),
            stream: &stream,
            shard: shard.as_str(),
            runtime: &self.runtime,
        };
        shard
            .before(time)
            .await
            .map_err(|how| AdminError::new(format!("look for that time in {}", shard.shard), how))
    }

    /// Checks that Kinesis takes a sequence number as a number of this shard.
    ///
    /// # Errors
    /// What Kinesis says of it.
    pub async fn check_number(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>,
        shard: &leasehold_engine::ids::ShardId, number: leasehold_engine::position::SequenceNumber,
    ) -> Result<(), AdminError> {
        let stream = stream.into();
        let shard = crate::aws::places::Searched {
            kinesis: stream.client(kinesis),
            stream: &stream,
            shard: shard.as_str(),
            runtime: &self.runtime,
        };
        shard.accepts(number).await.map_err(|how| {
            AdminError::new(
                format!("use {number} as a place of {}", shard.shard),
                format!("expected the sequence number of a record of that shard, found one that Kinesis refuses: {how}"),
            )
        })
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "admin_tests.rs"]
mod tests;
