//! Plans of tables and listings, scene by scene.

use super::*;
use crate::position::Position;
use crate::shard::{HashKey, HashRange};
use crate::sync::unread::unread;
use crate::time::Wall;
use std::collections::BTreeSet;

mod properties;

const TRIM: InitialPosition = InitialPosition::TrimHorizon;
const LATEST: InitialPosition = InitialPosition::Latest;
const AT: InitialPosition = InitialPosition::AtTimestamp(Wall(1));
const ALL_POSITIONS: [InitialPosition; 3] = [TRIM, LATEST, AT];

type Leases = BTreeMap<LeaseKey, Checkpoint>;

fn open(id: &str, parents: &[&str]) -> Shard {
    crate::testkit::shard(id, parents.iter().copied(), HashRange::ALL, 1, None)
}

fn closed(id: &str, parents: &[&str]) -> Shard {
    Shard { ending: Some(2.into()), ..open(id, parents) }
}

fn leases(ids: &[(&str, Checkpoint)]) -> Leases {
    ids.iter().map(|(id, checkpoint)| ((*id).into(), *checkpoint)).collect()
}

fn middle() -> Checkpoint {
    Checkpoint::At(Position::of(5.into()))
}

/// A plan for a table whose rows can all be read.
fn plan(
    leases: &Leases, shards: &[Shard], initial: InitialPosition, table_empty: bool,
) -> Result<Plan, BadListing> {
    super::plan(leases, &BTreeSet::new(), shards, initial, table_empty)
}

fn created(plan: &Plan) -> Vec<(String, Checkpoint)> {
    plan.create.iter().map(|lease| (lease.row.key.to_string(), lease.row.checkpoint)).collect()
}

fn planned_for(leases: &Leases, shards: &[Shard], initial: InitialPosition) -> Vec<(String, Checkpoint)> {
    created(&plan(leases, shards, initial, false).unwrap())
}

fn one(id: &str, checkpoint: Checkpoint) -> Vec<(String, Checkpoint)> {
    vec![(id.to_string(), checkpoint)]
}

/// The example in the documentation of KCL's own algorithm.
#[test]
fn the_reference_example() {
    let shards = [
        closed("00", &[]),
        closed("01", &[]),
        closed("02", &[]),
        closed("03", &[]),
        open("04", &[]),
        closed("05", &[]),
        closed("06", &["00", "01"]),
        closed("07", &["02", "03"]),
        open("08", &["06", "07"]),
        open("09", &["05"]),
        open("10", &["05"]),
    ];
    let leased = leases(&[("04", middle()), ("05", middle()), ("07", middle())]);
    let oldest = |start| vec![("00".to_string(), start), ("01".to_string(), start)];
    assert_eq!(planned_for(&leased, &shards, LATEST), one("06", Checkpoint::Latest));
    assert_eq!(planned_for(&leased, &shards, TRIM), oldest(Checkpoint::TrimHorizon));
    assert_eq!(planned_for(&leased, &shards, AT), oldest(Checkpoint::AtTimestamp));
}

#[test]
fn an_empty_table_gets_every_shard_of_the_filtered_listing() {
    let half = 1u128 << 127;
    let mut shards = [closed("a", &["old"]), open("b", &["older", "old"])];
    shards[0].range.end = HashKey(half - 1);
    shards[1].range.start = HashKey(half);
    shards[0].starting = 9.into();
    let plan_of = |shards: &[Shard]| plan(&Leases::new(), shards, AT, true);
    let plan = plan_of(&shards).unwrap();
    let start = Checkpoint::AtTimestamp;
    assert_eq!(created(&plan), [("b".to_string(), start), ("a".to_string(), start)]);
    assert_eq!(plan.create[0].row.parents, ["old".into(), "older".into()]);
    assert_eq!(plan.create[0].row.range, Some(shards[1].range));
    assert_eq!(plan.create[0].reason, "there are no leases yet, and the stream is read from AT_TIMESTAMP");
    assert!(matches!(plan_of(&shards[..1]), Err(BadListing::Gap { .. })));
    assert_eq!(plan_of(&[]), Err(BadListing::Empty));
}

