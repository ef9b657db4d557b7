//! Requests: their way to a service and back, whatever becomes of them.

use super::World;
use super::ask::{Request, outcome_mark, table_ask, verb};
use super::chances::deed;
use super::heap::What;
use super::services::stream::Carry;
use super::services::table::wall_ms;
use crate::faults::{Chance, Direction, Fate, Landing, Reach};
use crate::oracles::fact::{Ask, How};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::peers;
use crate::recording::RequestNo;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Body, Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::time::Mono;

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    worker: u16,
    generation: u32,
    life: LifeNo,
    op: OpId,
    request: Request,
    ask: Ask,
    about: Option<ShardNo>,
    /// Which execution is answered.
    answer_second: bool,
    outcome: Option<(Outcome, Carry)>,
    /// For draws about a listing's lag.
    lag: u64,
    struck: Struck,
    /// How many events still refer to it.
    left: u8,
}

/// What chance does to a request besides changing its way.
#[derive(Clone, Copy, Debug, Default)]
struct Struck {
    stale_us: u64,
    empty: bool,
    pause_us: u64,
}

/// Nobody waits longer than this in a world, whatever an engine asks for.
const LONGEST_WAIT_US: u64 = 120_000_000;

impl World {
    /// Sends a worker's command on its way.
    pub(super) fn issue(&mut self, w: usize, command: Command) {
        let Command { op, give_up, effect } = command;
        let (request, ask, about, guard, leaves) = match effect {
            Effect::Consumer(consumer_op) => return self.consume(w, op, give_up, consumer_op),
            Effect::Table(table_op) => {
                let (ask, about, guard, leaves) = table_ask(&table_op);
                (Request::Table(table_op), ask, about, guard, leaves)
            }
            Effect::Stream(stream_op) => {
                let (request, ask, about) = self.stream_request(w, stream_op);
                (request, ask, about, None, None)
            }
        };
        let worker = &self.workers[w];
        if worker.engine.is_some() {
            self.cx.fact(Fact::Asked {
                life: worker.life,
                ask,
                about,
                op: op.n,
                guard,
                leaves,
                local: worker.clock.mono(self.cx.now()),
            });
        }
        self.send(w, op, give_up, request, ask, about);
    }

    /// Sends what another program asks of the table.
    pub(super) fn issue_item(&mut self, w: usize, op: OpId, request: peers::Request) {
        let (ask, about) = request.ask(self.services.format());
        self.send(w, op, Mono::NEVER, Request::Item(request), ask, about);
    }

