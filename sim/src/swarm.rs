//! Drawing a world from one number.
//!
//! Every world is small in its own way: few workers or many, short leases, tiny pages, a handful of fault families. What
//! is drawn here fixes the run; a [`Plan`] can be printed, and is all there is to know about a world beforehand.

mod led;
mod mixed;
mod several;

use crate::draws::Draws;
use crate::faults::{Faults, LineFaults, Setting, Traffic, UpgradeFaults, churns};
use crate::peers::Fleet;
use crate::span::micros;
use crate::start::Start;
use leasehold_engine::config::{Config, FailureAction, InitialPosition, MembersConfig, ReaderConfig};
use leasehold_engine::format::Format;
use leasehold_engine::policy::{Assign, Policies, Steal};
use leasehold_engine::time::{Span, Wall};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The wall clock of every world at its beginning, in ms since the Unix epoch.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// How much older than the application its stream is.
pub const STREAM_AGE_MS: i64 = 60_000;

/// The shards of a wide world: a page of ListShards has no more than 1,000.
const WIDE: u32 = 1_100;

/// Everything that is fixed about a world before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// How leases are spelled in the table.
    pub format: Format,
    /// Whether workers ask each other for leases in KCL's tables. Otherwise they steal, as beside workers of KCL 2.x.
    pub asks: bool,
    /// How many workers.
    pub workers: u32,
    /// Which programs they run.
    pub fleet: Fleet,
    /// How many streams the workers read: 1, or several in KCL's multi-stream mode.
    pub streams: u32,
    /// How many shards at the beginning, those of all streams.
    pub shards: u32,
    /// How long faults last, in µs.
    pub fault_us: u64,
    /// How all workers are configured.
    pub config: Config,
    /// How those are that the fleet is being upgraded to.
    pub upgraded: Option<Config>,
    /// What is written to the stream.
    pub load: Load,
    /// What goes wrong.
    pub faults: Faults,
    /// The stream and the table, if they are there already; they have the shards then.
    pub start: Option<Arc<Start>>,
}

/// What is written to the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// Records there before the application is first started.
    pub before: u32,
    /// A few records are put every so often, in µs.
    #[serde(rename = "every", with = "micros")]
    pub every_us: u64,
    /// How many.
    pub burst: u32,
    /// The size of a record in bytes.
    pub bytes: u32,
}

impl Default for Load {
    /// One small record a second.
    fn default() -> Self {
        Self { before: 0, every_us: 1_000_000, burst: 1, bytes: 100 }
    }
}

impl Plan {
    /// Draws the world of a seed.
    pub fn draw(seed: u64) -> Self {
        let draws = Draws::new(seed);
        let plan = Self::ordinary(seed, draws);
        match draws.below("wide", 0, 1_500) {
            0 => plan.widened(),
            _ => plan,
        }
    }

    /// Draws the world of a seed, of one of these formats.
    ///
    /// # Panics
    /// If there are none.
    pub fn draw_of(seed: u64, formats: &[Format]) -> Self {
        let draws = Draws::new(seed);
        let drawn = draws.below("format", 0, formats.len() as u64);
        Self::draw(seed).with_format(formats[drawn as usize])
    }

    /// The same world with its leases spelled otherwise.
    pub fn with_format(self, format: Format) -> Self {
        let mut plan = match format {
            Format::Kcl => self,
            // Only KCL's table holds leases of several streams.
            _ => self.of_one_stream(),
        };
        plan.format = format;
        plan.spelled()
    }

    /// What follows from the format.
    fn spelled(mut self) -> Self {
        let format = self.format;
        let policies = policies(format, self.asks);
        let lead = 1 + self.seed % 3;
        self.configure(|config| {
            let config = config.with_policies(policies);
            if policies.assign != Assign::Rank {
                return config;
            }
            let check_interval = config.lease_duration().per(5);
            let members = MembersConfig::default()
                .with_check_interval(check_interval)
                .with_lead_interval(check_interval.times(lead));
            config.with_max_leases(0).with_lease_duration(members.expiry()).with_members(members)
        });
        self
    }

    fn ordinary(seed: u64, draws: Draws) -> Self {
        let workers = match draws.below("workers-rare", 0, 40) {
            0 => 32,
            _ => draws.between("workers", 0, 1, 6) as u32,
        };
        let shards = match draws.below("shards-rare", 0, 100) {
            0 => 200,
            _ => draws.magnitude("shards", 0, 1, 32) as u32,
        };
        let streams = match draws.below("streams", 0, 16) {
            0 => 4,
            1 | 2 => 2,
            _ => 1,
        };
        let config = config(draws);
        let load = Load {
            before: if draws.coin("before", 0) { draws.magnitude("before", 1, 1, 500) as u32 } else { 0 },
            every_us: draws.magnitude("put-every", 0, 50_000, 4_000_000),
            burst: draws.magnitude("put-burst", 0, 1, 30) as u32,
            bytes: draws.magnitude("put-bytes", 0, 1, 20_000) as u32,
        };
        let plan = Self {
            seed,
            format: Format::Kcl,
            asks: asks(draws),
            workers: 0,
            fleet: Fleet::default(),
            streams: 1,
            shards: 0,
            fault_us: 0,
            upgraded: upgraded(draws, &config),
            config,
            load,
            faults: Faults::default(),
            start: None,
        };
        let length_us = draws.magnitude("length", 0, 10_000_000, 300_000_000);
        plan.of_streams(streams).resized(workers, shards, length_us)
    }

