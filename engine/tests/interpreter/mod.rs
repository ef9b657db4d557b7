//! Bytes as a life of an engine: a list of steps, carried out against the commands the engine has outstanding.
//!
//! Most steps answer a command plausibly, from a table and a stream that are kept here; the other steps lie, repeat,
//! come late, answer without a question, or move the clock. The engine's contract is checked after every input, and two
//! further engines get the same inputs: one from the start, one cloned half-way. Fuzzing uses the same file.
#![allow(dead_code, reason = "fuzzing uses a part of it")]

mod dice;
mod hostile;
mod members;
mod world;

pub use dice::Dice;
use leasehold_engine::Engine;
use leasehold_engine::ids::{LeaseKey, OpId};
use leasehold_engine::input::{Body, Boot, Call, Cause, Input, Outcome};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Command, ConsumerOp, Effect, Output, TableOp};
use leasehold_engine::row::Change;
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::{BTreeMap, VecDeque};
use world::World;

/// Bytes per step. A step that needs more gets zeros.
pub const WIDTH: usize = 12;
/// The most steps of one life.
pub const MOST_STEPS: usize = 600;
/// Answers remembered to be repeated.
const MEMORY: usize = 8;
/// Ticks at one instant; after them the engine must have no further work at once.
const PATIENCE: usize = 32;

/// The reach of a life, so that a test can tell whether lives get anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    pub inputs: usize,
    pub inputs_after_end: usize,
    pub takes: usize,
    pub deliveries: usize,
    pub checkpoints: usize,
    pub losses: usize,
    pub ends: usize,
    pub stopped: bool,
}

/// Carries out a life and checks it.
///
/// # Panics
/// If the engine breaks its contract.
pub fn run(bytes: &[u8]) -> Life {
    let mut steps = bytes.chunks(WIDTH).take(MOST_STEPS);
    let mut first = Dice::new(steps.next().unwrap_or_default());
    let half = steps.len() / 2;
    let mut run = Run::new(&mut first);
    for (n, step) in steps.enumerate() {
        if n == half {
            run.clone = Some(run.engine.clone());
        }
        run.step(&mut Dice::new(step));
    }
    run.life.stopped = run.engine.is_stopped();
    run.life
}

struct Run {
    engine: Engine,
    twin: Engine,
    clone: Option<Engine>,
    world: World,
    at: Mono,
    wake_at: Mono,
    outstanding: BTreeMap<OpId, Command>,
    answered: VecDeque<OpId>,
    last_op: u64,
    life: Life,
}

impl Run {
    fn new(dice: &mut Dice<'_>) -> Self {
        let mut run = Run {
            engine: Engine::new(),
            twin: Engine::new(),
            clone: None,
            world: World::new(dice),
            at: Mono(1_000_000),
            wake_at: Mono::NEVER,
            outstanding: BTreeMap::new(),
            answered: VecDeque::new(),
            last_op: 0,
            life: Life::default(),
        };
        let rounds = 8 * usize::from(dice.byte() % 8);
        if dice.one_in(16) {
            run.tell(Body::Tick);
        }
        let boot = Boot {
            worker: "w".into(),
            incarnation: 1,
            seed: u64::from(dice.byte()),
            config: hostile::config(dice),
        };
        run.tell(Body::Boot(Box::new(boot)));
        run.behave(rounds);
        run
    }

    fn step(&mut self, dice: &mut Dice<'_>) {
        match dice.byte() {
            0..160 => self.answer(dice),
            160..200 => self.sleep(),
            200..214 => {
                self.at += Span::from_millis(u64::from(dice.byte()) * 50);
                self.tell(Body::Tick);
            }
            // The clock goes back, and comes again.
            214..220 => {
                let now = self.at;
                self.at = Mono(u64::from(dice.byte()) * 10_000);
                self.tell(Body::Tick);
                self.at = now;
            }
            220..226 => {
                let Some(op) = self.answered.get(dice.below(MEMORY)).copied() else {
                    return;
                };
                let outcome = hostile::outcome(dice);
                self.tell(Body::Done { op, outcome });
            }
            226..229 => {
                let op = OpId { life: dice.number(), n: dice.number() };
                // An answer to a command that happens to be outstanding is a plain answer.
                self.outstanding.remove(&op);
                let outcome = hostile::outcome(dice);
                self.tell(Body::Done { op, outcome });
            }
            229..238 => self.call(dice),
            238 => self.tell(Body::Call(Call::Shutdown)),
            239..247 => self.world.meddle(dice, self.engine.worker()),
            247 => self.tell(Body::Call(Call::ShutdownWithin(Span(dice.number())))),
            248 => {
                self.at = Mono(dice.number());
                self.tell(Body::Tick);
            }
            249 => {
                let config = hostile::config(dice);
                self.tell(Body::Boot(Box::new(Boot {
                    worker: String::new(),
                    incarnation: dice.number(),
                    seed: 0,
                    config,
                })));
            }
            250 => self.clone = Some(self.engine.clone()),
            251.. => self.behave(1 + dice.below(8)),
        }
    }

