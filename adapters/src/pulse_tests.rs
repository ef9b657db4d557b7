use super::*;
use crate::asks::{Ask, Asks, asks};
use crate::runtime::TokioRuntime;
use leasehold_engine::input::Call as LeaseCall;
use std::time::Duration;

fn polls() -> (Arc<dyn Runtime>, Polls) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    (runtime.clone(), Polls::new(runtime))
}

#[tokio::test]
async fn a_call_is_found_in_a_long_poll_and_not_while_it_waits() {
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
    assert!(seen[0].lease.as_str() == "blocks" && seen[0].span >= Span::from_millis(30), "{seen:?}");
    drop(waits);
    assert_eq!(polls.running().calls.len(), 0, "forgotten when they end or are dropped");
}

#[test]
fn it_is_said_who_blocks_and_for_how_long() {
    let poll = |lease: &str, span| Poll { lease: lease.into(), since: Mono(0), span };
    let blocking = [poll("shardId-1", Span::from_millis(6_500)), poll("shardId-0", Span::from_secs(6))];
    assert_eq!(
        who_blocks(&blocking),
        "the handler of shardId-1 has blocked a thread for 6.500s; the handler of shardId-0 has blocked a thread for 6.000s \
         (tokio::task::spawn_blocking is for work that blocks)"
    );
    assert!(who_blocks(&[]).contains("something else in this program blocks its threads"));
}

/// The reports to the engine: the idle time of the runtime in hundredths of a second; 0: the runtime runs.
fn told(asks: &mut Asks) -> Vec<u64> {
    let calls = std::iter::from_fn(|| asks.try_next()).flat_map(Ask::into_calls);
    let told = calls.map(|call| match call {
        LeaseCall::RuntimeBlocked(late) => late.0 / 10_000,
        LeaseCall::RuntimeRuns => 0,
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[test]
fn the_engine_is_told_when_nothing_runs_and_when_it_runs_again() {
    let tokio = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (own, program) = (tokio(), tokio());
    let of = |runtime: &tokio::runtime::Runtime| -> Arc<dyn Runtime> {
        let _entered = runtime.enter();
        Arc::new(TokioRuntime::current().unwrap())
    };
    let (handlers, clock) = (of(&program), of(&own));
    let (sender, mut asks) = asks();
    let polls = Polls::new(clock.clone());
    // It is late after 100 ms.
    let pulse = Pulse::new(handlers, clock, polls, Meter::default(), sender, Span::from_millis(200));
    let (free, blocked) = std::sync::mpsc::channel::<()>();
    let blocks = std::thread::spawn(move || {
        program.block_on(async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            // The only thread that could run a task.
            let _ = blocked.recv();
            tokio::time::sleep(Duration::from_secs(2)).await;
        });
    });
    let told = own.block_on(async {
        let feeling = tokio::spawn(pulse.feel());
        let mut all = Vec::new();
        while !all.iter().any(|hundredths| *hundredths >= 20) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            all.extend(told(&mut asks));
        }
        free.send(()).unwrap();
        while !all.contains(&0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            all.extend(told(&mut asks));
        }
        feeling.abort();
        all
    });
    blocks.join().unwrap();
    let runs = told.iter().position(|hundredths| *hundredths == 0).unwrap();
    assert_eq!(told[0], 10, "not before it is late: {told:?}");
    assert!(told[..runs].is_sorted(), "{told:?}");
}

/// A warning at first, no second warning within a minute, and one line at the end; the warning about a poll without a
/// look comes after the poll's end.
#[tokio::test]
async fn a_handler_that_blocks_is_named_once_and_so_is_its_end() {
    let (clock, polls) = polls();
    let pulse = |polls: &Polls| {
        let meter = Meter::default();
        let lease = Span::from_millis(40);
        let (sender, _) = asks();
        Pulse::new(clock.clone(), clock.clone(), polls.clone(), meter, sender, lease)
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
