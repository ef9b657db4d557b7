//! A way to a server that a test can cut: connections break in the midst of an answer.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// Passes connections on to a server. The way ends with its drop.
#[derive(Debug)]
pub struct Proxy {
    /// Where the way begins.
    pub endpoint: String,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    listener: JoinHandle<()>,
}

impl Proxy {
    /// Begins to listen for connections to `endpoint`, an `http://` address.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn to(endpoint: &str) -> io::Result<Self> {
        let server = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let alive = connections.clone();
        let listener = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = tokio::spawn(pass(client, server.clone())).abort_handle();
                let mut alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
                alive.retain(|connection| !connection.is_finished());
                alive.push(connection);
            }
        });
        Ok(Self { endpoint, connections, listener })
    }

    /// Cuts all connections; gives their number. New connections are accepted.
    pub fn cut(&self) -> usize {
        let cut = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        let alive = cut.iter().filter(|connection| !connection.is_finished());
        alive.map(AbortHandle::abort).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.listener.abort();
    }
}

/// Passes bytes on in both directions until an end of either side.
async fn pass(mut client: TcpStream, server: String) {
    if let Ok(mut server) = TcpStream::connect(server).await {
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}