    /// More shards than a page of ListShards has, and all else modest, or it would take for ever.
    fn widened(mut self) -> Self {
        self.config = named(self.asks)
            .with_initial_position(self.config.initial_position())
            .with_scan_interval(Span::from_secs(6))
            .with_reader(ReaderConfig::default().with_idle_interval(Span::from_secs(4)));
        self.upgraded = None;
        self.load.every_us = self.load.every_us.max(1_000_000);
        self.load.burst = self.load.burst.min(10);
        let (workers, length_us) = (self.workers.min(3), self.fault_us.min(20_000_000));
        let mut plan = self.of_streams(1).resized(workers, WIDE, length_us);
        plan.faults.upgrade.turns.clear();
        (plan.faults.table.tiny_page, plan.faults.table.slow_page_us) = (0, 0);
        plan.faults.stream.list_page = 0;
        plan
    }

    /// Whether some worker runs a program that others wrote.
    pub fn has_others(&self) -> bool {
        self.fleet.has_others(self.workers)
    }

    /// Changes every configuration that a worker may have.
    pub(crate) fn configure(&mut self, change: impl Fn(Config) -> Config) {
        for config in std::iter::once(&mut self.config).chain(&mut self.upgraded) {
            *config = change(std::mem::take(config));
        }
    }

    /// How workers may be configured.
    pub fn configs(&self) -> impl Iterator<Item = &Config> {
        std::iter::once(&self.config).chain(&self.upgraded)
    }

    /// Has all workers start shards that nobody has read yet here: on that a fleet agrees.
    pub(crate) fn start_at(&mut self, position: InitialPosition) {
        self.configure(|config| config.with_initial_position(position));
    }

    /// Whether the memory for records, or the number of reads, may be too little for all shards of a worker at once.
    pub(crate) fn is_tight(&self) -> bool {
        let usual = Config::default();
        let most = self.faults.stream.most_shards(self.shards);
        self.least(Config::memory) < usual.memory()
            || self.least(Config::max_reads) < usual.max_reads()
            || most.is_none_or(|most| most > 50)
    }

    /// The greatest that something can be over all configurations.
    pub fn most<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.configs().skip(1).map(&of).fold(of(&self.config), T::max)
    }

    /// The least that something can be over all configurations.
    pub fn least<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.configs().skip(1).map(&of).fold(of(&self.config), T::min)
    }

    /// A world of this size and length instead, configured alike, with faults drawn anew for it.
    pub fn resized(mut self, workers: u32, shards: u32, fault_us: u64) -> Self {
        let shards = shards.next_multiple_of(self.streams);
        let setting = Setting {
            workers: u64::from(workers),
            streams: u64::from(self.streams),
            shards: u64::from(shards),
            length_us: fault_us,
            lease_us: self.config.lease_duration().0,
            table_timeout_us: self.least(|config| config.table_timeout().0),
            rate_ppm: u64::from(self.config.clock_rate_error_ppm()),
        };
        (self.workers, self.shards, self.fault_us) = (workers, shards, fault_us);
        self.faults = Faults::draw(Draws::new(self.seed), setting);
        self.limited().forgetful().roomy().narrowed()
    }

    /// Where a worker may have many leases, none of them waits for its turn at the lease table: oracles ask for the requests of each lease on time.
    fn roomy(mut self) -> Self {
        let usual = Config::default().max_table_requests();
        let most = self.faults.stream.most_shards(self.shards);
        let requests = match most.is_none_or(|most| most > usual / 2) {
            true => 4_096,
            false => usual,
        };
        self.configure(|config| config.with_max_table_requests(requests));
        self
    }

    /// In some worlds, records come over narrow lines.
    fn narrowed(mut self) -> Self {
        let most = self.faults.stream.most_shards(self.shards);
        let shards = u64::from(most.unwrap_or(self.shards.saturating_mul(2)));
        let traffic = Traffic {
            before: self.load.before.into(),
            burst: self.load.burst.into(),
            every_us: self.load.every_us,
            bytes: self.load.bytes.into(),
            aggregates: &self.faults.aggregates,
            length_us: self.fault_us,
            answers: shards.min(self.most(|config| config.max_reads()).into()),
            patience_us: self.least(|config| config.stream_timeout().0),
        };
        self.faults.line = LineFaults::draw(Draws::new(self.seed), traffic);
        self
    }

    /// Now and then, no worker takes more leases than its share would be if all lived, or a few more.
    fn limited(mut self) -> Self {
        let draws = Draws::new(self.seed);
        // Where leases are assigned by rank, nobody may take less than its turns. In a world whose table or stream is lost for good workers stop for good, and
        // those that go on may have all they are allowed.
        let counts = self.config.policies().assign == Assign::Count && self.faults.permanent_loss.is_none();
        let most = self.faults.stream.most_shards(self.shards);
        let share = most.map(|most| most.div_ceil(self.workers));
        let max_leases = match share {
            Some(share) if counts && draws.below("max-leases", 0, 6) == 0 => {
                share + draws.below("max-leases", 1, 3) as u32
            }
            _ => 0,
        };
        self.configure(|config| config.with_max_leases(max_leases));
        self
    }

    /// The same world, and nothing goes wrong in it.
    pub fn without_faults(mut self) -> Self {
        self.faults = Faults::default();
        self
    }

    /// The configuration in one line.
    pub fn summary(&self) -> String {
        let streams = match self.streams {
            1 => String::new(),
            streams => format!("{streams} streams, "),
        };
        format!(
            "{} workers, {streams}{} shards, {} s of faults, lease {}, renew {}, scan {}, start {:?}",
            self.workers,
            self.shards,
            self.fault_us / 1_000_000,
            self.config.lease_duration(),
            self.config.renew_interval(),
            self.config.scan_interval(),
            self.config.initial_position()
        )
    }
}

