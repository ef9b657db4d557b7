//! The faults. One module per family; each draws whether the family is on in this world, and how strong the family is.
//!
//! A family is on with probability one half, and its magnitudes are log-uniform. Draws during the world's run have the
//! object of the decision as their key, so no family shifts another family.

mod aggregates;
mod application;
mod call;
mod clock;
mod family;
mod fan_out;
mod fate;
mod line;
mod misread;
mod outage;
mod peers;
mod permanent_loss;
mod process;
mod replica;
mod request_fault;
mod several;
mod start;
mod storm;
mod stream;
mod suspension;
mod table;
mod upgrade;

pub use aggregates::{AggregateFaults, MadeBy};
pub use application::ApplicationFaults;
pub use call::CallFaults;
pub use clock::{ClockFaults, WallStep};
pub(crate) use fan_out::Cut;
pub use fan_out::{Deregistration, FanOutFaults, Refusing, Taken, Theft};
pub use fate::{Fate, Landing, Reach};
pub use line::LineFaults;
pub(crate) use line::Traffic;
pub(crate) use misread::MOST_SHARDS;
pub use misread::{Misread, MisreadFaults};
pub use outage::{Direction, Outage, OutageFaults};
pub use peers::PeerFaults;
pub use permanent_loss::{LossKind, PermanentLoss};
pub(crate) use process::unique_names;
pub use process::{Interruption, InterruptionKind, ProcessFaults};
pub use replica::{Replica, ReplicaFaults, Says, Shows};
pub use request_fault::{Chance, Deed, RequestFault, Site};
pub use several::{Absence, SeveralFaults, Trouble, TroubleKind};
pub use start::{Silence, StartFaults};
pub use storm::{Failing, Service, Storm, StormFaults};
pub use stream::{Reshard, ReshardKind, StreamFaults, Trim};
pub use suspension::{Meanwhile, Suspension, SuspensionFaults, WallAfter};
pub use table::{RowEdit, RowEditKind, TableFaults};
pub use upgrade::{Upgrade, UpgradeFaults};

use crate::draws::{Draws, Roll};
use serde::{Deserialize, Serialize};

/// Every fault of one world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Faults of single requests and answers.
    pub call: CallFaults,
    /// Workers that cannot reach a service.
    pub outage: OutageFaults,
    /// Services that throttle nearly all requests, or fail nearly all writes.
    pub storm: StormFaults,
    /// Crashes, pauses, replacements.
    pub process: ProcessFaults,
    /// Replacements of workers by workers with another configuration.
    pub upgrade: UpgradeFaults,
    /// Clocks.
    pub clock: ClockFaults,
    /// Machines that are suspended.
    #[serde(skip_serializing_if = "is_plain")]
    pub suspension: SuspensionFaults,
    /// The lease table.
    pub table: TableFaults,
    /// The stream.
    pub stream: StreamFaults,
    /// Answers of a replica (late or partial), and single wrong answers.
    #[serde(skip_serializing_if = "is_plain")]
    pub replica: ReplicaFaults,
    /// Single wrong answers about shards.
    #[serde(skip_serializing_if = "is_plain")]
    pub misread: MisreadFaults,
    /// The lines over which records come.
    #[serde(skip_serializing_if = "is_plain")]
    pub line: LineFaults,
    /// Subscriptions, in a world whose workers subscribe.
    pub fan_out: FanOutFaults,
    /// Faults of single streams, in a world with several streams.
    #[serde(skip_serializing_if = "is_plain")]
    pub several: SeveralFaults,
    /// Faults of shards without a checkpoint.
    #[serde(skip_serializing_if = "is_plain")]
    pub start: StartFaults,
    /// Aggregated records.
    #[serde(skip_serializing_if = "is_plain")]
    pub aggregates: AggregateFaults,
    /// The application.
    pub application: ApplicationFaults,
    /// Faults of foreign programs beside our workers.
    #[serde(skip_serializing_if = "is_plain")]
    pub peers: PeerFaults,
    /// A permanent loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permanent_loss: Option<PermanentLoss>,
    /// The list of all chance faults: with a list, the world draws no other chance fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_faults: Option<Vec<RequestFault>>,
}

/// Whether a value is as it is without faults.
fn is_plain<T: Default + PartialEq>(faults: &T) -> bool {
    *faults == T::default()
}

/// The facts of a world on which the families' draws depend.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The number of workers.
    pub workers: u64,
    /// The number of streams.
    pub streams: u64,
    /// The number of shards at the beginning.
    pub shards: u64,
    /// The length of the time with faults, in µs.
    pub length_us: u64,
    /// The length of a lease, in µs.
    pub lease_us: u64,
    /// The shortest wait for the answer of a table operation, in µs.
    pub table_timeout_us: u64,
    /// The clock rate error that the configuration promises.
    pub rate_ppm: u64,
}

