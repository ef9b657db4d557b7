//! The line of each worker, over which answers with records come: the answers share the line evenly, like connections.
//!
//! At each moment, every answer gets the same number of bytes. So a single count of bytes serves all answers: the bytes
//! of an imaginary answer present from the beginning. An answer is complete when the count has grown by the answer's
//! length since the answer's beginning.

use super::{Flight, Net};
use crate::faults::LineFaults;
use crate::oracles::{Fact, Time};
use crate::world::context::Context;
use crate::world::fleet::Fleet;
use crate::world::heap::{Moment, What};
use crate::world::services::stream::Carry;
use leasehold_engine::input::{Cause, Outcome, Reply};
use std::collections::BTreeMap;

/// The patience for an answer whose bytes keep coming, as a multiple of the patience for an answer without a byte.
const PROGRESS: u64 = 20;

/// A byte in a microsecond, at one byte a second.
const BYTE: u128 = 1_000_000;

/// The answers on their way over one line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The bytes of an imaginary answer since the beginning, in millionths of a byte.
    count: u128,
    at: Time,
    /// By the count at their completion, and the number from their beginning.
    answers: BTreeMap<(u128, u64), u32>,
    begun: u64,
    version: u64,
}

impl Line {
    fn advance(&mut self, now: Time, line: LineFaults) {
        let span = u128::from(now.saturating_sub(self.at));
        if let answers @ 1.. = self.answers.len() as u128 {
            self.count += span * u128::from(line.bytes_per_second) / answers;
        }
        self.at = now;
    }

    /// An answer of this many bytes begins. Returns its number.
    fn begin(&mut self, now: Time, line: LineFaults, flight: u32, bytes: u64) -> u64 {
        self.advance(now, line);
        self.begun += 1;
        let key = (self.count + u128::from(bytes) * BYTE, self.begun);
        self.answers.insert(key, flight);
        self.begun
    }

    /// The complete answers.
    fn come(&mut self, now: Time, line: LineFaults) -> Vec<u32> {
        self.advance(now, line);
        let mut come = Vec::new();
        while let Some(first) = self.answers.first_entry().filter(|first| first.key().0 <= self.count) {
            come.push(first.remove());
        }
        come
    }

    /// Removes an incomplete answer.
    fn cut(&mut self, now: Time, line: LineFaults, ticket: u64) -> Option<u32> {
        self.advance(now, line);
        let key = self.answers.keys().find(|(_, number)| *number == ticket).copied()?;
        self.answers.remove(&key)
    }

    /// The time of the next complete answer, if no other answer begins before.
    fn next(&self, line: LineFaults) -> Option<Time> {
        let ((end, _), _) = self.answers.first_key_value()?;
        let left = end.saturating_sub(self.count) * self.answers.len() as u128;
        Some(self.at + left.div_ceil(u128::from(line.bytes_per_second.max(1))) as u64)
    }
}

/// The event of an answer: the answer itself, or its beginning on a narrow line.
pub(super) fn what_comes(line: LineFaults, over_line: bool, flight: u32) -> What {
    match over_line && line.is_narrow() {
        true => What::Line(Moment::Begins { flight }),
        false => What::Answer { flight },
    }
}

/// The longest wait for an answer over a narrow line. `give_up`: the end of the wait for a silent answer.
pub(super) fn deadline(line: LineFaults, now: Time, give_up: Time) -> Time {
    let patience = give_up.saturating_sub(now);
    match line.held {
        true => give_up,
        false => now + patience.saturating_mul(PROGRESS),
    }
}

impl Net {
    /// An event of a line.
    pub(in crate::world) fn on_line(&mut self, cx: &mut Context, fleet: &Fleet, moment: Moment) {
        let line = cx.plan().faults.line;
        match moment {
            Moment::Begins { flight } => self.begin_on_line(cx, fleet, flight),
            Moment::Comes { worker, version } => {
                let known = self.line(worker);
                if known.version == version {
                    for flight in known.come(cx.now(), line) {
                        cx.push(cx.now(), What::Answer { flight });
                    }
                    self.plan_next(cx, worker);
                }
            }
            Moment::Expires { worker, ticket } => {
                if let Some(flight) = self.line(worker).cut(cx.now(), line, ticket) {
                    cx.mark("answer-too-long");
                    if let Some(flight) = self.flights[flight as usize].as_mut() {
                        flight.outcome = Some((Outcome::Unknown(Cause::Timeout), Carry::Nothing));
                    }
                    cx.push(cx.now(), What::Answer { flight });
                    self.plan_next(cx, worker);
                }
            }
        }
    }

