//! A shutdown when the process is asked to end.

use crate::error::Error;
use crate::worker::Control;
use std::io;
use std::time::Duration;
use tokio::runtime::Handle;

/// Shuts a worker down on Ctrl-C (SIGINT) and, on Unix, on SIGTERM: the signal with which Kubernetes, systemd and others ask a
/// process to end. From then on these signals do not end the process themselves.
///
/// Call it once for each worker, within a tokio runtime that has its I/O driver enabled and runs until the worker has ended.
/// Signals that come after this call are not missed. [`Worker::run`](crate::Worker::run) returns after at most
/// `shutdown_timeout` (30 s by default); set it below the time after which the process is killed, which is 30 s with Kubernetes
/// by default.
///
/// A second signal during the shutdown ends the worker at once, as [`Control::shutdown_within`] does with a time of 0: running handlers
/// are stopped, and what can be released is released. `run` then returns [`Error::Unclean`] with the [report](crate::Report) if a handler
/// was stopped or a lease was left to expire. That takes milliseconds if DynamoDB answers, and two `table_timeout` (3 s each by default)
/// at most. Further signals change nothing; SIGKILL ends the process in any case.
///
/// ```no_run
/// # async fn example(worker: leasehold::Worker) -> Result<(), leasehold::Error> {
/// leasehold::shutdown_on_signal(worker.control())?;
/// worker.run_fn(|_| async { Ok::<(), std::io::Error>(()) }).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::NoRuntime`] outside of a tokio runtime. [`Error::Signal`] if the system does not let this process listen.
///
/// # Panics
/// If the runtime's I/O driver is not enabled.
pub fn shutdown_on_signal(control: Control) -> Result<(), Error> {
    let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?;
    let mut signals = Signals::new().map_err(Error::Signal)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "signals come from outside of every simulation"
    )]
    runtime.spawn(async move {
        signals.next().await;
        control.shutdown();
        signals.next().await;
        tracing::warn!("asked to end once more: the worker stops its handlers and ends at once");
        control.shutdown_within(Duration::ZERO);
    });
    Ok(())
}

/// The signals that ask a process to end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        std::future::poll_fn(|cx| {
            let interrupted = self.interrupt.poll_recv(cx).is_ready();
            let terminated = self.terminate.poll_recv(cx).is_ready();
            match interrupted || terminated {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(all(test, unix))]
#[path = "signal_tests.rs"]
mod tests;