impl Faults {
    /// Draws all families.
    pub fn draw(draws: Draws, setting: Setting) -> Self {
        let mut faults = Self {
            call: CallFaults::draw(draws, setting),
            outage: OutageFaults::draw(draws, setting),
            storm: StormFaults::draw(draws, setting),
            process: ProcessFaults::draw(draws, setting),
            upgrade: UpgradeFaults::draw(draws, setting),
            clock: ClockFaults::draw(draws, setting),
            suspension: SuspensionFaults::draw(draws, setting),
            table: TableFaults::draw(draws, setting),
            stream: StreamFaults::draw(draws, setting),
            replica: ReplicaFaults::draw(draws, setting),
            misread: MisreadFaults::draw(draws, setting),
            // Drawn when the load is known.
            line: LineFaults::default(),
            // Drawn where workers subscribe.
            fan_out: FanOutFaults::default(),
            several: SeveralFaults::draw(draws, setting),
            start: StartFaults::default(),
            aggregates: AggregateFaults::draw(draws, setting),
            application: ApplicationFaults::draw(draws, setting),
            // Mixed worlds alone draw these faults.
            peers: PeerFaults::default(),
            permanent_loss: PermanentLoss::draw(draws, setting),
            request_faults: None,
        };
        start::add(&mut faults, draws, setting);
        faults
    }
}

impl Faults {
    /// The longest addition to the handling of one batch, in µs, and whether a handler may then be deaf to an abort.
    pub fn worst_handler(&self) -> (u64, bool) {
        let (by_chance, deaf) = self.worst_handler_by_chance();
        let (_, blocked) = self.process.blocks();
        (by_chance + blocked, deaf || blocked > 0)
    }

    fn worst_handler_by_chance(&self) -> (u64, bool) {
        let Some(request_faults) = &self.request_faults else {
            let application = &self.application;
            let add = |rate: u32, us: u64| if rate > 0 { us } else { 0 };
            let most = add(application.slow, application.slow_us)
                + add(application.hangs, application.hang_us)
                + add(application.waits, application.wait_us)
                + add(application.deaf, application.deaf_us);
            return (most, application.hangs + application.deaf > 0);
        };
        let (mut slow, mut hang, mut wait, mut deaf) = (0, 0, 0, 0);
        for fault in request_faults {
            match fault.fault {
                Chance::HandlerSlow { by_us } => slow = slow.max(by_us),
                Chance::HandlerHangs { for_us } => hang = hang.max(for_us),
                Chance::HandlerWaits { for_us } => wait = wait.max(for_us),
                Chance::HandlerDeaf { for_us } => deaf = deaf.max(for_us),
                _ => {}
            }
        }
        (slow + hang + wait + deaf, hang + deaf > 0)
    }
}

impl Faults {
    /// The longest pause of a shard by the application, in µs; 0: the application pauses no shard.
    pub fn longest_shard_pause(&self) -> u64 {
        let Some(request_faults) = &self.request_faults else {
            let application = &self.application;
            return if application.pauses > 0 { application.pause_us } else { 0 };
        };
        let spans = request_faults.iter().map(|fault| match fault.fault {
            Chance::ShardPaused { for_us } => for_us,
            _ => 0,
        });
        spans.max().unwrap_or(0)
    }
}

/// Whether shards change all the time, finished shards are soon removed, and workers are often cut off for a long time
/// meanwhile. Such a worker returns to shards long settled by other workers. One world in twelve.
pub(crate) fn churns(draws: Draws) -> bool {
    draws.below("churn", 0, 12) == 0
}

/// A probability in one of a thousand, if the family is on: log-uniform up to `most`.
pub(crate) fn rate(draws: Draws, family: &str, most: u64) -> u32 {
    size(draws, family, 1, most).unwrap_or(0) as u32
}

/// A size of a fault, if the family is on: log-uniform.
fn size(draws: Draws, family: &str, least: u64, most: u64) -> Option<u64> {
    draws.coin(family, 0).then(|| draws.magnitude(family, 1, least, most))
}

/// The single faults of a family: up to `most` faults, if the family is on.
fn each<T>(draws: Draws, family: &str, most: u64, mut one: impl FnMut(&mut Roll) -> T) -> Vec<T> {
    let purpose = format!("{family}-each");
    let rolls = (0..size(draws, family, 1, most).unwrap_or(0)).map(|n| draws.roll(&purpose, n));
    rolls.map(|mut roll| one(&mut roll)).collect()
}
