//! The time in which no worker reads the shards of a killed worker, and the cost of a deploy. Workers have the default
//! options, and there are no other faults.
//!
//! `cargo test -p leasehold-sim --test crashes -- --nocapture` prints the tables.

use leasehold_engine::config::Config;
use leasehold_engine::format::Format;
use leasehold_sim::draws::Draws;
use leasehold_sim::faults::{Faults, Interruption, InterruptionKind};
use leasehold_sim::oracles::fact::Owner;
use leasehold_sim::oracles::{Fact, LifeNo, ShardNo, Time};
use leasehold_sim::peers::{Fleet, Program};
use leasehold_sim::recording::Event;
use leasehold_sim::run::{Options, run_plan};
use leasehold_sim::swarm::{Load, Plan};
use leasehold_sim::world::Found;
use std::collections::{BTreeMap, BTreeSet};

const SECOND: u64 = 1_000_000;

/// The default lease duration.
const LEASE: u64 = 10 * SECOND;

/// The bound of a fleet of Leasehold alone, whatever starts meanwhile. A lease expires a lease duration after the first scan with the last renewal,
/// and the last renewal comes before the crash. Three seconds are left for scans, the take and the start of the handler.
const ALONE: u64 = LEASE + 3 * SECOND;

/// The bound where a worker of KCL leads.
///
/// * 60 s: for this long after its last report, KCL's leader takes a worker for live. So the leader may assign leases
///   to the dead worker again.
/// * 20 s: KCL's leader assigns every two lease durations. By the next round, leases of the dead worker have expired
///   again.
/// * 11 s: a worker of KCL looks for its leases once a lease duration, in an index that is 1 s behind. Workers of
///   Leasehold look more often.
/// * 4 s: the rounding of reports to seconds, requests, and the start of the handler.
const LED_BY_KCL: u64 = (60 + 20 + 11 + 4) * SECOND;

/// The bound where a leader of Leasehold crashes, and some worker of Leasehold is there within 5 s.
///
/// * 5 s: the restart, if no other worker of Leasehold lives.
/// * 20 s: the lock of the dead leader lasts for this long.
/// * 14 s: two scans, the first shows the end of the lock to the next leader, and the second is followed by
///   assignments. In a large fleet, scans are 7 s apart.
/// * 11 s: the new owner looks for its leases.
///
/// Without a leader, followers wait no longer: any worker may take a lease two lease durations after its expiry. The
/// sum is less.
const LED_BY_OURS: u64 = (5 + 20 + 14 + 11) * SECOND;

/// The bound where a leader of Leasehold crashes, and all other workers are of KCL.
///
/// * 80 s: workers of KCL read the lock in every second round, and the rounds are 20 s apart. The first read shows the
///   last version, and the second read shows that this version has stood still.
/// * 20 s: the new leader knows no lease in its first round, and finds expired leases in the second round. By then all
///   reports of the dead worker are too old.
/// * 11 s and 4 s: as above.
const LED_BY_KCL_ANEW: u64 = (80 + 20 + 11 + 4) * SECOND;

/// Beyond the end of each world.
const NEVER: Time = 3_600 * SECOND;

/// How long most worlds go on after the crash.
const SOON: Time = 36 * SECOND;

/// When the killed worker starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    After(u64),
    Never,
}

const RESTARTS: [Restart; 3] = [Restart::After(0), Restart::After(5), Restart::Never];

/// The programs that share the table with the workers of Leasehold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nobody,
    /// Every second worker is of KCL 3, and a worker of KCL leads.
    LeadingKcl,
    /// Every second worker is of KCL 3, and the worker of Leasehold that crashes leads.
    FollowingKcl,
}

/// A fleet with ten shards a worker, and at most 200.
#[derive(Clone, Copy, Debug)]
struct Setting {
    workers: u32,
    beside: Beside,
}

impl Setting {
    fn is_kcl(self, worker: u32) -> bool {
        self.beside != Beside::Nobody && worker % 2 == 1
    }

    fn shards(self) -> u32 {
        (self.workers * 10).min(200)
    }

    fn plan(self, seed: u64, until: Time, interruptions: Vec<Interruption>) -> Plan {
        let programs = match self.beside {
            Beside::Nobody => Vec::new(),
            _ => vec![Program::Leasehold, Program::Kcl3],
        };
        let fleet = Fleet { programs, owner_index: true, ..Fleet::default() };
        let mut faults = Faults::default();
        faults.process.interruptions = interruptions;
        Plan {
            seed,
            format: Format::Kcl,
            asks: true,
            workers: self.workers,
            fleet,
            streams: 1,
            shards: self.shards(),
            fault_us: until,
            config: Config::default().with_table("app").with_stream("orders"),
            upgraded: None,
            load: Load { burst: self.shards().div_ceil(10), ..Load::default() },
            faults,
            start: None,
        }
    }

