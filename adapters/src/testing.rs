//! A scripted engine, scripted ports, and services in memory, for the tests of this crate.

#[cfg(feature = "tokio-runtime")]
mod memory;
#[cfg(feature = "tokio-runtime")]
pub(crate) mod rig;

#[cfg(feature = "tokio-runtime")]
pub(crate) use memory::{How, Memory};

use crate::machine::Machine;
use crate::ports::{Port, Ports};
use crate::runtime::BoxFuture;
use leasehold_engine::config::Config;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Body, Boot, Call, Input, Outcome, Reply};
use leasehold_engine::output::{Command, Effect, Output, TableOp};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Subscriber;
use tracing::{Event, Metadata};

pub(crate) fn op(n: u64) -> OpId {
    OpId { life: 1, n }
}

pub(crate) fn boot() -> Boot {
    Boot {
        worker: "w".into(),
        incarnation: 1,
        seed: 2,
        config: Config::default().with_table("app").with_stream("orders"),
    }
}

pub(crate) fn input(at: u64, body: Body) -> Input {
    Input { at: Mono(at), wall: Wall(at as i64 / 1_000), body }
}

/// Asks for its commands at boot, for ticks as told, and stops when all is answered or at a shutdown.
#[derive(Clone, Default)]
pub(crate) struct Script {
    /// What to ask for at boot: the effect, and when to give it up.
    pub(crate) at_boot: Vec<(Effect, Span)>,
    /// Wanted ticks, from boot.
    pub(crate) ticks: Vec<Span>,
    /// Whether to stop when everything is answered and every tick was had.
    pub(crate) stop_when_done: bool,
    pub(crate) told: Arc<Mutex<Vec<Input>>>,
    pub(crate) waiting: BTreeMap<OpId, u32>,
    pub(crate) booted: Option<Mono>,
    pub(crate) stopped: bool,
}

impl Script {
    pub(crate) fn inputs(&self) -> Arc<Mutex<Vec<Input>>> {
        self.told.clone()
    }
}

impl Machine for Script {
    fn feed(&mut self, input: Input, each: &mut dyn FnMut(Output)) -> Mono {
        self.told.lock().unwrap().push(input.clone());
        match &input.body {
            Body::Boot(_) => {
                self.booted = Some(input.at);
                for (n, (effect, patience)) in (1..).zip(self.at_boot.clone()) {
                    self.waiting.insert(op(n), 0);
                    each(Output::Do(Command { op: op(n), give_up: input.at + patience, effect }));
                }
            }
            Body::Tick => {
                let since = input.at.since(self.booted.unwrap());
                self.ticks.retain(|tick| *tick > since);
            }
            Body::Done { op, outcome } => {
                *self.waiting.get_mut(op).expect("an op that was asked for") += 1;
                // Makes a flipped outcome visible in the answer.
                if matches!(outcome, Outcome::Applied(_)) {
                    each(Output::Tell(leasehold_engine::notice::Notice::Stray { what: "applied".into() }));
                }
            }
            Body::Call(Call::Shutdown) => self.stopped = true,
            Body::Call(_) => {}
        }
        if self.stop_when_done && self.ticks.is_empty() && self.waiting.values().all(|count| *count > 0) {
            self.stopped = true;
        }
        match self.ticks.first() {
            Some(tick) => self.booted.unwrap() + *tick,
            None => Mono::NEVER,
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn each_held(&self, _: &mut dyn FnMut(&leasehold_engine::Held<'_>)) {}
}

type MakeOutcome<Op> = dyn Fn(OpId, Op) -> BoxFuture<'static, Outcome> + Send + Sync;

/// A port answering by a closure. Notes the forgotten commands.
pub(crate) struct FnPort<Op> {
    pub(crate) answer: Box<MakeOutcome<Op>>,
    pub(crate) forgotten: Arc<Mutex<Vec<OpId>>>,
}

impl<Op> FnPort<Op> {
    pub(crate) fn new(
        answer: impl Fn(OpId, Op) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Box::new(answer), forgotten: Arc::default() }
    }
}

impl<Op: 'static> Port<Op> for FnPort<Op> {
    fn execute(&self, id: OpId, op: Op) -> BoxFuture<'static, Outcome> {
        (self.answer)(id, op)
    }

    fn forget(&self, id: OpId) {
        self.forgotten.lock().unwrap().push(id);
    }
}

/// The ports of a worker: this table, and a stream and a consumer that answer at once.
pub(crate) fn ports(table: impl Port<TableOp> + 'static) -> Ports {
    Ports {
        table: Arc::new(table),
        stream: Arc::new(FnPort::new(|_, _| done())),
        streams: None,
        consumer: Arc::new(FnPort::new(|_, _| done())),
    }
}

/// An answer at once.
pub(crate) fn done() -> BoxFuture<'static, Outcome> {
    Box::pin(async { Outcome::Applied(Reply::Done) })
}

/// An effect to tell commands apart by.
pub(crate) fn read(key: &str) -> Effect {
    Effect::Table(TableOp::Read { key: key.into() })
}

/// Keeps each event of the log as a level and fields.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    /// What was logged so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
