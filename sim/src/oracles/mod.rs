//! The properties of every world, one file for each property.
//!
//! Oracles see [`Fact`]s: applied writes, sent requests, batches of handlers. Each oracle is a small machine of its own
//! with good and bad histories as tests. `SEES` names the facts that an oracle sees, and `History` tells the oracle
//! the state of rows, shards and lives.

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
mod history;
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
mod per_shard;
mod progress;
mod proof;
mod property;
mod quota;
mod reading;
mod reads;
mod repeats;
mod resign;
mod resolution;
mod sees;
mod shares;
mod stalls;
mod standstill;
mod start;
mod steals;
mod stored;
mod subscriptions;
mod takeover;
mod throttling;
mod tidy;
mod trespass;
mod vain;
mod verdict;
mod view;
mod waiting;
mod window;

#[cfg(test)]
mod testing;

pub use coverage::{Coverage, uncovered};
pub use fact::{Fact, LifeNo, ShardNo, Time};
pub use property::Property;
pub use verdict::{Verdict, Violation};
pub use window::Windows;

use history::History;
use leasehold_engine::config::Config;
use leasehold_engine::time::Span;
use per_shard::PerShard;
use sees::{EVENTS, READS, REPORTS, REQUESTS, ROWS, SHOWN, Sees};
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
    /// The workers with a wall clock that is wrong for a while.
    pub wrong_walls: BTreeSet<u32>,
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
            wrong_walls: BTreeSet::new(),
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

    /// The longest span of an option over all workers, in true time.
    pub fn longest(&self, of: impl Fn(&Config) -> Span) -> u64 {
        self.at_most(self.most(of))
    }

    /// The shortest span of an option over all workers, in true time.
    pub fn shortest(&self, of: impl Fn(&Config) -> Span) -> u64 {
        self.at_least(self.least(of))
    }

    fn rate_error(&self) -> u64 {
        match self.clocks_beyond {
            true => 300_000,
            false => u64::from(self.config.clock_rate_error_ppm().min(500_000)),
        }
    }
}

/// The registry: the field of an oracle, its type, and `(terms)` if the terms of the world change it.
macro_rules! oracles {
    ($($name:ident: $file:ident::$Oracle:ident $(($terms:ident))?,)+) => {
        /// All oracles of a world.
        #[derive(Clone, Debug)]
        pub struct Oracles {
            $($name: $file::$Oracle,)+
            canary: canary::Canary,
            history: History,
            /// The oracles' findings.
            pub verdict: Verdict,
        }

        impl Oracles {
            /// Oracles before the first fact.
            pub fn new(terms: &Terms) -> Self {
                Self {
                    $($name: oracles!(@new $file::$Oracle, terms $($terms)?),)+
                    canary: canary::Canary::new(terms),
                    history: History::new(terms),
                    verdict: Verdict::default(),
                }
            }

            /// Shows a fact to all oracles concerned.
            pub fn observe(&mut self, now: Time, fact: &Fact) {
                let edit = self.history.note(now, fact);
                let judged = edit.as_ref().unwrap_or(fact);
                let (history, verdict) = (&self.history, &mut self.verdict);
                verdict.of_others = history.of_others;
                let kind = sees::kind(fact);
                $({
                    const SEES: Sees = $file::$Oracle::SEES;
                    if SEES.has(kind, history.of_others) {
                        let fact = if SEES.edits { judged } else { fact };
                        self.$name.observe(now, fact, history, verdict);
                    }
                })+
                if kind == ROWS && !history.of_others {
                    proof::judge(now, fact, history, &self.delivery, verdict);
                }
            }
        }
    };
    (@new $file:ident::$Oracle:ident, $given:ident) => { $file::$Oracle::default() };
    (@new $file:ident::$Oracle:ident, $given:ident $terms:ident) => { $file::$Oracle::new($given) };
}

oracles! {
    moves: moves::Moves(terms),
    led: led::Led(terms),
    delivery: delivery::Delivery,
    start: start::Start,
    stored: stored::Stored,
    lineage: lineage::Lineage,
    resolution: resolution::Resolution(terms),
    progress: progress::Progress,
    again: again::Again,
    repeats: repeats::Repeats(terms),
    isolation: isolation::Isolation(terms),
    balance: balance::Balance,
    quota: quota::Quota(terms),
    leadership: leadership::Leadership,
    view: view::View,
    lifecycle: lifecycle::Lifecycle(terms),
    overlap: overlap::Overlap(terms),
    cost: cost::Cost(terms),
    window: window::Window(terms),
    heed: heed::Heed(terms),
    fences: fence::Fences(terms),
    memory: memory::Memory(terms),
    stalls: stalls::Stalls(terms),
    identity: identity::Identity,
    shares: shares::Shares(terms),
    steals: steals::Steals(terms),
    takeover: takeover::Takeover(terms),
    tidy: tidy::Tidy(terms),
    birth: birth::Birth(terms),
    handovers: handover::HandOvers,
    pace: pace::Pace(terms),
    pauses: pauses::Pauses,
    calls: calls::Calls(terms),
    standstill: standstill::Standstill(terms),
    failure_policy: failure_policy::FailurePolicy(terms),
    ends: ends::Ends,
    resign: resign::Resign,
    reading: reading::Reading,
    reads: reads::Reads(terms),
    halving: halving::Halving,
    waiting: waiting::Waiting(terms),
    subscriptions: subscriptions::Subscriptions(terms),
    vain: vain::Vain(terms),
}

impl Oracles {
    /// Notes a life of another program.
    pub fn note_other(&mut self, life: LifeNo) {
        self.history.others.insert(life);
        self.steals.note_other();
    }

    /// Looks for overdue events, since absence makes no fact.
    pub fn look(&mut self, now: Time) {
        let (history, verdict) = (&self.history, &mut self.verdict);
        verdict.of_others = false;
        self.lifecycle.look(now, &history.others, verdict);
        verdict.of_others = false;
        self.stalls.look(now);
        self.isolation.look(now, history, verdict);
        self.waiting.look(now, history, verdict);
        self.calls.look(now, verdict);
        self.led.look(now, &history.others, verdict);
        self.canary.look(now, verdict);
    }

    /// Looks for missing events since all was well. `ours`: whether a worker of ours was alive to act.
    pub fn look_at_end(&mut self, now: Time, since: Time, ours: bool) {
        self.verdict.of_others = false;
        if ours {
            self.tidy.look_at_end(now, since, &self.history, &mut self.verdict);
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
