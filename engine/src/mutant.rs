//! Deliberate bugs, to prove that the simulator's oracles see them.
//!
//! Without the feature `mutants` none of this is compiled in: what an engine carries of it is empty, and every question about it `false`.
//! With it, an engine made by `Engine::with_mutant` has exactly one bug.

/// Declares the catalogue: a variant, its name on the command line, and what it does wrong.
macro_rules! catalogue {
    ($($variant:ident $id:literal $about:literal)*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant {
            $(#[doc = $about] $variant,)*
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Mutant] = &[$(Mutant::$variant,)*];

            /// Its name on the command line.
            pub fn id(self) -> &'static str {
                match self {
                    $(Mutant::$variant => $id,)*
                }
            }

            /// What it does wrong, in a sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $(Mutant::$variant => $about,)*
                }
            }
        }
    };
}

catalogue! {
    StampAtReceipt "stamp-at-receipt"
        "Validity is counted from the answer of a renewal, not from its emission."
    UnknownIsFailure "unknown-is-failure"
        "A write of unknown outcome is taken as not applied."
    UnknownIsSuccess "unknown-is-success"
        "A write of unknown outcome is taken as applied."
    NoAdoption "no-adoption"
        "Our own write come through is taken for somebody else's."
    UnguardedCreate "unguarded-create"
        "A row is created over an existing one."
    EndBeforeChildren "end-before-children"
        "The end of a shard is written before its children's leases exist."
    FirstPageOnly "first-page-only"
        "The first page of a scan is taken for all of it."
    FirstListingPageOnly "first-listing-page-only"
        "The first page of a shard listing is taken for all of it."
    NoParentWait "no-parent-wait"
        "A child is opened while its parents are unfinished."
    CheckpointOnDelivery "checkpoint-on-delivery"
        "A batch is checkpointed when it was handed over, not when it was processed."
    SkipFailedBatch "skip-failed-batch"
        "A batch whose handler failed is left out."
    NoSettle "no-settle"
        "A stolen lease is opened at once."
    NoFence "no-fence"
        "Batches are handed over without a look at the validity."
    TakeWhileStopping "take-while-stopping"
        "Leases are taken although a shutdown was asked for."
    NoCloseWhenLost "no-close-when-lost"
        "A shard whose lease was lost is not closed."
    NoBackoff "no-backoff"
        "Failed operations are tried again without a pause."
    BlindToCounter "blind-to-counter"
        "A lease's patience is not renewed when its counter is seen to grow."
    NoRelease "no-release"
        "A release is not written at shutdown."
    NoAudit "no-audit"
        "The hash space is not audited."
    NeverExpire "never-expire"
        "Leases left by the dead are not taken."
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
