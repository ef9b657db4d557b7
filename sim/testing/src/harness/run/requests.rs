//! Requests on their way to a service, and answers on their way back.

use super::super::fate::{Asking, Seen};
use super::super::fault::{Micros, Time};
use super::super::host::{Host, Served};
use super::super::outbox::Sent;
use super::super::slot::Coming;
use super::{Back, Event, Run};
use tokio::sync::oneshot;

impl<H: Host> Run<'_, H> {
    /// A worker sends a request.
    pub(super) fn send(&mut self, now: Time, slot: usize, life: usize, sent: Sent<H::Request, H::Answer>) {
        let Sent { request, reply } = sent;
        let (draws, service) = (self.plan.draws, H::service(&request));
        let number = self.slots[slot].counts(service);
        // Keyed by the life and its own count: a fault of one worker shifts no latency of another.
        let key = (life as u64) << 40 | (service as u64) << 32 | number;
        let way = ["there", "back"].map(|way| (self.plan.scale.way)(draws, way, key));
        let faults = if now < self.healed() { self.faults.as_slice() } else { &[] };
        let fate = Asking { now, worker: slot, service, number, key }.fate(draws, faults, way);
        *self.stage.scene().requests.entry(fate.family).or_default() += 1;
        let told = || format!("request {number} of worker-{slot} to the {service}");
        match fate.how {
            Some(how) => self.stage.tell(|| format!("{} is {how}", told())),
            None if fate.family == "fair" => {}
            None => self.stage.tell(|| format!("{} meets {}", told(), fate.family)),
        }
        let answer = match fate.seen {
            Seen::Answer(back) => Some((reply, back)),
            Seen::Failure(after, failing) => {
                self.answers(slot, after, reply, H::failure(&request, failing));
                None
            }
            Seen::Nothing => None,
        };
        if let Some(after) = fate.lands {
            self.order += 1;
            self.events.insert((self.micros + after, self.order), Event::Arrive(slot, request, answer));
        }
    }

    /// A service executes a request and answers.
    pub(super) fn serve(&mut self, now: Time, slot: usize, request: &H::Request, reply: Back<H::Answer>) {
        let Served { answer, row } = self.host.serve(&self.stage, slot, request);
        if let Some((key, row)) = row {
            let (moved, wrong) = self.stage.judges(|judge, stream| judge.wrote(stream, now, &key, row));
            self.stage.finds(slot, wrong.into_iter().map(|what| ("rows", what)));
            if moved {
                self.checkpointed(now, slot);
            }
        }
        if let Some((reply, back)) = reply {
            self.answers(slot, back, reply, answer);
        }
    }

    /// An answer comes to its worker.
    fn answers(&mut self, slot: usize, after: Micros, reply: oneshot::Sender<H::Answer>, answer: H::Answer) {
        self.order += 1;
        let coming = Coming::Answer(reply, Box::new(answer));
        self.slots[slot].inbox.insert((self.micros + after, self.order), coming);
    }
}
