//! Being a member of a KCL 3.x fleet: reporting that this worker lives, keeping the leader's lock, and removing reports
//! of dead workers. Each worker removes the report of a worker of this library whose leases have expired, and the
//! leader removes the reports that are very old.
//!
//! All of these tasks share a lane, with at most one write in flight. Nothing here makes any worker an owner. The rows
//! are in the lease table or in the two tables beside the lease table. When the fleet moves from these tables, the
//! report and the lock move, too.

use super::lock::LeaderLock;
use super::migration::Migration;
use super::workers::Kcl3Workers;
use crate::fleet::{FleetTable, FleetTableOp, FleetVersion, FleetWorker, FleetWrite, seconds};
use crate::ids::{OpId, WorkerId};
use crate::input::{Outcome, Why};
use crate::leader_assignment::Rules;
use crate::notice::{FleetRules, Notice};
use crate::output::TableOp;
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

/// A write of a row, and the row's table, if that is not the lease table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Placed {
    table: Option<FleetTable>,
    write: FleetWrite,
}

/// Our part in the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Kcl3Member {
    flight: Option<(OpId, Placed)>,
    backoff: Backoff,
    /// When the next report is due.
    report_at: Mono,
    /// The tables that a report of ours may be in.
    reported: Vec<Option<FleetTable>>,
    lock: LeaderLock,
    /// The lock is to be given up, if it is ours.
    resigns: bool,
    /// The table with the lock most recently taken by this worker.
    lock_table: Option<FleetTable>,
    migration: Migration,
    /// A scan has ended since the last look at what is due.
    news: bool,
    /// What is left to be written before the worker stops.
    leaving: Vec<Placed>,
    /// The scan after which the reports of dead workers were last looked for.
    tidied_after: u64,
    /// What was told last: the rules, the leader, and whether that is us.
    told: Option<(Rules, Option<WorkerId>, bool)>,
}

impl Kcl3Member {
    /// Whether this worker leads the fleet.
    pub(super) fn leads(&self, cx: &Context) -> bool {
        cx.wants_leases() && !self.resigns && self.lock.leads(cx.now())
    }

    /// The monotonic clock did not count so much time.
    pub(super) fn on_missed(&mut self, by: Span) {
        self.report_at = self.report_at - by;
        self.lock.on_missed(by);
    }

