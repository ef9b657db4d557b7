use super::*;
use crate::oracles::Property;
use crate::run::{Cancel, Options, run_plan, run_seeds};
use crate::scenario::Scenario;
use crate::shrink::shrink;
use crate::start::{GivenRow, ShardState, set_checkpoint};
use crate::world::Ending;
use leasehold_engine::format::LeaseFormat as _;
use leasehold_engine::policy::Finished;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange, Shard};
use leasehold_engine::table::{Action, AttributeValue, Item};

const TRIM: InitialPosition = InitialPosition::TrimHorizon;
const HALF: u128 = 1 << 127;

fn id(n: u64) -> String {
    format!("shardId-{n:012}")
}

/// The numbers of shard n begin at 1000 n; a closed shard has a thousand numbers.
fn shard(n: u64, parents: &[u64], closed: bool, range: (u128, u128)) -> Shard {
    let mut named = parents.iter().map(|parent| id(*parent).into());
    Shard {
        id: id(n).into(),
        parent: named.next(),
        adjacent_parent: named.next(),
        range: HashRange { start: HashKey(range.0), end: HashKey(range.1) },
        starting: (1_000 * n).into(),
        ending: closed.then(|| (1_000 * n + 999).into()),
    }
}

/// Shard 700000 was trimmed. Its children 800001 and 800002 were merged into 900000, and 900000 was split.
fn family() -> Vec<Shard> {
    vec![
        shard(900_002, &[900_000], false, (HALF, u128::MAX)),
        shard(900_001, &[900_000], false, (0, HALF - 1)),
        shard(900_000, &[800_001, 800_002], true, (0, u128::MAX)),
        shard(800_002, &[700_000], true, (HALF, u128::MAX)),
        shard(800_001, &[700_000], true, (0, HALF - 1)),
    ]
}

fn lease(n: u64, owner: Option<&str>, checkpoint: Checkpoint, parents: &[u64]) -> Item {
    lease_of(Format::Kcl, n, owner, checkpoint, parents)
}

fn lease_of(format: Format, n: u64, owner: Option<&str>, checkpoint: Checkpoint, parents: &[u64]) -> Item {
    let mut row = LeaseRow::new(id(n).into(), checkpoint);
    row.owner = owner.map(Into::into);
    row.counter = 1_000;
    row.parents = parents.iter().map(|parent| id(*parent).into()).collect();
    match format.encode(&Change::Create(Box::new(row))).action {
        Action::Put(item) => item,
        other => panic!("a new row is put: {other:?}"),
    }
}

fn at(n: u64, number: u64) -> Checkpoint {
    Checkpoint::At(Position::of((1_000 * n + number).into()))
}

