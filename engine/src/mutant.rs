//! Deliberate bugs, to prove that the simulator's oracles see them.
//!
//! Without the feature `mutants` none of this is compiled in: what an engine carries of it is empty, and every question about it `false`.
//! With it, an engine made by `Engine::with_mutant` has exactly one bug.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// Validity is counted from the answer of a renewal, not from its emission.
    StampAtReceipt,
    /// A write of unknown outcome is taken as not applied.
    UnknownIsFailure,
    /// A write of unknown outcome is taken as applied.
    UnknownIsSuccess,
    /// Our own write come through is taken for somebody else's.
    NoAdoption,
    /// A row is created over an existing one.
    UnguardedCreate,
    /// The end of a shard is written before its children's leases exist.
    EndBeforeChildren,
    /// The first page of a scan is taken for all of it.
    FirstPageOnly,
    /// The first page of a shard listing is taken for all of it.
    FirstListingPageOnly,
    /// A child is opened while its parents are unfinished.
    NoParentWait,
    /// A batch is checkpointed when it was handed over, not when it was processed.
    CheckpointOnDelivery,
    /// A batch whose handler failed is left out.
    SkipFailedBatch,
    /// A stolen lease is opened at once.
    NoSettle,
    /// Batches are handed over without a look at the validity.
    NoFence,
    /// Leases are taken although a shutdown was asked for.
    TakeWhileStopping,
    /// A shard whose lease was lost is not closed.
    NoCloseWhenLost,
    /// Failed operations are tried again without a pause.
    NoBackoff,
    /// A lease's patience is not renewed when its counter is seen to grow.
    BlindToCounter,
    /// A release is not written at shutdown.
    NoRelease,
    /// The hash space is not audited.
    NoAudit,
    /// Leases left by the dead are not taken.
    NeverExpire,
}

impl Mutant {
    /// All of them.
    pub const ALL: &[Mutant] = &[
        Mutant::StampAtReceipt,
        Mutant::UnknownIsFailure,
        Mutant::UnknownIsSuccess,
        Mutant::NoAdoption,
        Mutant::UnguardedCreate,
        Mutant::EndBeforeChildren,
        Mutant::FirstPageOnly,
        Mutant::FirstListingPageOnly,
        Mutant::NoParentWait,
        Mutant::CheckpointOnDelivery,
        Mutant::SkipFailedBatch,
        Mutant::NoSettle,
        Mutant::NoFence,
        Mutant::TakeWhileStopping,
        Mutant::NoCloseWhenLost,
        Mutant::NoBackoff,
        Mutant::BlindToCounter,
        Mutant::NoRelease,
        Mutant::NoAudit,
        Mutant::NeverExpire,
    ];

    /// Its name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Mutant::StampAtReceipt => "stamp-at-receipt",
            Mutant::UnknownIsFailure => "unknown-is-failure",
            Mutant::UnknownIsSuccess => "unknown-is-success",
            Mutant::NoAdoption => "no-adoption",
            Mutant::UnguardedCreate => "unguarded-create",
            Mutant::EndBeforeChildren => "end-before-children",
            Mutant::FirstPageOnly => "first-page-only",
            Mutant::FirstListingPageOnly => "first-listing-page-only",
            Mutant::NoParentWait => "no-parent-wait",
            Mutant::CheckpointOnDelivery => "checkpoint-on-delivery",
            Mutant::SkipFailedBatch => "skip-failed-batch",
            Mutant::NoSettle => "no-settle",
            Mutant::NoFence => "no-fence",
            Mutant::TakeWhileStopping => "take-while-stopping",
            Mutant::NoCloseWhenLost => "no-close-when-lost",
            Mutant::NoBackoff => "no-backoff",
            Mutant::BlindToCounter => "blind-to-counter",
            Mutant::NoRelease => "no-release",
            Mutant::NoAudit => "no-audit",
            Mutant::NeverExpire => "never-expire",
        }
    }
}

/// The bug an engine has, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Planted {
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

impl Planted {
    /// Whether it is this one.
    #[inline(always)]
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        #[cfg(feature = "mutants")]
        return self.mutant == Some(mutant);
        #[cfg(not(feature = "mutants"))]
        {
            let _ = mutant;
            false
        }
    }
}
