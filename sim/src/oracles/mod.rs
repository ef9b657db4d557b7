//! The properties of every world, one file for each property.
//!
//! Oracles see [`Fact`]s: applied writes, sent requests, batches of handlers. Each oracle is a small machine of its own
//! with good and bad histories as tests.

mod again;
mod balance;
mod birth;
mod calls;
pub mod canary;
mod cost;
mod coverage;
mod delivery;
mod denial;
mod ends;
pub mod fact;
mod failure_policy;
mod fence;
mod former;
mod given;
mod halving;
mod handover;
mod heed;
mod identity;
mod isolation;
mod leadership;
mod led;
mod lifecycle;
mod lineage;
mod memory;
mod moves;
mod overlap;
mod pace;
mod partial;
mod pauses;
mod progress;
mod proof;
mod property;
mod quota;
mod reading;
mod reads;
mod repeats;
mod resign;
mod resolution;
mod shares;
mod stalls;
mod standstill;
mod start;
mod steals;
mod stored;
mod takeover;
mod throttling;
mod tidy;
mod trespass;
mod verdict;
mod view;
mod waiting;
mod window;

#[cfg(test)]
mod history;

pub use coverage::{Coverage, uncovered};
pub use fact::{Fact, LifeNo, ShardNo, Time};
pub use property::Property;
pub use verdict::{Verdict, Violation};
pub use window::Windows;

use leasehold_engine::config::Config;
use leasehold_engine::time::Span;
use std::collections::BTreeSet;

/// The promises of a world to its oracles, with the exceptions.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The configuration of the workers.
    pub config: Config,
    /// The configuration of upgraded workers.
    pub upgraded: Option<Config>,
    /// Some clock is worse than the configuration promises: beliefs may overlap.
    pub clocks_beyond: bool,
    /// Wall clocks are set while the world runs.
    pub wall_steps: bool,
    /// The time for which deaf handlers ignore an abort, in µs.
    pub deaf_us: u64,
    /// The time in which a handler obeys an abort, in µs.
    pub abort_us: u64,
    /// Workers of other programs run beside ours, now or earlier.
    pub mixed: bool,
    /// A leader assigns the fleet's leases, as in version 3 of the Java KCL.
    pub led: bool,
    /// The leader assigns leases only after the fleet's step from version 2; each worker notices the step at another
    /// time.
    pub migrates: bool,
    /// Whether the canary is to fire.
    pub canary: bool,
    /// The number of streams read by the workers.
    pub streams: u32,
    /// All records are of one size.
    pub even: bool,
    /// The memory for records or the number of reads may be too small for all shards at once: shards wait for each
    /// other.
    pub tight: bool,
}

impl Terms {
    /// The terms of a world without faults.
    pub fn plain(config: Config) -> Self {
        Self {
            config,
            upgraded: None,
            clocks_beyond: false,
            wall_steps: false,
            deaf_us: 0,
            abort_us: 1_000,
            mixed: false,
            led: false,
            migrates: false,
            canary: false,
            streams: 1,
            even: true,
            tight: false,
        }
    }

    /// The greatest value of an option over all workers.
    pub fn most<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.upgraded.iter().map(&of).fold(of(&self.config), T::max)
    }

    /// The least value of an option over all workers.
    pub fn least<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.upgraded.iter().map(&of).fold(of(&self.config), T::min)
    }

    /// A span of any worker's clock, in true time, from above.
    pub fn at_most(&self, span: Span) -> u64 {
        span.scaled(1_000_000, 1_000_000 - self.rate_error()).0.saturating_add(1)
    }

    /// A span of any worker's clock, in true time, from below.
    pub fn at_least(&self, span: Span) -> u64 {
        span.scaled(1_000_000, 1_000_000 + self.rate_error()).0
    }

    fn rate_error(&self) -> u64 {
        match self.clocks_beyond {
            true => 300_000,
            false => u64::from(self.config.clock_rate_error_ppm().min(500_000)),
        }
    }
}

