//! Workers that run a program others wrote: their requests become the world's, and its answers theirs.

use super::World;
use super::stream::Carry;
use super::table::LeaseTable;
use crate::names::{number, shard_of};
use crate::oracles::ShardNo;
use crate::oracles::fact::{Ask as Asked, Mark, Owner, Row, Verb};
use crate::peers::sdk::LEASES;
use crate::peers::{Ask, Exit, ItemOp, Process, Program, Request};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::LeaseFormat;
use leasehold_engine::ids::{LeaseKey, OpId, WorkerId};
use leasehold_engine::input::{Body, Call, Outcome, Reply};
use leasehold_engine::internals::draw;
use leasehold_engine::output::Command;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::table::AttributeValue;
use leasehold_engine::time::Mono;
use leasehold_local_aws::dynamo::{ApiError, DeleteItem, GetItem, PutItem, Scan, UpdateItem};

/// A process that ended itself by an error is started again this long after, in µs.
const RESTART_US: u64 = 1_000_000;

impl World {
    /// Begins a process of another program, if that is what the worker is.
    pub(super) fn start_original(&mut self, w: usize) -> bool {
        let program = self.cx.plan().fleet.program(w);
        if program == Program::Leasehold || self.cx.plan().faults.upgrade.reached(w as u32, self.cx.now()) {
            return false;
        }
        let (seed, incarnation) = (self.cx.plan().seed, self.incarnation(w));
        let name = match &self.cx.plan().fleet.name {
            Some(name) => name.clone(),
            None => format!("w{w}-{incarnation:016x}"),
        };
        let (config, fleet) = (self.cx.plan().config.clone(), self.cx.plan().fleet.clone());
        let seed = draw(seed, "original", "", incarnation);
        self.workers[w].peer = Some(Process::of(program, seed, name.clone(), config, fleet));
        self.begin_life(w, &WorkerId::from(name));
        self.cx.note_other(self.workers[w].life);
        self.run_original(w);
        true
    }

    /// Makes the tables that kinsumer's workers expect to be there.
    pub(super) fn make_tables_of_others(&mut self) {
        if self.cx.plan().fleet.programs.contains(&Program::Kinsumer) {
            self.table.make_at_once(self.cx.now());
            self.table.make_sides_at_once(self.cx.now());
        }
    }

    /// Gives an input to a process, if that is what the worker is.
    pub(super) fn handle_original(&mut self, w: usize, body: &Body) -> bool {
        let Some(process) = &self.workers[w].peer else {
            return false;
        };
        self.inputs += 1;
        self.digest.absorb(&(self.cx.now(), w as u16, body));
        match body {
            Body::Done { op, outcome } => {
                let (items, next) = self.brought.take().unwrap_or_default();
                process.answer(op.n, outcome.clone(), items, next);
            }
            Body::Call(Call::Shutdown) => process.stop(),
            Body::Call(Call::Processed { lease, through, .. }) => {
                process.checkpoint(lease.as_str(), through.sequence.to_string());
            }
            Body::Call(Call::Checkpoint { .. }) | Body::Tick | Body::Boot(_) => {}
        }
        self.run_original(w);
        true
    }

    /// An answer has come to a process.
    pub(super) fn answer_original(&mut self, w: usize, op: OpId, outcome: Outcome, carry: Carry) {
        match carry {
            Carry::Items(items, next) => self.brought = Some((items, next)),
            carry => self.workers[w].adapter.keep(op.n, carry),
        }
        self.done(w, op, outcome);
    }

    fn run_original(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        let Some(process) = &mut worker.peer else {
            return;
        };
        let (mono, wall) = (worker.clock.mono(self.cx.now()), worker.clock.wall(self.cx.now()));
        let wall_ns = wall.0 as u64 * 1_000_000 + mono.0 % 1_000 * 1_000;
        let asked = process.run(mono.0, wall_ns);
        worker.wanted = worker.clock.when(Mono(process.wake_at()));
        let exit = process.exit();
        let life = self.incarnation(w);
        for (n, ask) in asked {
            let op = OpId { life, n };
            match ask {
                Ask::Effect(effect) => {
                    self.digest.absorb(&effect);
                    let give_up = Mono::NEVER;
                    self.issue(w, Command { op, give_up, effect });
                }
                Ask::Item(request) => {
                    self.digest.absorb(&format!("{request:?}"));
                    self.issue_item(w, op, request);
                }
            }
        }
        match exit {
            None => self.plan_wake(w),
            Some(Exit::Returned) => self.stopped(w),
            Some(Exit::Uncaught(why)) => {
                self.cx.line(|| format!("w{w} ends itself: {why}"));
                self.crash(w, RESTART_US, 0);
            }
        }
    }

