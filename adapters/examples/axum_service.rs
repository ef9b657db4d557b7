//! A service for Kubernetes: health, status and metrics over HTTP with axum. `cargo run -p leasehold --example axum_service`
//!
//! `README.md` beside this file says how to start an AWS in memory for it. Then: `curl 127.0.0.1:8080/healthz`, `…/status` and `…/metrics`.
//! Another address, and the seconds between a signal and the shutdown, are given as `… axum_service 0.0.0.0:80 10`.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its tasks and timers from a port; your program needs no such line"
)]

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Batch, Control, InitialPosition, Status, Worker};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::error::Error;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// What the pages are made from. A `Control` answers at once, from any thread, whatever the worker does.
struct Service {
    control: Control,
    metrics: PrometheusHandle,
    is_stopping: AtomicBool,
}

/// For probes. Not healthy means that a restart may help, or that one is under way; the text says why.
async fn healthz(State(service): State<Arc<Service>>) -> (StatusCode, String) {
    if service.is_stopping.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned());
    }
    let health = service.control.health();
    match health.is_healthy() {
        true => (StatusCode::OK, format!("{health}\n")),
        false => (StatusCode::SERVICE_UNAVAILABLE, format!("{health}\n")),
    }
}

/// For people: every lease with its checkpoint, how far behind it is, and what it waits for.
async fn status(State(service): State<Arc<Service>>) -> Json<Status> {
    Json(service.control.status())
}

/// For Prometheus.
async fn metrics(State(service): State<Arc<Service>>) -> String {
    service.metrics.render()
}

/// Ctrl-C, or what Kubernetes sends before it kills a process.
async fn signal() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Health fails first, so that others see it. The worker goes on meanwhile, and is stopped then.
async fn stop_on_signal(service: Arc<Service>, pause: Duration) -> std::io::Result<()> {
    signal().await?;
    service.is_stopping.store(true, Ordering::Relaxed);
    tokio::time::sleep(pause).await;
    service.control.shutdown();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let pause = args.next().map_or(Ok(5), |seconds| seconds.parse())?;
    // Before the worker: it names its metrics when it starts.
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("axum-service")
        .initial_position(InitialPosition::TrimHorizon)
        // Kubernetes kills a process 30 s after SIGTERM: be done before that.
        .config(|config| config.with_shutdown_timeout(Duration::from_secs(20)))
        .build()?;

    let service = Arc::new(Service {
        control: worker.control(),
        metrics: metrics.clone(),
        is_stopping: AtomicBool::new(false),
    });
    let pages = Router::new()
        .route("/healthz", get(healthz))
        .route("/status", get(status))
        .route("/metrics", get(self::metrics))
        .with_state(service.clone());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    // The pages are there until the worker has stopped.
    let (stop, stopped) = oneshot::channel::<()>();
    let until = async { stopped.await.unwrap_or_default() };
    let server = tokio::spawn(
        axum::serve(listener, pages)
            .with_graceful_shutdown(until)
            .into_future(),
    );
    tokio::spawn(stop_on_signal(service, Duration::from_secs(pause)));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            metrics.run_upkeep(); // or what histograms keep would grow
        }
    });

    let report = worker
        .run_fn(|batch: Batch| async move {
            println!("{} records of {}", batch.len(), batch.shard().shard);
            Ok::<(), std::io::Error>(())
        })
        .await?;
    drop(stop);
    server.await??;
    println!("the worker has stopped{report}");
    Ok(())
}
