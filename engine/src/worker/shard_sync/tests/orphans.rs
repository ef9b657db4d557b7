//! Children of finished shards that have no lease.

use super::{keys, listed};
use crate::config::Config;
use crate::format::Format;
use crate::notice::ListReason;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{self, LeaseTable, Scan};
use crate::worker::shard_sync::ShardSync;
use crate::worker::shard_sync::orphans::patience;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{
    closed, config, context, ended, row, running, shard, shows, table, tenths, whole_scan,
};

const LISTS: Request = Request::ListShards(StreamIx::ONLY, ListReason::ChildWithoutLease);

/// The lower half of the hash space was split, and the lease of the upper half is unfinished.
fn shards() -> [Shard; 4] {
    let part = |id, parents: &[&str], start, end| Shard { range: tenths(start, end), ..shard(id, parents) };
    [
        closed(part("a", &[], 0, 5)),
        part("b", &[], 5, 10),
        Shard { starting: 5.into(), ..part("c", &["a"], 0, 2) },
        Shard { starting: 5.into(), ..part("d", &["a"], 2, 5) },
    ]
}

fn upper() -> LeaseRow {
    let range = Some(tenths(5, 10));
    LeaseRow { range, ..row("b") }
}

/// `a` as left by a program that has read the shard to its end.
fn finished() -> LeaseRow {
    let range = Some(tenths(0, 5));
    LeaseRow { range, ..ended("a", &[]) }
}

struct Scene {
    cx: Context,
    sync: ShardSync,
    scan: Scan,
    leases: LeaseTable,
}

impl Scene {
    fn of(cx: Context) -> Self {
        let leases = table(&cx);
        let (sync, scan) = (ShardSync::new(StreamIx::ONLY), Scan::default());
        Self { cx, sync, scan, leases }
    }

    /// A whole scan shows these rows a while later. What the room asks for then.
    fn scans(&mut self, later: Span, rows: &[LeaseRow]) -> Vec<Request> {
        self.cx.later(later);
        whole_scan(&mut self.cx, &mut self.leases, &mut self.scan, rows.to_vec());
        self.cx.did();
        self.sync.look_for_orphans(&mut self.cx, &self.leases, 0);
        self.cx.did().requests().to_vec()
    }

    /// A listing comes. Returns the leases created by the room, and the room's other requests.
    fn lists(&mut self, shards: &[Shard], deputy: u32) -> (Vec<String>, Vec<Request>) {
        let list = listed(&mut self.cx, &mut self.sync, shards);
        lease_table::learn_lineage(&mut self.leases, &self.cx, list.shards(), list.asked_at());
        self.sync.create_missing(&mut self.cx, &self.leases, &list, deputy);
        let did = self.cx.did();
        let rest = did.requests().iter().filter(|request| !matches!(request, Request::WriteRow { .. }));
        (keys(&did), rest.cloned().collect())
    }

    fn patience(&self) -> Span {
        patience(&self.cx)
    }
}

const SOON: Span = Span::from_secs(3);

#[test]
fn children_of_a_finished_shard_need_two_listings_around_a_scan() {
    for format in Format::ALL {
        let mut scene = Scene::of(running(config(format)));
        let rows = [finished(), upper()];
        assert_eq!(scene.scans(SOON, &rows), []);
        let patience = scene.patience();
        let again = Request::Rescan(scene.cx.now() + patience);
        let nothing = (vec![], vec![again.clone()]);
        assert_eq!(scene.lists(&shards(), 0), nothing, "{format:?}");
        assert_eq!(scene.scans(SOON, &rows), [again], "{format:?}: too soon");
        assert_eq!(scene.lists(&shards(), 0), nothing, "{format:?}: too soon");
        let rest = Span(patience.0 - SOON.0);
        assert_eq!(scene.scans(rest, &rows), [LISTS], "{format:?}");
        let children = vec!["c".to_owned(), "d".to_owned()];
        assert_eq!(scene.lists(&shards(), 0), (children, vec![]), "{format:?}");
    }
}

#[test]
fn a_whole_scan_lies_between_the_two_listings() {
    let mut scene = Scene::of(context());
    scene.scans(SOON, &[finished(), upper()]);
    scene.lists(&shards(), 0);
    scene.cx.later(scene.patience());
    let again = Request::Rescan(scene.cx.now());
    assert_eq!(scene.lists(&shards(), 0), (vec![], vec![again]));
}

