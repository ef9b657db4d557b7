//! How much evidence a final act needs from answers of a service: several answers that agree, apart in time.
//!
//! A replica may be behind, or partial, and is so for all questions put to the replica. So no single answer proves a
//! final fact, nor do several answers of the same moment. A question counts if it was asked some time after the arrival
//! of the last answer that counted. A contradicting answer takes back all answers before. So does a long silence: the
//! events of that time are not known.
//!
//! ARCHITECTURE.md has the table of all final acts and of the evidence for each act.

use super::context::Context;
use crate::time::{Mono, Span};

/// After this many times the distance between answers, an answer begins a new count.
const LATE: u64 = 8;

/// A worker waits for leases that may bring more leases. The wait ends after this many times as many listings without a
/// move of these leases.
pub(super) const STANDSTILL: u32 = 8;

/// How many matching answers are enough, and how far apart they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// At least 2.
    answers: u32,
    /// From one answer to the question of the next.
    apart: Span,
}

impl Needed {
    /// Evidence that a shard, or a parent that was never read, is forgotten: `audit_confidence` listings, and at least
    /// two. From the first to the last, `stream_lag` passes: no listing is further behind.
    pub(super) fn to_forget(cx: &Context) -> Self {
        let answers = cx.config().audit_confidence.max(2);
        let apart = cx.config().stream_lag.per(u64::from(answers) - 1);
        Self { answers, apart }
    }

    /// The same, with so many times as many answers.
    pub(super) fn times(self, times: u32) -> Self {
        let answers = self.answers.saturating_mul(times);
        Self { answers, ..self }
    }

    /// How many answers.
    pub(super) fn answers(self) -> u32 {
        self.answers
    }

    /// That a running worker has lost its stream: three descriptions that span `stream_lag`.
    pub(super) fn to_lose_stream(cx: &Context) -> Self {
        let apart = cx.config().stream_lag.per(2).max(cx.poll_pause());
        Self { answers: 3, apart }
    }

    /// Evidence that a stream is gone, if only one description has shown the stream: three descriptions, usually a
    /// second apart.
    pub(super) fn to_lose_unsure_stream(cx: &Context) -> Self {
        let apart = cx.poll_pause();
        Self { answers: 3, apart }
    }

    /// That a running worker has lost its table: three descriptions, usually a second apart.
    pub(super) fn to_lose_table(cx: &Context) -> Self {
        let apart = cx.poll_pause();
        Self { answers: 3, apart }
    }

    /// That a worker that starts cannot work: a second look, usually a second later.
    pub(super) fn to_give_up(cx: &Context) -> Self {
        let apart = cx.poll_pause();
        Self { answers: 2, apart }
    }

    /// Evidence that rows are of another stream although the rows fitted an earlier listing. A description shows more
    /// plainly that the stream was made anew, and so comes first.
    pub(super) fn to_refuse_known_rows(cx: &Context) -> Self {
        let Self { answers, apart } = Self::to_lose_stream(cx);
        Self { answers: answers + 1, apart }
    }

    /// Evidence that rows are of another stream, where a late listing may give the same answer: a second listing,
    /// `stream_lag` later.
    pub(super) fn to_refuse_rows(cx: &Context) -> Self {
        let apart = cx.config().stream_lag;
        Self { answers: 2, apart }
    }
}

/// Answers in a row that say the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Evidence<T> {
    /// The claim of these answers. `None` without an answer.
    claim: Option<T>,
    /// How many count.
    answers: u32,
    /// When the first was asked for.
    since: Mono,
    /// When the last one that counts came.
    last: Mono,
}

impl<T> Default for Evidence<T> {
    fn default() -> Self {
        Self { claim: None, answers: 0, since: Mono(0), last: Mono(0) }
    }
}

