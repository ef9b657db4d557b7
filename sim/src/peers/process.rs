//! A process of a foreign program: its tasks, polled until all of them wait.

use super::fleet::{Fleet, Program};
use super::host::{Ask, Host, Reply};
use super::{kcl, kcl_rb, kinsumer, vmware_go_kcl};
use leasehold_engine::config::Config;
use leasehold_engine::input::Outcome;
use leasehold_engine::table::Item;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

/// A goroutine or a thread.
pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The most tasks of a process: more would be a leak of the model.
const MOST_TASKS: usize = 10_000;

/// A running process.
pub(crate) struct Process {
    host: Host,
    tasks: Vec<Task>,
}

/// The end of a process by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Its main task returned.
    Returned,
    /// An uncaught exception.
    Uncaught(String),
}

impl Process {
    /// A process of a program under a worker's name. `seed` decides all chance of the process.
    ///
    /// # Panics
    /// If the program is ours: our workers are no such processes.
    pub(crate) fn of(program: Program, seed: u64, name: String, config: Config, fleet: Fleet) -> Self {
        match program {
            Program::Leasehold => unreachable!("our workers are engines"),
            Program::VmwareGoKcl => Self::new(seed, |host| vmware_go_kcl::run(host, name, config, fleet)),
            Program::Kinsumer => Self::new(seed, |host| kinsumer::run(host, name, config)),
            Program::KclRb => Self::new(seed, |host| kcl_rb::run(host, name, config)),
            Program::Kcl2 => Self::new(seed, |host| kcl::run(host, name, config, fleet, false)),
            Program::Kcl3 => Self::new(seed, |host| kcl::run(host, name, config, fleet, true)),
        }
    }

    /// A process whose main task is made by `main`.
    fn new<F: Future<Output = ()> + 'static>(seed: u64, main: impl FnOnce(Host) -> F) -> Self {
        let host = Host::new(seed);
        let run = main(host.clone());
        let end = host.clone();
        let main = async move {
            run.await;
            end.exit(Exit::Returned);
        };
        Self { host, tasks: vec![Box::pin(main)] }
    }

    /// Runs until every task waits; the caller then executes the requests. Times are in µs of the monotonic clock and
    /// in ns since 1970.
    pub(crate) fn run(&mut self, mono_us: u64, wall_ns: u64) -> Vec<(u64, Ask)> {
        self.host.set_time(mono_us, wall_ns);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            self.host.begin_round();
            self.tasks.retain_mut(|task| {
                self.host.exited().is_some() || task.as_mut().poll(&mut context).is_pending()
            });
            self.tasks.extend(self.host.take_spawned());
            assert!(self.tasks.len() < MOST_TASKS, "a model starts tasks without end");
            if self.host.exited().is_some() || !self.host.has_moved() {
                return self.host.take_asked();
            }
        }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, n: u64, outcome: Outcome, items: Vec<Arc<Item>>, next: Option<Item>) {
        let reply = Reply { n, outcome, items, next };
        self.host.answer(n, reply);
    }

    /// Requests the process to stop.
    pub(crate) fn stop(&self) {
        self.host.stop();
    }

    /// The application stores a checkpoint at this record of a shard, in the middle of a batch.
    pub(crate) fn checkpoint(&self, shard: &str, sequence: String) {
        self.host.note_checkpoint(shard, sequence);
    }

    /// The time of the next run, by the monotonic clock of the process in µs.
    pub(crate) fn wake_at(&self) -> u64 {
        self.host.wake_at()
    }

    /// The end of the process, if ended.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.host.exited()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Process({} tasks)", self.tasks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::{ItemOp, Request};
    use super::*;
    use leasehold_engine::input::Reply as Answer;

    fn scan() -> Ask {
        let (table, after) = ("app", None);
        let op = ItemOp::Scan { consistent: true, after };
        Ask::Item(Request { table, verb: None, op })
    }

    #[test]
    fn tasks_go_on_when_what_they_wait_for_is_there() {
        let mut process = Process::new(7, |host| async move {
            let (other, done) = (host.clone(), std::rc::Rc::new(std::cell::Cell::new(false)));
            let told = done.clone();
            host.spawn(async move {
                other.ask(scan()).await;
                told.set(true);
            });
            assert!(!host.until(1_000, || done.get()).await);
            host.until(u64::MAX, || done.get()).await;
        });
        assert_eq!(process.run(0, 0).len(), 1);
        assert_eq!((process.wake_at(), process.exit()), (1_000, None));
        assert!(process.run(1_000, 1).is_empty());
        process.answer(1, Outcome::Applied(Answer::Done), Vec::new(), None);
        process.run(1_001, 2);
        assert_eq!(process.exit(), Some(Exit::Returned));
    }

    #[test]
    fn an_exception_ends_all_tasks() {
        let mut process = Process::new(7, |host| async move {
            let other = host.clone();
            host.spawn(async move { other.die("no".to_owned()).await });
            host.sleep(5).await;
            host.ask(scan()).await;
        });
        assert!(process.run(0, 0).is_empty());
        assert!(process.run(9, 9).is_empty());
        assert_eq!(process.exit(), Some(Exit::Uncaught("no".to_owned())));
    }
}
