//! Plans of rows, and plans carried out.

use super::*;
use crate::format::{Format, LeaseFormat};
use crate::position::{Checkpoint, Position};
use crate::row::Change;
use crate::shard::{HashRange, Shard};
use crate::table::Item;
use crate::testkit;
use crate::testkit::at;
use crate::time::{Span, Wall};
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOW: Wall = Wall(1_700_000_000_000);

fn key(n: u64) -> LeaseKey {
    format!("shardId-{n:012}").into()
}

fn row(n: u64, owner: Option<&str>, checkpoint: Checkpoint) -> LeaseRow {
    LeaseRow { owner: owner.map(Into::into), counter: 7, ..LeaseRow::new(key(n), checkpoint) }
}

/// Shard 0 was split into 1 and 2.
fn shards() -> Vec<Shard> {
    let shard = |n: u64, parent: Option<u64>, first: u64, last: Option<u64>| {
        testkit::shard(key(n).to_shard(), parent.map(|n| key(n).to_shard()), HashRange::ALL, first, last)
    };
    vec![shard(0, None, 10, Some(99)), shard(1, Some(0), 100, None), shard(2, Some(0), 100, None)]
}

fn view(rows: &[LeaseRow]) -> View {
    rows.iter().cloned().map(RowRead::Lease).collect()
}

fn split() -> View {
    let child = |n, owner| LeaseRow { parents: vec![key(0).to_shard()], ..row(n, owner, at(200 + n)) };
    view(&[row(0, None, Checkpoint::ShardEnd), child(1, Some("a:1f")), child(2, Some("b:2f"))])
}

#[test]
fn leases_are_told_apart_by_the_streams_that_their_keys_name() {
    let id: StreamId = "1:orders:2".parse().unwrap();
    let of = |key: LeaseKey| LeaseRow::new(key, Checkpoint::TrimHorizon);
    let mut both = view(&[of(key(0)), of(id.lease("a")), of("1:orders:3:a".into())]);
    for key in ["1:orders:2:b", "c"] {
        both.unreadable.insert(key.into(), "no counter".to_owned());
    }
    assert_eq!(both.streams(), [None, Some("1:orders:2"), Some("1:orders:3")].into());
    let kept = |stream: Option<&StreamId>| {
        let mut view = both.clone();
        view.keep_stream(stream);
        let keys = view.leases.keys().chain(view.unreadable.keys());
        keys.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(kept(Some(&id)), ["1:orders:2:a", "1:orders:2:b"]);
    assert_eq!(kept(None), [key(0).as_str(), "c"]);
}

fn said(plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        text.push_str(&format!("{step}: {}\n", step.follows.join("; ")));
    }
    for left in &plan.left {
        text.push_str(&format!("{}: {}\n", left.lease, left.why));
    }
    text
}

fn back(which: &Which, place: &Place) -> Plan {
    rewind(&split(), &shards(), which, place, &BTreeSet::new())
}

#[test]
fn a_worker_is_released_by_its_name_with_or_without_incarnation() {
    for name in ["a", "a:1f"] {
        let plan = release(&split(), &Which::Worker(name.into()), &BTreeSet::from(["a:1f".into()]));
        let text = said(&plan);
        assert!(text.contains("release shardId-000000000001: a:1f is alive and loses"), "{text}");
        assert_eq!(plan.steps.len(), 1, "{text}");
    }
    for name in ["", "1f", "a:"] {
        let plan = release(&split(), &Which::Worker(name.into()), &BTreeSet::new());
        assert_eq!(plan, Plan::default(), "{name:?}");
    }
}

#[test]
fn a_lease_that_cannot_be_released_is_told() {
    let plan = release(&split(), &Which::Shards(vec![key(0), key(9)]), &BTreeSet::new());
    let text = said(&plan);
    assert!(plan.steps.is_empty(), "{text}");
    assert!(text.contains("read to its end") && text.contains("found none"), "{text}");
}

