//! Calls of the handler that are stopped: because the shard is let go of, or because they take too long.

use crate::catch::{Panicked, until};
use leasehold_engine::time::Span;
use std::future::Future;
use tokio::sync::oneshot;

/// Why a call is stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The worker lets go of the shard, or the shard may be another worker's.
    Aborted,
    /// The call took longer than this, and has failed.
    TimedOut(Span),
}

/// The result of a call. Absent: the call was aborted.
pub(super) type Called<T> = Option<Result<Result<T, String>, Panicked>>;

/// Runs a call of the handler until its end or a stop.
pub(super) async fn call_until<T>(
    stopped: oneshot::Receiver<Stop>, call: impl Future<Output = Result<Result<T, String>, Panicked>>,
) -> Called<T> {
    match until(stopped, call).await {
        Ok(result) => Some(result),
        Err(Stop::Aborted) => None,
        Err(Stop::TimedOut(after)) => Some(Ok(Err(format!(
            "the call did not return within {after} (`handler_timeout`), and was stopped"
        )))),
    }
}

/// Stores dead letters and then runs a call, until the end or a stop.
///
/// # Errors
/// Storing failed, and the call was not made.
pub(super) async fn call_with_letters<T>(
    stopped: oneshot::Receiver<Stop>,
    call: impl Future<Output = Result<Result<Result<T, String>, Panicked>, String>>,
) -> Result<Called<T>, String> {
    let mut not_stored = None;
    let called = call_until(stopped, async {
        match call.await {
            Ok(result) => result,
            Err(detail) => {
                not_stored = Some(detail);
                Ok(Err(String::new()))
            }
        }
    })
    .await;
    not_stored.map_or(Ok(called), Err)
}