/// What is the same in every world whose workers ask for leases, and in every one whose workers do not. Where no worker is of KCL 3.0 to
/// 3.4, ours would look for its tables once in every life, and find nothing. Where a leader assigns leases, `led` says how often to look for them.
pub(crate) fn named(asks: bool) -> Config {
    let config = Config::default().with_table("app").with_stream("orders");
    let fleet = config.fleet().clone().with_discovery_interval(Span::ZERO);
    let config = config.with_fleet_tables(false).with_fleet(fleet);
    let config = config.with_policies(policies(Format::Kcl, asks));
    match asks {
        true => config,
        false => config.with_bootstrap_delay(Span::from_secs(3)),
    }
}

/// Whether the workers of a world ask for leases.
fn asks(draws: Draws) -> bool {
    draws.coin("asks", 0)
}

/// What follows from a format, where workers ask or do not.
pub(crate) fn policies(format: Format, asks: bool) -> Policies {
    let mut policies = format.codec().policies();
    if policies.steal == Steal::Ask && !asks {
        policies.steal = Steal::Take;
    }
    policies
}

/// The configuration of a fleet.
fn config(draws: Draws) -> Config {
    let initial_position = match draws.below("initial", 0, 4) {
        0 => InitialPosition::Latest,
        1 => timestamp(draws),
        _ => InitialPosition::TrimHorizon,
    };
    let named = named(asks(draws)).with_initial_position(initial_position);
    if draws.below("shrunk", 0, 8) == 0 {
        let lease_us = named.lease_duration().0;
        return named.with_cleanup_delay(cleanup(draws, lease_us));
    }
    let lease_duration = Span(draws.magnitude("lease", 0, 1_000_000, 10_000_000));
    let clock_rate_error_ppm = [0, 1_000, 10_000, 50_000][draws.below("rate-error", 0, 4) as usize];
    let promised = named.with_lease_duration(lease_duration).with_clock_rate_error_ppm(clock_rate_error_ppm);
    tuned(draws, promised)
}

/// A time in the life of the stream before the application.
fn timestamp(draws: Draws) -> InitialPosition {
    let age_ms = draws.between("initial", 1, 0, STREAM_AGE_MS as u64) as i64;
    InitialPosition::AtTimestamp(Wall(EPOCH_MS - age_ms))
}

/// What a fleet is upgraded to: all that may differ within a fleet is drawn anew.
fn upgraded(draws: Draws, config: &Config) -> Option<Config> {
    let anew = Draws::new(draws.roll("upgraded", 0).bits());
    let config = match config.initial_position() {
        // Rows hold the time that the first workers were told.
        InitialPosition::AtTimestamp(_) if anew.coin("initial", 2) => {
            config.clone().with_initial_position(timestamp(anew))
        }
        _ => config.clone(),
    };
    UpgradeFaults::happens(draws).then(|| tuned(anew, config))
}

