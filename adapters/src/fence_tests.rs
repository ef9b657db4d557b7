use super::*;
use crate::runtime::TokioRuntime;
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