    /// When the worker is killed. Leases are shared out by then. Worlds differ in the time from the last renewal to the crash.
    fn crash_at(self, seed: u64) -> Time {
        let settled = match self.beside {
            Beside::Nobody => 60,
            Beside::LeadingKcl => 120,
            Beside::FollowingKcl => 200,
        };
        settled * SECOND + seed * 1_300_000
    }

    /// Crashes long before. Where a worker of Leasehold is to lead, all workers of KCL are away until the lock of KCL's leader is over.
    fn beforehand(self) -> Vec<Interruption> {
        let theirs = (0..self.workers).filter(|worker| self.is_kcl(*worker));
        match self.beside {
            Beside::FollowingKcl => theirs.map(|worker| crash(10 * SECOND, worker, 140 * SECOND)).collect(),
            _ => Vec::new(),
        }
    }

    /// Which worker is killed.
    fn victim(self, seed: u64) -> u32 {
        let at = self.crash_at(seed);
        match self.beside {
            Beside::Nobody => 1,
            Beside::LeadingKcl => 0,
            Beside::FollowingKcl => leader(&run(self.plan(seed, at, self.beforehand())), at),
        }
    }

    fn bound(self, restart: Restart) -> u64 {
        match (self.beside, self.workers, restart) {
            (Beside::Nobody, ..) => ALONE,
            (Beside::LeadingKcl, ..) => LED_BY_KCL,
            (Beside::FollowingKcl, 2, Restart::Never) => LED_BY_KCL_ANEW,
            (Beside::FollowingKcl, ..) => LED_BY_OURS,
        }
    }

    /// The time from the crash of a worker to the moment from which all of its shards are read again, in µs. Most worlds need not last for longer
    /// than `SOON`.
    fn gap(self, seed: u64, victim: u32, restart: Restart) -> Time {
        let most = self.bound(restart) + LEASE;
        let gap = self.gap_within(SOON.min(most), seed, victim, restart);
        gap.or_else(|_| self.gap_within(most, seed, victim, restart))
            .unwrap_or_else(|unread| panic!("{self:?}, {restart:?}, world {seed}: nobody reads {unread:?}"))
    }

    fn gap_within(
        self, wait: Time, seed: u64, victim: u32, restart: Restart,
    ) -> Result<Time, BTreeSet<ShardNo>> {
        let at = self.crash_at(seed);
        let down_us = match restart {
            Restart::After(seconds) => seconds * SECOND,
            Restart::Never => NEVER,
        };
        let mut interruptions = self.beforehand();
        interruptions.push(crash(at, victim, down_us));
        let found = run(self.plan(seed, at + wait, interruptions));
        if self.beside != Beside::Nobody {
            let leads = leader(&found, at);
            let expected = match self.beside {
                Beside::FollowingKcl => leads == victim,
                _ => self.is_kcl(leads),
            };
            assert!(expected, "{self:?}, world {seed}: worker {leads} leads");
        }
        read_again(&found, victim, at)
    }

    /// The workers killed in this many worlds.
    fn victims(self, worlds: u64) -> Vec<u32> {
        (0..worlds).map(|seed| self.victim(seed)).collect()
    }

    /// The longest gap of worlds in which these workers are killed.
    fn longest(self, victims: &[u32], restart: Restart) -> Time {
        let worlds = (0..).zip(victims);
        let gaps = worlds.map(|(seed, victim)| self.gap(seed, *victim, restart));
        gaps.max().expect("at least one world")
    }
}

fn crash(at: Time, worker: u32, down_us: u64) -> Interruption {
    let kind = InterruptionKind::Crash { down_us, loops: 0 };
    Interruption { at, worker, kind }
}

/// Runs a world until its faults are over.
fn run(plan: Plan) -> Found {
    let options = Options { record: true, faults_only: true, ..Options::default() };
    let found = run_plan(plan, &options).unwrap_or_else(|panic| panic!("{panic}"));
    let ours: Vec<_> = found.violations.iter().filter(|found| !found.of_others).collect();
    assert!(ours.is_empty(), "{ours:?}");
    found
}