/// The service counts both ends of a shard's time, and some servers ignore the filter.
#[test]
fn a_listing_of_two_moments_gives_the_leases_of_the_first() {
    let half = 1u128 << 127;
    let mut shards = [closed("a", &["gone"]), closed("b", &["a"]), open("c", &["a"]), open("d", &["b"])];
    for low in [1, 3] {
        shards[low].range.end = HashKey(half - 1);
    }
    shards[2].range.start = HashKey(half);
    let filled = |shards: &[Shard], initial| plan(&Leases::new(), shards, initial, true);
    for initial in [TRIM, AT] {
        let first = one("a", sentinel(initial));
        assert_eq!(created(&filled(&shards, initial).unwrap()), first);
        assert_eq!(created(&filled(&shards[..3], initial).unwrap()), first);
        let half = filled(&shards[1..2], initial);
        assert!(matches!(half, Err(BadListing::Gap { .. })), "{half:?}");
    }
    let open = ["c", "d"].map(|id| (id.to_owned(), Checkpoint::Latest));
    assert_eq!(created(&filled(&shards, LATEST).unwrap()), open);
}

#[test]
fn a_reason_claims_nothing_of_ancestors_that_have_a_lease() {
    let shards =
        [closed("a", &[]), closed("b", &["a"]), open("c", &["b"]), closed("d", &["b"]), open("e", &["d"])];
    let reasons = |held: &[(&str, Checkpoint)], initial| -> Vec<String> {
        let plan = plan(&leases(held), &shards, initial, false).unwrap();
        plan.create.into_iter().map(|lease| lease.reason).collect()
    };
    let begun = "b, which comes before it, is from before the application began: the nearest leases below b are still at LATEST \
                 or AT_TIMESTAMP";
    let held = [("a", Checkpoint::ShardEnd), ("c", Checkpoint::Latest)];
    assert_eq!(reasons(&held, LATEST), [format!("it is open and has no lease, and {begun}")]);
    assert_eq!(reasons(&held, AT), [format!("it is on the way to e, and {begun}")]);
    let beside = ("z", Checkpoint::ShardEnd);
    assert_eq!(
        reasons(&[beside, ("d", middle())], LATEST),
        ["it fills a hole: its parent b was read before, as leases of other shards below b show"]
    );
    assert_eq!(
        reasons(&[beside], LATEST),
        ["it is open, and neither it nor any listed ancestor has a lease"; 2]
    );
}

#[test]
fn a_reason_says_how_the_other_parent_of_a_merge_stands() {
    let merge = |parents: &[&str]| {
        [closed("o", &[]), closed("p", &[]), closed("q", &["o"]), open("m", parents), open("n", &["q"])]
    };
    let of_p = |held: &[(&str, Checkpoint)], parents: &[&str]| {
        let plan = plan(&leases(held), &merge(parents), LATEST, false).unwrap();
        let p = plan.create.into_iter().find(|lease| lease.row.key.as_str() == "p");
        p.map(|lease| lease.reason).unwrap_or_default()
    };
    let merged = |state: &str| format!("it was merged into m, whose other parent {state}");
    assert_eq!(of_p(&[("q", middle())], &["p", "q"]), merged("q has a lease"));
    assert_eq!(of_p(&[("n", middle())], &["p", "q"]), merged("q was read before"));
    assert_eq!(of_p(&[("o", middle())], &["p", "q"]), merged("q follows one that was or is being read"));
    assert_eq!(of_p(&[("z", middle())], &["p", "lost"]), merged("lost may still get a lease"));
}

#[test]
fn a_hole_below_an_ended_lease_is_filled_from_its_oldest_record() {
    let shards = [closed("a", &[]), closed("b", &["a"]), open("c", &["b"]), open("d", &["b"])];
    for initial in ALL_POSITIONS {
        let plan = plan(&leases(&[("a", Checkpoint::ShardEnd)]), &shards, initial, false).unwrap();
        assert_eq!(created(&plan), one("b", Checkpoint::TrimHorizon));
        assert_eq!(
            plan.create[0].reason,
            "it fills a hole: the lease of its parent a has ended, and neither this shard nor one below it has a lease"
        );
        assert_eq!(
            plan.findings,
            ["c", "d"].map(|id| Finding::Waits { shard: id.into(), behind: "b".into() })
        );
    }
}

#[test]
fn a_lost_row_below_makes_no_shard_be_read_again() {
    let shards = [closed("a", &[]), closed("b", &["a"]), open("c", &["b"]), open("d", &["b"])];
    for initial in ALL_POSITIONS {
        let plan = plan(&leases(&[("d", middle())]), &shards, initial, false).unwrap();
        assert_eq!(created(&plan), one("c", Checkpoint::TrimHorizon));
        assert_eq!(
            plan.create[0].reason,
            "it fills a hole: its parent b was read before, as leases of other shards below b show"
        );
    }
}

