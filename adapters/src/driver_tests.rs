use super::*;
use crate::asks::{AskSender, asks};
use crate::fence::Fences;
use crate::recorder::MemorySink;
use crate::runtime::{BoxFuture, TokioRuntime};
use crate::testing::{FnPort, Script, boot, done, op, ports, read};
use crate::trace::{TraceReader, replay_on};
use leasehold_engine::ids::FencingToken;
use leasehold_engine::input::{Call, Refusal, Why};
use leasehold_engine::output::TableOp;
use leasehold_engine::position::Position;
use leasehold_engine::time::{Span, Wall};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

struct Rig {
    driver: Driver<Script>,
    asks: AskSender,
    inputs: Arc<Mutex<Vec<Input>>>,
    forgotten: Arc<Mutex<Vec<OpId>>>,
    trace: MemorySink,
}

/// Time is tokio's. Tasks cannot be stopped, as though they were busy on another thread. The wall clock can be set
/// forward, as after a suspension for which the monotonic clock stood.
#[derive(Debug)]
struct Busy {
    tokio: Arc<TokioRuntime>,
    ahead_ms: AtomicI64,
}

impl Default for Busy {
    fn default() -> Self {
        Self { tokio: tokio_runtime(), ahead_ms: AtomicI64::new(0) }
    }
}

impl Runtime for Busy {
    fn now(&self) -> Mono {
        self.tokio.now()
    }
    fn wall(&self) -> Wall {
        Wall(self.now().0 as i64 / 1_000 + self.ahead_ms.load(Ordering::Relaxed))
    }
    fn sleep_until(&self, until: Mono) -> Sleep {
        self.tokio.sleep_until(until)
    }
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Task {
        self.tokio.spawn(task);
        Task::new(|| {})
    }
    fn entropy(&self) -> u64 {
        self.tokio.entropy()
    }
}

fn tokio_runtime() -> Arc<TokioRuntime> {
    Arc::new(TokioRuntime::current().unwrap())
}

/// A driver whose ports answer at once.
fn driver<M: Machine>(machine: M, runtime: Arc<dyn Runtime>, observer: Observer) -> (Driver<M>, AskSender) {
    let (sender, receiver) = asks();
    let ports = ports(FnPort::new(|_, _| done()));
    (Driver::new(machine, runtime, ports, receiver, Recorder::off(), observer), sender)
}

/// Answers a read by its key.
fn rig(script: Script, answer: impl Fn(&str) -> BoxFuture<'static, Outcome> + Send + Sync + 'static) -> Rig {
    let table = FnPort::new(move |_, table_op: TableOp| match table_op {
        TableOp::Read { key } => answer(key.as_str()),
        other => panic!("unexpected {other:?}"),
    });
    let forgotten = table.forgotten.clone();
    let (sender, receiver) = asks();
    let trace = MemorySink::default();
    let inputs = script.inputs();
    let driver = Driver::new(
        script,
        tokio_runtime(),
        ports(table),
        receiver,
        Recorder::new(Some(Box::new(trace.clone())), None),
        Observer::new(Fences::default(), None),
    );
    Rig { driver, asks: sender, inputs, forgotten, trace }
}

fn script(commands: &[(&str, u64)]) -> Script {
    Script {
        at_boot: commands.iter().map(|(key, seconds)| (read(key), Span::from_secs(*seconds))).collect(),
        stop_when_done: true,
        ..Script::default()
    }
}

fn outcomes(inputs: &Mutex<Vec<Input>>) -> Vec<(u64, OpId, Outcome)> {
    let inputs = inputs.lock().unwrap();
    inputs
        .iter()
        .filter_map(|input| match &input.body {
            Body::Done { op, outcome } => Some((input.at.0 / 1_000_000, *op, outcome.clone())),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_command_is_answered_once_however_it_ends() {
    let rig =
        rig(script(&[("good", 5), ("hangs", 3), ("panics", 5), ("panics at once", 5)]), |key| match key {
            "good" => Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Outcome::Applied(Reply::Done)
            }),
            "hangs" => Box::pin(std::future::pending()),
            "panics" => Box::pin(async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                panic!("on purpose")
            }),
            _ => panic!("on purpose"),
        });
    rig.driver.run(boot()).await.unwrap();
    assert_eq!(
        outcomes(&rig.inputs),
        [
            (0, op(4), Outcome::Unknown(Cause::Cancelled)),
            (1, op(1), Outcome::Applied(Reply::Done)),
            (2, op(3), Outcome::Unknown(Cause::Cancelled)),
            (3, op(2), Outcome::Unknown(Cause::Timeout)),
        ]
    );
    assert_eq!(*rig.forgotten.lock().unwrap(), [op(2)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_its_give_up_time_is_not_told_and_forgotten() {
    let mut machine = script(&[("late", 2)]);
    machine.ticks = vec![Span::from_secs(10)];
    let mut rig = rig(machine, |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Outcome::Applied(Reply::Done)
        })
    });
    rig.driver.runtime = Arc::new(Busy::default());
    rig.driver.run(boot()).await.unwrap();
    assert_eq!(outcomes(&rig.inputs), [(2, op(1), Outcome::Unknown(Cause::Timeout))]);
    // Once at the give-up, and again when the late outcome arrives.
    assert_eq!(*rig.forgotten.lock().unwrap(), [op(1), op(1)]);
}

