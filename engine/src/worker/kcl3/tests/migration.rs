//! Leading a migration alone: when all is ready, for how long, and the outcome of the final write.
//!
//! Of the owners `me` and `zoe`, this worker is the first in the order of leaders. Of `anna` and `me`, the other worker
//! is.

use super::super::migration::Migration;
use crate::fleet::{FleetRow, FleetState, FleetVersion, FleetWorker, FleetWrite, VERSION_KEY, seconds as at};
use crate::ids::OpId;
use crate::input::{Outcome, Reply, ScanPage, Why};
use crate::notice::{MigrationNews, Notice};
use crate::output::{Effect, TableOp};
use crate::row::RowRead;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::{LeaseTable, Scan};
use crate::worker::testing::{context, done, hold, owned, refused, row, seconds, stage, throttled, unknown};

/// How often the room is shown a scan, and how often it looks.
const SCAN: Span = Span::from_secs(20);
const LOOK: u64 = 3;

/// A worker with one lease, in a fleet of two owners with one lease each.
struct Scene {
    cx: Context,
    leases: LeaseTable,
    scan: Scan,
    migration: Migration,
    other: &'static str,
    state: FleetState,
    /// Whether the fleet's second owner renews its lease and reports.
    renews: bool,
    reports: bool,
    counter: u64,
}

impl Scene {
    fn new(other: &'static str) -> Self {
        let (mut cx, mut leases) = stage();
        hold(&mut cx, &mut leases, row("mine"));
        cx.did();
        Self {
            cx,
            leases,
            scan: Scan::default(),
            migration: Migration::default(),
            other,
            state: state(FleetVersion::UpgradeFrom2x, 1),
            renews: true,
            reports: true,
            counter: 1,
        }
    }

    fn page(&self) -> Outcome {
        let says = |key: &str, row: FleetRow| RowRead::Foreign {
            key: key.into(),
            kind: String::new(),
            says: Some(Box::new(row)),
        };
        let mine = owned("mine", "me", 1);
        let theirs = owned("theirs", self.other, self.counter);
        let mut rows = vec![RowRead::Lease(mine), RowRead::Lease(theirs)];
        rows.push(says(VERSION_KEY, FleetRow::Version(self.state.clone())));
        let others = self.reports.then_some(self.other);
        for id in others.into_iter().chain(["me"]) {
            let report = FleetWorker {
                id: id.into(),
                at: at(self.cx.wall()),
                ours: id == "me",
                one_table: true,
                metrics: Vec::new(),
            };
            rows.push(says(id, FleetRow::Worker(report)));
        }
        Outcome::Applied(Reply::Page(ScanPage { rows, next: None }))
    }

    /// A whole scan, a scan interval after the last scan. Returns the room's request, if any, and its news.
    fn scans(&mut self) -> (Option<OpId>, Vec<MigrationNews>) {
        self.cx.later(SCAN);
        self.counter += u64::from(self.renews);
        self.scan.schedule_by(Mono(0));
        self.scan.step(&mut self.cx, &mut self.leases);
        let (op, page) = (self.cx.did().op(), self.page());
        let scanned = self.scan.on_page(&mut self.cx, &mut self.leases, op, page);
        assert!(scanned.is_some(), "the only page");
        self.cx.did();
        self.migration.on_scanned(&mut self.cx, &self.leases);
        self.said()
    }

    fn said(&mut self) -> (Option<OpId>, Vec<MigrationNews>) {
        let did = self.cx.did();
        let news = |notice: &Notice| match notice {
            Notice::Migration(news) => Some(news.clone()),
            _ => None,
        };
        let told = did.notices().iter().filter_map(news).collect();
        let asked = |(op, effect): (OpId, Effect)| {
            assert_eq!(effect, Effect::Table(TableOp::OwnerIndex));
            op
        };
        (did.commands().into_iter().map(asked).next(), told)
    }