fn text(pairs: &[(&'static str, &str)]) -> Item {
    let pair =
        |(name, value): &(&'static str, &str)| ((*name).into(), AttributeValue::s((*value).to_owned()));
    pairs.iter().map(pair).collect()
}

/// Two owners in the middle of the youngest shards, and the rows of other shards.
fn table() -> Vec<Item> {
    vec![
        lease(900_000, None, Checkpoint::ShardEnd, &[800_001, 800_002]),
        lease(900_001, Some("w1"), at(900_001, 70), &[900_000]),
        lease(900_002, Some("w2"), at(900_002, 7), &[900_000]),
        text(&[("leaseKey", "w1"), ("entityType", "WORKER_METRIC_STATS")]),
        text(&[("leaseKey", "what"), ("leaseCounter", "many")]),
    ]
}

fn given(items: Vec<Item>) -> Given {
    given_of(Format::Kcl, items)
}

fn given_of(format: Format, items: Vec<Item>) -> Given {
    let start = Start::of(format, &family(), items).unwrap_or_else(|error| panic!("{error:?}"));
    Given {
        start: Arc::new(start),
        format,
        from: InitialPosition::TrimHorizon,
        flags: " --shards s --leases l".to_owned(),
    }
}

/// The violations of this many worlds with this table at the beginning.
fn violations(items: Vec<Item>, worlds: u64) -> Vec<(Property, String)> {
    violations_of(given(items), worlds)
}

fn violations_of(given: Given, worlds: u64) -> Vec<(Property, String)> {
    let options = Options { formats: vec![given.format], given: Some(given), ..Options::default() };
    let summary = run_seeds(0..worlds, 1, &options, &|_| {});
    let found = summary.violations.into_iter();
    found
        .map(|violation| (violation.property, format!("{}: {}", violation.scenario, violation.summary)))
        .collect()
}

#[test]
fn shards_are_numbered_densely_and_rows_renamed() {
    let start = given(table()).start;
    let names: Vec<&str> = start.shards.iter().map(|shard| &*shard.name).collect();
    assert_eq!(names, [700_000, 800_001, 800_002, 900_000, 900_001, 900_002].map(id));
    let parents: Vec<&[u32]> = start.shards.iter().map(|shard| &*shard.parents).collect();
    assert_eq!(parents, [&[][..], &[0], &[0], &[1, 2], &[3], &[3]]);
    assert_eq!(start.shards[0].state, ShardState::Trimmed);
    assert_eq!(start.shards[0].range, HashRange::ALL);
    let keys: Vec<&str> = start.rows.iter().map(|row| row.key(Format::Kcl)).collect();
    assert_eq!(keys, [&*id(3), &id(4), &id(5), "w1", "what"]);
    let read = Format::Kcl.decode(&start.rows[0].item);
    assert_eq!(read.lease().map(|row| row.parents.clone()), Some(vec![id(1).into(), id(2).into()]));
    let through: Vec<Option<u32>> = start.rows.iter().map(|row| row.through).collect();
    assert_eq!(through, [None, Some(500), Some(500), None, None]);
    assert_eq!(start.passed(Format::Kcl, TRIM), [true, true, true, false, false, false]);
}

#[test]
fn a_sound_table_comes_right_in_every_world() {
    assert_eq!(violations(table(), 20), []);
}

/// The numbers of shards are close to their new numbers, so a careless renaming would rename twice.
#[test]
fn new_names_are_not_renamed_again() {
    let listing = [shard(1, &[], false, (0, HALF - 1)), shard(2, &[], false, (HALF, u128::MAX))];
    let rows = vec![lease(1, Some("w1"), at(1, 7), &[]), lease(2, Some("shardId"), at(2, 7), &[])];
    let start = Start::of(Format::Kcl, &listing, rows).unwrap_or_else(|error| panic!("{error:?}"));
    let keys: Vec<&str> = start.rows.iter().map(|row| row.key(Format::Kcl)).collect();
    assert_eq!(keys, [id(0), id(1)]);
}

/// The same table in each format: each codec knows the names to change and the place of checkpoints.
#[test]
fn worlds_begin_with_tables_of_every_format() {
    for format in Format::ALL {
        let lease = |n, owner, checkpoint, parents| lease_of(format, n, owner, checkpoint, parents);
        let mut rows = vec![
            lease(900_000, None, Checkpoint::ShardEnd, &[800_001, 800_002]),
            lease(900_001, Some("7"), at(900_001, 70), &[900_000]),
            lease(900_002, Some("8"), at(900_002, 7), &[900_000]),
        ];
        if format.policies().finished != Finished::WhenRead {
            rows.extend([800_001, 800_002].map(|n| lease(n, None, Checkpoint::ShardEnd, &[700_000])));
        }
        let given = given_of(format, rows.clone());
        let through: Vec<Option<u32>> = given.start.rows.iter().map(|row| row.through).collect();
        assert_eq!(through[..3], [None, Some(500), Some(500)], "{format}");
        let said = |row: &GivenRow| format.decode(&row.item).lease().map(|row| row.checkpoint);
        assert_eq!(said(&given.start.rows[1]), Some(Checkpoint::At(Position::of(0.into()))), "{format}");
        assert_eq!(violations_of(given, 10), [], "{format}");
        // Removes the row of an open shard.
        rows.remove(2);
        assert_eq!(violations_of(given_of(format, rows), 10), [], "{format}");
    }
}

#[test]
fn another_checkpoint_is_all_that_changes_of_an_item() {
    for format in Format::ALL {
        let mut item = lease_of(format, 5, Some("7"), at(5, 70), &[3, 4]);
        item.insert("theirs".into(), AttributeValue::s("kept"));
        let mut dated = format.decode(&item).lease().cloned().expect("a lease");
        dated.began = Some(Wall(7));
        if let Action::Put(dated) = format.encode(&Change::Create(Box::new(dated))).action {
            item.extend(dated);
        }
        let row = format.decode(&item).lease().cloned().expect("a lease");
        for checkpoint in [at(5, 71), Checkpoint::ShardEnd, Checkpoint::TrimHorizon, at(5, 70)] {
            let now = format.decode(&item).lease().cloned().expect("a lease");
            set_checkpoint(format, &mut item, &now, checkpoint);
            let expected = LeaseRow { checkpoint, began: None, ..row.clone() };
            assert_eq!(format.decode(&item).lease(), Some(&expected), "{format}");
            assert_eq!(item["theirs"], AttributeValue::s("kept"));
        }
    }
}

#[test]
fn a_table_with_a_hole_comes_right() {
    let mut holed = table();
    holed.remove(2);
    assert_eq!(violations(holed, 15), []);
    assert_eq!(violations(Vec::new(), 5), [], "an empty table is all hole");
}

#[test]
fn a_lease_of_a_trimmed_shard_ends_and_its_children_go_on() {
    let late = vec![
        lease(700_000, Some("w1"), at(700_000, 70), &[]),
        lease(600_000, None, Checkpoint::ShardEnd, &[]),
        lease(500_000, Some("w1"), Checkpoint::TrimHorizon, &[]),
    ];
    assert_eq!(violations(late, 20), []);
}

#[test]
fn a_row_that_cannot_be_read_is_what_keeps_a_shard_uncovered() {
    let mut broken = table();
    broken[2] = text(&[("leaseKey", &id(900_002)), ("leaseCounter", "many")]);
    // One world is enough: the world runs until all hope is gone.
    let found = violations(broken, 1);
    assert_eq!(found.len(), 1, "{found:?}");
    for (property, sentence) in found {
        // The child of a merge with the sound neighbour has a lease, and waits for ever.
        assert!(matches!(property, Property::HashSpaceCovered | Property::LeasesOwned), "{property:?}");
        assert!(sentence.contains("since the row of shard 5 cannot be read: leaseCounter"), "{sentence}");
        assert!(sentence.ends_with("; shard 5 is shardId-000000900002"), "{sentence}");
        assert!(sentence.contains(" --shards s --leases l "), "{sentence}");
    }
}

#[test]
fn a_checkpoint_of_another_stream_is_told() {
    let mut foreign = table();
    foreign[2] = lease(900_002, Some("w2"), at(1, 7), &[900_000]);
    let found = violations(foreign, 1);
    let sentence = "was set to a position that no record of it has";
    assert!(
        found
            .iter()
            .any(|(property, said)| *property == Property::EveryRecordDelivered && said.contains(sentence)),
        "{found:?}"
    );
}

#[test]
fn a_fleet_that_is_upgraded_agrees_on_where_to_start() {
    let upgraded = |from| {
        let given = Given { from, ..given(table()) };
        let plans = (0..100).map(move |seed| given.plan(seed));
        plans.filter_map(|plan| Some((plan.upgraded?, plan.config)))
    };
    let mut seen = 0;
    for from in [TRIM, InitialPosition::Latest, InitialPosition::AtTimestamp(Wall(0))] {
        for (upgraded, config) in upgraded(from) {
            assert_eq!(config.disagreement(&upgraded), None);
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn other_positions_to_start_from_come_right_too() {
    for from in [InitialPosition::Latest, InitialPosition::AtTimestamp(Wall(0))] {
        let mut holed = table();
        holed.remove(2);
        let options = Options { given: Some(Given { from, ..given(holed) }), ..Options::default() };
        let summary = run_seeds(0..5, 1, &options, &|_| {});
        assert_eq!(
            summary.violations.iter().map(|found| &found.summary).collect::<Vec<_>>(),
            Vec::<&String>::new()
        );
    }
}

#[test]
fn a_world_is_a_scenario_with_its_beginning_and_shrinks_with_it() {
    let mut broken = table();
    broken[2] = text(&[("leaseKey", &id(900_002)), ("leaseCounter", "many")]);
    let plan = given(broken).plan(3);
    let shrunk = shrink(&plan, None, &Cancel::default()).expect("it fails");
    let scenario = &shrunk.scenario;
    assert_eq!(scenario.violates, Some(Property::HashSpaceCovered));
    assert_eq!(scenario.plan.start, plan.start);
    let again: Scenario = scenario.to_string().parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(&again, scenario);
    let found = run_plan(again.plan, &Options::default()).unwrap_or_else(|panic| panic!("{panic}"));
    assert_eq!(found.ending, Ending::Broken);
}

#[test]
fn an_impossible_beginning_is_refused_with_a_sentence() {
    let shards = |change: fn(&mut Vec<Shard>)| {
        let mut family = family();
        change(&mut family);
        match Start::of(Format::Kcl, &family, Vec::new()) {
            Err(Unusable::Shards(sentence)) => sentence,
            other => panic!("{other:?}"),
        }
    };
    assert!(shards(Vec::clear).contains("at least one shard"));
    assert!(shards(|family| drop(family.remove(0))).contains("left out"));
    let childless = |family: &mut Vec<Shard>| family.push(shard(950_000, &[], true, (0, 9)));
    assert!(shards(childless).contains("none of its children is listed"));
    let table = |item: Item| match Start::of(Format::Kcl, &family(), vec![item.clone(), item]) {
        Err(Unusable::Table(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    assert!(
        table(text(&[("shard_id", "a"), ("owner", "b")]))
            .contains("a lease table of kcl, with the key leaseKey, found the attributes owner, shard_id")
    );
    assert!(table(text(&[("leaseKey", "a")])).contains("found a second"));
    let long = "x".repeat(5_000);
    let refused = Start::of(Format::Kcl, &family(), vec![text(&[("leaseKey", &long)])]);
    assert!(matches!(refused, Err(Unusable::Table(sentence)) if sentence.contains("which DynamoDB refuses")));
}
