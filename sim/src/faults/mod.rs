//! What can go wrong. One module per family; each draws whether it is on in this world, and how strongly.
//!
//! A family is on with probability one half, its magnitudes are log-uniform. What a family decides while the world
//! runs is keyed by the thing it decides about, so families do not shift one another.

mod aggregates;
mod application;
mod call;
mod clock;
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
pub use fate::{Fate, Landing, Reach};
pub use line::LineFaults;
pub(crate) use line::Traffic;
pub(crate) use misread::MOST_SHARDS;
pub use misread::{Misread, MisreadFaults};
pub use outage::{Direction, Outage, OutageFaults};
pub use peers::PeerFaults;
pub use permanent_loss::{LossKind, PermanentLoss};
pub use process::{Interruption, InterruptionKind, ProcessFaults};
pub use replica::{Replica, ReplicaFaults, Says, Shows};
pub use request_fault::{Chance, Deed, RequestFault, Site};
pub use several::{Absence, SeveralFaults, Trouble, TroubleKind};
pub use start::{Silence, StartFaults};
pub use storm::{Service, Storm, StormFaults};
pub use stream::{Reshard, ReshardKind, StreamFaults, Trim};
pub use suspension::{Meanwhile, Suspension, SuspensionFaults, WallAfter};
pub use table::{RowEdit, RowEditKind, TableFaults};
pub use upgrade::{Upgrade, UpgradeFaults};

use crate::draws::Draws;
use serde::{Deserialize, Serialize};

/// Every fault of one world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// What happens to single requests and answers.
    pub call: CallFaults,
    /// Workers that cannot reach a service.
    pub outage: OutageFaults,
    /// Services that turn everybody away.
    pub storm: StormFaults,
    /// Crashes, pauses, replacements.
    pub process: ProcessFaults,
    /// Workers that are replaced by ones configured otherwise.
    pub upgrade: UpgradeFaults,
    /// Clocks.
    pub clock: ClockFaults,
    /// Machines that are suspended.
    #[serde(skip_serializing_if = "SuspensionFaults::is_none")]
    pub suspension: SuspensionFaults,
    /// The lease table.
    pub table: TableFaults,
    /// The stream.
    pub stream: StreamFaults,
    /// Answers of replicas that are behind or partial, and single wrong answers.
    #[serde(skip_serializing_if = "is_right")]
    pub replica: ReplicaFaults,
    /// Single wrong answers about shards.
    #[serde(skip_serializing_if = "MisreadFaults::is_none")]
    pub misread: MisreadFaults,
    /// The lines over which records come.
    #[serde(skip_serializing_if = "LineFaults::is_none")]
    pub line: LineFaults,
    /// What is with single streams, where there are several.
    #[serde(skip_serializing_if = "is_plain")]
    pub several: SeveralFaults,
    /// Where shards have no checkpoint yet.
    #[serde(skip_serializing_if = "has_no_start")]
    pub start: StartFaults,
    /// Aggregated records.
    #[serde(skip_serializing_if = "AggregateFaults::is_plain")]
    pub aggregates: AggregateFaults,
    /// The application.
    pub application: ApplicationFaults,
    /// What befalls programs of others beside ours.
    #[serde(skip_serializing_if = "is_plain")]
    pub peers: PeerFaults,
    /// What is taken away for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permanent_loss: Option<PermanentLoss>,
    /// Faults of chance as a list: then nothing but what is in it is left to chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_faults: Option<Vec<RequestFault>>,
}

fn is_right(faults: &ReplicaFaults) -> bool {
    *faults == ReplicaFaults::default()
}

fn is_plain<T: Default + PartialEq>(faults: &T) -> bool {
    *faults == T::default()
}

fn has_no_start(faults: &StartFaults) -> bool {
    *faults == StartFaults::default()
}

/// What the families need to know about the world they are drawn for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How many workers there are.
    pub workers: u64,
    /// How many streams there are.
    pub streams: u64,
    /// How many shards there are at the beginning.
    pub shards: u64,
    /// How long faults last, in µs.
    pub length_us: u64,
    /// How long a lease lasts, in µs.
    pub lease_us: u64,
    /// How long the answer of a table operation is waited for at least, in µs.
    pub table_timeout_us: u64,
    /// The clock rate error that is promised.
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
            several: SeveralFaults::draw(draws, setting),
            start: StartFaults::default(),
            aggregates: AggregateFaults::draw(draws, setting),
            application: ApplicationFaults::draw(draws, setting),
            // In mixed worlds only, where they are drawn.
            peers: PeerFaults::default(),
            permanent_loss: PermanentLoss::draw(draws, setting),
            request_faults: None,
        };
        start::add(&mut faults, draws, setting);
        faults
    }
}

impl Faults {
    /// The most that is added to the handling of one batch, in µs, and whether a handler may then be deaf to an abort.
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
    /// The longest that the application pauses a shard, in µs; 0: it pauses none.
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

/// Whether shards change all the time, what is finished is soon removed, and workers are often cut off for long while that
/// goes on: together, these find what has long been settled by others. One world in twelve.
pub(crate) fn churns(draws: Draws) -> bool {
    draws.below("churn", 0, 12) == 0
}

/// A probability in one of a thousand, if the family is on: log-uniform up to `most`.
pub(crate) fn rate(draws: Draws, family: &str, most: u64) -> u32 {
    if draws.coin(family, 0) { draws.magnitude(family, 1, 1, most) as u32 } else { 0 }
}