    /// Sleeps until the wake-up asked for; a minute if there is none.
    fn sleep(&mut self) {
        let longest = self.at + Span::from_secs(60);
        self.at = self.at.max(self.wake_at.min(longest));
        self.tell(Body::Tick);
    }

    /// Answers everything as it should be, and sleeps, some times over.
    fn behave(&mut self, rounds: usize) {
        for _ in 0..rounds {
            // A command may follow from an answer at once; a few are enough.
            for _ in 0..4 {
                for op in self.outstanding.keys().copied().collect::<Vec<_>>() {
                    self.answer_with(op, |world, command| world.perform(command, &mut Dice::new(&[])));
                }
            }
            self.sleep();
        }
    }

    fn answer(&mut self, dice: &mut Dice<'_>) {
        let count = self.outstanding.len().max(1);
        let Some(op) = self.outstanding.keys().nth(dice.below(count)).copied() else {
            return self.sleep();
        };
        self.at += Span::from_millis(u64::from(dice.byte() % 64));
        let how = dice.byte();
        self.answer_with(op, |world, command| match how {
            0..168 => world.perform(command, dice),
            // Executed all the same, sooner or later.
            168..190 => {
                world.perform(command, dice);
                Outcome::Unknown(Cause::Timeout)
            }
            190..205 => Outcome::Unknown(Cause::Network),
            205..215 => Outcome::NotSent(Cause::Throttled),
            _ => hostile::outcome(dice),
        });
    }

    fn answer_with(&mut self, op: OpId, outcome: impl FnOnce(&mut World, &Command) -> Outcome) {
        let Some(command) = self.outstanding.remove(&op) else {
            return;
        };
        self.answered.push_front(op);
        self.answered.truncate(MEMORY);
        let outcome = outcome(&mut self.world, &command);
        self.tell(Body::Done { op, outcome });
    }

    fn call(&mut self, dice: &mut Dice<'_>) {
        let held = self.engine.held().nth(dice.below(4));
        let (mut lease, mut token) = match held {
            Some(held) => (held.lease.clone(), held.token),
            None => (hostile::key(dice), hostile::token(dice)),
        };
        if dice.one_in(8) {
            lease = hostile::key(dice);
        }
        if dice.one_in(8) {
            token = hostile::token(dice);
        }
        let call = match (dice.below(8), self.world.kept(dice)) {
            (0 | 1, _) => Call::Checkpoint { lease, token },
            (2, _) => Call::Pause { lease },
            (3, _) => Call::Resume { lease },
            (5, Some((lease, batch))) => Call::GivenBack { lease, token, batch, detail: String::new() },
            (4, Some((lease, batch))) => Call::Acknowledged { lease, token, batch },
            (4, None) => Call::AddStream(hostile::stream(dice)),
            (5, None) => Call::RemoveStream(hostile::stream(dice).id),
            (6, _) if dice.one_in(2) => Call::RuntimeRuns,
            (6, _) => Call::RuntimeBlocked(Span::from_secs(u64::from(dice.byte()))),
            _ => {
                let through = self.world.position(&lease, dice);
                Call::Processed { lease, token, through }
            }
        };
        self.tell(Body::Call(call));
    }

    /// Feeds an input, and ticks for as long as the engine has more to do at once.
    fn tell(&mut self, body: Body) {
        self.feed(body);
        for _ in 0..PATIENCE {
            // At the end of time, everything is due at once.
            if self.wake_at > self.at || self.at >= Mono::NEVER - Span(1) {
                return;
            }
            self.feed(Body::Tick);
        }
        panic!("asks to be woken at {} at {}, for ever", self.wake_at.0, self.at.0);
    }

