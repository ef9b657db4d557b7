//! The network: requests under way to a service and back, with every fate.
//!
//! [`ask`] says the kind of a request, [`stream`] the kind of a request to the stream; [`send`] decides the fate of a
//! request, [`line`] the time of its answer; [`readers`] marks who reads a shard after whom. This file executes and
//! answers requests.

pub(crate) mod ask;
mod asked_for;
mod line;
mod readers;
mod send;
pub(crate) mod stream;

use super::context::Context;
use super::fleet::Fleet;
use super::heap::What;
use super::services::Services;
use super::services::stream::{Carry, Items, Pushed, Sight, claimed_end, of_table};
use super::services::table::wall_ms;
use crate::faults::{Misread, Replica, Says};
use crate::names::shard_of;
use crate::oracles::fact::{Ask, How};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::streams::{CREATED_S, StreamNo, Streams};
use crate::world::net::stream::{Claimed, StreamRequest};
use ask::{Request, outcome_mark, rows_in, verb};
use asked_for::{AskedFor, Asker};
use leasehold_engine::fleet::FleetTableOp;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Body, Cause, Outcome, Reply, Why};
use leasehold_engine::output::{IteratorFrom, TableOp};
use leasehold_engine::row::{Change, RowRead};
use line::Line;
use readers::Readers;

/// Requests under way.
#[derive(Debug, Default)]
pub(super) struct Net {
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    checkpoints: AskedFor,
    /// The line of each worker.
    lines: Vec<Line>,
    readers: Readers,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Flight {
    worker: u16,
    generation: u32,
    life: LifeNo,
    op: OpId,
    request: Request,
    ask: Ask,
    about: Option<ShardNo>,
    /// Whether the second execution is answered.
    answer_second: bool,
    outcome: Option<(Outcome, Carry)>,
    /// The worker has the answer, or no worker waits for an answer.
    is_over: bool,
    /// The key of draws about a listing's lag.
    lag: u64,
    struck: Struck,
    /// The longest wait for an answer over a narrow line.
    deadline: Time,
    /// How long an answer is on its way.
    back_us: u64,
    /// The number of events that still refer to the flight.
    left: u8,
}

/// Chance faults of a request besides changes of its way.
#[derive(Clone, Copy, Debug, Default)]
struct Struck {
    stale_us: u64,
    empty: bool,
    /// The service refuses a write, whatever its condition is.
    refused: bool,
    /// The answer claims the end of the shard.
    end_claimed: Option<Claimed>,
    /// The error in the answer about the shard.
    misread: Option<Misread>,
    wrong_first_look: bool,
    pause_us: u64,
    /// The replica that answers, if late or partial.
    replica: Option<Replica>,
    /// The answer's false claim about the table or the stream.
    wrong: Option<Says>,
}

/// An answer that has reached its worker.
#[derive(Debug)]
pub(super) struct Answer {
    w: usize,
    done: Body,
    items: Option<Items>,
    only_read: bool,
}

impl Answer {
    /// The worker, its input, the items for a foreign program, and whether the input answers a read of the stream.
    #[inline]
    pub(super) fn into_parts(self) -> (usize, Body, Option<Items>, bool) {
        (self.w, self.done, self.items, self.only_read)
    }
}

impl Net {
    fn take_off(&mut self, flight: Flight) -> u32 {
        if let Some(free) = self.free.pop() {
            self.flights[free as usize] = Some(flight);
            return free;
        }
        self.flights.push(Some(flight));
        (self.flights.len() - 1) as u32
    }

    /// Puts a flight back, unless no event refers to the flight any more.
    fn land(&mut self, id: u32, mut flight: Flight) {
        flight.left -= 1;
        if flight.left == 0 {
            self.free.push(id);
        } else {
            self.flights[id as usize] = Some(flight);
        }
    }