    /// A row as oracles see it: where a shard without parents has no checkpoint yet, other programs begin where they are
    /// told to, and the row does not say so.
    pub(super) fn seen(&self, shard: ShardNo, row: &LeaseRow) -> Row {
        let mut row = self.cx.names().row(row);
        let family = self.shards.get(shard as usize);
        let latest = self.cx.plan().config.initial_position() == InitialPosition::Latest;
        let root = family.is_none_or(|family| family.parents == [None, None]);
        if latest && root && row.checkpoint == Mark::TrimHorizon && self.cx.plan().has_others() {
            row.checkpoint = Mark::Latest;
        }
        row
    }

    /// Whether this is the name of a life of another program, which takes no notice of claims.
    pub(super) fn keeps_what_is_claimed(&self, name: &WorkerId) -> bool {
        if self.cx.plan().fleet.stealing {
            return false;
        }
        let living = self.workers.iter().filter(|worker| worker.peer.is_some());
        let mut lives = living.map(|worker| Owner::Life(worker.life));
        let owner = self.cx.names().owner(name);
        lives.any(|life| life == owner)
    }

    /// A write of another program was executed.
    pub(super) fn item_written(&mut self, request: &Request, by: u32) {
        let (Some(verb), Some(key)) = (request.verb, request.lease(self.table.format)) else {
            return;
        };
        let is_new = shard_of(&key).is_some_and(|shard| self.row(shard as usize).is_none());
        let verb = if is_new && verb == Verb::Take {
            Verb::Create
        } else {
            verb
        };
        self.row_written(&key, Some(verb), Some(by));
    }
}

impl Request {
    /// The lease it is about.
    fn lease(&self, format: &dyn LeaseFormat) -> Option<LeaseKey> {
        let item = match &self.op {
            ItemOp::Get { key, .. } | ItemOp::Update { key, .. } | ItemOp::Delete { key, .. } => key,
            ItemOp::Put { item, .. } => item,
            ItemOp::Scan { .. } => return None,
        };
        if self.table != LEASES {
            return None;
        }
        let name = item.get(format.key_name()).and_then(AttributeValue::as_s)?;
        number(name).map(|_| LeaseKey::from(name))
    }

    /// What it is, and about which shard, for faults.
    pub(super) fn ask(&self, format: &dyn LeaseFormat) -> (Asked, Option<ShardNo>) {
        let ask = match (self.verb, &self.op) {
            _ if self.table != LEASES => Asked::Members,
            (Some(verb), _) => Asked::Write(verb),
            (None, ItemOp::Scan { .. }) => Asked::ScanPage,
            (None, ItemOp::Get { .. }) => Asked::Read,
            (None, _) => Asked::Setup,
        };
        (ask, self.lease(format).as_ref().and_then(shard_of))
    }
}

impl LeaseTable {
    /// Executes an operation on items. `as_of_ms`: a read that need not be consistent shows rows as they were then.
    pub(crate) fn execute_item(
        &mut self,
        now_ms: i64,
        request: &Request,
        as_of_ms: Option<i64>,
    ) -> (Outcome, Carry) {
        match self.item_result(now_ms, request, as_of_ms) {
            Ok(carry) => (Outcome::Applied(Reply::Done), carry),
            Err(error) => (self.failure(error), Carry::Nothing),
        }
    }

    fn item_result(
        &mut self,
        now_ms: i64,
        request: &Request,
        as_of_ms: Option<i64>,
    ) -> Result<Carry, ApiError> {
        let table = request.table.to_owned();
        match request.op.clone() {
            ItemOp::Get { key, consistent } => {
                let request = GetItem {
                    table,
                    key,
                    consistent,
                    as_of: as_of_ms.filter(|_| !consistent),
                    ..GetItem::default()
                };
                let found = self.dynamo.get_item(now_ms, &request)?;
                return Ok(Carry::Items(found.item.into_iter().collect(), None));
            }
            ItemOp::Scan { consistent, after } => {
                let request = Scan {
                    table,
                    consistent,
                    start: after,
                    limit: self.limit.map(|limit| limit as usize),
                    as_of: as_of_ms.filter(|_| !consistent),
                    ..Scan::default()
                };
                let page = self.dynamo.scan(now_ms, &request)?;
                return Ok(Carry::Items(page.items, page.last_key));
            }
            ItemOp::Put { item, condition } => {
                let request = PutItem {
                    table,
                    item,
                    condition,
                    ..PutItem::default()
                };
                self.dynamo.put_item(now_ms, &request)?;
            }
            ItemOp::Update {
                key,
                update,
                condition,
            } => {
                let request = UpdateItem {
                    table,
                    key,
                    update,
                    condition,
                    ..UpdateItem::default()
                };
                self.dynamo.update_item(now_ms, &request)?;
            }
            ItemOp::Delete { key, condition } => {
                let request = DeleteItem {
                    table,
                    key,
                    condition,
                    ..DeleteItem::default()
                };
                self.dynamo.delete_item(now_ms, &request)?;
            }
        }
        Ok(Carry::Nothing)
    }
}
