//! An engine as one worker of a large fleet, for benchmarks of the work after a whole scan.

use super::{Carry, Driven, Services};
use crate::Engine;
use crate::config::Config;
use crate::fleet::{LEADER_KEY, VERSION_KEY};
use crate::ids::{LeaseKey, OpId, WorkerId};
use crate::input::{Body, Boot, Input, Outcome, Reply, ScanPage};
use crate::notice::Notice;
use crate::output::{Command, Effect, TableOp};
use crate::row::{HandsOver, LeaseRow, RowRead};
use crate::table::{AttributeValue, Item};
use crate::time::{Mono, Wall};
use std::collections::BTreeSet;
use std::ops::Range;

/// An engine, and a lease table whose other owners renew their leases between two scans.
///
/// The last page of a scan is empty. So the engine's work at the empty page is exactly its work after a whole scan.
#[derive(Clone, Debug)]
pub struct Fleet {
    driven: Driven,
    world: World,
    silent: BTreeSet<WorkerId>,
    /// The number of live, reporting workers of KCL 3.x, and the number of their reports.
    reports: (u32, i64),
}

/// The cursor of the last page, after all keys.
const AFTER_ALL: &str = "~";
/// Rows of a page: about a megabyte.
const PAGE: u32 = 3_000;

#[derive(Clone, Debug)]
struct World {
    services: Services,
    /// The last page that is asked for.
    last: Option<OpId>,
    /// Absent: commands are carried out. Present: commands are kept.
    kept: Option<Vec<Command>>,
    notices: Vec<Notice>,
}

