//! Drawing a world from one number.
//!
//! Each world is small in a way of its own: few workers or many, short leases, tiny pages, a handful of fault families.
//! The draws fix the run. A [`Plan`] can be printed and fully describes a world beforehand.

mod fan_out;
mod led;
mod mixed;
mod several;

use crate::draws::Draws;
use crate::faults::{Faults, LineFaults, Setting, Traffic, UpgradeFaults, churns, unique_names};
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

/// The age of the stream when the application first starts.
pub const STREAM_AGE_MS: i64 = 60_000;

/// The shards of a wide world: more than the 1,000 shards of a ListShards page.
const WIDE: u32 = 1_100;

/// The plan of a world, fixed before the world begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The seed of the plan.
    pub seed: u64,
    /// The format of the lease table.
    pub format: Format,
    /// Whether workers request leases from each other in KCL's tables. Otherwise workers steal, as beside workers of
    /// KCL 2.x.
    pub asks: bool,
    /// The number of workers.
    pub workers: u32,
    /// The workers' programs.
    pub fleet: Fleet,
    /// The number of streams read by each worker: 1, or several in KCL's multi-stream mode.
    pub streams: u32,
    /// The number of shards of all streams at the beginning.
    pub shards: u32,
    /// The length of the faults, in µs.
    pub fault_us: u64,
    /// The configuration of all workers.
    pub config: Config,
    /// The configuration after the fleet's upgrade, if any.
    pub upgraded: Option<Config>,
    /// The records written to the stream.
    pub load: Load,
    /// The faults.
    pub faults: Faults,
    /// The stream and the table at the beginning, if given. The shards are then the shards of this stream.
    pub start: Option<Arc<Start>>,
}

/// The records written to the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// Records written before the application's first start.
    pub before: u32,
    /// The time between two bursts of records, in µs.
    #[serde(rename = "every", with = "micros")]
    pub every_us: u64,
    /// The number of records in a burst.
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

    /// Draws the world of a seed in one of these formats.
    ///
    /// # Panics
    /// If `formats` is empty.
    pub fn draw_of(seed: u64, formats: &[Format]) -> Self {
        let draws = Draws::new(seed);
        let drawn = draws.below("format", 0, formats.len() as u64);
        Self::draw(seed).with_format(formats[drawn as usize])
    }

    /// The same world with a table of another format.
    pub fn with_format(self, format: Format) -> Self {
        let mut plan = match format {
            Format::Kcl => self,
            // Only KCL's table holds leases of several streams.
            _ => self.of_one_stream(),
        };
        plan.format = format;
        plan.spelled()
    }

    /// Applies the requirements of the format.
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

    /// More shards than a page of ListShards, and small values otherwise: a larger world would run far too long.
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

    /// Whether some worker runs another program than Leasehold.
    pub fn has_others(&self) -> bool {
        self.fleet.has_others(self.workers)
    }

    /// Changes every configuration of the plan.
    pub(crate) fn configure(&mut self, change: impl Fn(Config) -> Config) {
        for config in std::iter::once(&mut self.config).chain(&mut self.upgraded) {
            *config = change(std::mem::take(config));
        }
    }

    /// All configurations of the plan.
    pub fn configs(&self) -> impl Iterator<Item = &Config> {
        std::iter::once(&self.config).chain(&self.upgraded)
    }

    /// Sets the start position of unread shards for all workers: a fleet agrees on the position.
    pub(crate) fn start_at(&mut self, position: InitialPosition) {
        self.configure(|config| config.with_initial_position(position));
    }

    /// The facts of the plan on which draws of faults depend.
    fn setting(&self) -> Setting {
        Setting {
            workers: u64::from(self.workers),
            streams: u64::from(self.streams),
            shards: u64::from(self.shards),
            length_us: self.fault_us,
            lease_us: self.config.lease_duration().0,
            table_timeout_us: self.least(|config| config.table_timeout().0),
            rate_ppm: u64::from(self.config.clock_rate_error_ppm()),
        }
    }

    /// Whether memory for records, or the number of reads, may be too small for all shards of a worker at once.
    pub(crate) fn is_tight(&self) -> bool {
        let usual = Config::default();
        let most = self.faults.stream.most_shards(self.shards);
        self.least(Config::memory) < usual.memory()
            || self.least(Config::max_reads) < usual.max_reads()
            || most.is_none_or(|most| most > 50)
    }

    /// The greatest value of an option over all configurations.
    pub fn most<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.configs().skip(1).map(&of).fold(of(&self.config), T::max)
    }

    /// The least value of an option over all configurations.
    pub fn least<T: Ord>(&self, of: impl Fn(&Config) -> T) -> T {
        self.configs().skip(1).map(&of).fold(of(&self.config), T::min)
    }

    /// A world of another size and length, configured alike, with faults drawn anew.
    pub fn resized(mut self, workers: u32, shards: u32, fault_us: u64) -> Self {
        let shards = shards.next_multiple_of(self.streams);
        (self.workers, self.shards, self.fault_us) = (workers, shards, fault_us);
        self.faults = Faults::draw(Draws::new(self.seed), self.setting());
        fan_out::fanned(self.limited().forgetful().roomy().narrowed())
    }

    /// Where a worker may have many leases, no lease waits for its turn at the lease table: oracles expect the requests
    /// of each lease on time.
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

    /// In some worlds, records travel over narrow lines.
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

    /// In some worlds, a limit on leases per worker: the share with all workers alive, or a few leases more.
    fn limited(mut self) -> Self {
        let draws = Draws::new(self.seed);
        // Where leases are assigned by rank, a worker must take all its turns. In a world with a table or stream lost
        // for good, some workers stop for good, and the rest may reach their limit.
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

    /// The same world without faults.
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

/// The configuration shared by all worlds whose workers request leases, or by all worlds whose workers do not. In a
/// world without workers of KCL 3.0 to 3.4, our workers would look for their tables once in each life, in vain. Where a
/// leader assigns leases, `led` sets the interval of these looks.
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

/// Whether the workers of a world request leases.
fn asks(draws: Draws) -> bool {
    draws.coin("asks", 0)
}

/// The policies of a format, for workers with or without requests.
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

/// The configuration after a fleet's upgrade: options free to differ within a fleet are drawn anew.
fn upgraded(draws: Draws, config: &Config) -> Option<Config> {
    let anew = Draws::new(draws.roll("upgraded", 0).bits());
    let config = match config.initial_position() {
        // Rows hold the start time of the first workers.
        InitialPosition::AtTimestamp(_) if anew.coin("initial", 2) => {
            config.clone().with_initial_position(timestamp(anew))
        }
        _ => config.clone(),
    };
    UpgradeFaults::happens(draws).then(|| tuned(anew, config))
}

/// Draws the options free to each worker.
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
        .with_unique_names(unique_names(draws))
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
            // No good handler of these worlds takes longer.
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

/// In a quarter of the worlds, the shards of a worker share little memory and few reads.
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

/// No earlier than every drawn configuration allows: a fleet has workers of different configurations.
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
