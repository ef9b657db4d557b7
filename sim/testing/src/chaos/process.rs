//! One process of a worker: a tokio runtime of its own on the thread of the test. The runtime's time stands still until
//! the test moves the clock.
//!
//! A process runs until all its tasks wait; then it tells the time of its next timer. Two hooks of tokio make this
//! possible. Tokio calls the first hook before the thread would park: all tasks wait. Tokio calls the second hook after
//! the thread was unparked: tokio has moved its paused clock to the next timer, and no task has run yet. When the
//! process dies, its runtime is dropped, with every task spawned by the process.

use crate::harness::Time;
use leasehold::runtime::{BoxFuture, Runtime, Sleep, Task};
use leasehold::{Mono, Wall};
use std::fmt;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::runtime;
use tokio::time::Instant;

/// The clock of a world, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn now(&self) -> Time {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, now: Time) {
        self.0.store(now, Ordering::Relaxed);
    }
}

/// The purpose of a run of the process.
const RUN: u8 = 0;
const LOOK_AHEAD: u8 = 1;
/// That is done.
const DONE: u8 = 2;

/// Where the hooks of a runtime end a run.
#[derive(Debug)]
struct Gate {
    phase: AtomicU8,
    /// The begin of the look-ahead.
    from: Mutex<Option<Instant>>,
    waker: Mutex<Option<Waker>>,
}

impl Gate {
    fn begin(&self, phase: u8, from: Option<Instant>) {
        *self.from.lock().unwrap_or_else(PoisonError::into_inner) = from;
        self.phase.store(phase, Ordering::Relaxed);
    }

