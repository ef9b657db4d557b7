//! Why a shard that is read stands still.

use super::{Reading, fetch};
use crate::notice::Stall;

/// Because of failures of its handler, or of the store of failed records.
pub(in crate::worker::lease::processing) fn why_failing(reading: &Reading) -> Option<Stall> {
    reading.failure.why()
}

/// While a listing is waited for.
pub(in crate::worker::lease::processing) fn why_missing(reading: &Reading) -> Stall {
    reading.search.why()
}

/// While the application flushes.
pub(in crate::worker::lease::processing) fn why_flushed(reading: &Reading) -> Stall {
    match reading.awaits_permission() {
        true => Stall::EndUnconfirmed { failures: reading.attempts() },
        false => why_kept(reading),
    }
}

/// While the application keeps batches.
pub(in crate::worker::lease::processing) fn why_kept(reading: &Reading) -> Stall {
    Stall::Kept { batches: u32::try_from(reading.batches().kept_batches()).unwrap_or(u32::MAX) }
}

/// While the application has no command.
pub(in crate::worker::lease::processing) fn why(reading: &Reading) -> Stall {
    if let Some(why) = why_failing(reading) {
        return why;
    }
    if reading.awaits_permission() {
        return why_flushed(reading);
    }
    if reading.keeps_batches() && reading.attempts() == 0 {
        return why_kept(reading);
    }
    if reading.batches().front().is_some() {
        return Stall::HandlerFails { attempts: reading.attempts() };
    }
    let search = &reading.search;
    match (reading.finished(), fetch::why_empty(&reading.reader)) {
        (Some(_), _) => search.why(),
        (None, _) if search.is_doubted() => search.why(),
        (None, why @ Stall::ReadsFail { .. }) => why,
        (None, _) if search.is_end_denied() => search.why(),
        (None, why) => why,
    }
}
