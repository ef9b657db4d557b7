//! A liveness probe and a status page over HTTP, and a clean end. `cargo run -p leasehold --example shutdown_and_health`
//!
//! `README.md` beside this file tells how to start an AWS in memory. Then: `curl 127.0.0.1:8080/health` and
//! `…/status`. Another address is given as `… shutdown_and_health 0.0.0.0:80`.
#![expect(
    clippy::disallowed_methods,
    reason = "this project wants its tasks and threads from a port; your program needs no such line"
)]

use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, body};
use hyper_util::rt::TokioIo;
use leasehold::aws::{self, dynamodb, kinesis};
use leasehold::{Batch, Bytes, Control, InitialPosition, Worker};
use std::time::Duration;
use std::{io, net, thread};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// A `Control` answers at once, from any thread, whatever the worker does.
fn answer(path: &str, control: &Control) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    let (status, text) = match path {
        // For `livenessProbe` of Kubernetes: not healthy means that a restart may help, and the text says why.
        "/health" => match control.health() {
            health if health.is_healthy() => (StatusCode::OK, health.to_string()),
            health => (StatusCode::SERVICE_UNAVAILABLE, health.to_string()),
        },
        // For people: every lease with its checkpoint, its distance behind the tip, and its reason to wait.
        "/status" => match serde_json::to_string_pretty(&control.status()) {
            Ok(json) => (StatusCode::OK, json),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        _ => (StatusCode::NOT_FOUND, "try /health and /status".to_owned()),
    };
    Response::builder().status(status).body(Full::new(Bytes::from(text + "\n")))
}

/// On a separate thread and runtime: a probe gets an answer even while handlers block every thread of the worker's
/// runtime.
fn serve(listener: net::TcpListener, control: Control) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (socket, _) = listener.accept().await?;
            let control = control.clone();
            let service = service_fn(move |request: Request<body::Incoming>| {
                std::future::ready(answer(request.uri().path(), &control))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
        .http_client(aws::https_client())
        .load()
        .await;
    let worker = Worker::builder()
        .kinesis(kinesis::Client::new(&config))
        .dynamodb(dynamodb::Client::new(&config))
        .stream("orders")
        .application("shutdown-and-health")
        .initial_position(InitialPosition::TrimHorizon)
        // Kubernetes kills a process 30 s after SIGTERM: be done before that.
        .config(|config| config.with_shutdown_timeout(Duration::from_secs(20)))
        .build()?;

    let listener = net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("http://{}", listener.local_addr()?);
    let control = worker.control();
    thread::spawn(move || {
        if let Err(error) = serve(listener, control) {
            eprintln!("the pages are not served any more: {error}");
        }
    });
    // From any other place of the program, `control.shutdown()` does the same. A second signal ends the process at once.
    leasehold::shutdown_on_signal(worker.control())?;

    // After the signal: the running calls end, what is processed is written, every lease is released for the next worker.
    let report = worker
        .run_fn(|batch: Batch| async move {
            println!("{} records of {}", batch.len(), batch.shard().shard);
            Ok::<(), std::io::Error>(())
        })
        .await?;
    println!("the worker has stopped{report}");
    Ok(())
}
