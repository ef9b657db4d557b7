//! This command's plan is the work of a worker: real engines look at the same tables.

use super::fleet::Fleet;
use super::rounds::course;
use super::survey::{Asked, survey};
use super::{Assignment, Survey};
use crate::input::Heartbeat;
use leasehold_engine::config::{Config, InitialPosition};
use leasehold_engine::fleet::FleetRow;
use leasehold_engine::format::{Format, Kcl, LeaseFormat as _};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Body, Boot, Input, Outcome};
use leasehold_engine::internals::sync;
use leasehold_engine::notice::{FleetRules, Notice};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::policy::{Finished, Policies};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, HandsOver, LeaseRow, RowRead};
use leasehold_engine::shard::Shard;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_engine::testkit::{Carry, Driven, LeaseTable, Services, Stream};
use leasehold_engine::time::{Mono, Span, Wall};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// In seconds.
const NOW: i64 = 1_000_000;

/// A table and a stream for one engine. The engine's writes to assign or create leases are kept, and not carried out.
struct World {
    services: Services,
    /// The moves of leases: the way, the owner before, the next owner.
    moves: Vec<(&'static str, Option<String>, String)>,
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
            match change {
                Change::Take { from, to, .. } => {
                    let how = if from.is_some() { "steal" } else { "take" };
                    self.moves.push((how, from.as_ref().map(ToString::to_string), to.to_string()));
                    return None;
                }
                Change::Claim { from, by, .. } => {
                    self.moves.push(("ask", Some(from.to_string()), by.to_string()));
                    return None;
                }
                Change::Assign { from, to, .. } => {
                    self.moves.push(("assign", from.as_ref().map(ToString::to_string), to.to_string()));
                    return None;
                }
                Change::Offer { from, to, .. } => {
                    self.moves.push(("move", Some(from.to_string()), to.to_string()));
                    return None;
                }
                Change::Create(row) => self.created.push((row.key.clone(), row.checkpoint)),
                _ => {}
            }
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
            config: config.with_table("app").with_stream("orders"),
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

/// The rounds for a table with every reporting worker alive, and for a worker `a:1` without a lease.
fn rounds_of(rows: &[RowRead], load: bool) -> Vec<Vec<Assignment>> {
    let mut heartbeats = vec![Heartbeat { worker: "a:1".into(), at: Wall(NOW * 1_000) }];
    heartbeats.extend(super::fleet::in_table(rows, Wall(NOW * 1_000)).into_iter().flatten());
    let fleet = Fleet::read(rows, &heartbeats, Wall(NOW * 1_000));
    let leases: Vec<&LeaseRow> = rows.iter().filter_map(RowRead::lease).collect();
    course(&leases, &fleet, Policies::default(), load).rounds
}

fn in_order(
    mut moves: Vec<(&'static str, Option<String>, String)>,
) -> Vec<(&'static str, Option<String>, String)> {
    moves.sort();
    moves
}

/// A worker's report.
fn report(id: &str, at: i64) -> (LeaseKey, Item) {
    let text = |name: &'static str, value: &str| (name.into(), AttributeValue::s(value));
    let item = Item::from([
        text("leaseKey", id),
        text("entityType", "WORKER_METRIC_STATS"),
        ("lut".into(), AttributeValue::n(at)),
        ("sts".into(), AttributeValue::M(BTreeMap::new())),
        ("opr".into(), AttributeValue::M(BTreeMap::new())),
    ]);
    (LeaseKey::from(id), item)
}

fn version(version: &str) -> (LeaseKey, Item) {
    let text = |name: &'static str, value: &str| (name.into(), AttributeValue::s(value));
    let item = Item::from([
        text("leaseKey", "Migration3.0"),
        text("entityType", "CLIENT_VERSION_MIGRATION"),
        text("cv", version),
    ]);
    (LeaseKey::from("Migration3.0"), item)
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
        let rounds = rounds_of(&rows_of(&world.services.table), true);
        let expected: Vec<_> = rounds
            .first()
            .into_iter()
            .flatten()
            .filter(|step| step.to == "a:1")
            .map(|step| (step.how, step.from.clone(), step.to.clone()))
            .collect();
        // One look at a table does not show a hand-over without an end.
        let config = Config::default().with_hand_over_timeout(Span::from_secs(86_400));
        world.drive(config, 60, |world| !world.moves.is_empty());
        if let [first @ ("ask", ..)] = &world.moves[..] {
            // A worker that has just started requests one lease first.
            prop_assert!(expected.contains(first), "{first:?} of {expected:?}");
        } else {
            prop_assert_eq!(in_order(world.moves), in_order(expected));
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
        let rounds = rounds_of(&rows, true);
        let placed = |how: &str| matches!(how, "assign" | "take");
        let expected: Vec<_> = rounds
            .first()
            .into_iter()
            .flatten()
            .filter(|step| placed(step.how))
            .map(|step| (step.from.clone(), step.to.clone()))
            .collect();
        // One look at a table does not show a hand-over without an end.
        let config = Config::default().with_hand_over_timeout(Span::from_secs(86_400));
        world.drive(config, 4_000, |world| !world.moves.is_empty());
        let moves = world.moves.iter().filter(|(how, ..)| placed(how));
        let mut placed: Vec<_> = moves.map(|(_, from, to)| (from.clone(), to.clone())).collect();
        let mut expected = expected;
        placed.sort();
        expected.sort();
        prop_assert_eq!(placed, expected);
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
        let said = survey(&shards, &[], &asked(from, Policies::default().finished));
        let mut services = Services::with_shards(0);
        (services.table.rows, services.stream) = (Some(BTreeMap::new()), stream);
        let mut world = World::new(services);
        world.drive(Config::default().with_initial_position(from), 60, |world| !world.created.is_empty());
        prop_assert_eq!(world.created, created(&said));
    }

    /// For any table and listing, the planned leases are those of the engine's shard sync, and no open shard begins at
    /// LATEST while an ancestor is unfinished.
    #[test]
    fn shard_sync_creates_what_is_said(
        stream in streams(),
        trimmed in 0usize..4,
        held in prop::collection::vec((0u8..3, 0u8..5), 40),
        from in prop::sample::select(vec![InitialPosition::TrimHorizon, InitialPosition::Latest, InitialPosition::AtTimestamp(Wall(1))]),
        finished in prop::sample::select(vec![Finished::WhenRead, Finished::WhenForgotten, Finished::Never]),
    ) {
        let all: Vec<Shard> = stream.shards.values().cloned().collect();
        let listed: Vec<Shard> = all.iter().enumerate().filter(|(n, shard)| *n >= trimmed || shard.is_open()).map(|(_, shard)| shard.clone()).collect();
        let rows: Vec<RowRead> = all.iter().zip(held).filter_map(|(shard, (there, kind))| row(shard, there, kind)).collect();
        let is_lease = |row: &&RowRead| row.lease().is_some();
        let empty = !rows.iter().any(|row| is_lease(&row));
        // Then the list's sequence numbers show the open shards; a worker asks the service.
        prop_assume!(!(empty && from == InitialPosition::AtTimestamp(Wall(1))));
        let known: BTreeMap<LeaseKey, Checkpoint> = rows
            .iter()
            .map(|row| (row.key().clone(), row.lease().map_or(Checkpoint::TrimHorizon, |lease| lease.checkpoint)))
            .collect();
        let occupied = rows.iter().filter(|row| !is_lease(row)).map(|row| row.key().clone()).collect();
        let said = survey(&listed, &rows, &asked(from, finished));
        let Ok(plan) = sync::missing(&known, &occupied, &listed, from, empty, finished) else {
            prop_assert!(said.create.is_empty());
            return Ok(());
        };
        let planned: Vec<_> = plan.create.into_iter().map(|planned| (planned.row.key, planned.row.checkpoint)).collect();
        prop_assert_eq!(created(&said), planned);
        if empty {
            return Ok(());
        }
        let parents: BTreeMap<LeaseKey, Vec<LeaseKey>> = listed
            .iter()
            .map(|shard| (shard.id.to_lease(), shard.parents().map(|parent| parent.to_lease()).collect()))
            .collect();
        let open = |key: &LeaseKey| listed.iter().any(|shard| shard.id.to_lease() == *key && shard.is_open());
        for (key, _) in created(&said).iter().filter(|(key, at)| *at == Checkpoint::Latest && open(key)) {
            let mut above = parents.get(key).cloned().unwrap_or_default();
            while let Some(parent) = above.pop() {
                let held = known.get(&parent);
                prop_assert!(held.is_none_or(|held| held.is_end()), "{key} begins at LATEST below {parent}");
                above.extend(parents.get(&parent).into_iter().flatten().cloned());
            }
        }
    }
}

fn asked(from: InitialPosition, finished: Finished) -> Asked<'static> {
    let format = match finished {
        Finished::WhenForgotten => Format::VmwareGoKcl,
        Finished::Never => Format::Kinsumer,
        _ => Format::Kcl,
    };
    Asked { stream: None, identity: None, from, policies: format.policies(), heartbeats: &[], now: Wall(0) }
}

fn created(survey: &Survey) -> Vec<(LeaseKey, Checkpoint)> {
    let rows = survey.create.iter().map(|creation| &creation.row);
    rows.map(|row| (row.key.clone(), row.checkpoint)).collect()
}

/// The row of a shard, if any.
fn row(shard: &Shard, there: u8, kind: u8) -> Option<RowRead> {
    let key = shard.id.to_lease();
    let checkpoint = match (there, kind) {
        (0, _) => return None,
        (_, 0) => Checkpoint::ShardEnd,
        (_, 1) => Checkpoint::TrimHorizon,
        (_, 2 | 3) => Checkpoint::Latest,
        _ => {
            return Some(RowRead::Unreadable { key, detail: "no counter".into() });
        }
    };
    Some(RowRead::Lease(LeaseRow::new(key, checkpoint)))
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
