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
    BlindToCounter "blind-to-counter"
        "A lease's patience is not renewed when its counter is seen to grow."
    NoRelease "no-release"
        "A release is not written at shutdown."
    NoAudit "no-audit"
        "The hash space is not audited."
    NeverExpire "never-expire"
        "Leases left by the dead are not taken."
    ReleaseWhileSettling "release-while-settling"
        "A stolen lease is given up before its former owner must know that it was stolen."
    NoCoParentWait "no-co-parent-wait"
        "The lease of a merged child is created although its other parent has none yet."
    RestoreWhenFenced "restore-when-fenced"
        "A row that is gone is put back although others may have ended and removed it."
    BelieveOneListing "believe-one-listing"
        "What a single listing of the shards shows is created at once, though it may lag."
    StealFromEqual "steal-from-equal"
        "A lease is stolen from a worker that has no more than its share."
    ListAlways "list-always"
        "Every worker lists the shards after every scan."
    ListingGivesUp "listing-gives-up"
        "A listing that failed is never tried again."
    ScanGivesUp "scan-gives-up"
        "A scan that failed is never tried again."
    RenewGivesUp "renew-gives-up"
        "A write of a held lease that failed is never tried again."
    NoAbort "no-abort"
        "A handler goes on when the belief in its lease ran out."
    NoPatience "no-patience"
        "A shutdown waits for handlers and checkpoints for ever."
    PartialIsWhole "partial-is-whole"
        "What was said to be processed of a batch is taken for all of it."
    ReadOnAtLatest "read-on-at-latest"
        "After an iterator expired, a shard is read on at its tip."
    EmptyIsEnd "empty-is-end"
        "An empty answer at the tip is taken for the end of the shard."
    Unpaced "unpaced"
        "Shards are read without a pause."
    NoBudget "no-budget"
        "Shards are read on however much waits to be processed."
    UnknownChildIsCreated "unknown-child-is-created"
        "A child's lease whose creation has an unknown outcome is taken for created."
    TokenReused "token-reused"
        "Every ownership of a shard has the same fencing token."
    LastUnknownCounts "last-unknown-counts"
        "Validity after an adoption is counted from the last write of unknown outcome, though an earlier one may be it."
    RenewLate "renew-late"
        "A lease is renewed when its duration is over."
    NeverCheckpoint "never-checkpoint"
        "Progress is not written unless somebody asks for it."
    ChildrenFromLatest "children-from-latest"
        "The children of an ended shard are started at their tip."
    OneChildOnly "one-child-only"
        "Of the children of an ended shard only one gets its lease."
    ExpireEarly "expire-early"
        "A lease counts as expired after half its duration."
    HoldTooLong "hold-too-long"
        "A holder believes for longer than others wait."
    NoTakeOfUnowned "no-take-of-unowned"
        "Leases without an owner are not taken."
    CloseTooEarly "close-too-early"
        "A shard is closed while its handler runs."
    RowTwiceSeen "row-twice-seen"
        "A lease's idle time starts anew with every scan that shows it."
    AnyTable "any-table"
        "A table is taken up although its leases are of another stream."
    StallUnnoticed "stall-unnoticed"
        "A lease that does not move is not reported."
    StallForgotten "stall-forgotten"
        "An answer without records counts as movement, wherever the shard's tip is."
    OneHandlerAtATime "one-handler-at-a-time"
        "A batch is handed over only while no other shard's handler runs."
    OneReadAtATime "one-read-at-a-time"
        "A shard is read only while no other shard's read is under way."
    HandOverUnfinished "hand-over-unfinished"
        "A lease that is being handed over is renewed for ever instead of given up."
    HandOverWhileSettling "hand-over-while-settling"
        "A stolen lease is handed over before its former owner must know that it was stolen."
    CreateWhenFenced "create-when-fenced"
        "The leases of an ended shard's children are created although others may have processed and removed them."
    ChildrenOfOthers "children-of-others"
        "Whoever lost an ended shard goes on creating the leases of its children."
    HandOverTooEarly "hand-over-too-early"
        "A lease is handed over before what was processed is durable."
    NeverSteals "never-steals"
        "Nothing is taken from a worker that has too much."
    FloorShare "floor-share"
        "A worker's share is rounded down."
    OneParentOnly "one-parent-only"
        "A merged child waits for one of its parents only."
    ExpiryByTheirClock "expiry-by-their-clock"
        "A lease counts as expired when the time in its row has passed, by whatever clocks."
    FinishedRemovedEarly "finished-removed-early"
        "The row of a finished shard is removed while the stream still lists the shard."
    KeepsOthersTurns "keeps-others-turns"
        "A lease that became another member's turn is kept."
    RegistersOnce "registers-once"
        "A member says once only that it lives."
    DeadMembersCount "dead-members-count"
        "Members that died have turns."
    SharesOnce "shares-once"
        "The shards that are shared out are never compared with the stream's again."
    FirstMembersPageOnly "first-members-page-only"
        "Only the first page of members is read."
    LineageNotAsked "lineage-not-asked"
        "A lease is taken before its parents are known."
    UnreadIsRead "unread-is-read"
        "A listed parent without a row counts as read."
    QuotaIgnored "quota-ignored"
        "More leases are taken than the configuration allows."
    NeverChases "never-chases"
        "A steal is given up when its owner renewed the lease since the scan."
    CheckpointSeldom "checkpoint-seldom"
        "Progress is written half as often as configured."
    AskedWaits "asked-waits"
        "A checkpoint that the application asks for is written when one is due."
    FailuresStay "failures-stay"
        "Failures of scans and of a lease's writes are not forgotten when one succeeds."
    StealsAll "steals-all"
        "All that a worker lacks is stolen at a time."
    ClaimsForgotten "claims-forgotten"
        "What others are asked for does not count before their rows are seen to say so."
    TakesForgotten "takes-forgotten"
        "What is being taken does not count towards the share."
    HandedOnForgotten "handed-on-forgotten"
        "A take of unknown outcome does not count towards the share once its lease is being handed over."
    TakesInDrops "takes-in-drops"
        "One lease without an owner limits what is taken at a time, also of what crashed workers left."
    RetriesRegardless "retries-regardless"
        "A take that failed is repeated although the share is full by now."
    RemovedUnbegun "removed-unbegun"
        "The row of a finished shard is removed before its children have begun."
    NeverTidies "never-tidies"
        "The rows of finished shards are never removed."
    ClosesUnsaved "closes-unsaved"
        "At a shutdown, shards are closed before what was processed is durable."
    DrainsSlowly "drains-slowly"
        "The last checkpoint of a shard that is let go of is written when one is due."
    NoHandlerPause "no-handler-pause"
        "A handler that failed is called again at once."
    StartsOver "starts-over"
        "A shard is read from its beginning, wherever its checkpoint is."
    ChildrenUnnamed "children-unnamed"
        "The row of a finished shard does not name its children."
    RangeUnsaid "range-unsaid"
        "The lease of a child is created without its hash range."
    LostUntold "lost-untold"
        "A handler that is being waited for is not told that the lease was lost."
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