    fn begin_on_line(&mut self, cx: &mut Context, fleet: &Fleet, id: u32) {
        let line = cx.plan().faults.line;
        let now = cx.now();
        let Some(flight) = self.flights[id as usize].as_ref() else {
            return;
        };
        let (w, bytes, deadline) = (flight.worker, flight.bytes(), flight.deadline);
        let lives = fleet.worker(usize::from(w)).is_process(flight.generation);
        if bytes == 0 || !lives {
            return cx.push(now, What::Answer { flight: id });
        }
        let (life, op, about) = (flight.life, flight.op.n, flight.about);
        cx.fault("narrow-line", Some(usize::from(w)), Some((life, op, about)));
        cx.fact(Fact::OnItsWay { life, op, bytes });
        let ticket = self.line(w).begin(now, line, id, bytes);
        cx.push(deadline, What::Line(Moment::Expires { worker: w, ticket }));
        self.plan_next(cx, w);
    }

    fn plan_next(&mut self, cx: &mut Context, worker: u16) {
        let width = cx.plan().faults.line;
        let line = self.line(worker);
        line.version += 1;
        let version = line.version;
        if let Some(at) = line.next(width) {
            cx.push(at, What::Line(Moment::Comes { worker, version }));
        }
    }

    fn line(&mut self, worker: u16) -> &mut Line {
        let w = usize::from(worker);
        if self.lines.len() <= w {
            self.lines.resize_with(w + 1, Line::default);
        }
        &mut self.lines[w]
    }
}

impl Flight {
    /// The bytes of records in the answer.
    fn bytes(&self) -> u64 {
        match &self.outcome {
            Some((Outcome::Applied(Reply::Records(answer)), _)) => answer.bytes,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LineFaults = LineFaults { bytes_per_second: 1_000, held: false };
    const S: u64 = 1_000_000;

    #[test]
    fn answers_share_a_line_evenly() {
        let mut line = Line::default();
        line.begin(0, LINE, 1, 1_000);
        assert_eq!(line.next(LINE), Some(S));
        line.begin(S / 2, LINE, 2, 1_000);
        assert_eq!(line.next(LINE), Some(S + S / 2), "half is left, at half the rate");
        assert_eq!(line.come(S, LINE), Vec::<u32>::new());
        assert_eq!(line.come(S + S / 2, LINE), [1]);
        assert_eq!(line.next(LINE), Some(2 * S));
        assert_eq!(line.come(2 * S, LINE), [2]);
        assert_eq!(line.next(LINE), None);
    }

    #[test]
    fn a_cut_answer_leaves_the_line_to_the_others() {
        let mut line = Line::default();
        let first = line.begin(0, LINE, 1, 5_000);
        line.begin(0, LINE, 2, 1_000);
        assert_eq!(line.next(LINE), Some(2 * S));
        assert_eq!(line.cut(S, LINE, first), Some(1));
        assert_eq!(line.cut(S, LINE, first), None);
        assert_eq!(line.next(LINE), Some(S + S / 2));
        assert_eq!(line.come(S + S / 2, LINE), [2]);
    }

    #[test]
    fn an_answer_has_come_at_its_told_time_whatever_the_numbers() {
        let width = LineFaults { bytes_per_second: 777, held: true };
        let mut line = Line::default();
        let mut now = 0;
        for (n, bytes) in [13, 1, 999, 7, 7].into_iter().enumerate() {
            now += 1_234 * n as u64;
            line.begin(now, width, n as u32, bytes);
        }
        for _ in 0..5 {
            now = line.next(width).unwrap();
            assert!(!line.come(now, width).is_empty());
            if line.next(width).is_none() {
                return;
            }
        }
        panic!("an answer is left: {line:?}");
    }

    #[test]
    fn an_answer_that_comes_is_waited_for_longer_than_a_held_one() {
        let held = LineFaults { held: true, ..LINE };
        assert_eq!([deadline(LINE, 10, 15), deadline(held, 10, 15)], [110, 15]);
    }
}