fn facts(found: &Found) -> impl Iterator<Item = (Time, &Fact)> {
    found.recording.iter().filter_map(|(at, event)| match event {
        Event::Fact(fact) => Some((at, fact)),
        _ => None,
    })
}

/// The leading worker at this time.
fn leader(found: &Found, at: Time) -> u32 {
    let mut workers: BTreeMap<LifeNo, u32> = BTreeMap::new();
    let mut leads = None;
    for (_, fact) in facts(found).take_while(|(time, _)| *time < at) {
        match *fact {
            Fact::Booted { life, worker } => drop(workers.insert(life, worker)),
            Fact::Leads { life } => leads = life,
            _ => {}
        }
    }
    workers[&leads.expect("a leader")]
}

/// The time until another process opens the last shard of the killed worker, or delivers its records.
///
/// # Errors
/// The shards without a reader.
fn read_again(found: &Found, victim: u32, at: Time) -> Result<Time, BTreeSet<ShardNo>> {
    let mut lives: BTreeMap<u32, LifeNo> = BTreeMap::new();
    let mut owners: BTreeMap<ShardNo, Option<Owner>> = BTreeMap::new();
    let mut facts = facts(found);
    for (_, fact) in facts.by_ref().take_while(|(time, _)| *time < at) {
        match *fact {
            Fact::Booted { life, worker } => drop(lives.insert(worker, life)),
            Fact::RowChanged { shard, after, .. } => {
                owners.insert(shard, after.and_then(|row| row.owner));
            }
            _ => {}
        }
    }
    let dead = lives[&victim];
    let theirs = owners.iter().filter(|(_, owner)| **owner == Some(Owner::Life(dead)));
    let mut unread: BTreeSet<ShardNo> = theirs.map(|(shard, _)| *shard).collect();
    assert!(!unread.is_empty(), "the killed worker had no lease");
    for (time, fact) in facts {
        if let Fact::OpenDone { life, shard, .. } | Fact::Delivered { life, shard, .. } = *fact
            && life != dead
        {
            unread.remove(&shard);
        }
        if unread.is_empty() {
            return Ok(time - at);
        }
    }
    Err(unread)
}

/// Prints a table of fleets and restarts, and returns the cells beyond their bounds.
fn table(title: &str, beside: Beside, sizes: &[(u32, u64)]) -> Vec<String> {
    let mut text = format!(
        "\n{title}, in ms:\n\n| workers | shards | at once | after 5 s | never |\n|---|---|---|---|---|"
    );
    let mut beyond = Vec::new();
    for &(workers, worlds) in sizes {
        let setting = Setting { workers, beside };
        text.push_str(&format!("\n| {workers} | {} ", setting.shards()));
        let victims = setting.victims(worlds);
        for restart in RESTARTS {
            let gap = setting.longest(&victims, restart);
            text.push_str(&format!("| {} ", gap / 1_000));
            if gap > setting.bound(restart) {
                beyond.push(format!("{setting:?}, {restart:?}: {gap} us"));
            }
        }
        text.push('|');
    }
    println!("{text}");
    beyond
}

#[test]
fn alone_a_crash_costs_a_lease_duration_and_a_little() {
    let beyond = table("Alone", Beside::Nobody, &[(2, 8), (6, 4)]);
    assert_eq!(beyond, Vec::<String>::new());
}

#[test]
fn alone_a_crash_costs_no_more_in_a_large_fleet() {
    let beyond = table("Alone, a large fleet", Beside::Nobody, &[(50, 2)]);
    assert_eq!(beyond, Vec::<String>::new());
}

#[test]
fn a_restart_at_any_time_makes_a_crash_no_longer() {
    let setting = Setting { workers: 6, beside: Beside::Nobody };
    let delays = [0, 1, 2, 4, 5, 6, 7, 9, 11];
    let victims = setting.victims(2);
    let gaps = delays.map(|seconds| setting.longest(&victims, Restart::After(seconds)));
    let cells: Vec<String> = gaps.iter().map(|us| (us / 1_000).to_string()).collect();
    println!(
        "\n6 workers alone, by the delay of the restart in s, in ms:\n\n| {} |\n{}|\n| {} |",
        delays.map(|seconds| seconds.to_string()).join(" | "),
        "|---".repeat(delays.len()),
        cells.join(" | "),
    );
    assert!(gaps.iter().all(|us| *us <= ALONE), "{gaps:?}");
}

#[test]
fn beside_leading_kcl_a_crash_costs_no_more_than_kcls_rules() {
    let title = "Beside KCL 3, which leads";
    let beyond = table(title, Beside::LeadingKcl, &[(2, 4), (6, 2), (50, 1)]);
    assert_eq!(beyond, Vec::<String>::new());
}

