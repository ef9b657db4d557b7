//! Connections: accepted, served, and ended when the server is.
//!
//! A stalled client never keeps other clients from being served: the server closes a connection after a while without
//! progress, and sooner if there are many connections.

use super::SharedAws;
use super::answer::{Desk, answer};
use super::hosts::Hosts;
use super::leaving::Leaving;
use super::open::Connections;
use super::quiet::Quiet;
#[cfg(feature = "tls")]
use super::tls;
use http_body_util::Either;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The limits for stalled clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The longest time for the head of a request, for a pause within its body, and for an HTTP/1.1 connection without
    /// a request.
    pub patience: Duration,
    /// The longest time without incoming bytes, or without progress in sending. Longer than `patience`: a client out of
    /// patience gets an answer.
    pub silence: Duration,
    /// The most open connections. A further connection closes the connection with the longest silence.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), silence: Duration::from_secs(60), connections: 1_000 }
    }
}

/// The most requests under way on a connection of HTTP/2.
const MOST_STREAMS: u32 = 10_000;
/// How long requests under way may take when the server ends.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// What a failure to accept (too many open files, say) costs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is ready, then lets the requests under way finish. No act of a client, however odd, is an
/// error.
///
/// The server closes a connection after 30 s without a whole request head, and after 60 s without progress. A thousand
/// connections may be open; a further connection closes the connection with the longest silence and no request under
/// way. The same happens when the system gives the process no further socket.
pub async fn serve(
    listener: TcpListener, aws: SharedAws, shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_with(Limits::default(), listener, aws, shutdown).await
}

/// Serves with other limits for stalled clients.
pub(super) async fn serve_with(
    limits: Limits, listener: TcpListener, aws: SharedAws, shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.patience);
    builder.http2().timer(TokioTimer::new());
    // Each subscription is a stream of its connection, for five minutes.
    builder.http2().max_concurrent_streams(MOST_STREAMS);
    let graceful = GracefulShutdown::new();
    let hosts = Arc::new(Hosts::new(&aws.lock().options.allow_hosts));
    #[cfg(feature = "tls")]
    let tls = aws.lock().options.tls.clone();
    let (closes, closing) = watch::channel(());
    let desk = Desk { aws, hosts, patience: limits.patience, closing };
    let open = Connections::default();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        // Forget the ended connections.
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = accepted else {
            open.close_silent();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if open.count() >= limits.connections && !open.close_silent() {
            // All connections have requests under way.
            continue;
        }
        // Answers are small and clients wait for each.
        let _ = socket.set_nodelay(true);
        let entry = Arc::new(open.enter());
        let id = entry.id();
        let desk = desk.clone();
        let service = service_fn(move |request| {
            let busy = entry.begin();
            let desk = desk.clone();
            async move {
                let mut answer = answer(&desk, request).await;
                if let Either::Right(events) = answer.body_mut() {
                    events.hold(busy);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let socket = Quiet::new(socket, limits.silence);
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        #[cfg(feature = "tls")]
        let tls = tls.clone();
        // A broken connection concerns its client only.
        let task = connections.spawn(async move {
            #[cfg(feature = "tls")]
            let socket = tls::greeted(tls, socket, limits.patience).await?;
            let connection =
                builder.serve_connection(TokioIo::new(Leaving::new(socket)), service).into_owned();
            watcher.watch(connection).await.ok()
        });
        open.serves(id, task);
    }
    drop(listener);
    drop(closes);
    let _ = tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await;
    connections.shutdown().await;
    Ok(())
}
