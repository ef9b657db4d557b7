use super::*;
use crate::runtime::{BoxFuture, Sleep, Task, TokioRuntime};
use leasehold_engine::config::Config;
use leasehold_engine::time::Wall;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_fence_is_valid_until_its_time_and_again_after_a_renewal() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let fences = Fences::default();
    let (lease, token) = (LeaseKey::from("s"), FencingToken(4));
    let fence = fences.open(lease.clone(), token, runtime.clone());
    assert!(!fence.is_valid(), "not before it is believed in");
    fences.believe(&lease, token, runtime.now() + Span::from_secs(2));
    assert!(fence.is_valid());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!fence.is_valid());
    fences.believe(&lease, token, runtime.now() + Span::from_secs(2));
    assert!(fence.is_valid());
    fences.revoke(&lease);
    assert!(!fence.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_fence_of_a_former_ownership_stays_invalid() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let fences = Fences::default();
    let lease = LeaseKey::from("s");
    let until = runtime.now() + Span::from_secs(60);
    let old = fences.open(lease.clone(), FencingToken(4), runtime.clone());
    fences.believe(&lease, FencingToken(4), until);
    let new = fences.open(lease.clone(), FencingToken(6), runtime.clone());
    fences.believe(&lease, FencingToken(4), until);
    assert!(!old.is_valid() && !new.is_valid());
    fences.believe(&lease, FencingToken(6), until);
    assert!(!old.is_valid() && new.is_valid());
    fences.close(&lease, FencingToken(4));
    assert!(new.is_valid(), "a late close of the old one changes nothing");
    fences.close(&lease, FencingToken(6));
    assert!(!new.is_valid() && fences.is_empty());
}

/// Both clocks, in ms, moved by hand.
#[derive(Debug, Default)]
struct ByHand {
    mono: AtomicU64,
    wall: AtomicU64,
}

impl ByHand {
    /// The machine is awake for so long.
    fn awake(&self, millis: u64) {
        self.mono.fetch_add(millis, Ordering::Relaxed);
        self.set_forward(millis);
    }

    /// The wall clock is set, or shows that the machine was suspended.
    fn set_forward(&self, millis: u64) {
        self.wall.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Runtime for ByHand {
    fn now(&self) -> Mono {
        Mono(self.mono.load(Ordering::Relaxed) * 1_000)
    }

    fn wall(&self) -> Wall {
        Wall(self.wall.load(Ordering::Relaxed) as i64)
    }

    fn sleep_until(&self, _: Mono) -> Sleep {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) -> Task {
        Task::new(|| {})
    }

    fn entropy(&self) -> u64 {
        0
    }
}

/// A fence valid for ten seconds after an input of this moment.
fn believed(clock: &Arc<ByHand>) -> (Fences, Fence) {
    let (fences, lease, token) = (Fences::default(), LeaseKey::from("s"), FencingToken(4));
    let fence = fences.open(lease.clone(), token, clock.clone());
    let (at, wall) = crate::clocks::read(&**clock);
    fences.clocks().begin(&Config::default(), at, wall);
    fences.believe(&lease, token, at + Span::from_secs(10));
    (fences, fence)
}

#[test]
fn a_fence_asked_first_after_a_suspension_knows_of_it() {
    let clock = Arc::new(ByHand::default());
    let (fences, fence) = believed(&clock);
    clock.awake(2_000);
    assert_eq!(fence.remaining(), Span::from_secs(8));
    // The monotonic clock stood still for less than the remaining time.
    clock.set_forward(3_000);
    assert_eq!(fence.remaining(), Span::from_secs(5));
    clock.set_forward(60_000);
    assert!(!fence.is_valid());
    // The driver passes on the engine's reaction.
    fences.revoke(&LeaseKey::from("s"));
    let (at, wall) = crate::clocks::read(&*clock);
    fences.clocks().told(at, wall);
    assert!(!fence.is_valid());
    fences.believe(&LeaseKey::from("s"), FencingToken(4), at + Span::from_secs(10));
    assert_eq!(fence.remaining(), Span::from_secs(10), "a renewal ends the doubt");
}

#[test]
fn a_fence_stands_a_wall_clock_set_back_stopped_or_corrected() {
    let clock = Arc::new(ByHand::default());
    clock.set_forward(1_000_000);
    let (_fences, fence) = believed(&clock);
    clock.wall.fetch_sub(500_000, Ordering::Relaxed);
    assert_eq!(fence.remaining(), Span::from_secs(10), "set back");
    clock.mono.fetch_add(1_000, Ordering::Relaxed);
    assert_eq!(fence.remaining(), Span::from_secs(9), "it stands");
    let (_fences, fence) = believed(&clock);
    clock.set_forward(200);
    assert_eq!(fence.remaining(), Span::from_secs(10), "corrected");
}