    fn send(
        &mut self,
        w: usize,
        op: OpId,
        give_up: Mono,
        request: Request,
        ask: Ask,
        about: Option<ShardNo>,
    ) {
        let now = self.cx.now();
        let worker = &self.workers[w];
        let (life, generation) = (worker.life, worker.generation);
        let limit = now + LONGEST_WAIT_US;
        let give_up = if give_up == Mono::NEVER {
            limit
        } else {
            worker.clock.when(give_up).clamp(now, limit)
        };
        let of_table = matches!(request, Request::Table(_) | Request::Item(_));
        let site = self.site(w, deed(ask), about);
        let mut roll = self.cx.draws().roll("call", site.key());
        let (there, mut back) = self.cx.plan().faults.call.plain(&mut roll, now);
        if ask == Ask::ScanPage {
            back += self.cx.plan().faults.table.slowness(&mut roll);
        }
        let mut struck = Struck::default();
        let asked = Some((life, op.n, about));
        let fate = if matches!(request, Request::Gone) {
            Fate {
                reach: Reach::Never,
                landing: Landing::NotSent(now + 1),
            }
        } else if self.workers[w].cut {
            self.cx.fault("cut-off", Some(w), asked);
            Fate::silent(Reach::Never)
        } else if self.cx.is_healed() {
            Fate::plain(there, back)
        } else if now < self.workers[w].cut_until && of_table {
            self.cx.fault("outage-now", Some(w), asked);
            Fate::silent(Reach::Never)
        } else if let Some(fate) = self.outage(w, asked, of_table, (there, back)) {
            fate
        } else {
            let chances = self.chances_of_call(site, &mut roll, back - now);
            self.apply_chances(w, asked, &chances, &mut struck);
            let way = chances
                .iter()
                .find_map(|&chance| Fate::by(chance, there, back, give_up));
            way.unwrap_or(Fate::plain(there, back))
        };
        let (answer_at, landing) = match fate.landing {
            Landing::Answer { at, .. }
            | Landing::Throttled(at)
            | Landing::NotSent(at)
            | Landing::ServerError(at)
            | Landing::Broken(at)
            | Landing::Garbled(at)
                if at < give_up =>
            {
                (at, fate.landing)
            }
            _ => (give_up, Landing::Silence),
        };
        let outcome = match (&request, landing) {
            (Request::Gone, _) => {
                let detail = "there is no such iterator or page token".into();
                Some(Outcome::Refused(Refusal {
                    why: Why::Gone,
                    current: None,
                    detail,
                }))
            }
            (_, Landing::Answer { .. }) => None,
            (_, Landing::Throttled(_)) => Some(Outcome::NotSent(Cause::Throttled)),
            (_, Landing::NotSent(_)) => Some(Outcome::NotSent(Cause::Network)),
            (_, Landing::ServerError(_)) => Some(Outcome::Unknown(Cause::Server)),
            (_, Landing::Broken(_)) => Some(Outcome::Unknown(Cause::Network)),
            (_, Landing::Garbled(_)) => Some(Outcome::Unknown(Cause::Garbled)),
            (_, Landing::Silence) => Some(Outcome::Unknown(Cause::Timeout)),
        };
        let answer_second = matches!(landing, Landing::Answer { second: true, .. });
        let executions = match fate.reach {
            Reach::Never => [None, None],
            Reach::Once(at) => [Some(at), None],
            Reach::Twice(first, again) => [Some(first), Some(again)],
        };
        let left = 1 + executions.iter().flatten().count() as u8;
        let flight = self.take_off(Flight {
            worker: w as u16,
            generation,
            life,
            op,
            request,
            ask,
            about,
            answer_second,
            outcome: outcome.map(|outcome| (outcome, Carry::Nothing)),
            lag: site.key(),
            struck,
            left,
        });
        for (second, at) in executions.into_iter().enumerate() {
            if let Some(at) = at {
                self.cx.push(
                    at,
                    What::Execute {
                        flight,
                        second: second == 1,
                    },
                );
            }
        }
        self.cx.push(answer_at, What::Answer { flight });
    }

    /// Something between the adapter and the application, answered without a network.
    pub(super) fn answer_locally(&mut self, w: usize, op: OpId, outcome: Outcome) {
        let worker = &self.workers[w];
        let flight = self.take_off(Flight {
            worker: w as u16,
            generation: worker.generation,
            life: worker.life,
            op,
            request: Request::Gone,
            ask: Ask::Setup,
            about: None,
            answer_second: false,
            outcome: Some((outcome, Carry::Nothing)),
            lag: 0,
            struck: Struck::default(),
            left: 1,
        });
        self.cx.push(self.cx.now() + 1, What::Answer { flight });
    }

    fn take_off(&mut self, flight: Flight) -> u32 {
        if let Some(free) = self.free_flights.pop() {
            self.flights[free as usize] = Some(flight);
            return free;
        }
        self.flights.push(Some(flight));
        (self.flights.len() - 1) as u32
    }