    /// Whether nothing is left to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.flight.is_none() && !self.is_leaving()
    }

    fn is_leaving(&self) -> bool {
        !self.leaving.is_empty() || self.resigns && self.lock.may_be_ours()
    }

    pub(super) fn wake_at(&self, cx: &Context, workers: &Kcl3Workers) -> Mono {
        if self.flight.is_some() || !cx.is_booted() {
            return Mono::NEVER;
        }
        let due = if self.is_leaving() {
            Mono(0)
        } else if !cx.wants_leases() || workers.rules() == Rules::Own {
            return Mono::NEVER;
        } else if self.news || self.migration.is_due() {
            Mono(0)
        } else {
            self.report_at.min(self.lock.wake_at())
        };
        due.max(self.backoff.until())
    }

    /// A whole scan has ended.
    pub(super) fn on_scanned(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let workers = leases.kcl3();
        self.news = true;
        self.migration.on_scanned(cx, leases);
        if workers.rules() == Rules::Own {
            self.withdraw(cx);
        }
        self.resigns = !cx.wants_leases() || !self.may_lead(cx, workers);
        self.tell(cx, workers);
    }

    /// A leader must understand its fleet. Without workers of another library, or before these look for a leader, no
    /// leader is needed.
    fn may_lead(&self, cx: &Context, workers: &Kcl3Workers) -> bool {
        let known =
            matches!(workers.version(), Some(FleetVersion::Version3x | FleetVersion::Version3xWithRollback));
        workers.is_led() && known && workers.may_be_led_by_us() && !workers.is_migrating(cx.now())
    }

    fn tell(&mut self, cx: &mut Context, workers: &Kcl3Workers) {
        let leader = workers.leader().filter(|(lock, _)| !lock.released);
        let leader = leader.map(|(lock, _)| lock.id.clone());
        let leads = self.leads(cx);
        let state = (workers.rules(), leader, leads);
        let before = self.told.as_ref().map_or(Rules::Own, |(rules, ..)| *rules);
        if before == Rules::Own && state.0 == Rules::Own || self.told.as_ref() == Some(&state) {
            return;
        }
        let rules = match state.0 {
            Rules::Own => FleetRules::Own,
            Rules::Reporting => FleetRules::Reporting,
            Rules::Led => FleetRules::Led,
        };
        let unknown = match workers.version() {
            Some(FleetVersion::Unknown(version)) => Some(version.clone()),
            _ => None,
        };
        cx.notify(Notice::Fleet {
            rules,
            leader: state.1.clone(),
            leads,
            workers: workers.live(cx.now()).count() as u32,
            unknown,
        });
        self.told = Some(state);
    }

    /// Asks for what is due.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let now = cx.now();
        if self.flight.is_some() || now < self.wake_at(cx, leases.kcl3()) {
            return;
        }
        // What a look at the tables beside has shown since the last scan may stand against leading, too.
        self.resigns |= !self.may_lead(cx, leases.kcl3());
        let next = self.next(cx, leases);
        // The next due write is looked for at the answer of this write.
        self.news = next.is_some();
        if let Some(placed) = next {
            let write = placed.write.clone();
            let op = cx.table(
                Waiter::Kcl3Write,
                match placed.table {
                    None => TableOp::Fleet(write),
                    Some(table) => TableOp::FleetTable(table, FleetTableOp::Write(write)),
                },
            );
            self.flight = Some((op, placed));
        }
    }

    fn next(&mut self, cx: &Context, leases: &LeaseTable) -> Option<Placed> {
        let workers = leases.kcl3();
        if let Some(write) = self.leaving.pop() {
            return Some(write);
        }
        // Only now, with nothing in flight: the last write may have changed the lock. A fleet that has moved has moved
        // the lock, too.
        let moved = self.lock_table != workers.lock_table();
        let resignation = (self.resigns || moved).then(|| self.lock.step_down(cx.me()));
        if let Some(write) = resignation.flatten() {
            let table = self.lock_table;
            return Some(Placed { table, write });
        }
        if !cx.wants_leases() || workers.rules() == Rules::Own {
            return None;
        }
        let table = workers.report_table();
        if cx.now() >= self.report_at || !self.reported.contains(&table) {
            if !self.reported.contains(&table) {
                self.reported.push(table);
            }
            let write = FleetWrite::Report {
                worker: cx.me().clone(),
                at: seconds(cx.wall()),
                measure: workers.measures(),
                cpu: Vec::new(),
            };
            return Some(Placed { table, write });
        }
        if let Some(left) = self.reported.iter().copied().find(|other| *other != table) {
            // A leader that finds two reports of a worker counts the worker twice.
            return Some(self.leave_table(cx, left));
        }
        let scan = leases.scans().complete();
        if let Some(write) = self.migration.due(cx) {
            let table = workers.state_table();
            return Some(Placed { table, write });
        }
        let lock = self.may_lead(cx, workers).then(|| self.lock.due(cx, workers, scan));
        if let Some(write) = lock.flatten() {
            let table = workers.lock_table();
            self.lock_table = table;
            return Some(Placed { table, write });
        }
        if self.tidied_after < scan {
            self.tidied_after = scan;
            let stale = || workers.stale(cx).filter(|_| self.leads(cx));
            return workers.misleading(cx).or_else(stale).map(forget);
        }
        None
    }

    fn leave_table(&self, cx: &Context, table: Option<FleetTable>) -> Placed {
        let worker = cx.me().clone();
        let write = FleetWrite::Leave { worker };
        Placed { table, write }
    }

    /// A write has ended, or a question was answered. `sent`: when it was emitted.
    pub(super) fn on_outcome(&mut self, cx: &mut Context, op: OpId, sent: Mono, outcome: Outcome) {
        if self.migration.asked(op) {
            return self.migration.on_index(cx, op, sent, &outcome);
        }
        let Some((_, placed)) = self.flight.take_if(|(expected, _)| *expected == op) else {
            debug_assert!(false, "an outcome is of what is in flight");
            return;
        };
        let Placed { table, write } = &placed;
        self.lock.on_outcome(cx.now(), write, sent, &outcome);
        self.migration.on_outcome(cx, write, &outcome);
        let settled = match &outcome {
            Outcome::Applied(_) => true,
            Outcome::Refused(refusal) => {
                let gone = matches!(write, FleetWrite::Leave { .. } | FleetWrite::StepDown { .. });
                // With a table beside the lease table, all of that table's rows are gone.
                refusal.why == Why::ConditionFailed || refusal.why == Why::NotFound && gone && table.is_some()
            }
            Outcome::NotSent(_) | Outcome::Unknown(_) => false,
        };
        if settled {
            self.backoff.succeeded();
            match write {
                FleetWrite::Report { .. } => self.report_at = sent + cx.config().fleet.report_interval,
                FleetWrite::Leave { .. } => self.reported.retain(|reported| reported != table),
                _ => {}
            }
            return;
        }
        if table.is_none() && matches!(&outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            cx.request(Request::DoubtTable);
        }
        let again_in = self.backoff.failed(cx, "fleet", "");
        cx.trouble(op, None, write.verb(), describe(&outcome), again_in);
        if matches!(write, FleetWrite::Report { .. }) {
            self.report_at = cx.now();
        }
        // The others are decided on anew.
        if matches!(write, FleetWrite::Leave { .. } | FleetWrite::StepDown { .. }) {
            self.leaving.push(placed);
        }
    }

    /// Removes our report: no worker is to count on it any more.
    fn withdraw(&mut self, cx: &Context) {
        let leaves = |placed: &Placed| matches!(placed.write, FleetWrite::Leave { .. });
        let under_way = self.flight.iter().map(|(_, placed)| placed).chain(&self.leaving);
        let left: Vec<_> = under_way.filter(|placed| leaves(placed)).map(|placed| placed.table).collect();
        let more = self.reported.iter().filter(|table| !left.contains(table));
        let more: Vec<_> = more.map(|table| self.leave_table(cx, *table)).collect();
        self.leaving.extend(more);
        self.report_at = Mono(0);
    }

    /// The worker stops: leaders shall assign it no more leases, and another worker may lead.
    pub(super) fn leave(&mut self, cx: &Context) {
        self.backoff.wait_until(Mono(0));
        self.resigns = true;
        self.withdraw(cx);
    }
}

/// Removes the report of a dead worker, unless the worker has reported since.
fn forget((table, worker): (Option<FleetTable>, &FleetWorker)) -> Placed {
    let write = FleetWrite::Forget { worker: worker.id.clone(), at: worker.at };
    Placed { table, write }
}