/// Found by simulation: one worker created leases at LATEST, and another worker took the missing leases for holes.
#[test]
fn leases_where_the_application_began_show_no_holes_beside_them() {
    let shards = [closed("a", &[]), closed("b", &["a"]), open("c", &["a"]), open("d", &["b"])];
    let plan = |checkpoint, initial| planned_for(&leases(&[("c", checkpoint)]), &shards, initial);
    assert_eq!(plan(Checkpoint::Latest, LATEST), one("d", Checkpoint::Latest));
    assert_eq!(plan(Checkpoint::AtTimestamp, AT), one("b", Checkpoint::AtTimestamp));
    for read in [middle(), Checkpoint::TrimHorizon, Checkpoint::ShardEnd] {
        for initial in ALL_POSITIONS {
            assert_eq!(plan(read, initial), one("b", Checkpoint::TrimHorizon));
        }
    }
}

/// One worker listed the shards before two splits, the other worker after the splits, and one write was lost.
#[test]
fn an_open_shard_beside_latest_waits_for_an_unfinished_ancestor() {
    let shards = [closed("a", &[]), closed("b", &["a"]), open("c", &["b"]), open("d", &["b"])];
    let plan = |above| {
        let leased = leases(&[("a", above), ("c", Checkpoint::Latest)]);
        plan(&leased, &shards, LATEST, false).unwrap()
    };
    let waiting = plan(Checkpoint::Latest);
    assert_eq!(created(&waiting), []);
    assert_eq!(waiting.findings, [Finding::Waits { shard: "d".into(), behind: "a".into() }]);
    // No worker brings the shard any more, and the records after the end of the first shard are wanted.
    assert_eq!(created(&plan(Checkpoint::ShardEnd)), one("d", Checkpoint::TrimHorizon));
}

#[test]
fn a_merge_waits_for_both_of_its_parents() {
    let shards = [closed("a", &[]), closed("b", &[]), open("c", &["a", "b"])];
    let half = leases(&[("a", Checkpoint::ShardEnd), ("b", middle())]);
    let ended = leases(&[("a", Checkpoint::ShardEnd), ("b", Checkpoint::ShardEnd)]);
    let missing = leases(&[("a", Checkpoint::ShardEnd)]);
    for initial in ALL_POSITIONS {
        let waiting = plan(&half, &shards, initial, false).unwrap();
        assert_eq!(created(&waiting), []);
        let [Finding::Waits { .. }] = &waiting.findings[..] else {
            panic!("{:?}", waiting.findings);
        };
        assert_eq!(waiting.findings[0].to_string(), "c waits until b has been processed");
        assert_eq!(planned_for(&ended, &shards, initial), one("c", Checkpoint::TrimHorizon));
        assert_eq!(planned_for(&missing, &shards, initial), one("b", sentinel(initial)));
    }
}

/// No stream merges a shard that was also split; a listing may say so.
#[test]
fn nothing_waits_for_what_is_never_read() {
    let shards = [closed("a", &[]), closed("b", &[]), open("c", &["a", "b"]), open("d", &["b"])];
    let leased = leases(&[("a", Checkpoint::ShardEnd), ("d", Checkpoint::Latest)]);
    for initial in ALL_POSITIONS {
        let plan = plan(&leased, &shards, initial, false).unwrap();
        assert_eq!(created(&plan), one("c", Checkpoint::TrimHorizon));
        assert_eq!(plan.findings, []);
    }
}

#[test]
fn a_trimmed_parent_counts_while_it_has_a_lease() {
    let shards = [open("b", &["a"])];
    for initial in ALL_POSITIONS {
        let ended = plan(&leases(&[("a", Checkpoint::ShardEnd)]), &shards, initial, false).unwrap();
        assert_eq!(created(&ended), one("b", Checkpoint::TrimHorizon));
        assert_eq!(ended.findings, []);
        let unfinished = plan(&leases(&[("a", middle())]), &shards, initial, false).unwrap();
        assert_eq!(created(&unfinished), []);
        assert_eq!(
            unfinished.findings,
            [
                Finding::Waits { shard: "b".into(), behind: "a".into() },
                Finding::TrimmedUnfinished { lease: "a".into() }
            ]
        );
        // A shard neither listed nor leased has no effect, unless another lease may bring the shard.
        assert_eq!(
            planned_for(&leases(&[("z", Checkpoint::ShardEnd)]), &shards, initial),
            one("b", sentinel(initial))
        );
        assert_eq!(planned_for(&leases(&[("z", middle())]), &shards, initial), []);
    }
}

#[test]
fn a_shard_of_one_key_gets_its_lease() {
    let mut single = open("a", &[]);
    single.range.end = HashKey(0);
    let plan = plan(&leases(&[("z", middle())]), &[single.clone()], LATEST, false).unwrap();
    assert_eq!(plan.create[0].row.range, Some(single.range));
}