    fn feed(&mut self, body: Body) {
        let input = Input { at: self.at, wall: Wall((self.at.0 / 1_000) as i64), body };
        let allowed = allowance(&input.body, self.world.leases());
        let over = self.engine.is_stopped();
        let (outputs, wake_at) = drain(&mut self.engine, input.clone());
        for (name, other) in [("a twin", Some(&mut self.twin)), ("a clone", self.clone.as_mut())] {
            if let Some(other) = other {
                let again = drain(other, input.clone());
                assert_eq!(again, (outputs.clone(), wake_at), "{name} differs on {input:?}");
            }
        }
        assert!(
            outputs.len() <= allowed,
            "{} outputs, at most {allowed} expected, to {input:?}: {outputs:?}",
            outputs.len()
        );
        if over {
            let asks = outputs.iter().any(|output| matches!(output, Output::Do(_)));
            assert!(!asks, "a command after the end, to {input:?}: {outputs:?}");
            assert_eq!(wake_at, Mono::NEVER, "a wish to be woken after the end");
            assert!(self.engine.is_stopped(), "up again after the end, by {input:?}");
            self.life.inputs_after_end += 1;
        }
        self.life.inputs += 1;
        self.wake_at = wake_at;
        for output in outputs {
            match output {
                Output::Do(command) => self.issued(command),
                Output::Tell(notice) => self.told(&notice),
            }
        }
        self.check_lanes();
        assert_eq!(self.engine.unanswered(), self.outstanding.len());
        let most = 8 + 8 * self.world.leases();
        assert!(
            self.outstanding.len() <= most,
            "{} commands without an answer at {}: {:?}",
            self.outstanding.len(),
            self.at.0,
            self.outstanding
        );
    }

    fn issued(&mut self, command: Command) {
        assert!(
            command.op.life == 1 && command.op.n > self.last_op,
            "an id of a former command: {command:?}"
        );
        self.last_op = command.op.n;
        if let Effect::Consumer(ConsumerOp::Deliver { .. }) = command.effect {
            self.life.deliveries += 1;
        }
        self.outstanding.insert(command.op, command);
    }

    fn told(&mut self, notice: &Notice) {
        match notice {
            Notice::Took { .. } => self.life.takes += 1,
            Notice::Checkpointed { .. } => self.life.checkpoints += 1,
            Notice::Lost { .. } => self.life.losses += 1,
            Notice::Ended { .. } => self.life.ends += 1,
            _ => {}
        }
    }

    /// At most one guarded write of a held lease, and one operation on its handler, without an answer.
    fn check_lanes(&self) {
        let mut lanes: BTreeMap<(&str, &LeaseKey), &Command> = BTreeMap::new();
        for command in self.outstanding.values() {
            if let Some(lane) = lane(&command.effect) {
                let earlier = lanes.insert(lane, command);
                assert_eq!(earlier, None, "a second one on a lane: {command:?}");
            }
        }
    }
}

/// The lane of a command, if the command runs on a lane.
fn lane(effect: &Effect) -> Option<(&'static str, &LeaseKey)> {
    match effect {
        // Written beside the lanes. A claim concerns another worker's lease: if the lease expires meanwhile, the worker
        // takes the lease, and the guards of both writes let only one succeed.
        Effect::Table(TableOp::Write(
            Change::Create(_)
            | Change::Claim { .. }
            | Change::SetRange { .. }
            | Change::Weigh { .. }
            | Change::Reset { .. }
            | Change::Name(_)
            | Change::Delete { .. }
            | Change::Forget { .. },
        )) => None,
        Effect::Table(TableOp::Write(change)) => Some(("write", change.key())),
        Effect::Consumer(
            ConsumerOp::Open { lease, .. }
            | ConsumerOp::Deliver { lease, .. }
            | ConsumerOp::DeliverOne { lease, .. }
            | ConsumerOp::SetAside { lease, .. }
            | ConsumerOp::Flush { lease, .. }
            | ConsumerOp::Close { lease, .. },
        ) => Some(("application", lease)),
        Effect::Table(_) | Effect::Stream(_) | Effect::StreamOf(..) => None,
        Effect::Consumer(ConsumerOp::Abort { .. } | ConsumerOp::TimeOut { .. }) => None,
    }
}

/// The most outputs an input may have: a fixed number for each lease, and for each part that the input brings.
fn allowance(body: &Body, leases: usize) -> usize {
    let brought = match body {
        Body::Done { outcome, .. } => hostile::size(outcome),
        Body::Boot(_) | Body::Tick | Body::Call(_) => 0,
    };
    16 + 8 * (leases + brought)
}

fn drain(engine: &mut Engine, input: Input) -> (Vec<Output>, Mono) {
    let outbox = engine.handle(input);
    let wake_at = outbox.wake_at();
    (outbox.collect(), wake_at)
}
