//! The fate of a request: whether and when the request reaches the service, and its worker's outcome.

use super::ask::{Request, table_ask};
use super::line;
use super::stream::{Claimed, StreamRequest, stream_no, stream_request};
use super::{Flight, Net, Struck};
use crate::draws::Roll;
use crate::faults::{Chance, Cut, Deed, Direction, Fate, Landing, Reach, Replica, Site, Taken};
use crate::oracles::fact::{Ask, Owner};
use crate::oracles::{Fact, ShardNo, Time};
use crate::peers;
use crate::recording::RequestNo;
use crate::streams::StreamNo;
use crate::world::chances::{About, Chances, deed, is_spared};
use crate::world::context::Context;
use crate::world::fleet::Fleet;
use crate::world::fleet::worker::Adapter;
use crate::world::heap::What;
use crate::world::services::Services;
use crate::world::services::stream::Carry;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Cause, Outcome, Refusal, Why};
use leasehold_engine::output::{Command, Effect, StreamOp};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::Mono;

/// The longest wait of a worker in any world, whatever an engine requests.
const LONGEST_WAIT_US: u64 = 120_000_000;

/// A request before its sending.
struct Letter {
    op: OpId,
    give_up: Mono,
    request: Request,
    ask: Ask,
    about: Option<ShardNo>,
}

/// A request from the view of faults.
struct Sent {
    w: usize,
    asked: Option<RequestNo>,
    site: Site,
    of_table: bool,
    /// The stream of the request.
    stream: Option<StreamNo>,
    /// The ordinary times of the request's arrival, of its answer, and of the worker's giving up.
    there: Time,
    back: Time,
    give_up: Time,
}

impl Net {
    /// Sends a worker's command to a service.
    pub(in crate::world) fn issue(
        &mut self, cx: &mut Context, (fleet, services, chances): (&mut Fleet, &Services, &mut Chances),
        w: usize, command: Command,
    ) {
        let Command { op, give_up, effect } = command;
        let worker = fleet.worker(w);
        let (request, ask, about, guard, leaves) = match effect {
            Effect::Table(table_op) => {
                let (ask, about, guard, leaves) = table_ask(&table_op);
                (Request::Table(table_op), ask, about, guard, leaves)
            }
            Effect::Stream(stream_op) => stream_ask(cx, worker.adapter(), None, stream_op),
            Effect::StreamOf(id, stream_op) => stream_ask(cx, worker.adapter(), Some(&id), stream_op),
            Effect::Consumer(_) => {
                debug_assert!(false, "the application has no network");
                return;
            }
        };
        if worker.is_ours() {
            cx.fact(Fact::Asked {
                life: worker.life(),
                ask,
                about,
                op: op.n,
                guard,
                leaves,
                local: worker.clock().mono(cx.now()),
            });
            if let (Some(shard), Request::Stream(StreamRequest::Records { limit, .. })) = (about, &request) {
                cx.fact(Fact::ReadSent { life: worker.life(), shard, op: op.n, limit: *limit });
            }
        }
        if let (Ask::NextEvent, Some(shard)) = (ask, about) {
            fleet.adapter_mut(w).take_subscription(shard);
        }
        let letter = Letter { op, give_up, request, ask, about };
        self.send(cx, (fleet, services, chances), w, letter);
    }

    /// Sends a foreign program's request to the table.
    pub(in crate::world) fn issue_item(
        &mut self, cx: &mut Context, (fleet, services, chances): (&mut Fleet, &Services, &mut Chances),
        w: usize, op: OpId, request: peers::Request,
    ) {
        let (ask, about) = request.ask(services.format());
        let letter = Letter { op, give_up: Mono::NEVER, request: Request::Item(request), ask, about };
        self.send(cx, (fleet, services, chances), w, letter);
    }