#[tokio::test(start_paused = true)]
async fn notices_reach_the_observer_and_a_fatal_one_is_the_result() {
    struct Dies(bool);
    impl Machine for Dies {
        fn feed(&mut self, _: Input, each: &mut dyn FnMut(Output)) -> Mono {
            let table = "app".to_owned();
            each(Output::Tell(Notice::Fatal(Fatal::TableGone { table })));
            self.0 = true;
            Mono::NEVER
        }
        fn is_stopped(&self) -> bool {
            self.0
        }
        fn each_held(&self, _: &mut dyn FnMut(&leasehold_engine::Held<'_>)) {}
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let observer = Observer::new(
        Fences::default(),
        Some(Box::new(move |notice| notes.lock().unwrap().push(notice.clone()))),
    );
    let (driver, _asks) = driver(Dies(false), tokio_runtime(), observer);
    let Err(Error::Fatal(fatal)) = driver.run(boot()).await else {
        panic!("a fatal error was told");
    };
    assert!(matches!(&fatal, Fatal::TableGone { table } if table == "app"));
    assert_eq!(*seen.lock().unwrap(), [Notice::Fatal(fatal)]);
}

#[tokio::test(start_paused = true)]
async fn ticks_come_when_they_are_wanted() {
    let mut machine = script(&[]);
    machine.ticks = vec![Span::from_millis(500), Span::from_secs(7), Span::from_secs(7)];
    let rig = rig(machine, |_| Box::pin(std::future::pending()));
    rig.driver.run(boot()).await.unwrap();
    let inputs = rig.inputs.lock().unwrap();
    let start = inputs[0].at;
    assert!(matches!(inputs[0].body, Body::Boot(_)), "boot is first");
    let ticks: Vec<u64> = inputs[1..]
        .iter()
        .map(|input| {
            assert_eq!(input.body, Body::Tick);
            input.at.since(start).as_millis()
        })
        .collect();
    assert!(
        ticks.len() == 2 && (500..=501).contains(&ticks[0]) && (7_000..=7_001).contains(&ticks[1]),
        "{ticks:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_passed_on_and_what_is_left_is_answered() {
    let mut machine = script(&[("hangs", 3_600)]);
    machine.stop_when_done = false;
    let rig = rig(machine, |_| Box::pin(std::future::pending()));
    let asks = rig.asks.clone();
    let running = tokio::spawn(rig.driver.run(boot()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    asks.shutdown(None);
    running.await.unwrap().unwrap();
    let inputs = rig.inputs.lock().unwrap();
    let bodies: Vec<_> = inputs[1..].iter().map(|input| input.body.clone()).collect();
    assert_eq!(
        bodies,
        [Body::Call(Call::Shutdown), Body::Done { op: op(1), outcome: Outcome::Unknown(Cause::Cancelled) },]
    );
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_is_heard_before_the_handlers_failure() {
    let failed =
        Outcome::Refused(Refusal { why: Why::HandlerFailed, current: None, detail: "on purpose".into() });
    let deliver = Effect::Consumer(ConsumerOp::Deliver {
        lease: "s".into(),
        token: FencingToken(3),
        batch: op(9),
        after: None,
        attempt: 1,
        valid_until: Mono::NEVER,
    });
    // The machine stops with the outcome, as an engine without other work does: later calls are lost.
    let machine =
        Script { at_boot: vec![(deliver, Span::from_secs(5))], stop_when_done: true, ..Script::default() };
    let mut rig = rig(machine, |_| done());
    let (shard, outcome) = (rig.asks.shard("s".into(), FencingToken(3)), failed.clone());
    rig.driver.ports.consumer = Arc::new(FnPort::new(move |_, _| {
        let (shard, outcome) = (shard.clone(), outcome.clone());
        Box::pin(async move {
            shard.processed(op(1), Position::of(5.into()));
            outcome
        })
    }));
    rig.driver.run(boot()).await.unwrap();
    let inputs = rig.inputs.lock().unwrap();
    let bodies: Vec<_> = inputs[1..].iter().map(|input| input.body.clone()).collect();
    assert_eq!(
        bodies,
        [
            Body::Call(Call::Processed {
                lease: "s".into(),
                token: FencingToken(3),
                through: Position::of(5.into()),
            }),
            Body::Done { op: op(1), outcome: failed },
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_driver_stops_its_tasks() {
    struct Alarm(Arc<Mutex<bool>>);
    impl Drop for Alarm {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let dropped = Arc::new(Mutex::new(false));
    let flag = dropped.clone();
    let rig = rig(script(&[("hangs", 3_600)]), move |_| {
        let alarm = Alarm(flag.clone());
        Box::pin(async move {
            let _alarm = alarm;
            std::future::pending().await
        })
    });
    let running = tokio::spawn(rig.driver.run(boot()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(*dropped.lock().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_run_is_replayed_from_its_trace_and_a_flipped_outcome_found() {
    let commands: Vec<(String, u64)> = (0..100).map(|n| (format!("k{n}"), 5)).collect();
    let commands: Vec<(&str, u64)> = commands.iter().map(|(key, s)| (key.as_str(), *s)).collect();
    let machine = script(&commands);
    let fresh = Script { told: Arc::default(), ..machine.clone() };
    let rig = rig(machine, |_| done());
    rig.driver.run(boot()).await.unwrap();
    let trace = rig.trace.text();
    let report = replay_on(&mut fresh.clone(), TraceReader::new(trace.as_bytes()), |_, _, _| {}).unwrap();
    assert_eq!((report.inputs, report.complete), (101, true));
    assert_eq!(report.divergence, None);

    let flipped: String = trace
        .lines()
        .map(|line| {
            let line = if line.contains(r#""n":70,"#) {
                line.replace(r#"{"applied":"done"}"#, r#"{"unknown":"timeout"}"#)
            } else {
                line.to_owned()
            };
            line + "\n"
        })
        .collect();
    assert_ne!(trace, flipped);
    let report = replay_on(&mut fresh.clone(), TraceReader::new(flipped.as_bytes()), |_, _, _| {}).unwrap();
    assert_eq!(report.divergence.expect("found").input, 70);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_always_wants_a_tick_starves_no_other() {
    struct Eager(u32);
    impl Machine for Eager {
        fn feed(&mut self, input: Input, _: &mut dyn FnMut(Output)) -> Mono {
            self.0 += u32::from(matches!(input.body, Body::Tick));
            Mono(0)
        }
        fn is_stopped(&self) -> bool {
            self.0 >= 10_000
        }
        fn each_held(&self, _: &mut dyn FnMut(&leasehold_engine::Held<'_>)) {}
    }
    let (driver, _asks) = driver(Eager(0), tokio_runtime(), Observer::new(Fences::default(), None));
    let turns = Arc::new(Mutex::new(0u32));
    let count = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            *count.lock().unwrap() += 1;
            tokio::task::yield_now().await;
        }
    });
    driver.run(boot()).await.unwrap();
    other.abort();
    assert!(*turns.lock().unwrap() >= 100);
}

/// A machine without a wake-up time. The first tick ends the run.
struct Sleeps(Option<Input>);

impl Machine for Sleeps {
    fn feed(&mut self, input: Input, _: &mut dyn FnMut(Output)) -> Mono {
        if matches!(input.body, Body::Tick) {
            self.0 = Some(input);
        }
        Mono::NEVER
    }
    fn is_stopped(&self) -> bool {
        self.0.is_some()
    }
    fn each_held(&self, _: &mut dyn FnMut(&leasehold_engine::Held<'_>)) {}
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_waits_is_told_soon_what_the_wall_clock_shows() {
    for (open, within) in [(true, Span::from_millis(250)), (false, Span::from_secs(1))] {
        let runtime = Arc::new(Busy::default());
        let fences = Fences::default();
        let fence = fences.open("s".into(), FencingToken(4), runtime.clone());
        if !open {
            fences.close(&"s".into(), FencingToken(4));
        }
        fences.believe(&"s".into(), FencingToken(4), runtime.now() + Span::from_secs(1_000));
        let (driver, _asks) = driver(Sleeps(None), runtime.clone(), Observer::new(fences.clone(), None));
        let run = tokio::spawn(driver.run(boot()));
        runtime.sleep(Span::from_millis(10_100)).await;
        assert!(!run.is_finished(), "nothing has happened");
        let woken = runtime.now();
        runtime.ahead_ms.store(60_000, Ordering::Relaxed);
        assert_eq!(fence.is_valid(), open);
        if open {
            let left = fence.remaining();
            assert!(left <= Span::from_secs(930), "the fence knows at once: {left}");
        }
        run.await.unwrap().unwrap();
        assert!(runtime.now().since(woken) <= within, "{:?}", runtime.now().since(woken));
    }
}
