//! Signals for the end of the process, received by a thread of their own. No handler can block that thread.

use crate::error::Error;
use crate::worker::Control;
use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime;
use tracing::dispatcher::{get_default, with_default};

/// The name of the threads that hear signals.
const NAME: &str = "leasehold-signals";
/// A shell's exit code for a process ended by SIGINT: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;
/// A shell's exit code for a process ended by SIGTERM.
#[cfg(unix)]
const TERMINATED: i32 = 143;
/// The longest wait for writing the last line. A stuck log delays the end by no more than this.
const LAST_LINE: Duration = Duration::from_millis(500);

/// Shuts a worker down on Ctrl-C (SIGINT) and, on Unix, on SIGTERM. Kubernetes, systemd and similar programs end a
/// process with SIGTERM.
///
/// The first signal begins a graceful stop, as [`Control::shutdown`] does. [`Worker::run`](crate::Worker::run) returns after at most
/// `shutdown_timeout` (30 s by default). Set a `shutdown_timeout` below the time limit of a kill, 30 s with
/// Kubernetes by default. A second signal, of either kind, ends the process at once: see [`on_signal`].
///
/// Call this function once for each worker, anywhere in the program. A separate thread receives the signals: the
/// worker stops even if handlers block every thread of their runtime. While the handlers block, `run` cannot return,
/// and the process does not end by itself.
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
/// [`Error::Signal`] if the system refuses the process a listener or a thread.
pub fn shutdown_on_signal(control: Control) -> Result<(), Error> {
    on_signal(move || control.shutdown())
}

/// Runs `action` on the first Ctrl-C (SIGINT) or, on Unix, SIGTERM, instead of ending the process. No signal after
/// this call is missed.
///
/// A second signal, of either kind, ends the process at once: with one line in the log, and with a shell's exit code
/// for a process ended by that signal, 130 for SIGINT and 143 for SIGTERM. Leases not released by then expire. To
/// release the leases instead, within two `table_timeout` at most, a program calls [`Control::shutdown_within`] with
/// a time of 0.
///
/// Separate threads receive the signals and run `action`, and `action` may block. Handlers that block every thread of
/// their runtime change nothing.
///
/// ```no_run
/// # fn example(worker: &leasehold::Worker) -> Result<(), leasehold::Error> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// // Probes fail first, so that others see it. The worker goes on meanwhile, and is stopped then.
/// let is_stopping = Arc::new(AtomicBool::new(false));
/// let (control, stops) = (worker.control(), is_stopping.clone());
/// leasehold::on_signal(move || {
///     stops.store(true, Ordering::Relaxed);
///     std::thread::sleep(Duration::from_secs(5));
///     control.shutdown();
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Signal`] if the system refuses the process a listener or a thread.
pub fn on_signal(action: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let (first, asked) = mpsc::channel();
    // This thread waits for the first signal, or for the end of the listening thread.
    beside(move || asked.recv().is_ok().then(action)).map_err(Error::Signal)?;
    let (ready, begun) = mpsc::channel();
    beside(move || listen(&ready, &first)).map_err(Error::Signal)?;
    // A program may be sent a signal as soon as the program reports readiness.
    let begun = begun.recv();
    begun
        .unwrap_or_else(|_| Err(io::Error::other("the thread that hears signals has ended")))
        .map_err(Error::Signal)
}

/// Hears the first signal, and the second one. `ready` is told when none is missed any more, or why none is heard.
fn listen(ready: &mpsc::Sender<io::Result<()>>, first: &mpsc::Sender<()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let listening = runtime.and_then(|runtime| {
        let signals = runtime.block_on(async { Signals::new() })?;
        Ok((runtime, signals))
    });
    let (runtime, mut signals) = match listening {
        Ok(listening) => listening,
        Err(error) => {
            // Who asked waits for it.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    let code = runtime.block_on(async {
        signals.next().await;
        // The action's thread may be gone; a missing thread cannot keep a process from ending.
        let _ = first.send(());
        signals.next().await
    });
    end(code);
}

/// Runs `work` on a new thread, with the caller's log.
#[expect(
    clippy::disallowed_methods,
    reason = "signals come from outside of every simulation, and no task is to wait for the threads of handlers"
)]
fn beside<T>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
    let log = get_default(Clone::clone);
    let thread = thread::Builder::new().name(NAME.into());
    thread.spawn(move || with_default(&log, || drop(work()))).map(drop)
}

/// Ends the process.
fn end(code: i32) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    // Each call of `on_signal` hears both signals. One line is enough.
    if !ENDS.swap(true, Ordering::Relaxed) {
        let (written, is_written) = mpsc::channel();
        let says = beside(move || {
            tracing::warn!(
                target: "leasehold",
                kind = "ends-at-once",
                "asked to end once more: ending the process at once with exit code {code}; leases that were not released expire"
            );
            // The receiver is gone if the line took too long.
            let _ = written.send(());
        });
        if says.is_ok() {
            let _ = is_written.recv_timeout(LAST_LINE);
        }
        process::exit(code);
    }
    loop {
        thread::park();
    }
}

/// The signals for the end of a process, each as a shell's exit code.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| {
            if self.interrupt.poll_recv(cx).is_ready() {
                return std::task::Poll::Ready(INTERRUPTED);
            }
            self.terminate.poll_recv(cx).map(|_| TERMINATED)
        })
        .await
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> i32 {
        self.0.recv().await;
        INTERRUPTED
    }
}

#[cfg(all(test, unix))]
#[path = "signal_tests.rs"]
mod tests;