/// All oracles of a world.
#[derive(Clone, Debug)]
pub struct Oracles {
    delivery: delivery::Delivery,
    start: start::Start,
    stored: stored::Stored,
    again: again::Again,
    repeats: repeats::Repeats,
    lineage: lineage::Lineage,
    resolution: resolution::Resolution,
    progress: progress::Progress,
    isolation: isolation::Isolation,
    balance: balance::Balance,
    birth: birth::Birth,
    quota: quota::Quota,
    leadership: leadership::Leadership,
    led: led::Led,
    view: view::View,
    lifecycle: lifecycle::Lifecycle,
    overlap: overlap::Overlap,
    cost: cost::Cost,
    window: window::Window,
    heed: heed::Heed,
    fences: fence::Fences,
    memory: memory::Memory,
    stalls: stalls::Stalls,
    identity: identity::Identity,
    handovers: handover::HandOvers,
    waiting: waiting::Waiting,
    shares: shares::Shares,
    steals: steals::Steals,
    moves: moves::Moves,
    takeover: takeover::Takeover,
    tidy: tidy::Tidy,
    pace: pace::Pace,
    pauses: pauses::Pauses,
    calls: calls::Calls,
    standstill: standstill::Standstill,
    failure_policy: failure_policy::FailurePolicy,
    ends: ends::Ends,
    resign: resign::Resign,
    proof: proof::Proof,
    reading: reading::Reading,
    reads: reads::Reads,
    halving: halving::Halving,
    canary: canary::Canary,
    /// Lives of other programs. Our promises about beliefs, about children's leases and about hand-overs do not bind
    /// other programs.
    lives_of_others: BTreeSet<LifeNo>,
    /// The oracles' findings.
    pub verdict: Verdict,
}

impl Oracles {
    /// Oracles before the first fact.
    pub fn new(terms: &Terms) -> Self {
        Self {
            delivery: delivery::Delivery::default(),
            start: start::Start::default(),
            stored: stored::Stored::default(),
            again: again::Again::default(),
            repeats: repeats::Repeats::new(terms),
            lineage: lineage::Lineage::default(),
            resolution: resolution::Resolution::new(terms),
            progress: progress::Progress::default(),
            isolation: isolation::Isolation::new(terms),
            balance: balance::Balance::default(),
            birth: birth::Birth::new(terms),
            quota: quota::Quota::new(terms),
            leadership: leadership::Leadership::default(),
            led: led::Led::new(terms),
            view: view::View::default(),
            lifecycle: lifecycle::Lifecycle::new(terms),
            overlap: overlap::Overlap::new(terms),
            cost: cost::Cost::new(terms),
            window: window::Window::new(terms),
            heed: heed::Heed::new(terms),
            fences: fence::Fences::new(terms),
            memory: memory::Memory::new(terms),
            stalls: stalls::Stalls::new(terms),
            identity: identity::Identity::new(terms),
            handovers: handover::HandOvers::default(),
            waiting: waiting::Waiting::new(terms),
            shares: shares::Shares::new(terms),
            steals: steals::Steals::new(terms),
            moves: moves::Moves::new(terms),
            takeover: takeover::Takeover::new(terms),
            tidy: tidy::Tidy::new(terms),
            pace: pace::Pace::new(terms),
            pauses: pauses::Pauses::default(),
            calls: calls::Calls::new(terms),
            standstill: standstill::Standstill::new(terms),
            failure_policy: failure_policy::FailurePolicy::new(terms),
            ends: ends::Ends::default(),
            resign: resign::Resign::new(terms),
            proof: proof::Proof::default(),
            reading: reading::Reading::new(terms),
            reads: reads::Reads::new(terms),
            halving: halving::Halving::default(),
            canary: canary::Canary::new(terms),
            lives_of_others: BTreeSet::new(),
            verdict: Verdict::default(),
        }
    }

    /// Notes a life of another program.
    pub fn note_other(&mut self, life: LifeNo) {
        self.lives_of_others.insert(life);
        self.steals.note_other();
    }

