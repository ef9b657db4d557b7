//! One worker of a world: its process, if alive, and the events on their way to the process.

use super::fault::{Fault, How, Service, Time};
use super::ports::{Answered, Outbox, Stream, Table};
use super::process::{Clock, Process};
use super::stage::Stage;
use super::world::{Life, Place, Plan, World};
use leasehold::{Control, Error, Report, Worker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The longest look-ahead of a process without events on the way.
const FAR: Time = 10_000;

/// An event on its way to a process.
#[derive(Debug)]
pub(crate) enum Coming {
    /// An answer to a request.
    Answer(oneshot::Sender<Answered>, Box<Answered>),
    /// The process stands still until then.
    Pause(Time),
    Resume,
    /// The worker is asked to shut down, and starts again at this time.
    ShutDown(Time),
}

/// How a worker ended.
type Ended = Arc<Mutex<Option<Result<Report, Error>>>>;

/// One worker.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) worker: usize,
    pub(crate) alive: Option<Alive>,
    /// Events for the worker, by time.
    pub(crate) inbox: BTreeMap<(Time, u64), Coming>,
    /// The number of lives until now.
    pub(crate) lives: usize,
    /// The number of requests sent to each service, in all lives.
    tables: u64,
    streams: u64,
    /// The number of applied writes of progress.
    pub(crate) checkpoints: u64,
}

/// A process that lives.
#[derive(Debug)]
pub(crate) struct Alive {
    pub(crate) life: usize,
    pub(crate) process: Process,
    pub(crate) outbox: Outbox,
    pub(crate) control: Control,
    pub(crate) ended: Ended,
    /// Whether it stands still.
    pub(crate) still: bool,
    /// Whether the worker was asked to shut down.
    pub(crate) asked: bool,
    /// The time of the next start after the shutdown.
    pub(crate) again: Time,
}

impl Slot {
    pub(crate) fn new(worker: usize) -> Self {
        Self { worker, alive: None, inbox: BTreeMap::new(), lives: 0, tables: 0, streams: 0, checkpoints: 0 }
    }

    /// The time of the worker's next event.
    pub(crate) fn next(&self) -> Option<Time> {
        let coming = self.inbox.first_key_value().map(|((at, _), _)| *at);
        let runs = self.alive.as_ref().filter(|alive| !alive.still);
        coming.into_iter().chain(runs.map(|alive| alive.process.next())).min()
    }

    /// The event due at this moment.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Coming> {
        let entry = self.inbox.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// Counts a request. Returns the request's number among the requests to this service.
    pub(crate) fn counts(&mut self, service: Service) -> u64 {
        let count = match service {
            Service::Table => &mut self.tables,
            Service::Stream => &mut self.streams,
        };
        *count += 1;
        *count - 1
    }

    /// Starts its process. Gives what went wrong.
    pub(crate) fn start(
        &mut self, world: &World, plan: &Plan, stage: &Stage, clock: &Clock, life: usize,
    ) -> Result<(), String> {
        let nth = self.lives;
        self.lives += 1;
        let unique = life as u64;
        let process =
            Process::new(stage.now()).map_err(|error| format!("no runtime can be made: {error}"))?;
        let outbox = Outbox::default();
        let port = process.port(clock, plan.draws.bits("entropy", unique));
        let worker = self
            .worker(plan, stage, life, &outbox)
            .runtime(port)
            .build()
            .map_err(|error| error.to_string())?;
        let (control, ended) = (worker.control(), Ended::default());
        let start = world.start.as_ref().ok_or("expected a handler, found none; call `world.handler(…)`")?;
        let place = Place { stage: stage.clone(), life };
        let run = {
            let _entered = process.handle().enter();
            let worker_no = self.worker;
            start(Life { worker: worker_no, nth }, worker, place)
        };
        let result = ended.clone();
        #[expect(clippy::disallowed_methods, reason = "it is spawned in the process that was made for it")]
        process.handle().spawn(async move {
            let ended = run.await;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        });
        self.alive =
            Some(Alive { life, process, outbox, control, ended, still: false, asked: false, again: 0 });
        Ok(())
    }

    /// A worker whose requests go to the world.
    fn worker(&self, plan: &Plan, stage: &Stage, life: usize, outbox: &Outbox) -> leasehold::CompleteBuilder {
        let unique = life as u64;
        let (heard, worker) = (stage.clone(), self.worker);
        let (table, stream, config) = (outbox.clone(), outbox.clone(), plan.config.clone());
        Worker::builder()
            .table_port(Arc::new(Table(table)))
            .stream_port(move |store| Arc::new(Stream { outbox: stream, store }))
            .stream(config.stream())
            .application(config.table())
            .config(|_| config)
            .worker_id(format!("worker-{worker}"))
            .identity(1 + unique, plan.draws.bits("seed", unique))
            .flight_recorder(0, 0)
            .on_notice(move |notice| heard.hears(worker, notice))
    }

    /// The limit of the process's look-ahead.
    pub(crate) fn horizon(&self, now: Time) -> Time {
        let coming = self.inbox.first_key_value().map(|((at, _), _)| *at);
        coming.unwrap_or(now + FAR).min(now + FAR).max(now + 1)
    }
}

impl Alive {
    /// The result of the worker, after its end.
    pub(crate) fn take_end(&self) -> Option<Result<Report, Error>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The fault of a request under the faults in force.
pub(crate) fn how(faults: &[Fault], now: Time, of: usize, to: Service, number: u64) -> Option<How> {
    let single = faults.iter().find_map(|fault| match fault {
        Fault::Request { worker, service, nth, how } if (*worker, *service, *nth) == (of, to, number) => {
            Some(*how)
        }
        _ => None,
    });
    single.or_else(|| {
        faults.iter().find_map(|fault| match fault {
            Fault::Spell { worker, service, from, lasts, how }
                if *service == to
                    && worker.is_none_or(|worker| worker == of)
                    && (*from..*from + *lasts).contains(&now) =>
            {
                Some(*how)
            }
            _ => None,
        })
    })
}