    /// Scans go on until the room looks whether all is ready, as it must once a minute.
    #[track_caller]
    fn asked(&mut self) -> OpId {
        let asked = (0..=LOOK).find_map(|_| self.scans().0);
        asked.expect("a look is due")
    }

    fn answers(&mut self, op: OpId, outcome: &Outcome) -> Vec<MigrationNews> {
        assert!(self.migration.asked(op));
        let now = self.cx.now();
        self.migration.on_index(&mut self.cx, op, now, outcome);
        self.said().1
    }

    /// The room looks, and the index is there.
    #[track_caller]
    fn is_ready(&mut self) -> Vec<MigrationNews> {
        let op = self.asked();
        self.answers(op, &index(true))
    }

    /// Looks follow each other until the end is due. Returns for how long all was ready.
    fn until_due(&mut self) -> Span {
        self.is_ready();
        let from = self.cx.now();
        while !self.migration.is_due() {
            assert!(self.cx.now().since(from) < stays().times(2), "it never ends");
            self.is_ready();
        }
        self.cx.now().since(from)
    }

    /// The write is sent, and comes to this.
    #[track_caller]
    fn writes(&mut self, outcome: &Outcome) -> FleetWrite {
        let write = self.migration.due(&self.cx).expect("the end is due");
        assert!(!self.migration.is_due(), "it is under way");
        self.migration.on_outcome(&mut self.cx, &write, outcome);
        write
    }
}

fn state(version: FleetVersion, written: i64) -> FleetState {
    FleetState { written: Some(("zoe".to_owned(), written)), ..version.into() }
}

fn index(there: bool) -> Outcome {
    Outcome::Applied(Reply::OwnerIndex(there))
}

fn stays() -> Span {
    context().config().fleet.migration_wait
}

fn ready() -> MigrationNews {
    MigrationNews::Ready { owners: 2, stays: stays() }
}

#[test]
fn the_end_is_due_when_every_look_found_all_ready_long_enough() {
    let mut scene = Scene::new("zoe");
    assert_eq!(scene.is_ready(), [ready()]);
    assert_eq!(scene.migration.due(&scene.cx), None);
    let waited = scene.until_due();
    // It was ready for a look longer.
    assert!(waited < stays() && stays() <= waited + SCAN.times(LOOK), "{waited}");
    let write = scene.writes(&done());
    let seen = Box::new(scene.state.clone());
    let (worker, at) = ("me".into(), scene.cx.wall().0);
    assert_eq!(write, FleetWrite::Migrate { worker, at, seen });
    assert_eq!(scene.said().1, [MigrationNews::Ended { owners: 2 }]);
}

#[test]
fn a_look_is_made_once_a_minute_and_one_at_a_time() {
    let mut scene = Scene::new("zoe");
    let looks = (0..30).filter_map(|_| scene.scans().0.map(|op| scene.answers(op, &index(true))));
    assert_eq!(looks.count(), 10);
    scene.asked();
    assert!((0..9).all(|_| scene.scans().0.is_none()), "it was not answered");
}

#[test]
fn a_silent_owner_begins_the_wait_anew_when_it_reports_again() {
    let mut scene = Scene::new("zoe");
    scene.is_ready();
    scene.reports = false;
    let told: Vec<MigrationNews> = (0..3 * LOOK).flat_map(|_| scene.scans().1).collect();
    let (owner, others) = ("zoe".into(), 0);
    assert_eq!(told, [MigrationNews::OwnerSilent { owner, others }], "told once");
    scene.reports = true;
    assert!(scene.until_due() >= stays());
}

#[test]
fn a_silent_owner_of_a_still_lease_holds_up_for_a_minute() {
    let mut scene = Scene::new("zoe");
    (scene.reports, scene.renews) = (false, false);
    let told: Vec<MigrationNews> = (0..LOOK).flat_map(|_| scene.scans().1).collect();
    assert_eq!(told.len(), 1, "it may live");
    let op = scene.asked();
    let (owners, stays) = (1, stays());
    assert_eq!(scene.answers(op, &index(true)), [MigrationNews::Ready { owners, stays }]);
}