    /// A service executes a request.
    pub(super) fn execute(&mut self, cx: &mut Context, services: &mut Services, id: u32, second: bool) {
        let Some(mut flight) = self.flights[id as usize].take() else {
            return;
        };
        if let Some(at) = flight.awaits_event(cx, services) {
            flight.left += 1;
            cx.push(at, What::Execute { flight: id, second });
            return self.land(id, flight);
        }
        let (outcome, carry) = flight.run(cx, services);
        if let Some(misread) = flight.struck.misread.filter(|_| !cx.is_healed()) {
            services.note_misread(cx, misread, flight.about);
        }
        if let (Request::Table(TableOp::Write(change)), Outcome::Applied(_)) = (&flight.request, &outcome) {
            let (key, verb) = (change.key().clone(), verb(change));
            services.row_written(cx, &key, Some(verb), Some(flight.life));
            services.note_start(cx, &key, verb);
        }
        let is_told = !flight.is_over && flight.outcome.is_none() && flight.answer_second == second;
        if let (Request::Stream(StreamRequest::Iterator { shard, from }), Carry::Iterator(_, iterator)) =
            (&flight.request, &carry)
            && is_told
            && cx.names().streams().place(*shard).1 == iterator.shard
        {
            services.note_place(cx, flight.life, *shard, *from, iterator.position);
        }
        if let (Request::Stream(StreamRequest::Iterator { from, .. }), Outcome::Refused(refusal)) =
            (&flight.request, &outcome)
            && matches!(from, IteratorFrom::AtTimestamp(_))
            && refusal.why == Why::Invalid
        {
            cx.mark("future-start");
        }
        if let (Request::Table(op), Outcome::Applied(_)) = (&flight.request, &outcome) {
            match op {
                TableOp::Fleet(write) => services.fleet_written(cx, None, &write.key()),
                TableOp::FleetTable(table, FleetTableOp::Write(write)) => {
                    services.fleet_written(cx, Some(*table), &write.key());
                }
                _ => {}
            }
        }
        if let (Request::Item(request), Outcome::Applied(_)) = (&flight.request, &outcome) {
            services.item_written(cx, request, flight.life);
            // A read of the one row decides the place where a program begins.
            if let (Ask::Read, Some(shard)) = (flight.ask, flight.about) {
                let life = flight.life;
                cx.fact(Fact::Looked { life, shard });
            }
        }
        if is_told {
            flight.outcome = Some((outcome, carry));
            if flight.is_event() {
                flight.left += 1;
                cx.push(cx.now() + flight.back_us, What::Answer { flight: id });
            }
        }
        self.land(id, flight);
    }

    /// The worker of this answer, and whether its process still lives.
    pub(super) fn addressee(&self, fleet: &Fleet, id: u32) -> Option<(usize, bool)> {
        let flight = self.flights[id as usize].as_ref()?;
        let w = usize::from(flight.worker);
        Some((w, fleet.worker(w).is_process(flight.generation)))
    }

    /// The length of the worker's standstill at the arrival of this answer.
    pub(super) fn pause_on_answer(&self, id: u32) -> u64 {
        self.flights[id as usize].as_ref().map_or(0, |flight| flight.struck.pause_us)
    }

    /// No worker waits for this answer any more.
    pub(super) fn discard(&mut self, id: u32) {
        if let Some(mut flight) = self.flights[id as usize].take() {
            flight.is_over = true;
            self.land(id, flight);
        }
    }

