//! dynoxide: a DynamoDB that others wrote, within this process.

use std::net::{Ipv4Addr, TcpListener};
use std::thread;

/// Starts a server on a new thread, and gives its address. The server ends with the process.
///
/// # Panics
/// If it cannot be started.
pub fn start() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.set_nonblocking(true).expect("a listener for tokio");
    let address = listener.local_addr().expect("a bound listener");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener for tokio");
            let database = dynoxide::Database::memory().expect("a database in memory");
            dynoxide::server::serve_on(listener, database).await;
        });
    });
    format!("http://{address}")
}
