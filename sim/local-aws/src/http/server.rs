//! Connections: accepted, served, and ended when the server is.

use super::SharedAws;
use super::answer::answer;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// How long a client may take to send the head of a request, and how long it may send nothing of its body.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long requests under way may take when the server ends.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// What a failure to accept (too many open files, say) costs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is ready, then lets the requests under way finish. What clients do, however odd,
/// is no error here.
pub async fn serve(
    listener: TcpListener,
    aws: SharedAws,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_with(PATIENCE, listener, aws, shutdown).await
}

/// The same with another patience for clients that stall.
pub(super) async fn serve_with(
    patience: Duration,
    listener: TcpListener,
    aws: SharedAws,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience);
    builder.http2().timer(TokioTimer::new());
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        // Forget the connections that ended.
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Answers are small and clients wait for each.
        let _ = socket.set_nodelay(true);
        let aws = aws.clone();
        let service = service_fn(move |request| {
            let aws = aws.clone();
            async move { Ok::<_, Infallible>(answer(&aws, request, patience).await) }
        });
        let connection = builder
            .serve_connection(TokioIo::new(socket), service)
            .into_owned();
        let connection = graceful.watch(connection);
        // A connection that breaks concerns its client only.
        connections.spawn(async move { connection.await.ok() });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await;
    connections.shutdown().await;
    Ok(())
}
