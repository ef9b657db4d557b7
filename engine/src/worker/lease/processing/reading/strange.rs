//! A checkpoint that did not come from this stream, by the service's answer.
//!
//! A single answer of this kind proves nothing. Several in a row, apart in time, do: the shard cannot be read from the
//! checkpoint, and a beginning elsewhere would skip records. The number names its shard. If that is the shard of the
//! lease, the stream is another stream.
//!
//! The rule does not apply where this worker has gone on after a place from another row: the table is this stream's,
//! and a person or a program has spoiled the row. The lease is kept, its shard stands still, and the stall gives the
//! reason.

use crate::input::{Outcome, Refusal, Why};
use crate::notice::Fatal;
use crate::position::{Checkpoint, Position};
use crate::shard::index_in_name;
use crate::time::{Mono, Span};
use crate::worker::context::Request;
use crate::worker::lease::lent::Lent;

/// So many answers in a row are proof, if the first and the last are so far apart.
const ANSWERS: u32 = 3;
const APART: Span = Span::from_secs(2);

/// Answers in a row that say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Strange {
    answers: u32,
    since: Mono,
}

impl Strange {
    /// An answer came to an attempt to read.
    pub(super) fn note(&mut self, outcome: &Outcome, now: Mono) {
        match outcome {
            Outcome::Refused(refusal) if refusal.why == Why::OfAnotherStream => {
                if self.answers == 0 {
                    self.since = now;
                }
                self.answers = self.answers.saturating_add(1);
            }
            // A failure says nothing of the number.
            Outcome::NotSent(_) | Outcome::Unknown(_) => {}
            Outcome::Applied(_) | Outcome::Refused(_) => *self = Self::default(),
        }
    }

    fn is_proof(self, now: Mono) -> bool {
        self.answers >= ANSWERS && now.since(self.since) >= APART
    }

    /// The service does not let the shard be read from this position. Tells whether the whole stream differs from the
    /// stream of the table.
    pub(super) fn judge(self, lent: &mut Lent<'_>, at: Position, outcome: &Outcome) {
        let (own, cx) = (lent.own, &mut *lent.cx);
        if !self.is_proof(cx.now()) {
            return;
        }
        let Outcome::Refused(Refusal { detail, .. }) = outcome else {
            return cx.broken("a bad position was refused by the service");
        };
        // What was read a moment ago came from somewhere. Only what the row said when the lease was taken is judged.
        let is_of_row = lent.lane.processed().durable() == Checkpoint::At(at);
        let of = at.sequence.shard_in_digits();
        let elsewhere = of.is_some() && of != index_in_name(own.key().as_str());
        let of_this = lent.rows.named().has_progressed(own.stream());
        if !is_of_row || elsewhere || of_this {
            return;
        }
        let why = Fatal::OtherStream {
            stream: cx.stream_name(own.stream()),
            table: cx.config().table.clone(),
            lease: own.lease(),
            detail: format!("the service does not know its checkpoint {at}: {detail}"),
        };
        cx.request(Request::LoseStream(own.stream(), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Cause, Reply};
    use crate::worker::testing::{refused, seconds};

    #[test]
    fn answers_in_a_row_and_apart_in_time_are_proof() {
        let strange = || refused(Why::OfAnotherStream);
        let at = |tenths: u64| Mono(0) + Span::from_millis(100 * tenths);
        let judged = |answers: &[(u64, Outcome)]| {
            let mut found = Strange::default();
            for (tenths, outcome) in answers {
                found.note(outcome, at(*tenths));
            }
            found.is_proof(at(answers.last().map_or(0, |(tenths, _)| *tenths)))
        };
        assert_eq!(APART, seconds(2));
        assert!(!judged(&[(0, strange()), (100, strange())]), "two are few");
        assert!(!judged(&[(0, strange()), (5, strange()), (19, strange())]), "of one moment");
        assert!(judged(&[(0, strange()), (5, strange()), (20, strange())]));
        let lost = Outcome::Unknown(Cause::Timeout);
        assert!(judged(&[(0, strange()), (5, strange()), (10, lost), (20, strange())]));
        for other in [Outcome::Applied(Reply::Iterator), refused(Why::Invalid)] {
            assert!(!judged(&[(0, strange()), (5, strange()), (10, other), (20, strange())]));
        }
    }
}
