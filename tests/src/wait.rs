//! Waiting for what is about to happen.

use std::future::Future;
use std::time::{Duration, Instant};

/// Longer than other programs keep a machine busy.
pub const SOON: Duration = Duration::from_secs(180);

/// Asks again and again until the answer is yes.
///
/// # Panics
/// If that takes longer than `most`.
pub async fn until<F: Future<Output = bool>>(what: &str, most: Duration, asked: impl FnMut() -> F) {
    until_or(what, most, asked, || "no more is known".to_owned()).await;
}

/// The same, with a message about the state found.
///
/// # Panics
/// If that takes longer than `most`.
pub async fn until_or<F: Future<Output = bool>>(
    what: &str, most: Duration, mut asked: impl FnMut() -> F, found: impl Fn() -> String,
) {
    let started = Instant::now();
    while !asked().await {
        assert!(started.elapsed() < most, "expected {what} within {most:?}; {}", found());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