#[test]
fn children_of_a_rewound_parent_stay_unless_rewound_too() {
    let alone = said(&back(&Which::Shards(vec![key(0)]), &Place::TrimHorizon));
    assert!(alone.contains("shardId-000000000001 and shardId-000000000002 keep the checkpoint"), "{alone}");
    let all = back(&Which::All, &Place::TrimHorizon);
    let order: Vec<_> = all.steps.iter().map(|step| step.lease.clone()).collect();
    assert_eq!(order, [key(0), key(1), key(2)], "ancestors first");
    let text = said(&all);
    assert!(text.contains("come after it, as the first time"), "{text}");
}

#[test]
fn a_lease_removed_after_its_end_comes_again_where_all_do() {
    let mut view = split();
    view.leases.remove(&key(0));
    let all = |place: &Place| rewind(&view, &shards(), &Which::All, place, &BTreeSet::new());
    let plan = all(&Place::TrimHorizon);
    let created = match &plan.steps[0].deed {
        Deed::Create(row) => row,
        other => panic!("expected a lease to be created first, found {other:?}"),
    };
    assert_eq!((&created.key, created.checkpoint), (&key(0), Checkpoint::TrimHorizon));
    assert_eq!(created.children, [key(1).to_shard(), key(2).to_shard()]);
    assert_eq!(plan.steps.len(), 3, "{}", said(&plan));
    assert!(said(&plan).contains("is created again"), "{}", said(&plan));
    // A time behind the shard, and a time within the shard.
    let late = all(&Place::After([(key(1), at(300))].into()));
    assert!(late.steps.iter().all(|step| step.lease == key(1)), "{}", said(&late));
    let within = all(&Place::After([(key(0), at(50)), (key(1), Checkpoint::TrimHorizon)].into()));
    assert_eq!(within.steps[0].lease, key(0), "{}", said(&within));
    assert_eq!(all(&Place::Latest).steps.len(), 2);
    // Workers create the leases of shards that no worker has begun yet.
    let empty = rewind(&View::default(), &shards(), &Which::All, &Place::TrimHorizon, &BTreeSet::new());
    assert_eq!(empty, Plan::default());
}

#[test]
fn an_impossible_rewind_is_refused_with_the_expectation() {
    let to = |n: u64, checkpoint| Place::After([(key(n), checkpoint)].into());
    let one = |n| Which::Shards(vec![key(n)]);
    for (which, place, part) in [
        (one(1), to(1, at(99)), "begins at 100, found 99"),
        (one(0), to(0, at(100)), "ends at 99, found 100"),
        (one(0), Place::Latest, "LATEST would read nothing"),
        (one(9), Place::Latest, "found none"),
        (one(1), to(2, at(300)), "no place was given"),
    ] {
        let plan = back(&which, &place);
        assert!(plan.steps.is_empty() && said(&plan).contains(part), "{}", said(&plan));
    }
    let forgotten = view(&[row(5, None, at(3))]);
    let plan = rewind(&forgotten, &shards(), &Which::All, &Place::TrimHorizon, &BTreeSet::new());
    assert!(said(&plan).contains("is not listed"), "{}", said(&plan));
}

#[test]
fn skipped_records_are_told() {
    let ahead = Place::After([(key(1), at(500))].into());
    let text = said(&back(&Which::Shards(vec![key(1)]), &ahead));
    assert!(text.contains("SKIPS the records after 201"), "{text}");
    let text = said(&back(&Which::Shards(vec![key(1)]), &Place::Latest));
    assert!(text.contains("SKIPS what is not processed"), "{text}");
}

