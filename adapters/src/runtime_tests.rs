//! The production runtime, on tokio with paused time: time moves only when every task waits.

use super::{Runtime, TokioRuntime};
use leasehold_engine::time::{Mono, Span, Wall};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn current() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_at_its_clocks_moment_and_never_before() {
    let runtime = current();
    assert_eq!(runtime.now(), Mono(0));
    let until = runtime.now() + Span::from_millis(1_500);
    runtime.sleep_until(until).await;
    assert!(runtime.now() >= until);
    assert!(runtime.now().since(until) <= Span::from_millis(2));
    // A moment that has passed is no wait.
    let now = runtime.now();
    runtime.sleep_until(Mono(1)).await;
    assert!(runtime.now().since(now) <= Span::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_never_never_ends() {
    let runtime = current();
    for never in [Mono::NEVER, Mono(u64::MAX - 1)] {
        let mut sleep = runtime.sleep_until(never);
        let waited = tokio::time::timeout(Duration::from_secs(86_400 * 365), &mut sleep).await;
        assert!(waited.is_err(), "{never:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_handle_and_stops_when_aborted() {
    let runtime = current();
    let turns = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
    let [kept, aborted] = turns.clone().map(|turns| {
        let clock = runtime.clone();
        runtime.spawn(Box::pin(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                clock.sleep(Span::from_secs(1)).await;
            }
        }))
    });
    drop(kept);
    runtime.sleep(Span::from_millis(2_500)).await;
    aborted.abort();
    runtime.sleep(Span::from_secs(2)).await;
    let [kept, aborted] = turns.map(|turns| turns.load(Ordering::Relaxed));
    assert_eq!((kept, aborted), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_is_the_machines_and_entropy_does_not_repeat() {
    let runtime = current();
    let ms = || Wall(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64);
    let before = ms();
    let told = runtime.wall();
    assert!(before <= told && told <= ms());
    assert_ne!(runtime.entropy(), runtime.entropy());
}

#[test]
fn outside_of_tokio_there_is_no_runtime() {
    assert!(TokioRuntime::current().is_err());
}
