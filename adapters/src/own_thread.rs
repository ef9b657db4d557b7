//! A thread and a tokio runtime for one piece of work: code blocking the caller's runtime does not stop the work.

use crate::catch::until;
use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::sync::oneshot;
use tracing::Instrument;
use tracing::dispatcher::{get_default, with_default};

/// The thread's name.
pub(crate) const NAME: &str = "leasehold";

/// Makes a future on a new thread and runs the future there, on a runtime of the thread. Events go to the caller's
/// log. A panic is carried on to the caller.
///
/// At the end or the drop of this future, the inner future has been dropped and the thread has ended.
///
/// # Errors
/// If the thread or its runtime cannot be made.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one thread that keeps leases apart from the program's handlers"
)]
pub(crate) async fn run<T, F>(make: impl FnOnce() -> F + Send + 'static) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (stop, stopped) = oneshot::channel();
    let (done, result) = oneshot::channel();
    let (log, span) = (get_default(Clone::clone), tracing::Span::current());
    let thread = thread::Builder::new().name(NAME.into()).spawn(move || {
        with_default(&log, || {
            // The receiver is gone if the caller's future was dropped.
            let _ = done.send(serve(|| make().instrument(span), stopped));
        });
    })?;
    let mut own = Own { stop: Some(stop), thread: Some(thread) };
    let result = result.await;
    own.join();
    match result {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(io::Error::other("the thread ended without a result")),
    }
}

/// Runs a future until its end or the stop; then drops the future and its spawned tasks.
fn serve<T, F: Future<Output = T>>(
    make: impl FnOnce() -> F, stopped: oneshot::Receiver<()>,
) -> Result<io::Result<T>, Box<dyn Any + Send>> {
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Ok(Err(error)),
    };
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(async { until(stopped, make()).await })));
    // Does not wait for threads looking up names.
    runtime.shutdown_background();
    Ok(ended?.map_err(|()| io::Error::other("the thread was stopped")))
}

/// The inner thread. Dropping this struct stops the thread and waits for the thread's end.
struct Own {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Own {
    fn join(&mut self) {
        // A thread cannot wait for itself: what it runs may be what drops this.
        if let Some(thread) = self.thread.take_if(|thread| thread.thread().id() != thread::current().id()) {
            // Its panics were caught.
            let _ = thread.join();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        self.join();
    }
}

#[cfg(test)]
#[path = "own_thread_tests.rs"]
mod tests;