#[test]
fn a_table_is_reported_by_what_changed_in_it() {
    let before = view(&[
        row(0, None, Checkpoint::ShardEnd),
        row(1, Some("a"), at(1)),
        row(2, Some("b"), at(1)),
        row(3, None, at(1)),
    ]);
    let mut after = before.clone();
    after.leases.get_mut(&key(1)).unwrap().counter += 1;
    let standing = |watched: u64| {
        let report = report(&before, &after, Span::from_secs(watched), Span::from_secs(10));
        let each: Vec<String> = report.leases.iter().map(|lease| lease.standing.to_string()).collect();
        (each.join(" "), report.alive())
    };
    let alive = BTreeSet::from([WorkerId::from("a")]);
    assert_eq!(standing(5), ("finished alive silent free".into(), alive.clone()));
    assert_eq!(standing(10), ("finished alive expired free".into(), alive));
    assert_eq!(standing(0).0, "finished silent silent free");
}

fn checkpoints() -> impl Strategy<Value = Checkpoint> {
    prop_oneof![
        (100u64..140).prop_map(at),
        Just(Checkpoint::TrimHorizon),
        Just(Checkpoint::Latest),
        Just(Checkpoint::ShardEnd),
    ]
}

fn read(kind: Format, item: Option<&Item>) -> Option<LeaseRow> {
    match kind.decode(item?) {
        RowRead::Lease(row) => Some(row),
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// In every format: the owner's next write is refused, and so is a second step made from the same row. The
    /// checkpoint is the requested checkpoint.
    #[test]
    fn a_rewind_fences_the_owner(
        kind in prop::sample::select(Format::ALL.to_vec()),
        from in checkpoints(),
        to in checkpoints().prop_filter("no step ends a shard", |to| !to.is_end()),
        owner in prop::option::of("[a-z]{1,4}"),
        moved in any::<bool>(),
    ) {
        let seen = row(1, owner.as_deref(), from);
        prop_assume!(!(from.is_end() && (owner.is_some() || to == Checkpoint::Latest)));
        let place = Place::After([(key(1), to)].into());
        let plan = rewind(&view(std::slice::from_ref(&seen)), &shards(), &Which::All, &place, &BTreeSet::new());
        if from == to && owner.is_none() {
            prop_assert!(plan.steps.is_empty());
            return Ok(());
        }
        let step = &plan.steps[0];
        let renewed = LeaseRow { counter: seen.counter + u64::from(moved), ..seen.clone() };
        let mut item = Some(testkit::item_of(&kind, &renewed));
        let now = read(kind, item.as_ref()).unwrap();
        let change = step.change(Some(&now), kind.policies().life, NOW).unwrap();
        kind.encode(&change).carry_out(&mut item).unwrap();
        let after = read(kind, item.as_ref()).unwrap();
        prop_assert_eq!((after.checkpoint, after.owner.clone()), (to, None));
        prop_assert!(step.is_done(&change, Some(&after)));
        prop_assert!(kind.encode(&change).carry_out(&mut item).is_err(), "made twice");
        if let Some(owner) = owner {
            let guard = crate::row::Guard {
                counter: now.counter,
                next: now.counter + 1,
                holder: owner.as_str().into(),
                next_owner: None,
            };
            let late = Change::Checkpoint { key: key(1), guard, position: Position::of(999.into()) };
            prop_assert!(kind.encode(&late).carry_out(&mut item).is_err(), "the owner overwrote it");
        }
    }

    /// A lease stays untouched if its owner changed or its shard ended since the read.
    #[test]
    fn a_row_changed_since_is_left_alone(other in prop::option::of("[a-z]{1,2}"), end in any::<bool>()) {
        let seen = row(1, Some("owner"), at(120));
        let plan = release(&view(std::slice::from_ref(&seen)), &Which::All, &BTreeSet::new());
        let mut now = seen.clone();
        now.counter += 3;
        if end {
            now.checkpoint = Checkpoint::ShardEnd;
        } else {
            now.owner = other.map(|owner| owner.as_str().into());
        }
        let refused = plan.steps[0].change(Some(&now), Format::Kcl.policies().life, NOW);
        prop_assert!(refused.is_err(), "{:?}", refused);
        prop_assert!(plan.steps[0].change(None, Format::Kcl.policies().life, NOW).is_err());
    }
}