#[test]
fn without_the_index_the_wait_begins_anew() {
    let mut scene = Scene::new("zoe");
    scene.is_ready();
    for news in [vec![MigrationNews::NoIndex], Vec::new()] {
        let op = scene.asked();
        assert_eq!(scene.answers(op, &index(false)), news);
    }
    assert!(scene.until_due() >= stays());
}

#[test]
fn an_index_that_could_not_be_looked_for_changes_nothing() {
    let mut scene = Scene::new("zoe");
    scene.is_ready();
    for outcome in [throttled(), unknown(), refused(Why::NotFound)] {
        let op = scene.asked();
        let now = scene.cx.now();
        scene.migration.on_index(&mut scene.cx, op, now, &outcome);
        assert_eq!(scene.cx.did().told(), ["trouble"]);
    }
    assert!(scene.until_due() < stays(), "the time before counts");
}

#[test]
fn where_another_worker_leads_nothing_is_asked() {
    let mut scene = Scene::new("anna");
    for _ in 0..100 {
        assert_eq!(scene.scans(), (None, Vec::new()));
    }
    // The first owner dies, and this worker is the first of the live owners: earlier looks do not count.
    (scene.reports, scene.renews) = (false, false);
    scene.cx.later(seconds(60));
    assert!(scene.until_due() >= stays());
}

#[test]
fn a_rollback_ends_the_wait_and_a_new_beginning_has_all_of_it() {
    let mut scene = Scene::new("zoe");
    scene.until_due();
    scene.state = state(FleetVersion::Version2x, 2);
    assert_eq!(scene.scans(), (None, Vec::new()));
    assert!(!scene.migration.is_due());
    assert!((0..9).all(|_| scene.scans().0.is_none()));
    scene.state = state(FleetVersion::UpgradeFrom2x, 3);
    assert_eq!(scene.is_ready(), [ready()]);
    assert!(scene.until_due() + SCAN.times(LOOK) >= stays());
}

#[test]
fn a_new_beginning_without_a_seen_rollback_has_all_of_the_time() {
    let mut scene = Scene::new("zoe");
    scene.until_due();
    scene.state.written = Some(("operator".to_owned(), 2));
    assert_eq!(scene.is_ready(), [ready()]);
    assert!(!scene.migration.is_due());
}

/// The state changed while the question was under way: its answer is of owners of before.
#[test]
fn an_answer_of_another_state_counts_for_nothing() {
    let mut scene = Scene::new("zoe");
    let op = scene.asked();
    scene.state.written = Some(("operator".to_owned(), 2));
    assert_eq!(scene.scans().0, None, "one question at a time");
    assert_eq!(scene.answers(op, &index(true)), []);
    assert_eq!(scene.is_ready(), [ready()]);
}

#[test]
fn an_end_that_was_refused_is_tried_after_all_of_the_time() {
    let mut scene = Scene::new("zoe");
    scene.until_due();
    scene.writes(&refused(Why::ConditionFailed));
    assert_eq!(scene.said().1, []);
    assert!(scene.until_due() >= stays());
}

#[test]
fn an_end_of_unknown_outcome_is_tried_again_after_another_look() {
    for outcome in [unknown(), throttled()] {
        let mut scene = Scene::new("zoe");
        scene.until_due();
        scene.writes(&outcome);
        assert!(!scene.migration.is_due());
        let (op, _) = scene.scans();
        scene.answers(op.expect("a look at once"), &index(true));
        assert!(scene.migration.is_due());
    }
}

/// The write was applied after all.
#[test]
fn nothing_is_left_to_do_when_the_state_is_that_of_version_3() {
    let mut scene = Scene::new("zoe");
    scene.until_due();
    scene.writes(&unknown());
    scene.state = state(FleetVersion::Version3xWithRollback, 2);
    assert!((0..9).all(|_| scene.scans() == (None, Vec::new())));
    assert!(!scene.migration.is_due());
}