    fn send(
        &mut self, cx: &mut Context, (fleet, services, chances): (&mut Fleet, &Services, &mut Chances),
        w: usize, letter: Letter,
    ) {
        let Letter { op, request, ask, .. } = letter;
        let now = cx.now();
        let site = fleet.site(w, deed(ask), letter.about);
        let worker = fleet.worker(w);
        let (life, generation) = (worker.life(), worker.generation());
        let limit = now + LONGEST_WAIT_US;
        let give_up = match letter.give_up {
            Mono::NEVER => limit,
            at => worker.clock().when(at).clamp(now, limit),
        };
        let mut roll = cx.draws().roll("call", site.key());
        let (there, mut back) = cx.plan().faults.call.plain(&mut roll, now);
        if ask == Ask::ScanPage {
            back += cx.plan().faults.table.slowness(&mut roll);
        }
        let sent = Sent {
            w,
            stream: request.stream(cx.names().streams()),
            asked: Some((life, op.n, letter.about)),
            site,
            of_table: matches!(request, Request::Table(_) | Request::Item(_)),
            there,
            back,
            give_up,
        };
        let cut = sent.subscription_fault(cx, ask);
        let (fate, struck) = match (&request, &cut) {
            (Request::Gone, _) => {
                let landing = Landing::NotSent(now + 1);
                let reach = Reach::Never;
                (Fate { reach, landing }, Struck::default())
            }
            (_, Some((fate, _))) => (*fate, Struck::default()),
            _ => sent.fate(cx, (fleet, services, chances), &mut roll),
        };
        let (answer_at, landing) = landing(fate, give_up);
        let comes_by_itself =
            ask == Ask::NextEvent && cut.is_none() && matches!(landing, Landing::Answer { .. });
        let answer_at = if comes_by_itself { give_up } else { answer_at };
        let outcome = cut.and_then(|(_, outcome)| outcome).or_else(|| outcome(&request, landing));
        let over_line = ask == Ask::GetRecords && outcome.is_none() && worker.is_ours();
        let (executions, line) = (executions(fate.reach), cx.plan().faults.line);
        let flight = self.take_off(Flight {
            worker: w as u16,
            generation,
            life,
            op,
            request,
            ask,
            about: letter.about,
            answer_second: matches!(landing, Landing::Answer { second: true, .. }),
            outcome: outcome.map(|outcome| (outcome, Carry::Nothing)),
            is_over: false,
            lag: site.key(),
            struck,
            deadline: line::deadline(line, now, give_up),
            back_us: back.saturating_sub(there),
            left: 1 + executions.iter().flatten().count() as u8,
        });
        for (at, second) in executions.into_iter().zip([false, true]) {
            if let Some(at) = at {
                cx.push(at, What::Execute { flight, second });
            }
        }
        cx.push(answer_at, line::what_comes(line, over_line, flight));
    }

    /// Answers an operation between the adapter and the application, without a network.
    pub(in crate::world) fn answer_locally(
        &mut self, cx: &mut Context, fleet: &Fleet, w: usize, op: OpId, outcome: Outcome,
    ) {
        let worker = fleet.worker(w);
        let flight = self.take_off(Flight {
            worker: w as u16,
            generation: worker.generation(),
            life: worker.life(),
            op,
            request: Request::Gone,
            ask: Ask::Setup,
            about: None,
            answer_second: false,
            outcome: Some((outcome, Carry::Nothing)),
            lag: 0,
            struck: Struck::default(),
            is_over: false,
            deadline: 0,
            back_us: 0,
            left: 1,
        });
        cx.push(cx.now() + 1, What::Answer { flight });
    }
}

impl Sent {
    /// The way of the request, and the faults besides changes of its way.
    fn fate(
        &self, cx: &mut Context, (fleet, services, chances): (&Fleet, &Services, &mut Chances),
        roll: &mut Roll,
    ) -> (Fate, Struck) {
        let (w, now) = (self.w, cx.now());
        let mut struck = Struck::default();
        let fate = if chances.is_cut_off_for_ever(w) {
            cx.fault("cut-off", Some(w), self.asked);
            Fate::silent(Reach::Never)
        } else if let Some(fate) = self.trouble(cx) {
            fate
        } else if cx.is_healed() {
            Fate::plain(self.there, self.back)
        } else if self.of_table && !chances.reaches_table(now, w) {
            cx.fault("outage-now", Some(w), self.asked);
            Fate::silent(Reach::Never)
        } else if let Some(fate) = self.outage(cx) {
            fate
        } else {
            let owner = || owner_of(cx, fleet, services, self.site.shard).is_some();
            let owned = self.site.deed == Deed::Take && owner();
            let within_ms = cx.plan().config.scan_interval().as_millis() as i64;
            let turns = |shard| services.is_turning(now, shard, within_ms);
            let turns = self.site.shard.is_some_and(turns);
            let stream = self.stream.filter(|_| self.site.deed == Deed::List);
            let listed = stream.and_then(|stream| services.some_ended(stream));
            let ended = self.site.shard.filter(|shard| services.has_ended(*shard));
            let about = About::new(owned, turns, listed.or(ended));
            struck.end_claimed =
                chances.claims_end_again(cx, self.site, ended.is_some()).then_some(Claimed::again());
            let hits = chances.of_call(cx, self.site, roll, self.back - now, about);
            self.apply(cx, (fleet, services, &mut *chances), &hits, &mut struck);
            struck.replica = chances.replica_of(now, self.site);
            let way = hits.iter().find_map(|&chance| Fate::by(chance, self.there, self.back, self.give_up));
            way.unwrap_or(Fate::plain(self.there, self.back))
        };
        (fate, struck)
    }

