use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Counts when it is dropped.
struct Falls(Arc<AtomicU32>);

impl Drop for Falls {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    /// Dropped when the thread ends.
    static LAST: std::cell::RefCell<Option<Falls>> = const { std::cell::RefCell::new(None) };
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn the_work_has_a_named_thread_and_a_runtime_of_its_own() {
    let here = thread::current().id();
    let found = assert_send(run(move || async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let spawned = tokio::spawn(async { thread::current().id() }).await.unwrap();
        let me = thread::current();
        (me.name() == Some(NAME), me.id() != here, me.id() == spawned)
    }));
    assert_eq!(found.await.unwrap(), (true, true, true));
}

#[tokio::test]
async fn a_drop_ends_the_work_its_children_and_the_thread() {
    let fallen = Arc::new(AtomicU32::new(0));
    let [work, spawned, thread] = [(); 3].map(|()| Falls(fallen.clone()));
    let (began, begun) = mpsc::channel();
    let running = tokio::spawn(run(move || async move {
        LAST.with(|last| *last.borrow_mut() = Some(thread));
        tokio::spawn(async move {
            let _spawned = spawned;
            std::future::pending::<()>().await
        });
        tokio::task::yield_now().await;
        let _work = work;
        began.send(()).unwrap();
        std::future::pending::<()>().await
    }));
    tokio::task::yield_now().await;
    begun.recv().unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(fallen.load(Ordering::SeqCst), 3, "at once, not some time later");
}

#[tokio::test]
async fn when_it_ends_the_thread_has_ended() {
    let fallen = Arc::new(AtomicU32::new(0));
    let thread = Falls(fallen.clone());
    let result = run(move || async move {
        LAST.with(|last| *last.borrow_mut() = Some(thread));
        7
    });
    assert_eq!(result.await.unwrap(), 7);
    assert_eq!(fallen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_panic_is_carried_to_the_caller() {
    let panic = tokio::spawn(run(|| async { panic!("on purpose") })).await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
}
