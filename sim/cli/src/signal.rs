//! Ctrl-C and SIGTERM. Asking once ends a command in good order, asking once more at once.

use crate::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports of a process that was ended by SIGINT.
const INTERRUPTED: i32 = 130;
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
/// process ends at once, with the exit code that a shell reports of that signal: see [`leasehold::on_signal`].
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
            // The thread that was to tell is gone: the second signal is still heard.
            std::future::pending::<()>().await;
        }
    })
}
