//! This command's plan is the work of a worker: real engines look at the same tables.

use super::fleet::Fleet;
use super::rounds::course;
use super::survey::{Asked, survey};
use crate::input::heartbeat;
use leasehold_engine::config::{Config, InitialPosition};
use leasehold_engine::fleet::FleetRow;
use leasehold_engine::format::{Kcl, LeaseFormat as _};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Body, Boot, Input, Outcome};
use leasehold_engine::notice::{FleetRules, Notice};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::policy::Policies;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, HandsOver, LeaseRow, RowRead};
use leasehold_engine::shard::Shard;
use leasehold_engine::table::AttributeValue;
use leasehold_engine::testkit::{Carry, Driven, LeaseTable, Services, Stream, report, version};
use leasehold_engine::time::{Mono, Span, Wall};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// In seconds.
const NOW: i64 = 1_000_000;

/// A move of a lease: the way, the owner before, the next owner.
type Move = (&'static str, Option<String>, String);

/// A table and a stream for one engine. The engine's writes to assign or create leases are kept, and not carried out.
struct World {
    services: Services,
    moves: Vec<Move>,
    created: Vec<(LeaseKey, Checkpoint)>,
    rules: Option<(FleetRules, Option<String>)>,
    /// The workers that report and renew whenever the table is scanned, and the time.
    wall: i64,
}

impl Carry for World {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        if let Effect::Table(TableOp::Scan { after: None, .. }) = &command.effect {
            self.renew();
        }
        if let Effect::Table(TableOp::Write(change)) = &command.effect {
            let (how, from, to) = match change {
                Change::Take { from: None, to, .. } => ("take", None, to),
                Change::Take { from, to, .. } => ("steal", from.as_ref(), to),
                Change::Claim { from, by, .. } => ("ask", Some(from), by),
                Change::Assign { from, to, .. } => ("assign", from.as_ref(), to),
                Change::Offer { from, to, .. } => ("move", Some(from), to),
                change => {
                    if let Change::Create(row) = change {
                        self.created.push((row.key.clone(), row.checkpoint));
                    }
                    return Some(self.services.perform(&command));
                }
            };
            self.moves.push((how, from.map(ToString::to_string), to.to_string()));
            return None;
        }
        Some(self.services.perform(&command))
    }

    fn told(&mut self, notice: Notice) {
        if let Notice::Fleet { rules, leader, .. } = notice {
            self.rules = Some((rules, leader.map(|leader| leader.to_string())));
        }
    }
}

impl World {
    fn new(services: Services) -> Self {
        Self { services, moves: Vec::new(), created: Vec::new(), rules: None, wall: NOW }
    }

    /// All owners renew their leases, and reporting workers report again.
    fn renew(&mut self) {
        for row in self.services.table.rows.iter_mut().flatten().map(|(_, row)| row) {
            row.counter += u64::from(row.actual_owner().is_some());
        }
        let wall = self.wall;
        for item in self.services.table.fleet.values_mut() {
            if let Some(AttributeValue::N(at)) = item.get_mut("lut")
                && at.parse::<i64>().is_ok_and(|at| at > NOW - 60)
            {
                *at = wall.to_string().into();
            }
        }
    }

    /// A worker starts, and sleeps and wakes until `done` or for so many inputs.
    fn drive(&mut self, config: Config, most: usize, done: impl Fn(&Self) -> bool) {
        let boot = Boot {
            worker: "a".into(),
            incarnation: 1,
            seed: 7,
            // One look at a table does not show a hand-over without an end.
            config: config
                .with_table("app")
                .with_stream("orders")
                .with_hand_over_timeout(Span::from_secs(86_400)),
        };
        let mut driven = Driven::default();
        let input = Input { at: Mono(1_000_000), wall: Wall(NOW * 1_000), body: Body::Boot(Box::new(boot)) };
        driven.tell(input, self);
        while !done(self) && driven.inputs() < most {
            self.wall = NOW + (driven.wake_at().since(Mono(1_000_000)).as_millis() / 1_000) as i64;
            driven.sleep(self);
        }
    }
}

/// The rows of a table, as read by this command.
fn rows_of(table: &LeaseTable) -> Vec<RowRead> {
    let leases = table.rows.iter().flatten().map(|(_, row)| RowRead::Lease(row.clone()));
    leases.chain(table.fleet.values().map(|item| Kcl.decode(item))).collect()
}

/// The first round for a table with every reporting worker alive, and for a worker `a:1` without a lease.
fn said_of(rows: &[RowRead]) -> Vec<Move> {
    let mut heartbeats = vec![heartbeat("a:1", NOW)];
    heartbeats.extend(super::fleet::in_table(rows, Wall(NOW * 1_000)).into_iter().flatten());
    let fleet = Fleet::read(rows, &heartbeats, Wall(NOW * 1_000));
    let leases: Vec<&LeaseRow> = rows.iter().filter_map(RowRead::lease).collect();
    let first = course(&leases, &fleet, Policies::default(), true).rounds.into_iter().next();
    first.into_iter().flatten().map(|step| (step.how, step.from, step.to)).collect()
}

/// A stream after some splits and merges.
fn streams() -> impl Strategy<Value = Stream> {
    (1u32..4, prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..8)).prop_map(
        |(first, steps)| {
            let mut stream = Stream::of(first);
            // The ranges of neighbours in the list touch.
            let mut open: Vec<u32> = (0..first).collect();
            for (merge, at) in steps {
                let at = at.index(open.len());
                if merge && at + 1 < open.len() {
                    let child = stream.merge(open[at], open[at + 1]).expect("both are open");
                    open.splice(at..at + 2, [child]);
                } else {
                    let (low, high) = stream.split(open[at]).expect("it is open");
                    open.splice(at..=at, [low, high]);
                }
            }
            stream
        },
    )
}

