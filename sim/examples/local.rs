//! Serves the in-memory services on loopback until interrupted: `cargo run --example local -- 4567`.

use leasehold_sim::local::{LocalAws, LocalOptions, SharedAws, serve, wall_clock};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|port| port.parse().ok())
        .unwrap_or(4567);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let aws = SharedAws::new(LocalAws::new(LocalOptions::default()), wall_clock());
    serve(listener, aws, async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await
}
