//! Ctrl-C and SIGTERM.

/// Waits until the process is asked to end. From then on, asking once more ends it at once.
pub(super) async fn interrupted() {
    once().await;
    tokio::spawn(async {
        once().await;
        // What a shell reports of a process that was ended by SIGINT.
        std::process::exit(130);
    });
}

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