    /// Shows a fact to all oracles concerned.
    pub fn observe(&mut self, now: Time, fact: &Fact) {
        let of_others = fact.life().is_some_and(|life| self.lives_of_others.contains(&life));
        self.verdict.of_others = of_others;
        self.moves.observe(now, fact);
        self.led.observe(now, fact, &self.lives_of_others, &mut self.verdict);
        let verdict = &mut self.verdict;
        match fact {
            Fact::Holds { .. } => {
                self.quota.observe(now, fact, verdict);
                self.view.observe(now, fact, verdict);
                self.overlap.observe(now, fact, verdict);
                self.isolation.observe(now, fact, verdict);
                self.shares.observe(now, fact, verdict);
                self.steals.observe(now, fact, verdict);
                self.takeover.observe(now, fact, verdict);
                self.heed.observe(now, fact, verdict);
                self.birth.observe(now, fact, verdict);
                self.waiting.observe(now, fact);
            }
            Fact::HoldsNoMore { .. } => {
                self.quota.observe(now, fact, verdict);
                self.overlap.observe(now, fact, verdict);
                self.isolation.observe(now, fact, verdict);
                self.shares.observe(now, fact, verdict);
                self.takeover.observe(now, fact, verdict);
                self.heed.observe(now, fact, verdict);
                self.birth.observe(now, fact, verdict);
                self.waiting.observe(now, fact);
            }
            Fact::Yields { .. } => {
                self.isolation.observe(now, fact, verdict);
                self.waiting.observe(now, fact);
            }
            Fact::Said { .. } => {
                self.quota.observe(now, fact, verdict);
                self.birth.observe(now, fact, verdict);
                self.takeover.observe(now, fact, verdict);
            }
            Fact::ScanEnded { .. } => {
                self.shares.observe(now, fact, verdict);
                self.takeover.observe(now, fact, verdict);
            }
            Fact::Asked { .. } | Fact::Answered { .. } => {
                self.resolution.observe(now, fact, verdict);
                if !of_others {
                    self.isolation.observe(now, fact, verdict);
                    self.identity.observe(now, fact, verdict);
                    self.shares.observe(now, fact, verdict);
                    self.steals.observe(now, fact, verdict);
                    self.takeover.observe(now, fact, verdict);
                    self.birth.observe(now, fact, verdict);
                    self.ends.observe(now, fact, verdict);
                    self.reading.observe(now, fact, verdict);
                    self.standstill.observe(now, fact, verdict);
                    self.reads.observe(now, fact, verdict);
                    self.halving.observe(now, fact, verdict);
                }
                self.leadership.observe(now, fact, verdict);
                self.quota.observe(now, fact, verdict);
                self.lifecycle.observe(now, fact, verdict);
                self.cost.observe(now, fact, verdict);
                self.memory.observe(now, fact, verdict);
                self.waiting.observe(now, fact);
            }
            Fact::Stored { .. } | Fact::LeftOut { .. } => self.stored.observe(now, fact, verdict),
            Fact::Looked { .. } => self.repeats.observe(now, fact, of_others, verdict),
            Fact::ReadSent { .. } | Fact::ReadCut { .. } => self.halving.observe(now, fact, verdict),
            Fact::OnItsWay { .. } => self.memory.observe(now, fact, verdict),
            Fact::Fetched { .. } => {
                self.memory.observe(now, fact, verdict);
                self.waiting.observe(now, fact);
            }
            Fact::EndClaimed { .. } => self.waiting.observe(now, fact),
            Fact::Behind { .. } | Fact::Stalled { .. } | Fact::Moving { .. } => {
                self.stalls.observe(now, fact, verdict);
            }
            Fact::Shown { .. } => {
                self.resolution.observe(now, fact, verdict);
                if !of_others {
                    self.shares.observe(now, fact, verdict);
                    self.quota.observe(now, fact, verdict);
                    self.takeover.observe(now, fact, verdict);
                    self.repeats.observe(now, fact, of_others, verdict);
                }
            }
            _ => {
                self.delivery.observe(now, fact, of_others, verdict);
                if !of_others || matches!(fact, Fact::RowChanged { .. }) {
                    self.start.observe(now, fact, verdict);
                }
                self.lineage.observe(now, fact, of_others, verdict);
                let edit = of_others.then(|| trespass::as_edit(fact)).flatten();
                let judged = edit.as_ref().unwrap_or(fact);
                let robbed = edit.is_some() || trespass::disowns(fact);
                if let Fact::RowChanged { shard, .. } = *fact
                    && robbed
                {
                    self.overlap.trespassed(now, shard);
                    self.fences.trespassed(shard);
                    self.window.written_over(now, shard);
                }
                if !of_others || matches!(fact, Fact::RowChanged { .. }) {
                    self.resolution.observe(now, judged, verdict);
                }
                self.progress.observe(now, fact, edit.is_some(), verdict);
                if !of_others {
                    self.proof.observe(now, fact, &self.delivery, verdict);
                }
                if !of_others || matches!(fact, Fact::RowChanged { .. }) {
                    self.again.observe(now, fact, edit.is_some(), verdict);
                }
                self.repeats.observe(now, fact, of_others, verdict);
                self.isolation.observe(now, fact, verdict);
                self.balance.observe(now, fact, of_others);
                self.quota.observe(now, fact, verdict);
                self.leadership.observe(now, fact, verdict);
                self.view.observe(now, judged, verdict);
                self.lifecycle.observe(now, judged, verdict);
                self.overlap.observe(now, fact, verdict);
                self.cost.observe(now, fact, verdict);
                self.window.observe(now, fact, of_others, verdict);
                self.heed.observe(now, fact, verdict);
                self.fences.observe(now, fact, of_others, verdict);
                self.memory.observe(now, fact, verdict);
                self.stalls.observe(now, fact, verdict);
                self.identity.observe(now, fact, verdict);
                self.shares.observe(now, fact, verdict);
                self.steals.observe(now, fact, verdict);
                self.takeover.observe(now, fact, verdict);
                self.tidy.observe(now, judged, verdict);
                self.birth.observe(now, judged, verdict);
                if !of_others {
                    self.handovers.observe(now, fact, verdict);
                    self.pace.observe(now, fact, verdict);
                    self.pauses.observe(now, fact, verdict);
                    self.calls.observe(now, fact, verdict);
                    self.standstill.observe(now, fact, verdict);
                    self.failure_policy.observe(now, fact, verdict);
                    self.ends.observe(now, fact, verdict);
                    self.resign.observe(now, fact, verdict);
                    self.reading.observe(now, fact, verdict);
                    self.reads.observe(now, fact, verdict);
                    self.halving.observe(now, fact, verdict);
                }
                self.waiting.observe(now, fact);
            }
        }
    }

