//! Plans on a table in memory. Answers get lost, and owners renew.

use super::*;
use crate::ports::Port;
use crate::runtime::{BoxFuture, TokioRuntime};
use leasehold_engine::admin::Deed;
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::Cause;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::testkit::{Items, LeaseTable};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// A table, and what happens to it.
#[derive(Debug)]
struct State {
    table: LeaseTable<Items<Kcl>>,
    /// The number of applied writes whose answers get lost.
    lost: u32,
    /// So many reads are each followed by a renewal of the owner.
    renewed: u32,
    writes: u32,
}

#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn with(rows: &[LeaseRow]) -> Self {
        let mut table = LeaseTable::empty(Items(Kcl));
        for row in rows {
            table.execute(&TableOp::Write(Change::Create(Box::new(row.clone()))));
        }
        Self(Arc::new(Mutex::new(State { table, lost: 0, renewed: 0, writes: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn row(&self) -> LeaseRow {
        match self.state().table.read(&key()) {
            Some(RowRead::Lease(row)) => row,
            other => panic!("{other:?}"),
        }
    }

    fn admin(&self) -> Admin {
        let runtime = Arc::new(TokioRuntime::current().unwrap());
        Admin::over(Arc::new(self.clone()), runtime, Kcl.policies().life)
    }
}

impl Port<TableOp> for Shared {
    fn execute(&self, _: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let mut state = self.state();
        let outcome = state.table.execute(&op);
        let outcome = match op {
            TableOp::Read { .. } if state.renewed > 0 => {
                state.renewed -= 1;
                let Some(RowRead::Lease(row)) = state.table.read(&key()) else { panic!("expected a lease") };
                let guard = Guard {
                    counter: row.counter,
                    next: row.counter + 1,
                    holder: row.owner.clone().unwrap(),
                    next_owner: None,
                };
                let renew = TableOp::Write(Change::Renew { key: key(), guard, began: None });
                state.table.execute(&renew);
                outcome
            }
            TableOp::Write(_) => {
                state.writes += 1;
                if state.lost > 0 {
                    state.lost -= 1;
                    Outcome::Unknown(Cause::Timeout)
                } else {
                    outcome
                }
            }
            _ => outcome,
        };
        Box::pin(async move { outcome })
    }
}

fn key() -> LeaseKey {
    "shardId-000000000000".into()
}

fn owned() -> LeaseRow {
    LeaseRow {
        owner: Some("w".into()),
        counter: 7,
        ..LeaseRow::new(key(), Checkpoint::At(Position::of(70.into())))
    }
}

fn rewound(seen: &LeaseRow) -> Plan {
    let step = Step {
        lease: key(),
        deed: Deed::Rewind(Checkpoint::TrimHorizon),
        seen: Some(seen.clone()),
        follows: Vec::new(),
    };
    Plan { steps: vec![step], left: Vec::new() }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_got_lost_is_recognised() {
    let table = Shared::with(&[owned()]);
    table.state().lost = 2;
    let done = table.admin().apply(&rewound(&owned())).await.unwrap();
    assert_eq!(done[0].how, Stepped::Written);
    let row = table.row();
    assert_eq!((row.owner, row.checkpoint, row.counter), (None, Checkpoint::TrimHorizon, 8));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_renews_in_between_is_followed_for_a_while() {
    let table = Shared::with(&[owned()]);
    table.state().renewed = 2;
    let done = table.admin().apply(&rewound(&owned())).await.unwrap();
    assert_eq!((&done[0].how, table.row().owner), (&Stepped::Written, None));

    let table = Shared::with(&[owned()]);
    table.state().renewed = u32::MAX;
    let done = table.admin().apply(&rewound(&owned())).await.unwrap();
    assert!(matches!(&done[0].how, Stepped::Changed(why) if why.contains("5 times in a row")), "{done:?}");
    assert_eq!(table.row().checkpoint, owned().checkpoint);
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_owner_is_not_written_at_all() {
    let table = Shared::with(&[LeaseRow { owner: Some("another".into()), ..owned() }]);
    let before = table.row();
    let done = table.admin().apply(&rewound(&owned())).await.unwrap();
    assert!(
        matches!(&done[0].how, Stepped::Changed(why) if why.contains("expected the owner w, found the owner another")),
        "{done:?}"
    );
    assert_eq!((table.row(), table.state().writes), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn watching_shows_who_lives_and_no_table_is_said_so() {
    let table = Shared::with(&[owned()]);
    let admin = table.admin();
    let (silent, lease) = (Span::from_secs(5), Span::from_secs(10));
    let (view, told) = admin.watch(silent, lease).await.unwrap();
    assert_eq!(told.leases[0].standing, Standing::Silent);
    let plan = release(&view, &Which::All, &BTreeSet::new());
    admin.apply(&plan).await.unwrap();
    let (_, told) = admin.watch(silent, lease).await.unwrap();
    assert_eq!(told.leases[0].standing, Standing::Free);

    table.state().table.rows = None;
    let missing = admin.view().await.unwrap_err().to_string();
    assert!(missing.contains("correct the name or the region"), "{missing}");
}
