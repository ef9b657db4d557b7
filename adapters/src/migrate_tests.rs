//! Migrations over tables in memory with occasional failures, interrupted anywhere.

use super::*;
use crate::ports::Port;
use crate::runtime::{BoxFuture, TokioRuntime};
use leasehold_engine::format::{Format, ItemOp, LeaseFormat, SideRead};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::internals::copied;
use leasehold_engine::internals::draw_below;
use leasehold_engine::policy::Finished;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, RowRead};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_engine::testkit::{Items, LeaseTable};
use std::sync::{Mutex, PoisonError};

const PAGE: u32 = 700;

#[derive(Debug)]
struct InMemory {
    kind: Format,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    table: LeaseTable<Items<Format>>,
    /// Its key is not that of its format.
    of_other_key: bool,
    seed: u64,
    asked: u64,
    /// From then on nothing is answered any more.
    dies_after: Option<u64>,
    /// One request in so many fails; 0: none.
    fails: u64,
    /// Counted up by every scan, as a live worker does.
    renewed: Option<LeaseKey>,
    /// The table with the list of shards exists.
    side_made: bool,
    /// The rows of the side table, by key.
    side: BTreeMap<String, Item>,
}

impl State {
    /// The items of the table, which is made if need be.
    fn items(&mut self) -> &mut BTreeMap<LeaseKey, Item> {
        self.table.rows.get_or_insert_default()
    }

    /// What an operation on the table with the list of shards answers.
    fn members(&mut self, kind: Format, op: &MembersOp) -> Outcome {
        let membership = kind.membership().expect("a format with members");
        let (side, spelled) = membership.spell(op);
        assert_eq!(side, Side::Fleet, "a migration is no member: {op:?}");
        let name = |key: &Item| key[membership.key_name(side)].as_s().unwrap().to_owned();
        Outcome::Applied(match spelled {
            ItemOp::Describe if self.side_made => Reply::Table(TableState::Usable),
            ItemOp::Describe => Reply::Table(TableState::Missing),
            ItemOp::Create => {
                self.side_made = true;
                Reply::Done
            }
            ItemOp::Get(key) => {
                let found = SideRead::Item(self.side.get(&name(&key)));
                membership.read(op, found).unwrap()
            }
            ItemOp::Write(write) => {
                let key = name(&write.key);
                let mut item = self.side.remove(&key);
                let done = write.carry_out(&mut item);
                self.side.extend(item.map(|item| (key, item)));
                if done.is_err() {
                    let (why, detail) = (Why::ConditionFailed, String::new());
                    return Outcome::Refused(Refusal { why, current: None, detail });
                }
                Reply::Done
            }
            ItemOp::Scan { .. } => panic!("nobody is a member of a migration: {op:?}"),
        })
    }
}

