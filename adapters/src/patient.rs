//! A lease table with retries: requests not executed are repeated, and so are requests perhaps executed, since every
//! write is guarded.

use crate::ports::{Failure, TablePort};
use crate::runtime::Runtime;
use leasehold_engine::admin::View;
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Outcome, Reply, TableState, Why};
use leasehold_engine::members::MembersOp;
use leasehold_engine::output::TableOp;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::time::Span;
use std::sync::Arc;

/// A request is tried so often.
const TRIES: u32 = 8;
const PAUSE: Span = Span::from_millis(50);

/// Why a table was not asked any longer.
#[derive(Debug)]
pub(crate) struct GaveUp {
    /// What could not be done.
    pub(crate) what: String,
    /// How it went.
    pub(crate) how: String,
}

impl GaveUp {
    fn unexpected(what: &str, outcome: &Outcome) -> Self {
        Self { what: what.to_owned(), how: format!("answered with what was not asked for: {outcome:?}") }
    }
}

/// A table, and how often it was asked.
pub(crate) struct PatientTable<'a> {
    pub(crate) port: &'a TablePort,
    pub(crate) runtime: &'a Arc<dyn Runtime>,
    pub(crate) asked: u64,
}

impl<'a> PatientTable<'a> {
    pub(crate) fn new(port: &'a TablePort, runtime: &'a Arc<dyn Runtime>) -> Self {
        Self { port, runtime, asked: 0 }
    }

    /// Repeats an operation until an outcome is certain.
    pub(crate) async fn ask(&mut self, what: &str, op: TableOp) -> Result<Outcome, GaveUp> {
        let mut pause = PAUSE;
        let mut how = String::new();
        for _ in 0..TRIES {
            self.asked += 1;
            let id = OpId { life: 0, n: self.asked };
            let outcome = self.port.execute(id, op.clone()).await;
            let failure = self.port.failure(id);
            match outcome {
                Outcome::NotSent(cause) | Outcome::Unknown(cause) => {
                    how = match failure {
                        Some(Failure { at: Some(at), why }) => format!("{why}, from {at}"),
                        Some(Failure { at: None, why }) => why,
                        None => cause.to_string(),
                    };
                }
                Outcome::Refused(refusal) if !matches!(refusal.why, Why::ConditionFailed | Why::InUse) => {
                    return Err(GaveUp {
                        what: what.to_owned(),
                        how: match refusal.detail.as_str() {
                            "" => refusal.why.to_string(),
                            detail => format!("{} ({detail})", refusal.why),
                        },
                    });
                }
                outcome => return Ok(outcome),
            }
            self.runtime.sleep(pause).await;
            pause = pause.times(2);
        }
        Err(GaveUp { what: what.to_owned(), how: format!("tried {TRIES} times, the last time: {how}") })
    }

    /// The outcome of an operation on the tables beside.
    pub(crate) async fn members(&mut self, what: &str, op: MembersOp) -> Result<Outcome, GaveUp> {
        self.ask(what, TableOp::Members(op)).await
    }

    /// The state of the table.
    pub(crate) async fn state(&mut self, what: &str) -> Result<TableState, GaveUp> {
        match self.ask(what, TableOp::Describe).await? {
            Outcome::Applied(Reply::Table(state)) => Ok(state),
            other => Err(GaveUp::unexpected(what, &other)),
        }
    }

    /// All of its rows.
    pub(crate) async fn rows(&mut self, what: &str) -> Result<View, GaveUp> {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = match self.ask(what, TableOp::Scan { after, limit: None }).await? {
                Outcome::Applied(Reply::Page(page)) => page,
                other => return Err(GaveUp::unexpected(what, &other)),
            };
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                return Ok(rows.into_iter().collect());
            }
        }
    }

    /// One row, read consistently; the inner error says that the row is no lease.
    pub(crate) async fn read(
        &mut self, what: &str, key: &LeaseKey,
    ) -> Result<Result<Option<LeaseRow>, String>, GaveUp> {
        match self.ask(what, TableOp::Read { key: key.clone() }).await? {
            Outcome::Applied(Reply::Row(None)) => Ok(Ok(None)),
            Outcome::Applied(Reply::Row(Some(row))) => Ok(match *row {
                RowRead::Lease(row) => Ok(Some(row)),
                RowRead::Foreign { kind, .. } => {
                    Err(format!("expected a lease, found an item of another kind ({kind})"))
                }
                RowRead::Unreadable { detail, .. } => Err(detail),
            }),
            other => Err(GaveUp::unexpected(what, &other)),
        }
    }
}
