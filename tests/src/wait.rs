//! Waiting for what is about to happen.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks again and again until the answer is yes.
///
/// # Panics
/// If that takes longer than `most`.
pub async fn until<F: Future<Output = bool>>(what: &str, most: Duration, mut asked: impl FnMut() -> F) {
    let started = Instant::now();
    while !asked().await {
        assert!(started.elapsed() < most, "expected {what} within {most:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