/// Draws what each worker may choose for itself.
fn tuned(draws: Draws, promised: Config) -> Config {
    let ms = |name: &str, low: u64, high: u64| {
        Span(draws.magnitude(name, 0, low.max(1) * 1_000, high.max(1) * 1_000))
    };
    let (lease_duration, hold) = (promised.lease_duration(), promised.hold());
    let share =
        |name: &str, low: u64, high: u64, of: Span| Span(draws.between(name, 0, of.0 / low, of.0 / high));
    let scan_interval = share("scan", 4, 1, lease_duration.times(2));
    let promised = match promised.policies().steal {
        Steal::Ask => promised
            .with_quick_scan_interval(share("quick-scan", 10, 1, scan_interval))
            .with_hand_over_timeout(share("hand-over", 2, 1, lease_duration.times(3))),
        _ => promised,
    };
    shared(draws, promised)
        .with_renew_interval(share("renew", 10, 3, hold))
        .with_scan_interval(scan_interval)
        .with_scan_page_limit(match draws.below("page", 0, 3) {
            0 => 0,
            1 => draws.between("page", 1, 1, 5) as u32,
            _ => draws.magnitude("page", 2, 1, 100) as u32,
        })
        .with_table_timeout(share("table-timeout", 10, 3, hold))
        .with_stream_timeout(ms("stream-timeout", 200, 5_000))
        .with_retry_min(ms("retry-min", 5, 100))
        .with_retry_max(share("retry-max", 8, 4, lease_duration))
        .with_checkpoint_interval(Span(draws.between("checkpoint", 0, 0, lease_duration.0)))
        .with_max_steals(draws.between("steals", 0, 1, 4) as u32)
        .with_steal_cooldown(draws.below("settle", 0, 8) != 0)
        .with_unique_names(draws.below("unique-names", 0, 4) == 0)
        .with_audit_confidence(draws.between("audit", 0, 1, 3) as u32)
        .with_cleanup_delay(cleanup(draws, lease_duration.0))
        .with_bootstrap_delay(Span(draws.between("bootstrap", 0, 0, 3_000_000)))
        .with_max_creates(draws.magnitude("creates", 0, 1, 16) as u32)
        .with_shutdown_timeout(ms("shutdown", 500, 30_000))
        .with_flush_timeout(share("flush", 4, 1, lease_duration))
        .with_handler_backoff(ms("backoff", 10, 500))
        .with_failure_attempts(draws.between("attempts", 0, 0, 4) as u32)
        .with_failure_action(match draws.coin("attempts", 1) {
            true => FailureAction::SetAside,
            false => FailureAction::Stop,
        })
        .with_stall_after(ms("stall", 500, 30_000))
        .with_handler_timeout(match draws.coin("handler-timeout", 0) {
            // No good handler of these worlds takes so long.
            true => Span(draws.magnitude("handler-timeout", 1, 500_000, lease_duration.times(2).0)),
            false => Span::ZERO,
        })
        .with_give_up_after(match draws.below("give-up", 0, 8) {
            0 => Span::ZERO,
            _ => Span(draws.between("give-up", 1, lease_duration.0 / 2, lease_duration.0 * 2)),
        })
        .with_reader(
            ReaderConfig::default()
                .with_max_records(draws.magnitude("records", 0, 1, 1_000) as u32)
                .with_min_interval(Span::from_millis(draws.between("read", 0, 200, 500)))
                .with_idle_interval(Span::from_millis(draws.between("idle", 0, 200, 2_000)))
                .with_bytes_per_second(draws.magnitude("bytes", 0, 50_000, 2_000_000))
                .with_buffer_bytes(draws.magnitude("buffer", 0, 10_000, 8 << 20))
                .with_buffer_batches(draws.between("batches", 0, 1, 4) as u32)
                .with_kept_bytes(draws.magnitude("kept", 0, 1_000, 8 << 20))
                .with_kept_batches(draws.between("kept", 1, 1, 8) as u32),
        )
}

/// In a quarter of the worlds, the shards of a worker must share little memory and few reads.
fn shared(draws: Draws, promised: Config) -> Config {
    if draws.below("shared", 0, 4) != 0 {
        return promised;
    }
    let least = 2 << 20;
    let memory = match draws.coin("shared", 1) {
        true => least,
        false => draws.magnitude("shared", 2, least, 64 << 20),
    };
    promised.with_memory_budget(memory).with_max_reads(draws.magnitude("shared", 3, 4, 50) as u32)
}

/// No sooner than any configuration that is drawn allows: workers with different ones are in one fleet.
fn cleanup(draws: Draws, lease_us: u64) -> Span {
    let least = lease_us.saturating_mul(7);
    match draws.below("cleanup", 0, 4) {
        _ if churns(draws) => Span(draws.magnitude("cleanup", 1, least, least.saturating_mul(2))),
        0 => Span::ZERO,
        _ => Span(draws.magnitude("cleanup", 1, least, least.saturating_mul(4))),
    }
}

#[cfg(test)]
mod tests;