    /// What becomes of a request that would go there and back at these times, if its worker is cut off from the service.
    fn outage(
        &mut self,
        w: usize,
        asked: Option<RequestNo>,
        of_table: bool,
        (there, back): (Time, Time),
    ) -> Option<Fate> {
        let now = self.cx.now();
        let outage = self.cx.plan().faults.outage.outages.iter().find(|outage| {
            outage.worker as usize == w
                && outage.from <= now
                && now < outage.until
                && (if of_table { outage.table } else { outage.stream })
        })?;
        let (mark, fate) = match (outage.direction, outage.fast) {
            (Direction::Requests, true) => (
                "outage-refused",
                Fate {
                    reach: Reach::Never,
                    landing: Landing::NotSent(back),
                },
            ),
            (Direction::Requests, false) => ("outage-requests", Fate::silent(Reach::Never)),
            (Direction::Answers, _) => ("outage-answers", Fate::silent(Reach::Once(there))),
        };
        self.cx.fault(mark, Some(w), asked);
        Some(fate)
    }

    /// Begins what chance does besides changing a request's way.
    fn apply_chances(&mut self, w: usize, asked: Option<RequestNo>, chances: &[Chance], struck: &mut Struck) {
        for &chance in chances {
            self.cx.fault(chance.family(), Some(w), asked);
            match chance {
                Chance::Stale { by_us } => struck.stale_us = by_us,
                Chance::Empty => struck.empty = true,
                Chance::Pause { for_us } => struck.pause_us = for_us,
                Chance::Stop { after_us, gap_us } => {
                    let generation = self.workers[w].generation;
                    self.cx.push(
                        self.cx.now().saturating_add(after_us),
                        What::Stop {
                            worker: w as u16,
                            generation,
                            gap_us,
                        },
                    );
                }
                Chance::HandOver { after_us, cut_us, to } => {
                    if let Some((_, _, Some(shard))) = asked {
                        if let Some(victim) = self.owner_of(Some(shard)) {
                            self.cut_off(victim, cut_us);
                        }
                        let at = self.cx.now().saturating_add(after_us);
                        self.cx.push(at, What::HandOver { shard, to });
                    }
                }
                // The request itself still gets through.
                Chance::Cut { for_us } => self.cut_off(w, for_us),
                Chance::Crash { after_us, down_us } => {
                    let generation = self.workers[w].generation;
                    self.cx.push(
                        self.cx.now().saturating_add(after_us),
                        What::Crash {
                            worker: w as u16,
                            generation,
                            down_us,
                            loops: 0,
                        },
                    );
                }
                _ => {}
            }
        }
    }

    /// From now on a worker does not reach the table, for so long.
    pub(super) fn cut_off(&mut self, w: usize, for_us: u64) {
        let until = self.cx.now().saturating_add(for_us);
        let worker = &mut self.workers[w];
        worker.cut_until = worker.cut_until.max(until);
    }

    /// A service executes a request.
    pub(super) fn execute(&mut self, id: u32, second: bool) {
        let Some(mut flight) = self.flights[id as usize].take() else {
            return;
        };
        let (outcome, carry) = self.run_request(&mut flight);
        if let (Request::Table(TableOp::Write(change)), Outcome::Applied(_)) = (&flight.request, &outcome) {
            let (key, verb) = (change.key().clone(), verb(change));
            self.services
                .row_written(&mut self.cx, &key, Some(verb), Some(flight.life));
        }
        if let (Request::Item(request), Outcome::Applied(_)) = (&flight.request, &outcome) {
            self.services.item_written(&mut self.cx, request, flight.life);
        }
        if flight.outcome.is_none() && flight.answer_second == second {
            flight.outcome = Some((outcome, carry));
        }
        self.land(id, flight);
    }