impl Carry for World {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        if let Some(kept) = &mut self.kept {
            kept.push(command);
            return None;
        }
        match &command.effect {
            // The handlers never finish opening: the engine renews its leases and scans the table, and does not read.
            Effect::Consumer(_) => None,
            Effect::Table(TableOp::Scan { after: Some(after), .. }) if after.as_str() == AFTER_ALL => {
                self.last = Some(command.op);
                None
            }
            Effect::Table(TableOp::Scan { .. }) => {
                let mut outcome = self.services.perform(&command);
                if let Outcome::Applied(Reply::Page(page)) = &mut outcome {
                    page.next.get_or_insert_with(|| AFTER_ALL.into());
                    page.rows.iter_mut().for_each(read_anew);
                }
                Some(outcome)
            }
            _ => Some(self.services.perform(&command)),
        }
    }

    fn told(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

impl Fleet {
    /// A fleet of `workers` workers, with `leases` leases shared evenly. The engine is a worker of the fleet, and holds
    /// its share.
    pub fn at_rest(leases: u32, workers: u32) -> Self {
        let mut services = Services::with_shards(leases);
        let others: Vec<WorkerId> = (1..workers.max(2)).map(Self::worker).collect();
        let share = leases / workers.max(1);
        for (n, row) in services.table.rows.iter_mut().flatten().enumerate() {
            if n >= share as usize {
                give(row.1, &others[n % others.len()]);
            }
        }
        let boot = Boot {
            worker: "orders-consumer-00000".into(),
            incarnation: 1,
            seed: 1,
            // With the leases of a benchmark, no quick scans take place anyway.
            config: Config::default()
                .with_table("app")
                .with_stream("orders")
                .with_scan_page_limit(PAGE)
                .with_quick_scan_interval(Config::default().scan_interval),
        };
        let world = World { services, last: None, kept: None, notices: Vec::new() };
        let mut fleet = Self { driven: Driven::default(), world, silent: BTreeSet::new(), reports: (0, 0) };
        let input = Input { at: Mono(1_000_000), wall: Wall(1_000), body: Body::Boot(Box::new(boot)) };
        fleet.driven.tell(input, &mut fleet.world);
        while fleet.driven.engine().held().count() < share as usize {
            fleet.come_to_last_page();
            fleet.end_scan();
            fleet.carry_out();
        }
        fleet
    }

    /// The same, but the other workers are workers of KCL 3.x, and the engine is their leader: it shares leases out by
    /// their throughput.
    pub fn led(leases: u32, workers: u32) -> Self {
        let mut fleet = Self::at_rest(leases, workers);
        for (n, row) in fleet.rows().enumerate() {
            // From 20 to 29 KiB/s, so that each worker has about the same throughput.
            row.throughput = Some(20_000_000 + 1_000_000 * (n as u64 % 10));
        }
        fleet.reports.0 = workers;
        let table = &mut fleet.world.services.table;
        table.fleet.extend([version("CLIENT_VERSION_3X")]);
        while !fleet.world.services.table.fleet.contains_key(LEADER_KEY) {
            fleet.come_to_last_page();
            fleet.end_scan();
            fleet.carry_out();
        }
        fleet
    }

    /// The other workers that live say so again.
    fn report(&mut self) {
        let (workers, at) = &mut self.reports;
        *at += 1;
        let live = (1..*workers).map(Self::worker).filter(|id| !self.silent.contains(id));
        let table = &mut self.world.services.table.fleet;
        table.extend(live.map(|id| report(id.as_str(), 1_000 + *at)));
    }

    /// The name of the worker with this number, as in rows; the engine's own number is 0.
    pub fn worker(n: u32) -> WorkerId {
        WorkerId::of_life(&format!("orders-consumer-{n:05}"), 1)
    }

    fn rows(&mut self) -> impl Iterator<Item = &mut LeaseRow> {
        self.world.services.table.rows.iter_mut().flatten().map(|(_, row)| row)
    }

    fn rows_of_others(&mut self) -> impl Iterator<Item = &mut LeaseRow> {
        let me = Self::worker(0);
        self.rows().filter(move |row| row.owner.as_ref() != Some(&me))
    }

    /// The workers with these numbers renew no lease any more.
    pub fn die(&mut self, workers: Range<u32>) {
        self.silent.extend(workers.map(Self::worker));
    }

    /// All leases of other workers now belong evenly to the workers with these numbers.
    pub fn gather(&mut self, workers: Range<u32>) {
        let owners: Vec<WorkerId> = workers.map(Self::worker).collect();
        for (row, owner) in self.rows_of_others().zip(owners.iter().cycle()) {
            give(row, owner);
        }
    }

    /// All other workers have released their leases.
    pub fn free(&mut self) {
        for row in self.rows_of_others() {
            row.owner = None;
            row.counter += 1;
            row.hands_over = HandsOver::No;
        }
    }

    /// Time passes until the engine asks for the last page of the next scan. All live owners have renewed their leases
    /// by then.
    pub fn come_to_last_page(&mut self) {
        if self.world.last.is_none() {
            let silent = self.silent.clone();
            for row in self.rows_of_others() {
                let lives = |owner: &&WorkerId| !silent.contains(*owner);
                row.counter += u64::from(row.actual_owner().filter(lives).is_some());
            }
            self.report();
        }
        while self.world.last.is_none() {
            self.driven.sleep(&mut self.world);
        }
        self.world.notices.clear();
    }

    /// Answers the last page. What the engine asks for then is kept. Returns how many commands that are.
    ///
    /// # Panics
    /// Without a [`come_to_last_page`](Self::come_to_last_page) before it.
    pub fn end_scan(&mut self) -> usize {
        let last = self.world.last.take().expect("a last page is asked for");
        self.world.kept = Some(Vec::new());
        let page = ScanPage { rows: Vec::new(), next: None };
        self.driven.answer(last, Outcome::Applied(Reply::Page(page)), &mut self.world);
        self.world.kept.as_ref().map_or(0, Vec::len)
    }

    /// Carries out what the engine asked for at the end of the scan.
    pub fn carry_out(&mut self) {
        for command in self.world.kept.take().into_iter().flatten() {
            let op = command.op;
            if let Some(outcome) = self.world.carry(command) {
                self.driven.answer(op, outcome, &mut self.world);
            }
        }
    }

    /// The table is gone, and only the engine's own memory remains. The fleet is of no further use then.
    pub fn drop_table(&mut self) {
        self.world.services = Services::with_shards(0);
    }

    /// What the engine told since the last page was asked for.
    pub fn notices(&self) -> &[Notice] {
        &self.world.notices
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.driven.engine()
    }
}

/// Makes the texts of a row its own, as after a read from a real table.
fn read_anew(row: &mut RowRead) {
    if let RowRead::Lease(row) = row {
        row.key = row.key.as_str().into();
        row.owner = row.owner.as_ref().map(|owner| owner.as_str().into());
    }
}

/// Makes a worker of this library the owner of a row.
fn give(row: &mut LeaseRow, owner: &WorkerId) {
    row.owner = Some(owner.clone());
    row.counter += 1;
    row.hands_over = HandsOver::Yes;
}

/// The row with the version whose rules a fleet of KCL 3.x follows.
pub fn version(version: &str) -> (LeaseKey, Item) {
    let text = |name: &'static str, value: &str| (name.into(), AttributeValue::s(value));
    let item = Item::from([
        text("leaseKey", VERSION_KEY),
        text("entityType", "CLIENT_VERSION_MIGRATION"),
        text("cv", version),
    ]);
    (VERSION_KEY.into(), item)
}

/// A report of a worker of KCL 3.x without measurements of its host, at a time in seconds since 1970.
pub fn report(id: &str, at: i64) -> (LeaseKey, Item) {
    let item = Item::from([
        ("leaseKey".into(), AttributeValue::s(id)),
        ("entityType".into(), AttributeValue::s("WORKER_METRIC_STATS")),
        ("lut".into(), AttributeValue::n(at)),
    ]);
    (id.into(), item)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of choices in the engine's notices, the number of chosen leases, and whether the engine requests them
    /// from their owners.
    fn chosen(fleet: &mut Fleet) -> (usize, u32, bool) {
        fleet.come_to_last_page();
        fleet.end_scan();
        let choices: Vec<_> = fleet
            .notices()
            .iter()
            .filter_map(|notice| match notice {
                Notice::Chose(choice) => Some(choice),
                _ => None,
            })
            .collect();
        let asks = choices.iter().any(|choice| choice.asked);
        let taken = choices.iter().map(|choice| choice.taken).sum();
        (choices.len(), taken, asks)
    }

    #[test]
    fn a_fleet_at_rest_moves_nothing() {
        let mut fleet = Fleet::at_rest(40, 4);
        for _ in 0..3 {
            assert_eq!(chosen(&mut fleet), (0, 0, false));
            fleet.carry_out();
            assert_eq!(fleet.engine().held().count(), 10);
        }
    }

    #[test]
    fn dead_workers_leases_are_taken_up_to_the_share() {
        let mut fleet = Fleet::at_rest(40, 4);
        fleet.die(2..4);
        assert_eq!(chosen(&mut fleet), (1, 10, false));
    }

    #[test]
    fn owners_with_more_than_their_share_are_asked() {
        let mut fleet = Fleet::at_rest(40, 5);
        // 32 leases of two other workers: 16 each, where 14 are a share.
        fleet.gather(1..3);
        assert_eq!(chosen(&mut fleet), (2, 4, true));
    }

    #[test]
    fn a_free_lease_is_taken() {
        let mut fleet = Fleet::at_rest(40, 4);
        fleet.free();
        assert_eq!(chosen(&mut fleet), (1, 30, false));
    }

    /// How many leases the engine gave to others as the leader.
    fn assigned(fleet: &mut Fleet) -> usize {
        fleet.come_to_last_page();
        fleet.end_scan();
        let given = |notice: &&Notice| matches!(notice, Notice::Assigned { .. });
        fleet.notices().iter().filter(given).count()
    }

    #[test]
    fn a_fleet_that_is_led_moves_nothing_when_loads_are_even() {
        let mut fleet = Fleet::led(40, 4);
        for _ in 0..3 {
            assert_eq!(assigned(&mut fleet), 0);
            fleet.carry_out();
        }
    }

    #[test]
    fn a_leader_gives_what_is_free_to_all() {
        let mut fleet = Fleet::led(40, 4);
        fleet.free();
        // The engine has ten itself, and takes none of the thirty.
        assert_eq!(assigned(&mut fleet), 30);
    }

    #[test]
    fn an_unwritten_assignment_waits_for_the_next_scan() {
        let mut fleet = Fleet::led(8_000, 4);
        fleet.free();
        assert_eq!(assigned(&mut fleet), 5_000);
        fleet.carry_out();
        // The last page of the scan was asked for before all of these were written.
        assert!((1..=1_000).contains(&assigned(&mut fleet)));
    }
}