    /// A worker learns the outcome of a request.
    pub(super) fn answer(&mut self, cx: &mut Context, fleet: &mut Fleet, id: u32) -> Option<Answer> {
        let mut flight = self.flights[id as usize].take()?;
        if flight.is_over {
            // An event has come before the end of the wait.
            self.land(id, flight);
            return None;
        }
        let (w, life, op) = (usize::from(flight.worker), flight.life, flight.op);
        let (ask, about) = (flight.ask, flight.about);
        let local = matches!(flight.request, Request::Gone);
        let streams = cx.names().streams();
        let (of, described) = of_stream(&flight.request, streams);
        let asker = flight.asker(cx, fleet);
        let listed = of.filter(|_| streams.are_several());
        // An answer before the execution of the request would be a fault of the simulator.
        let (mut outcome, carry) =
            flight.outcome.take().unwrap_or((Outcome::Unknown(Cause::Timeout), Carry::Nothing));
        flight.is_over = true;
        self.land(id, flight);
        if let Some(shard) = about.filter(|_| cx.plan().fleet.fan_out > 0) {
            let is_ours = fleet.worker(w).is_ours();
            self.readers.note(cx, is_ours, (ask, shard), &outcome);
        }
        if fleet.worker(w).is_of_others() {
            let items = match carry {
                Carry::Items(items, next) => Some((items, next)),
                carry => {
                    fleet.adapter_mut(w).keep(op.n, carry);
                    None
                }
            };
            return Some(Answer { w, done: Body::Done { op, outcome }, items, only_read: false });
        }
        let is_of_place = self.checkpoints.is_answered(asker, &outcome);
        let fetched = carry.fetched(life, &outcome).filter(|_| is_of_place);
        let facts = [fetched, claimed_end(life, about, &outcome)];
        facts.into_iter().flatten().for_each(|fact| cx.fact(fact));
        fleet.take_in(cx, w, (op, of), carry, &mut outcome);
        cx.mark(outcome_mark(ask, &outcome));
        if !local {
            show(cx, life, &outcome);
        }
        cx.fact(Fact::Answered { life, ask, about, op: op.n, how: How::of(&outcome) });
        if let Some(shard) = about.filter(|_| ask == Ask::GetRecords && was_cut(&outcome)) {
            cx.fact(Fact::ReadCut { life, shard, op: op.n });
        }
        let told = described.and_then(|stream| described_as(life, stream, &outcome));
        told.into_iter().for_each(|fact| cx.fact(fact));
        match (listed, &outcome) {
            // A read of a table beside the lease table is no scan of leases.
            (_, Outcome::Applied(Reply::Page(page))) if page.next.is_none() && ask == Ask::ScanPage => {
                cx.fact(Fact::ScanEnded { life });
            }
            (Some(stream), Outcome::Applied(Reply::Shards(page))) if !page.more => {
                cx.fact(Fact::ShardsListed { life, stream });
            }
            _ => {}
        }
        Some(Answer {
            w,
            done: Body::Done { op, outcome },
            items: None,
            only_read: matches!(ask, Ask::GetRecords | Ask::GetIterator),
        })
    }
}

/// Whether an answer was late, broken off, or garbled.
fn was_cut(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unknown(Cause::Timeout | Cause::Network | Cause::Garbled))
}

/// A new record is pushed to its subscribers within this time.
const PUSHED_US: u64 = 250_000;

impl Flight {
    fn is_event(&self) -> bool {
        matches!(self.request, Request::Stream(StreamRequest::Event { .. }))
    }

    /// When the service looks again whether an event is due, if none is due now.
    fn awaits_event(&self, cx: &mut Context, services: &mut Services) -> Option<Time> {
        let Request::Stream(StreamRequest::Event { shard, subscription }) = &self.request else {
            return None;
        };
        if self.is_over || self.outcome.is_some() {
            return None;
        }
        services.ask_stream(cx, self.lag, |source, now, names, _| {
            match source.consumers().push(now, *shard, &mut (**subscription).clone(), names) {
                Pushed::Waits(until) => Some(until.min(now + PUSHED_US)),
                Pushed::Over(..) => None,
            }
        })
    }

    fn asker(&self, cx: &Context, fleet: &Fleet) -> Asker {
        let worker = fleet.worker(usize::from(self.worker));
        Asker {
            life: self.life,
            token: self.about.and_then(|shard| worker.adapter().ownership(shard)),
            about: self.about,
            place: match &self.request {
                Request::Stream(
                    StreamRequest::Iterator { from, .. } | StreamRequest::Subscribe { from, .. },
                ) => Some(*from),
                _ => None,
            },
            misled: match &self.request {
                Request::Stream(StreamRequest::Records { shard, iterator, .. }) => {
                    cx.names().streams().place(*shard).1 != iterator.shard
                }
                _ => false,
            },
            now: worker.clock().mono(cx.now()),
            lag: cx.plan().least(|config| config.scan_interval()),
        }
    }