/// An owner whose row a person removed believes in the lease for a lease duration. In kinsumer's tables that is minutes.
#[test]
fn the_time_between_is_that_of_an_owner_to_put_its_row_back() {
    let times = |format| {
        let cx = running(config(format));
        (patience(&cx), cx.config().clone())
    };
    for format in [Format::Kcl, Format::VmwareGoKcl, Format::KclRb] {
        let (time, config) = times(format);
        assert_eq!(time, config.lease_duration, "{format:?}");
    }
    let (time, config) = times(Format::Kinsumer);
    assert_eq!(time, config.renew_interval.times(2));
    let short = Config { stream_lag: Span::from_secs(2), ..Config::default() };
    assert_eq!(patience(&running(short)), Span::from_secs(2));
}

#[test]
fn a_scan_that_shows_the_children_needs_no_second_listing() {
    let mut scene = Scene::of(context());
    scene.scans(SOON, &[finished(), upper()]);
    scene.lists(&shards(), 0);
    let child = |id: &str, start, end| LeaseRow { range: Some(tenths(start, end)), ..row(id) };
    let rows = [finished(), upper(), child("c", 0, 2), child("d", 2, 5)];
    assert_eq!(scene.scans(scene.patience(), &rows), []);
}

/// A lease missing for another reason, or expected from the end of a shard still being read, needs the time that a
/// listing may be behind.
#[test]
fn no_other_lease_is_due() {
    let merged = || {
        let mut shards = shards().to_vec();
        shards[1] = closed(shards[1].clone());
        shards[3] = closed(shards[3].clone());
        let range = tenths(2, 10);
        shards.push(Shard { range, starting: 7.into(), ..shard("m", &["d", "b"]) });
        shards
    };
    let part = |row: LeaseRow, start, end| LeaseRow { range: Some(tenths(start, end)), ..row };
    let both = |other: LeaseRow| {
        let ended = part(ended("d", &[]), 2, 5);
        vec![finished(), part(row("c"), 0, 2), ended, part(other, 5, 10)]
    };
    type Case = (&'static str, Vec<LeaseRow>, Vec<Shard>, &'static [&'static str]);
    let cases: [Case; 3] = [
        ("no row says that a parent has ended", vec![upper()], shards().to_vec(), &[]),
        ("one of two parents is still read", both(row("b")), merged(), &[]),
        ("both parents have ended", both(ended("b", &[])), merged(), &["m"]),
    ];
    for (name, rows, shards, expected) in cases {
        let mut scene = Scene::of(context());
        scene.scans(SOON, &rows);
        scene.lists(&shards, 0);
        scene.scans(scene.patience(), &rows);
        let (created, _) = scene.lists(&shards, 0);
        assert_eq!(created, expected, "{name}");
    }
}

/// All workers of a fleet may have listed the shards. The leader looks again first, and creates.
#[test]
fn each_deputy_looks_again_after_those_before_it() {
    for deputy in 0..=3 {
        let mut scene = Scene::of(running(config(Format::VmwareGoKcl)));
        scene.scans(SOON, &[finished(), upper()]);
        let turn = scene.cx.now() + scene.patience() + Span::from_secs(u64::from(deputy));
        let (_, asked) = scene.lists(&shards(), deputy);
        assert_eq!(asked, [Request::Rescan(turn)]);
    }
}

#[test]
fn a_hole_beside_a_finished_lease_needs_one_scan_or_two() {
    for (deputy, needed) in [(0, 1), (1, 2), (3, 2)] {
        let mut scene = Scene::of(context());
        shows(&scene.cx, &mut scene.leases, finished());
        shows(&scene.cx, &mut scene.leases, upper());
        for seen in 1..=needed {
            scene.sync.look_for_holes(&mut scene.cx, &scene.leases, deputy);
            let turn = scene.cx.now() + scene.patience() + Span::from_secs(u64::from(deputy));
            let expected = match seen == needed {
                true => Request::ListShards(StreamIx::ONLY, ListReason::Hole),
                false => Request::Rescan(turn),
            };
            assert_eq!(scene.cx.did().requests(), [expected], "{deputy}, scan {seen}");
        }
    }
}