#[test]
fn an_ended_lease_of_an_open_shard_is_reported() {
    let plan = plan(&leases(&[("a", Checkpoint::ShardEnd)]), &[open("a", &[])], TRIM, false).unwrap();
    assert_eq!(plan.findings, [Finding::EndedButOpen { shard: "a".into() }]);
}

/// Where every listed shard without a row counts as unread: its parent may be forgotten, and yet to come from an
/// unforgotten shard.
#[test]
fn an_unread_shard_waits_for_a_forgotten_parent_that_may_come() {
    let listing = [closed("13", &[]), open("33", &["13", "29"])];
    let found = |rows: &[(&str, Checkpoint)], unreadable: &[&str]| {
        let unreadable = unreadable.iter().map(|id| (*id).into()).collect();
        let plan = unread(&leases(rows), &unreadable, &listing, TRIM, &[]);
        plan.iter().map(|lease| lease.row.key.to_string()).collect::<Vec<_>>()
    };
    let known = ("13", middle());
    assert_eq!(found(&[known], &[]), ["33"]);
    assert!(found(&[known, ("12", middle())], &[]).is_empty());
    assert_eq!(found(&[known, ("12", Checkpoint::ShardEnd)], &[]), ["33"]);
    assert_eq!(found(&[known, ("12", Checkpoint::TrimHorizon)], &["12"]), ["33"]);
    // The shard waits for its parent's own lease by itself.
    assert_eq!(found(&[known, ("12", middle()), ("29", middle())], &[]), ["33"]);
}

/// The same where KCL's own algorithm decides: 35 is not started beside what it comes from.
#[test]
fn a_shard_waits_for_a_forgotten_parent_that_may_come() {
    let listing =
        [closed("33", &["13", "32"]), closed("35", &["32"]), open("36", &["35"]), open("37", &["33"])];
    let found = |rows: &[(&str, Checkpoint)], unreadable: &[&str], initial| {
        let unreadable = unreadable.iter().map(|id| (*id).into()).collect();
        created(&super::plan(&leases(rows), &unreadable, &listing, initial, false).unwrap())
    };
    let ended = ("13", Checkpoint::ShardEnd);
    let forgotten = ("29", middle());
    for initial in ALL_POSITIONS {
        assert_eq!(found(&[ended, forgotten], &[], initial), []);
        let at_once = found(&[ended], &[], initial);
        assert!(at_once.contains(&("33".into(), Checkpoint::TrimHorizon)), "{at_once:?}");
        assert_eq!(at_once.len(), 2);
        assert_eq!(found(&[ended, ("29", Checkpoint::ShardEnd)], &[], initial), at_once);
        assert_eq!(found(&[ended, forgotten], &["29"], initial), at_once);
        // The parent has come.
        let come = found(&[ended, forgotten, ("32", Checkpoint::ShardEnd)], &[], initial);
        let both = ["33", "35"].map(|id| (id.to_owned(), Checkpoint::TrimHorizon));
        assert_eq!(come, both);
    }
    let told = plan(&leases(&[ended, forgotten]), &listing, TRIM, false).unwrap();
    let told: Vec<String> = told.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "33 waits until 32 has been processed",
            "35 waits until 32 has been processed",
            "36 waits until 32 has been processed",
            "37 waits until 32 has been processed",
            "the lease 29 is unfinished although its shard was trimmed away",
        ]
    );
}

#[test]
fn a_very_deep_lineage_needs_no_stack() {
    let id = |n: u64| format!("shardId-{n:012}");
    let depth = 100_000;
    let shards: Vec<Shard> = (0..depth)
        .map(|n| {
            let parents: Vec<String> = (n > 0).then(|| id(n - 1)).into_iter().collect();
            let make = if n + 1 == depth { open } else { closed };
            let mut shard = make(&id(n), &parents.iter().map(String::as_str).collect::<Vec<_>>());
            shard.starting = (n + 1).into();
            shard
        })
        .collect();
    let trim = planned_for(&leases(&[("z", middle())]), &shards, TRIM);
    assert_eq!(trim, one(&id(0), Checkpoint::TrimHorizon));
    let latest = planned_for(&leases(&[("z", middle())]), &shards, LATEST);
    assert_eq!(latest, one(&id(depth - 1), Checkpoint::Latest));
    let below = planned_for(&leases(&[(&id(0), Checkpoint::ShardEnd)]), &shards, LATEST);
    assert_eq!(below, one(&id(1), Checkpoint::TrimHorizon));
}