    fn run(&self, cx: &mut Context, services: &mut Services) -> (Outcome, Carry) {
        let (now, healed) = (cx.now(), cx.is_healed());
        let behind = self.struck.stale_us;
        let as_of = (behind > 0 && !healed).then(|| wall_ms(now.saturating_sub(behind)));
        let wrong = self.struck.wrong.filter(|_| !healed);
        match &self.request {
            Request::Table(TableOp::Write(change)) if self.struck.refused && !healed => {
                (services.refuse(change.key()), Carry::Nothing)
            }
            Request::Table(op) => {
                let outcome = wrong.and_then(|says| of_table(op, says));
                let bare_rows = cx.plan().faults.start.bare_rows;
                let execute = || match bare_rows {
                    true => services.execute(cx, &bare(op), as_of),
                    false => services.execute(cx, op, as_of),
                };
                (outcome.unwrap_or_else(execute), Carry::Nothing)
            }
            Request::Item(request) => services.execute_item(cx, request, as_of),
            Request::Stream(request) => {
                let claimed = self.struck.end_claimed.filter(|_| !healed);
                let empty = !healed && self.struck.empty || claimed.is_some_and(Claimed::brings_nothing);
                let replica = self.struck.replica.filter(|_| !healed);
                let mistaken = self.struck.wrong_first_look;
                let misread = self.struck.misread.filter(|_| !healed);
                services.ask_stream(cx, self.lag, |source, now, names, roll| match (request, wrong) {
                    (StreamRequest::Describe { stream }, Some(says)) => {
                        (source.describe_as(now, *stream, says), Carry::Nothing)
                    }
                    _ => {
                        let sight = Sight::new(roll, replica);
                        if let (StreamRequest::Iterator { shard, from }, Some(misread)) = (request, misread) {
                            return source.wrong_iterator(misread, now, *shard, *from);
                        }
                        let (mut outcome, mut carry) = request.answer(source, now, empty, names, sight);
                        if let Some(misread) = misread {
                            misread.instead_of(&mut outcome);
                            carry.misnumber(&outcome);
                        }
                        if let Some(claimed) = claimed {
                            claimed.instead_of(&mut outcome, request, source, names);
                        }
                        match mistaken {
                            true => (stream::mistaken(outcome), carry),
                            false => (outcome, carry),
                        }
                    }
                })
            }
            Request::Gone => (Outcome::NotSent(Cause::Cancelled), Carry::Nothing),
        }
    }
}

/// A row as created by a worker without knowledge of moments.
fn bare(op: &TableOp) -> TableOp {
    let mut op = op.clone();
    if let TableOp::Write(Change::Create(row)) = &mut op {
        row.began = None;
    }
    op
}

/// Tells the oracles the rows in an answer.
fn show(cx: &mut Context, life: LifeNo, outcome: &Outcome) {
    let (rows, scanned) = rows_in(outcome);
    for row in rows.iter().filter_map(RowRead::lease) {
        if let Some(shard) = shard_of(&row.key) {
            let row = cx.names().row(row);
            cx.fact(Fact::Shown { life, shard, row, scanned });
        }
    }
}

/// The listed stream, and the described stream.
fn of_stream(request: &Request, streams: Streams) -> (Option<StreamNo>, Option<StreamNo>) {
    match request {
        Request::Stream(request @ StreamRequest::List { .. }) => (Some(request.stream(streams)), None),
        Request::Stream(request @ StreamRequest::Describe { .. }) => (None, Some(request.stream(streams))),
        _ => (None, None),
    }
}

/// The answer's fact about a stream, if the answer has a creation time or denies the stream.
fn described_as(life: LifeNo, stream: StreamNo, outcome: &Outcome) -> Option<Fact> {
    let right = match outcome {
        Outcome::Applied(Reply::Stream(state)) => state.created.0.div_euclid(1_000) == CREATED_S as i64,
        Outcome::Refused(refusal) if refusal.why == Why::NotFound => false,
        _ => return None,
    };
    Some(Fact::Described { life, stream, right })
}
