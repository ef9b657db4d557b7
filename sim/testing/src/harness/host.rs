//! What a host does for a world.

use super::fate::Failing;
use super::fault::{Service, Time};
use super::outbox::Outbox;
use super::stage::Stage;
use super::world::Life;
use leasehold::engine::row::RowRead;
use leasehold::runtime::BoxFuture;
use leasehold::{CompleteBuilder, LeaseKey};

/// Runs processes and executes requests.
pub trait Host: Sized {
    /// A worker's request.
    type Request: Send + 'static;
    /// An answer on its way to a worker.
    type Answer: Send + 'static;

    /// A process for a life of a worker, and the worker, whose requests go to `outbox`. `unique` is the number of the life
    /// among all lives of the world.
    ///
    /// # Errors
    /// If the process cannot be made.
    fn begin(
        &mut self, stage: &Stage, life: Life, unique: usize, outbox: Outbox<Self::Request, Self::Answer>,
    ) -> Result<CompleteBuilder, String>;

    /// Runs a future in the process of a worker; `make` is called in this process.
    fn spawn(&mut self, worker: usize, make: impl FnOnce() -> BoxFuture<'static, ()>);

    /// The process of a worker dies, or has ended.
    fn kill(&mut self, worker: usize);

    /// The process of a worker stands still.
    fn pause(&mut self, worker: usize);

    /// The process of a worker goes on.
    fn resume(&mut self, worker: usize, now: Time);

    /// The service of a request.
    fn service(request: &Self::Request) -> Service;

    /// A service executes a request. The digest takes in the request and the answer.
    fn serve(&mut self, stage: &Stage, worker: usize, request: &Self::Request) -> Served<Self::Answer>;

    /// A failed request, in the worker's view.
    fn failure(request: &Self::Request, failing: Failing) -> Self::Answer;
}

/// A request that was executed.
#[derive(Debug)]
pub struct Served<A> {
    /// The answer.
    pub answer: A,
    /// The lease of the written row, and the row after the request; absent: a request without a write.
    pub row: Option<(LeaseKey, Option<RowRead>)>,
}
