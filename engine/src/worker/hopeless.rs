//! Failures after which a starting worker gives up: a retry would not help.

use crate::input::{Cause, Outcome, Why};
use crate::notice::Fatal;

/// How often in a row credentials may be missing, or the client unable to make a request, before a worker that starts gives up.
pub(super) const CLIENT_PATIENCE: u32 = 5;

/// Why a starting worker gives up after this outcome, if it does. `denied`: whether a refusal for lack of permission is
/// a reason.
pub(super) fn hopeless(what: &str, outcome: &Outcome, failures: u32, denied: bool) -> Option<Fatal> {
    let what = what.to_owned();
    match outcome {
        Outcome::Refused(refusal) if refusal.why == Why::Denied && denied => {
            Some(Fatal::Denied { what, detail: refusal.detail.clone() })
        }
        Outcome::Refused(refusal) if refusal.why == Why::WrongClock && denied => {
            Some(Fatal::WrongClock { what, detail: refusal.detail.clone() })
        }
        Outcome::NotSent(Cause::Credentials) if failures >= CLIENT_PATIENCE => {
            Some(Fatal::Denied { what, detail: "no usable credentials were found".into() })
        }
        Outcome::NotSent(Cause::Client) if failures >= CLIENT_PATIENCE => {
            Some(Fatal::Client { what, detail: "see the warnings before this".into() })
        }
        _ => None,
    }
}