    fn done(&self) {
        self.phase.store(DONE, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// All tasks wait.
    fn parks(&self) {
        if self.phase.load(Ordering::Relaxed) == RUN {
            self.done();
        }
    }

    /// The clock may have been moved.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of a simulated process")]
    fn unparked(&self) {
        let from = *self.from.lock().unwrap_or_else(PoisonError::into_inner);
        if self.phase.load(Ordering::Relaxed) == LOOK_AHEAD && from.is_some_and(|from| Instant::now() > from)
        {
            self.done();
        }
    }

    fn is_done(&self, waker: &Waker) -> bool {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.phase.load(Ordering::Relaxed) == DONE
    }
}

/// The runtime of one process.
#[derive(Debug)]
pub(crate) struct Process {
    runtime: runtime::Runtime,
    gate: Arc<Gate>,
    /// The same moment by both clocks.
    base: Instant,
    born: Time,
    /// The time of the next run, on the process's own clock.
    next: Time,
}

impl Process {
    /// A process that begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of a simulated process")]
    pub(crate) fn new(now: Time) -> io::Result<Self> {
        let gate =
            Arc::new(Gate { phase: AtomicU8::new(DONE), from: Mutex::default(), waker: Mutex::default() });
        let (parks, unparked) = (gate.clone(), gate.clone());
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_park(move || parks.parks())
            .on_thread_unpark(move || unparked.unparked())
            .build()?;
        let base = {
            let _entered = runtime.enter();
            Instant::now()
        };
        Ok(Self { runtime, gate, base, born: now, next: now })
    }

    /// The handle to spawn tasks by.
    pub(crate) fn handle(&self) -> &runtime::Handle {
        self.runtime.handle()
    }

    /// The time of the next run.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// The runtime of the process's worker.
    pub(crate) fn port(&self, clock: &Clock, entropy: u64) -> Arc<dyn Runtime> {
        Arc::new(Port {
            clock: clock.clone(),
            handle: self.runtime.handle().clone(),
            base: self.base,
            born: self.born,
            entropy: AtomicU64::new(entropy),
        })
    }

    fn instant(&self, at: Time) -> Instant {
        self.base + Duration::from_millis(at.saturating_sub(self.born))
    }

    /// Runs all ready tasks of this moment.
    pub(crate) fn run(&mut self) {
        self.gate.begin(RUN, None);
        self.runtime.block_on(poll_fn(|cx| match self.gate.is_done(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }));
    }

    /// Finds the time of the next run: at the next timer or before, and at `until` at the latest. (Tokio keeps far
    /// timers in a coarse order, and stops on the way to sort them more finely.) Tasks woken by the timer do not run
    /// yet.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of a simulated process")]
    pub(crate) fn look_ahead(&mut self, until: Time) {
        let (gate, until) = (self.gate.clone(), self.instant(until));
        let (base, born) = (self.base, self.born);
        self.next = self.runtime.block_on(async move {
            gate.begin(LOOK_AHEAD, Some(Instant::now()));
            let mut timer = pin!(tokio::time::sleep_until(until));
            poll_fn(|cx| match gate.is_done(cx.waker()) || timer.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            gate.begin(DONE, None);
            born + u64::try_from((Instant::now() - base).as_millis()).unwrap_or(Time::MAX)
        });
    }

    /// The process stood still, and its clock jumps: every due timer fires at once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of a simulated process")]
    pub(crate) fn jump(&mut self, to: Time) {
        let to = self.instant(to);
        self.gate.begin(DONE, None);
        self.runtime.block_on(async move {
            tokio::time::advance(to.saturating_duration_since(Instant::now())).await;
        });
    }

    /// Sets the time of the next run, without a look-ahead.
    pub(crate) fn set_next(&mut self, next: Time) {
        self.next = next;
    }
}

/// A worker's port to its process.
struct Port {
    clock: Clock,
    handle: runtime::Handle,
    base: Instant,
    born: Time,
    entropy: AtomicU64,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the port of a simulated process: its timers and tasks are those of its own runtime"
)]
impl Runtime for Port {
    fn now(&self) -> Mono {
        Mono(self.clock.now() * 1_000)
    }

    fn wall(&self) -> Wall {
        Wall(crate::harness::wall_ms(self.clock.now()))
    }

    fn sleep_until(&self, until: Mono) -> Sleep {
        if until == Mono::NEVER {
            return Box::pin(std::future::pending());
        }
        let since = Duration::from_micros(until.0.saturating_sub(self.born * 1_000));
        Box::pin(tokio::time::sleep_until(self.base + since))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Task {
        let handle = self.handle.spawn(task).abort_handle();
        Task::new(move || handle.abort())
    }

    fn entropy(&self) -> u64 {
        self.entropy.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests run on simulated processes")]
mod tests {
    use super::*;

    /// Written lines, each with its time by the clock of its process.
    type Lines = Arc<Mutex<Vec<(u32, Time)>>>;

    fn log(process: &Process) -> (Lines, impl Fn(u32) + Clone + Send + 'static) {
        let lines = Lines::default();
        let (to, base, born) = (lines.clone(), process.base, process.born);
        let write = move |line| {
            let at = born + (Instant::now() - base).as_millis() as Time;
            to.lock().unwrap().push((line, at));
        };
        (lines, write)
    }

    /// Runs a process up to a moment.
    fn pass(process: &mut Process, until: Time) {
        process.run();
        while process.next() < until {
            process.look_ahead(until);
            assert!(process.next() <= until, "not further than it may look");
            process.run();
        }
    }

    #[test]
    fn a_process_tells_its_next_timer_and_runs_nothing_before() {
        let mut process = Process::new(500).unwrap();
        let (lines, write) = log(&process);
        process.handle().spawn(async move {
            write(1);
            tokio::time::sleep(Duration::from_millis(40)).await;
            write(2);
            let inner = write.clone();
            tokio::spawn(async move { inner(3) });
            tokio::time::sleep(Duration::from_secs(7)).await;
            write(4);
        });
        process.run();
        assert_eq!(*lines.lock().unwrap(), [(1, 500)]);
        process.look_ahead(540);
        assert_eq!((process.next(), lines.lock().unwrap().len()), (540, 1));
        process.run();
        assert_eq!(*lines.lock().unwrap(), [(1, 500), (2, 540), (3, 540)]);
        pass(&mut process, 7_539);
        assert_eq!(lines.lock().unwrap().len(), 3);
        pass(&mut process, 9_000);
        assert_eq!(lines.lock().unwrap()[3..], [(4, 7_540)]);
    }

    #[test]
    fn a_process_that_stood_still_finds_all_its_timers_due() {
        let mut process = Process::new(0).unwrap();
        let (lines, write) = log(&process);
        for (line, ms) in [(1, 10), (2, 20), (3, 5_000)] {
            let write = write.clone();
            process.handle().spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                write(line);
            });
        }
        pass(&mut process, 3);
        process.jump(4_000);
        process.run();
        assert_eq!(*lines.lock().unwrap(), [(1, 4_000), (2, 4_000)]);
        pass(&mut process, 9_000);
        assert_eq!(lines.lock().unwrap()[2..], [(3, 5_000)]);
    }

    #[test]
    fn a_task_woken_by_another_process_runs_at_the_next_run() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<u32>();
        let mut process = Process::new(0).unwrap();
        let (lines, write) = log(&process);
        process.handle().spawn(async move { write(receiver.await.unwrap()) });
        process.run();
        process.look_ahead(7);
        sender.send(9).unwrap();
        process.run();
        assert_eq!((process.next(), lines.lock().unwrap().clone()), (7, vec![(9, 7)]));
    }

    #[test]
    fn the_tasks_of_a_dead_process_are_gone() {
        let mut process = Process::new(0).unwrap();
        let (lines, write) = log(&process);
        process.handle().spawn(async move {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                write(1);
            });
        });
        process.run();
        drop(process);
        assert!(lines.lock().unwrap().is_empty());
    }
}