    /// The way of a call for a subscription, or of the wait for an event, under a fault of fan-out; and the worker's outcome, if the
    /// fault gives one. These faults spare no foreign program: a subscriber of KCL recovers from each of them.
    fn subscription_fault(&self, cx: &mut Context, ask: Ask) -> Option<(Fate, Option<Outcome>)> {
        let is_of_subscription = matches!(ask, Ask::Subscribe | Ask::NextEvent);
        if !is_of_subscription || cx.is_healed() {
            return None;
        }
        let refused = |why, detail: &str| {
            Some(Outcome::Refused(Refusal { why, current: None, detail: detail.to_owned() }))
        };
        let never = |at| Fate { reach: Reach::Never, landing: Landing::Answer { at, second: false } };
        if ask == Ask::Subscribe {
            let (mark, why, detail) = match cx.plan().faults.fan_out.refusal(cx.now())? {
                Taken::Place => {
                    ("place-taken", Why::InUse, "Another active subscription exists for this consumer.")
                }
                Taken::Permission => ("subscription-denied", Why::Denied, "You may not subscribe."),
            };
            cx.fault(mark, Some(self.w), self.asked);
            return Some((never(self.back), refused(why, detail)));
        }
        let mut roll = cx.draws().roll("subscription", self.site.key());
        let cut = cx.plan().faults.fan_out.cut(&mut roll)?;
        let at = self.back + roll.below(5_000_000);
        let (mark, fate, outcome) = match cut {
            Cut::Broken => ("subscription-broken", never(at), Some(Outcome::Unknown(Cause::Network))),
            Cut::Over => ("subscription-over", never(at), refused(Why::Expired, "The subscription is over.")),
            Cut::Silent => ("subscription-silent", Fate::silent(Reach::Never), None),
        };
        cx.fault(mark, Some(self.w), self.asked);
        Some((fate, outcome))
    }

    /// The way of the request if its stream is in trouble.
    fn trouble(&self, cx: &mut Context) -> Option<Fate> {
        let several = &cx.plan().faults.several;
        let trouble = several.trouble(self.stream?, cx.now(), cx.is_healed())?;
        let (fate, family) = (trouble.fate(self.there, self.back)?, trouble.family());
        cx.fault(family, Some(self.w), self.asked);
        Some(fate)
    }

    /// The way of the request if its worker is cut off from the service.
    fn outage(&self, cx: &mut Context) -> Option<Fate> {
        let now = cx.now();
        if is_spared(cx, self.w) {
            return None;
        }
        let outage = cx.plan().faults.outage.outages.iter().find(|outage| {
            outage.worker as usize == self.w
                && outage.from <= now
                && now < outage.until
                && (if self.of_table { outage.table } else { outage.stream })
        })?;
        let (mark, fate) = match (outage.direction, outage.fast) {
            (Direction::Requests, true) => {
                ("outage-refused", Fate { reach: Reach::Never, landing: Landing::NotSent(self.back) })
            }
            (Direction::Requests, false) => ("outage-requests", Fate::silent(Reach::Never)),
            (Direction::Answers, _) => ("outage-answers", Fate::silent(Reach::Once(self.there))),
        };
        cx.fault(mark, Some(self.w), self.asked);
        Some(fate)
    }

