//! A way to a server that a test can cut, or make narrow: connections break in the midst of an answer, and all answers
//! share one line.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// The largest piece of an answer that occupies a narrow line at once, in bytes.
const PIECE: usize = 16 << 10;

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
        Self::over(endpoint, None).await
    }

    /// As [`to`](Self::to): all answers together pass at this rate.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn narrow(endpoint: &str, bytes_per_second: u32) -> io::Result<Self> {
        Self::over(endpoint, Some(Arc::new(NarrowLine::new(bytes_per_second)))).await
    }

    async fn over(endpoint: &str, line: Option<Arc<NarrowLine>>) -> io::Result<Self> {
        let server = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let alive = connections.clone();
        let listener = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = tokio::spawn(pass(client, server.clone(), line.clone())).abort_handle();
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

/// A line shared by all answers.
#[derive(Debug)]
struct NarrowLine {
    bytes_per_second: u32,
    /// When the line is free.
    free: Mutex<Instant>,
}

impl NarrowLine {
    fn new(bytes_per_second: u32) -> Self {
        Self { bytes_per_second, free: Mutex::new(Instant::now()) }
    }

    /// Waits for the line, and occupies it for this many bytes.
    async fn carry(&self, bytes: usize) {
        let takes = Duration::from_secs_f64(bytes as f64 / f64::from(self.bytes_per_second));
        let through = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            *free = (*free).max(Instant::now()) + takes;
            *free
        };
        tokio::time::sleep_until(through).await;
    }
}

/// Passes bytes on in both directions until an end of either side.
async fn pass(mut client: TcpStream, server: String, line: Option<Arc<NarrowLine>>) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    match line {
        None => drop(tokio::io::copy_bidirectional(&mut client, &mut server).await),
        Some(line) => {
            let (mut asks, mut hears) = client.split();
            let (mut answers, mut is_asked) = server.split();
            tokio::select! {
                _ = tokio::io::copy(&mut asks, &mut is_asked) => {}
                _ = pass_over(&line, &mut answers, &mut hears) => {}
            }
        }
    }
}

/// Passes answers on over a narrow line until their end.
async fn pass_over(
    line: &NarrowLine, answers: &mut (impl AsyncReadExt + Unpin), client: &mut (impl AsyncWriteExt + Unpin),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let bytes = answers.read(&mut piece).await?;
        if bytes == 0 {
            return Ok(());
        }
        line.carry(bytes).await;
        client.write_all(&piece[..bytes]).await?;
    }
}
