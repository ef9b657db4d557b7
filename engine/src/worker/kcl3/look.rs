//! Looking at the two tables in which workers of KCL 3.0 to 3.4 know each other.
//!
//! ```text
//!            none there                      every half of a scan interval
//!   First ──────────────► Without ◄────┐          ┌────────┐
//!     │                      │         │ gone     ▼        │
//!     └──── there ───────────┴───► Reading ──────►┴────────┘
//!                                      │ all is in the lease table
//!                                      └────► Over
//! ```
//!
//! The first scan of the lease table follows the first look at these tables: their rows decide which leases may be
//! taken. A worker of another library may create its tables later. So a worker without these tables looks again from
//! time to time, for as long as workers of another library own leases. Among our own workers it looks once.

use super::workers::{Kcl3Workers, looks_beside};
use crate::fleet::{FleetRow, FleetTable, FleetTableOp, FleetTablesNews, TableMigration};
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply, TableState, Why};
use crate::notice::Notice;
use crate::output::TableOp;
use crate::row::RowRead;
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;

/// The pause before a worker without these tables looks again, beside workers of another library. A worker without
/// permission to read the tables tries again after the same pause.
const AGAIN: Span = Span::from_secs(60);

/// The known state of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    /// Nothing: the first question was not answered yet.
    #[default]
    First,
    /// They are not there, or cannot be seen.
    Without,
    /// The tables exist, and are read again and again.
    Reading,
    /// They are read no more.
    Over,
}

/// The present look, or the next look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Kcl3Look {
    stage: Stage,
    in_flight: bool,
    next_at: Mono,
    backoff: Backoff,
    /// Counts looks, from 1.
    number: u64,
    /// The table that is being scanned, and where the next page starts; absent: no look is under way.
    at: Option<(FleetTable, Option<LeaseKey>)>,
    rows: Vec<FleetRow>,
    /// When the look began.
    asked: Mono,
    /// This worker leads, and is to decide by a look begun at this moment or later.
    wanted: Option<Mono>,
    /// Workers of another library own leases, as the last whole scan showed.
    beside_others: bool,
    /// What was told last.
    told: Option<FleetTablesNews>,
}

impl Kcl3Look {
    pub(super) fn wake_at(&self, cx: &Context) -> Mono {
        let waits = match self.stage {
            Stage::First | Stage::Reading => true,
            Stage::Without => self.beside_others,
            Stage::Over => false,
        };
        if waits && !self.in_flight && cx.is_booted() && looks_beside(cx) {
            self.next_at.max(self.backoff.until())
        } else {
            Mono::NEVER
        }
    }

    /// Asks the next question, if it is time.
    pub(super) fn step(&mut self, cx: &mut Context) {
        if !cx.is_running() || cx.now() < self.wake_at(cx) {
            return;
        }
        let (table, op) = match (self.stage, &self.at) {
            (Stage::Reading, at) => {
                let (table, after) = at.clone().unwrap_or((FleetTable::Coordinator, None));
                if at.is_none() {
                    self.number += 1;
                    self.asked = cx.now();
                }
                self.at = Some((table, after.clone()));
                (table, FleetTableOp::Scan { after })
            }
            _ => (FleetTable::Coordinator, FleetTableOp::Describe),
        };
        cx.table(Waiter::Kcl3Look, TableOp::FleetTable(table, op));
        self.in_flight = true;
    }

    /// A whole scan of the lease table has ended. `began`: when the scan began. `others`: whether workers of another
    /// library own leases. `decides`: whether the leader has a decision to make. Then a leader looks once more at the
    /// live workers. A worker that stops takes its report back before it lets go of leases, and an older look would
    /// show the worker with room for these leases.
    pub(super) fn on_scanned(
        &mut self, cx: &Context, workers: &Kcl3Workers, began: Mono, others: bool, decides: bool,
    ) {
        let leads = workers.leader().is_some_and(|(lock, _)| lock.id == *cx.me());
        if decides && leads && !workers.is_as_new_as(began) {
            self.wanted = Some(began);
            if self.at.is_none() {
                self.next_at = self.next_at.min(cx.now());
            }
        }
        let news = others && !self.beside_others;
        self.beside_others = others && !workers.has_version_here();
        if news && self.stage == Stage::Without {
            self.next_at = self.next_at.min(cx.now());
        }
    }

