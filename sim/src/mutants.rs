//! Deliberate bugs, and the oracles that are meant to catch them.
//!
//! An oracle that has never caught anything proves nothing. Each bug of the catalogue is put into every engine of world
//! after world, until a property is violated that is meant for it.

use crate::cheap;
use crate::oracles::Property::{self, *};
use crate::run::{Cancel, Options, plan_of, run_seed};
use crate::shrink::{Shrunk, Size, shrink};
use leasehold_engine::dialect::Kind;
use leasehold_engine::mutant::Mutant;
use serde::Serialize;
use std::time::Instant;

/// The properties a bug may break. The first is the one meant for it.
pub fn meant(mutant: Mutant) -> &'static [Property] {
    match mutant {
        Mutant::StampAtReceipt => &[P14, P18],
        Mutant::UnknownIsFailure => &[P3],
        Mutant::UnknownIsSuccess => &[P3, P12],
        Mutant::NoAdoption => &[P3],
        Mutant::UnguardedCreate => &[P5, P2, P14],
        Mutant::EndBeforeChildren => &[P2, P4],
        Mutant::FirstPageOnly => &[P6, P4, P1, P2, P5],
        Mutant::FirstListingPageOnly => &[P4, P1, P2],
        Mutant::NoParentWait => &[P2],
        Mutant::CheckpointOnDelivery => &[P1],
        Mutant::SkipFailedBatch => &[P1],
        Mutant::NoSettle => &[P14, P18],
        Mutant::NoFence => &[P14, P18],
        Mutant::TakeWhileStopping => &[P11],
        Mutant::NoCloseWhenLost => &[P13],
        Mutant::NoBackoff => &[P15],
        Mutant::BlindToCounter => &[P14, P18],
        Mutant::NoRelease => &[P13],
        Mutant::NoAudit => &[P4, P1],
        Mutant::NeverExpire => &[P6, P1],
        Mutant::ReleaseWhileSettling => &[P14, P18],
        Mutant::NoCoParentWait => &[P2],
        Mutant::RestoreWhenFenced => &[P5, P2],
        Mutant::BelieveOneListing => &[P2, P5],
        Mutant::StealFromEqual => &[P10],
        Mutant::ListAlways => &[P11, P15],
        Mutant::ListingGivesUp => &[P4],
        Mutant::ScanGivesUp => &[P7, P6, P4],
        Mutant::RenewGivesUp => &[P7, P6],
        Mutant::NoAbort => &[P18],
        Mutant::NoPatience => &[P13],
        Mutant::PartialIsWhole => &[P1],
        Mutant::ReadOnAtLatest => &[P1],
        Mutant::EmptyIsEnd => &[P1, P2, P9],
        Mutant::Unpaced => &[P15],
        Mutant::NoBudget => &[P19],
        Mutant::UnknownChildIsCreated => &[P2, P4],
        Mutant::TokenReused => &[P13],
        Mutant::LastUnknownCounts => &[P14, P18],
        Mutant::RenewLate => &[P7],
        Mutant::NeverCheckpoint => &[P7, P1],
        Mutant::ChildrenFromLatest => &[P1],
        Mutant::OneChildOnly => &[P2, P4],
        Mutant::ExpireEarly => &[P14, P18],
        Mutant::HoldTooLong => &[P14, P18],
        Mutant::NoTakeOfUnowned => &[P6],
        Mutant::CloseTooEarly => &[P13],
        Mutant::RowTwiceSeen => &[P6, P1],
        Mutant::BrokenIsApplied => &[P12, P3],
        Mutant::ServerErrorIsApplied => &[P12, P3],
        Mutant::TimeoutIsNotSent => &[P14, P18],
        Mutant::ConditionIsThrottled => &[P13, P6],
        Mutant::PutForUpdate => &[P14],
        Mutant::EndIsBeginning => &[P5, P2],
        Mutant::AnyTable => &[P17],
        Mutant::StallUnnoticed | Mutant::StallForgotten => &[P16],
        Mutant::TakeUnguarded => &[P14, P3],
        Mutant::OneHandlerAtATime | Mutant::OneReadAtATime => &[P9],
        Mutant::CreateWhenFenced | Mutant::ChildrenOfOthers => &[P2, P5],
        Mutant::HandOverWhileSettling => &[P14, P18],
        Mutant::HandOverUnfinished | Mutant::HandOverTooEarly => &[P8],
        Mutant::NeverSteals => &[P10],
        Mutant::FloorShare => &[P6, P10],
        Mutant::OneParentOnly => &[P2],
        Mutant::ExpiryByTheirClock => &[P14, P18],
        Mutant::FinishedRemovedEarly => &[P5, P2],
        Mutant::KeepsOthersTurns | Mutant::RegistersOnce => &[P10],
        Mutant::DeadMembersCount => &[P6, P10],
        Mutant::SharesOnce => &[P4],
        Mutant::FirstMembersPageOnly => &[P10, P6],
        Mutant::LineageNotAsked | Mutant::UnreadIsRead => &[P2],
        Mutant::QuotaIgnored | Mutant::NeverChases => &[P10],
        Mutant::CheckpointSeldom | Mutant::AskedWaits | Mutant::FailuresStay => &[P7],
        Mutant::LostUntold => &[P18],
        Mutant::StealsAll | Mutant::ClaimsForgotten | Mutant::TakesForgotten => &[P10],
        Mutant::TakesInDrops | Mutant::RetriesRegardless | Mutant::HandedOnForgotten => &[P10],
        Mutant::RemovedUnbegun | Mutant::NeverTidies => &[P5],
        Mutant::ClosesUnsaved => &[P13, P7],
        Mutant::DrainsSlowly => &[P7],
        Mutant::NoHandlerPause => &[P15],
        Mutant::StartsOver => &[P1],
        Mutant::CounterBeginsAnew => &[P13, P14, P18],
        Mutant::ChildrenUnnamed | Mutant::RangeUnsaid => &[P4],
    }
}