    fn run_request(&mut self, flight: &mut Flight) -> (Outcome, Carry) {
        let now = self.cx.now();
        let healed = self.cx.is_healed();
        match &flight.request {
            Request::Table(op) => {
                let behind = flight.struck.stale_us;
                let as_of = (behind > 0 && !healed).then(|| wall_ms(now.saturating_sub(behind)));
                (self.services.execute(&self.cx, op, as_of), Carry::Nothing)
            }
            Request::Item(request) => {
                let behind = flight.struck.stale_us;
                let as_of = (behind > 0 && !healed).then(|| wall_ms(now.saturating_sub(behind)));
                self.services.execute_item(&self.cx, request, as_of)
            }
            Request::DescribeStream => (self.services.describe(&self.cx), Carry::Nothing),
            Request::List { filter, token } => {
                let token = token.as_deref();
                self.services.list(&mut self.cx, *filter, token, flight.lag)
            }
            Request::Iterator { shard, from } => self.services.iterator(&self.cx, *shard, *from),
            Request::Records {
                shard,
                iterator,
                limit,
            } => {
                let empty = flight.struck.empty && !healed;
                self.services
                    .fetch(&mut self.cx, *shard, *iterator, *limit, empty)
            }
            Request::Gone => (Outcome::NotSent(Cause::Cancelled), Carry::Nothing),
        }
    }

    /// Puts a flight back, unless nothing refers to it any more.
    fn land(&mut self, id: u32, mut flight: Flight) {
        flight.left -= 1;
        if flight.left == 0 {
            self.free_flights.push(id);
        } else {
            self.flights[id as usize] = Some(flight);
        }
    }

    /// Whose answer this is, and whether that process still lives.
    pub(super) fn addressee(&self, id: u32) -> Option<(usize, bool)> {
        let flight = self.flights[id as usize].as_ref()?;
        let worker = &self.workers[flight.worker as usize];
        Some((
            flight.worker as usize,
            worker.lives() && worker.generation == flight.generation,
        ))
    }

    /// For how long the worker stands still when this answer arrives.
    pub(super) fn pause_on_answer(&self, id: u32) -> u64 {
        self.flights[id as usize]
            .as_ref()
            .map_or(0, |flight| flight.struck.pause_us)
    }

    /// Nobody waits for this answer any more.
    pub(super) fn discard(&mut self, id: u32) {
        if let Some(flight) = self.flights[id as usize].take() {
            self.land(id, flight);
        }
    }

    /// A worker learns how a request ended.
    pub(super) fn answer(&mut self, id: u32) {
        let Some(mut flight) = self.flights[id as usize].take() else {
            return;
        };
        let (w, life, op, ask, about) = (
            flight.worker as usize,
            flight.life,
            flight.op,
            flight.ask,
            flight.about,
        );
        let local = matches!(flight.request, Request::Gone);
        // An answer that is told before the service has executed the request would be the harness's own fault.
        let (outcome, carry) = flight
            .outcome
            .take()
            .unwrap_or((Outcome::Unknown(Cause::Timeout), Carry::Nothing));
        self.land(id, flight);
        if self.workers[w].peer.is_some() {
            return self.answer_original(w, op, outcome, carry);
        }
        if let Some(fact) = carry.fetched(life, &outcome) {
            self.cx.fact(fact);
        }
        self.workers[w].adapter.keep(op.n, carry);
        self.cx.mark(outcome_mark(ask, &outcome));
        if !local {
            self.show(life, &outcome);
        }
        let how = match outcome {
            Outcome::Applied(_) => How::Applied,
            Outcome::Refused(_) => How::Refused,
            Outcome::NotSent(_) => How::NotSent,
            Outcome::Unknown(_) => How::Unknown,
        };
        self.cx.fact(Fact::Answered {
            life,
            ask,
            about,
            op: op.n,
            how,
        });
        if let Outcome::Applied(Reply::Page(page)) = &outcome
            && page.next.is_none()
        {
            self.cx.fact(Fact::ScanEnded { life });
        }
        self.only_read = matches!(ask, Ask::GetRecords | Ask::GetIterator);
        self.done(w, op, outcome);
    }

    pub(super) fn done(&mut self, w: usize, op: OpId, outcome: Outcome) {
        self.handle(w, Body::Done { op, outcome });
    }
}
