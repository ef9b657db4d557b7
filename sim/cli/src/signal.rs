//! Ctrl-C and SIGTERM. Asking once ends a command in good order, asking once more at once.

use crate::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports of a process that was ended by SIGINT.
const INTERRUPTED: i32 = 130;
/// What a shell reports of a process that was ended by SIGTERM.
#[cfg(all(feature = "aws", unix))]
const TERMINATED: i32 = 143;

/// A flag that is set when the process is asked to end, for commands that compute: they look at it between two pieces of
/// work. To be called once in a process.
pub(super) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let asked = Arc::new(AtomicBool::new(false));
    let flag = asked.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    })
    .map_err(|error| Failure::under_way(format!("Ctrl-C cannot be listened to: {error}")))?;
    Ok(asked)
}

/// Listens to signals from now on. What is returned waits until the process is asked to end, for commands that wait. Asked once more, the
/// process ends at once, with the exit code that a shell reports of that signal. To be called once in a process.
///
/// Signals are listened to on a thread of their own. So nothing that the command does, or waits for, keeps it from being ended.
#[cfg(feature = "aws")]
pub(super) fn interrupted() -> impl Future<Output = ()> {
    let (ask, asked) = tokio::sync::oneshot::channel();
    let (ready, begun) = std::sync::mpsc::channel();
    let listener = std::thread::Builder::new().name("signals".to_owned());
    let started = listener.spawn(move || listen(ask, &ready)).is_ok();
    // A program that reads that the command is ready may send a signal at once. An error means that nothing listens.
    let listens = started && begun.recv().is_ok();
    async move {
        if !listens || asked.await.is_err() {
            // Without a signal handler, the system's default ends the process.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(feature = "aws")]
fn listen(ask: tokio::sync::oneshot::Sender<()>, ready: &std::sync::mpsc::Sender<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return;
    };
    runtime.block_on(async {
        let Ok(mut signals) = Signals::new() else { return };
        let _ = ready.send(());
        signals.next().await;
        // Whether the command still waits or not: it may hang on its way out.
        let _ = ask.send(());
        let code = signals.next().await;
        std::process::exit(code);
    });
}

/// The signals that ask a process to end, each as the exit code that a shell reports of it.
#[cfg(all(feature = "aws", unix))]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(all(feature = "aws", unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

#[cfg(all(feature = "aws", not(unix)))]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(all(feature = "aws", not(unix)))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> i32 {
        self.0.recv().await;
        INTERRUPTED
    }
}
