//! What must hold in every world, one file per property.
//!
//! Oracles see [`Fact`]s: what the services applied, what was sent, what handlers were given. Each is a small machine of
//! its own with good and bad histories as tests.

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

/// What a world promises its oracles, and what it does not.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How the workers are configured.
    pub config: Config,
    /// How those are that were upgraded.
    pub upgraded: Option<Config>,
    /// Some clock is worse than the configuration promises: beliefs may overlap.
    pub clocks_beyond: bool,
    /// Wall clocks are set while the world runs.
    pub wall_steps: bool,
    /// Handlers that do not heed an abort, and for how long, in µs.
    pub deaf_us: u64,
    /// How long a handler takes to heed an abort, in µs.
    pub abort_us: u64,
    /// Workers of other programs stand beside ours, or did.
    pub mixed: bool,
    /// In the fleet somebody leads, and assigns the leases, as in version 3 of the Java KCL.
    pub led: bool,
    /// It does so only from when the fleet has gone over from version 2, which each worker notices at another time.
    pub migrates: bool,
    /// Whether the canary is to fire.
    pub canary: bool,
    /// How many streams the workers read.
    pub streams: u32,
    /// All records are of one size.
    pub even: bool,
    /// The memory for records or the number of reads may be too little for all shards at once: shards wait for each other.
    pub tight: bool,
}

impl Terms {
    /// The terms of a world in which all goes well.
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

    /// The greatest that something can be over all workers.
    pub fn most<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.upgraded.iter().map(&of).fold(of(&self.config), T::max)
    }

    /// The least that something can be over all workers.
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
    canary: canary::Canary,
    /// Lives of programs that others wrote: what ours promise of their beliefs, of children's leases and of hand-overs, these
    /// do not.
    lives_of_others: BTreeSet<LifeNo>,
    /// What they found.
    pub verdict: Verdict,
}

impl Oracles {
    /// Oracles that have seen nothing yet.
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
            canary: canary::Canary::new(terms),
            lives_of_others: BTreeSet::new(),
            verdict: Verdict::default(),
        }
    }

    /// This life is of a program that others wrote.
    pub fn note_other(&mut self, life: LifeNo) {
        self.lives_of_others.insert(life);
        self.steals.note_other();
    }

    /// Shows a fact to everybody whom it may concern.
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
                }
                self.waiting.observe(now, fact);
            }
        }
    }

    /// Looks for what is overdue: absence makes no fact.
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

    /// Looks for what should have happened since all was well. `ours`: whether one of our workers was there to do it.
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

    /// The record that a shard's checkpoint must have come to, once all is well.
    pub fn owed(&self, shard: ShardNo) -> u64 {
        self.delivery.owed(shard)
    }

    /// Whether nothing more need be processed of a shard with so many records.
    pub fn is_complete(&self, shard: ShardNo, records: u64) -> bool {
        self.delivery.is_complete(shard, records)
    }

    /// When a lease changed its owner for the last time.
    pub fn last_move(&self) -> Time {
        self.balance.last_move()
    }

    /// Which lives listed shards at or after `since`.
    pub fn listers(&self, since: Time) -> impl Iterator<Item = LifeNo> {
        self.leadership.listers(since)
    }

    /// How many records were delivered more than once.
    pub fn duplicates(&self) -> u64 {
        self.delivery.duplicates()
    }

    /// The measured windows.
    pub fn windows(&self) -> Windows {
        self.window.windows()
    }
}