    /// Begins the faults besides changes of a request's way.
    fn apply(
        &self, cx: &mut Context, (fleet, services, chances): (&Fleet, &Services, &mut Chances),
        hits: &[Chance], struck: &mut Struck,
    ) {
        let (w, now) = (self.w, cx.now());
        let (worker, generation) = (w as u16, fleet.worker(w).generation());
        for &chance in hits {
            cx.fault(chance.family(), Some(w), self.asked);
            struck.note(chance);
            match chance {
                Chance::Replica { for_us, shows, says } => {
                    if let Some(shard) = self.site.shard {
                        chances.answer_by(now, self.site, for_us, Replica { shard, shows, says });
                    }
                }
                Chance::PartialList { shard, for_us } => {
                    chances.answer_by(now, self.site, for_us, Replica::that_forgot(shard));
                }
                Chance::EndClaimed { for_us, .. } => chances.claim_end(now, self.site, for_us),
                Chance::OtherMoves { after_us, gap_us, pick } => {
                    if let Some(other) = fleet.other(pick) {
                        let what = What::Stop {
                            worker: other as u16,
                            generation: fleet.worker(other).generation(),
                            gap_us,
                        };
                        cx.push(now.saturating_add(after_us), what);
                    }
                }
                Chance::Stop { after_us, gap_us } => {
                    let what = What::Stop { worker, generation, gap_us };
                    cx.push(now.saturating_add(after_us), what);
                }
                Chance::HandOver { after_us, cut_us, to } => {
                    if let Some((_, _, Some(shard))) = self.asked {
                        if let Some(victim) = owner_of(cx, fleet, services, Some(shard)) {
                            chances.cut_off(now, victim, cut_us);
                        }
                        cx.push(now.saturating_add(after_us), What::HandOver { shard, to });
                    }
                }
                // The request itself still arrives.
                Chance::Cut { for_us } => chances.cut_off(now, w, for_us),
                Chance::Crash { after_us, down_us } => {
                    let what = What::Crash { worker, generation, down_us, loops: 0 };
                    cx.push(now.saturating_add(after_us), what);
                }
                _ => {}
            }
        }
    }
}

impl Struck {
    /// Notes a fault for the time of the answer.
    fn note(&mut self, chance: Chance) {
        match chance {
            Chance::Stale { by_us } => self.stale_us = by_us,
            Chance::Empty => self.empty = true,
            Chance::Refused => self.refused = true,
            Chance::EndClaimed { named, for_us } => self.end_claimed = Some(Claimed::new(named, for_us)),
            Chance::Misread { what } => self.misread = Some(what),
            Chance::Wrong { says } => self.wrong = Some(says),
            Chance::Pause { for_us } | Chance::OtherDawdles { for_us } => self.pause_us = for_us,
            Chance::WrongFirstLook => self.wrong_first_look = true,
            _ => {}
        }
    }
}

/// The request of an operation on a stream.
fn stream_ask(
    cx: &Context, adapter: &Adapter, id: Option<&StreamId>, op: StreamOp,
) -> (Request, Ask, Option<ShardNo>, Option<u64>, Option<u64>) {
    let streams = cx.names().streams();
    let stream = stream_no(streams, id);
    let (request, ask, about) = stream_request(adapter, (streams, stream), op);
    (request.map_or(Request::Gone, Request::Stream), ask, about, None, None)
}

/// The times of a request's executions.
fn executions(reach: Reach) -> [Option<Time>; 2] {
    match reach {
        Reach::Never => [None, None],
        Reach::Once(at) => [Some(at), None],
        Reach::Twice(first, again) => [Some(first), Some(again)],
    }
}

/// The worker's outcome and its time: no later than the worker's giving up.
fn landing(fate: Fate, give_up: Time) -> (Time, Landing) {
    match fate.landing {
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
    }
}

/// The outcome of a request, unless the service itself answers.
fn outcome(request: &Request, landing: Landing) -> Option<Outcome> {
    match (request, landing) {
        (Request::Gone, _) => {
            let detail = "there is no such iterator or page token".into();
            Some(Outcome::Refused(Refusal { why: Why::Gone, current: None, detail }))
        }
        (_, Landing::Answer { .. }) => None,
        (_, Landing::Throttled(_)) => Some(Outcome::NotSent(Cause::Throttled)),
        (_, Landing::NotSent(_)) => Some(Outcome::NotSent(Cause::Network)),
        (_, Landing::ServerError(_)) => Some(Outcome::Unknown(Cause::Server)),
        (_, Landing::Broken(_)) => Some(Outcome::Unknown(Cause::Network)),
        (_, Landing::Garbled(_)) => Some(Outcome::Unknown(Cause::Garbled)),
        (_, Landing::Silence) => Some(Outcome::Unknown(Cause::Timeout)),
    }
}

/// The worker whose present life owns a lease, by its row.
fn owner_of(cx: &Context, fleet: &Fleet, services: &Services, shard: Option<ShardNo>) -> Option<usize> {
    match services.owner_of(cx, shard)? {
        Owner::Life(life) => fleet.of_life(life),
        Owner::Stranger => None,
    }
}