/// The owner of each lease, and whether the owner's row offers hand-overs; and the worker promised the lease.
fn holdings() -> impl Strategy<Value = Vec<(Option<u32>, bool, Option<u32>)>> {
    let one = (
        prop::option::weighted(0.8, 0u32..4),
        prop::bool::weighted(0.8),
        prop::option::weighted(0.1, 0u32..4),
    );
    prop::collection::vec(one, 1..20)
}

fn table_of(holdings: &[(Option<u32>, bool, Option<u32>)]) -> Services {
    let mut services = Services::with_shards(holdings.len() as u32);
    let rows = services.table.rows.iter_mut().flatten().map(|(_, row)| row);
    for (row, (owner, hands_over, next)) in rows.zip(holdings) {
        row.counter = 1;
        let Some(owner) = owner else { continue };
        let name = |n: &u32| format!("w{n}").as_str().into();
        row.owner = Some(name(owner));
        if *hands_over {
            row.hands_over = HandsOver::Yes;
        }
        if let Some(next) = next.as_ref().filter(|next| *next != owner) {
            row.handing_over = row.owner.replace(name(next));
        }
    }
    services
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The first act of a worker without a lease: the number of leases taken, requested or stolen, and their owners.
    #[test]
    fn a_worker_does_what_is_said_of_it(holdings in holdings()) {
        let mut world = World::new(table_of(&holdings));
        world.renew();
        let mut expected = said_of(&rows_of(&world.services.table));
        expected.retain(|(_, _, to)| to == "a:1");
        world.drive(Config::default(), 60, |world| !world.moves.is_empty());
        if let [first @ ("ask", ..)] = &world.moves[..] {
            // A worker that has just started requests one lease first.
            prop_assert!(expected.contains(first), "{first:?} of {expected:?}");
        } else {
            world.moves.sort();
            expected.sort();
            prop_assert_eq!(world.moves, expected);
        }
    }

    /// Where a leader assigns leases, a leading worker places free leases as planned, and a member takes none.
    #[test]
    fn a_leader_does_what_is_said_of_it(holdings in holdings(), reporting in 1u32..4) {
        let mut services = table_of(&holdings);
        services.table.fleet.extend((0..reporting).map(|n| report(&format!("w{n}"), NOW)));
        services.table.fleet.extend([version("CLIENT_VERSION_3X")]);
        let mut world = World::new(services);
        world.renew();
        // The worker reports before it leads.
        let mut rows = rows_of(&world.services.table);
        rows.push(Kcl.decode(&report("a:1", NOW).1));
        let placed = |moves: Vec<Move>| {
            let placed = moves.into_iter().filter(|(how, ..)| matches!(*how, "assign" | "take"));
            let mut placed: Vec<_> = placed.map(|(_, from, to)| (from, to)).collect();
            placed.sort();
            placed
        };
        let expected = placed(said_of(&rows));
        world.drive(Config::default(), 4_000, |world| !world.moves.is_empty());
        prop_assert_eq!(placed(world.moves), expected);
    }

    /// The rules of assignment.
    #[test]
    fn a_worker_keeps_to_the_rule_that_is_said(ages in prop::collection::vec(0i64..120, 0..3), n in 0usize..5) {
        let mut services = Services::with_shards(2);
        for (worker, age) in ages.iter().enumerate() {
            services.table.fleet.extend([report(&format!("w{worker}"), NOW - age)]);
        }
        let versions = [
            "CLIENT_VERSION_UPGRADE_FROM_2X",
            "CLIENT_VERSION_2X",
            "CLIENT_VERSION_3X_WITH_ROLLBACK",
            "CLIENT_VERSION_3X",
        ];
        services.table.fleet.extend(versions.get(n).copied().map(version));
        let rows = rows_of(&services.table);
        let by = Fleet::read(&rows, &[], Wall(NOW * 1_000)).rule(Policies::default(), true).by;
        let mut world = World::new(services);
        world.drive(Config::default(), 30, |world| world.rules.is_some() || !world.moves.is_empty());
        let led = matches!(world.rules, Some((FleetRules::Led, _)));
        prop_assert_eq!(by, if led { "leader" } else { "count" });
    }

    /// An empty table is filled by a worker as it is said.
    #[test]
    fn a_worker_fills_an_empty_table_as_it_is_said(stream in streams(), latest: bool) {
        let from = if latest { InitialPosition::Latest } else { InitialPosition::TrimHorizon };
        let shards: Vec<Shard> = stream.shards.values().cloned().collect();
        let asked = Asked {
            stream: None,
            identity: None,
            from,
            policies: Policies::default(),
            heartbeats: &[],
            now: Wall(0),
        };
        let said = survey(&shards, &[], &asked).create.into_iter().map(|creation| creation.row);
        let said: Vec<_> = said.map(|row| (row.key, row.checkpoint)).collect();
        let mut services = Services::with_shards(0);
        (services.table.rows, services.stream) = (Some(BTreeMap::new()), stream);
        let mut world = World::new(services);
        world.drive(Config::default().with_initial_position(from), 60, |world| !world.created.is_empty());
        prop_assert_eq!(world.created, said);
    }
}

#[test]
fn rows_of_the_fleet_are_read_as_workers_read_them() {
    let RowRead::Foreign { says: Some(says), .. } = Kcl.decode(&report("w1", NOW).1) else {
        panic!("a report is a row of the fleet");
    };
    assert!(matches!(*says, FleetRow::Worker(worker) if worker.at == NOW));
    let RowRead::Foreign { says: Some(says), .. } = Kcl.decode(&version("CLIENT_VERSION_3X").1) else {
        panic!("a version is a row of the fleet");
    };
    assert!(matches!(*says, FleetRow::Version(_)));
}