    /// Looks for overdue events, since absence makes no fact.
    pub fn look(&mut self, now: Time) {
        self.verdict.of_others = false;
        self.lifecycle.look(now, &self.lives_of_others, &mut self.verdict);
        self.verdict.of_others = false;
        self.stalls.look(now);
        self.isolation.look(now, &mut self.verdict);
        self.waiting.look(now, &mut self.verdict);
        self.calls.look(now, &mut self.verdict);
        self.led.look(now, &self.lives_of_others, &mut self.verdict);
        self.canary.look(now, &mut self.verdict);
    }

    /// Looks for missing events since all was well. `ours`: whether a worker of ours was alive to act.
    pub fn look_at_end(&mut self, now: Time, since: Time, ours: bool) {
        self.verdict.of_others = false;
        if ours {
            self.tidy.look_at_end(now, since, &mut self.verdict);
        }
        self.moves.look_at_end(since, &mut self.verdict);
    }

    /// The record up to which a shard has been processed without a gap.
    pub fn processed(&self, shard: ShardNo) -> u64 {
        self.delivery.processed(shard)
    }

    /// The record required in a shard's checkpoint, once all is well.
    pub fn owed(&self, shard: ShardNo) -> u64 {
        self.delivery.owed(shard)
    }

    /// Whether a shard with this many records needs no more processing.
    pub fn is_complete(&self, shard: ShardNo, records: u64) -> bool {
        self.delivery.is_complete(shard, records)
    }

    /// The last time when a lease changed its owner.
    pub fn last_move(&self) -> Time {
        self.balance.last_move()
    }

    /// The lives with listings of shards at or after `since`.
    pub fn listers(&self, since: Time) -> impl Iterator<Item = LifeNo> {
        self.leadership.listers(since)
    }

    /// The number of records delivered more than once.
    pub fn duplicates(&self) -> u64 {
        self.delivery.duplicates()
    }

    /// The measured windows.
    pub fn windows(&self) -> Windows {
        self.window.windows()
    }
}
