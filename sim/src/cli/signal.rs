//! Ctrl-C and SIGTERM. Asking once ends a command in good order, asking once more at once.

use super::exit::Failure;
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

/// Waits until the process is asked to end, for commands that wait.
#[cfg(feature = "cli")]
pub(super) async fn interrupted() {
    once().await;
    tokio::spawn(async {
        once().await;
        std::process::exit(INTERRUPTED);
    });
}

#[cfg(feature = "cli")]
async fn once() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a signal handler, the system's default ends the process.
        std::future::pending::<()>().await;
    }
}