impl InMemory {
    fn new(kind: Format) -> Arc<Self> {
        let mut table = LeaseTable::empty(Items(kind));
        table.rows = None;
        let state = State {
            table,
            of_other_key: false,
            seed: 0,
            asked: 0,
            dies_after: None,
            fails: 0,
            renewed: None,
            side_made: false,
            side: BTreeMap::new(),
        };
        Arc::new(Self { kind, state: Mutex::new(state) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers this many more requests, with failures at new places.
    fn die_soon(&self, requests: u64) {
        let mut state = self.state();
        state.seed += 1;
        state.dies_after = Some(state.asked + requests);
    }

    /// Writes a row, in a table that is made if need be.
    fn create(&self, row: LeaseRow) {
        let mut state = self.state();
        state.items();
        let done = state.table.execute(&TableOp::Write(Change::Create(Box::new(row))));
        assert_eq!(done, Outcome::Applied(Reply::Done));
    }

    /// The rows, without values that differ from run to run.
    fn rows(&self) -> Vec<LeaseRow> {
        let mut state = self.state();
        let rows = state.items().values().map(|item| match self.kind.decode(item) {
            RowRead::Lease(row) => LeaseRow { owner: row.owner.clone(), ..copied(&row, Wall(0)) },
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    fn answer(&self, op: &TableOp) -> Outcome {
        let mut state = self.state();
        state.asked += 1;
        let (asked, fails) = (state.asked, state.fails);
        if state.dies_after.is_some_and(|last| asked > last) {
            return Outcome::NotSent(Cause::Network);
        }
        let roll = draw_below(state.seed, "fails", "", asked, fails.max(1));
        let failing = fails > 0 && roll == 0;
        let lost = failing && draw_below(state.seed, "lost", "", asked, 2) == 0;
        if failing && !lost {
            return Outcome::NotSent(Cause::Throttled);
        }
        let outcome = match op {
            TableOp::Describe if state.of_other_key => {
                Outcome::Applied(Reply::Table(TableState::Incompatible))
            }
            TableOp::Scan { after, .. } => {
                let page = state.table.execute(&TableOp::Scan { after: after.clone(), limit: Some(PAGE) });
                self.renew(&mut state);
                page
            }
            TableOp::Members(op) => state.members(self.kind, op),
            TableOp::Fleet(_) | TableOp::FleetTable(..) | TableOp::OwnerIndex | TableOp::Owned { .. } => {
                panic!("nobody is a member of a migration: {op:?}")
            }
            op => state.table.execute(op),
        };
        match outcome {
            Outcome::Applied(_) if lost => Outcome::Unknown(Cause::Timeout),
            outcome => outcome,
        }
    }

    /// A live worker renews its lease.
    fn renew(&self, state: &mut State) {
        let Some(key) = state.renewed.clone() else {
            return;
        };
        let item = state.items().get_mut(&key).unwrap();
        if let RowRead::Lease(row) = self.kind.decode(item) {
            let newer = LeaseRow { counter: row.counter + 1_000_000_000, ..row };
            let mut made = None;
            self.kind.encode(&Change::Create(Box::new(newer))).carry_out(&mut made).unwrap();
            *item = made.unwrap();
        }
    }
}

/// The table, as a port.
#[derive(Debug)]
struct AsPort(Arc<InMemory>);

impl Port<TableOp> for AsPort {
    fn execute(&self, _: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let outcome = self.0.answer(&op);
        Box::pin(async move { outcome })
    }
}

fn key(n: u64) -> LeaseKey {
    format!("shardId-{n:012}").into()
}

/// A table with this number of leases, at all kinds of checkpoints.
fn filled(kind: Format, leases: u64) -> Arc<InMemory> {
    let table = InMemory::new(kind);
    for n in 0..leases {
        let checkpoint = match draw_below(1, "checkpoint", "", n, 5) {
            0 => Checkpoint::TrimHorizon,
            1 => Checkpoint::Latest,
            2 => Checkpoint::ShardEnd,
            _ => Checkpoint::At(Position::of(n.into())),
        };
        let mut row = LeaseRow::new(key(n), checkpoint);
        row.counter = kind.policies().life.next(n, Wall(1_700_000_000_000), Span::ZERO);
        row.parents = (n >= 100).then(|| key(n - 100).to_shard()).into_iter().collect();
        row.owner = (n % 3 == 0).then(|| "dead".into());
        table.create(row);
    }
    table
}

fn plan(to: Format) -> Plan {
    Plan {
        apply: true,
        watch: Span::ZERO,
        force: false,
        life: to.policies().life,
        me: "migration".into(),
        fills_ended: false,
        listed: Vec::new(),
        shares: to.membership().is_some(),
    }
}

/// The plan for a table of KCL.
fn plan_from_kcl(to: Format, listed: &[(&str, &[&str])]) -> Plan {
    let id = |name: &&str| ShardId::from(*name);
    let listed = listed.iter().map(|(shard, parents)| (id(shard), parents.iter().map(id).collect()));
    Plan { fills_ended: to.policies().finished != Finished::WhenRead, listed: listed.collect(), ..plan(to) }
}

async fn run(old: &Arc<InMemory>, new: &Arc<InMemory>, plan: &Plan) -> Result<Report, Stopped> {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let port = |table: &Arc<InMemory>| -> TablePort { Arc::new(AsPort(table.clone())) };
    migrate(&port(old), &port(new), &runtime, plan, |_, _| {}).await
}

/// The rows of a table of another format, without owners.
fn expected(old: &InMemory, to: Format) -> Vec<LeaseRow> {
    let fresh = InMemory::new(to);
    for row in old.rows() {
        fresh.create(copied(&row, Wall(0)));
    }
    fresh.rows()
}

/// The rows with equal moments: an interrupted run sets the moment of a row at `LATEST` at the time of the write.
fn dateless(mut rows: Vec<LeaseRow>) -> Vec<LeaseRow> {
    for row in &mut rows {
        assert_eq!(row.began.is_some(), row.checkpoint == Checkpoint::Latest, "{row:?}");
        row.began = row.began.map(|_| Wall(0));
    }
    rows
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_leases_interrupted_anywhere_there_and_back() {
    for (from, to) in [(Format::VmwareGoKcl, Format::Kcl), (Format::Kcl, Format::KclRb)] {
        let old = filled(from, 10_000);
        let before = old.rows();
        let new = InMemory::new(to);
        new.state().fails = 50;
        let mut interruptions = 0;
        let report = loop {
            new.die_soon(draw_below(7, "dies", "", interruptions, 12_000));
            match run(&old, &new, &plan(to)).await {
                Ok(report) => break report,
                Err(stopped) => assert!(stopped.to_string().contains("can be run again"), "{stopped}"),
            }
            interruptions += 1;
            assert!(interruptions < 100, "{interruptions}");
        };
        assert!(interruptions > 1, "it was interrupted");
        assert!(report.conflicts.is_empty(), "{:?}", report.conflicts);
        // As if it had not been interrupted.
        assert_eq!(dateless(new.rows()), dateless(expected(&old, to)));
        assert_eq!(old.rows(), before, "the old table is only read");

        // Some work is done in the new table, and then it goes back.
        new.state().dies_after = None;
        new.state().fails = 0;
        for n in (0..10_000).step_by(7) {
            let row = copied(new.rows().get(n as usize).unwrap(), Wall(0));
            if let Some(position) = row.checkpoint.position() {
                let further = Checkpoint::At(Position::of((position.sequence.words()[2] + 5).into()));
                new.state().items().remove(&row.key);
                new.create(LeaseRow { checkpoint: further, ..row });
            }
            if n > 300 {
                break;
            }
        }
        // Nobody works on the old table any more.
        let idle: Vec<_> = old.rows();
        for row in idle {
            old.state().items().remove(&row.key);
            old.create(copied(&row, Wall(0)));
        }
        let back = run(&new, &old, &plan(from)).await.unwrap();
        assert!(back.updated > 10 && back.created == 0, "{back:?}");
        assert_eq!(dateless(old.rows()), dateless(expected(&new, from)));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_unless_told_nor_while_somebody_lives() {
    let old = filled(Format::VmwareGoKcl, 10);
    let new = InMemory::new(Format::Kcl);
    let dry = Plan { apply: false, ..plan(Format::Kcl) };
    let report = run(&old, &new, &dry).await.unwrap();
    assert_eq!((report.leases, report.created), (10, 10));
    assert!(new.state().table.rows.is_none());

    old.state().renewed = Some(key(3));
    let watching = Plan { watch: Span::from_secs(10), ..plan(Format::Kcl) };
    let report = run(&old, &new, &watching).await.unwrap();
    assert!(report.refused && report.live.len() == 1, "{report:?}");
    assert!(new.state().table.rows.is_none());

    let forced = Plan { force: true, ..watching };
    assert!(!run(&old, &new, &forced).await.unwrap().refused);
    assert_eq!(new.rows().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_old_table_that_is_none_of_its_format_is_said_so() {
    let (old, new) = (InMemory::new(Format::KclRb), InMemory::new(Format::Kcl));
    let plan = plan(Format::Kcl);
    let missing = run(&old, &new, &plan).await.unwrap_err().to_string();
    assert!(missing.contains("correct the name or region"), "{missing}");
    old.state().of_other_key = true;
    let wrong = run(&old, &new, &plan).await.unwrap_err().to_string();
    assert!(wrong.contains("name the format that it has"), "{wrong}");
    assert!(new.state().table.rows.is_none());
}

const SHARDS: [&str; 6] = [
    "shardId-000000000000",
    "shardId-000000000001",
    "shardId-000000000002",
    "shardId-000000000003",
    "shardId-000000000004",
    "shardId-000000000005",
];

/// KCL's table of a stream after two splits: the row of 0 was removed; 1 came from 0, and is finished; 2 and 3 came
/// from 1.
fn split_twice() -> Arc<InMemory> {
    let old = InMemory::new(Format::Kcl);
    let at = Checkpoint::At(Position::of(70.into()));
    let rows = [(1, 0, Checkpoint::ShardEnd), (2, 1, at), (3, 1, Checkpoint::TrimHorizon)];
    for (shard, parent, checkpoint) in rows {
        let mut row = LeaseRow::new(SHARDS[shard].into(), checkpoint);
        row.parents = vec![SHARDS[parent].into()];
        old.create(row);
    }
    old
}

/// The shards in the list of the new table.
fn list(new: &InMemory) -> Vec<String> {
    let state = new.state();
    let row = state.side.get("ShardCache").expect("a list of shards");
    let AttributeValue::L(ids) = &row["ShardIDs"] else {
        panic!("{row:?}");
    };
    ids.iter().map(|id| id.as_s().unwrap().to_owned()).collect()
}

/// A kinsumer program reads the list first. The program reads every listed shard from its row's sequence number on,
/// whatever the row says.
#[tokio::test(start_paused = true)]
async fn kinsumer_is_told_what_is_finished_and_which_shards_are_left() {
    let (old, new) = (split_twice(), InMemory::new(Format::Kinsumer));
    let plan = plan_from_kcl(Format::Kinsumer, &[]);
    let dry = Plan { apply: false, ..plan.clone() };
    let report = run(&old, &new, &dry).await.unwrap();
    assert_eq!((report.created, report.ended, report.shared), (4, 1, Some(2)));
    assert!(!new.state().side_made, "nothing is written unless told");

    let report = run(&old, &new, &plan).await.unwrap();
    assert_eq!((report.created, report.ended, report.shared), (4, 1, Some(2)));
    assert_eq!(list(&new), [SHARDS[2], SHARDS[3]]);
    for finished in [SHARDS[0], SHARDS[1]] {
        let item = new.state().items()[&LeaseKey::from(finished)].clone();
        assert!(matches!(item["Finished"], AttributeValue::N(_)), "{item:?}");
        assert_eq!(item["SequenceNumber"], AttributeValue::s("LATEST"), "nothing follows there");
    }
    // A second run has nothing left to do; a shard found by a member since stays in the list, and a finished shard
    // goes.
    let found = [SHARDS[4], SHARDS[2], SHARDS[1]];
    let ids = found.map(AttributeValue::s).to_vec();
    let row = |item: &mut Item| drop(item.insert("ShardIDs".into(), AttributeValue::L(ids)));
    new.state().side.entry("ShardCache".to_owned()).and_modify(row);
    let again = run(&old, &new, &plan).await.unwrap();
    assert_eq!((again.same, again.shared), (4, Some(3)));
    assert_eq!(list(&new), [SHARDS[2], SHARDS[3], SHARDS[4]]);
}

/// Rows of KCL name parents only; the list of shards names earlier ancestors.
#[tokio::test(start_paused = true)]
async fn finished_shards_get_a_row_where_they_would_be_read_again() {
    let listed: [(&str, &[&str]); 4] = [
        (SHARDS[0], &[SHARDS[5]]),
        (SHARDS[1], &[SHARDS[0]]),
        (SHARDS[2], &[SHARDS[1]]),
        // Nobody has a lease below it: it is yet to be read.
        (SHARDS[4], &[]),
    ];
    for to in [Format::VmwareGoKcl, Format::KclRb, Format::Kinsumer] {
        let (old, new) = (split_twice(), InMemory::new(to));
        let report = run(&old, &new, &plan_from_kcl(to, &listed)).await.unwrap();
        assert_eq!(report.ended, 2, "{to}");
        let ended = new.rows().into_iter().filter(|row| row.checkpoint.is_end());
        let ended: Vec<_> = ended.map(|row| row.key.to_string()).collect();
        assert_eq!(ended, [SHARDS[0], SHARDS[1], SHARDS[5]], "{to}");
    }
    let (old, new) = (split_twice(), InMemory::new(Format::Kcl));
    let report = run(&old, &new, &plan_from_kcl(Format::Kcl, &listed)).await.unwrap();
    assert_eq!((report.ended, report.leases, report.shared), (0, 3, None));
}

/// A list is written only over the list read before, and requests are lost.
#[tokio::test(start_paused = true)]
async fn a_list_of_shards_is_written_in_spite_of_failures() {
    for seed in 0..20 {
        let (old, new) = (split_twice(), InMemory::new(Format::Kinsumer));
        (new.state().fails, new.state().seed) = (3, seed);
        let report = run(&old, &new, &plan_from_kcl(Format::Kinsumer, &[])).await;
        let report = report.unwrap_or_else(|stopped| panic!("seed {seed}: {stopped}"));
        assert_eq!(report.shared, Some(2), "seed {seed}");
        assert_eq!(list(&new), [SHARDS[2], SHARDS[3]], "seed {seed}");
    }
}
