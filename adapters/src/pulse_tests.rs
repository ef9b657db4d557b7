use super::*;
use crate::runtime::TokioRuntime;
use std::time::Duration;

fn polls() -> (Arc<dyn Runtime>, Polls) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    (runtime.clone(), Polls::new(runtime))
}

#[tokio::test]
async fn a_call_is_found_while_it_is_in_one_poll_and_not_while_it_waits() {
    let (clock, polls) = polls();
    let found = |least| polls.longer_than(Span::from_millis(least), clock.now());
    let mut waits = Box::pin(polls.watch("waits".into(), tokio::time::sleep(Duration::from_secs(60))));
    tokio::select! {
        () = &mut waits => panic!("it waits for a minute"),
        () = tokio::time::sleep(Duration::from_millis(20)) => {}
    }
    assert_eq!(found(0), []);
    let inner = polls.clone();
    let (other, clock) = (polls.clone(), clock.clone());
    let seen = polls.watch("blocks".into(), async move {
        let _also = other.watch("is not polled".into(), std::future::pending::<()>());
        std::thread::sleep(Duration::from_millis(30));
        inner.longer_than(Span::from_millis(30), clock.now())
    });
    let seen = seen.await;
    assert_eq!(seen.len(), 1);
    assert!(
        seen[0].lease.as_str() == "blocks" && seen[0].span >= Span::from_millis(30),
        "{seen:?}"
    );
    drop(waits);
    assert_eq!(
        polls.running().calls.len(),
        0,
        "forgotten when they end or are dropped"
    );
}

#[test]
fn the_warning_says_who_blocks_for_how_long_and_what_to_do() {
    let poll = |lease: &str, span| Poll {
        lease: lease.into(),
        since: Mono(0),
        span,
    };
    let blocking = [
        poll("shardId-1", Span::from_millis(6_500)),
        poll("shardId-0", Span::from_secs(6)),
    ];
    assert_eq!(
        sentence(Span::from_secs(6), &blocking),
        "the runtime that runs the handlers has run no task for 6.000s: the handler of shardId-1 has blocked a thread for \
         6.500s; the handler of shardId-0 has blocked a thread for 6.000s; run what blocks in tokio::task::spawn_blocking, \
         or the handlers wait and their shards fall behind"
    );
    assert!(sentence(Span::from_secs(6), &[]).contains("something else in this program blocks its threads"));
}

/// A warning in the first place, none again within a minute, and one line at the end; of a poll that nobody saw, the warning
/// comes when it is over.
#[tokio::test]
async fn a_handler_that_blocks_is_named_once_and_so_is_its_end() {
    let (clock, polls) = polls();
    let pulse = |polls: &Polls| {
        let meter = Meter::default();
        let lease = Span::from_millis(40);
        Pulse::new(clock.clone(), clock.clone(), polls.clone(), meter, lease)
    };
    let block = |name: &str, pulse: Option<Arc<Mutex<Pulse>>>| {
        polls.watch(name.into(), async move {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(25));
                if let Some(pulse) = &pulse {
                    pulse.lock().unwrap().look();
                }
            }
        })
    };
    let events = crate::testing::Events::default();
    let guard = tracing::subscriber::set_default(events.clone());
    let seen = Arc::new(Mutex::new(pulse(&polls)));
    block("s-1", Some(seen.clone())).await;
    seen.lock().unwrap().look();
    block("s-2", None).await;
    seen.lock().unwrap().look();
    block("s-2", None).await;
    seen.lock().unwrap().look();
    drop(guard);
    let said: Vec<String> = events.lines();
    let starts = [
        "WARN message=the handler of s-1 has blocked its thread for ",
        "INFO message=the handler of s-1 no longer blocks its thread: it did for ",
        "WARN message=the handler of s-2 has blocked its thread for ",
    ];
    assert_eq!(said.len(), starts.len(), "{said:#?}");
    for (line, start) in said.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}