    /// An answer has come.
    pub(super) fn on_outcome(
        &mut self, cx: &mut Context, workers: &mut Kcl3Workers, op: OpId, outcome: Outcome,
    ) {
        debug_assert!(self.in_flight, "an answer comes after the question");
        self.in_flight = false;
        let scans = self.at.is_some();
        match outcome {
            Outcome::Applied(Reply::Table(state)) if !scans => self.on_state(cx, workers, state),
            Outcome::Applied(Reply::Page(page)) if scans => {
                self.backoff.succeeded();
                let says = page.rows.into_iter().filter_map(|row| match row {
                    RowRead::Foreign { says, .. } => says,
                    RowRead::Lease(_) | RowRead::Unreadable { .. } => None,
                });
                self.rows.extend(says.map(|says| *says));
                self.on_page(cx, workers, page.next);
            }
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => match self.at.take() {
                // The fleet's workers create this table at their start.
                Some((FleetTable::Workers, _)) => self.finish(cx, workers),
                _ => self.go_without(cx, workers, FleetTablesNews::Gone),
            },
            Outcome::Refused(refusal) => {
                let detail = format!("{}: {}", refusal.why, refusal.detail);
                let news = FleetTablesNews::Unreadable { detail };
                if workers.has_tables_beside() {
                    self.rows.clear();
                    self.at = None;
                    self.next_at = cx.now() + AGAIN;
                    self.tell(cx, news);
                } else {
                    self.go_without(cx, workers, news);
                }
            }
            other => {
                let again_in = self.backoff.failed(cx, "fleet tables", "");
                let what = "look at the tables of a fleet of KCL 3";
                cx.trouble(op, None, what, describe(&other), again_in);
            }
        }
    }

    fn on_state(&mut self, cx: &mut Context, workers: &mut Kcl3Workers, state: TableState) {
        self.backoff.succeeded();
        match state {
            TableState::Usable => {
                self.stage = Stage::Reading;
                self.next_at = cx.now();
            }
            // Its workers are about to use it.
            TableState::Creating => self.next_at = cx.now() + cx.poll_pause(),
            TableState::Missing | TableState::Deleting | TableState::Incompatible => {
                self.go_without(cx, workers, FleetTablesNews::Gone);
            }
        }
    }

    fn on_page(&mut self, cx: &mut Context, workers: &mut Kcl3Workers, next: Option<LeaseKey>) {
        let Some((table, after)) = self.at.take() else {
            debug_assert!(false, "a page is of a look that is under way");
            return;
        };
        // A service that repeats a cursor would keep the worker in one look for ever.
        let next = next.filter(|next| after.as_ref() != Some(next));
        self.next_at = cx.now();
        let complete = self.rows.contains(&FleetRow::Tables(TableMigration::Complete));
        self.at = match (table, next) {
            (_, Some(next)) => Some((table, Some(next))),
            (FleetTable::Coordinator, None) if !complete => Some((FleetTable::Workers, None)),
            _ => return self.finish(cx, workers),
        };
    }

    /// All of both tables was read.
    fn finish(&mut self, cx: &mut Context, workers: &mut Kcl3Workers) {
        workers.note_looked();
        self.at = None;
        let rows = std::mem::take(&mut self.rows);
        if rows.contains(&FleetRow::Tables(TableMigration::Complete)) {
            let was_in_use = workers.has_tables_beside();
            workers.leave_tables_beside(cx);
            self.stage = Stage::Over;
            if was_in_use {
                cx.notify(Notice::FleetTables(FleetTablesNews::OneTable));
            }
            return cx.request(Request::Rescan(cx.now()));
        }
        let unknown = rows.iter().find_map(|row| match row {
            FleetRow::Tables(TableMigration::Unknown(state)) => Some(state.clone()),
            _ => None,
        });
        self.tell(
            cx,
            match unknown {
                Some(state) => FleetTablesNews::Unknown { state },
                None => FleetTablesNews::Found,
            },
        );
        let news = workers.looked(cx, self.number, self.asked, rows);
        self.next_at = match self.wanted.take_if(|since| self.asked >= *since) {
            _ if self.wanted.is_some() => cx.now(),
            _ => cx.now() + cx.config().scan_interval.per(2),
        };
        if news {
            cx.request(Request::Rescan(cx.now()));
        }
    }

    fn go_without(&mut self, cx: &mut Context, workers: &mut Kcl3Workers, why: FleetTablesNews) {
        let was_in_use = workers.has_tables_beside();
        workers.note_looked();
        self.rows.clear();
        self.at = None;
        self.backoff.succeeded();
        self.stage = Stage::Without;
        self.next_at = cx.now() + AGAIN;
        if was_in_use || matches!(why, FleetTablesNews::Unreadable { .. }) {
            self.tell(cx, why);
        }
        if was_in_use {
            workers.leave_tables_beside(cx);
            cx.request(Request::Rescan(cx.now()));
        }
    }

    /// Says what is new.
    fn tell(&mut self, cx: &mut Context, news: FleetTablesNews) {
        if self.told.as_ref() != Some(&news) {
            self.told = Some(news.clone());
            cx.notify(Notice::FleetTables(news));
        }
    }
}
