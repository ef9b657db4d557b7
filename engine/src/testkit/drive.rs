//! One engine, and the answers that follow from an input at the same instant.

use crate::Engine;
use crate::ids::OpId;
use crate::input::{Body, Input, Outcome};
use crate::notice::Notice;
use crate::output::{Command, Output};
use crate::time::{Mono, Wall};
use std::collections::VecDeque;

/// Carries out the commands of an engine. A closure over a [`Command`] drops notices.
pub trait Carry {
    /// Carries out a command, and returns its outcome; absent: [`Driven::answer`] brings the outcome later, or no
    /// answer ever comes.
    fn carry(&mut self, command: Command) -> Option<Outcome>;

    /// Takes a notice. By default, it is dropped.
    fn told(&mut self, notice: Notice) {
        let _ = notice;
    }
}

impl<F: FnMut(Command) -> Option<Outcome>> Carry for F {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        self(command)
    }
}

/// Keeps all commands and notices, and answers no command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The commands, in their order.
    pub commands: Vec<Command>,
    /// The notices, in their order.
    pub notices: Vec<Notice>,
}

impl Carry for Kept {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        self.commands.push(command);
        None
    }

    fn told(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// An engine with the clocks of its last input and its next wake-up time.
#[derive(Clone, Debug)]
pub struct Driven {
    engine: Engine,
    at: Mono,
    wall: Wall,
    wake_at: Mono,
    inputs: usize,
    /// Answers that the engine was not given yet. Empty between two calls.
    answers: VecDeque<Body>,
}

/// An engine that waits for its boot record, at the beginning of both clocks.
impl Default for Driven {
    fn default() -> Self {
        Self {
            engine: Engine::new(),
            at: Mono(0),
            wall: Wall(0),
            wake_at: Mono::NEVER,
            inputs: 0,
            answers: VecDeque::new(),
        }
    }
}

impl Driven {
    /// Feeds an input, and then the answers to all following commands, at the same instant.
    ///
    /// All commands of one input are carried out before the first of their answers is fed; answers are fed in the order of
    /// their commands.
    pub fn tell(&mut self, input: Input, carry: &mut impl Carry) {
        let Input { at, wall, body } = input;
        (self.at, self.wall) = (at, wall);
        let mut next = Some(body);
        while let Some(body) = next {
            self.inputs += 1;
            let outbox = self.engine.handle(Input { at, wall, body });
            self.wake_at = outbox.wake_at();
            for output in outbox {
                match output {
                    Output::Tell(notice) => carry.told(notice),
                    Output::Do(command) => {
                        let op = command.op;
                        if let Some(outcome) = carry.carry(command) {
                            self.answers.push_back(Body::Done { op, outcome });
                        }
                    }
                }
            }
            next = self.answers.pop_front();
        }
    }

    /// Feeds the answer to a command that has none yet, at the clocks of the last input.
    pub fn answer(&mut self, op: OpId, outcome: Outcome, carry: &mut impl Carry) {
        let (at, wall) = (self.at, self.wall);
        let body = Body::Done { op, outcome };
        self.tell(Input { at, wall, body }, carry);
    }

    /// Moves both clocks to the time at which the engine asks to be woken, and feeds a tick. The clocks stand still if that time
    /// has passed, or if the engine does not ask to be woken.
    pub fn sleep(&mut self, carry: &mut impl Carry) {
        let at = match self.wake_at {
            Mono::NEVER => self.at,
            wake_at => self.at.max(wake_at),
        };
        let passed = at.since(self.at).as_millis();
        let wall = Wall(self.wall.0.saturating_add_unsigned(passed));
        let body = Body::Tick;
        self.tell(Input { at, wall, body }, carry);
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The monotonic clock of the last input.
    pub fn now(&self) -> Mono {
        self.at
    }

    /// When the engine asks to be woken; [`Mono::NEVER`] if it does not ask.
    pub fn wake_at(&self) -> Mono {
        self.wake_at
    }

    /// How many inputs the engine was given.
    pub fn inputs(&self) -> usize {
        self.inputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::input::Boot;
    use crate::testkit::Services;

    fn boot(driven: &mut Driven, carry: &mut impl Carry) {
        let boot = Boot {
            worker: "w".into(),
            incarnation: 1,
            seed: 1,
            config: Config::default().with_table("app").with_stream("orders"),
        };
        let input = Input { at: Mono(5_000), wall: Wall(7), body: Body::Boot(Box::new(boot)) };
        driven.tell(input, carry);
    }

    #[test]
    fn answers_come_at_once_and_sleep_moves_both_clocks() {
        let (mut driven, mut services) = (Driven::default(), Services::with_shards(2));
        boot(&mut driven, &mut services);
        assert!(driven.inputs() > 3 && driven.engine().unanswered() == 0);
        assert_eq!((driven.now(), driven.wall), (Mono(5_000), Wall(7)));
        let wake_at = driven.wake_at();
        driven.sleep(&mut services);
        assert_eq!(driven.now(), wake_at);
        assert_eq!(driven.wall.0 - 7, wake_at.since(Mono(5_000)).as_millis() as i64);
    }

    #[test]
    fn a_kept_command_is_answered_later() {
        let (mut driven, mut kept) = (Driven::default(), Kept::default());
        boot(&mut driven, &mut kept);
        assert_eq!((driven.inputs(), driven.engine().unanswered()), (1, kept.commands.len()));
        let mut services = Services::with_shards(1);
        for command in std::mem::take(&mut kept.commands) {
            let outcome = services.perform(&command);
            driven.answer(command.op, outcome, &mut services);
        }
        assert!(driven.inputs() > 2 && driven.engine().unanswered() == 0);
    }
}
