//! Outcomes in words.

use crate::input::{Outcome, Why};

/// The text for this many refused writes in a row, unexplained by the row.
pub(super) fn unexplained(times: u32) -> String {
    format!(
        "the service says that the condition of the write does not hold ({times} times in a row), and the row is as the condition expects it; \
         compare the types of the row's attributes with those of other rows"
    )
}

/// An outcome that is no success, in words.
pub(super) fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied(reply) => format!("expected an answer to this command, found {reply:?}"),
        Outcome::Refused(refusal) if refusal.detail.is_empty() => refusal.why.to_string(),
        Outcome::Refused(refusal) if matches!(refusal.why, Why::HandlerFailed | Why::RecordFailed(_)) => {
            refusal.detail.clone()
        }
        Outcome::Refused(refusal) => format!("{} ({})", refusal.why, refusal.detail),
        Outcome::NotSent(cause) => cause.to_string(),
        Outcome::Unknown(cause) => format!("{cause}, and the command may have been executed"),
    }
}
