//! A service for Kubernetes: health, status and metrics over HTTP with axum. `cargo run -p leasehold --example axum_service`
//!
//! `README.md` beside this file tells how to start an AWS in memory. Then: `curl 127.0.0.1:8080/healthz`, `…/status`
//! and `…/metrics`. Another address, and the seconds between a signal and the shutdown, are given as `… axum_service
//! 0.0.0.0:80 10`.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its tasks, timers and threads from a port; your program needs no such line"
)]

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Batch, Control, InitialPosition, Status, Worker};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, net};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// What the pages are made from. A `Control` answers at once, from any thread, whatever the worker does.
struct Service {
    control: Control,
    metrics: PrometheusHandle,
    is_stopping: AtomicBool,
}

/// For probes. Not healthy: a restart may help, or a shutdown is under way; the text tells the reason.
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

/// For people: every lease with its checkpoint, its distance behind the tip, and its reason to wait.
async fn status(State(service): State<Arc<Service>>) -> Json<Status> {
    Json(service.control.status())
}

/// For Prometheus.
async fn metrics(State(service): State<Arc<Service>>) -> String {
    service.metrics.render()
}

/// Serves the pages until `stopped`, on a thread and a runtime of their own: a probe is answered, too, while handlers block every thread
/// of the worker's runtime.
fn serve(
    listener: net::TcpListener, pages: Router, metrics: PrometheusHandle, stopped: oneshot::Receiver<()>,
) -> JoinHandle<io::Result<()>> {
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    metrics.run_upkeep(); // or what histograms keep would grow
                }
            });
            let until = async { stopped.await.unwrap_or_default() };
            axum::serve(TcpListener::from_std(listener)?, pages).with_graceful_shutdown(until).await
        })
    })
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
    let listener = net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("http://{}", listener.local_addr()?);
    // The pages stay until the worker has stopped.
    let (stop, stopped) = oneshot::channel::<()>();
    let server = serve(listener, pages, metrics, stopped);
    // Health fails first, so that others see it. The worker goes on meanwhile, and is stopped then. A second signal ends the process.
    leasehold::on_signal(move || {
        service.is_stopping.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(pause));
        service.control.shutdown();
    })?;

    let report = worker
        .run_fn(|batch: Batch| async move {
            println!("{} records of {}", batch.len(), batch.shard().shard);
            Ok::<(), std::io::Error>(())
        })
        .await?;
    drop(stop);
    server.join().map_err(|_| "the pages have panicked")??;
    println!("the worker has stopped{report}");
    Ok(())
}