impl<T: PartialEq> Evidence<T> {
    /// Takes note of an answer with this claim, to a question of the moment `asked`. Whether the answers are now
    /// enough.
    pub(super) fn says(&mut self, cx: &Context, asked: Mono, claim: T, needed: Needed) -> bool {
        debug_assert!(needed.answers >= 2, "nothing final follows from one answer");
        debug_assert!(asked <= cx.now(), "an answer comes after its question");
        let in_a_row = asked.since(self.last) <= needed.apart.times(LATE);
        if self.claim.as_ref() != Some(&claim) || !in_a_row {
            *self = Self { claim: Some(claim), answers: 1, since: asked, last: cx.now() };
        } else if asked >= self.last + needed.apart {
            self.answers = self.answers.saturating_add(1);
            self.last = cx.now();
        }
        debug_assert!(self.since <= self.last, "answers come one after the other");
        self.answers >= needed.answers
    }
}

impl<T> Evidence<T> {
    /// An answer contradicts the claim.
    pub(super) fn contradicted(&mut self) {
        *self = Self::default();
    }

    /// The claim of the answers, if any answer counts.
    pub(super) fn claim(&self) -> Option<&T> {
        self.claim.as_ref()
    }

    /// How many answers count.
    pub(super) fn answers(&self) -> u32 {
        self.answers
    }

    /// When the first answer that counts was requested.
    pub(super) fn since(&self) -> Mono {
        self.since
    }

    /// The earliest time of the next question for its answer to count.
    pub(super) fn ask_again_at(&self, needed: Needed) -> Mono {
        self.last + needed.apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::testing::{context, seconds};

    const NEEDED: Needed = Needed { answers: 3, apart: Span::from_secs(10) };

    /// Whether the answers are enough after each claim. Each claim comes the given seconds after the one before, asked
    /// for at that time.
    fn told(answers: &[(u64, &'static str)]) -> Vec<bool> {
        let (mut cx, mut evidence) = (context(), Evidence::default());
        let mut enough = Vec::new();
        for (after, claim) in answers {
            cx.later(seconds(*after));
            enough.push(evidence.says(&cx, cx.now(), *claim, NEEDED));
        }
        enough
    }

    #[test]
    fn answers_apart_in_time_are_enough_and_answers_at_once_not() {
        assert_eq!(told(&[(0, "a"), (10, "a"), (10, "a")]), [false, false, true]);
        assert_eq!(told(&[(0, "a"), (0, "a"), (9, "a"), (0, "a")]), [false; 4]);
        assert_eq!(told(&[(0, "a"), (9, "a"), (1, "a"), (10, "a")]), [false, false, false, true]);
    }

    #[test]
    fn an_answer_that_says_otherwise_and_a_long_silence_begin_anew() {
        assert_eq!(told(&[(0, "a"), (10, "b"), (10, "a"), (10, "a")]), [false; 4]);
        assert_eq!(told(&[(0, "a"), (10, "a"), (81, "a"), (10, "a")]), [false; 4]);
        let mut evidence = Evidence::default();
        let mut cx = context();
        assert!(!evidence.says(&cx, cx.now(), (), NEEDED));
        evidence.contradicted();
        assert_eq!((evidence.answers(), evidence.claim()), (0, None));
        cx.later(seconds(10));
        assert!(!evidence.says(&cx, cx.now(), (), NEEDED));
        assert_eq!(evidence.ask_again_at(NEEDED), cx.now() + seconds(10));
    }

    #[test]
    fn a_question_from_before_the_last_answer_does_not_count() {
        let (mut cx, mut evidence) = (context(), Evidence::default());
        let needed = Needed { answers: 2, ..NEEDED };
        let early = cx.now() + seconds(5);
        cx.later(seconds(12));
        assert!(!evidence.says(&cx, early, (), needed));
        cx.later(seconds(5));
        assert!(!evidence.says(&cx, early + seconds(10), (), needed), "asked for too soon");
        cx.later(seconds(5));
        assert!(evidence.says(&cx, cx.now(), (), needed));
    }
}
