//! Ctrl-C and SIGTERM. Asking once ends a command in good order, asking once more at once.

use crate::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code that a shell reports for a process ended by SIGINT.
const INTERRUPTED: i32 = 130;
/// A flag set by the first request to end, for computing commands: they check it between two pieces of work. Call this
/// once in a process.
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

/// Listens to signals from now on. The returned future waits for the first request to end, for waiting commands. A
/// second request ends the process at once, with a shell's exit code for the signal: see [`leasehold::on_signal`].
#[cfg(feature = "aws")]
pub(super) fn interrupted() -> Result<impl Future<Output = ()>, Failure> {
    let (ask, asked) = tokio::sync::oneshot::channel();
    let listens = leasehold::on_signal(move || {
        // The command may have ended by then, or hang on its way out.
        let _ = ask.send(());
    });
    listens.map_err(|error| Failure::under_way(error.to_string()))?;
    Ok(async {
        if asked.await.is_err() {
            // The telling thread is gone: the second signal still ends the process.
            std::future::pending::<()>().await;
        }
    })
}