#[test]
fn beside_following_kcl_the_leaders_crash_costs_its_lock() {
    let title = "Beside KCL 3, the leader crashes";
    let beyond = table(title, Beside::FollowingKcl, &[(2, 2), (6, 1), (50, 1)]);
    assert_eq!(beyond, Vec::<String>::new());
}

/// When each record of each shard is put. The producer puts records at set times, each under a hash key of its own, and the shards divide all hash
/// keys evenly.
fn puts(plan: &Plan) -> Vec<Vec<Time>> {
    let mut puts = vec![Vec::new(); plan.shards as usize];
    let width = u128::MAX / u128::from(plan.shards);
    let moments = (plan.load.every_us..plan.fault_us).step_by(plan.load.every_us as usize);
    let times = moments.flat_map(|at| (0..plan.load.burst).map(move |_| at));
    for (n, at) in (1..).zip(times) {
        let mut roll = Draws::new(plan.seed).roll("put", n);
        let hash_key = u128::from(roll.bits()) << 64 | u128::from(roll.bits());
        let shard = (hash_key / width).min(u128::from(plan.shards) - 1);
        puts[shard as usize].push(at);
    }
    puts
}

/// What a deploy costs.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    repeated: u64,
    /// Of all shards together.
    moves: u32,
    /// The moves of the most moved shard.
    most_moves: u32,
    /// The longest time from the put of a record to its delivery, in µs.
    late_us: u64,
}

fn cost(plan: &Plan, found: &Found, from: Time) -> Cost {
    let puts = puts(plan);
    let mut owners: BTreeMap<ShardNo, Owner> = BTreeMap::new();
    let mut moves: BTreeMap<ShardNo, u32> = BTreeMap::new();
    let mut late_us = 0;
    for (at, fact) in facts(found) {
        match *fact {
            Fact::RowChanged { shard, after, .. } => {
                let owner = after.and_then(|row| row.owner);
                if let Some(owner) = owner
                    && owners.insert(shard, owner) != Some(owner)
                    && at >= from
                {
                    *moves.entry(shard).or_default() += 1;
                }
            }
            Fact::Delivered { shard, first, last, .. } if at >= from => {
                // Records are numbered from 1.
                for put in &puts[shard as usize][first as usize - 1..last as usize] {
                    late_us = late_us.max(at.checked_sub(*put).expect("a put before the delivery"));
                }
            }
            _ => {}
        }
    }
    Cost {
        repeated: found.duplicates,
        moves: moves.values().sum(),
        most_moves: moves.values().copied().max().unwrap_or(0),
        late_us,
    }
}

/// Six workers with 60 shards have their turns: each is told to stop, and starts again a while after that.
fn deploy(seed: u64, every: u64, gap: u64) -> Cost {
    let setting = Setting { workers: 6, beside: Beside::Nobody };
    let from = 60 * SECOND;
    let turns = (0..setting.workers).map(|worker| Interruption {
        at: from + u64::from(worker) * every * SECOND,
        worker,
        kind: InterruptionKind::Replace { gap_us: gap * SECOND },
    });
    let until = from + (u64::from(setting.workers) * every + 30) * SECOND;
    let mut plan = setting.plan(seed, until, turns.collect());
    plan.load.every_us = SECOND / 10;
    cost(&plan, &run(plan.clone()), from)
}

/// Each turn moves ten leases away from the worker and ten leases back: on average two moves for each shard.
#[test]
fn a_deploy_repeats_nothing_and_moves_two_leases_a_shard() {
    let mut text = "\nA deploy of 6 workers with 60 shards:\n\n\
        | a turn every | restart after | records repeated | moves | most moves of a shard | most lateness of a record |\n\
        |---|---|---|---|---|---|"
        .to_owned();
    let turns = [(15, 2), (30, 10), (60, 2)];
    let costs = turns.map(|(every, gap)| deploy(1, every, gap));
    for ((every, gap), cost) in turns.into_iter().zip(costs) {
        let (repeated, moves, most) = (cost.repeated, cost.moves, cost.most_moves);
        let late = cost.late_us / 1_000;
        text.push_str(&format!("\n| {every} s | {gap} s | {repeated} | {moves} | {most} | {late} ms |"));
    }
    println!("{text}");
    for cost in costs {
        assert!(cost.repeated == 0 && cost.moves <= 2 * 60, "{cost:?}");
    }
}