/// The table format that a bug concerns: KCL's, unless it lies in what only others ask for.
pub fn dialect(mutant: Mutant) -> Kind {
    match mutant {
        Mutant::ExpiryByTheirClock | Mutant::FinishedRemovedEarly => Kind::VmwareGoKcl,
        Mutant::LineageNotAsked | Mutant::UnreadIsRead | Mutant::ClaimsForgotten => Kind::VmwareGoKcl,
        Mutant::KeepsOthersTurns
        | Mutant::RegistersOnce
        | Mutant::DeadMembersCount
        | Mutant::SharesOnce
        | Mutant::FirstMembersPageOnly => Kind::Kinsumer,
        _ => Kind::Kcl,
    }
}

/// Whether a bug shows beside workers of another program only: rows of ours say what theirs leave out.
pub fn mixed(mutant: Mutant) -> bool {
    matches!(mutant, Mutant::LineageNotAsked | Mutant::UnreadIsRead)
}

/// The first world to try, for a bug that shows in one world of a thousand: one in which it showed once.
pub fn first_world(mutant: Mutant) -> Option<u64> {
    match mutant {
        Mutant::HandedOnForgotten => Some(7642),
        _ => None,
    }
}

/// What became of one bug.
#[derive(Clone, Debug, Serialize)]
pub struct Hunt {
    /// Its name.
    pub id: &'static str,
    /// What it does wrong.
    pub description: &'static str,
    /// Whether an oracle that is meant for it caught it.
    pub killed: bool,
    /// Which did.
    pub property: Option<Property>,
    /// How many worlds it took.
    pub seeds_to_kill: u64,
    /// How long that took, on one core.
    pub seconds: f64,
    /// How small the case became.
    pub shrunk: Option<Size>,
    /// Properties that it broke before, though they are not meant for it.
    pub strays: Vec<Property>,
    /// The small case.
    #[serde(skip)]
    pub case: Option<Shrunk>,
}

/// Runs worlds until a bug is caught, or so many were run.
pub fn hunt(mutant: Mutant, seeds: u64, shrunk: bool) -> Hunt {
    let options = Options {
        mutant: Some(mutant),
        dialects: vec![dialect(mutant)],
        mixed: mixed(mutant),
        ..Options::default()
    };
    let begun = Instant::now();
    let mut strays = Vec::new();
    let mut caught = None;
    let mut run = 0;
    let worlds: Box<dyn Iterator<Item = u64>> = match first_world(mutant) {
        Some(first) => Box::new(first..first + seeds),
        None => Box::new(cheap::first(seeds, &options).into_iter()),
    };
    for seed in worlds {
        run += 1;
        let violations = run_seed(seed, &options).found.violations;
        let meant = meant(mutant);
        if let Some(found) = violations.iter().find(|found| meant.contains(&found.property)) {
            caught = Some((seed, found.property));
            break;
        }
        strays.extend(violations.iter().map(|found| found.property));
    }
    let seconds = begun.elapsed().as_secs_f64();
    strays.sort_unstable();
    strays.dedup();
    let small = caught
        .filter(|_| shrunk)
        .and_then(|(seed, _)| shrink(&plan_of(seed, &options), Some(mutant), &Cancel::default()));
    Hunt {
        id: mutant.id(),
        description: mutant.about(),
        killed: caught.is_some(),
        property: caught.map(|(_, property)| property),
        seeds_to_kill: run,
        seconds,
        shrunk: small.as_ref().map(|small| small.size),
        strays,
        case: small,
    }
}
